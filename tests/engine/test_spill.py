"""Spilled rows: a file returns the written rows, and an external sort returns the same rows as a sort in memory."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from engine.operator_fakes import BOOL, DOUBLE, LONG, TEXT, Row, Source, block, blocks, fields, memory_of, pull, rows_of

from saros_engine.base.errors import MemoryExceeded
from saros_engine.memory.spill import QuerySpill
from saros_engine.operators.operator import OperatorContext
from saros_engine.operators.sort import SortOperator
from saros_engine.plan.expression import InputColumn, InputTime
from saros_engine.plan.plan import Sort, SortItem

TYPES = (DOUBLE, LONG, TEXT, BOOL)
ROWS = 4_000


def drawn(chance: Random) -> list[Row]:
    """Return random rows with few different keys, so that most rows differ only in time."""

    def row(time: int) -> Row:
        number = chance.choice((None, float("nan"), 0.0, -1.5, 2.0, 3.25))
        text = chance.choice((None, "", "a", "ä", "b" * 30))
        return time, number, chance.choice((None, chance.randrange(5))), text, chance.choice((None, True, False))

    return [row(time) for time in range(ROWS)]


def sorted_rows(
    rows: list[Row], keys: tuple[SortItem, ...], context: OperatorContext, limit: int | None = None
) -> list[str]:
    """Return the sorted rows as texts, because NaN does not equal itself."""
    operator = SortOperator(Sort(None, keys, fields(*TYPES), limit), Source(blocks(TYPES, rows, 297)), context)  # type: ignore[arg-type]
    return list(map(repr, rows_of(pull(operator))))


def in_files(folder: Path, memory: int) -> tuple[OperatorContext, QuerySpill]:
    spill = QuerySpill(str(folder), 1 << 30)
    return OperatorContext(memory_of(memory), spill=spill), spill


@pytest.mark.parametrize("limit", [None, 10, 2_000])
@pytest.mark.parametrize("columns", [(0,), (2,), (3, 1, 0)])
def test_a_sort_in_files_is_the_one_in_memory(columns: tuple[int, ...], limit: int | None, tmp_path: Path) -> None:
    chance = Random(len(columns))
    rows = drawn(chance)
    for descending, nulls_first in ((False, False), (True, False)):
        keys = tuple(SortItem(InputColumn(c, TYPES[c]), descending, nulls_first) for c in columns)
        expected = sorted_rows(rows, keys, OperatorContext(), limit)
        context, spill = in_files(tmp_path, 150_000)
        assert expected == sorted_rows(rows, keys, context, limit)
        assert spill.bytes == 0
        assert spill.peak > 0 or limit == 10


def test_no_file_is_to_be_seen(tmp_path: Path) -> None:
    spill = QuerySpill(str(tmp_path), 1 << 20)
    file = spill.open()
    file.write(block((LONG,), [(1, 1)]))
    assert list(tmp_path.iterdir()) == []
    file.close()


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    rows = drawn(Random(1))
    parts = blocks(TYPES, rows, 500)
    parts += [part.slice(17, 40) for part in parts]  # the text of a slice begins at an offset
    parts += [block((TEXT, LONG), [("a", None), (None, 3)], timed=False)]
    file = QuerySpill(str(tmp_path), 1 << 30).open()
    places = [file.write(part) for part in parts]
    for place, part in reversed(list(zip(places, parts, strict=True))):
        assert repr(rows_of([part])) == repr(rows_of([file.read(place)]))
    file.close()


def test_files_are_bounded(tmp_path: Path) -> None:
    context = OperatorContext(memory_of(200_000), spill=QuerySpill(str(tmp_path), 60_000))
    key = SortItem(InputTime(), descending=True, nulls_first=False)
    source = Source(blocks(TYPES, drawn(Random(1)), 297))
    operator = SortOperator(Sort(None, (key,), fields(*TYPES)), source, context)  # type: ignore[arg-type]
    with pytest.raises(MemoryExceeded, match="query_spill_bytes") as caught:
        pull(operator)
    assert caught.value.code == 709
    operator.close()
    assert context.spill is not None
    assert context.spill.bytes == 0


def test_what_others_hold_makes_a_sort_put_its_rows_away(tmp_path: Path) -> None:
    rows = drawn(Random(2))
    memory = memory_of(1 << 30)
    memory.reserve((1 << 30) - 50_000)
    spill = QuerySpill(str(tmp_path), 1 << 30)
    keys = (SortItem(InputTime(), descending=True, nulls_first=False),)
    found = sorted_rows(rows, keys, OperatorContext(memory, spill=spill))
    assert list(map(repr, rows[::-1])) == found
    assert spill.peak > 0
