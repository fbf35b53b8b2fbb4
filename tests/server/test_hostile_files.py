"""Imports of small files that contain or declare far more data: each file is refused and takes little memory."""

from __future__ import annotations

import gzip
import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from server.hostile_parquet import (
    DELTA_BYTE_ARRAY,
    PLAIN,
    UNCOMPRESSED,
    ZSTD,
    data_page,
    file_of,
    footers,
    parquet,
    varint,
)

from saros_server.sources import json_lines, opened_file
from saros_server.sources.input_files import read_source
from saros_server.sources.parquet_worker.process import ParquetRefused, ParquetWorker
from saros_server.sources.source_options import SourceError, SourceOptions

MIB = 1 << 20
#: The memory limit of the process that reads Parquet files. The process uses a third of this memory when it starts.
WORKER_BYTES = 320 * MIB
#: The maximum number of bytes by which the memory of this process may grow.
GROWTH_BYTES = 200 * MIB


def rows_of(file: Path, **options: object) -> int:
    worker = partial(ParquetWorker, WORKER_BYTES)
    return sum(batch.times_count for batch in read_source(file, None, SourceOptions(**options), worker=worker))  # type: ignore[arg-type]


@contextmanager
def little_memory() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_BYTES >> 10


def refused(file: Path) -> str:
    with little_memory(), pytest.raises(SourceError) as error:
        rows_of(file)
    return str(error.value)


def compressed_zeros(size: int) -> bytes:
    """Return a Zstandard frame whose blocks each consist of one repeated byte."""
    block = 128 << 10
    head = bytes.fromhex("28b52ffd") + bytes([0x80, 0x70]) + size.to_bytes(4, "little")
    blocks, left = [], size
    while left:
        part = min(left, block)
        left -= part
        blocks.append((part << 3 | 1 << 1 | (not left)).to_bytes(3, "little") + b"\0")
    return head + b"".join(blocks)


@pytest.mark.slow
def test_a_page_of_2_gb_in_a_few_kilobytes_is_refused(tmp_path: Path) -> None:
    zeros = compressed_zeros(2**31 - 1)
    file = tmp_path / "page.parquet"
    file.write_bytes(parquet(data_page(zeros, 2**31 - 1, 10_000, PLAIN), 10_000, PLAIN, ZSTD))
    assert file.stat().st_size < MIB // 4 < 2**31
    assert f"needs more than {WORKER_BYTES >> 20} MiB of memory to be read" in refused(file)
    assert 4_096 == len(pa.decompress(compressed_zeros(4_096), 4_096, codec="zstd"))  # the frame is valid


def test_a_page_that_declares_two_billion_prefixes_is_refused(tmp_path: Path) -> None:
    values = 2**31 - 1
    lengths = varint(128) + varint(4) + varint(values) + varint(0)  # deltas of no bits
    page = data_page(lengths + lengths, 2 * len(lengths), values, DELTA_BYTE_ARRAY)
    (tmp_path / "x.parquet").write_bytes(parquet(page, values, DELTA_BYTE_ARRAY, UNCOMPRESSED))
    refused(tmp_path / "x.parquet")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(footers()))
def test_a_footer_that_declares_huge_sizes_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.parquet").write_bytes(file_of(footers()[name]))
    refused(tmp_path / "x.parquet")


@pytest.mark.slow
@pytest.mark.parametrize("store_schema", [False, True], ids=["texts", "categories"])
def test_a_long_text_repeated_over_many_rows_is_refused(tmp_path: Path, *, store_schema: bool) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 50_000, pa.int32()), pa.array(["x" * MIB]))
    table = pa.table({"time": pa.array(range(50_000), pa.timestamp("ms")), "s": words})
    pq.write_table(table, tmp_path / "x.parquet", store_schema=store_schema, compression="zstd")
    assert (tmp_path / "x.parquet").stat().st_size < 2 * MIB
    assert "memory" in refused(tmp_path / "x.parquet")


@pytest.mark.slow
def test_texts_that_fit_are_read_in_pieces(tmp_path: Path) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), pa.array(["x" * (MIB // 8)]))
    table = pa.table({"time": pa.array(range(1_000), pa.timestamp("ms")), "s": words})
    pq.write_table(table, tmp_path / "x.parquet")
    with ParquetWorker() as worker:
        assert ["time", "s"] == worker.head(tmp_path / "x.parquet", "x").schema.names
        batches = list(worker.batches(["time", "s"], 1_000, "x"))
    assert 1_000 == sum(batch.num_rows for batch in batches)
    assert max(batch.nbytes for batch in batches) <= 64 * MIB


@pytest.mark.slow
def test_a_wide_file_is_read_in_batches_of_fewer_rows(tmp_path: Path) -> None:
    wide = {f"c{place}": pa.array([0.5] * 20_000) for place in range(1_000)}
    pq.write_table(pa.table({"time": pa.array(range(20_000), pa.timestamp("ms")), **wide}), tmp_path / "x.parquet")
    batches = [batch.times_count for batch in read_source(tmp_path / "x.parquet", None, SourceOptions())]
    assert (20_000, 4_190) == (sum(batches), batches[0])


def test_a_worker_reads_another_file_after_a_refused_one(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(file_of(footers()["groups"]))
    pq.write_table(pa.table({"time": pa.array([1], pa.timestamp("ms")), "x": [0.5]}), tmp_path / "good.parquet")
    with ParquetWorker(WORKER_BYTES) as worker:
        with pytest.raises(ParquetRefused):
            worker.head(tmp_path / "bad.parquet", "bad.parquet")
        assert 1 == worker.head(tmp_path / "good.parquet", "good.parquet").rows


@pytest.mark.parametrize("begin", ["", "time,x\n", '{"time": 1, "x": "', "#datatype,"])
def test_a_line_without_an_end_is_refused(tmp_path: Path, begin: str) -> None:
    with pa.CompressedOutputStream(str(tmp_path / "x.zst"), "zstd") as stream:
        stream.write(begin.encode())
        for _ in range(512):
            stream.write(b"0" * MIB)
    said = refused(tmp_path / "x.zst")
    assert "more than 4194304 characters" in said or "straddling" in said or "block" in said


@pytest.mark.slow
def test_a_header_whose_quotes_go_on_is_refused(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.csv", "wt") as stream:
        stream.write('"\n",' * (4 * MIB))
    assert "the header has more than" in refused(tmp_path / "x.csv")


def test_a_file_of_too_many_columns_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_file, "COLUMNS_MAX", 100)
    (tmp_path / "x.csv").write_text("time," + ",".join(f"c{place}" for place in range(101)) + "\n")
    (tmp_path / "x.json").write_text(
        "".join(json.dumps({"time": place, f"c{place}": 1}) + "\n" for place in range(101))
    )
    for name in ("x.csv", "x.json"):
        assert "has more than 100 columns" in refused(tmp_path / name)


def test_objects_with_a_member_of_their_own_each_are_read_in_small_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "_CELLS_MAX", 10_000)
    (tmp_path / "x.json").write_text(
        "".join(json.dumps({"time": row, f"c{row % 99}": row}) + "\n" for row in range(500))
    )
    batches = [batch.times_count for batch in read_source(tmp_path / "x.json", None, SourceOptions())]
    assert [100] * 5 == batches


@pytest.mark.slow
def test_long_lines_are_read_in_batches_of_few(tmp_path: Path) -> None:
    line = json.dumps({"time": 1, "s": "x" * MIB}) + "\n"
    (tmp_path / "x.json").write_text(line * 20)
    batches = [batch.times_count for batch in read_source(tmp_path / "x.json", None, SourceOptions())]
    assert [7, 7, 6] == batches


def test_an_object_that_is_nested_without_end_is_a_bad_row(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"time": 1, "x": 2}\n{"time": 2, "x": ' + "[" * 100_000 + "\n")
    (batch,) = read_source(tmp_path / "x.json", None, SourceOptions())
    assert [(2, "is not a JSON object")] == [(row.number, row.reason) for row in batch.bad]


@pytest.mark.parametrize("lines", ["#datatype,long\n,_time\n", "#datatype,long\n"])
def test_a_file_of_tables_without_end_is_refused(tmp_path: Path, lines: str) -> None:
    text = lines.replace("long", "long," * 5_000) if lines.count("\n") == 1 else lines
    with gzip.open(tmp_path / "x.csv", "wt") as stream:
        stream.write(text * 20_000 if len(text) < 100 else text * 300)
    assert "has more than 10000 tables or 1048576 columns in them" in refused(tmp_path / "x.csv")


def test_lines_are_numbered_after_many_blank_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader forgets the blank lines of a batch once the batch has been read."""
    monkeypatch.setattr("saros_server.sources.csv_files._BLOCK_BYTES", 1_000)
    text = "time,v\n" + ("1,1\n  \n1,1\n1,1,1\n\nnoon,1\n" * 500)
    (tmp_path / "x.csv").write_text(text)
    batches = list(read_source(tmp_path / "x.csv", None, SourceOptions(time_format="epoch", batch_rows=7)))
    expected = [number for number, line in enumerate(text.splitlines(), 1) if line in ("noon,1", "1,1,1")]
    assert (expected, 1_000) == (sorted(r.number for b in batches for r in b.bad), sum(b.times_count for b in batches))
