"""Each reused plan must equal a new plan of its statement, and no plan may outlive an object on which it depends."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from engine.embedded_engine import Engine
from engine.plan_fixtures import MOMENT, PLANT, cases
from msgspec.structs import replace

from saros_engine.base.errors import EngineError, SemanticError
from saros_engine.expressions.time_filter import TimeContext
from saros_engine.optimizer import optimize
from saros_engine.planner import PlanContext, plan_select
from saros_engine.planning import plan_template
from saros_engine.planning.plan_cache import PlanCache, Planned, PlanRequest
from saros_engine.planning.plan_template import outline_of
from saros_grammar.bind import ParameterBinder
from saros_grammar.cache import StatementCache
from saros_grammar.syntax.ast import Literal, LiteralKind, Parsed, Select
from saros_storage.base.errors import UserMistake

FILES = ("planner.txt", "mistakes.txt", "fold_constants.txt", "push_value_bounds.txt", "keep_top_rows.txt")
CONDITIONS = (
    "time = 5",
    "time >= 5 and time < 9 and s1 > 3",
    "s1 > 3 or s2 < 1.5",
    "tx = 'x' and time > 7",
    "s1 between 3 and 8 and not s2 = 2.5",
    "time between 3 and 8",
    "time in (4) and s1 in (1, 2)",
    "s1 + 1 > 3 * 2 and -s1 < 5",
    "round(s2) = -0.0 or s2 = 0",
    "time > now() - 10 and s1 > 2",
    "s1 > now() - 10",
    "tx like '%a%' and s1 != 4",
    "s1 > 99999999999999999999",
    "3 < s1 and 4 > time",
    "time = 2.5",
    "time > 'no date'",
    "s1 > 'text'",
    "case when s1 > 1 then s2 > 2 else s2 < 3 end",
)
TEXTS = [text for name in FILES for text, _ in cases(name)]
TEXTS += [
    f"select {what} from root.a.* where {c} {how}"
    for c in CONDITIONS
    for what, how in (
        ("s1", ""),
        ("s1 + 2, s2", "align by device"),
        ("count(s1), max_value(s2)", ""),
        ("last s1", ""),
        ("sum(s1)", "group by ([0, 100), 10ms) having sum(s1) > 3"),
        ("s1", "limit 3 offset 1"),
        ("s1", "order by s2 desc limit 3 offset 1"),
        ("nothing", "limit 3 offset 1 align by device"),
    )
]


def asking(moment: TimeContext = MOMENT, version: int = 1, key: str = "") -> PlanRequest:
    return PlanRequest(key, moment, version, lambda: PlanContext(PLANT, moment), lambda _: None)


def plan(cache: PlanCache, parsed: Parsed, given: Sequence[Literal], asked: PlanRequest) -> Planned:
    return cache.plan(parsed, given, asked, lambda: ParameterBinder(1_000).filled(parsed.statement, given))


def met(cache: PlanCache, parsed: Parsed, given: Sequence[Literal], asked: PlanRequest | None = None) -> None:
    """Plan a statement once; the cache keeps the plan from the second time on."""
    plan(cache, parsed, given, asked or asking())


def outcome(parsed: Parsed, given: Sequence[Literal], cache: PlanCache | None, moment: TimeContext) -> str:
    """Return the text of a statement's plan, or of the error. If `cache` is None, a new plan is made."""
    try:
        if cache is not None:
            planned = plan(cache, parsed, given, asking(moment))
            return f"{planned.fields} {planned.timed} {planned.root}"
        select = ParameterBinder(1_000).filled(parsed.statement, given)
        assert isinstance(select, Select)
        logical = plan_select(select, PlanContext(PLANT, moment))
        return f"{logical.fields} {logical.timed} {optimize(logical.root)}"
    except (EngineError, UserMistake) as error:
        return f"{error.code} {error}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_plan_that_is_used_again_is_the_one_that_would_be_made(seed: int) -> None:
    chance, statements, cache = random.Random(seed), StatementCache(), PlanCache(1_000)
    moments = [MOMENT, replace(MOMENT, now=MOMENT.now + 5), replace(MOMENT, zone="+08:00")]
    for text in TEXTS:
        first = statements.get(text)
        if not isinstance(first.statement, Select) or first.statement.into is not None:
            continue
        for _ in range(4):
            parsed = statements.get(_with_other_literals(text, first, chance))
            moment = chance.choice(moments)
            assert outcome(parsed, (), None, moment) == outcome(parsed, (), cache, moment), text
    assert cache.counts()[1] > 100


def _with_other_literals(text: str, parsed: Parsed, chance: random.Random) -> str:
    """Return the statement with some of its numbers changed."""
    parts, at = [], 0
    for literal in parsed.literals:
        where = text.index(literal.text.lstrip("+-"), at)
        parts.append(text[at:where])
        at = where + len(literal.text.lstrip("+-"))
        same = text[where:at]
        if chance.random() < 0.3:
            parts.append(same)
        elif literal.kind is LiteralKind.INTEGER:
            parts.append(str(chance.choice([0, 1, 7, 2**63, 12])))
        else:
            parts.append(same if literal.kind is LiteralKind.STRING else str(chance.random()))
    return "".join([*parts, text[at:]])


VALUES = (3, -(2**63), 2.5, float("nan"), "x", "2020-01-01", "no date", True, None, b"x")
MOMENTS = (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 2))  # noqa: DTZ001


@pytest.mark.parametrize(
    "where", ["s1 > ?", "time > ?", "tx = ?", "time >= ? and time < ? and s1 + ? > 2", "s1 in (?)"]
)
def test_values_of_any_type_plan_as_if_they_stood_there(where: str) -> None:
    binder, statements, cache = ParameterBinder(1_000), StatementCache(), PlanCache(1_000)
    parsed = statements.get(f"select s1, s2 from root.a.d1 where {where}")
    chance = random.Random(3)
    for _ in range(150):
        values = [chance.choice((*VALUES, *MOMENTS)) for _ in range(parsed.parameters)]
        given = binder.literals(parsed.statement, values)
        moment = chance.choice([MOMENT, replace(MOMENT, zone="+08:00")])
        assert outcome(parsed, given, None, moment) == outcome(parsed, given, cache, moment), values


def test_values_elsewhere_belong_to_the_plan() -> None:
    binder, statements, cache = ParameterBinder(1_000), StatementCache(), PlanCache(1_000)
    parsed = statements.get("select s1 + ? from root.a.d1 where s1 > ? limit ?")
    met(cache, parsed, binder.literals(parsed.statement, [1, 2, 3]))
    for values in ([1, 2, 3], [4, 2, 3], [1.0, 2, 3], [1, 5, 3], [1, 2, 9], [True, 2, 3]):
        given = binder.literals(parsed.statement, values)
        assert outcome(parsed, given, None, MOMENT) == outcome(parsed, given, cache, MOMENT), values
    assert 2 == cache.counts()[1]  # [1, 5, 3] and [1, 2, 9], which differ only in WHERE and LIMIT


def test_pages_share_a_plan() -> None:
    binder, statements, cache = ParameterBinder(1_000), StatementCache(), PlanCache(1_000)
    for text in (
        "select s1 from root.a.* order by s1 limit ? offset ?",
        "select s1 from root.a.* where s1 > 3 limit ? offset ? align by device",
        "select last s1 from root.a.* order by timeseries limit ? offset ?",
    ):
        parsed, before = statements.get(text), cache.counts()[1]
        for values in ([1, 0], [5, 10], [0, 0], [3, 2]):
            given = binder.literals(parsed.statement, values)
            assert outcome(parsed, given, None, MOMENT) == outcome(parsed, given, cache, MOMENT), values
        assert 3 == cache.counts()[1] - before
        for wrong in ([-1, 0], ["x", 0], [1, 2.5], [1, None]):
            given = binder.literals(parsed.statement, wrong)
            found = outcome(parsed, given, cache, MOMENT)
            assert found == outcome(parsed, given, None, MOMENT)
            assert found.startswith("701")


NOTHING = [
    "select none from root.a.d1",
    "select none from root.a.d1 where none > 1 align by device",
    "select count(none) from root.none.*",
    "select last none from root.a.d1",
    "select count(none) from root.none.** group by tags(k)",
]


@pytest.mark.parametrize("clause", ["limit", "offset"])
@pytest.mark.parametrize("text", NOTHING)
def test_what_is_no_number_of_rows_is_an_error_even_where_there_are_none(text: str, clause: str) -> None:
    binder, cache = ParameterBinder(1_000), PlanCache(1_000)
    parsed = StatementCache().get(f"{text} {clause} ?")
    for value in (1, 2, 0):
        given = binder.literals(parsed.statement, [value])
        assert outcome(parsed, given, None, MOMENT) == outcome(parsed, given, cache, MOMENT)
    for wrong in (-1, 2.5, "a", None, True):
        given = binder.literals(parsed.statement, [wrong])
        expected = f"{clause.upper()} should be an integer of at least 0, not {given[0]}"
        for kept in (None, cache):
            assert expected in outcome(parsed, given, kept, MOMENT)


@pytest.mark.parametrize("clause", ["slimit", "soffset"])
@pytest.mark.parametrize("text", NOTHING)
def test_what_is_no_number_of_columns_is_an_error_even_where_there_are_none(text: str, clause: str) -> None:
    parsed = StatementCache().get(f"{text} {clause} ?")
    for wrong in (-1, 2.5, "a"):
        given = ParameterBinder(1_000).literals(parsed.statement, [wrong])
        expected = f"{clause.upper()} should be an integer of at least 0, not {given[0]}"
        assert expected in outcome(parsed, given, None, MOMENT)


def test_equal_questions_share_a_plan_and_others_do_not() -> None:
    cache, statements = PlanCache(100), StatementCache()
    parsed = statements.get("select s1 from root.a.d1 where time > 1")
    other = statements.get("select s1 from root.a.d1 where time > 2")
    ways = (asking(), asking(version=2), asking(version=2, key="ann 1"), asking(replace(MOMENT, zone="+01:00")))
    for asked in (ways[0], *ways[2:]):
        met(cache, parsed, (), asked)
    for asked in ways:
        plan(cache, parsed, (), asked)
    assert (3 + 4, 0) == cache.counts()
    for again in (parsed, other):
        plan(cache, again, (), asking(version=2, key="ann 1"))
    assert (3 + 4, 2) == cache.counts()


@pytest.mark.parametrize(("text", "kept"), [("s1 from root.a.d1", 1), ("s1 from root.a.*", 2), ("s1 from root.**", 2)])
def test_what_is_met_once_is_not_kept_unless_it_names_many_series(text: str, kept: int) -> None:
    cache, statements = PlanCache(100), StatementCache()
    for value in (1, 2, 3):
        met(cache, statements.get(f"select {text} where time > {value}"), ())
    assert (3 - kept, kept) == cache.counts()


def test_very_wide_plans_are_kept_for_equal_values_only(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_template, "_WIDTH_MAX", 1)
    for _ in range(2):
        for time in (1, 2):
            assert [[time, float(time), 10.0 * time]] == ask(engine, f"select a, b from root.** where time = {time}")
    assert 2 == engine.engine.counters().plans_made


@pytest.mark.parametrize(
    ("rest", "framed"),
    [
        ("where s1 > 1 group by ([0, 10), 5ms)", False),
        ("", False),
        ("limit 1", True),
        ("where s1 > 1", True),
        ("where time > 1", True),
    ],
)
def test_what_cannot_have_a_frame_is_not_planned_for_one(rest: str, framed: bool) -> None:
    parsed = StatementCache().get(f"select count(s1) from root.a.d1 {rest}")
    assert framed == outline_of(parsed).framed


def test_what_may_not_be_read_is_not_kept() -> None:
    cache, parsed = PlanCache(100), StatementCache().get("select s1 from root.a.d1 where time > 1")

    def refuse(_: object) -> None:
        raise SemanticError("no")

    for _ in range(3):
        with pytest.raises(SemanticError):
            plan(cache, parsed, (), replace(asking(), check=refuse))


# ---------------------------------------------------------------------------------------------- the whole engine


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = Engine(tmp_path)
    opened.ask("insert into root.g.d(time, a, b) values (1, 1, 10), (2, 2, 20), (3, 3, 30)")
    yield opened
    opened.close()


def ask(engine: Engine, text: str, *values: object) -> list[list[object]]:
    """Run a statement twice, so that its plan is cached, and return its rows."""
    first, second = asked_once(engine, text, *values), asked_once(engine, text, *values)
    assert first == second
    return first


def asked_once(engine: Engine, text: str, *values: object) -> list[list[object]]:
    result = engine.engine.execute(text, engine.session, values)
    rows = []
    while (block := result.next_block()) is not None:
        columns = [block.times.tolist()] if result.timed else []
        rows += [list(row) for row in zip(*columns, *[c.to_list() for c in block.columns], strict=True)]
    return rows


def test_repeated_questions_are_planned_once_for_themselves_and_once_for_all(engine: Engine) -> None:
    for time in (1, 2, 3):
        assert [[time, 10.0 * time]] == ask(engine, "select b from root.g.d where time = ?", time)
        assert [[time, 10.0 * time]] == ask(engine, f"select b from root.g.d where a = {time}")
        assert [[1, 10.0]] == ask(engine, "select b from root.g.d limit ?", 1)
    assert (6, 12) == (engine.engine.counters().plans_made, engine.engine.counters().plans_reused)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (["delete timeseries root.g.d.b"], []),
        (
            ["delete timeseries root.g.d.b", "insert into root.g.d(time, b) values (1, 'x')"],
            [[1, "x"]],
        ),
        (["delete database root.g", "insert into root.g.d(time, b) aligned values (1, true)"], [[1, True]]),
        (["alter timeseries root.g.d.a upsert alias=c"], [[1, 10.0]]),
    ],
)
def test_a_plan_does_not_outlive_the_series(engine: Engine, changes: list[str], expected: list[list[object]]) -> None:
    text = "select b from root.g.d where time = ?"
    assert [[1, 10.0]] == ask(engine, text, 1)
    for change in changes:
        engine.ask(change)
    assert expected == ask(engine, text, 1)


def test_a_name_means_what_it_means_now(engine: Engine) -> None:
    text = "select c from root.g.d where time = ?"
    assert [] == ask(engine, text, 1)
    engine.ask("alter timeseries root.g.d.a upsert alias=c")
    assert [[1, 1.0]] == ask(engine, text, 1)
    engine.ask("alter timeseries root.g.d.a upsert alias=e")
    engine.ask("alter timeseries root.g.d.b upsert alias=c")
    assert [[1, 10.0]] == ask(engine, text, 1)
    engine.ask("insert into root.g.d(time, b2) values (1, 5)")
    assert [[1, 1.0, 10.0, 5.0]] == ask(engine, "select * from root.g.d where time = ?", 1)


def test_a_view_is_what_it_is_now(engine: Engine) -> None:
    text = "select v from root.v.d where time = ? and v > ?"
    assert [] == ask(engine, text, 2, 0)
    engine.ask("create view root.v.d.v as select a from root.g.d")
    assert [[2, 2.0]] == ask(engine, text, 2, 0)
    engine.ask("alter view root.v.d.v as select b from root.g.d")
    assert [[2, 20.0]] == ask(engine, text, 2, 0)
    engine.ask("drop view root.v.d.v")
    assert [] == ask(engine, text, 2, 0)


def test_a_template_adds_series_to_plans(engine: Engine) -> None:
    text = "select count(*) from root.t.** where time >= ?"
    engine.ask("create database root.t")
    assert [] == ask(engine, text, 0)
    engine.ask("create device template one (x double)")
    engine.ask("set device template one to root.t.d")
    engine.ask("create timeseries using device template on root.t.d")
    assert [[0]] == ask(engine, text, 0)
    engine.ask("insert into root.t.d(time, x) values (1, 1)")
    assert [[1]] == ask(engine, text, 0)
    engine.ask("delete timeseries of device template one from root.t.d")
    assert [] == ask(engine, text, 0)


def test_a_ttl_hides_at_once(engine: Engine) -> None:
    text = "select a from root.g.d where time >= ?"
    assert 3 == len(ask(engine, text, 0))
    engine.ask("set ttl to root.g.** 1000")
    assert [] == ask(engine, text, 0)
    engine.ask("unset ttl from root.g.**")
    assert 3 == len(ask(engine, text, 0))


def test_dates_are_read_in_the_zone_of_now(engine: Engine) -> None:
    engine.ask("insert into root.g.z(time, s) values (1970-01-02T00:00:00+00:00, 1), (1970-01-02T00:00:00+08:00, 2)")
    text, day = "select s from root.g.z where time = ?", datetime(1970, 1, 2)  # noqa: DTZ001
    assert [1.0] == [row[1] for row in ask(engine, text, day)]
    assert [1.0] == [row[1] for row in ask(engine, text, "1970-01-02")]
    engine.ask("set time zone '+08:00'")
    assert [2.0] == [row[1] for row in ask(engine, text, day)]
    assert [2.0] == [row[1] for row in ask(engine, text, "1970-01-02")]
    assert [2.0] == [row[1] for row in ask(engine, "select s from root.g.z where time = 1970-01-02")]
