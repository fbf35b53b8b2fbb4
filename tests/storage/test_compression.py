from __future__ import annotations

import gzip
import lzma

import pytest

from saros_storage.base.types import Compressor
from saros_storage.encoding import DecodeError
from saros_storage.encoding.compression import compress, decompress

DATA = b"saros " * 500


@pytest.mark.parametrize("compressor", Compressor, ids=lambda c: c.name)
@pytest.mark.parametrize("data", [DATA, b"", b"x"], ids=len)
def test_what_is_compressed_comes_back(compressor: Compressor, data: bytes) -> None:
    assert data == bytes(decompress(compressor, memoryview(compress(compressor, data)), len(data)))


@pytest.mark.parametrize(
    "compressor", [c for c in Compressor if c is not Compressor.UNCOMPRESSED], ids=lambda c: c.name
)
def test_a_wrong_size_or_damage_is_an_error(compressor: Compressor) -> None:
    packed = compress(compressor, DATA)
    for data, size in [(packed, len(DATA) - 1), (b"\xff\xfe\xfd" * 9, 100), (b"", 10)]:
        with pytest.raises(DecodeError):
            decompress(compressor, memoryview(data), size)
    if compressor is not Compressor.LZ4:
        with pytest.raises(DecodeError):
            decompress(compressor, memoryview(packed), len(DATA) + 1)


def test_gzip_and_lzma2_use_the_common_containers() -> None:
    assert DATA == gzip.decompress(compress(Compressor.GZIP, DATA))
    assert DATA == lzma.decompress(compress(Compressor.LZMA2, DATA), format=lzma.FORMAT_XZ)
