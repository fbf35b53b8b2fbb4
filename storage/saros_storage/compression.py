"""Page compression, in the framings that TsFile uses (tsfile-format section 9). Pure: any thread.

SNAPPY raw block · LZ4 raw block, no size in front · GZIP a full stream · ZSTD one frame · LZMA2 an .xz container
"""

from __future__ import annotations

import lzma
import zlib
from functools import lru_cache
from typing import Any

from saros_storage.encoding.errors import DecodeError
from saros_storage.types import Compressor

#: A level that costs little time; Java's writer uses the highest, at a tenth of the speed.
_ZSTD_LEVEL = 3
_GZIP_LEVEL = 6
#: zlib's window flag for "gzip or zlib header, whichever is there".
_ANY_HEADER = 47


@lru_cache
def _codec(compressor: Compressor) -> Any:
    import pyarrow as pa

    if compressor is Compressor.ZSTD:
        return pa.Codec("zstd", compression_level=_ZSTD_LEVEL)
    return pa.Codec({Compressor.SNAPPY: "snappy", Compressor.LZ4: "lz4_raw"}[compressor])


def compress(compressor: Compressor, data: bytes | memoryview) -> bytes:
    """The page's bytes on disk."""
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
    """The page's `size` bytes; no more than that is ever made. Raises DecodeError.

    An LZ4 block does not know its size: one that is shorter than `size` is filled up with anything.
    """
    try:
        result = _decompress(compressor, data, size)
    except (OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise DecodeError(f"{compressor.name} data is damaged: {error}") from error
    if len(result) != size:
        raise DecodeError(f"{compressor.name} data has {len(result)} bytes, not {size}")
    return result


def _decompress(compressor: Compressor, data: memoryview, size: int) -> memoryview:
    if compressor is Compressor.UNCOMPRESSED:
        return data
    if compressor is Compressor.GZIP:
        stream = zlib.decompressobj(_ANY_HEADER)
        return memoryview(stream.decompress(data, size + 1))
    if compressor is Compressor.LZMA2:
        return memoryview(lzma.LZMADecompressor(memlimit=1 << 30).decompress(data, size + 1))
    if compressor is Compressor.SNAPPY and _snappy_size(data) != size:
        raise DecodeError(f"SNAPPY data holds {_snappy_size(data)} bytes, not {size}")
    return memoryview(_codec(compressor).decompress(data, decompressed_size=size))


def _snappy_size(data: memoryview) -> int:
    """The size that a raw block begins with; -1 if it does not."""
    size = 0
    for index, byte in enumerate(data[:5]):
        size |= (byte & 127) << (7 * index)
        if byte < 128:
            return size
    return -1
