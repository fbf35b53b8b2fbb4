"""Page compression, in the framings that TsFile uses (tsfile-format section 9). Pure: any thread.

SNAPPY raw block · LZ4 raw block, no size in front · GZIP a full stream · ZSTD one frame · LZMA2 an .xz container
"""

from __future__ import annotations

import lzma
import zlib
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from saros_storage.encoding.errors import DecodeError
from saros_storage.kernels.lz4 import lz4_size
from saros_storage.types import Compressor

#: A level that costs little time; Java's writer uses the highest, at a tenth of the speed.
_ZSTD_LEVEL = 3
_GZIP_LEVEL = 6
#: What a stream of LZMA2 may ask for; the highest level of the usual writers takes 65 MiB.
_LZMA_BYTES_MAX = 1 << 28
#: zlib's window flag for "gzip or zlib header, whichever is there".
_ANY_HEADER = 47


class _Stream(Protocol):
    """A decompressor of zlib or lzma."""

    @property
    def eof(self) -> bool:
        """Whether the stream's end was read."""
        ...


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
    """The page's `size` bytes; no more than that is ever made. Raises DecodeError."""
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
        return _whole(stream, stream.decompress(data, size + 1), size)
    if compressor is Compressor.LZMA2:
        reader = lzma.LZMADecompressor(memlimit=_LZMA_BYTES_MAX)
        return _whole(reader, reader.decompress(data, size + 1), size)
    held = size
    if compressor is Compressor.SNAPPY:
        held = _snappy_size(data)
    elif compressor is Compressor.LZ4:  # the library would leave the rest as it found it
        held = lz4_size(np.frombuffer(data, np.uint8))
    if held != size:
        raise DecodeError(f"{compressor.name} data holds {held} bytes, not {size}")
    # Arrow shows its bytes as signed ones.
    return memoryview(_codec(compressor).decompress(data, decompressed_size=size)).cast("B")


def _whole(stream: _Stream, result: bytes, size: int) -> memoryview:
    """The result, if the stream came to its end, where its checksum is."""
    if not stream.eof:
        raise DecodeError(f"a compressed stream does not end after {size} bytes")
    return memoryview(result)


def _snappy_size(data: memoryview) -> int:
    """The size that a raw block begins with; -1 if it does not."""
    size = 0
    for index, byte in enumerate(data[:5]):
        size |= (byte & 127) << (7 * index)
        if byte < 128:
            return size
    return -1
