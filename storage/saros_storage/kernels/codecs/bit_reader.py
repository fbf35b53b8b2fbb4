"""Bit streams as 64-bit words: the bit codecs are fast because they read eight bytes at a time.

The most significant bit of a stream comes first (TsFile's order), so its words are big-endian. Bit p of the stream is
bit 63 - p % 64 of word p // 64.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from saros_storage.base.types import ByteArray

UInt64Array: TypeAlias = npt.NDArray[np.uint64]
_BIG_ENDIAN = np.dtype(">u8")
#: Number of words after the end of a stream that a kernel may read without a check; it never uses their contents.
_SPARE_WORDS = 2


def to_words(data: ByteArray) -> UInt64Array:
    """Return the stream as words in the machine's byte order, padded with zeros."""
    whole = len(data) >> 3
    words = np.empty(whole + 1 + _SPARE_WORDS, np.uint64)
    words[:whole] = np.frombuffer(data, _BIG_ENDIAN, whole)
    words[whole] = int.from_bytes(data[whole * 8 :].tobytes().ljust(8, b"\0"), "big")
    words[whole + 1 :] = 0
    return words


class Stream:
    """A stream of bytes that several kernels read; its words are created once, on first use."""

    __slots__ = ("_words", "data")

    def __init__(self, data: ByteArray) -> None:
        self.data = data
        self._words: UInt64Array | None = None

    @property
    def words(self) -> UInt64Array:
        """The bytes as words; see `to_words`."""
        if self._words is None:
            self._words = to_words(self.data)
        return self._words


def bytes_of(words: UInt64Array, count: int) -> bytes:
    """Return the first `count` bytes of the stream that consists of `words`."""
    return words[: (count + 7) >> 3].astype(_BIG_ENDIAN).tobytes()[:count]
