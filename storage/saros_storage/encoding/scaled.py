"""TS_2DIFF of FLOAT and DOUBLE: a page stores integers, and the power of ten by which readers divide them.

    page    uvar m | TS_2DIFF of round(value * 10^m), as INT32 (FLOAT) or INT64 (DOUBLE)        value = whole / 10^m

Other writers use an m that the user declares, and lose digits. Saros writes a page this way only if every value is
restored bit for bit. All readers divide as doubles, and round again for FLOAT. Pure.
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.types import DataType, Int64Array, NumericArray
from saros_storage.kernels.codecs.decimals import scale_exactly, scale_rows_exactly

#: Largest integers for which the division by a power of ten is certain to round to the original value.
_WHOLE_MAX = {DataType.FLOAT: 2.0**31 - 1, DataType.DOUBLE: 2.0**50}
#: More decimals than this would not make pages smaller.
_DIGITS_WRITTEN_MAX = 15
#: The powers of ten that a double represents exactly.
EXACT_POWERS = np.array([10.0**digits for digits in range(23)])


def scaled(type_: DataType, values: NumericArray) -> tuple[int, Int64Array] | None:
    """Return the least m, and the integers that give the same bits when divided by 10^m; None if there is no such m."""
    whole = np.empty(len(values), np.int64)
    doubles = np.ascontiguousarray(values, np.float64)
    digits = scale_exactly(doubles, _DIGITS_WRITTEN_MAX, _WHOLE_MAX[type_], type_ is DataType.FLOAT, whole)
    return None if digits < 0 else (digits, whole)


def scaled_rows(type_: DataType, values: NumericArray) -> tuple[Int64Array, Int64Array]:
    """Return, for each row of a matrix, its least m (-1 if there is no such m), and the matrix of integers."""
    digits, whole = np.empty(len(values), np.int64), np.empty(values.shape, np.int64)
    doubles = np.ascontiguousarray(values, np.float64)
    limit, single = _WHOLE_MAX[type_], type_ is DataType.FLOAT
    scale_rows_exactly(doubles.ravel(), _DIGITS_WRITTEN_MAX, limit, single, whole.ravel(), digits)
    return digits, whole
