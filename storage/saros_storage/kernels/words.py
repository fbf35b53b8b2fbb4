"""Bit streams as 64-bit words: reading eight bytes at a time is what makes the bit codecs fast.

A stream's most significant bit comes first (TsFile's order), so its words are big-endian. Bit p of the stream is bit
63 - p % 64 of word p // 64.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from saros_storage.types import ByteArray

UInt64Array: TypeAlias = npt.NDArray[np.uint64]
#: Words behind the stream's end that a kernel may read (never use) without looking.
_SPARE_WORDS = 2


def words_of(data: ByteArray) -> UInt64Array:
    """The stream's words in the machine's order, zero-padded."""
    padded = np.zeros((len(data) // 8 + 1 + _SPARE_WORDS) * 8, np.uint8)
    padded[: len(data)] = data
    return padded.view(np.dtype(">u8")).astype(np.uint64)


def bytes_of(words: UInt64Array, count: int) -> bytes:
    """The first `count` bytes of the stream that the words hold."""
    return words.astype(np.dtype(">u8")).tobytes()[:count]
