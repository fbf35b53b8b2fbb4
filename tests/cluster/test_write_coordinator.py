"""What came of a request over several groups."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from saros_cluster.data.drops import OVERTAKEN
from saros_cluster.database.partial_failure import PartialFailure
from saros_cluster.database.write_coordinator import WriteCoordinator, raise_failures
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader, OutcomeUnknown
from saros_cluster.routing.routing import Routing
from saros_cluster.topology.topology import Node, Topology
from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DataType
from saros_storage.base.write_request import WriteRequest
from saros_storage.mutation.mutation import Deletion, Mutation, PlacedTablet
from saros_storage.mutation.tablet_codec import encode_tablet
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import CreateSeries, DeleteDatabase

ONE, TWO, THREE = GroupId(1), GroupId(2), GroupId(3)


def rows(*times: int) -> Mutation:
    column = Column.of(DataType.INT32, list(times))
    return Mutation(
        tablets=[PlacedTablet(2, encode_tablet(Tablet("root.a.d", ("x",), np.array(times), (column,), False)))]
    )


WRITE = {ONE: rows(1, 5), TWO: rows(100), THREE: Mutation([CreateSeries("root.a.e", False, ())])}


def mistake(code: int) -> UserMistake:
    return UserMistake("wrong", code=code)


def test_nothing_is_raised_if_all_is_done() -> None:
    raise_failures(WRITE, {}, {})


def test_a_part_says_what_is_done_and_what_is_not() -> None:
    with pytest.raises(PartialFailure) as caught:
        raise_failures(WRITE, {TWO: NoLeader(TWO, "gone")}, {})
    assert (2020, [ONE, THREE], [TWO]) == (caught.value.code, list(caught.value.done), list(caught.value.failed))
    assert (
        "done in part: done is root.a.d from 1 to 5 (group 1), schema of root.a.e (group 3); "
        "not done is root.a.d from 100 to 100 (group 2): group 2 has no leader: gone"
    ) == str(caught.value)


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        ([NoLeader(ONE, ""), NoLeader(TWO, ""), NoLeader(THREE, "")], 2017),
        ([NoLeader(ONE, ""), OutcomeUnknown(TWO, ""), NoLeader(THREE, "")], 2018),
        ([NoLeader(ONE, ""), OutcomeUnknown(TWO, ""), None], 2020),
        ([None, mistake(507), NoLeader(THREE, "")], 507),
        ([mistake(507), mistake(OVERTAKEN), None], OVERTAKEN),
    ],
)
def test_which_failure_counts(failures: list[StorageError | None], expected: int) -> None:
    groups = {group: error for group, error in zip(WRITE, failures, strict=True) if error is not None}
    with pytest.raises(StorageError) as caught:
        raise_failures(WRITE, groups, {})
    assert expected == caught.value.code


class Groups:
    """Groups, of which some have no leader unless one waits as long as it takes. Takes the place of a `Proposer`."""

    def __init__(self, *slow: GroupId) -> None:
        self._slow = slow
        self.proposed: list[tuple[GroupId, bool]] = []

    def propose(self, group: GroupId, _: bytes, *, leaders_until_ns: int | None) -> None:
        is_short = leaders_until_ns is not None
        self.proposed.append((group, is_short))
        if group in self._slow and is_short:
            raise NoLeader(group, "gone", [NodeId(group)])


def write_in(groups: Groups, *written: GroupId, before: Mapping[GroupId, Mutation] | None = None) -> None:
    """Write rows to these groups, for a client that tries elsewhere; `before`: rows of the same request."""
    nodes = {NodeId(n): Node("", "") for n in (1, 2, 3)}
    with ThreadPoolExecutor(3) as pool:
        entries = WriteCoordinator(7, groups, None, pool, SystemClock())  # type: ignore[arg-type]
        mutations = {group: rows(group) for group in written}
        request = WriteRequest(77, 1, leaders_until_ns=SystemClock().monotonic_ns())
        entries.propose_all(mutations, request, Routing(Topology.first(nodes, 1, 16), 100), 0, dict(before or {}))


def test_a_write_that_no_group_takes_fails_soon_and_names_group_and_database() -> None:
    groups = Groups(TWO)
    with pytest.raises(NoLeader) as caught:
        write_in(groups, TWO)
    assert "root.a (group 2: node 2) has no leader: gone" == str(caught.value)
    assert [(TWO, True)] == groups.proposed
    with pytest.raises(NoLeader, match=r"root\.a \(group [23]: "):
        write_in(Groups(TWO, THREE), TWO, THREE)


def test_a_write_that_some_groups_took_waits_for_the_others_as_long_as_it_takes() -> None:
    groups = Groups(TWO)
    write_in(groups, ONE, TWO)
    assert [(ONE, True), (TWO, False), (TWO, True)] == sorted(groups.proposed)
    second = Groups(TWO)
    write_in(second, TWO, before={ONE: rows(1)})
    assert [(TWO, True), (TWO, False)] == second.proposed


def test_long_lists_are_cut() -> None:
    many = {GroupId(n): Mutation(deletions=[Deletion(("root.a.**",), TimeRange())]) for n in range(9)}
    many[GroupId(9)] = Mutation([DeleteDatabase("root.a")])
    with pytest.raises(PartialFailure) as caught:
        raise_failures(many, {GroupId(0): NoLeader(GroupId(0), "gone")}, {})
    assert "dropping or deleting root.a.** (group 5) and 4 more; not done" in str(caught.value)
