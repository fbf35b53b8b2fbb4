"""The sample of IoTDB's answers, asked of a whole engine in a folder of its own.

Cases that belong to later work are listed in `conformance_pending.txt` by id: a listed case that starts to pass fails
the test, so that the list only shrinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine.conformance import SAMPLE, Setup, differs, load_cases

from saros_engine.coordinator import QueryEngine, SessionContext
from saros_engine.options import EngineOptions
from saros_scheduler import DriverScheduler, SchedulerOptions
from saros_storage.clock import SystemClock
from saros_storage.disk import LocalDisk
from saros_storage.store import Store
from saros_storage.store_options import StoreOptions
from saros_storage.types import DataType

PENDING = Path(__file__).with_name("conformance_pending.txt")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Engine:
    """A store with an engine on top, in a folder."""

    def __init__(self, folder: Path) -> None:
        clock = SystemClock()
        self.store = Store.open(str(folder), StoreOptions(durability="os"), LocalDisk(), clock)
        self.scheduler = DriverScheduler(SchedulerOptions(), clock.monotonic_ns)
        self.engine = QueryEngine(self.store, self.scheduler, clock, EngineOptions())
        self.session = SessionContext()

    def ask(self, text: str) -> tuple[list[str], list[list[object]]]:
        """Header and rows of a statement."""
        result = self.engine.execute(text, self.session)
        header = (["Time"] if result.timed else []) + [field.name for field in result.fields]
        rows: list[list[object]] = []
        try:
            while (block := result.next_block()) is not None:
                columns: list[list[object]] = [[_shown(v, c.type) for v in c.to_list()] for c in block.columns]
                if result.timed:
                    columns.insert(0, list(block.times.tolist()))
                rows += [list(row) for row in zip(*columns, strict=True)]
        finally:
            result.close()
        return header, rows

    def close(self) -> None:
        self.engine.close()
        self.scheduler.close()
        self.store.close()


def _shown(value: object, type_: DataType) -> object:
    """Dates and times as the cases write them."""
    if isinstance(value, float) and type_ is DataType.FLOAT:
        return str(np.float32(value))
    if value is None or not isinstance(value, int):
        return value
    if type_ is DataType.DATE:
        return f"{value // 10_000}-{value // 100 % 100:02}-{value % 100:02}"
    if type_ is DataType.TIMESTAMP:
        return Instant(value)
    return value


class Instant(int):
    """A time: equal to its ticks, and written as a date."""

    def __str__(self) -> str:
        moment = EPOCH + timedelta(milliseconds=int(self))
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{int(self) % 1_000:03}Z"


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
