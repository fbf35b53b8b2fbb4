"""All functions are in one table, where they are found by name.

`declared` makes an entry; calls are checked against its signature.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import saros
from saros_engine.functions.function import declared, stateless
from saros_engine.functions.registry import AGGREGATES, FUNCTIONS
from saros_engine.transforms import POINT_FUNCTIONS
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import NUMERIC_TYPES, STRING_TYPES, DataType


def _sum(columns: list[Column], _: Block) -> Column:
    return Column(DataType.DOUBLE, columns[0].numbers + columns[1].numbers, columns[0].present & columns[1].present)


PLUS = declared("plus", stateless(_sum), NUMERIC_TYPES, NUMERIC_TYPES, result=DataType.DOUBLE, aliases=("add",))


def test_no_name_is_in_two_tables() -> None:
    names = Counter([*FUNCTIONS, *AGGREGATES, *POINT_FUNCTIONS])
    assert [] == [name for name, count in names.items() if count > 1]


def test_a_table_has_each_function_under_its_name_and_its_aliases() -> None:
    assert {"substr": "substring"} == {name: f.name for name, f in FUNCTIONS.items() if name != f.name}
    assert [] == [name for table in (AGGREGATES, POINT_FUNCTIONS) for name, f in table.items() if name != f.name]


def test_an_entry_is_callable_from_sql_without_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(FUNCTIONS, "plus", PLUS)
    with saros.connect(tmp_path / "data") as connection:
        connection.execute("insert into root.a.d(time, x, y) values (1, 1.5, 2), (2, 3, null)")
        connection.execute("insert into root.a.d(time, note) values (1, 'n')")
        values = connection.execute("select Plus(x, y) from root.a.d").fetchall()
        assert [3.5, None] == [value for _, value in values]
        shown = connection.execute("show functions").fetchall()
        assert ("PLUS", "built-in scalar function") in [row[:2] for row in shown]
        with pytest.raises(saros.ProgrammingError, match=r"plus takes \(.*\), not \(DOUBLE, TEXT\)"):
            connection.execute("select plus(x, note) from root.a.d")


@pytest.mark.parametrize("given", [(), (DataType.TEXT,), (DataType.TEXT, DataType.INT32, DataType.INT32)])
def test_a_declared_signature_refuses_what_does_not_fit(given: tuple[DataType, ...]) -> None:
    function = declared("cut", stateless(_sum), STRING_TYPES, NUMERIC_TYPES, optional=1, attributes=("at",))
    with pytest.raises(UserMistake, match="cut"):
        function.check(given)


def test_a_declared_signature_gives_the_result_type() -> None:
    same = declared("same", stateless(_sum), NUMERIC_TYPES, STRING_TYPES, optional=1, attributes=("at",))
    assert DataType.INT32 is same.check((DataType.INT32,), (("at", "1"),))
    assert DataType.FLOAT is same.check((DataType.FLOAT, DataType.TEXT), (("at", "1"),))
    assert DataType.DOUBLE is PLUS.check((DataType.INT32, DataType.FLOAT))
