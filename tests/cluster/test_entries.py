"""What came of a request over several groups."""

from __future__ import annotations

import numpy as np
import pytest

from saros_cluster.data.drops import OVERTAKEN
from saros_cluster.entries import raise_failures
from saros_cluster.partly import PartlyDone
from saros_cluster.proposer import NoLeader, OutcomeUnknown
from saros_cluster.raft.messages import GroupId
from saros_storage.block import Column
from saros_storage.errors import StorageError, UserMistake
from saros_storage.mutation import Deletion, Mutation, Placed
from saros_storage.reading import TimeRange
from saros_storage.schema import CreateSeries, DeleteDatabase
from saros_storage.tablet import Tablet
from saros_storage.tablet_codec import encode_tablet
from saros_storage.types import DataType

ONE, TWO, THREE = GroupId(1), GroupId(2), GroupId(3)


def rows(*times: int) -> Mutation:
    column = Column.of(DataType.INT32, list(times))
    return Mutation(tablets=[Placed(2, encode_tablet(Tablet("root.a.d", ("x",), np.array(times), (column,), False)))])


WRITE = {ONE: rows(1, 5), TWO: rows(100), THREE: Mutation([CreateSeries("root.a.e", False, ())])}


def mistake(code: int) -> UserMistake:
    return UserMistake("wrong", code=code)


def test_nothing_is_raised_if_all_is_done() -> None:
    raise_failures(WRITE, {}, {})


def test_a_part_says_what_is_done_and_what_is_not() -> None:
    with pytest.raises(PartlyDone) as caught:
        raise_failures(WRITE, {TWO: NoLeader(TWO, "gone")}, {})
    assert (2020, [ONE, THREE], [TWO]) == (caught.value.code, list(caught.value.done), list(caught.value.failed))
    assert (
        "done in part: done is root.a.d from 1 to 5 (group 1), schema of root.a.e (group 3); "
        "not done is root.a.d from 100 to 100 (group 2): group 2 has no leader that can be reached: gone"
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


def test_long_lists_are_cut() -> None:
    many = {GroupId(n): Mutation(deletions=[Deletion(("root.a.**",), TimeRange())]) for n in range(9)}
    many[GroupId(9)] = Mutation([DeleteDatabase("root.a")])
    with pytest.raises(PartlyDone) as caught:
        raise_failures(many, {GroupId(0): NoLeader(GroupId(0), "gone")}, {})
    assert "dropping or deleting root.a.** (group 5) and 4 more; not done" in str(caught.value)
