"""Values of a column as clients give them, as one Arrow array, whether they go to another process or not.

NumPy, pandas, Arrow, whatever speaks Arrow's C interface (Polars, DuckDB), and Python's values. Null is what they call
absent: None, a masked value, NaN in pandas and in NumPy's arrays of objects, which are pandas' as a rule; NaN among
other numbers is a value. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

import numpy as np
import pyarrow as pa

#: Units of NumPy's times that Arrow lacks: such times become seconds.
_UNITS_TO_SECONDS = ("Y", "M", "W", "h", "m")


class UnreadableValues(Exception):
    """No values of one type: one alone, several types, or whole numbers that none has."""

    code = 507


class TooManyBytes(Exception):
    """More text than an Arrow array holds: write fewer rows at once."""

    code = 2006


def arrow_array(values: object, what: str) -> pa.Array:
    """The values, without dictionary or views, not copied if they are Arrow's.

    Raises UnreadableValues and TooManyBytes with `what`.
    """
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        kind = type(values).__name__
        raise UnreadableValues(f"{what}: a sequence with a value for each time is wanted, not one {kind}")
    try:
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else _converted(values)
    except OverflowError as error:
        raise UnreadableValues(f"{what}: a whole number is outside of -2**63 to 2**63 - 1") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
        raise UnreadableValues(f"{what}: values cannot be read as one type: {error}") from error
    try:
        return _plain(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
    except pa.ArrowInvalid as error:
        raise TooManyBytes(f"{what}: {array.nbytes:,} bytes in one write are too many: split it") from error


def _converted(values: Iterable[object]) -> pa.Array | pa.ChunkedArray:
    """In chunks if they are so already: pandas keeps texts as Arrow does."""
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(_native(values.data), mask=np.ma.getmaskarray(values))
    if isinstance(values, np.ndarray):
        return pa.array(_native(values), from_pandas=values.dtype == object)
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    values = values if isinstance(values, Sized) else list(values)
    try:
        return pa.array(values)
    except (ValueError, TypeError):  # NaN, NaT or NA among what are no numbers: that is how pandas writes None
        return pa.array(values, from_pandas=True)


def _plain(array: pa.Array) -> pa.Array:
    """Values one after the other; Arrow's functions do not take views of texts everywhere."""
    if pa.types.is_dictionary(array.type):
        return _plain(array.dictionary).take(array.indices)
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array


def _native(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """In this machine's order of bytes, and in a unit of time that Arrow has."""
    dtype = values.dtype
    if dtype.kind == "M":
        unit, _ = np.datetime_data(dtype)
        return values.astype(f"datetime64[{'s' if unit in _UNITS_TO_SECONDS else unit}]", copy=False)
    return values if dtype.isnative else values.astype(dtype.newbyteorder("="))
