"""Convert JSON arrays to columns: the fast path, for values of one kind, gives the same columns as the slow one."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from saros_server.rest.json_inserts import Shape, tablet
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType

NUMERIC = [DataType.BOOLEAN, DataType.INT32, DataType.INT64, DataType.TIMESTAMP, DataType.FLOAT, DataType.DOUBLE]
INTEGERS = st.integers(-(2**65), 2**65) | st.sampled_from([2**31 - 1, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, 2**63])
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1e39, 3.4028235e38, float("inf"), 0.1])
LISTS = st.one_of(*(st.lists(values, min_size=1, max_size=9) for values in (INTEGERS, FLOATS, st.booleans())))


def column(type_: DataType, values: list[Any]) -> Column | str:
    """Return the column that would be stored, or the beginning of the error message."""
    shape = Shape(("s",), (type_.name,))
    try:
        return tablet("root.d", None, shape, list(range(len(values))), [values]).columns["s"]
    except UserMistake as error:
        return str(error)[:20]


@given(st.sampled_from(NUMERIC), LISTS)
def test_a_list_without_nulls_becomes_the_same_values_as_with_a_null_behind_it(
    type_: DataType, values: list[Any]
) -> None:
    plain, general = column(type_, values), column(type_, [*values, None])
    if isinstance(plain, str) or isinstance(general, str):
        assert plain == general
        return
    assert plain.type is general.type is type_
    assert plain.valid is None
    assert plain.values.dtype == general.values.dtype
    assert np.array_equal(plain.values, general.values[:-1])
