"""If the rows of many devices are written in one call, they have the same outcomes as if written separately."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from engine.embedded_engine import Engine
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from saros_engine.writes import writer
from saros_engine.writes.batches import ColumnBatch, MultiBatch
from saros_engine.writes.joint_writes import CheckedBatch
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.tablet import MultiTablet
from saros_storage.base.types import DataType
from saros_storage.base.write_request import UNNUMBERED, WriteRequest

#: The paths of devices, relative to the database; the statements below prepare some of these devices.
DEVICES = [
    *("`d1`", "d1", "d2", "d3", "wide", "aligned", "texts", "rounded", "renamed", "n1", "n2", "n3", "`4`", "n1.a"),
    *("t.e1", "t.e2", "t.used", "v.d1", "v.d2", "old.d1", "old.d2", "old.d3", "_saros.d", "x y", ""),
]
PREPARED = [
    *(f"create timeseries {{db}}.d{number}.{name} double" for number in (1, 2, 3) for name in "ab"),
    *(f"create timeseries {{db}}.wide.{name} double" for name in "abcd"),
    "create aligned timeseries {db}.aligned(a double, b double)",
    "create timeseries {db}.texts.a text",
    "create timeseries {db}.rounded.a with datatype=double, max_point_number=1",
    "create timeseries {db}.renamed.r(a) double",
    "set device template kind to {db}.t",
    "create timeseries using device template on {db}.t.used",
    "create view {db}.v.d2.a as select a from {db}.d1",
    "set ttl to {db}.old.** 1000",
]
TYPES = [DataType.DOUBLE, DataType.DOUBLE, DataType.INT64, DataType.BOOLEAN, DataType.TEXT]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = Engine(tmp_path_factory.mktemp("rows"))
    made.ask("create device template kind aligned (a double, b int64)")
    yield made
    made.close()


def databases() -> Iterator[tuple[str, str, str]]:
    number = 0
    while True:
        number += 1
        yield f"root.each{number:04}", f"root.rows{number:04}", f"root.many{number:04}"


DATABASES = databases()


@st.composite
def columns_of(draw: st.DrawFn, type_: DataType, rows: int) -> Column:
    one = {DataType.TEXT: st.sampled_from(["x", "y"]), DataType.BOOLEAN: st.booleans()}.get(type_, st.integers(-9, 9))
    missing = st.none() if draw(st.booleans()) else one
    return Column.of(type_, draw(st.lists(one | missing, min_size=rows, max_size=rows)))


@st.composite
def rows_of_many(draw: st.DrawFn) -> MultiBatch:
    devices = draw(st.lists(st.sampled_from(DEVICES), min_size=1, max_size=12, unique=True))
    counts = draw(st.lists(st.integers(1, 3), min_size=len(devices), max_size=len(devices)))
    rows = sum(counts)
    late = draw(st.sampled_from([0, 2**41]))
    times = np.array(draw(st.lists(st.sampled_from([1, 2, 3, late]), min_size=rows, max_size=rows)), np.int64)
    names = draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True))
    columns = {name: draw(columns_of(draw(st.sampled_from(TYPES)), rows)) for name in names}
    tags = [draw(st.sampled_from([{}, {"unit": "K"}, {"unit": "V"}])) for _ in devices] if draw(st.booleans()) else ()
    return MultiBatch(
        devices, counts, times, columns, draw(st.sampled_from([None, False, True])), draw(st.booleans()), tags
    )


def below(rows: MultiBatch, database: str) -> MultiBatch:
    return replace(rows, devices=[f"{database}.{device}" for device in rows.devices])


def each_batch(rows: MultiBatch) -> list[ColumnBatch]:
    return rows.batches(range(len(rows.devices)))


def one_by_one(engine: Engine, rows: MultiBatch) -> list[int | Exception]:
    return [outcome for batch in each_batch(rows) for outcome in as_batches(engine, [batch])]


def as_batches(
    engine: Engine, batches: Sequence[ColumnBatch], request: WriteRequest = UNNUMBERED
) -> list[int | Exception]:
    return engine.engine.insert_batches(batches, session=engine.session, request=request)


def together(engine: Engine, rows: MultiBatch, request: WriteRequest = UNNUMBERED) -> list[int | Exception]:
    return engine.engine.insert_rows(rows, session=engine.session, request=request)


def shown(outcomes: Sequence[object], database: str) -> list[object]:
    """Return the outcomes, with errors as texts, and with the database's name replaced."""
    return [
        (getattr(one, "code", None), str(one).replace(database, "root.db")) if isinstance(one, Exception) else one
        for one in outcomes
    ]


def content(engine: Engine, database: str) -> list[object]:
    """Return the series and points of a database, with the database's name replaced."""
    found: list[object] = []
    for statement in (f"show devices {database}.**", f"show timeseries {database}.**", f"select ** from {database}"):
        header, rows = engine.ask(statement)
        found += [[str(value).replace(database, "root.db") for value in row] for row in (header, *rows)]
    return found


@pytest.mark.slow
@given(st.lists(rows_of_many(), min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_outcomes_series_and_points_are_those_of_writing_each_device(engine: Engine, writes: list[MultiBatch]) -> None:
    each, both, batches = names = next(DATABASES)
    for database in names:
        engine.ask(f"create database {database}")
        for statement in PREPARED:
            engine.ask(statement.format(db=database))
    for number, rows in enumerate(writes):
        expected = shown(one_by_one(engine, below(rows, each)), each)
        request = UNNUMBERED if number % 2 else WriteRequest(1, number + 1)
        assert expected == shown(together(engine, below(rows, both), request), both)
        assert expected == shown(as_batches(engine, each_batch(below(rows, batches)), request), batches)
    assert content(engine, each) == content(engine, both) == content(engine, batches)


def numbers(devices: list[str], **columns: Column) -> MultiBatch:
    """Return a batch with two rows for each device."""
    rows = 2 * len(devices)
    given = columns or {"a": Column(DataType.DOUBLE, np.arange(rows) / 2), "b": Column(DataType.INT64, np.arange(rows))}
    return MultiBatch(devices, [2] * len(devices), np.arange(rows) % 2, given, None)


@pytest.fixture
def written(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[list[object]]:
    """Return a list to which each write that reaches the store is appended.

    A tablet of many devices is recorded as the list of these devices.
    """
    writes: list[list[object]] = []
    write = engine.store.write

    def noting(tablets: list[object], creates: object = (), **named: object) -> None:
        writes.append([list(one.devices) if isinstance(one, MultiTablet) else one.device for one in tablets])
        write(tablets, creates, **named)

    monkeypatch.setattr(engine.store, "write", noting)
    return writes


def test_devices_of_one_kind_are_one_tablet_and_resolved_once(
    engine: Engine, written: list[list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = []
    fit = writer.Writer._fitted

    def counting(self: writer.Writer, batch: CheckedBatch) -> object:
        resolved.append(batch.key[0])
        return fit(self, batch)

    monkeypatch.setattr(writer.Writer, "_fitted", counting)
    devices = [f"root.kinds.d{number}" for number in range(4)]
    assert [4] * 4 == together(engine, numbers(devices))
    assert [4] * 4 == together(engine, numbers(devices))
    assert written == [[devices], [devices]]
    assert resolved == devices[:1] * 2


def test_devices_of_a_template_are_one_tablet(engine: Engine, written: list[list[object]]) -> None:
    engine.ask("create database root.used")
    engine.ask("set device template kind to root.used")
    devices = [f"root.used.d{number}" for number in range(3)]
    assert [4] * 3 == together(engine, numbers(devices))
    assert written == [[devices]]
    using = [row[0] for row in engine.ask("show paths using device template kind")[1]]
    assert devices == [path for path in using if path.startswith("root.used.")]
    assert {"true"} == {row[1] for row in engine.ask("show devices root.used.**")[1]}


def test_small_batches_of_one_shape_are_one_tablet_and_keep_their_tags(
    engine: Engine, written: list[list[object]]
) -> None:
    devices = [f"root.tagged.d{number}" for number in range(5)]
    tags = [{"number": str(number)} for number in range(5)]
    batches = each_batch(replace(numbers(devices), tags=tags))
    other = ColumnBatch("root.tagged.other", np.array([1]), {"c": Column.of(DataType.TEXT, ["x"])}, None)
    assert [4] * 5 + [1] == as_batches(engine, [*batches, other])
    assert [4] * 5 + [1] == as_batches(engine, [*batches, other])
    assert written == [["root.tagged.other", devices]] * 2
    shown = [(row[0], row[6]) for row in engine.ask("show timeseries root.tagged.*.a")[1]]
    assert shown == [(f"{device}.a", f'{{"number":"{number}"}}') for number, device in enumerate(devices)]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_new_devices_beside_a_database_fare_as_each_does_alone(engine: Engine, first: int) -> None:
    """The path of device n2 is a database, so the database above, which the other devices need, cannot be created."""
    found = []
    for write in (one_by_one, together):
        above = next(DATABASES)[0]
        engine.ask(f"create database {above}.n2")
        devices = [f"{above}.n{(first + number) % 3 + 1}" for number in range(3)]
        found.append((shown(write(engine, numbers(devices)), above), content(engine, above)))
    assert found[0] == found[1]
    assert [4] == [one for one in found[0][0] if isinstance(one, int)]


def test_a_device_that_differs_is_written_in_the_same_entry(engine: Engine, written: list[list[object]]) -> None:
    engine.ask("insert into root.differ.d1(time, a, b) values (9, 1, 1)")
    del written[:]
    devices = [f"root.differ.d{number}" for number in range(4)]
    assert [4] * 4 == together(engine, numbers(devices), WriteRequest(1, 99))
    assert written == [["root.differ.d1", ["root.differ.d0", "root.differ.d2", "root.differ.d3"]]]


@pytest.mark.parametrize("below", ["a", "a.deeper"])
def test_a_device_at_the_path_of_a_column_is_created_in_the_order_of_the_request(engine: Engine, below: str) -> None:
    database = next(DATABASES)[0]
    devices = [f"{database}.{device}" for device in ("d1", f"n.{below}", "d2", "n", "d3")]
    others = np.repeat([True, True, True, False, True], 2)  # `n` has a different shape
    rows = numbers(devices, a=Column(DataType.INT64, np.arange(10)), b=Column(DataType.INT64, np.arange(10), others))
    assert [4, 4, 4, 506, 4] == [getattr(one, "code", one) for one in together(engine, rows)]


def test_after_a_refusal_each_device_has_its_own_outcome(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = [f"root.refused.d{number}" for number in range(3)]
    rows = numbers(devices)
    rows.times[3] = 2**63 - 1
    first, second, third = together(engine, rows)
    assert (first, third) == (4, 4)
    assert isinstance(second, UserMistake)
    assert "time 9223372036854775807 of root.refused.d1 is out of range" in str(second)
    assert ["root.refused.d0", "root.refused.d2"] == [row[0] for row in engine.ask("show devices root.refused.**")[1]]


def test_devices_that_a_user_may_not_write_are_refused_and_the_others_are_written(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def authorize(device: str, *_: object) -> None:
        if device.endswith("d1"):
            raise UserMistake("no permission", code=803)

    monkeypatch.setattr(engine.engine, "_authorize_columns", authorize)
    outcomes = together(engine, numbers([f"root.allowed.d{number}" for number in range(3)]))
    assert [4, 803, 4] == [getattr(one, "code", one) for one in outcomes]
    assert 2 == len(engine.ask("show devices root.allowed.**")[1])
