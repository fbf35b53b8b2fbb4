"""Client sessions: the ways in which they end, and their maximum number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from manual_clock import ManualClock
from server.frame_client import FrameClient
from server.thrift_client import ThriftClient
from waiting import wait_equal

from saros_server.api import client_sessions, operations
from saros_server.api.calls import Peer
from saros_server.api.client_api import ApiConnection, ClientApi
from saros_server.api.client_sessions import IDLE_SECONDS, LEASE_SECONDS, NoSession, TooManySessions
from saros_server.api.executions import Statement
from saros_server.api.operations import Login
from saros_server.port.limits import Limits
from saros_server.server import Server
from saros_wire.status import status_of

HERE = Peer.at("127.0.0.1")
SECOND = 1_000_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def api(tmp_path: Path, clock: ManualClock) -> Iterator[ClientApi]:
    made = ClientApi(str(tmp_path / "data"), clock)
    yield made
    made.close()


def opened(connection: ApiConnection) -> bytes:
    return connection.call(operations.OPEN, b"", Login()).token


def opened_alone(api: ClientApi) -> bytes:
    """Open a session on a new connection, and end the connection without closing the session."""
    connection = api.connect(HERE)
    token = opened(connection)
    connection.close()
    return token


def use(connection: ApiConnection, token: bytes) -> None:
    connection.call(operations.EXECUTE, token, Statement("show time_zone"))


def is_open(api: ClientApi, token: bytes) -> bool:
    """Return whether a session exists, by using it on a new connection, which is then closed."""
    connection = api.connect(HERE)
    try:
        use(connection, token)
    except NoSession:
        return False
    else:
        return True
    finally:
        connection.close()


def test_a_session_without_a_connection_lives_for_a_short_lease(api: ClientApi, clock: ManualClock) -> None:
    token = opened_alone(api)
    clock.ns += LEASE_SECONDS * SECOND
    assert is_open(api, token)
    clock.ns += LEASE_SECONDS * SECOND
    assert is_open(api, token)  # each use renews the lease
    clock.ns += LEASE_SECONDS * SECOND + 1
    assert not is_open(api, token)
    assert api.sessions == 0


def test_a_session_on_another_connection_outlives_the_first(api: ClientApi, clock: ManualClock) -> None:
    first, second = api.connect(HERE), api.connect(HERE)
    token = opened(first)
    use(second, token)
    first.close()
    clock.ns += (IDLE_SECONDS - 1) * SECOND
    use(second, token)
    second.close()
    clock.ns += LEASE_SECONDS * SECOND + 1
    assert not is_open(api, token)


def test_a_session_that_a_connection_holds_ends_when_it_is_idle(api: ClientApi, clock: ManualClock) -> None:
    connection = api.connect(HERE)
    token = opened(connection)
    clock.ns += IDLE_SECONDS * SECOND
    use(connection, token)
    clock.ns += IDLE_SECONDS * SECOND + 1
    with pytest.raises(NoSession):
        use(connection, token)


def test_opening_a_session_closes_those_that_have_ended(api: ClientApi, clock: ManualClock) -> None:
    held = opened(api.connect(HERE))
    for _ in range(3):
        opened_alone(api)
    clock.ns += LEASE_SECONDS * SECOND + 1
    opened_alone(api)
    assert api.sessions == 2
    assert is_open(api, held)


def test_a_full_table_closes_the_session_that_has_lost_its_connection_longest(
    api: ClientApi, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_sessions, "SESSIONS_MAX", 3)
    holder = api.connect(HERE)
    held, oldest, newest = opened(holder), opened_alone(api), opened_alone(api)
    assert is_open(api, oldest)  # the use makes it the newest
    clock.ns += 1
    opened(holder)
    assert (is_open(api, held), is_open(api, oldest), is_open(api, newest)) == (True, True, False)
    assert api.sessions == 3


def test_a_table_of_sessions_with_connections_takes_no_more(api: ClientApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_sessions, "SESSIONS_MAX", 2)
    connection = api.connect(HERE)
    tokens = [opened(connection), opened(connection)]
    with pytest.raises(TooManySessions, match="this node has 2 sessions, the maximum: close some") as refused:
        opened(connection)
    assert "TOO_MANY_CLIENTS" == status_of(refused.value.code).name
    connection.call(operations.CLOSE, tokens[0], None)
    opened(connection)
    assert [is_open(api, token) for token in tokens] == [False, True]


def test_a_closed_session_is_forgotten_by_all_connections(api: ClientApi) -> None:
    first, second = api.connect(HERE), api.connect(HERE)
    token = opened(first)
    second.call(operations.CLOSE, token, None)
    first.close()
    assert (api.sessions, len(first._holder.held)) == (0, 0)
    opened_alone(api)
    assert api.sessions == 1


def test_each_connection_may_have_a_session() -> None:
    assert client_sessions.SESSIONS_MAX >= Limits().connections


# ---------------------------------------------------------------------------------------------- on the port


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(str(tmp_path / "data"), "127.0.0.1", 0)
    made.start()
    yield made
    made.stop()


def without_connection(server: Server) -> int:
    return len(server.api._services.sessions._leased)


def test_clients_that_crash_in_a_loop_do_not_fill_the_table(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_sessions, "SESSIONS_MAX", 8)
    for count in range(40):
        with FrameClient(server.address) as client:
            client.open()
        wait_equal(min(count + 1, 8), lambda: without_connection(server))
    assert server.api.sessions == 8


def test_a_native_session_goes_on_after_its_connection_is_lost(server: Server) -> None:
    with FrameClient(server.address) as client:
        client.open()
        client.execute("set time_zone = '+05:00'")
        token = client.token
    wait_equal(1, lambda: without_connection(server))
    with FrameClient(server.address) as client:
        client.token = token
        assert client.execute("show time_zone").to_pydict() == {"TimeZone": ["+05:00"]}


def test_a_session_of_iotdb_ends_with_its_connection(server: Server) -> None:
    with ThriftClient(server.address) as client:
        client.open()
        assert server.api.sessions == 1
    wait_equal(0, lambda: server.api.sessions)
