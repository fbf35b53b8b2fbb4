"""Imports of JSON lines: the members of objects become columns, whose types follow from the values."""

from __future__ import annotations

from pathlib import Path

import pytest

from saros_server.sources.input_files import read_source
from saros_server.sources.source_layout import SourceBatch
from saros_server.sources.source_options import SourceError, SourceOptions


def read(tmp_path: Path, *lines: str, **options: object) -> list[SourceBatch]:
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return list(read_source(file, None, SourceOptions(**options)))  # type: ignore[arg-type]


def columns(batch: SourceBatch) -> dict[str, tuple[str, list[object]]]:
    return {column.name: (column.type.name, column.values.to_pylist()) for column in batch.columns}


@pytest.mark.parametrize(
    ("values", "type_", "found"),
    [
        (["1", "2.5"], "DOUBLE", [1.0, 2.5]),
        (["true", "false"], "BOOLEAN", [True, False]),
        (['"00123"', '"true"'], "TEXT", ["00123", "true"]),
        (['""', "null"], "TEXT", ["", None]),
        (["9007199254740993", "1"], "INT64", [9007199254740993, 1]),
        (['"NaN"', "1.5"], "DOUBLE", [pytest.approx(float("nan"), nan_ok=True), 1.5]),
        (["NaN", "-Infinity"], "DOUBLE", [pytest.approx(float("nan"), nan_ok=True), float("-inf")]),
        (["5", '"on"'], "TEXT", ["5", "on"]),
        (["1e-7", "0.1"], "DOUBLE", [1e-7, 0.1]),
    ],
)
def test_values_have_the_type_of_all_of_them(
    tmp_path: Path, values: list[str], type_: str, found: list[object]
) -> None:
    (batch,) = read(tmp_path, *(f'{{"time": {i}, "v": {value}}}' for i, value in enumerate(values)))
    assert {"v": (type_, found)} == columns(batch)


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
@pytest.mark.parametrize(
    ("values", "type_", "found", "note"),
    [
        (["1", "2", '"007"', '"n/a"', '"on"'], "TEXT", ["1", "2", "007", "n/a", "on"], "'on' is not a number"),
        (['"on"', "1", "2"], "TEXT", ["on", "1", "2"], "'on' is not a number"),
        (['"007"', "1.5", '"-"'], "DOUBLE", [7.0, 1.5, None], "'-' is read as null"),
        (["1", "1.5", "9007199254740993"], "DOUBLE", [1.0, 1.5, 2.0**53], None),
        (["1", "9007199254740993", "-1"], "INT64", [1, 2**53 + 1, -1], "n is INT64, since a DOUBLE does not hold"),
        (["true", "1", "false"], "TEXT", ["true", "1", "false"], "n is TEXT, since it holds true or false"),
        (["true", '"on"'], "TEXT", ["true", "on"], "n is TEXT, since it holds true or false"),
        (["1", '"Infinity"', '""'], "DOUBLE", [1.0, float("inf"), None], None),
    ],
)
def test_the_type_of_new_series_is_that_of_all_values_of_the_file(
    tmp_path: Path, values: list[str], type_: str, found: list[object], note: str | None, batch_rows: int
) -> None:
    batches = read(tmp_path, *(f'{{"time": {i}, "n": {v}}}' for i, v in enumerate(values)), batch_rows=batch_rows)
    assert [] == [row for batch in batches for row in batch.bad]
    read_values = [(c.type.name, v) for b in batches for c in b.columns for v in c.values.to_pylist() if v is not None]
    assert [(type_, value) for value in found if value is not None] == read_values
    notes = [one for batch in batches for one in batch.notes]
    assert [note] == [note if note and note in one else one for one in notes] if note else [] == notes


def test_an_existing_type_or_an_option_needs_no_note(tmp_path: Path) -> None:
    (batch,) = read(tmp_path, '{"time": 1, "n": 5}', '{"time": 2, "n": "on"}', types={"n": "TEXT"})
    assert ({"n": ("TEXT", ["5", "on"])}, []) == (columns(batch), batch.notes)


def test_a_member_may_be_absent_and_may_state_its_type(tmp_path: Path) -> None:
    (batch,) = read(
        tmp_path, '{"Time": "2024-01-01T00:00:00Z", "root.a.d.n(INT32)": 7}', '{"Time": "2024-01-02", "s": "x"}'
    )
    assert {"root.a.d.n": ("INT32", [7, None]), "s": ("TEXT", [None, "x"])} == columns(batch)


def test_lines_that_are_no_objects_are_bad_rows_and_blank_ones_none(tmp_path: Path) -> None:
    first, second = read(
        tmp_path,
        '{"time": 1, "v": 1}',
        "",
        "[1]",
        '{"time": "x", "v": 2}',
        '{"time": 3, "v"',
        '{"time": 4, "v": 4}',
        batch_rows=2,
        time_format="epoch",
    )
    reasons = {3: "is not a JSON object", 4: "time: 'x' is not an integer time", 5: "is not a JSON object"}
    assert reasons == {row.number: row.reason for batch in (first, second) for row in batch.bad}
    assert ([1], [4]) == (first.times.to_pylist(), second.times.to_pylist())
    assert {"line"} == {row.unit for batch in (first, second) for row in batch.bad}


def test_objects_and_lists_are_left_out_and_named(tmp_path: Path) -> None:
    (batch,) = read(tmp_path, '{"time": 1, "tags": {"host": "a"}, "v": 1, "l": [1]}')
    assert {"v": ("DOUBLE", [1.0])} == columns(batch)
    assert [f"{name} is left out: no series can hold objects or lists" for name in ("tags", "l")] == batch.notes


def test_a_file_without_values_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has no column of values beside 'time'"):
        read(tmp_path, '{"time": 1}')
