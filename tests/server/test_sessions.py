"""Weak and mid sessions: a read at any node is at least as new as the session's earlier reads, or is marked stale.

The tests overwrite one point, the register, with 1, 2, 3 ..., while one replica of the point's group lags.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from system.town import Served, Town, a_town
from waiting import wait_until

import saros
from saros_cluster.database.read_index import ReadBarrier
from saros_cluster.raft.messages import GroupId
from saros_engine.base.session_context import SessionContext
from saros_storage.base.types import DataType

GROUP = GroupId(1)
#: The ids of the group's three members, and the index (not the id) of the reading node, which has no replica.
LEADER, OTHER, BEHIND, ASKING = 1, 2, 3, 3


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with a_town(tmp_path_factory.mktemp("town"), 4, 3) as town:
        assert {LEADER, OTHER, BEHIND} == set(town.routing().members(GROUP))
        yield town


@pytest.fixture
def town(four: Town) -> Iterator[Town]:
    four.arrange_leaders()
    yield four
    four.weather.heal()


class Register:
    """One point of a series that the group stores."""

    def __init__(self, town: Town) -> None:
        self._town = town
        self._device = f"{town.database(GROUP)}.d"

    def write(self, value: int) -> None:
        self._town.insert(LEADER - 1, self._device, [0], [value], DataType.INT64)

    def read(self, session: SessionContext, number: int = ASKING) -> tuple[object, bool]:
        """Read at a node, by default the node without a replica; return the value, and True if it may be stale."""
        result = self._town.nodes.node(number).engine.execute(f"select x from {self._device}", session)
        values = []
        while (block := result.next_block()) is not None:
            values += block.columns[0].to_list()
        result.close()
        return next(iter(values), None), result.stale


def ask_first(patch: pytest.MonkeyPatch, node: int) -> None:
    """Make every node ask `node`, a member of the group, before the other members."""
    holders = ReadBarrier.holders
    patch.setattr(ReadBarrier, "holders", lambda self, group: sorted(holders(self, group), key=lambda n: n != node))


def leave_behind(town: Town) -> None:
    """Cut the member BEHIND off from the messages of the other members, so that later writes do not reach it."""
    for node in (LEADER, OTHER):
        town.weather.cut(node, BEHIND)


@pytest.mark.parametrize("consistency", ["weak", "mid"])
def test_a_holder_that_is_behind_leaves_the_answer_to_another(
    town: Town, consistency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session has read 2. The leader is cut off, the replica that is asked first still has 1, the third has 2."""
    register, session = Register(town), SessionContext(consistency=consistency)
    register.write(1)
    wait_until(lambda: register.read(session) == (1, False))
    leave_behind(town)
    register.write(2)
    ask_first(monkeypatch, LEADER)
    assert (2, False) == register.read(session)
    town.weather.cut(ASKING + 1, LEADER)
    ask_first(monkeypatch, BEHIND)
    value, stale = register.read(session)
    assert 2 == value
    assert not (stale and consistency == "weak")
    # A session that has not read the value 2 may read the value 1, which this replica has.
    assert (1, False) == register.read(SessionContext(consistency="weak"))


def test_what_nobody_has_any_more_is_missed_and_said(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    register, session = Register(town), SessionContext(consistency="weak")
    register.write(1)
    wait_until(lambda: register.read(session) == (1, False))
    leave_behind(town)
    register.write(2)
    ask_first(monkeypatch, LEADER)
    assert (2, False) == register.read(session)
    for node in (LEADER, OTHER):
        town.weather.cut(ASKING + 1, node)
    assert (1, True) == register.read(session)
    assert (1, True) == register.read(session)
    town.weather.heal()
    wait_until(lambda: register.read(session) == (2, False))


def test_series_that_were_shown_elsewhere_are_asked_for(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session has read a series at another node. Neither its node nor the first asked member knows this series."""
    register, session = Register(town), SessionContext(consistency="weak")
    monkeypatch.setattr(ReadBarrier, "refresh", lambda *_: None)
    leave_behind(town)
    register.write(1)
    wait_until(lambda: register.read(session, LEADER - 1) == (1, False))
    ask_first(monkeypatch, BEHIND)
    assert (None, False) == register.read(SessionContext(consistency="weak"))
    assert (1, False) == register.read(session)


@pytest.mark.parametrize("number", [ASKING, BEHIND - 1])
def test_series_that_nobody_tells_of_are_missed_and_said(
    town: Town, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that is cut off finds no new series, with a lagging or no replica, and marks its answer as stale."""
    register, session = Register(town), SessionContext(consistency="weak")
    monkeypatch.setattr(ReadBarrier, "refresh", lambda *_: None)
    leave_behind(town)
    register.write(1)
    wait_until(lambda: register.read(session, LEADER - 1) == (1, False))
    town.weather.isolate(number + 1)
    assert (None, True) == register.read(session, number)
    assert (None, False) == register.read(SessionContext(consistency="weak"), number)
    town.weather.heal()
    wait_until(lambda: register.read(session, number) == (1, False))


def test_a_connection_takes_what_it_was_shown_along_to_other_nodes(tmp_path: Path) -> None:
    """Weak reads are sent to all nodes in turn, and also to a node that is cut off from the other nodes."""
    with a_town(tmp_path, 3, 3, Served) as town:
        town.arrange_leaders(of_all=0)
        device = f"{town.database(GROUP)}.d"
        town.insert(0, device, [0], [1], DataType.INT64)
        assert [[(0, 1)]] * 3 == town.on_all(f"select x from {device}")
        addresses = ",".join(server.address for server in town.nodes.servers.values())
        with saros.connect(f"saros://{addresses}", consistency="weak", timestamps="epoch") as connection:
            cursor = connection.cursor()

            def found() -> tuple[int, bool]:
                ((_, value),) = cursor.execute(f"select x from {device}").fetchall()
                return value, cursor.stale

            town.weather.isolate(3)
            town.insert(0, device, [0], [2], DataType.INT64)
            wait_until(lambda: found()[0] == 2)
            assert {(2, False), (1, True)} == {found() for _ in range(6)}
            town.weather.heal()
            wait_until(lambda: {(2, False)} == {found() for _ in range(3)})
