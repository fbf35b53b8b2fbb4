"""The components of writer and reader: primitives, device ids, statistics, bloom filter, index, cache."""

from __future__ import annotations

import math
import struct
import threading
from random import Random

import mmh3
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.errors import CorruptFile
from saros_storage.base.lru import LruCache
from saros_storage.base.types import NUMPY_DTYPE, DataType
from saros_storage.kernels.text import text_extremes
from saros_storage.tsfile.structure import statistics as stats
from saros_storage.tsfile.structure.bloom import BloomFilter, signed_tail_hash
from saros_storage.tsfile.structure.device_id import (
    canonical_measurement,
    decode_segments,
    encode_segments,
    name_key,
    path_of_segments,
    segments_key,
    segments_of_path,
)
from saros_storage.tsfile.structure.format import Cursor, uvar, var, vstr
from saros_storage.tsfile.structure.index import IndexTree, build_index, runs_of

INT32 = st.integers(-(2**31), 2**31 - 1)
TIMES = np.array([10, 20, 30], np.int64)


# --- primitives


@pytest.mark.parametrize(
    ("value", "expected"), [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")]
)
def test_uvar_is_leb128(value: int, expected: str) -> None:
    assert uvar(value).hex() == expected


@pytest.mark.parametrize(("value", "expected"), [(0, "00"), (-1, "01"), (1, "02"), (3, "06"), (-(2**31), "ffffffff0f")])
def test_var_is_zigzag(value: int, expected: str) -> None:
    assert var(value).hex() == expected


@pytest.mark.parametrize(("text", "expected"), [("s1", "047331"), ("", "00"), (None, "01"), ("é", "04c3a9")])
def test_vstr_has_a_zigzag_length(text: str | None, expected: str) -> None:
    assert vstr(text).hex() == expected


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), INT32, st.none() | st.text(st.characters(codec="utf-8")))
def test_cursor_reads_what_was_written(size: int, number: int, text: str | None) -> None:
    cursor = Cursor("f", uvar(size) + var(number) + vstr(text))
    assert (cursor.uvar(), cursor.var(), cursor.vstr(), cursor.rest) == (size, number, text, 0)


@pytest.mark.parametrize("raw", ["", "80", "8080808080", "ffffffffffff", "ffffffff7f"])
def test_bad_varints_are_refused(raw: str) -> None:
    with pytest.raises(CorruptFile):
        Cursor("f", bytes.fromhex(raw)).uvar()


def test_an_error_says_where_in_the_file() -> None:
    cursor = Cursor("data.tsfile", b"\x00\x00", base=100, pos=1)
    with pytest.raises(CorruptFile) as caught:
        cursor.i64()
    assert (caught.value.file, caught.value.offset) == ("data.tsfile", 101)


@pytest.mark.parametrize("raw", ["0861", "04ffff", "03"])
def test_bad_names_are_refused(raw: str) -> None:
    with pytest.raises(CorruptFile):
        Cursor("f", bytes.fromhex(raw)).name()


# --- device ids


@pytest.mark.parametrize(
    ("path", "segments"),
    [
        ("root", ("root",)),
        ("root.sg", ("root", "sg")),
        ("root.sg.d1", ("root.sg", "d1")),
        ("root.a.b.c", ("root.a.b", "c")),
        ("root.a.b.c.d", ("root.a.b", "c", "d")),
        ("root.`a.b`.d", ("root.`a.b`", "d")),
        ("root.a.b.`c``.`.`d e`", ("root.a.b", "`c``.`", "`d e`")),
    ],
)
def test_a_path_becomes_segments_and_back(path: str, segments: tuple[str, ...]) -> None:
    assert segments_of_path(path) == segments
    if len(segments) != 2 or segments[0] != "root":
        assert path_of_segments(segments) == path


@pytest.mark.parametrize(
    ("segments", "path"),
    [
        (("weather", "a b", None), "weather.`a b`"),
        (("weather", None, "x"), "weather.null.x"),
        (("root.sg", "d 1"), "root.sg.`d 1`"),
        (("root.sg", "`d1`"), "root.sg.d1"),
        (("root.sg.温度", "d"), "root.sg.温度.d"),
    ],
)
def test_foreign_spellings_become_canonical(segments: tuple[str | None, ...], path: str) -> None:
    assert path_of_segments(segments) == path


@pytest.mark.parametrize(
    ("name", "expected"),
    [("s1", "s1"), ("s 1", "`s 1`"), ("`s1`", "s1"), ("a.b", "`a.b`"), ("", ""), ("`a b`", "`a b`")],
)
def test_measurements_become_canonical(name: str, expected: str) -> None:
    assert canonical_measurement(name) == expected


def test_segments_round_trip() -> None:
    raw = encode_segments(("root.sg", None, "é"))
    assert decode_segments(Cursor("f", raw), version_3=False) == ("root.sg", None, "é")


def test_names_sort_by_utf16_units() -> None:
    names = ["a", "\U00010000", "\uffff", "\ue000", "é"]
    assert sorted(names, key=name_key) == ["a", "é", "\U00010000", "\ue000", "\uffff"]


def test_devices_sort_by_segment_null_and_prefix_first() -> None:
    devices = [("t", "b"), ("t", "a", "x"), ("t", None), ("t",), ("t", "a"), ("t", "")]
    assert sorted(devices, key=segments_key) == [
        ("t",),
        ("t", None),
        ("t", ""),
        ("t", "a"),
        ("t", "a", "x"),
        ("t", "b"),
    ]


# --- statistics

FLOATS = [0.1, -0.0, 2.5, -1e30, math.nan, math.inf, -math.inf, 1.7e308, -1.7e308]


def test_statistics_of_doubles_leave_nan_out_of_extremes() -> None:
    got = stats.of_points(DataType.DOUBLE, TIMES, np.array([math.nan, 2.0, -1.0]))
    assert (got.minimum, got.maximum, got.last, got.count) == (-1.0, 2.0, -1.0, 3)
    assert math.isnan(got.total or 0.0)


def test_statistics_of_only_nan_are_nan() -> None:
    nan = np.array([math.nan] * 3)
    got = stats.merge([stats.of_points(DataType.DOUBLE, TIMES + i, nan) for i in range(2)])
    assert math.isnan(float(got.minimum or 0))
    one = stats.of_points(DataType.DOUBLE, TIMES + 100, np.array([1.0, 2.0, 3.0]))
    assert stats.merge([got, one]).maximum == 3.0


def test_statistics_of_strings_compare_bytes() -> None:
    values = TextArray.of(["b", "é", "a"])
    got = stats.of_points(DataType.STRING, TIMES, values)
    assert (got.first, got.last, got.minimum, got.maximum) == (b"b", b"a", b"a", "é".encode())


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=4), min_size=1, max_size=20))
def test_text_extremes_and_their_twin_agree_with_python(values: list[bytes]) -> None:
    text = TextArray.of(values)
    for run in (text_extremes, text_extremes.twin):
        out = np.empty(2, np.int64)
        run(text.offsets, text.data, out)
        assert (values[out[0]], values[out[1]]) == (min(values), max(values))


SAMPLES: dict[DataType, list[object]] = {
    DataType.BOOLEAN: [True, False, True],
    DataType.INT32: [-(2**31), 2**31 - 1, 5],
    DataType.INT64: [-(2**63), 2**63 - 1, 5],
    DataType.FLOAT: [1.5, -2.5, 0.25],
    DataType.DOUBLE: [1.5, math.inf, -3.0],
    DataType.TIMESTAMP: [1, 2, 3],
    DataType.DATE: [20240101, 20240229, 20231231],
    DataType.TEXT: ["a", "ü", ""],
    DataType.STRING: ["a", "ü", ""],
    DataType.BLOB: [b"\0", b"a", b""],
}


@pytest.mark.parametrize("type_", list(DataType))
def test_statistics_round_trip(type_: DataType) -> None:
    raw = SAMPLES[type_]
    values = TextArray.of(raw) if type_.is_text else np.array(raw, NUMPY_DTYPE[type_])  # type: ignore[arg-type]
    for whole in (stats.of_points(type_, TIMES, values), stats.NOTHING):
        cursor = Cursor("f", stats.encode(type_, whole))
        assert stats.decode(type_, cursor) == whole
        assert cursor.rest == 0


@pytest.mark.slow
@pytest.mark.parametrize("type_", DataType)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.randoms(use_true_random=False), st.booleans())
def test_statistics_of_pages_are_those_of_each_page(
    type_: DataType, counts: list[int], random: Random, has_nulls: bool
) -> None:
    rows = sum(counts)
    kinds = {np.dtype(np.bool_): [True, False], np.dtype(np.float64): FLOATS, np.dtype(np.float32): FLOATS[:-2]}
    known = ["", "a", "b" * 9] if type_.is_text else kinds.get(np.dtype(NUMPY_DTYPE[type_]), [-5, 0, 7, 2_000_000_000])
    column = Column.of(
        type_, [None if has_nulls and random.random() < 0.3 else random.choice(known) for _ in range(rows)]
    )
    times = np.cumsum([random.randrange(1, 9) for _ in range(rows)])
    expected, row = [], 0
    for count in counts:
        part = Block.timed(times[row : row + count], (column.slice(row, row + count),))
        valid = part.columns[0].valid
        part = part if valid is None else part.compress(valid)
        with np.errstate(all="ignore"):
            expected.append(stats.of_points(type_, part.times, part.columns[0].values))
        row += count
    assert list(map(repr, expected)) == list(map(repr, stats.of_pages(type_, times, column, counts)))


def test_statistics_have_the_documented_bytes() -> None:
    got = stats.encode(DataType.INT32, stats.of_points(DataType.INT32, TIMES, np.array([5, -1, 3], np.int32)))
    assert got == b"\x03" + struct.pack(">qqiiiiq", 10, 30, -1, 5, 5, 3, 7)
    got = stats.encode(DataType.INT64, stats.of_points(DataType.INT64, TIMES, np.array([5, -1, 3])))
    assert got == b"\x03" + struct.pack(">qqqqqqd", 10, 30, -1, 5, 5, 3, 7.0)
    got = stats.encode(DataType.TEXT, stats.of_points(DataType.TEXT, TIMES, TextArray.of(["x", "y", "zz"])))
    assert got == b"\x03" + struct.pack(">qq", 10, 30) + b"\0\0\0\x01x\0\0\0\x02zz"


def test_what_a_reader_sees() -> None:
    date = stats.of_points(DataType.DATE, TIMES, np.array([20240101, 20240102, 20240103], np.int32))
    seen = stats.reader_statistics(DataType.DATE, date)
    assert seen is not None
    assert (seen.minimum, seen.maximum, seen.total) == (20240101, 20240103, None)
    text = stats.reader_statistics(
        DataType.STRING, stats.of_points(DataType.STRING, TIMES, TextArray.of(["b", "a", "c"]))
    )
    assert text is not None
    assert (text.first, text.last, text.minimum, text.total) == ("b", "c", None, None)
    assert stats.reader_statistics(DataType.INT32, stats.NOTHING) is None


def test_impossible_statistics_are_refused() -> None:
    for count, start, end in ((3, 10, 9), (5, 0, 3)):
        with pytest.raises(CorruptFile):
            stats.decode(None, Cursor("f", uvar(count) + struct.pack(">qq", start, end)))


# --- bloom filter


def test_the_signed_variant_equals_the_standard_hash_on_ascii() -> None:
    for text in ("", "a", "root.sg.d1.s1", "x" * 16, "y" * 31, "z" * 33):
        for seed in (5, 59):
            expected = sum(mmh3.hash64(text.encode(), seed, True)) % 2**64
            assert signed_tail_hash(text.encode(), seed) == expected


def test_the_signed_variant_differs_beyond_ascii() -> None:
    raw = "温度".encode()
    assert signed_tail_hash(raw, 5) != sum(mmh3.hash64(raw, 5, True)) % 2**64


def test_all_keys_are_found_and_most_others_are_not() -> None:
    keys = [f"root.sg.d{i}.温度" for i in range(1000)]
    bloom = BloomFilter.of(keys)
    assert 5 == bloom.hashes
    for signed in (False, True):
        assert all(_may_contain(bloom, key, signed=signed) for key in keys)
        assert sum(_may_contain(bloom, f"root.other.d{i}.s", signed=signed) for i in range(1000)) < 200


def _may_contain(bloom: BloomFilter, key: str, *, signed: bool) -> bool:
    """Return the answer of an Apache reader: in Java, the hash treats the tail as signed; in C++, it does not."""
    raw = key.encode()
    for seed in (5, 7, 11, 19, 31):
        total = signed_tail_hash(raw, seed) if signed else sum(mmh3.hash64(raw, seed, signed=False))
        hashed = abs(int(np.uint32(total % 2**32).view(np.int32))) % bloom.size
        if hashed >> 3 >= len(bloom.bits) or not bloom.bits[hashed >> 3] >> (hashed & 7) & 1:
            return False
    return True


# --- index


def tree_of(devices: list[tuple[tuple[str, ...], list[tuple[str, bytes]]]]) -> tuple[IndexTree, bytes]:
    head = b"-" * 50
    parts, tables = build_index(len(head), [(segments, runs_of(series)) for segments, series in devices])
    data = head + b"".join(parts)
    tree = IndexTree("f", memoryview(data), len(data), version_3=False)
    for table, root in tables:
        tree.add_root(table, Cursor("f", root, len(data)))
    return tree, data


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 255, 256, 257, 70_000])
def test_every_device_is_found(count: int) -> None:
    names = [("root.sg", f"d{i:06}") for i in range(count)]
    tree, data = tree_of([(name, [("s", b"<" + name[1].encode() + b">")]) for name in names])
    for position in {0, count // 2, count - 1, min(count - 1, 256)}:
        span = tree.find(names[position])
        assert span is not None
        (run,) = tree.series_spans(span)
        assert data[run.start : run.end] == b"<" + names[position][1].encode() + b">"
    assert tree.find(("root.sg", "d")) is None
    assert tree.find(("root.sg", "e")) is None
    assert tree.find(("root.other", "d000000")) is None
    assert [segments for segments, _ in tree.devices()] == names


@pytest.mark.parametrize("count", [1, 256, 257, 65_536, 65_537])
def test_all_series_of_a_device_are_found(count: int) -> None:
    series = [(f"s{i:06}", b"%06d" % i) for i in range(count)]
    tree, data = tree_of([(("root.sg", "a"), [("s", b"<a>")]), (("root.sg", "b"), series)])
    span = tree.find(("root.sg", "b"))
    assert span is not None
    joined = b"".join(data[s.start : s.end] for s in tree.series_spans(span))
    assert joined == b"".join(raw for _, raw in series)


def test_several_tables_have_their_own_roots() -> None:
    tree, _ = tree_of([(("root.a", "d"), [("s", b"1")]), (("root.b", "d"), [("s", b"2")])])
    assert list(tree.roots) == ["root.a", "root.b"]
    assert tree.find(("root.b", "d")) is not None


def test_a_node_that_contains_itself_is_refused() -> None:
    head = b"-" * 50
    node = uvar(1) + encode_segments(("root.sg", "d")) + struct.pack(">qqB", len(head), len(head) + 40, 0)
    tree = IndexTree("f", memoryview(head + node), 100, version_3=False)
    tree.add_root("root.sg", Cursor("f", node, 100))
    with pytest.raises(CorruptFile):
        tree.find(("root.sg", "d"))
    with pytest.raises(CorruptFile):
        list(tree.devices())


# --- cache


def test_threads_share_a_cache_without_waiting_for_each_other() -> None:
    cache: LruCache[int, int] = LruCache(50)
    failures: list[object] = []

    def use(seed: int) -> None:
        keys = Random(seed)
        for _ in range(5_000):
            key = keys.randrange(100)
            found = cache.get(key)
            if found not in (None, key):
                failures.append((key, found))
            cache.put(key, key, 1)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == failures
    assert cache.weight == len(cache) <= 50
    with cache._lock:
        cache.put(100, 100, 1)
        assert cache.get(100) is None


def test_the_least_recently_used_goes_first() -> None:
    cache: LruCache[str, int] = LruCache(3)
    for key in "abc":
        cache.put(key, ord(key), 1)
    cache.get("a")
    cache.put("d", 0, 1)
    assert [key for key in "abcd" if cache.get(key) is not None] == ["a", "c", "d"]


def test_what_is_too_heavy_is_not_kept() -> None:
    cache: LruCache[str, int] = LruCache(3)
    cache.put("a", 1, 1)
    cache.put("a", 2, 4)
    assert (cache.get("a"), len(cache)) == (None, 0)
