"""A MemTable becomes files: series come back alike whether or not they are encoded together, in good encodings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_storage.base.block import Column
from saros_storage.base.types import DEFAULT_ENCODING, NUMPY_DTYPE, Compressor, DataType, Encoding, NumericArray
from saros_storage.folder.layout import TEMPORARY, FileName
from saros_storage.io.disk import LocalDisk
from saros_storage.partition.flush_files import FileFlush
from saros_storage.partition.memtable import AlignedData, SeriesData
from saros_storage.scan.snapshot import Rank
from saros_storage.tsfile.encoding_selection import EncodingChoices
from saros_storage.tsfile.file_outline import outline
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.structure import statistics as stats

DEVICE = "root.plant.pump"
NUMBERS = (DataType.INT32, DataType.INT64, DataType.FLOAT, DataType.DOUBLE, DataType.DATE, DataType.TIMESTAMP)
RNG = np.random.default_rng(11)
DECIMALS = np.round(20 + np.cumsum(RNG.normal(0, 0.05, 400)), 2)
NOISE = RNG.normal(20, 5, 400)


class Content:
    """What a MemTable holds of one device whose series have the same times."""

    def __init__(self, columns: dict[str, Column]) -> None:
        self.times = np.arange(len(next(iter(columns.values()))), dtype=np.int64) * 10
        self.columns = columns

    def contents(self) -> Iterator[tuple[str, AlignedData | list[SeriesData]]]:
        yield DEVICE, [SeriesData(name, self.times, column) for name, column in self.columns.items()]


class Flushes:
    """Flushes of one region, one file (or two) after the other."""

    def __init__(self, folder: Path, flushed: int | None = None) -> None:
        self.folder = folder
        self.choices = EncodingChoices()
        self.flushed = {} if flushed is None else {DEVICE: flushed}
        self.number = 0

    def write(self, columns: dict[str, Column]) -> list[TsFileReader]:
        """The readers of the files: in-order rows, then late ones."""
        return self.write_content(Content(columns))

    def write_content(self, content: Content) -> list[TsFileReader]:
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
            lambda: None,
        )
        written = flush.run(content)  # type: ignore[arg-type]
        return [
            TsFileReader(os.path.basename(w.path), memoryview(Path(w.path + TEMPORARY).read_bytes())) for w in written
        ]

    def encodings(self, values: NumericArray) -> set[Encoding]:
        """Those of the chunks of a DOUBLE series in the next file."""
        (reader,) = self.write({"x": Column(DataType.DOUBLE, values), "y": Column(DataType.DOUBLE, DECIMALS)})
        return {c.encoding for d in outline(reader) for s in d.series if s.measurement == "x" for c in s.chunks}


def bits_of(reader: TsFileReader, name: str) -> bytes:
    """Times and values of a series of the only device, as bits."""
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
    """Seven values: decimals, or what the type has besides."""
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
