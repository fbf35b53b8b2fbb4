"""Compare the answers of Saros to SQL statements with recorded answers of IoTDB, using IoTDB's Python client for both.

    tests/iotdb/TOPIC.sql            statements, one a line, in order, for a server without databases; `--`: a comment
    tests/iotdb/answers/TOPIC.txt    the answers of IoTDB
    tests/iotdb/differences.toml     statements that Saros answers otherwise, by kind and reason; rules for random ones

An answer is `ok`, `error CODE`, or a header of `name TYPE` and a line for each row: JSON values, BLOB as hex digits,
TIMESTAMP as a number, DATE as YYYYMMDD. Answers are equal if their headers, types and rows are equal, except that
DOUBLE numbers may differ by a relative 1e-9, and FLOAT numbers by 1e-6. The order of rows counts if they have times or
if the statement orders them; the order of columns counts if the statement has no wildcard.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from iotdb.Session import Session
    from iotdb.tsfile.utils import tsblock_serde
    from iotdb.utils.exception import IoTDBConnectionException, StatementExecutionException

# IoTDB sends one repeated value for a column of constants or nulls, which the client would misread as bytes.
tsblock_serde.repeat = lambda values, _, count: np.repeat(values, count)

FOLDER = Path(__file__).parent / "iotdb"
#: By type, the relative difference up to which numbers count as equal.
TOLERANCES = {"FLOAT": 1e-6, "DOUBLE": 1e-9}
#: Matches a column in the header of a recorded answer: its name and type.
_COLUMN = re.compile(r"(.*?) (BOOLEAN|INT32|INT64|FLOAT|DOUBLE|TEXT|TIMESTAMP|DATE|BLOB|STRING)(?:, |$)")
FETCH_ROWS = 10_000
#: The kinds of differences that are counted separately. `fault`: IoTDB 2.0.1 fails, or contradicts itself or its
#: manual. `later`: a later version of IoTDB answers as Saros does. The other kinds are `more` (IoTDB refuses the
#: statement) and `choice`.
APART = ("fault", "later")
#: Removes the data of the previous topic. The statement fails if there are no databases.
_CLEAR = "delete database root.**"


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer to a statement."""

    #: `ok`, `error CODE`, or `rows`.
    outcome: str
    #: Pairs of name and type.
    columns: tuple[tuple[str, str], ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()

    def __str__(self) -> str:
        if self.outcome != "rows":
            return self.outcome
        header = ", ".join(f"{name} {kind}" for name, kind in self.columns)
        return "\n".join([header, *(json.dumps(row, ensure_ascii=False)[1:-1] for row in self.rows)])


@dataclass(slots=True)
class Comparison:
    """The number of compared statements, and the statements whose answers differ."""

    compared: int = 0
    #: Statement, expected answer, answer.
    different: list[tuple[str, Answer, Answer]] = field(default_factory=list)

    def add(self, statement: str, expected: Answer, answer: Answer) -> None:
        self.compared += 1
        if not equal(statement, expected, answer):
            self.different.append((statement, expected, answer))

    def share(self) -> str:
        equal = self.compared - len(self.different)
        apart = sum(kinds().get(statement) in APART for statement, _, _ in self.different)
        return (
            f"{equal} of {self.compared} answers equal ({equal / max(self.compared, 1):.1%}); without the {apart}"
            f" for which IoTDB is at fault or a later version agrees with Saros: {self.share_without_faults():.1%}"
        )

    def share_without_faults(self) -> float:
        """Return the share of equal answers, not counting statements with a difference of a kind in `APART`."""
        apart = sum(kinds().get(statement) in APART for statement, _, _ in self.different)
        return (self.compared - len(self.different)) / max(self.compared - apart, 1)


def topics() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.sql"))


@cache
def statements(topic: str) -> tuple[str, ...]:
    lines = (line.strip() for line in (FOLDER / f"{topic}.sql").read_text(encoding="utf-8").splitlines())
    return tuple(line.removesuffix(";") for line in lines if line and not line.startswith("--"))


def session_at(port: int) -> Session:
    session = Session("127.0.0.1", port, "root", "root", fetch_size=FETCH_ROWS, zone_id="UTC")
    session.open()
    return session


def answers(session: Session, topic: str) -> Iterator[tuple[str, Answer]]:
    """Delete all databases of a server, run the statements of a topic, and yield each with the server's answer."""
    ask(session, _CLEAR)
    for statement in statements(topic):
        yield statement, ask(session, statement)


def ask(session: Session, statement: str) -> Answer:
    try:
        # The client sends the second argument as the fetch size; by default, this would be 0.
        result = session.execute_statement(statement, FETCH_ROWS)
    except StatementExecutionException as error:
        return Answer(f"error {str(error).partition(':')[0]}")
    except IoTDBConnectionException:
        return Answer("error connection")
    if result is None:
        return Answer("ok")
    names, types = result.get_column_names(), [kind.name for kind in result.get_column_types()]
    has_times = not result.iotdb_rpc_data_set.ignore_timestamp
    rows = []
    try:
        while result.has_next():
            record = result.next()
            values = [item.value for item in record.get_fields()]
            rows.append([record.get_timestamp(), *values] if has_times else values)
    except (ValueError, AttributeError, TypeError):  # the client fails on some columns of one repeated value
        return Answer("error unreadable")
    result.close_operation_handle()
    plain = tuple(tuple(_plain(value, kind) for value, kind in zip(row, types, strict=True)) for row in rows)
    return Answer("rows", tuple(zip(names, types, strict=True)), plain)


def _plain(value: Any, kind: str) -> Any:
    if value is None or value is pd.NA:
        return None
    if isinstance(value, bytes):
        return f"0x{value.hex()}" if kind == "BLOB" else value.decode(errors="replace")
    if kind == "FLOAT":
        return float(str(np.float32(value)))
    return value.item() if isinstance(value, np.generic) else value


def write_recording(topic: str, answered: Sequence[tuple[str, Answer]]) -> None:
    text = "\n\n".join(f"> {statement}\n{answer}" for statement, answer in answered)
    (FOLDER / "answers" / f"{topic}.txt").write_text(f"{text}\n", encoding="utf-8")


def recording(topic: str) -> list[tuple[str, Answer]]:
    text = (FOLDER / "answers" / f"{topic}.txt").read_text(encoding="utf-8")
    return [_recorded(part) for part in re.split(r"\n\n(?=> )", text.removesuffix("\n").removeprefix("> "))]


def _recorded(part: str) -> tuple[str, Answer]:
    statement, *lines = part.removeprefix("> ").split("\n")
    if lines[0] == "ok" or lines[0].startswith("error "):
        return statement, Answer(lines[0])
    columns = tuple(_COLUMN.findall(lines[0]))
    return statement, Answer("rows", columns, tuple(tuple(json.loads(f"[{line}]")) for line in lines[1:]))


def equal(statement: str, expected: Answer, answer: Answer) -> bool:
    """Return whether two answers to a statement are equal by the module's definition."""
    return _outline(statement, expected) == _outline(statement, answer) and all(
        _same(one, other, TOLERANCES.get(kind, 0.0))
        for left, right in zip(_rows(statement, expected), _rows(statement, answer), strict=True)
        for (_, kind), one, other in zip(_columns(statement, expected), left, right, strict=True)
    )


def _outline(statement: str, answer: Answer) -> tuple[str, list[tuple[str, str]], int]:
    return answer.outcome, _columns(statement, answer), len(answer.rows)


def _columns(statement: str, answer: Answer) -> list[tuple[str, str]]:
    return [answer.columns[at] for at in _order(statement, answer)]


def _order(statement: str, answer: Answer) -> list[int]:
    """Return the columns' indices in the order in which the columns are compared."""
    places = range(len(answer.columns))
    return sorted(places, key=lambda at: answer.columns[at]) if "*" in statement else list(places)


def _rows(statement: str, answer: Answer) -> list[list[Any]]:
    rows = [[row[at] for at in _order(statement, answer)] for row in answer.rows]
    names = [name for name, _ in answer.columns]
    by_time = names[:1] == ["Time"] and not {"Device", "Timeseries"} & set(names)
    return rows if by_time or re.search(r"\border\s+by\b", statement, re.IGNORECASE) else sorted(rows, key=str)


def _same(one: Any, other: Any, tolerance: float) -> bool:
    if not (isinstance(one, float) and isinstance(other, float)):
        return one == other and type(one) is type(other)
    return math.isclose(one, other, rel_tol=tolerance) or (math.isnan(one) and math.isnan(other))


def differences() -> dict[str, str]:
    """Return the reason for each deliberate difference, by statement."""
    return {statement: entry["reason"] for entry in _listed()["differences"] for statement in entry["statements"]}


def kinds() -> dict[str, str]:
    """Return the kind of each deliberate difference, by statement."""
    return {statement: entry["kind"] for entry in _listed()["differences"] for statement in entry["statements"]}


def rule_for(statement: str, expected: Answer, answer: Answer) -> str | None:
    """Return the reason of the first rule that explains why answers to a random query differ, or None.

    A rule has a pattern for the statement, and optionally patterns for the outcomes in IoTDB and in Saros. A rule with
    `only` explains one aspect of an answer: without this aspect, and the aspects of earlier rules, the answers must be
    equal.
    """
    for rule in _listed()["rules"]:
        parts = ((statement, "statement"), (expected.outcome, "iotdb"), (answer.outcome, "saros"))
        if not all(re.search(rule.get(key, ""), text) for text, key in parts):
            continue
        if "only" in rule:
            expected, answer = _ASPECTS[rule["only"]](expected, answer)
            if not equal(statement, expected, answer):
                continue
        return str(rule["reason"])
    return None


def _without_parentheses(*answers: Answer) -> list[Answer]:
    """Remove parentheses and spaces from the names of columns."""
    names = ([(re.sub(r"[() ]", "", name), kind) for name, kind in answer.columns] for answer in answers)
    return [replace(answer, columns=tuple(columns)) for answer, columns in zip(answers, names, strict=True)]


def _without_types(*answers: Answer) -> list[Answer]:
    """Make all numbers DOUBLE."""
    return [
        replace(
            answer,
            columns=tuple((name, "DOUBLE" if kind in _NUMBERS else kind) for name, kind in answer.columns),
            rows=tuple(tuple(float(value) if type(value) is int else value for value in row) for row in answer.rows),
        )
        for answer in answers
    ]


def _rounded(*answers: Answer) -> list[Answer]:
    """Make all numbers DOUBLE, and round them to three decimals."""
    return [
        replace(
            answer,
            rows=tuple(
                tuple(round(value, 3) if isinstance(value, float) else value for value in row) for row in answer.rows
            ),
        )
        for answer in _without_types(*answers)
    ]


def _rows_of_both(expected: Answer, answer: Answer) -> list[Answer]:
    """Remove the rows of IoTDB whose time and device no row of Saros has."""
    keys = [at for at, (name, _) in enumerate(expected.columns) if name in ("Time", "Device")]
    known = {tuple(row[at] for at in keys) for row in answer.rows}
    return [replace(expected, rows=tuple(r for r in expected.rows if tuple(r[at] for at in keys) in known)), answer]


def _columns_of_both(expected: Answer, answer: Answer) -> list[Answer]:
    """Remove the columns of IoTDB that Saros does not return."""
    kept = [at for at, column in enumerate(expected.columns) if column in answer.columns]
    columns = tuple(expected.columns[at] for at in kept)
    return [replace(expected, columns=columns, rows=tuple(tuple(r[at] for at in kept) for r in expected.rows)), answer]


def _empty_of_both(expected: Answer, answer: Answer) -> list[Answer]:
    """Give Saros the rows of IoTDB if these have no values, but only nulls and counts of 0."""
    return (
        [expected, answer]
        if any(any(row[1:]) for row in expected.rows)
        else [expected, replace(answer, rows=expected.rows)]
    )


_NUMBERS = ("INT32", "INT64", "FLOAT", "DOUBLE", "TIMESTAMP")
_ASPECTS: dict[str, Callable[[Answer, Answer], Sequence[Answer]]] = {
    "names": _without_parentheses,
    "types": _without_types,
    "decimals": _rounded,
    "more rows": _rows_of_both,
    "more columns": _columns_of_both,
    "no rows": _empty_of_both,
}


@cache
def _listed() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "differences.toml").read_text(encoding="utf-8"))
