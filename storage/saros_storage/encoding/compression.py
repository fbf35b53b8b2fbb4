"""Compress and decompress pages; each compressor has the framing that TsFile uses. Pure: any thread.

SNAPPY raw block · LZ4 raw block, no size in front · GZIP a full stream · ZSTD one frame · LZMA2 an .xz container
"""

from __future__ import annotations

import lzma
import zlib
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from saros_storage.base.types import ByteArray, Compressor, Int64Array
from saros_storage.encoding.errors import DecodeError
from saros_storage.kernels.codecs.lz4 import lz4_decode

#: A fast level; the Java writer uses the highest level, which is ten times slower.
_ZSTD_LEVEL = 3
_GZIP_LEVEL = 6
#: Memory limit of an LZMA2 decompressor; data that the usual writers compress at their highest level needs 65 MiB.
_LZMA_BYTES_MAX = 1 << 28
#: zlib's window flag for "gzip or zlib header, detected automatically".
_ANY_HEADER = 47


class _Stream(Protocol):
    """A decompressor of zlib or lzma."""

    @property
    def eof(self) -> bool:
        """True once the end of the stream was read."""
        ...


@lru_cache
def _codec(compressor: Compressor) -> Any:
    import pyarrow as pa

    if compressor is Compressor.ZSTD:
        return pa.Codec("zstd", compression_level=_ZSTD_LEVEL)
    return pa.Codec({Compressor.SNAPPY: "snappy", Compressor.LZ4: "lz4_raw"}[compressor])


def compress(compressor: Compressor, data: bytes | memoryview) -> bytes:
    """Return the page's stored bytes."""
    if compressor is Compressor.UNCOMPRESSED:
        return bytes(data)
    if compressor is Compressor.GZIP:
        stream = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, 31)
        return stream.compress(data) + stream.flush()
    if compressor is Compressor.LZMA2:
        return lzma.compress(data)
    packed: bytes = _codec(compressor).compress(data, asbytes=True)
    return packed


def decompress(compressor: Compressor, data: memoryview, size: int) -> memoryview:
    """Return the page's `size` decompressed bytes. Never allocates more than that. Raises DecodeError."""
    if compressor is Compressor.UNCOMPRESSED:
        if len(data) != size:
            raise DecodeError(f"a page has {len(data)} bytes, not {size}")
        return data
    out = np.empty(size, np.uint8)
    decompress_into(compressor, data, out)
    return out.data


def decompress_into(compressor: Compressor, data: memoryview, out: ByteArray) -> None:
    """Fill `out` with the decompressed page, which must have exactly that size. Raises DecodeError."""
    try:
        size = _decompress_into(compressor, data, out)
    except (OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise DecodeError(f"{compressor.name} data is damaged: {error}") from error
    if size != len(out):
        raise DecodeError(f"{compressor.name} data holds {size} bytes, not {len(out)}")


def decompress_pages_into(
    compressor: Compressor, data: memoryview, offsets: Int64Array, sizes: Int64Array, ends: Int64Array, out: ByteArray
) -> None:
    """Fill `out` with decompressed pages: page i has `sizes[i]` bytes at `offsets[i]` and ends at `ends[i]` of `out`.

    The input of a page with an empty output is not read. Raises DecodeError.
    """
    if compressor is not Compressor.LZ4:
        start = 0
        for offset, size, end in zip(offsets.tolist(), sizes.tolist(), ends.tolist(), strict=True):
            if end > start:
                decompress_into(compressor, data[offset : offset + size], out[start:end])
            start = end
        return
    if lz4_decode(np.frombuffer(data, np.uint8), offsets, sizes, ends, out) < len(offsets):
        raise DecodeError("LZ4 data is damaged")


def _decompress_into(compressor: Compressor, data: memoryview, out: ByteArray) -> int:
    """Fill `out` if it has the decompressed size, and return the decompressed size.

    If `out` is too small, the result can be any number above `len(out)`.
    """
    if compressor in _BLOCKS:
        return _decode_block(compressor, data, out)
    if compressor is Compressor.UNCOMPRESSED:
        plain = data
    elif compressor is Compressor.GZIP:
        stream = zlib.decompressobj(_ANY_HEADER)
        plain = _checked_end(stream, stream.decompress(data, len(out) + 1), len(out))
    else:
        reader = lzma.LZMADecompressor(memlimit=_LZMA_BYTES_MAX)
        plain = _checked_end(reader, reader.decompress(data, len(out) + 1), len(out))
    if len(plain) == len(out):
        out[:] = np.frombuffer(plain, np.uint8)
    return len(plain)


#: The compressors whose data cramjam decodes: it writes into the given buffer, returns the size and releases the GIL.
_BLOCKS = frozenset({Compressor.SNAPPY, Compressor.LZ4, Compressor.ZSTD})


def _decode_block(compressor: Compressor, data: memoryview, out: ByteArray) -> int:
    import cramjam

    decode: Any = cramjam.lz4.decompress_block_into
    if compressor is not Compressor.LZ4:
        decode = cramjam.snappy.decompress_raw_into if compressor is Compressor.SNAPPY else cramjam.zstd.decompress_into
    try:
        return int(decode(data, out))
    except cramjam.DecompressionError as error:
        raise DecodeError(f"{compressor.name} data is damaged: {error}") from error


def _checked_end(stream: _Stream, result: bytes, size: int) -> memoryview:
    """Return `result`. Raises DecodeError unless the stream was read to its end, where its checksum is verified."""
    if not stream.eof:
        raise DecodeError(f"a compressed stream does not end after {size} bytes")
    return memoryview(result)
