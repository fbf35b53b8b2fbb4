"""A sample of statements: IoTDB's answers are compared with those of Saros.

Cases that belong to later work are listed in `conformance_pending.txt` by id: a listed case that starts to pass fails
the test, so that the list only shrinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine.conformance import SAMPLE, Setup, differs, load_cases
from engine.embedded_engine import Engine

PENDING = Path(__file__).with_name("conformance_pending.txt")


def _problem(engine: Engine, case: dict[str, Any]) -> str | None:
    if case["type"] == "error":
        try:
            engine.ask(case["statement"])
        except Exception as error:  # noqa: BLE001
            return None if str(error) else "an error without a message"
        return "the statement must fail and did not"
    try:
        header, rows = engine.ask(case["query"])
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return differs(case, header, rows)


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(tmp_path)
    yield engine
    engine.close()


@pytest.mark.parametrize("setup_id", list(load_cases()) if SAMPLE.exists() else ["absent"])
def test_sample(setup_id: str, engines: Engine) -> None:
    if not SAMPLE.exists():
        pytest.skip("conformance/sample.jsonl is not here")
    setup: Setup = load_cases()[setup_id]
    for statement in setup.statements:
        try:
            engines.ask(statement)
        except Exception as error:
            if getattr(error, "code", None) not in (501, 503, 507, 2002):
                raise
    pending = set(PENDING.read_text().split())
    problems = {case["id"]: _problem(engines, case) for case in setup.cases}
    wrong = [f"{id_}: {text}" for id_, text in problems.items() if text is not None and id_ not in pending]
    assert not wrong, "\n".join(wrong)
    passing = [id_ for id_, text in problems.items() if text is None and id_ in pending]
    assert not passing, f"no longer pending: {passing}"
