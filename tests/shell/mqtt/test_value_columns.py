from __future__ import annotations

from datetime import date

import pytest

from saros_shell.mqtt.payload_formats import TimeScale, Value
from saros_shell.mqtt.value_columns import new_type, to_array
from saros_storage.base.types import DataType

MS = TimeScale("ms", "ms")


@pytest.mark.parametrize(
    ("values", "type_"),
    [([None, 1], DataType.DOUBLE), ([True], DataType.BOOLEAN), (["x"], DataType.TEXT), ([1.5], DataType.DOUBLE)],
)
def test_the_type_of_a_new_series(values: list[Value | None], type_: DataType) -> None:
    assert type_ is new_type(values)


@pytest.mark.parametrize(
    ("type_", "values", "converted", "misfits"),
    [
        (DataType.DOUBLE, [1, 2.5, None], [1.0, 2.5, None], []),
        (DataType.DOUBLE, [2**60 + 1, True, "x"], [float(2**60), None, None], [1, 2]),
        (DataType.FLOAT, [1, 1e300], [1.0, None], [1]),
        (DataType.INT64, [1, 2.0, 2.5, 2**63, 1e300, True], [1, 2, None, None, None, None], [2, 3, 4, 5]),
        (DataType.INT32, [2**31 - 1, 2**31], [2**31 - 1, None], [1]),
        (DataType.BOOLEAN, [True, 1, "true"], [True, None, None], [1, 2]),
        (DataType.TEXT, ["x", 1], ["x", None], [1]),
        (DataType.STRING, ["x", None], ["x", None], []),
        (DataType.BLOB, ["0x00ff", "00", 1], [b"\0\xff", None, None], [1, 2]),
        (DataType.DATE, ["2024-02-29", "2023-02-29", 1], [date(2024, 2, 29), None, None], [1, 2]),
        (DataType.TIMESTAMP, ["1970-01-01T00:00:01", 5, True], [1_000, 5, None], [2]),
    ],
)
def test_values_fit_or_are_left_out(
    type_: DataType, values: list[Value | None], converted: list[object], misfits: list[int]
) -> None:
    array, found = to_array(values, type_, MS)
    assert (converted, misfits) == (array.to_pylist(), [misfit.index for misfit in found])


def test_a_reason_names_value_and_type() -> None:
    _, (misfit,) = to_array(["x" * 1_000], DataType.DOUBLE, MS)
    assert f"'{'x' * 39}... does not fit DOUBLE" == misfit.reason
