"""The encoding of a chunk of floating-point numbers where GORILLA is declared: GORILLA, PLAIN or TS_2DIFF.

GORILLA removes what neighbouring values share; the remaining bits are not aligned to bytes, so that a compressor finds
little in them. Values that repeat compress better in PLAIN. Values with few decimals are whole numbers divided by a
power of ten, whose differences take a few bits each (TS_2DIFF): this halves the files of typical plant data. TS_2DIFF
is used only where every value reads back bit by bit.

The choice is made on the first rows of the chunk: a trial costs less than writing them. Pure: any thread.
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.block import Values
from saros_storage.base.types import FLOATING_TYPES, BoolArray, Compressor, DataType, Encoding
from saros_storage.encoding import encode, encode_scaled, scaled
from saros_storage.encoding.compression import compress

#: Enough that what comes again comes in them; of 60 columns of sensors 4,096 told for 3 % more bytes than all would.
_TRIED_ROWS = 4_096
#: Of what the others would take, TS_2DIFF may take so much: PLAIN values need not be computed when they are read.
_SCALED_SHARE = 0.8


def chosen_encoding(
    declared: Encoding, compressor: Compressor, type_: DataType, values: Values, valid: BoolArray | None = None
) -> Encoding:
    """The encoding of a chunk of these values; those that are not `valid` are none."""
    if declared is not Encoding.GORILLA or type_ not in FLOATING_TYPES:
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
