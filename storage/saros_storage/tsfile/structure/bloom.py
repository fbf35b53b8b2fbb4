"""The bloom filter of the series in a file.

The bit index of a key is |h| mod `size`, where h is the signed number in the low 32 bits of the sum of the two halves
of MurmurHash3 x64-128. Apache's Java implementation treats the 1 to 15 bytes after the last full block as signed. The
standard hash (`mmh3`) and Apache's C++ implementation treat them as unsigned. The two variants of the hash have equal
results only for ASCII keys. Therefore the bits of both variants are set for every key, so that readers of either kind
find all series.

This module does not query filters, because Saros searches the index directly.

Pure: any thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import mmh3
import msgspec
import numpy as np

from saros_storage.base.types import Int64Array
from saros_storage.kernels.codecs.bit_reader import UInt64Array

_ERROR_RATE = 0.05
_BITS_MIN = 256
_HASHES_MAX = 8
_SEEDS = (5, 7, 11, 19, 31, 37, 43, 59)
_MASK = (1 << 64) - 1
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F


class BloomFilter(msgspec.Struct, frozen=True):
    """A bloom filter of `size` bits. `bits` has the lowest bit of each byte first and omits trailing zero bytes."""

    bits: bytes
    size: int
    hashes: int

    @staticmethod
    def of(keys: Sequence[str]) -> BloomFilter:
        """Build a filter of the keys.

        Its size allows for non-ASCII keys, which set twice as many bits as ASCII keys.
        """
        count = len(keys) + sum(not key.isascii() for key in keys)
        size = max(_BITS_MIN, int(-count * math.log(_ERROR_RATE) / math.log(2) ** 2) + 1)
        hashes = min(_HASHES_MAX, int(-math.log(_ERROR_RATE) / math.log(2)) + 1)
        raws = [key.encode() for key in keys]
        foreign = [raw for raw in raws if not raw.isascii()]
        seeds = _SEEDS[:hashes]
        bits = np.zeros(size, np.bool_)
        bits[_indices(_standard_hashes(raws, seeds), size)] = True
        if foreign:
            signed = [signed_tail_hash(raw, seed) for raw in foreign for seed in seeds]
            bits[_indices(np.array(signed, np.uint64), size)] = True
        return BloomFilter(np.packbits(bits, bitorder="little").tobytes().rstrip(b"\0"), size, hashes)


def _standard_hashes(raws: Sequence[bytes], seeds: Sequence[int]) -> UInt64Array:
    """Return h1 + h2 (mod 2**64) of each key with each seed."""
    digests = b"".join([mmh3.hash_bytes(raw, seed, True) for seed in seeds for raw in raws])
    halves = np.frombuffer(digests, np.uint64).reshape(-1, 2)
    return halves[:, 0] + halves[:, 1]


def _indices(totals: UInt64Array, size: int) -> Int64Array:
    signed = totals.astype(np.uint32).view(np.int32).astype(np.int64)
    # In Java, the absolute value of the smallest int is negative; the filter of Apache's Java then uses bit 0.
    return np.where(signed == -0x80000000, 0, np.abs(signed) % size)


def signed_tail_hash(raw: bytes, seed: int) -> int:
    """Return h1 + h2 (mod 2**64) of MurmurHash3 x64-128 in the variant that sign-extends the tail's bytes."""
    h1 = h2 = seed
    blocks = len(raw) // 16 * 16
    for start in range(0, blocks, 16):
        k1 = int.from_bytes(raw[start : start + 8], "little")
        k2 = int.from_bytes(raw[start + 8 : start + 16], "little")
        h1 = ((_rotate(h1 ^ _mix_1(k1), 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 = ((_rotate(h2 ^ _mix_2(k2), 31) + h1) * 5 + 0x38495AB5) & _MASK
    tail = raw[blocks:]
    if len(tail) > 8:
        h2 ^= _mix_2(_signed_word(tail[8:]))
    if tail:
        h1 ^= _mix_1(_signed_word(tail[:8]))
    h1 ^= len(raw)
    h2 ^= len(raw)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _finish(h1), _finish(h2)
    h1 = (h1 + h2) & _MASK
    return (h1 + h2 + h1) & _MASK


def _signed_word(tail: bytes) -> int:
    """Return a little-endian word whose bytes are sign-extended to 64 bits before they are combined by xor."""
    word = 0
    for i, byte in enumerate(tail):
        word ^= (byte - 256 if byte > 127 else byte) << (8 * i)
    return word & _MASK


def _mix_1(word: int) -> int:
    return _rotate(word * _C1 & _MASK, 31) * _C2 & _MASK


def _mix_2(word: int) -> int:
    return _rotate(word * _C2 & _MASK, 33) * _C1 & _MASK


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _MASK


def _finish(word: int) -> int:
    word ^= word >> 33
    word = word * 0xFF51AFD7ED558CCD & _MASK
    word ^= word >> 33
    word = word * 0xC4CEB9FE1A85EC53 & _MASK
    return word ^ word >> 33
