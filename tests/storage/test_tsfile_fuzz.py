"""Damaged files: after any bit flip or truncation, a read returns values or a typed error in bounded time and memory.

TsFile has no checksums, so a flip may change values unnoticed. The tests assert that it has no worse effect.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_storage.base.block import Column
from saros_storage.base.errors import CorruptFile, UnsupportedFile
from saros_storage.base.types import Compressor, DataType, Encoding, Scalar
from saros_storage.encoding import encodings_for
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.writer import AlignedColumn, TsFileWriter

ROWS = 40
#: A limit far below the memory that damaged headers could ask for: 16 M rows of 8 bytes per page, and 256 MiB of text.
MEMORY_BYTES_MAX = 2 << 30
SECONDS_MAX = 20.0

SAMPLES: dict[DataType, list[Scalar]] = {
    DataType.BOOLEAN: [True, False],
    DataType.INT32: [1, -5, 70_000],
    DataType.INT64: [1, -5, 2**40],
    DataType.FLOAT: [1.5, 2.5, -3.0],
    DataType.DOUBLE: [1.25, 7.0, -3.5],
    DataType.TEXT: ["a", "text", "ü"],
    DataType.TIMESTAMP: [5, 6, 9],
    DataType.DATE: [20240229, 20240301],
    DataType.BLOB: [b"\0", b"blob"],
    DataType.STRING: ["x", "yz"],
}


class MemoryFile:
    def __init__(self) -> None:
        self.content = b""
        self.size = 0

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        self.content += b"".join(parts)

    def sync(self) -> None: ...

    def close(self) -> None: ...


def valid_file() -> bytes:
    """Return a file with all types and encodings. It has aligned and plain devices, several pages and chunks, nulls."""
    file = MemoryFile()
    writer = TsFileWriter(file, page_rows=15)
    times = np.arange(ROWS, dtype=np.int64) * 1000
    compressors = [Compressor.UNCOMPRESSED, Compressor.LZ4, Compressor.SNAPPY, Compressor.ZSTD, Compressor.GZIP]
    aligned: list[AlignedColumn] = []
    for number, (type_, encoding) in enumerate((t, e) for t in DataType for e in sorted(encodings_for(t))):
        values = (SAMPLES[type_] * ROWS)[:ROWS]
        name, compressor = f"s{number}", compressors[number % len(compressors)]
        writer.write_series("root.sg.d1", name, type_, encoding, compressor, times, Column.of(type_, values).values)
        sparse = [v if i % 5 else None for i, v in enumerate(values)]
        aligned.append(AlignedColumn(name, type_, encoding, compressor, Column.of(type_, sparse)))
    writer.write_aligned("root.sg.d2", times, aligned)
    writer.write_aligned("root.sg.d2", times + 10**6, aligned[:3])
    late = Column.of(DataType.INT32, [None] * 39 + [1])
    writer.write_aligned(
        "root.sg.d2",
        times + 10**7,
        [AlignedColumn("late", DataType.INT32, Encoding.PLAIN, Compressor.LZ4, late)],
    )
    writer.finish()
    return file.content


VALID = valid_file()


def read_all(raw: bytes) -> int:
    """Read everything; return the number of series that could be read."""
    reader = TsFileReader("fuzzed.tsfile", memoryview(raw))
    good = 0
    for device in reader.devices():
        index = reader.device(device)
        if index is None:
            continue
        for name, series in index.series.items():
            for chunk in range(len(series.chunks)):
                good += _read_chunk(reader, device, name, chunk)
    return good


def _read_chunk(reader: TsFileReader, device: str, name: str, chunk: int) -> int:
    index = reader.device(device)
    assert index is not None
    try:
        pages = reader.pages(index, [name], chunk)
        block, _ = reader.read(index, [name], chunk, 0, len(pages))
    except (CorruptFile, UnsupportedFile):
        return 0
    assert len(block.columns[0]) == block.rows == sum(p.count for p in pages)
    return 1


def survives(raw: bytes) -> None:
    try:
        read_all(raw)
    except (CorruptFile, UnsupportedFile):
        return


def test_the_valid_file_is_read_whole() -> None:
    series = len([e for t in DataType for e in encodings_for(t)])
    assert read_all(VALID) == series + 3 * (series + 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_flips_are_survived(seed: int) -> None:
    chance = random.Random(seed)
    started = time.thread_time()
    for _ in range(30):
        raw = bytearray(VALID)
        for _ in range(chance.choice((1, 1, 1, 4))):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        survives(bytes(raw))
    assert time.thread_time() - started < SECONDS_MAX


@settings(max_examples=50)
@given(st.integers(0, len(VALID)))
def test_cuts_are_refused(size: int) -> None:
    if size < len(VALID):
        with pytest.raises((CorruptFile, UnsupportedFile)):
            read_all(VALID[:size])


@settings(max_examples=50)
@given(st.integers(0, len(VALID) - 1), st.integers(1, 64))
def test_missing_bytes_are_survived(start: int, size: int) -> None:
    survives(VALID[:start] + VALID[start + size :])


@pytest.mark.slow
def test_flips_in_the_index_do_not_allocate_much() -> None:
    chance = random.Random(7)
    tracemalloc.start()
    try:
        for _ in range(10):
            raw = bytearray(VALID)
            place = len(raw) - chance.randrange(1, len(raw) // 3)
            raw[place] ^= 1 << chance.randrange(8)
            survives(bytes(raw))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MEMORY_BYTES_MAX
