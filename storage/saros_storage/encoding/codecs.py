"""Encode and decode pages with kernels; the package's docstring lists the encodings of each type."""

from __future__ import annotations

from functools import lru_cache
from operator import le

import numpy as np

from saros_storage.base.arrow import text_from_arrow, text_to_arrow
from saros_storage.base.block import TextArray, Values
from saros_storage.base.types import (
    FLOATING_TYPES,
    NUMERIC_TYPES,
    NUMPY_DTYPE,
    STRING_TYPES,
    BoolArray,
    ByteArray,
    DataType,
    Encoding,
    Int64Array,
    NumericArray,
)
from saros_storage.encoding.compat_decoders import foreign_decoder
from saros_storage.encoding.errors import DecodeError, UnsupportedEncoding
from saros_storage.encoding.primitives import PageDecoder, read_rle, read_uvar, read_varints, uvar
from saros_storage.encoding.scaled import EXACT_POWERS, scaled, scaled_rows
from saros_storage.kernels.codecs.bit_reader import Stream, UInt64Array, bytes_of
from saros_storage.kernels.codecs.chimp import RING_SIZE, TABLE_SIZE, chimp_decode, chimp_encode
from saros_storage.kernels.codecs.gorilla import gorilla_decode, gorilla_encode, gorilla_encode_rows
from saros_storage.kernels.codecs.points import plain_decode
from saros_storage.kernels.codecs.rle import rle_bytes_max, rle_encode
from saros_storage.kernels.codecs.ts2diff import (
    BLOCK_DELTAS,
    scaled_decode,
    ts2diff_decode,
    ts2diff_encode,
    ts2diff_encode_rows,
)
from saros_storage.kernels.codecs.varint import text_decode, text_encode, varint_encode

#: Maximum size of a page's text after a dictionary is expanded.
TEXT_BYTES_MAX = 1 << 30
_INT32 = frozenset({DataType.INT32, DataType.DATE})
_INT64 = frozenset({DataType.INT64, DataType.TIMESTAMP})
_INTEGERS = _INT32 | _INT64
#: The types that have a TS_2DIFF form, and that `encode_rows` accepts.
MATRIX_TYPES = _INTEGERS | FLOATING_TYPES
_TURNED = _INT64 | FLOATING_TYPES
_GORILLA = _INTEGERS | FLOATING_TYPES
#: End marks of GORILLA and CHIMP pages, as bit patterns.
_SENTINELS = {
    DataType.INT32: 1 << 31,
    DataType.DATE: 1 << 31,
    DataType.INT64: 1 << 63,
    DataType.TIMESTAMP: 1 << 63,
    DataType.FLOAT: 0x7FC00000,
    DataType.DOUBLE: 0x7FF8000000000000,
}
_WRITABLE: dict[Encoding, frozenset[DataType]] = {
    Encoding.PLAIN: frozenset(DataType),
    Encoding.RLE: frozenset({DataType.BOOLEAN, *_INT32}),
    Encoding.TS_2DIFF: _INTEGERS,
    Encoding.GORILLA: _GORILLA,
    Encoding.CHIMP: NUMERIC_TYPES,
    Encoding.DICTIONARY: STRING_TYPES,
}


@lru_cache
def encodings_for(type_: DataType) -> frozenset[Encoding]:
    """Return the encodings in which `encode` can write any values of the type."""
    return frozenset(encoding for encoding, types in _WRITABLE.items() if type_ in types)


# ---------------------------------------------------------------------------------------------- encoding


def encode(encoding: Encoding, type_: DataType, values: Values) -> bytes:
    """Encode one page of values, which contains no nulls.

    Raises UnsupportedEncoding if the type has no such encoding, and for FLOAT or DOUBLE values that TS_2DIFF would not
    restore bit for bit.
    """
    if encoding is Encoding.TS_2DIFF and type_ in FLOATING_TYPES:
        assert isinstance(values, np.ndarray)
        page = encode_scaled(type_, values)
        if page is None:
            raise UnsupportedEncoding(encoding, type_)
        return page
    if type_ not in _WRITABLE.get(encoding, ()):
        raise UnsupportedEncoding(encoding, type_)
    if isinstance(values, TextArray):
        return _encode_text(values) if encoding is Encoding.PLAIN else _encode_dictionary(values)
    if encoding is Encoding.PLAIN:
        return _encode_plain(type_, values)
    if encoding is Encoding.RLE:
        return _encode_rle(values.astype(np.int64))
    if encoding is Encoding.TS_2DIFF:
        return _encode_ts2diff(np.ascontiguousarray(values, np.int64), 4 if type_ in _INT32 else 8)
    return _encode_xor(encoding, type_, values)


def encode_scaled(type_: DataType, values: NumericArray) -> bytes | None:
    """Encode one page of FLOAT or DOUBLE as TS_2DIFF; None if the values would not be restored bit for bit."""
    found = scaled(type_, values)
    if found is None:
        return None
    digits, whole = found
    return uvar(digits) + _encode_ts2diff(whole, values.dtype.itemsize)


def encode_rows(type_: DataType, values: NumericArray) -> list[bytes | None]:
    """Encode each row of a matrix (at least one value) as a page of TS_2DIFF.

    A row that would not be restored bit for bit becomes None in the result. Raises UnsupportedEncoding for types
    without a TS_2DIFF form.
    """
    if type_ in FLOATING_TYPES:
        digits, whole = scaled_rows(type_, values)
        heads = [uvar(m) if m >= 0 else None for m in digits.tolist()]
        wanted = digits >= 0
    elif type_ in _INTEGERS:
        whole, heads = np.ascontiguousarray(values, np.int64), [b""] * len(values)
        wanted = np.ones(len(values), np.bool_)
    else:
        raise UnsupportedEncoding(Encoding.TS_2DIFF, type_)
    pages = _ts2diff_rows(whole, wanted, values.dtype.itemsize)
    return [None if head is None else head + page for head, page in zip(heads, pages, strict=True)]


def encode_plain_rows(values: NumericArray) -> list[bytes]:
    """Encode each row of a matrix of floating-point numbers as a page of PLAIN."""
    data, size = _encode_plain(DataType.DOUBLE, values), values.shape[1] * values.dtype.itemsize
    return [data[start : start + size] for start in range(0, len(data), size)]


def encode_matrix(encoding: Encoding, type_: DataType, values: NumericArray) -> list[bytes | None]:
    """Encode each row of a matrix (at least one value) like `encode`; for most encodings, one kernel encodes all rows.

    A row that TS_2DIFF would not restore bit for bit becomes None in the result. Raises UnsupportedEncoding.
    """
    if encoding is Encoding.TS_2DIFF:
        return encode_rows(type_, values)
    if encoding is Encoding.PLAIN and type_ not in _INT32:
        return [*encode_plain_rows(values)]
    if encoding is Encoding.GORILLA and type_ in _GORILLA:
        return [*_gorilla_rows(type_, values)]
    return [encode(encoding, type_, row) for row in values]


def encode_times(times: Int64Array) -> bytes:
    """Encode one page of times as TS_2DIFF of INT64, the only encoding that readers expect."""
    return _encode_ts2diff(np.ascontiguousarray(times), 8)


def encode_time_rows(times: Int64Array) -> list[bytes]:
    """Encode each row of a matrix of times (at least one column) like `encode_times`."""
    return _ts2diff_rows(times, np.ones(len(times), np.bool_), 8)


def _encode_plain(type_: DataType, values: NumericArray) -> bytes:
    if type_ is DataType.BOOLEAN:
        return values.astype(np.uint8).tobytes()
    if type_ in _INT32:
        return _varints(values.astype(np.int64))
    return values.astype(values.dtype.newbyteorder(">")).tobytes()


def _varints(values: Int64Array) -> bytes:
    out = np.empty(len(values) * 5, np.uint8)
    return out[: varint_encode(values, 32, out)].tobytes()


def _encode_text(values: TextArray) -> bytes:
    size = int(values.offsets[-1]) - int(values.offsets[0])
    out = np.empty(size + 5 * len(values), np.uint8)
    return out[: text_encode(np.ascontiguousarray(values.offsets), values.data, out)].tobytes()


def _encode_dictionary(values: TextArray) -> bytes:
    """Encode the distinct texts in order of first use, then the number of each value's text as RLE."""
    indexed = text_to_arrow(values, binary=True).dictionary_encode()
    words = text_from_arrow(indexed.dictionary)
    head = _varints(np.array([len(words)]))
    return head + _encode_text(words) + _encode_rle(indexed.indices.to_numpy().astype(np.int64))


def _encode_rle(values: Int64Array) -> bytes:
    patterns = values & 0xFFFFFFFF
    width = max(int(patterns.max()).bit_length(), 1) if len(patterns) else 1
    out = np.zeros(rle_bytes_max(len(patterns), width), np.uint8)
    size = rle_encode(patterns, width, out)
    return uvar(size + 1) + bytes((width,)) + out[:size].tobytes()


def _encode_ts2diff(values: Int64Array, size: int) -> bytes:
    out = np.empty(_ts2diff_words_max(len(values), size), np.uint64)
    return bytes_of(out, ts2diff_encode(values, size, out))


def _ts2diff_rows(values: Int64Array, wanted: BoolArray, size: int) -> list[bytes]:
    """Encode each wanted row of a matrix as a page of values of `size` bytes; other rows become empty pages."""
    sizes = np.empty(len(values), np.int64)
    out = np.empty(len(values) * _ts2diff_words_max(values.shape[1], size), np.uint64)
    words = ts2diff_encode_rows(values.ravel(), wanted, size, out, sizes)
    return _pages_at_words(bytes_of(out, words * 8), sizes)


def _pages_at_words(data: bytes, sizes: Int64Array) -> list[bytes]:
    """Cut the output of a kernel into pages, each of which starts at a word."""
    pages: list[bytes] = []
    start = 0
    for length in sizes.tolist():
        pages.append(data[start : start + length])
        start += length + 7 & -8
    return pages


def _ts2diff_words_max(count: int, size: int) -> int:
    """Return the largest number of 64-bit words in a page of `count` values of `size` bytes."""
    return count * size // 8 + (count // (BLOCK_DELTAS + 1) + 1) * 4 + 2


def _gorilla_rows(type_: DataType, values: NumericArray) -> list[bytes]:
    width = values.dtype.itemsize * 8
    patterns = _patterns(type_, values)
    sizes = np.empty(len(values), np.int64)
    out = np.empty(len(values) * _xor_words_max(patterns.shape[1], width), np.uint64)
    words = gorilla_encode_rows(patterns.ravel(), width, 5 if width == 32 else 6, out, sizes)
    return _pages_at_words(bytes_of(out, words * 8), sizes)


def _patterns(type_: DataType, values: NumericArray) -> UInt64Array:
    """Return the bit patterns of the values, with a sentinel after the last one of each row."""
    patterns = np.empty((*values.shape[:-1], values.shape[-1] + 1), np.uint64)
    patterns[..., :-1] = np.ascontiguousarray(values).view(np.uint32 if values.dtype.itemsize == 4 else np.uint64)
    patterns[..., -1] = _SENTINELS[type_]
    return patterns


def _xor_words_max(count: int, width: int) -> int:
    """Return the largest number of 64-bit words in a page of `count` values, sentinel included."""
    return count * (width + 24) // 64 + 3


def _encode_xor(encoding: Encoding, type_: DataType, values: NumericArray) -> bytes:
    """Encode by GORILLA or CHIMP, both of which end with a sentinel value and a spare byte."""
    width = values.dtype.itemsize * 8
    patterns = _patterns(type_, values)
    out = np.empty(_xor_words_max(len(patterns), width), np.uint64)
    if encoding is Encoding.CHIMP:
        bits = chimp_encode(patterns, width, np.empty(TABLE_SIZE, np.int32), out)
    else:
        bits = gorilla_encode(patterns, width, 5 if width == 32 else 6, out)
    return bytes_of(out, bits // 8 + 1)  # always one more byte: Apache's readers access it


# ---------------------------------------------------------------------------------------------- decoding


def decode(encoding: Encoding, type_: DataType, data: memoryview, count: int) -> Values:
    """Decode `count` values of one page. Raises DecodeError, UnsupportedEncoding."""
    if type_.is_text:
        if count == 0:
            return TextArray.of(())
        if encoding is Encoding.PLAIN:
            return _decode_text(np.frombuffer(data, np.uint8), count)[0]
        if encoding is Encoding.DICTIONARY and type_ is not DataType.BLOB:
            return _decode_dictionary(np.frombuffer(data, np.uint8), count)
        raise UnsupportedEncoding(encoding, type_)
    out = np.empty(count, NUMPY_DTYPE[type_])
    decode_into(encoding, type_, data, out)
    return out


def decode_into(encoding: Encoding, type_: DataType, data: memoryview, out: NumericArray) -> None:
    """Fill `out` (contiguous, of the type's dtype) with the values of one page of a fixed-width type."""
    page = np.array((0, len(data), len(out)))
    stream = Stream(np.frombuffer(data, np.uint8))
    decode_pages_into(encoding, type_, stream, page[:1], page[1:2], page[2:], out)


def decode_times_into(data: memoryview, out: Int64Array) -> None:
    """Fill `out` with one page of times."""
    decode_into(Encoding.TS_2DIFF, DataType.TIMESTAMP, data, out)


def decode_pages_into(
    encoding: Encoding,
    type_: DataType,
    stream: Stream,
    starts: Int64Array,
    ends: Int64Array,
    counts: Int64Array,
    out: NumericArray,
) -> None:
    """Fill `out` with pages [starts[i], ends[i]) of counts[i] values, one after the other.

    `out` is contiguous, of the type's dtype, and as long as the counts' sum. Raises DecodeError, UnsupportedEncoding.
    """
    if len(out) == 0:
        return
    _check_bounds(starts, ends, counts, len(out), len(stream.data))
    if encoding in (Encoding.GORILLA, Encoding.CHIMP) and type_ in _GORILLA:
        _decode_xor(encoding, stream, starts, ends, counts, out)
    elif encoding is Encoding.TS_2DIFF and type_ in _INTEGERS:
        _decode_ts2diff(stream, starts, ends, counts, out)
    elif encoding is Encoding.TS_2DIFF and type_ in FLOATING_TYPES:
        _decode_scaled(type_, stream, starts, ends, counts, out)
    elif is_byte_swapped(encoding, type_):
        if plain_decode(stream.data, starts, ends, counts, out.dtype.itemsize, out.view(np.uint8)) < 0:
            raise DecodeError(f"{len(out)} PLAIN values need {out.nbytes} bytes")
    else:
        _decode_each(_page_decoder(encoding, type_), stream.data, starts, ends, counts, out)


def is_byte_swapped(encoding: Encoding, type_: DataType) -> bool:
    """Return whether the stored values are fixed-width and differ from memory only in being big-endian."""
    return encoding is Encoding.PLAIN and type_ in _TURNED


def is_delta_encoded(encoding: Encoding, type_: DataType) -> bool:
    """Return whether the encoding stores integer deltas (after a decimal scale for floating-point types)."""
    return encoding is Encoding.TS_2DIFF and type_ in _INTEGERS | FLOATING_TYPES


def _check_bounds(starts: Int64Array, ends: Int64Array, counts: Int64Array, rows: int, size: int) -> None:
    """Assert the bounds that kernels rely on."""
    begins, stops, lengths = starts.tolist(), ends.tolist(), counts.tolist()
    assert min(begins) >= 0
    assert max(stops) <= size
    assert min(lengths) >= 0
    assert sum(lengths) == rows
    assert all(map(le, begins, stops))


def _decode_xor(
    encoding: Encoding,
    stream: Stream,
    starts: Int64Array,
    ends: Int64Array,
    counts: Int64Array,
    out: NumericArray,
) -> None:
    wide = out.dtype.itemsize == 8
    patterns: UInt64Array = out.view(np.uint64) if wide else np.empty(len(out), np.uint64)
    width, field_bits = (64, 6) if wide else (32, 5)
    if encoding is Encoding.CHIMP:
        ring = np.empty(RING_SIZE, np.uint64)
        done = chimp_decode(stream.words, starts, ends, counts, width, ring, patterns)
    else:
        done = gorilla_decode(stream.words, starts, ends, counts, width, field_bits, patterns)
    if done < 0:
        raise DecodeError(f"a {encoding.name} page is damaged")
    if not wide:
        out[:] = patterns.astype(np.uint32).view(out.dtype)


def _decode_ts2diff(
    stream: Stream, starts: Int64Array, ends: Int64Array, counts: Int64Array, out: NumericArray
) -> None:
    size = out.dtype.itemsize
    values: Int64Array = out if size == 8 else np.empty(len(out), np.int64)
    if ts2diff_decode(stream.data, starts, ends, counts, size, values) < 0:
        raise DecodeError("a TS_2DIFF page is damaged")
    if size < 8:
        out[:] = values


def _decode_scaled(
    type_: DataType, stream: Stream, starts: Int64Array, ends: Int64Array, counts: Int64Array, out: NumericArray
) -> None:
    if (starts == ends).any():
        raise DecodeError("a TS_2DIFF page is empty")
    digits = stream.data[starts]
    if (digits >= len(EXACT_POWERS)).any():
        _decode_each(foreign_decoder(Encoding.TS_2DIFF, type_), stream.data, starts, ends, counts, out)
        return
    whole, values = np.empty(counts.max(initial=0), np.int64), out.view(np.uint8)
    if scaled_decode(stream.data, starts, ends, counts, out.dtype.itemsize, EXACT_POWERS, whole, values) < 0:
        raise DecodeError("a TS_2DIFF page is damaged")


def _decode_each(
    decoder: PageDecoder, data: ByteArray, starts: Int64Array, ends: Int64Array, counts: Int64Array, out: NumericArray
) -> None:
    filled = 0
    for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
        decoder(data[start:end], out[filled : filled + count])
        filled += count


def _page_decoder(encoding: Encoding, type_: DataType) -> PageDecoder:
    if encoding is Encoding.PLAIN:
        return _plain_varints if type_ in _INT32 else _plain_booleans
    if encoding is Encoding.RLE and type_ in _INTEGERS | {DataType.BOOLEAN}:
        return _rle_wide if type_ in _INT64 else _rle
    return foreign_decoder(encoding, type_)


def _plain_booleans(data: ByteArray, out: NumericArray) -> None:
    if len(data) < len(out):
        raise DecodeError(f"{len(out)} PLAIN values need as many bytes, not {len(data)}")
    np.not_equal(data[: len(out)], 0, out=out)


def _plain_varints(data: ByteArray, out: NumericArray) -> None:
    read_varints(data, 32, out)


def _rle(data: ByteArray, out: NumericArray) -> None:
    out[:] = read_rle(data, 32, len(out)).astype(np.int32)


def _rle_wide(data: ByteArray, out: NumericArray) -> None:
    out[:] = read_rle(data, 64, len(out))


def _decode_text(data: ByteArray, count: int) -> tuple[TextArray, int]:
    if count > len(data):
        raise DecodeError(f"{count} texts do not fit in {len(data)} bytes")
    offsets = np.zeros(count + 1, np.int32)
    out = np.empty(len(data), np.uint8)
    position = text_decode(data, offsets, out)
    if position < 0:
        raise DecodeError("texts are damaged")
    return TextArray(offsets, out[: offsets[-1]]), position


def _decode_dictionary(data: ByteArray, count: int) -> TextArray:
    raw, start = read_uvar(data, 0)
    if raw % 2:
        raise DecodeError("a dictionary has a negative size")
    words, size = _decode_text(data[start:], raw // 2)
    indices = read_rle(data[start + size :], 32, count)
    if count and (indices.min() < 0 or indices.max() >= len(words)):
        raise DecodeError("a dictionary page refers to a missing word")
    total = int(np.diff(words.offsets)[indices].sum(dtype=np.int64)) if count else 0
    if total > TEXT_BYTES_MAX:
        raise DecodeError(f"a dictionary page grows to {total} bytes; at most {TEXT_BYTES_MAX} are read")
    return words.take(indices)
