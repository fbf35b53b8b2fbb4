"""TS_2DIFF of FLOAT and DOUBLE: whole numbers, and the power of ten that divides them.

    page    uvar m | TS_2DIFF of round(value * 10^m), as INT32 (FLOAT) or INT64 (DOUBLE)        value = whole / 10^m

Other writers take a declared m and lose digits. Here a page is written this way only if every value reads back bit by
bit. All readers divide as doubles, and round once more for FLOAT. Pure.
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.types import DataType, Int64Array, NumericArray
from saros_storage.kernels.codecs.decimals import scale_exactly, scale_rows_exactly

#: Whole numbers up to here, times a power of ten, are rounded to the right one.
_WHOLE_MAX = {DataType.FLOAT: 2.0**31 - 1, DataType.DOUBLE: 2.0**50}
#: More decimals than that leave nothing to gain.
_DIGITS_WRITTEN_MAX = 15
#: Powers of ten that a double holds exactly.
EXACT_POWERS = np.array([10.0**digits for digits in range(23)])


def scaled(type_: DataType, values: NumericArray) -> tuple[int, Int64Array] | None:
    """The least m, and the whole numbers, that divided by 10^m give the same bits; None: there are none."""
    whole = np.empty(len(values), np.int64)
    doubles = np.ascontiguousarray(values, np.float64)
    digits = scale_exactly(doubles, _DIGITS_WRITTEN_MAX, _WHOLE_MAX[type_], type_ is DataType.FLOAT, whole)
    return None if digits < 0 else (digits, whole)


def scaled_rows(type_: DataType, values: NumericArray) -> tuple[Int64Array, Int64Array]:
    """`scaled` for each row of a matrix: the m of each row (-1: none exists), and the matrix of whole numbers."""
    digits, whole = np.empty(len(values), np.int64), np.empty(values.shape, np.int64)
    doubles = np.ascontiguousarray(values, np.float64)
    limit, single = _WHOLE_MAX[type_], type_ is DataType.FLOAT
    scale_rows_exactly(doubles.ravel(), _DIGITS_WRITTEN_MAX, limit, single, whole.ravel(), digits)
    return digits, whole
