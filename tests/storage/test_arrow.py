"""Columns are converted to Arrow arrays and back without loss, and each Arrow type has one data type."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from saros_storage.base.arrow import (
    arrow_type,
    arrow_types,
    column_from_arrow,
    column_to_arrow,
    data_type_of,
    numbers_from_arrow,
    numbers_to_arrow,
    text_from_arrow,
    text_to_arrow,
)
from saros_storage.base.block import Column, TextArray
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType, TimeUnit

INSTANT = pa.timestamp("us", tz="UTC")
VALUES: dict[DataType, list[object]] = {
    DataType.BOOLEAN: [True, None, False, True],
    DataType.INT32: [1, None, -(2**31), 7],
    DataType.INT64: [1, None, 2**63 - 1, 7],
    DataType.FLOAT: [0.5, None, -1.25, 7.0],
    DataType.DOUBLE: [0.1, None, 1e300, 7.0],
    DataType.TEXT: ["a", None, "温度", ""],
    DataType.STRING: ["", None, "x", "yy"],
    DataType.BLOB: [b"\x00", None, b"\xff", b""],
    DataType.DATE: [19700101, None, 20240229, 99991231],
    DataType.TIMESTAMP: [0, None, 1_500, -1],
}


@pytest.mark.parametrize("type_", list(DataType))
@pytest.mark.parametrize("bounds", [(0, 4), (0, 1), (1, 4), (2, 4), (1, 1)])
def test_a_column_comes_back_as_it_was(type_: DataType, bounds: tuple[int, int]) -> None:
    start, stop = bounds
    column = Column.of(type_, VALUES[type_]).slice(start, stop)
    array = column_to_arrow(column, arrow_type(type_, INSTANT))
    array.validate(full=True)
    back = column_from_arrow(array, TimeUnit.MICROSECOND, "column s")
    assert VALUES[type_][start:stop] == back.to_list()
    assert (DataType.TEXT if type_ is DataType.STRING else type_) is back.type


@pytest.mark.parametrize("type_", list(DataType))
def test_a_slice_of_an_array_is_that_slice(type_: DataType) -> None:
    whole = column_to_arrow(Column.of(type_, VALUES[type_]), arrow_type(type_, INSTANT))
    for start in range(4):
        back = column_from_arrow(whole.slice(start, 2), TimeUnit.MICROSECOND, "column s")
        assert VALUES[type_][start : start + 2] == back.to_list()


def test_each_data_type_has_an_arrow_type_that_makes_it_again() -> None:
    found = {type_: data_type_of(arrow_type(type_, INSTANT)) for type_ in DataType}
    assert {DataType.STRING: DataType.TEXT} == {type_: made for type_, made in found.items() if type_ is not made}
    assert {DataType.TIMESTAMP} == set(DataType) - set(arrow_types())


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int32, np.int64, np.float32, np.float64])
def test_numbers_come_back_whatever_their_offset(dtype: type[np.generic]) -> None:
    numbers = (np.arange(21) % 3).astype(dtype)
    array = numbers_to_arrow(numbers)
    for start in range(21):
        assert numbers[start:].tolist() == numbers_from_arrow(array.slice(start)).tolist()
    assert (0, numbers.dtype) == (len(found := numbers_from_arrow(array.slice(21))), found.dtype)


def test_text_without_buffers_is_empty() -> None:
    assert 0 == len(text_from_arrow(pa.array([], pa.string())))
    assert ["\ufffd"] == text_to_arrow(TextArray.of([b"\xff"])).to_pylist()
    assert [b"\xff"] == text_to_arrow(TextArray.of([b"\xff"]), binary=True).to_pylist()


def test_what_cannot_be_stored_is_refused_by_name() -> None:
    with pytest.raises(UserMistake, match=r"^column s: columns of Arrow type list<item: int64> cannot be stored$"):
        column_from_arrow(pa.array([[1]]), TimeUnit.MILLISECOND, "column s")
    with pytest.raises(UserMistake, match=r"^column s: a value does not fit INT64: "):
        column_from_arrow(pa.array([2**63], pa.uint64()), TimeUnit.MILLISECOND, "column s")


def test_storage_imports_arrow_only_when_a_conversion_needs_it() -> None:
    code = "import sys, saros_storage.base.arrow, saros_storage.base.text_conversion; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "False" == done.stdout.strip()
