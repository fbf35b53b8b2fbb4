"""The outcomes of a request that affects several groups."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from saros_cluster.data.drops import OVERTAKEN
from saros_cluster.database.partial_failure import PartialFailure, RowRange, RowsLeft
from saros_cluster.database.write_coordinator import SEE_SECONDS, WriteCoordinator, raise_failures
from saros_cluster.database.write_failure import write_failure
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
        "partially done: root.a.d from 1 to 5 (group 1), schema of root.a.e (group 3) succeeded; "
        "root.a.d from 100 to 100 (group 2) failed: group 2 has no leader: gone"
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
    """A replacement of `Proposer` for groups, some of which have no leader."""

    def __init__(self, *lost: GroupId) -> None:
        self._lost = lost
        self.proposed: list[tuple[GroupId, int | None]] = []

    def propose(self, group: GroupId, _: bytes, *, deadline_ns: int | None) -> None:
        self.proposed.append((group, deadline_ns))
        if group in self._lost:
            raise NoLeader(group, "gone", [NodeId(group)])


def write_in(groups: Groups, *written: GroupId, before: Mapping[GroupId, Mutation] | None = None) -> None:
    """Write rows to these groups before a deadline. `before` has the request's earlier changes in other groups."""
    nodes = {NodeId(n): Node("", "") for n in (1, 2, 3)}
    with ThreadPoolExecutor(3) as pool:
        entries = WriteCoordinator(7, groups, None, pool, SystemClock())  # type: ignore[arg-type]
        mutations = {group: rows(group) for group in written}
        request = WriteRequest(77, 1, deadline_ns=5)
        entries.propose_all(mutations, request, Routing(Topology.first(nodes, 1, 16), 100), 0, dict(before or {}))


def test_a_write_that_no_group_takes_names_group_and_database() -> None:
    groups = Groups(TWO)
    with pytest.raises(NoLeader) as caught:
        write_in(groups, TWO)
    assert "root.a (group 2: node 2) has no leader: gone" == str(caught.value)
    assert [(TWO, 5)] == groups.proposed
    with pytest.raises(NoLeader, match=r"root\.a \(group [23]: "):
        write_in(Groups(TWO, THREE), TWO, THREE)


@pytest.mark.parametrize(("written", "before"), [((ONE, TWO), {}), ((TWO,), {ONE: rows(1)})])
def test_a_write_that_other_groups_took_fails_with_both_parts_at_its_deadline(
    written: tuple[GroupId, ...], before: Mapping[GroupId, Mutation]
) -> None:
    groups = Groups(TWO)
    with pytest.raises(PartialFailure, match=r"root\.a\.d from 2 to 2 .* failed: .* has no leader: gone$") as caught:
        write_in(groups, *written, before=before)
    assert ([ONE], [TWO]) == (list(caught.value.done), list(caught.value.failed))
    assert [(group, 5) for group in written] == sorted(groups.proposed)


class Waits:
    """A replacement of `ReadBarrier` for groups, one of which has no leader. Time passes when the barrier waits."""

    def __init__(self) -> None:
        self.elapsed_ns = 0

    def monotonic_ns(self) -> int:
        return self.elapsed_ns

    def catch_up(self, groups: list[GroupId], seconds: float) -> dict[int, int]:
        if TWO in groups:
            self.elapsed_ns += int(seconds * 1e9)
            raise NoLeader(TWO, "gone")
        return {}


@pytest.mark.parametrize(("deadline_s", "expected_s"), [(None, SEE_SECONDS), (3.0, 3.0), (0.0, 0.2)])
def test_what_was_written_is_waited_for_until_the_deadline(deadline_s: float | None, expected_s: float) -> None:
    waits = Waits()
    entries = WriteCoordinator(7, waits, waits, None, waits)  # type: ignore[arg-type]
    deadline_ns = None if deadline_s is None else int(deadline_s * 1e9)
    with pytest.raises(OutcomeUnknown), entries.showing([TWO], deadline_ns):
        pass
    assert pytest.approx(expected_s) == waits.elapsed_ns / 1e9


def test_rows_that_are_missing_are_told_from_those_that_are_written() -> None:
    frames = [tablet.tablet for tablet in rows(1, 5, 100, 105, 200).tablets]
    failure = write_failure(NoLeader(TWO, "gone"), frames, {ONE: rows(1, 5), THREE: rows(200)})
    assert isinstance(failure, PartialFailure)
    assert (
        RowsLeft([RowRange("root.a.d", 1, 5), RowRange("root.a.d", 200, 200)], [RowRange("root.a.d", 100, 105)])
        == failure.rows
    )


@pytest.mark.parametrize(
    ("error", "is_final"), [(mistake(507), True), (mistake(OVERTAKEN), False), (OutcomeUnknown(TWO, ""), False)]
)
def test_only_a_mistake_will_be_refused_again(error: StorageError, is_final: bool) -> None:
    failure = write_failure(error, [tablet.tablet for tablet in rows(1, 5).tablets], {ONE: rows(1)})
    assert isinstance(failure, PartialFailure)
    assert failure.rows is not None
    assert (is_final, [RowRange("root.a.d", 5, 5)]) == (failure.rows.is_final, failure.rows.missing)


@pytest.mark.parametrize("written", [{}, {ONE: rows(1)}])
def test_a_write_of_which_nothing_or_everything_was_done_keeps_its_error(written: Mapping[GroupId, Mutation]) -> None:
    error = OutcomeUnknown(TWO, "gone")
    assert error is write_failure(error, [tablet.tablet for tablet in rows(1).tablets], written)


def test_many_missing_ranges_are_merged_over_the_shortest_stretches_of_written_rows() -> None:
    times = [10 * n for n in range(200)]
    written = {ONE: Mutation(tablets=[part for n in times[::2] for part in rows(n).tablets])}
    failure = write_failure(NoLeader(TWO, "gone"), [tablet.tablet for tablet in rows(*times).tablets], written)
    assert isinstance(failure, PartialFailure)
    assert failure.rows is not None
    missing = failure.rows.missing
    assert 32 == len(missing)
    covered = {time for part in missing for time in times if part.start <= time <= part.end}
    assert set() == set(times[1::2]) - covered
    told = {time for part in failure.rows.written for time in times if part.start <= time <= part.end}
    assert (set(times), set()) == (told | covered, told & covered)


def test_long_lists_are_cut() -> None:
    many = {GroupId(n): Mutation(deletions=[Deletion(("root.a.**",), TimeRange())]) for n in range(9)}
    many[GroupId(9)] = Mutation([DeleteDatabase("root.a")])
    with pytest.raises(PartialFailure) as caught:
        raise_failures(many, {GroupId(0): NoLeader(GroupId(0), "gone")}, {})
    assert "dropping or deleting root.a.** (group 5) and 4 more succeeded" in str(caught.value)
