"""Conversion of a client's column values to one Arrow array, for embedded and remote databases. Pure: any thread.

Values may come from NumPy, pandas, Arrow, a library with Arrow's C interface (Polars, DuckDB), or plain Python. Absent
values become null: None, masked values, NaN in pandas, and NaN in NumPy arrays of objects, which usually come from
pandas. NaN in arrays of numbers is a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

import numpy as np
import pyarrow as pa

#: The units of NumPy datetimes that Arrow does not have. Times in such a unit are converted to seconds.
_UNITS_TO_SECONDS = ("Y", "M", "W", "h", "m")


class UnreadableValues(Exception):
    """The values cannot become one array: a single value, values of several types, or integers beyond 64 bits."""

    code = 507


class TooManyBytes(Exception):
    """There is more text than an Arrow array can hold. The caller must write fewer rows at once."""

    code = 2006


def arrow_array(values: object, what: str) -> pa.Array:
    """Return the values as an Arrow array without a dictionary or string views. Plain Arrow arrays are not copied.

    `what` names the values in messages. Raises UnreadableValues, TooManyBytes.
    """
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        kind = type(values).__name__
        raise UnreadableValues(f"{what}: expected a sequence with a value for each time, not one {kind}")
    try:
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else _converted(values)
    except OverflowError as error:
        raise UnreadableValues(f"{what}: an integer is outside the range -2**63 to 2**63 - 1") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
        raise UnreadableValues(f"{what}: values cannot be read as one type: {error}") from error
    try:
        return _plain(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
    except pa.ArrowInvalid as error:
        raise TooManyBytes(f"{what}: {array.nbytes:,} bytes in one write are too many: split it") from error


def _converted(values: Iterable[object]) -> pa.Array | pa.ChunkedArray:
    """Convert values to Arrow.

    If the values are chunked, as texts in pandas may be, the result is chunked, too.
    """
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(_native(values.data), mask=np.ma.getmaskarray(values))
    if isinstance(values, np.ndarray):
        return pa.array(_native(values), from_pandas=values.dtype == object)
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    values = values if isinstance(values, Sized) else list(values)
    try:
        return pa.array(values)
    except (ValueError, TypeError):  # among values that are not numbers, pandas represents None by NaN, NaT or NA
        return pa.array(values, from_pandas=True)


def _plain(array: pa.Array) -> pa.Array:
    """Return the values without a dictionary or string views, which some Arrow functions do not accept."""
    if pa.types.is_dictionary(array.type):
        return _plain(array.dictionary).take(array.indices)
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array


def _native(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return values in the byte order of this machine, and times in a unit that Arrow has."""
    dtype = values.dtype
    if dtype.kind == "M":
        unit, _ = np.datetime_data(dtype)
        return values.astype(f"datetime64[{'s' if unit in _UNITS_TO_SECONDS else unit}]", copy=False)
    return values if dtype.isnative else values.astype(dtype.newbyteorder("="))
