"""Encodings: the bytes comply with the format, round trips are exact, and truncated pages are detected.

Compiled kernels give the same results as their twins in Python.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from saros_storage.base.block import TextArray, Values
from saros_storage.base.types import NUMPY_DTYPE, DataType, Encoding
from saros_storage.encoding import (
    DecodeError,
    UnsupportedEncoding,
    decode,
    decode_pages_into,
    decode_times_into,
    encode,
    encode_rows,
    encode_times,
    encodings_for,
)
from saros_storage.kernels.codecs.bit_reader import Stream, bytes_of, to_words
from saros_storage.kernels.codecs.chimp import RING_SIZE, TABLE_SIZE, chimp_decode, chimp_encode
from saros_storage.kernels.codecs.gorilla import gorilla_decode, gorilla_encode, gorilla_encode_rows
from saros_storage.kernels.codecs.rle import rle_bytes_max, rle_decode, rle_encode
from saros_storage.kernels.codecs.ts2diff import ts2diff_decode, ts2diff_encode, ts2diff_encode_rows
from saros_storage.kernels.codecs.varint import text_decode, text_encode, varint_decode, varint_encode

PAIRS = [(e, t) for t in DataType for e in sorted(encodings_for(t))]
quick = settings(max_examples=40)


def some_values(type_: DataType, seed: int, count: int) -> Values:
    """Return values of a type: runs, steps, extremes and noise."""
    rng = np.random.default_rng(seed)
    if type_.is_text:
        words = [b"", b"OK", "温度".encode(), b"x" * 300]
        return TextArray.of(words[i] for i in rng.integers(0, 4, count))
    dtype = NUMPY_DTYPE[type_]
    if dtype == np.bool_:
        return np.repeat(rng.random(count) < 0.5, 5)[:count]
    if dtype.kind == "f":
        special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, np.finfo(dtype).max, 5e-324], dtype)
        walk = np.round(np.cumsum(rng.normal(0, 1, count)), 2).astype(dtype)
        return np.where(rng.random(count) < 0.1, rng.choice(special, count), walk).astype(dtype)
    info = np.iinfo(dtype)
    walk = np.cumsum(rng.integers(-3, 900, count)).astype(dtype)
    walk[rng.random(count) < 0.3] = 7
    return np.where(rng.random(count) < 0.05, rng.choice([info.min, info.max, 0, -1], count), walk).astype(dtype)


def raw(values: Values) -> object:
    return values.to_bytes() if isinstance(values, TextArray) else values.tobytes()


@pytest.mark.parametrize(("encoding", "type_"), PAIRS, ids=lambda v: v.name)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 128, 129, 130, 5_000])
def test_what_is_written_is_read(encoding: Encoding, type_: DataType, count: int) -> None:
    values = some_values(type_, count, count)
    page = memoryview(encode(encoding, type_, values)) if count else memoryview(b"")
    assert raw(values) == raw(decode(encoding, type_, page, count))


@pytest.mark.parametrize(
    ("encoding", "type_", "values", "page"),
    [
        (Encoding.PLAIN, DataType.INT32, [1, -1, 64], "02 01 8001"),
        (Encoding.PLAIN, DataType.INT64, [1], "0000000000000001"),
        (Encoding.PLAIN, DataType.DOUBLE, [1.0], "3ff0000000000000"),
        (Encoding.PLAIN, DataType.BOOLEAN, [True, False], "01 00"),
        (Encoding.TS_2DIFF, DataType.INT64, [5], "00000000 00000000 0000000000000000 0000000000000005"),
        (Encoding.TS_2DIFF, DataType.INT32, [10, 12, 15], "00000002 00000001 00000002 0000000a 40"),
        (Encoding.RLE, DataType.INT32, [3] * 8, "04 02 10 03".replace("04", "03", 1)),
        (Encoding.RLE, DataType.BOOLEAN, [True, False, True], "04 01 03 03 a0"),
    ],
)
def test_bytes_are_the_formats(encoding: Encoding, type_: DataType, values: list[object], page: str) -> None:
    assert bytes.fromhex(page) == encode(encoding, type_, np.array(values, NUMPY_DTYPE[type_]))


def test_gorilla_ends_with_a_spare_byte() -> None:
    # 64 bits for 1.0, "0" for its repetition, then the end mark: "11", 6 bits for the number of leading zeroes, 6 bits
    # for the number of other bits minus 1, and these bits
    page = encode(Encoding.GORILLA, DataType.DOUBLE, np.array([1.0, 1.0]))
    change = 0x3FF0000000000000 ^ 0x7FF8000000000000
    body = change >> ((change & -change).bit_length() - 1)
    stream = format(0x3FF0000000000000, "064b") + "0" + "11" + "000001" + format(body.bit_length() - 1, "06b")
    stream += format(body, "b")
    assert int(stream.ljust(len(page) * 8, "0"), 2).to_bytes(len(page), "big") == page
    assert len(stream) // 8 + 1 == len(page)


def test_dictionary_lists_words_in_order_of_first_use() -> None:
    page = encode(Encoding.DICTIONARY, DataType.TEXT, TextArray.of(["b", "a", "b"]))
    assert bytes.fromhex("04 02 62 02 61") == page[:5]


def test_times_are_two_bytes_a_block_when_regular() -> None:
    times = np.arange(1_000, dtype=np.int64) * 1_000
    page = encode_times(times)
    assert len(page) <= 24 * 8
    out = np.empty(1_000, np.int64)
    decode_times_into(memoryview(page), out)
    assert times.tolist() == out.tolist()


def test_many_pages_in_one_call() -> None:
    pages = [some_values(DataType.DOUBLE, i, 100 + i) for i in range(5)]
    encoded = [encode(Encoding.GORILLA, DataType.DOUBLE, p) for p in pages]
    ends = np.cumsum([len(e) for e in encoded])
    counts = np.array([len(p) for p in pages])
    out = np.empty(counts.sum())
    starts = ends - [len(e) for e in encoded]
    stream = Stream(np.frombuffer(b"".join(encoded), np.uint8))
    decode_pages_into(Encoding.GORILLA, DataType.DOUBLE, stream, starts, ends, counts, out)
    assert b"".join(raw(p) for p in pages) == out.tobytes()


def test_what_is_not_read_is_refused_by_name() -> None:
    for encoding, type_ in [(Encoding.SPRINTZ, DataType.DOUBLE), (Encoding.GORILLA, DataType.BOOLEAN)]:
        with pytest.raises(UnsupportedEncoding, match=f"{encoding.name} of {type_.name}"):
            decode(encoding, type_, memoryview(b"\0" * 99), 1)
        with pytest.raises(UnsupportedEncoding):
            encode(encoding, type_, np.zeros(1, NUMPY_DTYPE[type_]))


def test_zigzag_pages_of_others_are_read() -> None:
    assert [1, -1, 64] == decode(
        Encoding.ZIGZAG, DataType.INT64, memoryview(bytes.fromhex("04 03 02 01 8001")), 3
    ).tolist()


def test_rle_of_int64_reads_javas_big_endian_runs() -> None:
    page = memoryview(bytes.fromhex("04 10 10 0102"))
    assert [258] * 8 == decode(Encoding.RLE, DataType.INT64, page, 8).tolist()


@pytest.mark.slow
@given(st.sampled_from([*PAIRS, (Encoding.ZIGZAG, DataType.INT32)]), st.binary(max_size=200), st.integers(0, 300))
@settings(max_examples=300)
def test_random_bytes_never_do_more_than_fail(pair: tuple[Encoding, DataType], data: bytes, count: int) -> None:
    try:
        values = decode(*pair, memoryview(data), count)
    except DecodeError:
        return
    assert count == len(values)


@given(st.sampled_from(PAIRS), st.integers(1, 400), st.data())
@quick
def test_a_cut_page_fails_or_ends_in_padding(pair: tuple[Encoding, DataType], count: int, data: st.DataObject) -> None:
    values = some_values(pair[1], count, count)
    page = encode(*pair, values)
    cut = data.draw(st.integers(0, len(page) - 1))
    try:
        got = decode(*pair, memoryview(page[:cut]), count)
    except DecodeError:
        return
    assert raw(values) == raw(got)


# ---------------------------------------------------------------------------------------------- kernels and twins


@given(hnp.arrays(np.uint64, st.integers(1, 60), elements=st.integers(0, 2**64 - 1)), st.booleans(), st.booleans())
@quick
def test_gorilla_kernels_do_what_their_twins_do(values: np.ndarray, wide: bool, smooth: bool) -> None:
    width, field = (64, 6) if wide else (32, 5)
    values = np.cumsum(values % 5, dtype=np.uint64) if smooth else values & np.uint64((1 << width) - 1)
    words = [np.zeros(len(values) * 2 + 3, np.uint64) for _ in range(2)]
    bits = [f(values, width, field, w) for f, w in zip((gorilla_encode, gorilla_encode.twin), words, strict=True)]
    assert bits[0] == bits[1]
    assert words[0].tolist() == words[1].tolist()
    page = np.frombuffer(bytes_of(words[0], bits[0] // 8 + 1), np.uint8)
    zero, end, count = np.zeros(1, np.int64), np.array([len(page)]), np.array([len(values)])
    for decoder in (gorilla_decode, gorilla_decode.twin):
        out = np.zeros(len(values), np.uint64)
        assert len(values) == decoder(to_words(page), zero, end, count, width, field, out)
        assert values.tolist() == out.tolist()


@given(hnp.arrays(np.uint64, st.tuples(st.integers(1, 5), st.integers(1, 20)), elements=st.integers(0, 2**64 - 1)))
@quick
def test_gorilla_kernels_encode_rows_like_single_pages(values: np.ndarray) -> None:
    rows, count = values.shape
    single = np.zeros(count * 2 + 3, np.uint64)
    expected = [bytes_of(single, gorilla_encode(row, 64, 6, single) // 8 + 1) for row in values]
    for encoder in (gorilla_encode_rows, gorilla_encode_rows.twin):
        words, sizes = np.zeros(rows * len(single), np.uint64), np.zeros(rows, np.int64)
        data = bytes_of(words, encoder(values.ravel(), 64, 6, words, sizes) * 8)
        starts = np.cumsum(sizes + 7 & -8) - (sizes + 7 & -8)
        assert expected == [data[at : at + size] for at, size in zip(starts.tolist(), sizes.tolist(), strict=True)]


@given(hnp.arrays(np.uint64, st.integers(1, 200), elements=st.integers(0, 2**64 - 1)), st.booleans(), st.booleans())
@quick
def test_chimp_kernels_do_what_their_twins_do(values: np.ndarray, wide: bool, smooth: bool) -> None:
    width = 64 if wide else 32
    values = values % 9 << np.uint64(20) if smooth else values & np.uint64((1 << width) - 1)
    words = [np.zeros(len(values) * 2 + 3, np.uint64) for _ in range(2)]
    table, ring = np.empty(TABLE_SIZE, np.int32), np.empty(RING_SIZE, np.uint64)
    bits = [f(values, width, table, w) for f, w in zip((chimp_encode, chimp_encode.twin), words, strict=True)]
    assert bits[0] == bits[1]
    assert words[0].tolist() == words[1].tolist()
    page = np.frombuffer(bytes_of(words[0], bits[0] // 8 + 1), np.uint8)
    zero, end, count = np.zeros(1, np.int64), np.array([len(page)]), np.array([len(values)])
    for decoder in (chimp_decode, chimp_decode.twin):
        out = np.zeros(len(values), np.uint64)
        assert len(values) == decoder(to_words(page), zero, end, count, width, ring, out)
        assert values.tolist() == out.tolist()


@given(hnp.arrays(np.int64, st.integers(1, 300)), st.booleans(), st.booleans())
@quick
def test_ts2diff_kernels_do_what_their_twins_do(values: np.ndarray, wide: bool, smooth: bool) -> None:
    size = 8 if wide else 4
    values = np.cumsum(values % 7) if smooth else values
    values = values if wide else values.astype(np.int32).astype(np.int64)
    words = [np.zeros(len(values) + 40, np.uint64) for _ in range(2)]
    sizes = [f(values, size, w) for f, w in zip((ts2diff_encode, ts2diff_encode.twin), words, strict=True)]
    assert sizes[0] == sizes[1]
    assert words[0].tolist() == words[1].tolist()
    page = np.frombuffer(bytes_of(words[0], sizes[0]), np.uint8)
    zero, end, count = np.zeros(1, np.int64), np.array([len(page)]), np.array([len(values)])
    for decoder in (ts2diff_decode, ts2diff_decode.twin):
        out = np.zeros(len(values), np.int64)
        assert len(values) == decoder(page, zero, end, count, size, out)
        assert (
            values.astype(np.int64 if wide else np.int32).tolist()
            == out.astype(np.int64 if wide else np.int32).tolist()
        )


@given(hnp.arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 150))), st.data(), st.booleans())
@quick
def test_the_rows_of_a_matrix_are_pages_of_their_own(values: np.ndarray, data: st.DataObject, wide: bool) -> None:
    type_ = DataType.INT64 if wide else DataType.INT32
    rows = values.astype(np.int64 if wide else np.int32)
    assert [encode(Encoding.TS_2DIFF, type_, row) for row in rows] == encode_rows(type_, rows)
    wanted = np.array([data.draw(st.booleans()) for _ in rows])
    made = []
    for run in (ts2diff_encode_rows, ts2diff_encode_rows.twin):
        words, sizes = np.zeros(rows.size + 20 * len(rows), np.uint64), np.zeros(len(rows), np.int64)
        count = run(rows.astype(np.int64).ravel(), wanted, rows.dtype.itemsize, words, sizes)
        made.append((count, sizes.tolist(), words[:count].tolist()))
    assert made[0] == made[1]


@pytest.mark.parametrize("width", range(1, 65))
@pytest.mark.parametrize("behind", [0, 1, 20])
def test_ts2diff_of_every_width_is_read_to_the_last_bit(width: int, behind: int) -> None:
    deltas = np.random.default_rng(width).integers(0, 2**width, 300, np.uint64, endpoint=False)
    deltas[[0, 150, 299]], deltas[[1, 151, 298]] = 0, 2**width - 1
    values = np.cumsum(deltas.view(np.int64))
    words = np.zeros(len(values) + 40, np.uint64)
    page = bytes_of(words, ts2diff_encode(values, 8, words))
    data, zero = np.frombuffer(page + b"\xff" * behind, np.uint8), np.zeros(1, np.int64)
    for decoder in (ts2diff_decode, ts2diff_decode.twin):
        out = np.zeros(300, np.int64)
        assert decoder(data, zero, np.array([len(page)]), np.array([300]), 8, out) == 300
        assert values.tolist() == out.tolist()


@given(st.lists(st.tuples(st.integers(0, 2**20 - 1), st.integers(1, 20)), min_size=1, max_size=40))
@quick
def test_rle_kernels_do_what_their_twins_do(runs: list[tuple[int, int]]) -> None:
    values = np.concatenate([np.full(n, v, np.int64) for v, n in runs])
    outs = [np.zeros(rle_bytes_max(len(values), 20), np.uint8) for _ in range(2)]
    sizes = [f(values, 20, o) for f, o in zip((rle_encode, rle_encode.twin), outs, strict=True)]
    assert outs[1][: sizes[1]].tobytes() == outs[0][: sizes[0]].tobytes()
    for decoder in (rle_decode, rle_decode.twin):
        back = np.zeros(len(values), np.int64)
        assert sizes[0] == decoder(outs[0][: sizes[0]], 20, 0, back)
        assert values.tolist() == back.tolist()


@given(hnp.arrays(np.int64, st.integers(0, 50)), st.sampled_from([32, 64]))
@quick
def test_varint_kernels_do_what_their_twins_do(values: np.ndarray, bits: int) -> None:
    values = values if bits == 64 else values.astype(np.int32).astype(np.int64)
    outs = [np.zeros(len(values) * 10, np.uint8) for _ in range(2)]
    sizes = [f(values, bits, o) for f, o in zip((varint_encode, varint_encode.twin), outs, strict=True)]
    assert outs[1][: sizes[1]].tobytes() == outs[0][: sizes[0]].tobytes()
    for decoder in (varint_decode, varint_decode.twin):
        back = np.zeros(len(values), np.int64)
        assert sizes[0] == decoder(outs[0], bits, back)
        assert values.tolist() == back.tolist()


@given(st.lists(st.binary(max_size=200), max_size=20))
@quick
def test_text_kernels_do_what_their_twins_do(words: list[bytes]) -> None:
    text = TextArray.of(words)
    outs = [np.zeros(len(text.data) + 5 * len(words), np.uint8) for _ in range(2)]
    sizes = [f(text.offsets, text.data, o) for f, o in zip((text_encode, text_encode.twin), outs, strict=True)]
    assert outs[1][: sizes[1]].tobytes() == outs[0][: sizes[0]].tobytes()
    for decoder in (text_decode, text_decode.twin):
        offsets, data = np.zeros(len(words) + 1, np.int32), np.zeros(len(outs[0]), np.uint8)
        assert sizes[0] == decoder(outs[0], offsets, data)
        assert words == TextArray(offsets, data).to_bytes()
