"""Flushes of a MemTable to files: the encodings suit the data, and all points are read back exactly.

If short series are encoded together, the file is the same as if they were encoded one by one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from saros_storage.base.block import Column
from saros_storage.base.types import (
    DEFAULT_ENCODING,
    FLOATING_TYPES,
    NUMPY_DTYPE,
    Compressor,
    DataType,
    Encoding,
    Int64Array,
    NumericArray,
)
from saros_storage.folder.layout import TEMPORARY, FileName
from saros_storage.io.disk import LocalDisk
from saros_storage.partition.flush_files import FileFlush
from saros_storage.partition.memtable import AlignedData, SeriesData
from saros_storage.scan.snapshot import Rank
from saros_storage.tsfile.encoding_selection import EncodingChoices
from saros_storage.tsfile.file_outline import outline
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.structure import statistics as stats
from saros_storage.tsfile.writer import TsFileWriter

DEVICE = "root.plant.pump"
NUMBERS = (DataType.INT32, DataType.INT64, DataType.FLOAT, DataType.DOUBLE, DataType.DATE, DataType.TIMESTAMP)
RNG = np.random.default_rng(11)
DECIMALS = np.round(20 + np.cumsum(RNG.normal(0, 0.05, 400)), 2)
NOISE = RNG.normal(20, 5, 400)


class Content:
    """The content of a MemTable with one device, whose series have the same times."""

    def __init__(self, columns: dict[str, Column]) -> None:
        self.times = np.arange(len(next(iter(columns.values()))), dtype=np.int64) * 10
        self.columns = columns

    def contents(self) -> Iterator[tuple[str, AlignedData | list[SeriesData]]]:
        yield DEVICE, [SeriesData(name, self.times, column) for name, column in self.columns.items()]


class ManyDevices:
    """The content of a MemTable with many devices: the times and values of short series, by device and measurement."""

    def __init__(self, devices: dict[str, dict[str, tuple[Int64Array, Column]]]) -> None:
        self.devices = devices

    @staticmethod
    def drawn(seed: int) -> ManyDevices:
        """Draw devices of different shapes, whose series have the same times or different times."""
        rng = np.random.default_rng(seed)
        devices: dict[str, dict[str, tuple[Int64Array, Column]]] = {}
        for number in range(60):
            rows = int(rng.choice([1, 1, 1, 4, 8]))
            times = rng.integers(0, 9) + np.arange(rows, dtype=np.int64) * int(rng.integers(1, 9))
            series = {}
            for place in range(int(rng.choice([1, 3, 80]))):
                own = times if rng.random() < 0.8 else times + 1
                series[f"s{place:02}"] = own, some_column(rng, rows)
            devices[f"root.plant.pump{number:02}"] = series
        return ManyDevices(devices)

    def contents(self) -> Iterator[tuple[str, AlignedData | list[SeriesData]]]:
        for device, series in self.devices.items():
            yield device, [SeriesData(name, times, column) for name, (times, column) in series.items()]

    def written_one_by_one(self, folder: Path) -> bytes:
        """Return the file with the same chunks in the same order, each encoded separately."""
        file = LocalDisk().create(str(folder / "single"))
        writer = TsFileWriter(file, choose=EncodingChoices().choose)
        for device, series in self.devices.items():
            for name, (times, column) in series.items():
                encoding = DEFAULT_ENCODING[column.type]
                writer.write_series(device, name, column.type, encoding, Compressor.LZ4, times, column.values)
        writer.finish()
        file.close()
        return (folder / "single").read_bytes()


def some_column(rng: np.random.Generator, rows: int) -> Column:
    """Return random values of a numeric type, usually DOUBLE."""
    type_ = DataType.DOUBLE if rng.random() < 0.7 else NUMBERS[int(rng.integers(len(NUMBERS)))]
    values = rng.normal(20, 5, rows) if type_ in FLOATING_TYPES else rng.integers(-1000, 1000, rows)
    return Column(type_, values.astype(NUMPY_DTYPE[type_]))


class Flushes:
    """Consecutive flushes of one region, each of which writes one or two files."""

    def __init__(self, folder: Path, flushed: int | None = None) -> None:
        self.folder = folder
        self.choices = EncodingChoices()
        self.flushed = {} if flushed is None else {DEVICE: flushed}
        self.number = 0
        #: The number of the current flush, appended at each step of a flush.
        self.steps: list[int] = []

    def write(self, columns: dict[str, Column]) -> list[TsFileReader]:
        """Write columns; return the readers of the file with in-order rows and of the file with late rows."""
        return self.write_content(Content(columns))

    def write_content(self, content: Content | ManyDevices) -> list[TsFileReader]:
        return [TsFileReader(name, memoryview(data)) for name, data in self.files_of(content)]

    def files_of(self, content: Content | ManyDevices) -> list[tuple[str, bytes]]:
        """Flush, and return the name and bytes of each file."""
        self.number += 1
        flush = FileFlush(
            LocalDisk(),
            str(self.folder),
            lambda _device, _name, type_: (DEFAULT_ENCODING[type_], Compressor.LZ4),
            self.flushed,
            Rank(0, self.number),
            FileName(self.number, self.number),
            1_000,
            lambda *_: None,
            self.choices,
            lambda: self.steps.append(self.number),
        )
        written = flush.run(content)  # type: ignore[arg-type]
        return [(os.path.basename(w.path), Path(w.path + TEMPORARY).read_bytes()) for w in written]

    def encodings(self, values: NumericArray) -> set[Encoding]:
        """Flush a DOUBLE series, and return the encodings of its chunks."""
        (reader,) = self.write({"x": Column(DataType.DOUBLE, values), "y": Column(DataType.DOUBLE, DECIMALS)})
        return {c.encoding for d in outline(reader) for s in d.series if s.measurement == "x" for c in s.chunks}


def bits_of(reader: TsFileReader, name: str) -> bytes:
    """Return the times and values of a series of the only device, as bytes."""
    index = reader.device(DEVICE)
    assert index is not None
    found = b""
    for chunk in range(len(index.series[name].chunks)):
        pages = reader.pages(index, [name], chunk)
        block, _ = reader.read(index, [name], chunk, 0, len(pages))
        found += block.times.tobytes() + block.columns[0].numbers.tobytes()
    return found


@pytest.fixture
def flushes(tmp_path: Path) -> Flushes:
    return Flushes(tmp_path)


def some_numbers(type_: DataType) -> st.SearchStrategy[NumericArray]:
    """Return a strategy for seven values: decimals, or any values of the type."""
    dtype = NUMPY_DTYPE[type_]
    if type_ is DataType.FLOAT or type_ is DataType.DOUBLE:
        width = 32 if type_ is DataType.FLOAT else 64
        value = st.one_of(st.integers(-(10**6), 10**6).map(lambda n: n / 100), st.floats(width=width))
    else:
        value = st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    return st.lists(value, min_size=7, max_size=7).map(
        lambda values: np.array(values, np.float64 if dtype.kind == "f" else dtype).astype(dtype)
    )


@given(
    st.lists(
        st.sampled_from(NUMBERS).flatmap(lambda t: st.tuples(st.just(t), some_numbers(t), some_numbers(t))), max_size=6
    ),
    st.sampled_from([None, -1, 25, 60]),
)
@settings(max_examples=60, deadline=None)
def test_every_bit_comes_back_from_the_first_flush_and_from_later_ones(
    tmp_path_factory: pytest.TempPathFactory,
    series: list[tuple[DataType, NumericArray, NumericArray]],
    flushed: int | None,
) -> None:
    flushes = Flushes(tmp_path_factory.mktemp("flushes"), flushed)
    columns = [
        ("steady", DataType.DOUBLE, DECIMALS[:7], DECIMALS[:7]),
        *((f"s{n}", *one) for n, one in enumerate(series)),
    ]
    times = np.arange(7, dtype=np.int64) * 10
    late = 0 if flushed is None else int(np.searchsorted(times, flushed, "right"))
    for turn in (2, 3, 3, 2):
        readers = flushes.write({one[0]: Column(one[1], one[turn]) for one in columns})
        parts = [part for part in (slice(late, 7), slice(0, late)) if part.start < part.stop]
        assert len(parts) == len(readers)
        for part, reader in zip(parts, readers, strict=True):
            for name, type_, *values in columns:
                expected = values[turn - 2][part]
                assert times[part].tobytes() + expected.tobytes() == bits_of(reader, name)
                (seen,) = reader.stored(DEVICE)[name]
                assert repr(stats.of_points(type_, times[part], expected)) == repr(seen)


def test_a_series_keeps_its_encoding_and_is_tried_again(flushes: Flushes) -> None:
    wave = np.where(np.arange(400) // 90 % 2 == 0, 0.1, -0.1)
    found = [flushes.encodings(values) for values in (DECIMALS, DECIMALS, *[wave] * 40)]
    assert found[:2] == [{Encoding.TS_2DIFF}] * 2
    assert {Encoding.TS_2DIFF} in found[2:]
    assert found[-1] == {Encoding.GORILLA}


def test_values_that_no_longer_have_few_decimals_get_another_encoding_at_once(flushes: Flushes) -> None:
    found = [flushes.encodings(values) for values in (DECIMALS, NOISE, NOISE, DECIMALS)]
    assert found[:3] == [{Encoding.TS_2DIFF}, {Encoding.GORILLA}, {Encoding.GORILLA}]


def test_series_of_other_times_do_not_get_the_times_of_their_neighbours(flushes: Flushes) -> None:
    class Mixed(Content):
        def contents(self) -> Iterator[tuple[str, AlignedData | list[SeriesData]]]:
            for device, content in super().contents():
                assert isinstance(content, list)
                yield device, [replace(s, times=s.times + n // 2) for n, s in enumerate(content)]

    columns = {f"s{n}": Column(DataType.INT64, np.arange(5) * n) for n in range(6)}
    (reader,) = flushes.write_content(Mixed(columns))
    for n in range(6):
        assert (np.arange(5) * 10 + n // 2).tobytes() + (np.arange(5) * n).tobytes() == bits_of(reader, f"s{n}")


@pytest.mark.parametrize("seed", range(4))
def test_short_series_of_many_devices_give_the_same_file_as_if_each_was_encoded_by_itself(
    flushes: Flushes, tmp_path: Path, seed: int
) -> None:
    content = ManyDevices.drawn(seed)
    ((_, data),) = flushes.files_of(content)
    assert content.written_one_by_one(tmp_path) == data


def test_short_series_of_many_devices_are_written_in_few_steps(flushes: Flushes) -> None:
    times = [np.array([number], np.int64) for number in range(3_000)]
    values = Column(DataType.DOUBLE, np.array([0.5]))
    flushes.write_content(ManyDevices({f"root.plant.pump{n}": {"x": (at, values)} for n, at in enumerate(times)}))
    assert [1] * 3 == flushes.steps


def test_late_rows_of_some_devices_go_to_the_file_of_late_rows(flushes: Flushes) -> None:
    times = np.array([10, 20], np.int64)
    series = {"x": (times, Column(DataType.INT64, np.array([1, 2])))}
    names = [f"root.plant.pump{n}" for n in range(6)]
    flushes.flushed = {names[1]: 5, names[2]: 10, names[3]: 20, names[5]: 90}
    in_order, late = flushes.write_content(ManyDevices(dict.fromkeys(names, series)))
    assert [names[0], names[1], names[2], names[4]] == list(in_order.devices())
    assert [names[2], names[3], names[5]] == list(late.devices())
