"""Values of clients as Arrow arrays."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from saros_wire.client_values import UnreadableValues, arrow_array

TWO_O_CLOCK = datetime(2024, 1, 1, 2)  # noqa: DTZ001 (as naive as NumPy's)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None, 3], [1, None, 3]),
        (np.array([1, 2], ">i4"), [1, 2]),
        (np.ma.masked_array(np.array([1, 2], ">f8"), [False, True]), [1.0, None]),
        (np.array(["2024-01-01T02"], "datetime64[h]"), [TWO_O_CLOCK]),
        (np.array(["2024-01-01T02:00"], "datetime64[30m]"), [TWO_O_CLOCK]),
        (np.array(["2024-01-01T02:00"], ">M8[ms]"), [TWO_O_CLOCK]),
        (pd.Series(["a", None, "a"], dtype="category"), ["a", None, "a"]),
        (pd.Series([1.5, float("nan")]), [1.5, None]),
        (pa.chunked_array([[1], [2, None]]), [1, 2, None]),
    ],
)
def test_values_of_any_make_become_one_array(values: object, expected: list[object]) -> None:
    assert expected == arrow_array(values, "times").to_pylist()


@pytest.mark.parametrize("values", [1, [1, "a"], [{}, 1]])
def test_values_of_no_one_type_are_refused(values: object) -> None:
    with pytest.raises(UnreadableValues, match=r"^column x: values cannot be read as one type"):
        arrow_array(values, "column x")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**70])
def test_whole_numbers_that_no_type_holds_are_told_the_bounds(number: int) -> None:
    with pytest.raises(UnreadableValues, match=r"^column x: a whole number is outside of -2\*\*63 to 2\*\*63 - 1$"):
        arrow_array([1, number], "column x")
