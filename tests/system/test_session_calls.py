"""Every call needs an open session, both at a single node and in a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from server.frame_client import Refused
from server.secured import BAD_TOKENS, ROOT, SESSION_CALLS, Secured
from system.cluster_fixture import SecuredNode

from saros_wire.frames import Call


@pytest.fixture(scope="module", params=["alone", pytest.param("in a cluster", marks=pytest.mark.slow)])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Yield a server that tests share: refused calls change nothing, and each test uses tokens of separate sessions."""
    folder = tmp_path_factory.mktemp("secured")
    made = Secured(folder / "data") if request.param == "alone" else SecuredNode(folder)
    yield made
    made.server.stop()


@pytest.mark.parametrize("call", SESSION_CALLS)
@pytest.mark.parametrize("token_of", BAD_TOKENS, ids=lambda f: f.__name__)
def test_a_call_without_a_good_session_is_refused(
    secured: Secured, call: Call, token_of: Callable[[Secured], bytes | None]
) -> None:
    token = token_of(secured)
    with pytest.raises(Refused, match="2014: no such session"):
        secured.try_call(call, token)
    assert [] == secured.server.api.node.store.schema.databases()


def test_these_calls_are_refused_for_nothing_but_their_session(secured: Secured) -> None:
    """The same calls succeed in a valid session. This test is the module's last test, since it writes."""
    secured.try_call(Call.INSERT, secured.open("root", ROOT))
    assert ["root.proof"] == secured.server.api.node.store.schema.databases()
