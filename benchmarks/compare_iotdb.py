"""Compare the answers of a running IoTDB with those of Saros, through IoTDB's Python client; or record IoTDB's answers.

python benchmarks/compare_iotdb.py [--port 6667] [--record] [TOPIC ...]
python benchmarks/compare_iotdb.py [--port 6667] --minutes M [--seed 1] [--samples N]

The statements are those of `tests/iotdb/*.sql`; see `tests/iotdb_answers.py`. IoTDB must run on this machine with user
root, password root; all its databases are dropped. Without --record, the program prints the answers that differ and are
not in `tests/iotdb/differences.toml`, and the percentage of equal answers; the exit code is 1 if it prints a
difference. With --record, it writes IoTDB's answers to `tests/iotdb/answers`, without starting Saros. With --minutes,
it runs random queries over random databases (`tests/engine/model`) on both servers, and prints the seed of each
database with a difference that no rule of `differences.toml` explains. It then prints how many differences each rule
explains, and with --samples some of these differences.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any

from own_server import own_server

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from engine.model.asked import Query
from engine.model.drawing import DEVICES, QueryDrawing, draw_history
from engine.model.expressions import Binary, Constant, Expression, Value, kind_of
from engine.model.history import TYPES, Database, Delete, Write
from engine.model.windows import TimeWindows
from iotdb_answers import Comparison, Session, answers, ask, differences, rule_for, session_at, topics, write_recording

#: The number of changes to a random database, and the number of queries over it.
_STEPS, _QUERIES = 12, 40


def record(session: Session, names: Sequence[str]) -> int:
    for topic in names:
        answered = list(answers(session, topic))
        write_recording(topic, answered)
        print(f"{topic}: {len(answered)} answers recorded")
    return 0


def compare(iotdb: Session, saros: Session, names: Sequence[str]) -> int:
    comparison, listed = Comparison(), differences()
    for topic in names:
        for (statement, expected), (_, answer) in zip(answers(iotdb, topic), answers(saros, topic), strict=True):
            comparison.add(statement, expected, answer)
    unexplained = [item for item in comparison.different if item[0] not in listed]
    for statement, expected, answer in unexplained:
        print(f"> {statement}\nIoTDB: {expected}\nSaros: {answer}\n")
    print(f"{comparison.share()}, {len(unexplained)} differences without a reason")
    return 1 if unexplained else 0


# ---------------------------------------------------------------------------------------------- random queries


def campaign(iotdb: Session, saros: Session, minutes: float, seed: int, samples: int) -> int:
    """Compare answers for some minutes."""
    deadline, comparison = time.monotonic() + 60 * minutes, Comparison()
    explained: dict[str | None, list[str]] = {None: []}
    for number in itertools.count(seed):
        if time.monotonic() > deadline:
            break
        for statement in statements_of(number):
            expected, answer = ask(iotdb, statement), ask(saros, statement)
            before = len(comparison.different)
            comparison.add(statement, expected, answer)
            if len(comparison.different) == before:
                continue
            rule = rule_for(statement, expected, answer)
            text = f"seed {number}\n> {statement}\nIoTDB: {expected}\nSaros: {answer}\n"
            explained.setdefault(rule, []).append(text)
            if rule is None:
                print(text, flush=True)
    unexplained = len(explained.pop(None))
    for rule, texts in sorted(explained.items(), key=lambda item: -len(item[1])):
        print(f"{len(texts):5} {rule}", *texts[:samples], sep="\n")
    print(f"{comparison.share()}, {unexplained} differences without a rule")
    return 1 if unexplained else 0


def statements_of(seed: int) -> Iterator[str]:
    """Yield statements that make a random database, followed by queries over it."""
    chance = Random(seed)
    history, model = draw_history(chance, _STEPS), Database()
    yield "delete database root.**"
    for database in ("root.g", "root.h"):
        yield f"create database {database}"
    for device in sorted({change.device for change in history if isinstance(change, Write)}):
        yield from _creation(device, DEVICES[device])
    for change in history:
        model.apply(change)
        yield _deletion(change) if isinstance(change, Delete) else _insertion(change)
    drawing = QueryDrawing(chance, model)
    for _ in range(_QUERIES):
        yield comparable(drawing.draw()).text()


# ---------------------------------------------------------------------------------------------- comparable queries


def comparable(query: Query) -> Query:
    """Return the query without the constructs that are known to yield other values in IoTDB.

    In Saros, the quotient of whole numbers is a whole number; IoTDB reads `3 < x` as `x < 3`, and `x * -1` as `x - 1`;
    in descending order, its windows of rows begin with the last row.
    """
    windows = query.windows
    if windows is not None and windows.controls:
        windows = replace(windows, **{field.name: _alike(getattr(windows, field.name)) for field in fields(windows)})
    items = tuple(replace(item, expression=_alike(item.expression)) for item in query.items)
    texts = {item.text(): new.text() for item, new in zip(query.items, items, strict=True)}
    order = tuple(replace(key, column=texts.get(key.column, key.column)) for key in query.order)
    if windows is not None and not isinstance(windows, TimeWindows):
        order = tuple(key for key in order if key.column != "time" or not key.descending)
    where = tuple(_alike(part) for part in query.where)
    return replace(query, items=items, where=where, windows=windows, having=_alike(query.having), order=order)


def _alike(part: Any) -> Any:
    """Return an expression without the constructs that differ; return any other object unchanged."""
    if not isinstance(part, Expression):
        return tuple(map(_alike, part)) if isinstance(part, tuple) else part
    changed = replace(part, **{field.name: _alike(getattr(part, field.name)) for field in fields(part)})
    if not isinstance(changed, Binary):
        return changed
    if kind_of(changed) == "whole":
        changed = replace(changed, left=Binary("+", changed.left, Constant(0.0)))
    if changed.operator in _MIRRORED and isinstance(changed.left, Constant):
        changed = Binary(_MIRRORED[changed.operator], changed.right, changed.left)
    elif changed.operator in "+-*/%" and isinstance(changed.right, Constant):
        changed = replace(changed, right=Constant(abs(changed.right.value)))
    return changed


_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _creation(device: str, aligned: bool) -> Iterator[str]:
    if aligned:
        yield f"create aligned timeseries {device}({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})"
    else:
        yield from (f"create timeseries {device}.{name} {kind}" for name, kind in TYPES.items())


def _deletion(change: Delete) -> str:
    return f"delete from {change.pattern} where time >= {change.start} and time < {change.end}"


def _insertion(change: Write) -> str:
    rows = zip(change.times, *change.columns.values(), strict=True)
    values = (f"({time}, {', '.join(map(_literal, row))})" for time, *row in rows)
    aligned = "aligned " * change.aligned
    return f"insert into {change.device} {aligned}(time, {', '.join(change.columns)}) values {', '.join(values)}"


def _literal(value: Value) -> str:
    """Return a literal that both dialects read alike; the dialects differ for infinity and for the sign of zero."""
    if isinstance(value, float) and not (value and math.isfinite(value)):
        return "NaN" if math.isnan(value) else "0.0" if value == 0 else "1e30"
    return f"'{value}'" if isinstance(value, str) else "null" if value is None else str(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", default=topics())
    parser.add_argument("--port", type=int, default=6667, help="where IoTDB listens (default 6667)")
    parser.add_argument("--record", action="store_true", help="rewrite tests/iotdb/answers")
    parser.add_argument("--minutes", type=float, default=0, help="compare random queries for so long")
    parser.add_argument("--seed", type=int, default=1, help="of the first random database")
    parser.add_argument("--samples", type=int, default=0, help="differences to print of each rule")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    try:
        iotdb = session_at(arguments.port)
    except Exception as error:  # noqa: BLE001 (the client raises several kinds)
        print(f"skipped: there is no IoTDB at port {arguments.port} ({error}); start one, or pass --port")
        return 0
    if arguments.record:
        return record(iotdb, arguments.topics)
    with own_server() as server:
        if arguments.minutes:
            samples = arguments.samples
            return campaign(iotdb, session_at(server.port), arguments.minutes, arguments.seed, samples)
        return compare(iotdb, session_at(server.port), arguments.topics)


if __name__ == "__main__":
    sys.exit(main())
