"""Conversion of clients' values to Arrow arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from saros_wire.client_values import UnreadableValues, arrow_array

NAN = float("nan")
TWO_O_CLOCK = datetime(2024, 1, 1, 2)  # noqa: DTZ001 (naive like NumPy's times)
#: A categorical column as Polars exports it: a dictionary of string views.
_CATEGORIES = pa.chunked_array(
    [pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.uint32()), pa.array(["a", "b"], pa.string_view()))]
)


class Streamed:
    """A column as other libraries export it: through Arrow's C stream interface. Iterating over its values fails."""

    def __init__(self, values: pa.ChunkedArray) -> None:
        self._values = values

    def __arrow_c_stream__(self, schema: object = None) -> object:
        return self._values.__arrow_c_stream__(schema)

    def __iter__(self) -> Iterator[object]:
        raise AssertionError


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
        (pd.Series([1.5, NAN]), [1.5, None]),
        (["a", NAN], ["a", None]),
        ([1, pd.NA], [1, None]),
        ((value for value in ("a", NAN)), ["a", None]),
        (pa.array(["a", None, "a"], pa.string_view()), ["a", None, "a"]),
        (pa.array([b"\xff"], pa.binary_view()), [b"\xff"]),
        (Streamed(pa.chunked_array([["a"], ["b"]])), ["a", "b"]),
        (Streamed(_CATEGORIES), ["a", "b", "a"]),
        (pa.chunked_array([[1], [2, None]]), [1, 2, None]),
    ],
)
def test_values_of_any_make_become_one_array(values: object, expected: list[object]) -> None:
    assert expected == arrow_array(values, "times").to_pylist()


@pytest.mark.parametrize(
    "values",
    [
        [1.5, NAN],
        (1, NAN, 2),
        np.array([1.5, NAN]),
        array("d", [1, NAN]),
        iter([NAN]),
        Streamed(pa.chunked_array([[NAN]])),
    ],
)
def test_nan_among_numbers_is_a_value_wherever_it_is_not_pandas(values: object) -> None:
    assert 0 == arrow_array(values, "column x").null_count


@pytest.mark.parametrize("values", ["on", b"on", 5, None])
def test_one_value_is_no_column(values: object) -> None:
    name = type(values).__name__
    with pytest.raises(
        UnreadableValues, match=f"^column x: expected a sequence with a value for each time, not one {name}$"
    ):
        arrow_array(values, "column x")


@pytest.mark.parametrize("values", [[1, "a"], [{}, 1], [pd.Timestamp(0), "a"]])
def test_values_of_no_one_type_are_refused(values: object) -> None:
    with pytest.raises(UnreadableValues, match=r"^column x: values cannot be read as one type"):
        arrow_array(values, "column x")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**70])
def test_whole_numbers_that_no_type_holds_are_told_the_bounds(number: int) -> None:
    with pytest.raises(UnreadableValues, match=r"^column x: an integer is outside the range -2\*\*63 to 2\*\*63 - 1$"):
        arrow_array([1, number], "column x")
