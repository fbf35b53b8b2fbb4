"""Convert between the engine's columns and the arrays of extensions, and check the arrays that extensions return.

Pure, except that `guarded` calls user code: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from saros_engine.base.errors import ExtensionFailed
from saros_engine.extensions.interface import Answer, Values
from saros_storage.base.block import Column, TextArray
from saros_storage.base.types import NUMPY_DTYPE, BoolArray, DataType, NumericArray

_Result = TypeVar("_Result")


def values_of(column: Column) -> Values:
    """Convert the column to the form in which extensions get it. The arrays are read-only."""
    if column.type.is_text:
        values: NumericArray = np.empty(len(column), np.object_)
        values[:] = column.to_list()
    else:
        values = column.numbers.view()
    valid = column.present.view()
    values.flags.writeable = valid.flags.writeable = False
    return Values(column.type, values, valid)


def column_of(type_: DataType, answer: Answer, rows: int) -> Column:
    """Convert an `Answer` to a column. Raises ValueError or TypeError if the answer does not match the declaration."""
    given, mask = answer
    values = np.asarray(given)
    if values.shape != (rows,):
        raise ValueError(f"it returned values of shape {values.shape} for {rows} rows")
    valid = None if mask is None else np.asarray(mask)
    if valid is not None and (valid.shape != (rows,) or valid.dtype != np.bool_):
        raise ValueError(f"it returned a mask of {valid.dtype}{valid.shape} instead of bool for {rows} rows")
    if type_.is_text:
        return _text(type_, values, valid)
    dtype = NUMPY_DTYPE[type_]
    if not np.can_cast(values.dtype, dtype, "same_kind") or (values.dtype == np.bool_) != (dtype == np.bool_):
        raise TypeError(f"it returned {values.dtype}, but is declared to return {type_.name}")
    with np.errstate(all="ignore"):
        cast = values.astype(dtype)
    if dtype.kind == "i" and ((cast != values) & (True if valid is None else valid)).any():
        raise ValueError(f"it returned a value that does not fit {type_.name}")
    return Column(type_, cast, None if valid is None or valid.all() else valid.copy())


def _text(type_: DataType, values: NumericArray, valid: BoolArray | None) -> Column:
    wanted = bytes if type_ is DataType.BLOB else str
    items = [v if valid is None or valid[i] else None for i, v in enumerate(values.tolist())]
    wrong = next((item for item in items if item is not None and not isinstance(item, wanted)), None)
    if wrong is not None:
        raise TypeError(f"it returned {wrong!r}, but is declared to return {type_.name}")
    present = np.array([item is not None for item in items], np.bool_)
    return Column(type_, TextArray.of(items), None if present.all() else present)


def guarded(what: str, hint: str, where: Callable[[], str], call: Callable[[], _Result]) -> _Result:
    """Return the result of `call`.

    Raises ExtensionFailed if the call raises anything; the message names `what`, `where` and the reason.
    """
    try:
        return call()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        advice = f" ({hint})" if hint else ""
        raise ExtensionFailed(f"{what} failed {where()}: {reason}{advice}") from error


def named_rows(first: int, times: Sequence[int] | NumericArray) -> str:
    """Return the numbers (from 0) and the times of rows of a block, as text for an error message."""
    count = len(times)
    return f"in rows {first} to {first + count - 1} (times {int(times[0])} to {int(times[-1])})"
