"""Verification of TsFiles: sound files of any writer pass, and each defect is reported with its place."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from storage.test_store import ALIGNED_DEVICE, OPTIONS, PLAIN_DEVICE, creates, open_store, tablet
from storage.test_tsfile_fuzz import MemoryFile, valid_file

from saros_storage.base.block import Column
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.folder.node_file import FOLDER_FORMAT
from saros_storage.folder_check import FolderResult, check_folder
from saros_storage.io.disk import LocalDisk
from saros_storage.tsfile.file_outline import outline
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.verifier import check_tsfile
from saros_storage.tsfile.writer import AlignedColumn, TsFileWriter

DISK = LocalDisk()


def one_series(values: list[float], *, page_rows: int = 10) -> bytearray:
    """Return a file with one DOUBLE series, uncompressed and PLAIN."""
    file = MemoryFile()
    writer = TsFileWriter(file, page_rows=page_rows)
    times = np.arange(len(values), dtype=np.int64)
    writer.write_series(
        "root.a.d", "s", DataType.DOUBLE, Encoding.PLAIN, Compressor.UNCOMPRESSED, times, np.array(values)
    )
    writer.finish()
    return bytearray(file.content)


def test_a_sound_file_has_no_problem_and_all_is_counted() -> None:
    data = valid_file()
    result = check_tsfile("f", memoryview(data))
    assert [] == result.problems
    reader = TsFileReader("f", memoryview(data))
    surveyed = list(outline(reader))
    chunks = [chunk for device in surveyed for series in device.series for chunk in series.chunks]
    assert (len(surveyed), len(chunks)) == (result.devices, result.chunks)
    assert sum(len(chunk.pages) for chunk in chunks) == result.pages
    counts = [s.statistics.count for d in surveyed for s in d.series if s.type is not None and s.statistics]
    assert sum(counts) == result.points


def test_values_that_no_statistics_know_are_found() -> None:
    data = one_series([1.5, 2.5, 3.5])
    place = data.index(np.array(2.5, ">f8").tobytes())
    data[place : place + 8] = np.array(99.0, ">f8").tobytes()
    (problem,) = check_tsfile("f", memoryview(bytes(data))).problems
    assert "root.a.d.s" in str(problem)
    assert "maximum 3.5 in its statistics, but 99.0 in its points" in str(problem)


def test_a_value_that_changes_the_sum_only_is_found() -> None:
    data = one_series([float(n) for n in range(25)])
    place = data.index(np.array(15.0, ">f8").tobytes())
    data[place : place + 8] = np.array(16.0, ">f8").tobytes()
    (problem,) = check_tsfile("f", memoryview(bytes(data))).problems
    assert "total 145.0 in its statistics, but 146.0 in its points" in str(problem)


def test_nan_and_infinities_are_no_problem() -> None:
    data = one_series([float("nan"), 1.0, float("inf"), -float("inf"), 1e308, 1e308, -0.0])
    assert [] == check_tsfile("f", memoryview(bytes(data))).problems


def test_one_bad_series_does_not_hide_the_others() -> None:
    file = MemoryFile()
    writer = TsFileWriter(file)
    times = np.arange(3, dtype=np.int64)
    columns = [
        AlignedColumn(n, DataType.INT64, Encoding.PLAIN, Compressor.UNCOMPRESSED, Column(DataType.INT64, times + base))
        for n, base in (("a", 1_000), ("b", 2_000), ("c", 3_000))
    ]
    writer.write_aligned("root.a.d", times, columns)
    writer.finish()
    data = bytearray(file.content)
    for value in (1_001, 3_001):
        place = data.index(np.array(value, ">i8").tobytes())
        data[place + 7] ^= 0x40
    result = check_tsfile("f", memoryview(bytes(data)))
    assert ["root.a.d.a", "root.a.d.c"] == [
        next(n for n in ("root.a.d.a", "root.a.d.b", "root.a.d.c") if n in str(p)) for p in result.problems
    ]


def test_a_file_that_is_none_is_told_so() -> None:
    for data in (b"", b"nothing of the kind", valid_file()[:-3], b"TsFile\x09" + valid_file()[7:]):
        assert 1 == len(check_tsfile("f", memoryview(data)).problems)


@pytest.mark.slow
def test_most_single_flips_are_found() -> None:
    """Files have no checksum, so some flips are missed: those of padding bits, and of values without statistics."""
    data, source = valid_file(), random.Random(7)
    found = 0
    for _ in range(60):
        flipped = bytearray(data)
        flipped[source.randrange(len(data))] ^= 1 << source.randrange(8)
        found += bool(check_tsfile("f", memoryview(bytes(flipped))).problems)
    assert found > 40


# --- folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = open_store(tmp_path / "data", replace(OPTIONS, compaction=False))
    store.change_schema(creates())
    for start in (0, 250, 20):
        times = list(range(start, start + 30))
        store.write([tablet(PLAIN_DEVICE, times, i=times), tablet(ALIGNED_DEVICE, times, d=[0.5] * 30, t=["x"] * 30)])
        store.flush()
    store.write([tablet(PLAIN_DEVICE, [900], i=[1])])
    store.close()
    return tmp_path / "data"


def check(folder: Path) -> FolderResult:
    return check_folder(str(folder), DISK, lambda _: None)


def files(folder: Path, name: str) -> list[Path]:
    return sorted(folder.rglob(name))


def test_a_sound_folder_has_no_problem(folder: Path) -> None:
    result = check(folder)
    assert [] == result.problems
    assert (2, len(files(folder, "*.tsfile")), 270) == (result.partitions, result.files, result.points)
    assert result.log_records in (5, 6, 7)  # five entries, and a clock mark for each second that has passed


def test_a_flipped_byte_is_a_problem_of_its_file(folder: Path) -> None:
    for path in [*files(folder, "*.tsfile"), *files(folder, "*.resource"), *files(folder, "MANIFEST")]:
        whole = path.read_bytes()
        path.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
        problems = check(folder).problems
        assert problems
        assert all(str(path) in str(problem) for problem in problems)
        path.write_bytes(whole)
    assert [] == check(folder).problems


def test_missing_files_and_damaged_logs_are_problems(folder: Path) -> None:
    (log,) = files(folder / "log", "*.log")
    whole = log.read_bytes()
    log.write_bytes(whole[:30] + bytes([whole[30] ^ 1]) + whole[31:])
    gone = files(folder, "*.tsfile")[0]
    gone.unlink()
    (folder / "node.json").write_text("{}")
    told = [str(problem) for problem in check(folder).problems]
    assert 3 == len(told)
    assert any(str(log) in text for text in told)
    assert any(str(gone) in text and "missing" in text for text in told)
    assert any("node.json" in text for text in told)


def test_a_folder_of_a_newer_format_is_a_problem(folder: Path) -> None:
    """This version cannot open such a folder, so verification reports it as a problem."""
    node = folder / "node.json"
    node.write_text(node.read_text().replace(f'"format": {FOLDER_FORMAT}', '"format": 99'))
    (problem,) = check(folder).problems
    assert (2015, True) == (problem.code, "has format 99; this Saros reads up to 2" in str(problem))


def test_what_is_no_data_folder_is_said_to_be_none(tmp_path: Path) -> None:
    (problem,) = check(tmp_path).problems
    assert "not a data folder" in str(problem)
