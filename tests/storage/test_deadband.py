"""Deadbands: the kernel and its twin in Python keep the same points; a flush drops the others where this is allowed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from storage.test_store import open_store, read

from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import TIME_MAX, Compressor, DataType, Encoding
from saros_storage.kernels.deadband import apply_deadband
from saros_storage.loading.loader import LoadOptions
from saros_storage.scan.reading import ScanRequest
from saros_storage.schema import CreateDatabase, CreateSeries, Deadband, SchemaChange, SeriesSchema
from saros_storage.store import Store

DEVICE = "root.db.d"


def kept(times: npt.NDArray[np.int64], values: npt.NDArray[np.float64], deadband: Deadband) -> list[int]:
    """Return the indexes of the points that a deadband keeps; the kernel, its source and its twin must agree."""
    found = []
    for run in (apply_deadband, apply_deadband.source, apply_deadband.twin):
        mask = np.empty(len(times), np.bool_)
        run(times, values, deadband.deviation, deadband.shortest, deadband.longest, mask)
        found.append(np.flatnonzero(mask).tolist())
    assert found[0] == found[1] == found[2]
    return found[0]


VALUES = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.5, 5.0, -4.0, 100.0])


@given(
    st.lists(st.tuples(st.integers(1, 9), VALUES | st.sampled_from([np.nan, np.inf])), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.5, 2.0]),
    st.sampled_from([(0, TIME_MAX), (5, TIME_MAX), (0, 12), (4, 20)]),
)
def test_kernel_and_twin_keep_the_same(steps, deviation, span) -> None:
    times = np.cumsum([step for step, _ in steps]).astype(np.int64)
    places = kept(times, np.array([value for _, value in steps]), Deadband(deviation, *span))
    assert {0, len(steps) - 1} <= set(places)
    assert {place for place, (_, value) in enumerate(steps) if not np.isfinite(value)} <= set(places) or span[0]


@given(st.lists(st.tuples(st.integers(1, 9), VALUES), min_size=2, max_size=60), st.sampled_from([0.0, 0.5, 2.0]))
def test_lines_through_what_is_kept_pass_near_what_is_not(steps, deviation) -> None:
    times = np.cumsum([step for step, _ in steps]).astype(np.int64)
    values = np.array([value for _, value in steps])
    places = kept(times, values, Deadband(deviation))
    drawn = np.interp(times, times[places], values[places])
    assert np.abs(drawn - values).max() <= 2 * deviation + 1e-9


def test_a_line_needs_its_ends_a_bend_its_corner_and_a_deviation_of_nothing_keeps_all() -> None:
    times = np.arange(10, dtype=np.int64)
    line, bend = times * 2.0, np.abs(times - 4.0)
    assert [0, 9] == kept(times, line, Deadband(0.1))
    assert [0, 4, 9] == kept(times, bend, Deadband(0.1))
    assert list(range(10)) == kept(times, line, Deadband(0.0))


def test_shortest_and_longest_times_bound_what_is_dropped() -> None:
    times = np.arange(0, 100, 10, dtype=np.int64)
    assert [0, 3, 6, 9] == kept(times, times * 0.0, Deadband(1.0, 0, 30))
    jumps = np.array([0.0, 50.0, 0.0, 50.0, 0.0, 50.0, 0.0, 50.0, 0.0, 50.0])
    # The algorithm is swinging-door compression. The door closes at 40, so the previous point, at 30, is kept, and the
    # door opens again there. The point at 50 is too early to count; the point at 60 closes the door again, and so on.
    assert [0, 3, 4, 6, 7, 9] == kept(times, jumps, Deadband(1.0, 20, 1_000))


def series(type_: DataType = DataType.DOUBLE) -> list[SchemaChange]:
    made = SeriesSchema("s", type_, Encoding.PLAIN, Compressor.LZ4, deadband=Deadband(0.5))
    plain = SeriesSchema("p", type_, Encoding.PLAIN, Compressor.LZ4)
    return [CreateDatabase("root.db"), CreateSeries(DEVICE, False, (made, plain))]


def points(store: Store, name: str, type_: DataType = DataType.DOUBLE) -> list[tuple[int, object]]:
    rows = read(store, ScanRequest(DEVICE, (name,), (type_,), False))
    return [(time, value) for time, (value,) in rows]


def write(store: Store, times: list[int], values: list[float], type_: DataType = DataType.DOUBLE) -> None:
    column = Column.of(type_, values)
    store.write([Tablet(DEVICE, ("s", "p"), np.array(times), (column, column), False)])


@pytest.mark.parametrize("type_", [DataType.INT32, DataType.INT64, DataType.FLOAT, DataType.DOUBLE])
def test_a_flush_drops_what_lies_on_a_line_and_nothing_of_other_series(tmp_path: Path, type_: DataType) -> None:
    store = open_store(tmp_path)
    store.change_schema(series(type_))
    values = [0, 1, 2, 3, 4, 3, 2, 1]
    write(store, list(range(8)), values, type_)
    assert list(enumerate(values)) == points(store, "s", type_)
    store.flush()
    assert [(0, 0), (4, 4), (7, 1)] == points(store, "s", type_)
    assert list(enumerate(values)) == points(store, "p", type_)
    store.close()
    store = open_store(tmp_path)
    store.merge(full=True)
    assert [(0, 0), (4, 4), (7, 1)] == points(store, "s", type_)
    store.close()


def test_a_late_row_that_replaces_another_is_never_dropped(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.change_schema(series())
    write(store, [0, 1, 2, 3, 4], [0.0, 9.0, 0.0, 9.0, 0.0])
    store.flush()
    write(store, [0, 1, 2, 3, 4, 5, 6, 7], [0.0] * 8)
    store.flush()
    assert [(t, 0.0) for t in (0, 1, 2, 3, 4, 5, 7)] == points(store, "s")
    store.close()


def test_where_a_loaded_file_reaches_further_than_what_was_flushed_nothing_is_dropped(tmp_path: Path) -> None:
    other = open_store(tmp_path / "other")
    other.change_schema(series())
    write(other, [0, 1, 2, 3, 4], [9.0, 0.0, 9.0, 0.0, 9.0])
    other.flush()
    (file,) = (tmp_path / "other").rglob("*.tsfile")
    store = open_store(tmp_path / "store")
    store.change_schema(series())
    write(store, [0], [0.0])
    store.flush()
    store.load(str(file), LoadOptions())
    write(store, [0, 1, 2, 3, 4], [0.0] * 5)
    store.flush()
    assert [(t, 0.0) for t in range(5)] == points(store, "s")
    store.close()
    other.close()


def test_rows_of_aligned_devices_and_texts_have_no_deadband(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.change_schema([CreateDatabase("root.db")])
    for type_, aligned, why in (
        (DataType.DOUBLE, True, "does not support deadbands"),
        (DataType.TEXT, False, "only numbers"),
    ):
        made = SeriesSchema("s", type_, Encoding.PLAIN, Compressor.LZ4, deadband=Deadband(0.5))
        with pytest.raises(UserMistake, match=why):
            store.change_schema([CreateSeries(DEVICE, aligned, (made,))])
    store.close()
