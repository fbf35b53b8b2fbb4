"""Read the conformance cases and compare answers by the rules in their README, for `test_conformance`."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

SAMPLE = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "sample.jsonl"


@dataclass
class Setup:
    """Statements that create a database, and the cases that query this database."""

    statements: list[str] = field(default_factory=list)
    cases: list[dict[str, Any]] = field(default_factory=list)


def load_cases() -> dict[str, Setup]:
    """Return each setup by its id, in the order of the file.

    The id of a case consists of the id of its setup and the number of the case in the file.
    """
    setups: dict[str, Setup] = {}
    for number, line in enumerate(SAMPLE.read_text().splitlines()):
        words = json.loads(line)
        setup = setups.setdefault(words["setup_id"], Setup())
        if words["type"] == "setup":
            setup.statements = words["statements"] or []
        else:
            setup.cases.append(words | {"id": f"{words['setup_id'][:8]}-{number}"})
    return setups


def differs(case: dict[str, Any], header: list[str], rows: list[list[object]]) -> str | None:
    """Return a description of the first mismatch in an answer, or None if it is correct."""
    expected_header = case["expected_header"]
    if expected_header is not None and case.get("projection") == "by_name":
        missing = [name for name in expected_header if name not in header]
        if missing:
            return f"header lacks {missing}: {header}"
        places = [header.index(name) for name in expected_header]
        rows = [[row[i] for i in places] for row in rows]
    elif expected_header is not None and header != expected_header:
        return f"header {header} is not {expected_header}"
    if case.get("projection") == "by_position" and case.get("positions"):
        rows = [[row[i - 1] for i in case["positions"]] for row in rows]
    if case.get("expected_row_count") not in (None, len(rows)):
        return f"{len(rows)} rows, not {case['expected_row_count']}: {rows[:5]}"
    return _rows_differ(case, rows)


def _rows_differ(case: dict[str, Any], rows: list[list[object]]) -> str | None:
    expected = case["expected_rows"]
    if expected is None:
        return None
    tolerance = case.get("float_tolerance") or 1e-9
    if case.get("complete") and len(rows) != len(expected):
        return f"{len(rows)} rows, not {len(expected)}: {rows[:5]} for {expected[:5]}"
    if case.get("ordered"):
        for row, wanted in zip(rows, expected, strict=False):
            if not _same_row(row, wanted, tolerance):
                return f"row {row} is not {wanted}"
        return None
    left = list(rows)
    for wanted in expected:
        found = next((row for row in left if _same_row(row, wanted, tolerance)), None)
        if found is None:
            return f"no row {wanted} in {left[:5]}"
        left.remove(found)
    return None


def _same_row(row: list[object], wanted: list[object], tolerance: float) -> bool:
    return len(row) == len(wanted) and all(_same(a, b, tolerance) for a, b in zip(row, wanted, strict=True))


def _same(value: object, wanted: object, tolerance: float) -> bool:
    if value is None or wanted is None:
        return value is None and wanted in (None, "null", "")
    first, second = _number(value), _number(wanted)
    if first is not None and second is not None:
        if isinstance(value, str) and isinstance(wanted, float) and wanted == np.float32(wanted):
            first = float(np.float32(first))  # the answer has the shortest digits of a FLOAT
        return math.isclose(first, second, rel_tol=tolerance, abs_tol=tolerance) or (
            first != first and second != second
        )
    return _text(value) == _text(wanted) or _words(value) == _words(wanted) != {}


def _words(value: object) -> dict[str, str]:
    """Return tags or attributes as a dictionary, since their order is irrelevant."""
    text = str(value)
    return dict(json.loads(text)) if text.startswith("{") else {}


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return "0x" + value.hex()
    text = str(value)
    return text.lower() if text in ("True", "False") else text
