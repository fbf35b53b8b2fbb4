"""The time limit for repeating requests that drops or moves of slots overtake again and again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from saros_cluster.database.drop_coordinator import RENEWALS_MAX, DropCoordinator
from saros_cluster.meta.state import BeginDrop
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.proposer import DEADLINE_SECONDS
from saros_storage.base.errors import UserMistake
from saros_storage.base.write_request import WriteRequest

SECOND = 1_000_000_000


class Moving:
    """A cluster whose slots never stop moving; it implements all interfaces that a coordinator calls.

    Time passes only while the coordinator waits.
    """

    def __init__(self) -> None:
        self.elapsed_ns = 0
        self.tries = 0
        self.now = self

    def monotonic_ns(self) -> int:
        return self.elapsed_ns

    def await_open(self, _: object, seconds: float) -> bool:
        self.elapsed_ns += int(seconds * SECOND)
        return False

    def wait_visible(self, groups: list[GroupId], deadline_ns: int | None) -> None:
        """Return at once: the meta group takes no time to answer."""

    def change_meta(self, _: BeginDrop, request: WriteRequest) -> None:
        self.refuse()

    def refuse(self) -> None:
        self.tries += 1
        raise UserMistake("slots move", code=MOVED)


def outcome_of(act: Callable[[DropCoordinator, Moving], None]) -> tuple[float, int]:
    """Return the number of seconds for which the coordinator tries, and the number of attempts."""
    moving = Moving()
    coordinator = DropCoordinator(moving, moving, moving, moving, moving, moving)  # type: ignore[arg-type]
    with pytest.raises(UserMistake, match="slots move"):
        act(coordinator, moving)
    return moving.elapsed_ns / SECOND, moving.tries


@pytest.mark.parametrize(
    ("deadline_s", "expected"), [(None, (RENEWALS_MAX * 0.25, RENEWALS_MAX)), (1.0, (1.0, 5)), (0.0, (0.0, 1))]
)
def test_a_write_that_is_overtaken_is_tried_until_its_deadline(
    deadline_s: float | None, expected: tuple[float, int]
) -> None:
    deadline_ns = None if deadline_s is None else int(deadline_s * SECOND)
    assert expected == outcome_of(
        lambda coordinator, moving: coordinator.retry_overtaken(moving.refuse, (), deadline_ns)
    )


@pytest.mark.parametrize(("deadline_s", "expected_s"), [(None, DEADLINE_SECONDS), (1.0, 1.0), (0.0, 0.25)])
def test_a_drop_is_tried_until_its_deadline(deadline_s: float | None, expected_s: float) -> None:
    deadline_ns = None if deadline_s is None else int(deadline_s * SECOND)
    tried_s, _ = outcome_of(lambda coordinator, _: coordinator.drop(BeginDrop("root.a"), deadline_ns))
    assert expected_s == tried_s
