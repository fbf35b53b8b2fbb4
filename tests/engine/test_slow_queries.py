"""Slow queries: which statements are recorded, with which times and texts, and which users see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from engine.embedded_engine import Engine
from manual_clock import ManualClock

from saros_cluster.users.effective_privileges import Granted, Rights
from saros_cluster.users.privileges import Privilege
from saros_engine.base.access import Access
from saros_engine.base.query_registry import ClientInfo
from saros_engine.base.session_context import SessionContext
from saros_engine.base.slow_queries import KEPT_MAX, SlowQueries, shape_of
from saros_engine.memory.options import EngineOptions
from saros_grammar.parser import ParseError
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType

ANN = ClientInfo("ann", "10.0.0.7")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def engine(tmp_path: Path, clock: ManualClock) -> Iterator[Engine]:
    opened = Engine(tmp_path, EngineOptions(slow_query_ms=500), clock=clock)
    rows = 300_000  # more than one block, so that reading can take long
    opened.engine.insert_columns("root.a.d", np.arange(rows), {"s": Column(DataType.DOUBLE, np.ones(rows))})
    yield opened
    opened.close()


def statements(engine: Engine, clauses: str = "") -> list[object]:
    return [row[4] for row in engine.ask(f"show slow queries {clauses}")[1]]


def test_the_time_ends_with_the_last_row_and_includes_that_of_the_client(engine: Engine, clock: ManualClock) -> None:
    started_ms = clock.ns // 1_000_000
    session = SessionContext(host="10.0.0.7")
    result = engine.engine.execute("select s from root.a.d where s < 7.5", session)
    assert result.next_block() is not None
    clock.advance(1.25)
    while result.next_block() is not None:
        pass
    clock.advance(60.0)  # the client keeps the cursor open
    result.close()
    header, ((time, query, node, elapsed, text, user, host),) = engine.ask("show slow queries")
    assert ["Time", "QueryId", "DataNodeId", "ElapsedTime", "Statement", "User", "ClientIp"] == header
    assert (started_ms, result.query_id, 1) == (time, query, node)
    assert ("1.25", "select s from root.a.d where s < ?") == (elapsed, text)
    assert (None, "10.0.0.7") == (user, host)


@pytest.mark.parametrize(("seconds", "recorded"), [(0.499, 0), (0.5, 1)])
def test_a_statement_is_slow_from_the_threshold_on(
    engine: Engine, clock: ManualClock, seconds: float, recorded: int
) -> None:
    result = engine.engine.execute("select s from root.a.d", engine.session)
    clock.advance(seconds)
    result.close()
    result.close()
    assert recorded == len(statements(engine))


def test_statements_without_rows_and_those_that_fail_are_recorded(tmp_path: Path) -> None:
    """With a threshold of 0, every statement is slow."""
    engine = Engine(tmp_path, EngineOptions(slow_query_ms=0))
    try:
        engine.ask("insert into root.b.d(time, s) values (1, 4711)")
        with pytest.raises(UserMistake):
            engine.ask("flush root.nowhere")
        with pytest.raises(ParseError):
            engine.ask("insert into root.b.d(time, s) values (1, 'secret")  # the literal has no end
        expected = ["flush root.nowhere", "insert into root.b.d(time, s) values (?, ?)"]
        assert expected == statements(engine)
    finally:
        engine.close()


def test_conditions_order_and_limit_choose_rows(engine: Engine, clock: ManualClock) -> None:
    for seconds in (2, 1, 3):
        result = engine.engine.execute(f"select s as took_{seconds} from root.a.d", engine.session)
        clock.advance(seconds)
        result.close()
    took = [f"select s as took_{seconds} from root.a.d" for seconds in (3, 1, 2)]
    assert took == statements(engine)  # newest first
    assert took[:2] == statements(engine, "limit 2")
    assert [took[1]] == statements(engine, "limit 1 offset 1")
    assert [took[0], took[2]] == statements(engine, "where elapsedtime > 1.5 order by elapsedtime desc")
    _, rows = engine.ask("select max_value(elapsed_time) from information_schema.slow_queries where user is null")
    assert [["3.0"]] == rows


def test_own_statements_are_seen_without_a_privilege_and_all_with_maintain(engine: Engine, clock: ManualClock) -> None:
    granted = [Granted(Privilege.READ_DATA, "root.**")]
    ann, bob = (SessionContext(access=Access(name, Rights(granted), f"{name} 1")) for name in ("ann", "bob"))
    operator = SessionContext(access=Access("eve", Rights([*granted, Granted(Privilege.MAINTAIN, "root.**")]), "eve 1"))
    for session in (ann, bob):
        result = engine.engine.execute("select s from root.a.d", session)
        clock.advance(1.0)
        result.close()

    def seen(session: SessionContext) -> list[object]:
        block = engine.engine.execute("show slow queries", session).next_block()
        return [] if block is None else block.columns[4].to_list()

    assert (["ann"], ["bob"], ["bob", "ann"]) == (seen(ann), seen(bob), seen(operator))


def test_the_record_is_bounded_and_a_listener_hears_of_each(clock: ManualClock) -> None:
    log, heard = SlowQueries(clock, 1), []
    log.listener = heard.append
    for number in range(KEPT_MAX + 3):
        watch = log.start(f"flush root.a{number}", ANN)
        clock.advance(1.0)
        watch.stop("")
    kept = log.newest_first()
    assert (KEPT_MAX, KEPT_MAX + 3) == (len(kept), len(heard))
    assert (f"flush root.a{KEPT_MAX + 2}", ANN, 1_000) == (kept[0].statement, kept[0].client, kept[0].elapsed_ms)


@pytest.mark.parametrize(
    ("statement", "shape"),
    [
        ("select s from root.a where t = 'secret' and x > 42", "select s from root.a where t = ? and x > ?"),
        ("delete from root.a.b, root.c where s = 'it''s'", "delete from root.a.b, root.c where s = ?"),
        ("create user ann 'secret'", "create user ann ?"),
        ('select "secret" from root.a', "select ? from root.a"),
        ("select s from root.a where time > 2024-01-02T03:04:05", "select s from root.a where time > ?"),
        ("insert into root.a(time, b) values (now(), X'00ff')", "insert into root.a(time, b) values (now(), ?)"),
        ("select 1e-3, 0.5 -- secret\n from root.a", "select ?, ?  \n from root.a"),
        ("select s /* secret */ from root.a.`odd 'name'`", "select s   from root.a.`odd 'name'`"),
        ("select avg(s1) from root.a2 group by ([0, 9), 1h)", "select avg(s1) from root.a2 group by ([?, ?), 1h)"),
        ("select \0", "(unreadable)"),
    ],
)
def test_a_text_is_recorded_without_literals_and_comments(statement: str, shape: str) -> None:
    assert shape == shape_of(statement)


def test_a_long_text_is_truncated() -> None:
    assert 503 == len(shape_of("select " + "x, " * 1_000))
