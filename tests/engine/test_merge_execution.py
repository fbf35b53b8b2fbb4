"""MERGE in SQL: its effect on files, and the ways in which it can end before completion."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from engine.embedded_engine import Engine

from saros_engine.base.errors import QueryKilled
from saros_scheduler.driver_scheduler import QueryTimedOut


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = Engine(tmp_path)
    for database, value in (("a", 1), ("a", 2), ("b", 3), ("b", 4)):
        opened.ask(f"insert into root.{database}.d(time, x) values (1, {value}), ({value + 10}, {value})")
        opened.ask("flush")
    yield opened
    opened.close()


def test_the_databases_that_are_named_or_all(engine: Engine, tmp_path: Path) -> None:
    def files(database: str) -> int:
        return len(list(tmp_path.rglob(f"{database}/*/*seq/*.tsfile")))

    before = engine.ask("select x from root.*.d")
    engine.ask("merge root.a")
    assert 1 == files("root.a")
    engine.ask("MERGE")
    assert (1, 1) == (files("root.a"), files("root.b"))
    assert before == engine.ask("select x from root.*.d")
    engine.ask("delete from root.a.d.x where time > 1")
    after = engine.ask("select x from root.*.d")
    written = engine.store.compaction.jobs
    engine.ask("merge root.a")
    assert written == engine.store.compaction.jobs
    engine.ask("full merge root.a, root.b")
    assert written + 1 == engine.store.compaction.jobs
    assert after == engine.ask("select x from root.*.d")


class StandingStill:
    """Replaces `Store.merge` by a merge that runs until it is told to stop."""

    def __init__(self) -> None:
        self.begun = threading.Event()

    def __call__(self, _databases: Sequence[str] | None = None, *, full: bool, stopped: Callable[[], bool]) -> None:
        assert not full
        while not stopped():
            self.begun.wait(0.01)
            self.begun.set()


def test_it_is_shown_and_killed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    standing = StandingStill()
    monkeypatch.setattr(engine.store, "merge", standing)
    killed: list[QueryKilled] = []

    def merge() -> None:
        try:
            engine.ask("merge")
        except QueryKilled as error:
            killed.append(error)

    thread = threading.Thread(target=merge)
    thread.start()
    assert standing.begun.wait(60)
    _, rows = engine.ask("show queries")
    (query,) = [row for row in rows if "merge" in row]
    engine.ask(f"kill query '{next(word for word in query if str(word).count('_') == 3)}'")
    thread.join()
    assert 1 == len(killed)
    assert 0 == engine.engine.open_queries


def test_a_client_may_limit_its_time(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.store, "merge", StandingStill())
    with pytest.raises(QueryTimedOut):
        engine.engine.execute("merge", engine.session, timeout_ms=30)
    assert 0 == engine.engine.open_queries
