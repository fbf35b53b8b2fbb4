"""The answer of SELECT INTO."""

from __future__ import annotations

from saros_engine.planner.into import Target
from saros_engine.statements.select_into import written
from saros_storage.base.types import DataType


def test_written_points_are_int32_and_larger_counts_the_largest() -> None:
    targets = [Target(None, column, "root.a.d", f"m{column}", aligned=False) for column in (0, 1)]
    fields, rows = written(targets, ["x", "y"], [3, 2**40])
    assert [DataType.TEXT, DataType.TEXT, DataType.INT32] == [field.type for field in fields]
    assert [["x", "root.a.d.m0", 3], ["y", "root.a.d.m1", 2**31 - 1]] == rows
