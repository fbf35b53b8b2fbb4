"""Batches of several devices are written by one write; each has its outcome, and a failure is reported once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from engine.embedded_engine import Engine
from msgspec.structs import replace

from saros_cluster.database.partial_failure import PartialFailure, RowRange, RowsLeft, final_refusal
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader
from saros_engine.writes import writer
from saros_engine.writes.batches import ColumnBatch, MultiBatch, outcomes_of
from saros_engine.writes.grouped_writes import GroupedWrites
from saros_engine.writes.joint_writes import CheckedBatch
from saros_storage.base.block import Column
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.tablet import MultiTablet, Tablet, tablets_of
from saros_storage.base.types import DataType
from saros_storage.base.write_request import UNNUMBERED
from saros_storage.schema import SchemaChange

NO_LEADER = NoLeader(GroupId(1), "gone")
DEVICES = ["root.a.d1", "root.a.d2", "root.a.d3"]


class FailingStore:
    """Makes the next writes of an engine's store fail, before they write anything or after they wrote some devices."""

    def __init__(self, engine: Engine, patch: pytest.MonkeyPatch) -> None:
        self._write = engine.store.write
        self.failures: list[tuple[StorageError, Sequence[str]]] = []
        #: The devices of each write.
        self.writes: list[list[str]] = []
        patch.setattr(engine.store, "write", self.write)
        patch.setattr(GroupedWrites, "write", lambda *_: False)

    def write(
        self, tablets: Sequence[Tablet | MultiTablet], creates: Sequence[SchemaChange] = (), **named: object
    ) -> None:
        each = [one for tablet in tablets for one in tablets_of(tablet)]
        self.writes.append([tablet.device for tablet in each])
        error, done = self.failures.pop(0) if self.failures else (None, [tablet.device for tablet in each])
        written = [tablet for tablet in each if tablet.device in done]
        if written:
            self._write(written, creates, **named)
        if error is not None:
            raise error


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(tmp_path)
    engine.ask("insert into root.a.d1(time, x) values (1, 1)")
    engine.ask("insert into root.a.d2(time, x) values (1, 1)")
    engine.ask("insert into root.a.d3(time, x) values (1, 1)")
    yield engine
    engine.close()


@pytest.fixture
def store(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> FailingStore:
    return FailingStore(engine, monkeypatch)


def batch(device: str, type_: DataType = DataType.DOUBLE, value: object = 2.5) -> ColumnBatch:
    return ColumnBatch(device, np.array([2, 3]), {"x": Column.of(type_, [value, value])}, None)


def write(engine: Engine, batches: Sequence[ColumnBatch | Exception]) -> list[int | Exception]:
    return engine.engine.insert_batches(batches, session=engine.session, request=UNNUMBERED)


def write_rows(engine: Engine, batches: Sequence[ColumnBatch]) -> list[int | Exception]:
    """Write batches that have the same columns, by a single call of `insert_rows`."""
    times = np.concatenate([one.times for one in batches])
    columns = {name: Column.concat([one.columns[name] for one in batches]) for name in batches[0].columns}
    devices, counts = [one.device for one in batches], [len(one.times) for one in batches]
    rows = MultiBatch(devices, counts, times, columns, batches[0].aligned)
    return engine.engine.insert_rows(rows, session=engine.session, request=UNNUMBERED)


#: Runs a test twice: with batches, and with rows of many devices.
both_ways = pytest.mark.parametrize("write", [write, write_rows])
Write = Callable[[Engine, Sequence[ColumnBatch]], list[int | Exception]]


def written(engine: Engine) -> list[object]:
    """Return the devices that have a row at time 2."""
    return [row[1] for row in engine.ask("select x from root.a.** where time = 2 align by device")[1]]


@both_ways
@pytest.mark.parametrize("error", [NO_LEADER, StorageError("the disk is full"), UserMistake("moving", code=MOVED)])
def test_a_failure_that_is_no_refusal_is_that_of_all_batches(
    engine: Engine, write: Write, store: FailingStore, error: StorageError
) -> None:
    store.failures = [(error, ())]
    assert write(engine, [*map(batch, DEVICES)]) == [error] * 3
    assert store.writes == [DEVICES]


@both_ways
def test_after_a_refusal_each_batch_is_written_by_itself(engine: Engine, write: Write, store: FailingStore) -> None:
    refusal = UserMistake("a year that is too late", code=2007)
    store.failures = [(refusal, ()), (refusal, ())]
    assert write(engine, [*map(batch, DEVICES)]) == [refusal, 2, 2]
    assert store.writes == [DEVICES, *([device] for device in DEVICES)]
    assert written(engine) == DEVICES[1:]


@both_ways
def test_the_outcomes_of_a_write_that_was_done_in_part_are_those_of_its_rows(
    engine: Engine, write: Write, store: FailingStore
) -> None:
    rows = RowsLeft(
        [RowRange(DEVICES[0], 2, 3), RowRange(DEVICES[1], 2, 2)],
        [RowRange(DEVICES[1], 3, 3), RowRange(DEVICES[2], 2, 3)],
    )
    store.failures = [(PartialFailure({}, {}, "gone", rows=rows), DEVICES[:1])]
    first, second, third = write(engine, [*map(batch, DEVICES)])
    assert store.writes == [DEVICES]
    assert isinstance(second, PartialFailure)
    assert isinstance(third, PartialFailure)
    assert (first, second.rows, third.rows) == (
        2,
        RowsLeft([RowRange(DEVICES[1], 2, 2)], [RowRange(DEVICES[1], 3, 3)]),
        RowsLeft([], [RowRange(DEVICES[2], 2, 3)]),
    )


@both_ways
def test_after_a_refusal_in_part_the_other_batches_are_written(
    engine: Engine, write: Write, store: FailingStore
) -> None:
    refusal = UserMistake("another type", code=507)
    rows = RowsLeft([RowRange(DEVICES[0], 2, 3)], [RowRange(device, 2, 3) for device in DEVICES[1:]])
    store.failures = [(final_refusal({}, refusal, rows), DEVICES[:1]), (refusal, ())]
    assert write(engine, [*map(batch, DEVICES)]) == [2, refusal, 2]
    assert store.writes == [DEVICES, DEVICES[1:2], DEVICES[2:]]
    assert written(engine) == [DEVICES[0], DEVICES[2]]


@both_ways
def test_new_devices_are_not_tried_after_one_had_to_wait_in_vain(
    engine: Engine, write: Write, store: FailingStore
) -> None:
    batches = [batch("root.a.new1"), batch("root.a.d1"), batch("root.a.new2"), batch("root.a.new3")]
    new = ["root.a.new1", "root.a.new2", "root.a.new3"]
    rows = RowsLeft([], [RowRange(device, 2, 3) for device in new])
    store.failures = [(PartialFailure({}, {}, "gone", rows=rows), ())]
    store.failures[0][0].__cause__ = NO_LEADER
    first, other, *left = write(engine, batches)
    assert [PartialFailure] * 3 == [type(outcome) for outcome in (first, *left)]
    assert other is NO_LEADER
    assert store.writes == [new]


def test_batches_that_create_series_are_one_write(engine: Engine, store: FailingStore) -> None:
    batches = [batch("root.b.d1"), batch("root.a.d1"), batch("root.b.d2"), batch("root.c.d1")]
    assert write(engine, batches) == [2] * 4
    assert store.writes == [["root.b.d1", "root.b.d2", "root.c.d1"], ["root.a.d1"]]
    assert write(engine, batches) == [2] * 4
    assert store.writes[2:] == [["root.b.d1", "root.a.d1", "root.b.d2", "root.c.d1"]]


def test_a_refused_series_does_not_keep_the_others_from_being_created(engine: Engine, store: FailingStore) -> None:
    wrong = batch("root.a.d1.x")  # a series has this path
    first, second, third, fourth = write(engine, [batch("root.b.d1"), wrong, batch("root.b.d2"), batch("root.a.d1")])
    assert [2, 2, 2] == [first, third, fourth]
    assert 507 == getattr(second, "code", None)
    assert store.writes[-1] == ["root.a.d1"]


def test_series_get_the_tags_of_the_batch_that_creates_them(engine: Engine) -> None:
    tagged = [replace(batch(device), tags={"unit": unit}) for device, unit in (("root.b.d1", "K"), ("root.a.d1", "V"))]
    assert write(engine, tagged) == [2, 2]
    shown = [(row[0], row[6]) for row in engine.ask("show timeseries root.*.d1.x")[1]]
    assert [("root.a.d1.x", None), ("root.b.d1.x", '{"unit":"K"}')] == shown


def test_batches_that_create_series_are_fitted_once(
    engine: Engine, store: FailingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = []
    fit = writer.Writer._fitted

    def counting(self: writer.Writer, found: CheckedBatch) -> object:
        fitted.append(found.key[0])
        return fit(self, found)

    monkeypatch.setattr(writer.Writer, "_fitted", counting)
    devices = ["root.b.d1", "root.a.d1", "root.b.d2"]
    assert write(engine, [*map(batch, devices)]) == [2, 2, 2]
    assert fitted == devices
    assert store.writes == [["root.b.d1", "root.b.d2"], ["root.a.d1"]]


def test_errors_in_the_place_of_batches_stay_there(engine: Engine) -> None:
    refusal = UserMistake("not allowed", code=803)
    first, second, third = write(engine, [refusal, batch("root.a.d1"), batch("root.a.d2", DataType.TEXT, "a")])
    assert (first, second) == (refusal, 2)
    assert getattr(third, "code", None) == 507


def test_steps_are_not_tried_after_a_failure_for_which_each_would_wait() -> None:
    tried = []

    def step(number: int) -> int:
        tried.append(number)
        if number == 2:
            raise UserMistake("two", code=507)
        if number == 4:
            raise NO_LEADER
        return number * 10

    earlier = UserMistake("earlier", code=507)
    outcomes = outcomes_of([1, 2, earlier, 3, 4, 5, earlier], step)
    assert [getattr(outcome, "code", outcome) for outcome in outcomes] == [10, 507, 507, 30, 2017, 2017, 507]
    assert tried == [1, 2, 3, 4]


def test_a_partial_batch_leaves_out_the_columns_that_do_not_fit(engine: Engine) -> None:
    columns = {"x": Column.of(DataType.TEXT, ["a", None]), "y": Column.of(DataType.INT64, [7, 8])}
    known = ColumnBatch("root.a.d1", np.array([2, 3]), columns, None, partial=True)
    new = ColumnBatch("root.a.d9", np.array([2]), {"x": Column.of(DataType.TEXT, ["b"])}, None, partial=True)
    error, points, whole = write(engine, [known, new, replace(known, device="root.a.d2", partial=False)])
    assert isinstance(error, writer.PartlyWritten)
    expected = (
        "2 of 3 points of root.a.d1 were written; left out: root.a.d1.x is DOUBLE: a column of TEXT does not fit; "
        "insert corrected values for these"
    )
    assert (507, 2, expected) == (error.code, error.points, str(error))
    assert (1, 507) == (points, getattr(whole, "code", None))
    assert [[1, 1.0, None], [2, None, 7], [3, None, 8]] == engine.ask("select x, y from root.a.d1")[1]
    assert [[2, "b"]] == engine.ask("select x from root.a.d9")[1]
    assert [[1, 1.0]] == engine.ask("select * from root.a.d2")[1]


def test_a_partial_batch_without_a_column_that_fits_writes_nothing(engine: Engine) -> None:
    wrong = ColumnBatch("root.a.d1", np.array([2]), {"x": Column.of(DataType.TEXT, ["a"])}, None, partial=True)
    error, points = write(engine, [wrong, batch("root.a.d2")])
    assert isinstance(error, writer.PartlyWritten)
    assert (0, 2) == (error.points, points)
    assert [[1, 1.0]] == engine.ask("select x from root.a.d1")[1]


def test_a_partial_batch_names_expired_rows_and_columns_that_do_not_fit(engine: Engine) -> None:
    engine.ask("set ttl to root.a.** 3600000")
    columns = {"x": Column.of(DataType.TEXT, ["a", "b"]), "y": Column.of(DataType.INT64, [7, 8])}
    (error,) = write(engine, [ColumnBatch("root.a.d1", np.array([2, 10**15]), columns, None, partial=True)])
    assert isinstance(error, writer.PartlyWritten)
    assert (507, 1) == (error.code, error.points)
    assert str(error).startswith("1 of 4 points of root.a.d1 were written; left out: 1 of 2 rows, older than the TTL")
