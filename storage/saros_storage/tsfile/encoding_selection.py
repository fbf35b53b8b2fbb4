"""The encoding of a chunk of floating-point numbers where GORILLA is declared: GORILLA, PLAIN or TS_2DIFF.

GORILLA removes what neighbouring values share; the remaining bits are not aligned to bytes, so that a compressor finds
little in them. Values that repeat compress better in PLAIN. Values with few decimals are whole numbers divided by a
power of ten, whose differences take a few bits each (TS_2DIFF): this halves the files of typical plant data. TS_2DIFF
is used only where every value reads back bit by bit.

The choice is made on the first rows of the chunk (`chosen_encoding`). A trial of all three costs more than writing a
small chunk. Where many small chunks of a series are written, `EncodingChoices` remembers the choice for the next ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from saros_storage.base.block import Values
from saros_storage.base.lru import LruCache
from saros_storage.base.types import FLOATING_TYPES, BoolArray, Compressor, DataType, Encoding
from saros_storage.encoding import encode, encode_scaled, scaled
from saros_storage.encoding.compression import compress

#: Enough that what comes again comes in them; of 60 columns of sensors 4,096 told for 3 % more bytes than all would.
_TRIED_ROWS = 4_096
#: Of what the others would take, TS_2DIFF may take so much: PLAIN values need not be computed when they are read.
_SCALED_SHARE = 0.8
#: The number of chunks for which a choice serves.
_CHUNKS_MAX = 16
#: Series whose choice is remembered.
_SERIES_MAX = 100_000


#: (device, measurement, declared encoding, compressor, type, values, which of them are valid) -> encoding of a chunk.
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
    """Choose by `chosen_encoding` alone (see `Choose`)."""
    return chosen_encoding(declared, compressor, type_, values, valid)


class EncodingChoices:
    """Choices by trial, each of which then serves for some more chunks of its series. Belongs to one thread.

    Sensors seldom change what they are like: a trial for every chunk would take most of the time of a flush.
    """

    def __init__(self) -> None:
        #: By device and measurement: the encoding, and the number of chunks for which it still serves.
        self._devices: LruCache[str, dict[str, tuple[Encoding, int]]] = LruCache(_SERIES_MAX)

    def is_scaled(self, device: str, measurement: str, declared: Encoding, type_: DataType) -> bool:
        """Whether the next chunk of the series is to be TS_2DIFF if its values allow it; counts as a use."""
        if not _is_chosen(declared, type_):
            return declared is Encoding.TS_2DIFF
        known = self._devices.get(device) or {}
        encoding, left = known.get(measurement, (declared, 0))
        if encoding is not Encoding.TS_2DIFF or not left:
            return False
        known[measurement] = encoding, left - 1
        return True

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
        known = self._devices.get(device) or {}
        encoding, left = known.get(measurement, (declared, 0))
        if not left or (encoding is Encoding.TS_2DIFF and not _is_scaled(type_, values, valid)):
            encoding, left = chosen_encoding(declared, compressor, type_, values, valid), _CHUNKS_MAX
        known[measurement] = encoding, left - 1
        self._devices.put(device, known, len(known))
        return encoding


def _is_chosen(declared: Encoding, type_: DataType) -> bool:
    """Whether the writer chooses the encoding of a series."""
    return declared is Encoding.GORILLA and type_ in FLOATING_TYPES


def _is_scaled(type_: DataType, values: Values, valid: BoolArray | None) -> bool:
    assert isinstance(values, np.ndarray)
    return scaled(type_, values if valid is None else values[np.flatnonzero(valid)]) is not None


def chosen_encoding(
    declared: Encoding, compressor: Compressor, type_: DataType, values: Values, valid: BoolArray | None = None
) -> Encoding:
    """The encoding of a chunk of these values; those that are not `valid` are none."""
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


def declared_encoding(found: Encoding, type_: DataType) -> Encoding:
    """What a series is declared with whose chunks have an encoding: PLAIN and TS_2DIFF may be GORILLA's."""
    chosen = found in (Encoding.PLAIN, Encoding.TS_2DIFF) and type_ in FLOATING_TYPES
    return Encoding.GORILLA if chosen else found
