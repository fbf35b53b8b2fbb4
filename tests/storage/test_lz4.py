"""LZ4 blocks, sound and damaged: the kernel writes the same bytes as its twin, and no bytes outside of the result.

The twin (the kernel's version in Python) calls the decoder of the common library.
"""

from __future__ import annotations

import cramjam
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_storage.base.types import Compressor
from saros_storage.encoding import DecodeError
from saros_storage.encoding.compression import decompress_pages_into
from saros_storage.kernels.codecs.lz4 import lz4_decode

quick = settings(max_examples=200, deadline=None)
#: The value of the bytes before, between and after blocks, which must not change.
GUARD = 0xA5
#: Texts with near and far, short and long repeats, and noise in between.
texts = st.lists(
    st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 60) | st.integers(1, 3)), max_size=12
).map(lambda parts: b"".join(text * times for text, times in parts))


def packed(text: bytes) -> bytes:
    return bytes(cramjam.lz4.compress_block(text, store_size=False))


def decoded(blocks: list[bytes], sizes: list[int], decode=lz4_decode) -> tuple[int, list[bytes]]:
    """Decode blocks; return the number of complete blocks and all bytes. Check that no byte around them is written."""
    data = np.frombuffer(b"".join(b"\xff" + block for block in blocks) + b"\xff", np.uint8)
    lengths = np.array([len(block) for block in blocks], np.int64)
    offsets = np.cumsum(lengths + 1) - lengths
    ends = np.cumsum(np.array(sizes, np.int64))
    room = np.full(int(ends[-1]) + 128, GUARD, np.uint8)
    whole = decode(data, offsets, lengths, ends, room[64:-64])
    assert {GUARD} == set(room[:64].tolist()) | set(room[-64:].tolist())
    return whole, [room[64 + end - size : 64 + end].tobytes() for end, size in zip(ends.tolist(), sizes, strict=True)]


@pytest.mark.slow
@given(st.lists(texts.filter(bool), min_size=1, max_size=4))
@quick
def test_blocks_come_out_as_they_went_in(blocks: list[bytes]) -> None:
    for decode in (lz4_decode, lz4_decode.twin):
        found = decoded([packed(b) for b in blocks], [len(b) for b in blocks], decode)
        assert (len(blocks), blocks) == found


@pytest.mark.parametrize("distance", [*range(1, 40), 255, 256, 300, 65_535])
@pytest.mark.parametrize("count", [4, 18, 19, 31, 32, 33, 63, 64, 100, 5_000])
def test_matches_of_each_length_and_distance(distance: int, count: int) -> None:
    """Test blocks of literals, a match and five literals, made by hand since the library's encoder makes only some."""
    head = bytes(n * 7 % 251 for n in range(distance))
    block = sequence(head, distance, count) + sequence(b"12345", 0, 0)
    text = bytearray(head)
    for _ in range(count):
        text.append(text[-distance])
    expected = bytes(text) + b"12345"
    assert (1, [expected]) == decoded([block], [len(expected)])


def sequence(literals: bytes, distance: int, count: int) -> bytes:
    """Return a sequence of literals and a match. With `count` 0 it has no match, and is the last of its block."""
    match = max(count - 4, 0)
    token = bytes((min(len(literals), 15) << 4 | min(match, 15),))
    found = token + more(len(literals)) + literals
    return found + distance.to_bytes(2, "little") + more(match) if count else found


def more(length: int) -> bytes:
    return b"" if length < 15 else b"\xff" * ((length - 15) // 255) + bytes(((length - 15) % 255,))


@pytest.mark.slow
@given(texts.filter(bool), st.data())
@quick
def test_what_is_damaged_is_told_and_nothing_else_is_touched(text: bytes, chance: st.DataObject) -> None:
    block = bytearray(packed(text))
    for _ in range(chance.draw(st.integers(1, 3))):
        block[chance.draw(st.integers(0, len(block) - 1))] = chance.draw(st.integers(0, 255))
    cut = chance.draw(st.integers(0, len(block)))
    for damaged in (bytes(block), bytes(block[:cut])):
        whole, (found,) = decoded([damaged], [len(text)])
        known, (expected,) = decoded([damaged], [len(text)], lz4_decode.twin)
        # The library accepts a distance of 0, which the format forbids.
        assert known == whole or b"\0\0" in damaged
        if whole:
            assert (1, expected) == (known, found)


@pytest.mark.parametrize("size", [99, 101])
def test_a_block_of_another_size_is_damaged(size: int) -> None:
    text = b"0123456789" * 10
    assert 1 == decoded([packed(text), packed(text), packed(text)], [100, size, 100])[0]


def test_a_distance_does_not_reach_into_the_block_before() -> None:
    first = b"0123456789" * 10
    second = sequence(b"ab", 3, 20) + sequence(b"12345", 0, 0)
    assert 1 == decoded([packed(first), second], [100, 27])[0]


def test_pages_of_each_compressor_come_out_of_one_call() -> None:
    texts = [b"saros " * 50, b"x", b"tide " * 90]
    for compressor, pack in ((Compressor.LZ4, packed), (Compressor.UNCOMPRESSED, bytes)):
        blocks = [pack(t) for t in texts]
        sizes = np.array([len(b) for b in blocks], np.int64)
        ends = np.cumsum([len(t) for t in texts])
        out = np.zeros(int(ends[-1]), np.uint8)
        decompress_pages_into(compressor, memoryview(b"".join(blocks)), np.cumsum(sizes) - sizes, sizes, ends, out)
        assert b"".join(texts) == out.tobytes()
        with pytest.raises(DecodeError):
            decompress_pages_into(
                compressor, memoryview(b"".join(blocks)), np.cumsum(sizes) - sizes, sizes - 1, ends, out
            )
