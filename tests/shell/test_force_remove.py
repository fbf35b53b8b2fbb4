"""The warning that `remove-node --force` prints before it asks for confirmation."""

from __future__ import annotations

import pytest

from saros_cluster.placement.ring import NodeId
from saros_shell.cluster.force_remove import confirmed, warning
from saros_storage.base.errors import UserMistake

GROUPS = {0: (1, 2, 3, 4), 1: (1, 2), 2: (2, 3), 3: (3, 4), 4: (4, 1, 2)}
REGIONS: list[dict[str, object]] = [
    {"RegionId": number, "Type": "DataRegion" if number else "ConfigRegion", "DataNodeId": node}
    for number, members in GROUPS.items()
    for node in members
]


def test_it_says_what_becomes_of_each_group() -> None:
    said = warning([NodeId(3), NodeId(2)], REGIONS).splitlines()
    assert "These nodes will be removed as permanently lost: 2 3." == said[0]
    assert [
        "  the meta group: continues with the data of node 1 or 4, which has every acknowledged write.",
        "  group 1: continues with the data of node 1, which has every acknowledged write.",
        "  group 2: no replica is left. All its data is LOST; its slots start empty.",
        "  group 3: continues with the data of node 4, which has every acknowledged write.",
    ] == said[2:]


def test_it_says_what_may_be_lost_if_less_than_half_is_left() -> None:
    said = warning([NodeId(1), NodeId(2)], REGIONS)
    assert "  group 4: continues with the data of node 4. Writes acknowledged only by the lost nodes are LOST." in said


def test_without_a_terminal_it_has_to_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoTerminal:
        def isatty(self) -> bool:
            return False

    monkeypatch.setattr("sys.stdin", NoTerminal())
    with pytest.raises(UserMistake, match="--yes"):
        confirmed([NodeId(1)])


@pytest.mark.parametrize(("typed", "is_confirmed"), [("2 3\n", True), ("3\n", False), ("\n", False), ("yes\n", False)])
def test_the_ids_have_to_be_typed(typed: str, is_confirmed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return typed

    monkeypatch.setattr("sys.stdin", Terminal())
    assert is_confirmed == confirmed([NodeId(3), NodeId(2)])
