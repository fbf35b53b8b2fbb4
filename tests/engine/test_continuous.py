"""Continuous queries: their schedule and ranges, also after restarts, and the definitions that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.embedded_engine import Engine

from saros_engine.base.errors import MemoryPoolExhausted
from saros_engine.catalog.continuous_queries import ContinuousQuery
from saros_engine.catalog.continuous_runner import ContinuousRunner
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import StorageError

SECOND = 1_000


class HandClock(SystemClock):
    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def now_ns(self) -> int:
        return self.now_ms * 1_000_000


class World:
    """An engine with a manual clock, and a runner of continuous queries that has no thread."""

    def __init__(self, folder: Path, now_ms: int = 100 * SECOND) -> None:
        self.clock = HandClock(now_ms)
        self.engine = Engine(folder, clock=self.clock)
        self.in_charge = True
        self.runner = ContinuousRunner(
            self.engine.store, self.clock, self.engine.engine.run_continuous, lambda: self.in_charge
        )

    def at(self, now_ms: int) -> None:
        self.clock.now_ms = now_ms
        self.runner.round()

    def rows(self, text: str) -> list[list[object]]:
        return self.engine.ask(text)[1]


@pytest.fixture
def world(tmp_path: Path):
    made = World(tmp_path)
    rows = ", ".join(f"({t * SECOND}, {t})" for t in range(90, 200))
    made.engine.ask(f"insert into root.a.d(time, x) values {rows}")
    yield made
    made.engine.close()


def test_a_query_runs_at_each_boundary_for_the_range_before_it(world: World) -> None:
    world.engine.ask("create cq c begin select count(x) into root.a.n(c) from root.a.d group by(10s) end")
    world.at(100 * SECOND)  # the query was created exactly at a boundary
    assert [[90 * SECOND, 10]] == world.rows("select c from root.a.n")
    world.at(109_999)
    assert [[90 * SECOND, 10]] == world.rows("select c from root.a.n")
    world.at(110 * SECOND)
    assert [[90 * SECOND, 10], [100 * SECOND, 10]] == world.rows("select c from root.a.n")


def test_every_boundary_and_range_say_when_and_what(world: World) -> None:
    world.engine.ask(
        "create continuous query c resample every 20s boundary 5000 range 30s, 10s begin"
        " select max_value(x), count(x) into root.a.n(m, c) from root.a.d group by(20s) end"
    )
    world.at(104 * SECOND)
    assert [] == world.rows("select m from root.a.n")
    world.at(105 * SECOND)  # 5 s + 5 * 20 s: [75 s, 95 s)
    assert [[75 * SECOND, 94.0, 5]] == world.rows("select m, c from root.a.n")
    world.at(125 * SECOND)
    assert [[75 * SECOND, 94.0, 5], [95 * SECOND, 114.0, 20]] == world.rows("select m, c from root.a.n")


def test_a_query_without_windows_copies_its_range(world: World) -> None:
    world.engine.ask(
        "create cq c resample every 10s begin select x * 2 into root.a.n(y) from root.a.d where x > 95 end"
    )
    world.at(100 * SECOND)
    assert [[t * SECOND, 2.0 * t] for t in range(96, 100)] == world.rows("select y from root.a.n")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("", [90, 100, 110, 120]), ("timeout policy blocked", [90, 100, 110, 120]), ("timeout policy discard", [90, 120])],
)
def test_what_passed_unattended_is_made_up_for_unless_discarded(
    tmp_path: Path, policy: str, expected: list[int]
) -> None:
    world = World(tmp_path)
    rows = ", ".join(f"({t * SECOND}, {t})" for t in range(90, 200))
    world.engine.ask(f"insert into root.a.d(time, x) values {rows}")
    world.engine.ask(f"create cq c {policy} begin select count(x) into root.a.n(c) from root.a.d group by(10s) end")
    world.at(100 * SECOND)
    world.engine.close()
    again = World(tmp_path, 135 * SECOND)
    again.at(135 * SECOND)
    assert [[t * SECOND, 10] for t in expected] == again.rows("select c from root.a.n")
    again.at(136 * SECOND)
    assert len(expected) == len(again.rows("select c from root.a.n"))
    again.engine.close()


def test_a_node_that_is_not_in_charge_runs_nothing(world: World) -> None:
    world.engine.ask("create cq c begin select count(x) into root.a.n(c) from root.a.d group by(10s) end")
    world.in_charge = False
    world.at(120 * SECOND)
    assert [] == world.rows("select c from root.a.n")


def test_a_query_that_fails_goes_on_and_tells(world: World) -> None:
    world.engine.ask("create timeseries root.a.n.c with datatype=BOOLEAN")
    world.engine.ask("create cq c begin select count(x) into root.a.n(c) from root.a.d group by(10s) end")
    world.at(100 * SECOND)
    (row,) = world.rows("show continuous queries")
    assert "ACTIVE, last failed: root.a.n.c is BOOLEAN: a column of INT64 does not fit" == row[2]
    world.engine.ask("drop timeseries root.a.n.c")
    world.at(110 * SECOND)
    assert [[100 * SECOND, 10]] == world.rows("select c from root.a.n")
    assert ["ACTIVE"] == [row[2] for row in world.rows("show cqs")]


@pytest.mark.parametrize("error", [StorageError("no space left"), MemoryPoolExhausted("others hold too much")])
def test_what_the_database_cannot_do_now_is_tried_again(world: World, error: Exception) -> None:
    failing = True

    def run(query: ContinuousQuery, moment: int) -> None:
        if failing:
            raise error
        world.engine.engine.run_continuous(query, moment)

    world.engine.ask("create cq c begin select count(x) into root.a.n(c) from root.a.d group by(10s) end")
    runner = ContinuousRunner(world.engine.store, world.clock, run, lambda: True)
    runner.round()
    assert ["ACTIVE"] == [row[2] for row in world.rows("show cqs")]
    failing = False
    runner.round()
    assert [[90 * SECOND, 10]] == world.rows("select c from root.a.n")


def test_a_system_that_only_reads_makes_up_for_what_it_put_off(world: World) -> None:
    world.engine.ask("create cq c begin select count(x) into root.a.n(c) from root.a.d group by(10s) end")
    world.engine.ask("set system to readonly")
    world.at(115 * SECOND)
    assert [] == world.rows("select c from root.a.n")
    world.engine.ask("set system to running")
    world.at(118 * SECOND)
    assert [[90 * SECOND, 10], [100 * SECOND, 10]] == world.rows("select c from root.a.n")


def test_dropped_and_made_anew_it_begins_anew(world: World) -> None:
    text = "create cq c begin select count(x) into root.a.n(c) from root.a.d group by(10s) end"
    world.engine.ask(text)
    world.at(100 * SECOND)
    world.engine.ask("drop continuous query c")
    assert [] == world.rows("show cqs")
    world.at(130 * SECOND)
    assert 1 == len(world.rows("select c from root.a.n"))
    world.engine.ask(text)
    assert [["c", text, "ACTIVE"]] == world.rows("show cqs")
    world.at(130 * SECOND)
    assert [[90 * SECOND, 10], [120 * SECOND, 10]] == world.rows("select c from root.a.n")


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("create cq c begin select count(x) from root.a.d group by(10s) end", 701, "INTO"),
        ("create cq c begin select count(x) into root.a.n(c) from root.a.d end", 701, "EVERY"),
        ("create cq c begin select x into root.a.n(c) from root.a.d group by session(10s) end", 701, "time windows"),
        (
            "create cq c begin select count(x) into root.a.n(c) from root.a.d group by([0, 10), 1s) end",
            701,
            "time range in GROUP BY",
        ),
        (
            "create cq c begin select count(x) into root.a.n(c) from root.a.d where time > 5 group by(10s) end",
            701,
            "time filters",
        ),
        ("create cq c begin select count(x) into root.a.n(c) from root.a.d group by(10ms) end", 701, "1000 ms"),
        ("create cq c begin select count(x) into root.a.n(c) from root.a.d group by(1mo) end", 701, "fixed length"),
        (
            "create cq c resample range 5s, 5s begin select count(x) into root.a.n(c) from root.a.d group by(2s) end",
            701,
            "offset",
        ),
        (
            "create cq c resample every 5s begin select count(x) into root.a.n(c) from root.a.d group by(10s) end",
            701,
            "start time offset",
        ),
        ("create cq c begin select count(x) into root.a.n(a, b) from root.a.d group by(10s) end", 701, "target paths"),
        ("create cq known begin select count(x) into root.a.n(c) from root.a.d group by(10s) end", 1402, "exists"),
        ("drop cq c", 1400, "doesn't exist"),
        (
            "create cq c begin select count(?) into root.a.n(c) from root.a.d group by(10s) end",
            700,
            "cannot have parameters",
        ),
        ("create cq c resample every begin select x into root.a.n(c) from root.a.d end", 700, "duration"),
        ("create cq c select x into root.a.n(c) from root.a.d end", 700, "BEGIN"),
    ],
)
def test_what_it_may_not_be(world: World, text: str, code: int, words: str) -> None:
    world.engine.ask("create cq known begin select count(x) into root.a.k(c) from root.a.d group by(10s) end")
    with pytest.raises(Exception, match=words.replace("?", ".")) as raised:
        world.engine.ask(text)
    assert code == raised.value.code  # type: ignore[attr-defined]
