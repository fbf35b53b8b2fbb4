"""Writing and reading TsFiles: round trips, and the refusal of inconsistent files."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from saros_storage.base.block import Column, TextArray
from saros_storage.base.errors import CorruptFile, UnsupportedFile
from saros_storage.base.types import NUMPY_DTYPE, Compressor, DataType, Encoding, Scalar
from saros_storage.encoding import encode, encode_times, encodings_for
from saros_storage.encoding.compression import compress
from saros_storage.scan.snapshot import DeviceSpan
from saros_storage.scan.tsfile_access import ChunkMeta
from saros_storage.tsfile.file_outline import outline
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.structure.format import uvar, vstr
from saros_storage.tsfile.writer import PAGE_TEXT_BYTES_MAX, AlignedColumn, TsFileSummary, TsFileWriter

PLAIN, LZ4 = Encoding.PLAIN, Compressor.LZ4


class MemoryFile:
    """A `File` that keeps its bytes in memory."""

    def __init__(self) -> None:
        self.content = bytearray()

    @property
    def size(self) -> int:
        return len(self.content)

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        for part in parts:
            self.content += part

    def sync(self) -> None:
        raise AssertionError("the writer does not sync")

    def close(self) -> None:
        raise AssertionError("the writer does not close")


class Sheet:
    """A file being written in memory."""

    def __init__(self, page_rows: int = 10) -> None:
        self.file = MemoryFile()
        self.writer = TsFileWriter(self.file, page_rows=page_rows)

    def series(self, device: str, name: str, type_: DataType, start: int, values: list[Scalar], **how: object) -> Sheet:
        times = np.arange(start, start + len(values), dtype=np.int64)
        data = Column.of(type_, values).values
        encoding, compressor = how.get("encoding", PLAIN), how.get("compressor", LZ4)
        self.writer.write_series(device, name, type_, encoding, compressor, times, data)  # type: ignore[arg-type]
        return self

    def aligned(self, device: str, start: int, **columns: tuple[DataType, list[Scalar]]) -> Sheet:
        rows = max(len(values) for _, values in columns.values())
        times = np.arange(start, start + rows, dtype=np.int64)
        made = [AlignedColumn(n, t, PLAIN, LZ4, Column.of(t, v)) for n, (t, v) in columns.items()]
        self.writer.write_aligned(device, times, made)
        return self

    def finish(self) -> TsFileSummary:
        return self.writer.finish()

    def reader(self) -> TsFileReader:
        self.finish()
        return TsFileReader("memory.tsfile", memoryview(bytes(self.file.content)))


def rows_of(reader: TsFileReader, device: str, measurement: str) -> list[tuple[int, Scalar]]:
    """Return all points of a series, without nulls."""
    index = reader.device(device)
    assert index is not None
    found: list[tuple[int, Scalar]] = []
    for chunk in range(len(index.series[measurement].chunks)):
        pages = reader.pages(index, [measurement], chunk)
        block, _ = reader.read(index, [measurement], chunk, 0, len(pages))
        found += [
            (t, v) for t, v in zip(block.times.tolist(), block.columns[0].to_list(), strict=True) if v is not None
        ]
    return found


SAMPLES: dict[DataType, list[Scalar]] = {
    DataType.BOOLEAN: [True, False, False],
    DataType.INT32: [0, -(2**31), 2**31 - 1],
    DataType.INT64: [0, -(2**63), 2**63 - 1],
    DataType.FLOAT: [0.5, -1.25, float("inf")],
    DataType.DOUBLE: [0.1, -1e300, float("-inf")],
    DataType.TEXT: ["", "text", "Wörter 温度"],
    DataType.TIMESTAMP: [0, 1, 2**62],
    DataType.DATE: [20240229, 19700101, 99991231],
    DataType.BLOB: [b"", b"\0\xff", b"blob"],
    DataType.STRING: ["b", "a", "c"],
}
ALL = [(t, e) for t in DataType for e in sorted(encodings_for(t))]


@pytest.mark.parametrize(("type_", "encoding"), ALL, ids=lambda v: v.name)
@pytest.mark.parametrize("count", [1, 7, 25])
def test_a_series_of_every_type_and_encoding_comes_back(type_: DataType, encoding: Encoding, count: int) -> None:
    values = (SAMPLES[type_] * 9)[:count]
    reader = Sheet().series("root.sg.d1", "s1", type_, 100, values, encoding=encoding).reader()
    assert rows_of(reader, "root.sg.d1", "s1") == list(enumerate(values, 100))


@pytest.mark.parametrize("compressor", list(Compressor))
def test_every_compressor_comes_back(compressor: Compressor) -> None:
    values: list[Scalar] = [i * 0.5 for i in range(25)]
    reader = Sheet().series("root.sg.d1", "s1", DataType.DOUBLE, 0, values, compressor=compressor).reader()
    assert rows_of(reader, "root.sg.d1", "s1") == list(enumerate(values))


@pytest.mark.parametrize("type_", list(DataType))
def test_aligned_columns_with_nulls_come_back(type_: DataType) -> None:
    dense = (SAMPLES[type_] * 9)[:25]
    sparse = [v if i % 3 else None for i, v in enumerate(dense)]
    late = [None] * 20 + dense[:5]
    reader = (
        Sheet().aligned("root.sg.d1", 0, a=(type_, dense), b=(type_, sparse), c=(type_, late), d=(type_, [None] * 25))
    ).reader()
    index = reader.device("root.sg.d1")
    assert index is not None
    assert index.aligned
    block, size = reader.read(index, ["b", "a", "d", "c"], 0, 0, 3)
    assert block.times.tolist() == list(range(25))
    assert [c.to_list() for c in block.columns] == [sparse, dense, [None] * 25, late]
    assert size > 0
    assert index.series["d"].statistics is None


def chunks_of(reader: TsFileReader, measurement: str) -> list[tuple[Encoding, int]]:
    """Return (encoding, size) of each chunk of a series of the file's only device."""
    (device,) = outline(reader)
    (series,) = (series for series in device.series if series.measurement == measurement)
    return [(chunk.encoding, chunk.stored) for chunk in series.chunks]


RNG = np.random.default_rng(7)
#: Values of sensors, the expected encoding, and the maximum size as a fraction of the size with GORILLA.
SENSORS = {
    "three decimals": (np.round(20 + np.cumsum(RNG.normal(0, 0.05, 10_000)), 3), Encoding.TS_2DIFF, 0.25),
    "some that come again": (RNG.choice(RNG.normal(20, 5, 50), 10_000), Encoding.PLAIN, 0.7),
    "every digit": (RNG.normal(20, 5, 10_000), Encoding.GORILLA, 1.0),
    "decimals but for the last one": (np.append(np.round(RNG.normal(20, 5, 9_999), 2), 1 / 3), Encoding.PLAIN, 0.7),
    "a square wave": (np.where(np.arange(10_000) // 900 % 2 == 0, 0.1, -0.1), Encoding.GORILLA, 1.0),
    "zeros": (np.zeros(10_000), Encoding.GORILLA, 1.0),
}


@pytest.mark.parametrize("sensor", SENSORS)
@pytest.mark.parametrize("aligned", [False, True])
def test_numbers_get_the_encoding_that_is_smallest(sensor: str, aligned: bool) -> None:
    values, expected, share = SENSORS[sensor]
    gorilla = len(compress(LZ4, encode(Encoding.GORILLA, DataType.DOUBLE, values)))
    sheet, times = Sheet(page_rows=10_000), np.arange(10_000, dtype=np.int64)
    if aligned:
        column = Column(DataType.DOUBLE, values)
        sheet.writer.write_aligned("root.d", times, [AlignedColumn("s", column.type, Encoding.GORILLA, LZ4, column)])
    else:
        sheet.writer.write_series("root.d", "s", DataType.DOUBLE, Encoding.GORILLA, LZ4, times, values)
    reader = sheet.reader()
    ((encoding, size),) = chunks_of(reader, "s")
    assert expected is encoding
    assert size <= gorilla * share + 1_600  # the times or the bitmap take up to 1,600 bytes
    assert list(zip(times.tolist(), values.tolist(), strict=True)) == rows_of(reader, "root.d", "s")


def test_a_column_that_begins_with_nulls_is_judged_by_its_values() -> None:
    decimals, _, _ = SENSORS["three decimals"]
    times = np.arange(20_000, dtype=np.int64)
    column = Column(DataType.DOUBLE, np.concatenate((np.zeros(10_000), decimals)), times >= 10_000)
    sheet = Sheet(page_rows=10_000)
    sheet.writer.write_aligned("root.d", times, [AlignedColumn("s", column.type, Encoding.GORILLA, LZ4, column)])
    assert Encoding.TS_2DIFF is chunks_of(sheet.reader(), "s")[0][0]


def test_a_declared_encoding_other_than_gorilla_is_kept() -> None:
    decimals, _, _ = SENSORS["three decimals"]
    sheet = Sheet(page_rows=10_000).series(
        "root.d", "s", DataType.DOUBLE, 0, decimals.tolist(), encoding=Encoding.CHIMP
    )
    assert Encoding.CHIMP is chunks_of(sheet.reader(), "s")[0][0]


#: Series of all types whose pages consist of integers: those of integer types, and scaled decimals.
TOGETHER: dict[str, tuple[DataType, Encoding, list[Scalar]]] = {
    "i32": (DataType.INT32, Encoding.TS_2DIFF, [(-(2**31), 2**31 - 1, i)[i % 3] for i in range(500)]),
    "day": (DataType.DATE, Encoding.TS_2DIFF, [20240101 + i % 28 for i in range(500)]),
    "i64": (DataType.INT64, Encoding.TS_2DIFF, [(-(2**63), 2**63 - 1, i)[i % 3] for i in range(500)]),
    "at": (DataType.TIMESTAMP, Encoding.TS_2DIFF, [2**61 + i * i for i in range(500)]),
    "f32": (DataType.FLOAT, Encoding.GORILLA, [float(np.float32(n / 10)) for n in RNG.integers(0, 900, 500)]),
    "f64": (DataType.DOUBLE, Encoding.GORILLA, (RNG.integers(0, 9_000, 500) / 1_000).tolist()),
    "one": (DataType.DOUBLE, Encoding.GORILLA, (RNG.integers(0, 900, 500) / 10).tolist()),
    "raw": (DataType.DOUBLE, Encoding.PLAIN, RNG.normal(20, 5, 500).tolist()),
}


def test_series_of_all_types_of_numbers_are_read_together() -> None:
    sheet = Sheet(page_rows=100)
    for name, (type_, encoding, values) in TOGETHER.items():
        sheet.series("root.d", name, type_, 0, values, encoding=encoding)
    reader = sheet.reader()
    scaled = [name for name in TOGETHER if chunks_of(reader, name)[0][0] is Encoding.TS_2DIFF]
    assert scaled == ["i32", "day", "i64", "at", "f32", "f64", "one"]
    index = reader.device("root.d")
    assert index is not None
    for first, stop in [(0, 5), (1, 3)]:
        found = reader.read_together(index, list(TOGETHER), 0, first, stop)
        assert found is not None
        assert [values[100 * first : 100 * stop] for _, _, values in TOGETHER.values()] == [
            column.to_list() for column in found[0].columns
        ]


@pytest.mark.parametrize("type_", [DataType.BOOLEAN, DataType.TEXT, DataType.BLOB])
def test_an_encoding_that_a_type_does_not_have_is_unsupported(type_: DataType) -> None:
    sheet = Sheet().series("root.sg.d1", "s", type_, 0, SAMPLES[type_] * 100)
    sheet.finish()
    raw = bytearray(sheet.file.content)
    _, ids = chunk_header(bytes(raw), "root.sg.d1", "s")
    raw[ids + 2] = Encoding.TS_2DIFF
    with pytest.raises(UnsupportedFile, match=f"TS_2DIFF of {type_.name}"):
        rows_of(TsFileReader("f", memoryview(bytes(raw))), "root.sg.d1", "s")


def test_page_ranges_can_be_read_alone() -> None:
    values: list[Scalar] = [i * 10 for i in range(35)]
    sheet = Sheet().series("root.sg.d1", "s", DataType.INT64, 0, values)
    reader = sheet.aligned("root.sg.d2", 0, s=(DataType.INT64, [None, *values[1:]])).reader()
    for device in ("root.sg.d1", "root.sg.d2"):
        index = reader.device(device)
        assert index is not None
        spans = [(p.start, p.end, p.count) for p in reader.pages(index, ["s"], 0)]
        assert spans == [(0, 9, 10), (10, 19, 10), (20, 29, 10), (30, 34, 5)]
        block, _ = reader.read(index, ["s"], 0, 1, 3)
        assert block.times.tolist() == list(range(10, 30))
        assert block.columns[0].to_list() == values[10:30]
        assert reader.read(index, ["s"], 0, 2, 2)[0].rows == 0


def test_pages_carry_statistics_per_column() -> None:
    reader = (
        Sheet()
        .aligned(
            "root.sg.d1", 0, a=(DataType.INT32, [1] * 10 + [None] * 5), b=(DataType.INT32, [None, 7] + [None] * 13)
        )
        .reader()
    )
    index = reader.device("root.sg.d1")
    assert index is not None
    first, second = reader.pages(index, ["a", "b"], 0)
    a, b = first.statistics
    assert a is not None
    assert b is not None
    assert (a.count, a.total, b.count, b.start, b.end, b.first) == (10, 10, 1, 1, 1, 7)
    assert second.statistics == (None, None)
    assert (second.start, second.end, second.count) == (10, 14, 5)


def test_a_single_page_has_the_statistics_of_its_chunk() -> None:
    reader = Sheet().series("root.sg.d1", "s", DataType.DOUBLE, 5, [1.0, 3.0]).reader()
    index = reader.device("root.sg.d1")
    assert index is not None
    (page,) = reader.pages(index, ["s"], 0)
    chunk = index.series["s"].chunks[0].statistics
    assert page.statistics == (chunk,)
    assert chunk is not None
    assert (chunk.count, chunk.minimum, chunk.maximum, chunk.total, chunk.first, chunk.last) == (
        2,
        1.0,
        3.0,
        4.0,
        1.0,
        3.0,
    )


def test_write_series_returns_the_chunks_statistics() -> None:
    sheet = Sheet()
    seen = sheet.writer.write_series(
        "root.sg.d", "s", DataType.INT32, PLAIN, LZ4, np.arange(25), np.arange(25, dtype=np.int32)
    )
    assert (seen.count, seen.start, seen.end, seen.minimum, seen.maximum, seen.total) == (25, 0, 24, 0, 24, 300)


def test_several_chunks_of_a_series_follow_each_other() -> None:
    sheet = Sheet()
    for start in (0, 100, 200):
        sheet.series("root.sg.d1", "a", DataType.INT32, start, [start] * 12)
        sheet.series("root.sg.d1", "b", DataType.INT32, start, [start])
    reader = sheet.series("root.sg.d2", "a", DataType.TEXT, 0, ["x"]).reader()
    index = reader.device("root.sg.d1")
    assert index is not None
    assert [c.statistics.start for c in index.series["a"].chunks if c.statistics] == [0, 100, 200]
    whole = index.series["a"].statistics
    assert whole is not None
    assert (whole.count, whole.start, whole.end, whole.total) == (36, 0, 211, 3600)
    assert rows_of(reader, "root.sg.d1", "b") == [(0, 0), (100, 100), (200, 200)]


def test_every_column_has_a_chunk_for_each_time_chunk() -> None:
    number = DataType.INT32
    reader = (
        Sheet()
        .aligned("root.sg.d1", 0, a=(number, [1]))
        .aligned("root.sg.d1", 10, b=(number, [2]))
        .aligned("root.sg.d2", 0, a=(number, [0]))
        .aligned("root.sg.d1", 20, a=(number, [3]), c=(DataType.TEXT, ["x"]))
    ).reader()
    index = reader.device("root.sg.d1")
    assert index is not None
    assert index.time is not None
    assert {len(s.chunks) for s in (index.time, *index.series.values())} == {3}
    assert all(a.offset < b.offset for s in index.series.values() for a, b in zip(s.chunks, s.chunks[1:], strict=False))
    assert [rows_of(reader, "root.sg.d1", n) for n in "abc"] == [[(0, 1), (20, 3)], [(10, 2)], [(20, "x")]]


def test_devices_come_in_the_files_order_whatever_the_order_of_writing() -> None:
    sheet = Sheet()
    for device in ("root.sg.d2", "root.sg.d10", "root.a.b.c.d", "root.a", "root.sg.`x y`.温度"):
        sheet.series(device, "s", DataType.BOOLEAN, 0, [True])
    reader = sheet.reader()
    expected = ["root.a", "root.a.b.c.d", "root.sg.d10", "root.sg.d2", "root.sg.`x y`.温度"]
    assert list(reader.devices()) == expected
    assert all(rows_of(reader, device, "s") == [(0, True)] for device in expected)
    assert reader.device("root.sg.d3") is None
    assert reader.device("root.nothing.d3") is None


def test_many_devices_and_series_need_more_than_one_index_level() -> None:
    sheet = Sheet()
    for device in range(300):
        sheet.series(f"root.sg.d{device:03}", "s", DataType.INT32, 0, [device])
    for series in range(600):
        sheet.series("root.sg.wide", f"s{series:03}", DataType.INT32, 0, [series])
    reader = sheet.reader()
    assert [rows_of(reader, f"root.sg.d{d:03}", "s") for d in (0, 255, 256, 299)] == [
        [(0, d)] for d in (0, 255, 256, 299)
    ]
    assert [rows_of(reader, "root.sg.wide", f"s{s:03}") for s in (0, 255, 256, 599)] == [
        [(0, s)] for s in (0, 255, 256, 599)
    ]


def test_the_summary_describes_the_file() -> None:
    sheet = (
        Sheet().series("root.sg.d1", "a", DataType.INT32, 5, [1, 2]).series("root.sg.d1", "b", DataType.INT32, 1, [1])
    )
    summary = sheet.aligned("root.sg.d2", 7, a=(DataType.INT32, [1, None])).finish()
    content = bytes(sheet.file.content)
    assert (summary.size, summary.crc32) == (len(content), zlib.crc32(content))
    assert summary.devices == {"root.sg.d1": DeviceSpan(1, 6), "root.sg.d2": DeviceSpan(7, 8)}


def test_an_empty_file_is_a_file() -> None:
    reader = Sheet().reader()
    assert list(reader.devices()) == []
    assert reader.device("root.sg.d1") is None


def test_pages_of_long_texts_stay_small() -> None:
    text = "x" * (PAGE_TEXT_BYTES_MAX // 4 + 1)
    values: list[Scalar] = [text, "y", text, text, text, "z" * (PAGE_TEXT_BYTES_MAX + 1), "end"]
    reader = Sheet().series("root.sg.d1", "s", DataType.TEXT, 0, values).reader()
    index = reader.device("root.sg.d1")
    assert index is not None
    assert [p.count for p in reader.pages(index, ["s"], 0)] == [4, 1, 1, 1]
    assert rows_of(reader, "root.sg.d1", "s") == list(enumerate(values))


def test_slices_of_text_and_read_only_arrays_can_be_written() -> None:
    times = np.arange(3, dtype=np.int64)
    times.flags.writeable = False
    sheet = Sheet()
    text = TextArray.of(["no", "a", "bc", "d"]).slice(1, 4)
    sheet.writer.write_series("root.sg.d", "t", DataType.STRING, PLAIN, LZ4, times, text)
    column = Column(DataType.STRING, text, np.array([False, True, True]))
    sheet.writer.write_aligned("root.sg.e", times, [AlignedColumn("t", DataType.STRING, PLAIN, LZ4, column)])
    reader = sheet.reader()
    assert rows_of(reader, "root.sg.d", "t") == [(0, "a"), (1, "bc"), (2, "d")]
    assert rows_of(reader, "root.sg.e", "t") == [(1, "bc"), (2, "d")]


VALUES = {
    DataType.INT64: st.integers(-(2**63), 2**63 - 1),
    DataType.DOUBLE: st.floats(allow_nan=False),
    DataType.STRING: st.text(st.characters(codec="utf-8"), max_size=4),
    DataType.BOOLEAN: st.booleans(),
}


@st.composite
def groups(draw: st.DrawFn) -> list[dict[str, tuple[DataType, list[Scalar]]]]:
    """Draw chunk groups of one device. Each group has some of four columns, which may have nulls."""
    made = []
    for _ in range(draw(st.integers(1, 4))):
        rows = draw(st.integers(1, 9))
        types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True))
        made.append({t.name: (t, draw(st.lists(st.none() | VALUES[t], min_size=rows, max_size=rows))) for t in types})
    return made


@pytest.mark.slow
@settings(max_examples=50)
@given(groups(), st.integers(1, 5))
def test_any_chunk_groups_come_back(written: list[dict[str, tuple[DataType, list[Scalar]]]], page_rows: int) -> None:
    sheet = Sheet(page_rows)
    expected: dict[str, list[tuple[int, Scalar]]] = {}
    for number, columns in enumerate(written):
        sheet.aligned("root.sg.d", number * 100, **columns)
        for name, (_, values) in columns.items():
            points = [(number * 100 + i, v) for i, v in enumerate(values) if v is not None]
            expected.setdefault(name, []).extend(points)
    reader = sheet.reader()
    assert {name: rows_of(reader, "root.sg.d", name) for name in expected} == expected
    index = reader.device("root.sg.d")
    assert index is not None
    for name, points in expected.items():
        whole = index.series[name].statistics
        assert (whole.count if whole else 0) == len(points)
        if whole:
            assert (whole.start, whole.first, whole.end, whole.last) == (*points[0], *points[-1])


# --- the writer's rules


def test_times_must_rise_from_chunk_to_chunk() -> None:
    sheet = Sheet().series("root.sg.d", "s", DataType.INT32, 10, [1])
    with pytest.raises(AssertionError):
        sheet.series("root.sg.d", "s", DataType.INT32, 10, [1])


def test_times_must_rise_within_a_chunk() -> None:
    with pytest.raises(AssertionError):
        Sheet().writer.write_series(
            "root.sg.d", "s", DataType.INT32, PLAIN, LZ4, np.array([1, 1]), np.array([1, 2], np.int32)
        )


def test_a_device_is_aligned_or_not() -> None:
    sheet = Sheet().series("root.sg.d", "s", DataType.INT32, 10, [1])
    with pytest.raises(AssertionError):
        sheet.aligned("root.sg.d", 20, s=(DataType.INT32, [1]))


# --- version 3


def version_3_file() -> bytes:
    """Return a hand-made v3 file: two non-aligned devices, each with one DOUBLE series of one page."""
    out = bytearray(b"TsFile\x03")
    entries = []
    for device, value in (("root.sg.d1", 1.5), ("root.sg.d2", -2.0)):
        times, values = np.array([10, 20], np.int64), np.array([value, value + 1])
        head = encode_times(times)
        body = uvar(len(head)) + head + encode(PLAIN, DataType.DOUBLE, values)
        page = uvar(len(body)) * 2 + body
        out += b"\0" + vstr(device)
        statistics = b"\x02" + struct.pack(">qqddddd", 10, 20, value, value + 1, value, value + 1, 2 * value + 1)
        entries.append((device, len(out), statistics))
        out += b"\x05" + vstr("s") + uvar(len(page)) + bytes((4, 0, 0)) + page
    separator = len(out)
    out += b"\x02"
    series = []
    for device, offset, statistics in entries:
        series.append((device, len(out)))
        out += b"\0" + vstr("s") + b"\x04" + uvar(8) + statistics + struct.pack(">q", offset)
    ends = [offset for _, offset in series[1:]] + [len(out)]
    nodes = []
    for (device, start), end in zip(series, ends, strict=True):
        nodes.append((device, len(out)))
        out += uvar(1) + vstr("s") + struct.pack(">qqB", start, end, 3)
    tail = uvar(len(nodes)) + b"".join(vstr(device) + struct.pack(">q", offset) for device, offset in nodes)
    tail += struct.pack(">qBq", len(out), 1, separator) + uvar(0)
    return bytes(out) + tail + struct.pack(">i", len(tail)) + b"TsFile"


def test_a_version_3_file_is_read() -> None:
    reader = TsFileReader("old.tsfile", memoryview(version_3_file()))
    assert list(reader.devices()) == ["root.sg.d1", "root.sg.d2"]
    assert rows_of(reader, "root.sg.d1", "s") == [(10, 1.5), (20, 2.5)]
    assert rows_of(reader, "root.sg.d2", "s") == [(10, -2.0), (20, -1.0)]
    assert reader.device("root.sg.d3") is None
    assert reader.metadata.version == 3


# --- what is refused


def content() -> bytes:
    sheet = Sheet().series("root.sg.d1", "s", DataType.DOUBLE, 0, [float(i) for i in range(25)])
    sheet.aligned("root.sg.d2", 0, a=(DataType.INT32, [None, *range(24)]), b=(DataType.STRING, ["x"] * 25))
    sheet.finish()
    return bytes(sheet.file.content)


@pytest.mark.parametrize("cut", [0, 5, 10, -1, -6])
def test_a_file_that_was_cut_is_corrupt(cut: int) -> None:
    with pytest.raises(CorruptFile):
        TsFileReader("f", memoryview(content()[:cut]))


def test_another_kind_of_file_is_corrupt() -> None:
    with pytest.raises(CorruptFile):
        TsFileReader("f", memoryview(b"PAR1" + bytes(100)))


def test_other_versions_are_unsupported() -> None:
    raw = bytearray(content())
    raw[6] = 2
    with pytest.raises(UnsupportedFile):
        TsFileReader("f", memoryview(bytes(raw)))


def test_encryption_is_unsupported() -> None:
    raw = content().replace(b"encryptLevel\x020", b"encryptLevel\x021")
    with pytest.raises(UnsupportedFile):
        TsFileReader("f", memoryview(raw))


def chunk_header(raw: bytes, device: str, name: str) -> tuple[TsFileReader, int]:
    """Return a reader, and the position of the ids (type, compressor, encoding) of the series' first chunk."""
    reader = TsFileReader("f", memoryview(raw))
    index = reader.device(device)
    assert index is not None
    offset = index.series[name].chunks[0].offset
    return reader, offset + 1 + len(vstr(name)) + len(uvar(1000))


@pytest.mark.parametrize(("place", "number"), [(0, 12), (1, 3), (1, 200), (2, 14), (2, 99)])
def test_unknown_ids_are_unsupported(place: int, number: int) -> None:
    raw = bytearray(content())
    _, ids = chunk_header(bytes(raw), "root.sg.d1", "s")
    raw[ids + place] = number
    with pytest.raises(UnsupportedFile):
        rows_of(TsFileReader("f", memoryview(bytes(raw))), "root.sg.d1", "s")


def test_a_chunk_of_another_series_is_corrupt() -> None:
    reader = TsFileReader("f", memoryview(content()))
    one, other = reader.device("root.sg.d1"), reader.device("root.sg.d2")
    assert one is not None
    assert other is not None
    elsewhere = ChunkMeta(other.series["a"].chunks[0].offset, one.series["s"].statistics)
    bad = replace(one, series={"s": replace(one.series["s"], chunks=(elsewhere,))})
    with pytest.raises(CorruptFile):
        reader.pages(bad, ["s"], 0)


def test_a_column_without_all_its_chunks_is_corrupt() -> None:
    sheet = Sheet().aligned("root.sg.d", 0, a=(DataType.INT32, [1])).aligned("root.sg.d", 9, a=(DataType.INT32, [1]))
    sheet.writer._devices["root.sg.d"].series["a"].chunks.pop()
    with pytest.raises(CorruptFile):
        sheet.reader().device("root.sg.d")


def test_a_page_that_claims_to_grow_too_much_is_corrupt() -> None:
    raw = content()
    _, ids = chunk_header(raw, "root.sg.d1", "s")
    bomb = raw[: ids + 3] + uvar(2**27) + raw[ids + 3 + 4 :]
    with pytest.raises(CorruptFile):
        rows_of(TsFileReader("f", memoryview(bomb)), "root.sg.d1", "s")


def test_times_that_do_not_rise_are_corrupt() -> None:
    raw = version_3_file()
    first = encode_times(np.array([10, 20], np.int64))
    backwards = encode_times(np.array([10, 10], np.int64))
    assert len(first) == len(backwards)
    with pytest.raises(CorruptFile):
        rows_of(TsFileReader("f", memoryview(raw.replace(first, backwards))), "root.sg.d1", "s")


def test_dtypes_are_those_of_the_types() -> None:
    for type_ in set(DataType) - {DataType.TEXT, DataType.STRING, DataType.BLOB}:
        reader = Sheet().series("root.sg.d1", "s", type_, 0, SAMPLES[type_]).reader()
        index = reader.device("root.sg.d1")
        assert index is not None
        block, _ = reader.read(index, ["s"], 0, 0, 1)
        assert block.columns[0].numbers.dtype == NUMPY_DTYPE[type_]
