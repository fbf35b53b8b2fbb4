"""SQLAlchemy and pandas on Saros, embedded and through a server, used as SQLAlchemy documents."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import saros
from saros_server.server import Server
from saros_storage.base.clock import SystemClock

sa = pytest.importorskip("sqlalchemy")
orm = pytest.importorskip("sqlalchemy.orm")

from saros.alchemy.naming import device_path, last_node, table_name  # noqa: E402 - needs SQLAlchemy

FIRST, SECOND = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    """Register the dialects as the entry points do if the package is installed."""
    entries = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["entry-points"]
    for name, place in entries["sqlalchemy.dialects"].items():
        sa.dialects.registry.register(name, *place.split(":"))


@pytest.fixture(params=["embedded", "server"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    server = None
    if request.param == "server":
        server = Server(str(tmp_path), "127.0.0.1", 0, clock=SystemClock())
        server.start()
    made = sa.create_engine(f"saros://{server.address}" if server else f"saros+embedded:///{tmp_path}?durability=os")
    with made.connect() as connection:
        connection.execute(
            sa.text("insert into root.g.d(time, a, b) values (:at, :a, :b)"),
            [{"at": FIRST, "a": 1.5, "b": "x"}, {"at": SECOND, "a": 2.5, "b": "a 'quoted' :b ?"}],
        )
        connection.execute(sa.text("create aligned timeseries root.g.`odd name`(`x y` INT32 tags(unit=bar))"))
        connection.commit()
    yield made
    made.dispose()
    if server:
        server.stop()


def reflected(engine: sa.Engine, name: str = "d") -> sa.Table:
    return sa.Table(name, sa.MetaData(), schema="root.g", autoload_with=engine)


def test_what_there_is_is_reflected(engine: sa.Engine) -> None:
    looking = sa.inspect(engine)
    assert ["root.g"] == looking.get_schema_names()
    assert ["`odd name`", "d"] == looking.get_table_names("root.g")
    assert ["root.g.`odd name`", "root.g.d"] == looking.get_table_names()
    assert [] == looking.get_table_names("root.other")
    assert [True, True, False, False] == [
        looking.has_table(name, schema)
        for name, schema in (("d", "root.g"), ("root.g.d", None), ("e", "root.g"), ("no path; drop", "root.g"))
    ]
    d, odd = reflected(engine), reflected(engine, "`odd name`")
    assert [("time", "TIMESTAMP"), ("a", "DOUBLE"), ("b", "TEXT")] == [(c.name, str(c.type)) for c in d.columns]
    assert ["time"] == [c.name for c in d.primary_key]
    assert ["time", "x y"] == odd.columns.keys()
    assert '{"unit":"bar"}' == odd.c["x y"].info["tags"]
    with pytest.raises(sa.exc.NoSuchTableError):
        reflected(engine, "none")
    everything = sa.MetaData()
    everything.reflect(engine, schema="root.g")
    assert 2 == len(everything.tables)


def test_selects_give_what_they_ask_for(engine: sa.Engine) -> None:
    d = reflected(engine)
    t, a, b = d.c.time, d.c.a, d.c.b
    for select, expected in (
        (sa.select(d), [(FIRST, 1.5, "x"), (SECOND, 2.5, "a 'quoted' :b ?")]),
        (sa.select(a, t), [(1.5, FIRST), (2.5, SECOND)]),
        (sa.select(a, a.label("again"), a), [(1.5, 1.5, 1.5), (2.5, 2.5, 2.5)]),
        (sa.select((a + 1).label("more")).where(t >= SECOND), [(3.5,)]),
        (sa.select(a).where(b == "a 'quoted' :b ?"), [(2.5,)]),
        (sa.select(a).where(a.in_([1.5, 7])), [(1.5,)]),
        (sa.select(b).where(b.like("a%"), b.is_not(None)), [("a 'quoted' :b ?",)]),
        (sa.select(a).order_by(t.desc()).limit(1), [(2.5,)]),
        (sa.select(a).order_by(t).offset(1), [(2.5,)]),
        (sa.select(sa.func.max(a), sa.func.min(a), sa.func.count(b)), [(2.5, 1.5, 2)]),
        (sa.select(sa.func.avg(a).label("mean")).where(t < SECOND), [(1.5,)]),
        (sa.select(sa.func.count()).select_from(d), [(2,)]),
        (sa.select(sa.func.count(t)), [(2,)]),
        (sa.select(t), [(FIRST,), (SECOND,)]),
        (sa.select(t.label("at"), sa.literal(7)).where(a > 2), [(SECOND, 7)]),
        (sa.select(sa.literal_column("a").label("x")).select_from(d), [(1.5,), (2.5,)]),
        (sa.select(sa.cast(a, sa.Text)), [("1.5",), ("2.5",)]),
        (sa.select(a).where(t > sa.func.now()), []),
    ):
        with engine.connect() as connection:
            assert expected == [tuple(row) for row in connection.execute(select)], str(select)
    with engine.connect() as connection:
        row = connection.execute(sa.select(a, t).limit(1)).mappings().one()
        assert {"a": 1.5, "time": FIRST} == dict(row)
        rows = connection.execute(sa.select(a))
        assert [(1.5,), [(2.5,)], None] == [rows.fetchone(), rows.fetchmany(5), rows.fetchone()]
        assert (1.5,) == connection.execute(sa.select(a)).first()


def test_texts_are_asked_for_their_beginning_end_and_parts(engine: sa.Engine) -> None:
    b = reflected(engine).c.b
    with engine.connect() as connection:
        for condition, expected in (
            (b.startswith("a 'q"), [SECOND]),
            (b.startswith("x"), [FIRST]),
            (~b.startswith("x"), [SECOND]),
            (b.endswith("?"), [SECOND]),
            (b.endswith("'"), []),
            (b.contains("{quoted"), []),
            (b.contains("quoted"), [SECOND]),
            (sa.not_(b.contains("quoted")), [FIRST]),
            (b.ilike("A%QUOTED%"), [SECOND]),
            (b.not_ilike("X"), [SECOND]),
            (b.istartswith("A 'Q"), [SECOND]),
            (b.iendswith("X"), [FIRST]),
            (~b.icontains("QUOTED"), [FIRST]),
            (b.regexp_match("q[a-z]+d"), [SECOND]),
            (~b.regexp_match("(?i)X"), [SECOND]),
        ):
            assert expected == [time for time, _ in connection.execute(sa.select(b.table.c.time, b).where(condition))]
        with pytest.raises(sa.exc.CompileError, match=r"use like\(\) with a text"):
            connection.execute(sa.select(b).where(b.startswith(b)))
        for regular in (b.regexp_match(b), b.regexp_match("x", flags="i")):
            with pytest.raises(sa.exc.CompileError, match=r"\(\?i\)"):
                connection.execute(sa.select(b).where(regular))


def test_wildcards_in_texts_are_escaped(engine: sa.Engine) -> None:
    texts = ["50%", "500", "A_b", "axb", "a\\b", "E%"]
    with engine.connect() as connection:
        connection.execute(
            sa.text("insert into root.g.texts(time, b) values (:at, :b)"),
            [{"at": at, "b": text} for at, text in enumerate(texts)],
        )
        b = reflected(engine, "texts").c.b
        for condition, expected in (
            (b.contains("0%", autoescape=True), ["50%"]),
            (b.startswith("A_", autoescape=True), ["A_b"]),
            (b.endswith("_b", autoescape=True, escape="'"), ["A_b"]),
            (~b.contains("_", autoescape=True), ["50%", "500", "axb", "a\\b", "E%"]),
            (b.istartswith("a_", autoescape=True), ["A_b"]),
            (b.ilike("EE%", escape="E"), []),
            (b.ilike("eE%", escape="E"), ["E%"]),
            (b.icontains("E%", autoescape=True, escape="!"), ["E%"]),
            (b.like("50!%", escape="!"), ["50%"]),
            (b.like("a\\_"), ["a\\b"]),
            (b.contains("\\b"), ["a\\b"]),
        ):
            assert expected == list(connection.execute(sa.select(b).where(condition)).scalars()), str(condition)


def test_booleans_are_asked_by_is(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("insert into root.g.d(time, ok) values (1, true), (2, false)"))
        d = reflected(engine)
        for condition, expected in (
            (d.c.ok.is_(True), [True]),
            (d.c.ok.is_(False), [False]),
            (d.c.ok.is_(None), [None, None]),
        ):
            found = connection.execute(sa.select(d.c.ok, d.c.a).where(condition)).all()
            assert expected == [row.ok for row in found]


def test_whole_numbers_are_divided_as_in_python(engine: sa.Engine) -> None:
    odd = reflected(engine, "`odd name`")
    n = odd.c["x y"]
    with engine.begin() as connection:
        connection.execute(sa.insert(odd).values({"time": FIRST, "x y": 7}))
        for value, expected in (
            (n / 2, 3.5),
            (n // 2, 3),
            (14 / (n + 21), 0.5),
            (n / 2.0, 3.5),
            (sa.func.sum(n) / 2, 3.5),
        ):
            assert expected == connection.scalar(sa.select(value)), str(value)
        assert [(7,)] == connection.execute(sa.select(n).where(n / 2 > 3.25)).all()


def numbers(engine: sa.Engine) -> sa.Table:
    """Write a device with two rows, in which n decreases and m increases. Return its table."""
    with engine.begin() as connection:
        connection.execute(sa.text("create timeseries root.g.e.n INT64"))
        connection.execute(
            sa.text("insert into root.g.e(time, n, m, ok) values (1, 10, 1.5, true), (2, 9, 2.5, false)")
        )
    return reflected(engine, "e")


def test_expressions_without_a_label_have_their_own_values(engine: sa.Engine) -> None:
    import pandas as pd

    e = numbers(engine)
    n, m, ok, times = e.c.n, e.c.m, e.c.ok, [datetime.fromtimestamp(at / 1_000, UTC) for at in (1, 2)]
    for select, expected in (
        (sa.select(n, -n), [(10, -10), (9, -9)]),
        (sa.select(-n, n, -n), [(-10, 10, -10), (-9, 9, -9)]),
        (sa.select(-n, e.c.time), [(-10, times[0]), (-9, times[1])]),
        (sa.select(e.c.time, -n, e.c.time), [(times[0], -10, times[0]), (times[1], -9, times[1])]),
        (sa.select(-n).where(-n < -9), [(-10,)]),
        (sa.select(~ok, ok), [(False, True), (True, False)]),
        (sa.select(-n + 1, -(n + 1), n > 9), [(-9, -11, True), (-8, -10, False)]),
        (sa.select(sa.case((n > 9, 1), else_=0), n), [(1, 10), (0, 9)]),
        (sa.select(sa.cast(n, sa.Text), n, sa.type_coerce(m, sa.Float)), [("10", 10, 1.5), ("9", 9, 2.5)]),
        (sa.select(sa.func.abs(-n), sa.literal("x"), sa.null()), [(10, "x", None), (9, "x", None)]),
        (sa.select(-sa.func.max(n), sa.func.max(n) - sa.func.min(n), sa.func.max(n)), [(-10, 1, 10)]),
        (sa.select(n.label("x"), m.label("x"), n.label("Time")), [(10, 1.5, 10), (9, 2.5, 9)]),
        (sa.select(n, n).set_label_style(sa.LABEL_STYLE_NONE), [(10, 10), (9, 9)]),
        (sa.select(sa.literal_column("n"), sa.text("-m"), m).select_from(e), [(10, -1.5, 1.5), (9, -2.5, 2.5)]),
        (sa.select(sa.text("n, -m")).select_from(e), [(10, -1.5), (9, -2.5)]),
        (sa.select(sa.text("*")).select_from(e), [(1.5, 10, True), (2.5, 9, False)]),
        (sa.select(sa.column("n") + 1, sa.column("m")).select_from(sa.text("root.g.e")), [(11, 1.5), (10, 2.5)]),
        (sa.select(sa.func.avg(n)).suffix_with("group by ([1, 3), 1ms)"), [(10,), (9,)]),
    ):
        with engine.connect() as connection:
            assert expected == [tuple(row) for row in connection.execute(select)], str(select)
            assert expected == list(pd.read_sql(select, connection).itertuples(index=False, name=None)), str(select)


def test_order_is_by_series_even_if_a_label_has_the_same_name(engine: sa.Engine) -> None:
    n, m = numbers(engine).c["n", "m"]
    with engine.connect() as connection:
        for select, expected in (
            (sa.select(-n).order_by(n), [-9, -10]),
            (sa.select(sa.cast(n, sa.Text)).order_by(n), ["9", "10"]),
            (sa.select(m.label("n")).order_by(n), [2.5, 1.5]),
            (sa.select(m.label("x")).order_by(sa.desc("x")), [2.5, 1.5]),
            (sa.select((-n).label("x")).order_by("x"), [-10, -9]),
        ):
            assert expected == list(connection.scalars(select)), str(select)


def test_objects_and_their_attributes_are_loaded_by_position(engine: sa.Engine) -> None:
    class Base(orm.DeclarativeBase):
        pass

    class Device(Base):
        __table__ = reflected(engine)

    with orm.Session(engine) as session:
        device = session.scalars(sa.select(Device).order_by(Device.time)).first()
        assert device is not None
        assert (FIRST, 1.5, "x") == (device.time, device.a, device.b)
        assert [(1.5, -1.5), (2.5, -2.5)] == session.query(Device.a, -Device.a).all()
        assert (-1.5, device, 1.5) == session.execute(sa.select(-Device.a, Device, Device.a)).first()
        session.expire(device)
        assert "x" == device.b


def test_a_column_without_a_series_is_refused(engine: sa.Engine) -> None:
    table = sa.Table("root.g.d", sa.MetaData(), *(sa.Column(name, sa.Float) for name in ("time", "none", "a", "b")))
    a, none = table.c["a", "none"]
    for select, message in (
        (sa.select(table), "selected columns none:"),
        (sa.select(a, -none, none), "selected columns anon_1, none:"),
        (sa.select(none.label("Time")), "selected columns Time:"),
        (sa.select(sa.func.max(none)), "selected columns max_1:"),
        (sa.select(a, sa.literal_column("none")), r"statement: 2; in its result: 1 \(a\)"),
        (sa.select(a).suffix_with("align by device"), r"statement: 1; in its result: 2 \(Device, a\)"),
        (
            sa.text("select a, b from root.g.d").columns(a, none),
            r"2; in its result: 3 \(Time, root.g.d.a, root.g.d.b\)",
        ),
        (sa.select(sa.Table("root.g.none", sa.MetaData(), sa.Column("time")).c.time), "selected columns time:"),
    ):
        with engine.connect() as connection, pytest.raises(sa.exc.ProgrammingError, match=message) as caught:
            connection.execute(select)
        assert 701 == caught.value.orig.code


def test_columns_of_texts_are_named_by_position(engine: sa.Engine) -> None:
    d = reflected(engine)
    with engine.connect() as connection:
        text = sa.text("select b, -a from root.g.d").columns(d.c.time, d.c.b, d.c.a)
        row = connection.execute(text).mappings().first()
        assert row is not None
        assert (FIRST, "x", -1.5) == (row[d.c.time], row[d.c.b], row[d.c.a])
        named = sa.text("select a as a from root.g.d").columns(a=sa.Float)
        assert [1.5, 2.5] == [row.a for row in connection.execute(named)]


def test_the_number_of_deleted_rows_is_unknown(engine: sa.Engine) -> None:
    class Base(orm.DeclarativeBase):
        pass

    class Device(Base):
        __table__ = reflected(engine)

    with orm.Session(engine) as session:
        session.delete(session.scalars(sa.select(Device).order_by(Device.time)).first())
        session.commit()  # would warn if one deleted row were reported as two rows
        assert [SECOND] == list(session.scalars(sa.select(Device.time)))
        assert -1 == session.execute(sa.delete(Device).where(Device.time < SECOND)).rowcount


def test_rows_are_written_and_deleted(engine: sa.Engine) -> None:
    d, odd = reflected(engine), reflected(engine, "`odd name`")
    with engine.begin() as connection:
        connection.execute(sa.insert(d), [{"time": 5, "a": 9.0, "b": "y"}, {"time": 6, "a": None, "b": "z"}])
        connection.execute(sa.insert(odd).values({"time": FIRST, "x y": 7}))
        assert [(FIRST, 7)] == connection.execute(sa.select(odd)).all()
        assert [("y",), ("z",)] == connection.execute(sa.select(d.c.b).where(d.c.time <= 6)).all()
        connection.execute(sa.delete(d).where(d.c.time >= SECOND))
        connection.execute(sa.delete(d).where(d.c.time < 10))
    with engine.connect() as connection:
        connection.execute(sa.insert(d).values(time=SECOND, a=4.5))
        connection.rollback()  # there are no transactions: written rows stay
        assert [(1.5,), (4.5,)] == connection.execute(sa.select(d.c.a)).all()


@pytest.mark.slow
def test_many_rows_are_one_statement(engine: sa.Engine) -> None:
    d = reflected(engine)
    sent: list[str] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *event: sent.append(event[2]))
    rows = [{"time": n, "a": None if n % 2 else n / 2, "b": f"text {n}"} for n in range(1_000)]
    with engine.begin() as connection:
        connection.execute(sa.insert(d), rows)
        connection.execute(sa.insert(d), [{"time": 2, "a": 7.0}, {"time": 2, "a": 8.0}])
        assert 2 == len(sent)
        assert (500, 1_000) == connection.execute(
            sa.select(sa.func.count(d.c.a), sa.func.count(d.c.b)).where(d.c.time < 1_000)
        ).one()
        found = connection.execute(sa.select(d.c.a, d.c.b).where(d.c.time.in_([2, 3])))
        assert [(8.0, "text 2"), (None, "text 3")] == found.all()


def test_pandas_reads(engine: sa.Engine) -> None:
    import pandas as pd

    d = reflected(engine)
    assert ["time", "a"] == list(pd.read_sql(sa.select(d.c.time, d.c.a), engine))
    with engine.connect() as connection:
        frame = pd.read_sql(sa.text("select a from root.g.d where a > :a"), connection, params={"a": 2})
    assert (["Time", "root.g.d.a"], [2.5]) == (list(frame), list(frame["root.g.d.a"]))
    assert [1.5, 2.5] == list(pd.read_sql_table("d", engine, schema="root.g", index_col="time")["a"])


def test_a_select_without_from_is_one_row(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        assert [(1,)] == connection.execute(sa.select(1)).all()
        row = connection.execute(sa.select(sa.literal("a ? :b"), sa.func.now().label("now"), sa.literal(2) + 3)).one()
        assert ("a ? :b", True, 5) == (row[0], row.now > FIRST, row[2])
        assert saros.__version__ == connection.scalar(sa.text("select version()"))
        assert [] == connection.execute(sa.select(1).where(sa.false())).all()


def test_what_there_is_no_word_for_is_refused(engine: sa.Engine) -> None:
    d, odd = reflected(engine), reflected(engine, "`odd name`")
    a = d.c.a
    for refused, word in (
        (sa.update(d).values(a=1), "UPDATE"),
        (sa.insert(d).values(time=FIRST, a=1).returning(d.c.a), "RETURNING"),
        (sa.delete(d).returning(d.c.a), "RETURNING"),
        (sa.select(d).distinct(), "DISTINCT"),
        (sa.select(a, odd.c["x y"]), "joins"),
        (sa.select(a).join(odd, d.c.time == odd.c.time), "joins"),
        (sa.select(sa.func.count(a)).group_by(d.c.b), "GROUP BY"),
        (sa.union(sa.select(a), sa.select(a)), "UNION"),
        (sa.select(a).where(a == sa.select(a).scalar_subquery()), "subqueries"),
        (sa.select(d.alias().c.a), "aliases"),
        (sa.select(d.c.b + "x"), "concat"),
        (sa.select(a).with_for_update(), "FOR UPDATE"),
        (sa.select(a).where(a.is_distinct_from(d.c.b)), "IS DISTINCT FROM"),
        (sa.select(a).where(a.is_not_distinct_from(None)), "IS DISTINCT FROM"),
        (sa.select(sa.cast(a, sa.Time)), "times of day"),
        (sa.schema.CreateTable(d), "CREATE TABLE"),
        (sa.schema.DropTable(d), "DROP TABLE"),
    ):
        with engine.connect() as connection, pytest.raises(sa.exc.CompileError, match=word):
            connection.execute(refused)
    with engine.connect() as connection, pytest.raises(saros.NotSupportedError, match="savepoints"):
        connection.begin_nested()
    with engine.connect() as connection, pytest.raises(sa.exc.ProgrammingError):
        connection.execute(sa.text("select from"))
    evil = sa.Table("d; drop database root.g", sa.MetaData(), sa.Column("a", sa.Float), schema="root.g")
    with engine.connect() as connection, pytest.raises(sa.exc.CompileError, match="not a device"):
        connection.execute(sa.select(evil))


def test_addresses() -> None:
    def target(url: str) -> tuple[str, dict[str, object]]:
        made = sa.make_url(url)
        (where,), arguments = made.get_dialect()().create_connect_args(made)
        return where, {name: value for name, value in arguments.items() if value is not None}

    url = "saros://ann:p%40w@h1:1/?consistency=weak&tls=/a%26b.pem&time_zone=UTC&timeout=2.5&host=h2:5&host=h3"
    assert (
        "saros://h1:1,h2:5,h3/?consistency=weak&tls=%2Fa%26b.pem",
        {"user": "ann", "password": "p@w", "time_zone": "UTC", "timeout": 2.5},
    ) == target(url)
    assert ("saros://h2:5", {}) == target("saros://?host=h2:5")
    assert ("saros://h/?partial_results=true", {}) == target("saros://h?partial_results=true")
    assert ("saros://[::1]:7", {}) == target("saros://[::1]:7")
    assert ("/data", {"options": {"durability": "os"}}) == target("saros+embedded:////data?durability=os")
    assert ("data", {"timestamps": "epoch"}) == target("saros+embedded:///data?timestamps=epoch")
    for wrong in (
        "saros://h/path",
        "saros://h?colour=red",
        "saros://h?timeout=soon",
        "saros+embedded://h/data",
        "saros+embedded://",
        "saros://h?time_zone=a&time_zone=b",
    ):
        with pytest.raises(sa.exc.ArgumentError):
            target(wrong)


def test_names_of_both_sides() -> None:
    assert "root.g.a.`b c`" == device_path("a.`b c`", "root.g") == device_path("root.g.a.`b c`", None)
    assert ("a.`b c`", "root.g", "root.g.a") == (
        table_name("root.g.a.`b c`", "root.g"),
        table_name("root.g", "root.g"),
        table_name("root.g.a", None),
    )
    assert ["s", "x y", "a`b", "a.b"] == [last_node(p) for p in ("root.s", "root.d.`x y`", "root.`a``b`", "root.`a.b`")]
    assert "root.time.root" == device_path("time.root", "root")
    for wrong in ("d", "root", "root.g.a b", "root.g.d where 1 = 1", "root.g.`a", ""):
        with pytest.raises(ValueError, match="not a device"):
            device_path(wrong, None)
