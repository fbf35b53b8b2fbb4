"""Values of a column as clients give them, as one Arrow array, whether they go to another process or not.

NumPy, pandas, Arrow and lists. Null is what they call absent: None, a masked value, NaN in pandas; NaN in a NumPy array
is a value. Pure: any thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

#: Units of NumPy's times that Arrow lacks: such times become seconds.
_UNITS_TO_SECONDS = ("Y", "M", "W", "h", "m")


class UnreadableValues(Exception):
    """Values that are not all of one type, or whole numbers that none has."""

    code = 507


def arrow_array(values: object, what: str) -> pa.Array:
    """The values; a dictionary is resolved. Not copied if they are Arrow's. Raises UnreadableValues, naming `what`."""
    try:
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else _converted(values)
    except OverflowError as error:
        raise UnreadableValues(f"{what}: a whole number is outside of -2**63 to 2**63 - 1") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
        raise UnreadableValues(f"{what}: values cannot be read as one type: {error}") from error
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _converted(values: object) -> pa.Array | pa.ChunkedArray:
    """In chunks if they are so already: pandas keeps texts as Arrow does."""
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(_native(values.data), mask=np.ma.getmaskarray(values))
    if isinstance(values, np.ndarray):
        return pa.array(_native(values), from_pandas=values.dtype == object)
    return pa.array(values, from_pandas=True)


def _native(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """In this machine's order of bytes, and in a unit of time that Arrow has."""
    dtype = values.dtype
    if dtype.kind == "M":
        unit, _ = np.datetime_data(dtype)
        return values.astype(f"datetime64[{'s' if unit in _UNITS_TO_SECONDS else unit}]", copy=False)
    return values if dtype.isnative else values.astype(dtype.newbyteorder("="))
