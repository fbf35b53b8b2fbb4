"""Decoders of encodings that Saros reads in files of other writers and never writes, one page at a time.

    ZIGZAG                    uvar bytes | uvar count | ZigZag integers
    SPRINTZ, RLBE             see their kernels; a SPRINTZ tail is RLE (integers) or GORILLA (FLOAT)
    RLE of floats             uvar m | integers: round(value * 10^m), so the writer has already lost digits
    TS_2DIFF of floats        as for RLE of floats, with an m for which `scaled` cannot divide exactly

The two Apache writers differ on SPRINTZ of DOUBLE and on RLBE of FLOAT and DOUBLE. These combinations are not read,
since a file does not name its writer. Pages of scaled floats that contain unscaled values are not read either. Pure.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from saros_storage.base.types import FLOATING_TYPES, ByteArray, DataType, Encoding, Int64Array, NumericArray
from saros_storage.encoding.errors import DecodeError, UnsupportedEncoding
from saros_storage.encoding.primitives import PageDecoder, read_rle, read_uvar, read_varints
from saros_storage.kernels.codecs.bit_reader import to_words
from saros_storage.kernels.codecs.gorilla import gorilla_decode
from saros_storage.kernels.codecs.rlbe import rlbe_decode
from saros_storage.kernels.codecs.sprintz import sprintz_decode
from saros_storage.kernels.codecs.ts2diff import ts2diff_decode

#: An `m` of at least this value marks a page that contains unscaled values.
_UNSCALED = 2_147_483_646
#: The exponent of the largest power of ten that a double can represent.
_DIGITS_MAX = 308
_TAIL = 0x80


def foreign_decoder(encoding: Encoding, type_: DataType) -> PageDecoder:
    """Return the decoder of a page of fixed-width values; raises UnsupportedEncoding."""
    if type_ in FLOATING_TYPES and encoding in (Encoding.TS_2DIFF, Encoding.RLE):
        return partial(_scaled, encoding, type_)
    decoder = _DECODERS.get((encoding, type_))
    if decoder is None:
        raise UnsupportedEncoding(encoding, type_)
    return decoder


def _zigzag(data: ByteArray, out: NumericArray) -> None:
    _, start = read_uvar(data, 0)
    count, start = read_uvar(data, start)
    if count < len(out):
        raise DecodeError(f"a ZIGZAG page holds {count} values, not {len(out)}")
    read_varints(data[start:], out.dtype.itemsize * 8, out)


def _rlbe(data: ByteArray, out: NumericArray) -> None:
    values = np.empty(len(out), np.int64)
    if rlbe_decode(to_words(data), len(data), out.dtype.itemsize * 8, values) < 0:
        raise DecodeError("an RLBE page is damaged")
    out[:] = values


def _sprintz(data: ByteArray, out: NumericArray) -> None:
    width = out.dtype.itemsize * 8
    values, filled = np.empty(len(out), np.int64), np.zeros(1, np.int64)
    position = sprintz_decode(data, width, int(out.dtype == np.int32), values, filled)
    if position < 0:
        raise DecodeError("a SPRINTZ page is damaged")
    done = int(filled[0])
    if done < len(out):
        held = int(data[position]) - _TAIL
        if held < len(out) - done:
            raise DecodeError(f"a SPRINTZ page holds {done + held} values, not {len(out)}")
        values[done:] = _sprintz_tail(data[position + 1 :], out, len(out) - done)
    out.view(f"i{out.dtype.itemsize}")[:] = values.astype(f"i{out.dtype.itemsize}")


def _sprintz_tail(data: ByteArray, out: NumericArray, count: int) -> Int64Array:
    if out.dtype.kind == "i":
        return read_rle(data, out.dtype.itemsize * 8, count)
    patterns = np.empty(count, np.uint64)
    page = np.array((0, len(data), count))
    if gorilla_decode(to_words(data), page[:1], page[1:2], page[2:], 32, 5, patterns) < 0:
        raise DecodeError("a SPRINTZ page's tail is damaged")
    return patterns.view(np.int64)


def _scaled(encoding: Encoding, type_: DataType, data: ByteArray, out: NumericArray) -> None:
    digits, start = read_uvar(data, 0)
    if digits >= _UNSCALED:
        raise UnsupportedEncoding(encoding, type_)
    if digits > _DIGITS_MAX:
        raise DecodeError(f"{encoding.name} of {type_.name} with {digits} digits")
    size = out.dtype.itemsize
    if encoding is Encoding.RLE:
        values = read_rle(data[start:], size * 8, len(out))
    else:
        values = _differences(data[start:], size, len(out))
    out[:] = values.astype(f"i{size}") / 10.0**digits


def _differences(data: ByteArray, size: int, count: int) -> Int64Array:
    values = np.empty(count, np.int64)
    page = np.array((0, len(data), count))
    if ts2diff_decode(data, page[:1], page[1:2], page[2:], size, values) < 0:
        raise DecodeError("a TS_2DIFF page is damaged")
    return values


_DECODERS: dict[tuple[Encoding, DataType], PageDecoder] = {
    (Encoding.ZIGZAG, DataType.INT32): _zigzag,
    (Encoding.ZIGZAG, DataType.INT64): _zigzag,
    (Encoding.SPRINTZ, DataType.INT32): _sprintz,
    (Encoding.SPRINTZ, DataType.INT64): _sprintz,
    (Encoding.SPRINTZ, DataType.FLOAT): _sprintz,
    (Encoding.RLBE, DataType.INT32): _rlbe,
    (Encoding.RLBE, DataType.INT64): _rlbe,
    (Encoding.RLBE, DataType.DATE): _rlbe,
    (Encoding.RLBE, DataType.TIMESTAMP): _rlbe,
}
