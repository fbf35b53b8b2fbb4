"""FLOAT and DOUBLE values as integers times a power of ten: this encoding is used only if the round trip is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saros_storage.base.types import NUMPY_DTYPE, DataType, Encoding
from saros_storage.encoding import (
    DecodeError,
    UnsupportedEncoding,
    decode,
    decode_pages_into,
    encode,
    encode_rows,
    encode_scaled,
)
from saros_storage.kernels.codecs.bit_reader import Stream
from saros_storage.kernels.codecs.decimals import scale_exactly, scale_rows_exactly

FLOATS = (DataType.FLOAT, DataType.DOUBLE)
SCALED = Encoding.TS_2DIFF
#: A page with 20.25 and 20.5, which are 2025 and 2050 / 10^2: exponent 2, one delta of 0 bits, minimum delta 25, first
#: value 2025.
DOUBLE_PAGE = bytes.fromhex("02 00000001 00000000 0000000000000019 00000000000007e9")
FLOAT_PAGE = bytes.fromhex("02 00000001 00000000 00000019 000007e9")


def again(type_: DataType, page: bytes, count: int) -> bytes:
    found = decode(SCALED, type_, memoryview(page), count)
    assert isinstance(found, np.ndarray)
    return found.tobytes()


def array(type_: DataType, values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, NUMPY_DTYPE[type_])


@pytest.mark.parametrize(("type_", "page"), [(DataType.DOUBLE, DOUBLE_PAGE), (DataType.FLOAT, FLOAT_PAGE)])
def test_a_page_is_the_digits_and_the_differences_of_whole_numbers(type_: DataType, page: bytes) -> None:
    values = array(type_, [20.25, 20.5])
    assert page == encode(SCALED, type_, values)
    assert values.tobytes() == again(type_, page, 2)


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=300), st.integers(0, 15))
def test_a_double_that_is_written_with_some_decimals_keeps_every_bit(whole: list[int], digits: int) -> None:
    values = array(DataType.DOUBLE, [float(f"{number}e-{digits}") for number in whole])
    page = encode_scaled(DataType.DOUBLE, values)
    assert page is not None
    assert page[0] <= digits
    assert values.tobytes() == again(DataType.DOUBLE, page, len(values))


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=300), st.integers(0, 4))
def test_a_float_that_is_written_with_some_decimals_keeps_every_bit(whole: list[int], digits: int) -> None:
    values = array(DataType.FLOAT, [float(f"{number}e-{digits}") for number in whole])
    page = encode_scaled(DataType.FLOAT, values)
    assert page is not None
    assert values.tobytes() == again(DataType.FLOAT, page, len(values))


@given(
    st.sampled_from(FLOATS),
    st.lists(st.one_of(st.floats(width=32), st.sampled_from((0.1, 1e15, 2.0**50, 2.0**31, 1e-15))), max_size=20),
)
def test_whatever_the_numbers_a_page_gives_back_every_bit(type_: DataType, numbers: list[float]) -> None:
    values = array(type_, numbers)
    page = encode_scaled(type_, values)
    assert page is None or values.tobytes() == again(type_, page, len(values))


@given(
    st.lists(st.one_of(st.floats(), st.decimals(-9999, 9999, places=3).map(float)), max_size=9),
    st.booleans(),
    st.sampled_from((2.0**31 - 1, 2.0**50)),
)
def test_kernel_and_twin_find_the_same_digits(numbers: list[float], single: bool, limit: float) -> None:
    found = []
    with np.errstate(over="ignore"):
        values = np.array(numbers, np.float32 if single else np.float64).astype(np.float64)
    for run in (scale_exactly, scale_exactly.source, scale_exactly.twin):
        out = np.zeros(len(values), np.int64)
        with np.errstate(all="ignore"):
            digits = run(values, 15, limit, single, out)
        found.append((digits, out.tolist() if digits >= 0 else []))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("number", [-0.0, float("nan"), float("inf"), -float("inf"), 1e300, 1e-30, 2.0**-40])
def test_what_would_come_back_otherwise_has_no_page(type_: DataType, number: float) -> None:
    with np.errstate(over="ignore"):
        values = array(type_, [1.5, number])
    assert encode_scaled(type_, values) is None
    with pytest.raises(UnsupportedEncoding, match=f"TS_2DIFF of {type_.name}"):
        encode(SCALED, type_, values)


@pytest.mark.parametrize("type_", FLOATS)
def test_pages_of_other_digits_are_read_in_one_call(type_: DataType) -> None:
    parts = [array(type_, part) for part in ([1, 2, 3], [0.5, 0.25], [7.125])]
    pages = [encode(SCALED, type_, part) for part in parts]
    assert [page[0] for page in pages] == [0, 2, 3]
    ends = np.cumsum([len(page) for page in pages])
    counts = np.array([len(part) for part in parts])
    out = np.empty(6, NUMPY_DTYPE[type_])
    stream = Stream(np.frombuffer(b"".join(pages), np.uint8))
    decode_pages_into(SCALED, type_, stream, ends - [len(page) for page in pages], ends, counts, out)
    assert out.tolist() == [1, 2, 3, 0.5, 0.25, 7.125]


def test_others_may_divide_by_powers_that_no_double_holds() -> None:
    page = bytes((23,)) + DOUBLE_PAGE[1:]
    assert again(DataType.DOUBLE, page, 1) == np.array([2025 / 10.0**23]).tobytes()


@pytest.mark.parametrize("page", ["", "02", "02 00000001 00000000 0000000000000019"], ids=["nothing", "digits", "cut"])
def test_a_damaged_page_is_refused(page: str) -> None:
    with pytest.raises(DecodeError, match="TS_2DIFF"):
        decode(SCALED, DataType.DOUBLE, memoryview(bytes.fromhex(page)), 1)


def test_others_pages_of_values_that_do_not_scale_are_refused_by_name() -> None:
    page = bytes.fromhex("feffffff07") + DOUBLE_PAGE[1:]
    with pytest.raises(UnsupportedEncoding, match="TS_2DIFF of DOUBLE"):
        decode(SCALED, DataType.DOUBLE, memoryview(page), 1)


@given(
    st.lists(st.lists(st.sampled_from((0.5, 20.25, 1 / 3, -0.0, 7.0)), min_size=3, max_size=3), min_size=1, max_size=5)
)
def test_the_rows_of_a_matrix_are_scaled_each_by_itself(rows: list[list[float]]) -> None:
    expected = [encode_scaled(DataType.DOUBLE, array(DataType.DOUBLE, row)) for row in rows]
    assert expected == encode_rows(DataType.DOUBLE, array(DataType.DOUBLE, rows))
    values = np.array(rows).ravel()
    for run in (scale_rows_exactly, scale_rows_exactly.source, scale_rows_exactly.twin):
        out, digits = np.zeros(len(values), np.int64), np.zeros(len(rows), np.int64)
        run(values, 15, 2.0**50, False, out, digits)
        assert [-1 if page is None else page[0] for page in expected] == digits.tolist()


def test_a_matrix_of_a_type_without_differences_is_refused() -> None:
    with pytest.raises(UnsupportedEncoding, match="TS_2DIFF of BOOLEAN"):
        encode_rows(DataType.BOOLEAN, np.zeros((1, 1), np.bool_))
