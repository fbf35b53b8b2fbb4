"""Choose the encoding of each chunk of a floating-point series that declares GORILLA: GORILLA, PLAIN or TS_2DIFF.

GORILLA removes the bits that neighbouring values share. The remaining bits are not aligned to bytes, so a compressor
can hardly shorten them. Values that repeat compress better in PLAIN. A value with few decimals is a whole number
divided by a power of ten. TS_2DIFF stores the differences between these whole numbers in a few bits each. This halves
the size of files with typical plant data. TS_2DIFF is used only if every value is restored bit for bit.

`chosen_encoding` tries the three encodings on the first rows of the chunk. Such a trial costs more than writing a small
chunk. Therefore a flush, which writes many small chunks, uses `EncodingChoices`: it reuses each choice for the next
chunks of the series. For chunks of a few rows, `EncodingChoices` selects PLAIN without a trial, because a compaction
later joins these chunks and then chooses an encoding for all their rows. Devices with few rows are written together.
For these, `encode_by_trial` tries the encodings on all chunks, with only a few calls for many chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from saros_storage.base.block import Values
from saros_storage.base.lru import LruCache
from saros_storage.base.types import FLOATING_TYPES, BoolArray, Compressor, DataType, Encoding, NumericArray
from saros_storage.encoding import encode, encode_matrix, encode_plain_rows, encode_rows, encode_scaled, scaled
from saros_storage.encoding.compression import compress

#: The number of rows on which the encodings are tried: enough that repeated values occur among them. In a test with 60
#: columns of sensor data, the encodings chosen on these rows took 3 % more bytes than encodings chosen on all rows.
_TRIED_ROWS = 4_096
#: `EncodingChoices` selects PLAIN for chunks of at most this many rows, since the header and the statistics of such a
#: chunk take several times as many bytes as its values.
_UNTRIED_ROWS = 8
#: Choose TS_2DIFF only if its encoded size is less than this fraction of the smaller alternative's size, since PLAIN
#: values need no decoding.
_SCALED_SHARE = 0.8
#: Number of successive chunks of a series that use one choice.
_CHUNKS_MAX = 16
#: Maximum number of series whose choice is remembered.
_SERIES_MAX = 100_000


#: Maps (device, measurement, declared encoding, compressor, type, values, validity mask) to the encoding of a chunk.
Choose: TypeAlias = Callable[[str, str, Encoding, Compressor, DataType, Values, BoolArray | None], Encoding]


def choose_by_trial(
    _device: str,
    _measurement: str,
    declared: Encoding,
    compressor: Compressor,
    type_: DataType,
    values: Values,
    valid: BoolArray | None,
) -> Encoding:
    """Choose the encoding of a chunk by a trial (see `Choose` for the parameters)."""
    return chosen_encoding(declared, compressor, type_, values, valid)


class EncodingChoices:
    """Chooses encodings by trial and reuses each choice for the next chunks of its series. Belongs to one thread.

    One encoding usually stays the best for a sensor, and a trial for every chunk would take most of the time of a
    flush.
    """

    def __init__(self) -> None:
        #: For each device and measurement, the chosen encoding and the number of chunks that may still use it.
        self._devices: LruCache[str, dict[str, tuple[Encoding, int]]] = LruCache(_SERIES_MAX)

    def without_trial(
        self, device: str, measurement: str, declared: Encoding, type_: DataType, rows: int
    ) -> Encoding | None:
        """Return the encoding of the series' next chunk if it can be selected without the values, otherwise None.

        If the result is a remembered TS_2DIFF, the call counts as one use of it. The caller must check that the values
        allow TS_2DIFF.
        """
        if not _is_chosen(declared, type_):
            return declared
        if rows <= _UNTRIED_ROWS:
            return Encoding.PLAIN
        known = self._devices.get(device) or {}
        encoding, left = known.get(measurement, (declared, 0))
        if encoding is not Encoding.TS_2DIFF or not left:
            return None
        known[measurement] = encoding, left - 1
        return encoding

    def choose(
        self,
        device: str,
        measurement: str,
        declared: Encoding,
        compressor: Compressor,
        type_: DataType,
        values: Values,
        valid: BoolArray | None,
    ) -> Encoding:
        """Return the remembered encoding, or choose by trial (see `Choose`)."""
        if not _is_chosen(declared, type_):
            return declared
        if len(values) <= _UNTRIED_ROWS:
            return Encoding.PLAIN
        known = self._devices.get(device) or {}
        encoding, left = known.get(measurement, (declared, 0))
        if not left or (encoding is Encoding.TS_2DIFF and not _is_scaled(type_, values, valid)):
            encoding, left = chosen_encoding(declared, compressor, type_, values, valid), _CHUNKS_MAX
        known[measurement] = encoding, left - 1
        self._devices.put(device, known, len(known))
        return encoding


def _is_chosen(declared: Encoding, type_: DataType) -> bool:
    """Return whether the writer may choose an encoding other than the declared one."""
    return declared is Encoding.GORILLA and type_ in FLOATING_TYPES


def _is_scaled(type_: DataType, values: Values, valid: BoolArray | None) -> bool:
    assert isinstance(values, np.ndarray)
    return scaled(type_, values if valid is None else values[np.flatnonzero(valid)]) is not None


def chosen_encoding(
    declared: Encoding, compressor: Compressor, type_: DataType, values: Values, valid: BoolArray | None = None
) -> Encoding:
    """Return the encoding for a chunk of `values`, chosen by a trial. If `valid` is None, all values are present."""
    if not _is_chosen(declared, type_):
        return declared
    assert isinstance(values, np.ndarray)
    there = values if valid is None else values[np.flatnonzero(valid)]
    tried = there[:_TRIED_ROWS]
    plain, gorilla = (len(compress(compressor, encode(e, type_, tried))) for e in (Encoding.PLAIN, declared))
    page = encode_scaled(type_, tried)
    small = page is not None and len(compress(compressor, page)) < _SCALED_SHARE * min(plain, gorilla)
    if small and scaled(type_, there) is not None:
        return Encoding.TS_2DIFF
    return Encoding.PLAIN if plain < gorilla else declared


def encode_by_trial(
    declared: Encoding, compressor: Compressor, type_: DataType, values: NumericArray
) -> tuple[list[Encoding], list[bytes]]:
    """Choose an encoding for each row of a matrix, as `EncodingChoices` does for a new series, and encode the row."""
    if not _is_chosen(declared, type_):
        return [declared] * len(values), _complete(encode_matrix(declared, type_, values))
    plain = encode_plain_rows(values)
    if values.shape[1] <= _UNTRIED_ROWS:
        return [Encoding.PLAIN] * len(values), plain
    encodings, pages = [], []
    others = zip(plain, _complete(encode_matrix(declared, type_, values)), encode_rows(type_, values), strict=True)
    for plain_page, own_page, scaled_page in others:
        plain_size, own_size = len(compress(compressor, plain_page)), len(compress(compressor, own_page))
        encoding, page = (Encoding.PLAIN, plain_page) if plain_size < own_size else (declared, own_page)
        if scaled_page is not None and len(compress(compressor, scaled_page)) < _SCALED_SHARE * min(
            plain_size, own_size
        ):
            encoding, page = Encoding.TS_2DIFF, scaled_page
        encodings.append(encoding)
        pages.append(page)
    return encodings, pages


def _complete(pages: list[bytes | None]) -> list[bytes]:
    """Assert that all values could be encoded."""
    found = [page for page in pages if page is not None]
    assert len(found) == len(pages)
    return found


def declared_encoding(found: Encoding, type_: DataType) -> Encoding:
    """Return the encoding to declare for a series whose chunks have the encoding `found`.

    In a floating-point series, PLAIN and TS_2DIFF are assumed to be the writer's choices for a declared GORILLA.
    """
    chosen = found in (Encoding.PLAIN, Encoding.TS_2DIFF) and type_ in FLOATING_TYPES
    return Encoding.GORILLA if chosen else found
