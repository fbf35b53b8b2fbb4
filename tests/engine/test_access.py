"""Permissions of a session: rules for all statements, filtered schemas, plans per user, and the audit trail."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from engine.embedded_engine import Engine
from engine.installed_package import install_example

from saros_cluster.users.commands import Command, CreateRole, CreateUser, Grant, Grantee, GrantRole, Kind, Revoke
from saros_cluster.users.privileges import CONTAINS, EVERYWHERE, Privilege
from saros_cluster.users.users import Users
from saros_engine.base.access import NoPermission, PasswordMustChange, access_of
from saros_engine.base.errors import NotSupportedError, QueryNotFound, SemanticError
from saros_engine.base.session_context import SessionContext
from saros_engine.catalog.continuous_queries import continuous_queries
from saros_engine.coordinator import QueryEngine
from saros_engine.memory.options import EngineOptions
from saros_engine.security.authorization import RULES, SHOWING
from saros_engine.statements.user_statements import Secret, UserStatements
from saros_grammar.syntax import ast
from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import parse_pattern, split_path
from saros_storage.base.types import DataType

_UNKNOWN = r"doesn't exist|must match one series"
ANN, STAFF = Grantee(Kind.USER, "ann"), Grantee(Kind.ROLE, "staff")


class MemoryDirectory:
    """A directory without a file."""

    def __init__(self) -> None:
        self._users = Users()

    def users(self) -> Users:
        return self._users

    def newest(self) -> Users:
        return self._users

    def change(self, command: Command, deadline_ns: int | None = None) -> None:
        self._users = self._users.apply(command)


class ListTrail:
    """An audit trail that keeps its entries in a list."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, int]] = []

    def record(self, event: str, statement: str, code: int) -> None:
        self.lines.append((event, statement, code))


class Secured(Engine):
    """An engine with the users root (an administrator) and ann, and a session for each of them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.directory = MemoryDirectory()
        numbers = itertools.count()
        users = UserStatements(
            self.directory,
            lambda _, password: f"hash of {len(password)}",
            lambda: Secret("secret", f"hash {next(numbers)}"),
        )
        self.engine = QueryEngine(self.store, self.scheduler, SystemClock(), EngineOptions(), users=users)
        self.do(CreateUser("root", "$", administrator=True), CreateUser("ann", "$"), CreateRole("staff"))
        self.trail = ListTrail()

    def do(self, *commands: Command) -> None:
        for command in commands:
            self.directory.change(command)

    def allow(self, privilege: Privilege, *areas: str, option: bool = False) -> None:
        self.do(Grant((privilege,), areas or (EVERYWHERE,), ANN, option))

    def ask_as(self, user: str, text: str) -> list[list[object]]:
        self.session = SessionContext(access=access_of(self.directory.users(), user), trail=self.trail)
        return self.ask(text)[1]

    def header_as(self, user: str, text: str) -> list[str]:
        self.session = SessionContext(access=access_of(self.directory.users(), user), trail=self.trail)
        return self.ask(text)[0]

    def denied(self, text: str, user: str = "ann") -> str:
        with pytest.raises(NoPermission) as caught:
            self.ask_as(user, text)
        assert 803 == caught.value.code
        return str(caught.value)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Secured]:
    install_example(monkeypatch, tmp_path / "installed")
    opened = Secured(tmp_path)
    for text in (
        "create database root.a",
        "create database root.b",
        "insert into root.a.open(time, s, t) values (1, 1.0, 2.0), (2, 3.0, 4.0)",
        "insert into root.a.shut(time, s, t) values (1, 10.0, 20.0), (3, 30.0, 40.0)",
        "insert into root.b.shut(time, s) values (1, 100.0)",
        "create timeseries root.a.open.named(nick) with datatype=DOUBLE",
        "insert into root.a.open(time, named) values (1, 7.0)",
        *(f"create device template {name} (q INT32)" for name in ("free", "set", "used")),
        "set device template set to root.b.set",
        "set device template used to root.b.used",
        "create timeseries using device template on root.b.used",
        "create cq known begin select count(s) into root.a.open(y) from root.a.shut group by(1m) end",
        "create function known as 'fahrenheit'",
        "create trigger known after insert on root.nowhere.** as 'alarm'",
        "create user clerk 'a long password'",
        "create token known for user clerk",
    ):
        opened.ask_as("root", text)
    opened.trail.lines.clear()
    yield opened
    opened.close()


# ---------------------------------------------------------------------------------------------- every statement

#: One statement of each class, with the privilege and path that ann lacks for it; None if she needs no privilege.
STATEMENTS: dict[str, tuple[Privilege, str] | None] = {
    "select s from root.a.shut": (Privilege.READ_DATA, "root.a.shut.s"),
    "select last s from root.a.shut": (Privilege.READ_DATA, "root.a.shut.s"),
    "select s from root.a.shut align by device": (Privilege.READ_DATA, "root.a.shut.s"),
    "explain select s from root.a.shut": (Privilege.READ_DATA, "root.a.shut.s"),
    "explain analyze select s from root.a.shut": (Privilege.READ_DATA, "root.a.shut.s"),
    "insert into root.a.shut(time, s) values (5, 1.0)": (Privilege.WRITE_DATA, "root.a.shut.s"),
    "delete from root.a.shut.s": (Privilege.WRITE_DATA, "root.a.shut.s"),
    "create device template t9 (s INT32)": (Privilege.MANAGE_DATABASE, EVERYWHERE),
    "alter device template free add (r INT32)": (Privilege.MANAGE_DATABASE, EVERYWHERE),
    "drop device template free": (Privilege.MANAGE_DATABASE, EVERYWHERE),
    "set device template free to root.b.fresh": (Privilege.MANAGE_DATABASE, EVERYWHERE),
    "unset device template set from root.b.set": (Privilege.MANAGE_DATABASE, EVERYWHERE),
    "create timeseries using device template on root.b.set": (Privilege.WRITE_SCHEMA, "root.b.set.**"),
    "deactivate device template used from root.b.used": (Privilege.WRITE_SCHEMA, "root.b.used.**"),
    "show device templates": None,
    "create view root.a.new.v as root.a.open.s": (Privilege.WRITE_SCHEMA, "root.a.new.v"),
    "create view root.a.new.v as select s * 2 from root.a.shut": (Privilege.READ_DATA, "root.a.shut.s"),
    "show view": None,
    "create cq c begin select count(s) into root.a.open(x) from root.a.shut group by(1m) end": (
        Privilege.USE_CQ,
        EVERYWHERE,
    ),
    "create function f as 'fahrenheit'": (Privilege.USE_UDF, EVERYWHERE),
    "drop function known": (Privilege.USE_UDF, EVERYWHERE),
    "create trigger t before insert on root.nowhere.** as 'limits'": (Privilege.USE_TRIGGER, EVERYWHERE),
    "drop trigger known": (Privilege.USE_TRIGGER, EVERYWHERE),
    "show triggers": (Privilege.USE_TRIGGER, EVERYWHERE),
    "drop cq known": (Privilege.USE_CQ, EVERYWHERE),
    "show cqs": (Privilege.USE_CQ, EVERYWHERE),
    "alter database root.b with ttl=5": (Privilege.MANAGE_DATABASE, EVERYWHERE),
    "create database root.c": (Privilege.MANAGE_DATABASE, EVERYWHERE),
    "drop database root.b": (Privilege.MANAGE_DATABASE, EVERYWHERE),
    "create timeseries root.a.new.s INT32": (Privilege.WRITE_SCHEMA, "root.a.new.s"),
    "drop timeseries root.a.shut.s": (Privilege.WRITE_SCHEMA, "root.a.shut.s"),
    "alter timeseries root.a.shut.s add tags k='v'": (Privilege.WRITE_SCHEMA, "root.a.shut.s"),
    "show variables": (Privilege.MAINTAIN, EVERYWHERE),
    "show cluster": (Privilege.MAINTAIN, EVERYWHERE),
    "show cluster change": (Privilege.MAINTAIN, EVERYWHERE),
    "show clusterid": (Privilege.MAINTAIN, EVERYWHERE),
    "show queries where elapsedtime > 1": None,
    "set system to running": (Privilege.MAINTAIN, EVERYWHERE),
    "show regions": (Privilege.MAINTAIN, EVERYWHERE),
    "show disk_usage from root.a.**": (Privilege.MAINTAIN, EVERYWHERE),
    "show available urls": None,
    "select * from information_schema.variables": (Privilege.MAINTAIN, EVERYWHERE),
    "select count(*) from information_schema.files": (Privilege.MAINTAIN, EVERYWHERE),
    "select * from information_schema.timeseries": None,
    "show timeseries": None,
    "show queries": None,
    "show slow queries limit 3": None,
    "show version": None,
    "count timeseries": None,
    "flush": (Privilege.MAINTAIN, EVERYWHERE),
    "merge": (Privilege.MAINTAIN, EVERYWHERE),
    "kill all queries": None,
    "set time zone to 'UTC'": None,
    "set allow partial results true": None,
    "create user bob 'a long password'": (Privilege.MANAGE_USER, EVERYWHERE),
    "alter user ann set password 'a long password'": None,
    "create role admins": (Privilege.MANAGE_ROLE, EVERYWHERE),
    "drop role staff": (Privilege.MANAGE_ROLE, EVERYWHERE),
    "grant role staff to ann": (Privilege.MANAGE_ROLE, EVERYWHERE),
    "revoke role clerks from ann": (Privilege.MANAGE_ROLE, EVERYWHERE),
    "list user of role staff": (Privilege.MANAGE_USER, EVERYWHERE),
    "list role of user root": (Privilege.MANAGE_ROLE, EVERYWHERE),
    "list privileges of user root": (Privilege.MANAGE_USER, EVERYWHERE),
    "list privileges of role staff": (Privilege.MANAGE_ROLE, EVERYWHERE),
    "list user": None,
    "list role": None,
    "create token of_mine expires in 1d": None,
    "create token t for user clerk": (Privilege.MANAGE_USER, EVERYWHERE),
    "drop token known of user clerk": (Privilege.MANAGE_USER, EVERYWHERE),
    "show tokens of user clerk": (Privilege.MANAGE_USER, EVERYWHERE),
    "show tokens": None,
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_needs_exactly_its_privilege(engine: Secured, text: str) -> None:
    engine.do(CreateRole("clerks"), GrantRole("clerks", "ann"))
    needed = STATEMENTS[text]
    if needed is not None:
        privilege, path = needed
        for other in Privilege:
            if privilege not in (other, CONTAINS.get(other)):
                engine.allow(other)
        if privilege is Privilege.READ_DATA:
            engine.do(Grant((Privilege.READ_DATA,), ("root.a.open.**",), ANN))
        message = engine.denied(text)
        assert privilege.value in message
        assert path in message or path is EVERYWHERE
        assert ("denied", text.replace("'a long password'", "'***'"), 803) == engine.trail.lines[-1]
        engine.allow(privilege, path)
    engine.ask_as("ann", text)


def test_only_an_administrator_sees_what_would_move(engine: Secured) -> None:
    assert "an administrator" in engine.denied("explain rebalance cluster by bytes")
    with pytest.raises(NotSupportedError, match="outside a cluster"):
        engine.ask_as("root", "explain rebalance cluster by bytes")


@pytest.mark.parametrize(
    "text",
    [
        "admit node 'a:1' client 'a:2'",
        "add node 4",
        "remove node 2",
        "replace node 2 with 4",
        "rebalance cluster",
        "migrate region 1 from 2 to 3",
        "abort change",
        "give up node 4",
        "dismiss node 4",
    ],
)
def test_only_an_administrator_changes_who_is_in_the_cluster(engine: Secured, text: str) -> None:
    for privilege in Privilege:
        engine.allow(privilege)
    assert "an administrator" in engine.denied(text)
    assert ("denied", text, 803) == engine.trail.lines[-1]
    with pytest.raises(NotSupportedError, match="outside a cluster"):
        engine.ask_as("root", text)
    assert ("cluster", text, NotSupportedError.code) == engine.trail.lines[-1]


def test_every_class_of_statement_has_a_rule_and_every_kind_of_show() -> None:
    assert set(get_args(ast.Statement)) == set(RULES)
    assert set(ast.ShowKind) == set(SHOWING)


def test_an_administrator_may_everything(engine: Secured) -> None:
    engine.do(CreateRole("clerks"), GrantRole("clerks", "ann"))
    for text in STATEMENTS:
        with suppress(UserMistake):  # some statements drop objects that later statements need
            engine.ask_as("root", text)


def test_who_must_change_the_password_may_nothing_else(engine: Secured) -> None:
    engine.do(CreateUser("new", "$", administrator=True, must_change=True))
    for text in (
        "select s from root.a.open",
        "show version",
        "alter user ann set password 'a long password'",
        "list user",
    ):
        with pytest.raises(PasswordMustChange):
            engine.ask_as("new", text)
    session = SessionContext(access=access_of(engine.directory.users(), "new"))
    with pytest.raises(PasswordMustChange):
        engine.engine.insert_columns(
            "root.a.d", np.arange(1), {"s": Column(DataType.DOUBLE, np.ones(1))}, session=session
        )
    engine.ask_as("new", "alter user new set password 'a long password'")
    engine.ask_as("new", "list user")


def test_a_login_by_token_cannot_prolong_itself(engine: Secured) -> None:
    for user, other in (("ann", "clerk"), ("root", "ann")):
        access = access_of(engine.directory.users(), user, by_token=True)
        engine.session = SessionContext(access=access, trail=engine.trail)
        for text in (
            "create token t",
            f"create token t for user {user}",
            f"alter user {user} set password 'long enough'",
        ):
            with pytest.raises(NoPermission, match="a login with the password is needed"):
                engine.ask(text)
        assert [] == engine.ask(f"show tokens of user {user}")[1]
        if user == "root":
            assert 1 == len(engine.ask(f"create token t for user {other}")[1])


def test_tokens_are_listed_as_far_as_they_may_be_managed(engine: Secured) -> None:
    engine.ask_as("ann", "create token mine expires in 1d")
    assert ["User", "Token", "Created", "Expires", "LastUsed"] == engine.header_as("ann", "show tokens")
    assert [["ann", "mine"]] == [row[:2] for row in engine.ask_as("ann", "show tokens")]
    ((_, _, created, expires, used),) = engine.ask_as("ann", "show tokens of user ann")
    assert (86_400_000, None) == (expires - created, used)  # type: ignore[operator]
    assert [["ann", "mine"], ["clerk", "known"]] == [row[:2] for row in engine.ask_as("root", "show tokens")]


def test_an_expiry_lies_in_the_future(engine: Secured) -> None:
    for expiry in ("'2020-01-01'", "2020-01-01T00:00:00", "in 0s"):
        with pytest.raises(SemanticError, match="would have expired already"):
            engine.ask_as("ann", f"create token t expires {expiry}")
    with pytest.raises(SemanticError, match="time format"):
        engine.ask_as("ann", "create token t expires 'soon'")
    assert [] == engine.ask_as("ann", "show tokens")


# ---------------------------------------------------------------------------------------------- reading


def test_wildcards_hold_what_may_be_read_only(engine: Secured) -> None:
    engine.allow(Privilege.READ_DATA, "root.a.open.**")
    assert ["Time", "root.a.open.named", "root.a.open.s", "root.a.open.t"] == engine.header_as(
        "ann", "select ** from root"
    )
    assert [[2, 2]] == engine.ask_as("ann", "select count(s), count(t) from root.a.*")
    assert [["root.a.open", 2]] == engine.ask_as("ann", "select count(s) from root.** align by device")
    assert [[1, "root.a.open.s", "3.0", "DOUBLE"]] != engine.ask_as("ann", "select last s from root.**")
    assert [] == engine.ask_as("ann", "select s from root.b.*")


def test_a_view_shows_nothing_that_may_not_be_read_without_it(engine: Secured) -> None:
    engine.ask_as("root", "create view root.b.x.view.s as root.a.shut.s")
    engine.ask_as("root", "create view root.b.x.view.both as select s + root.a.open.s from root.a.shut")
    engine.allow(Privilege.READ_DATA, "root.b.x.view.**")
    engine.allow(Privilege.READ_SCHEMA, "root.b.x.view.**")
    assert ["Time"] == engine.header_as("ann", "select s, both from root.b.x.view")
    assert ["Time"] == engine.header_as("ann", "select * from root.b.x.view")
    assert [] == engine.ask_as("ann", "show timeseries root.b.x.view.**")
    hidden = [[f"root.b.x.view.{name}", "root.b", None, None, None, "VIEW", None] for name in ("both", "s")]
    assert hidden == engine.ask_as("ann", "show view")
    engine.allow(Privilege.READ_DATA, "root.a.shut.**")
    assert ["Time", "root.b.x.view.s"] == engine.header_as("ann", "select * from root.b.x.view")
    assert [[1, 10.0], [3, 30.0]] == engine.ask_as("ann", "select s from root.b.x.view")
    engine.allow(Privilege.READ_DATA, "root.a.open.s")
    assert [[1, 11.0]] == engine.ask_as("ann", "select both from root.b.x.view where both is not null")
    for text in (
        "alter view root.b.x.view.s as root.a.open.s",
        "drop view root.b.x.view.*",
        "alter view root.b.x.view.s add tags k=v",
    ):
        assert "WRITE_SCHEMA on [root.b.x.view" in engine.denied(text)
    engine.allow(Privilege.WRITE_SCHEMA, "root.b.x.view.**")
    assert "root.b.y.s" in engine.denied("alter view root.b.x.view.s rename to root.b.y.s")
    engine.do(Revoke((Privilege.READ_DATA,), ("root.b.x.view.**",), ANN))
    assert "root.b.x.view.s" in engine.denied("select s from root.b.x.view")


def test_conditions_and_orders_see_nothing_else(engine: Secured) -> None:
    engine.allow(Privilege.READ_DATA, "root.a.open.s")
    assert [[1, 1.0], [2, 3.0]] == engine.ask_as("ann", "select s from root.a.open")
    engine.denied("select s from root.a.open where t > 0")
    engine.denied("select s from root.a.open where root.a.shut.s > 0")
    assert [] == engine.ask_as("ann", "select s from root.a.* where `t` > 0")
    with pytest.raises(Exception, match=_UNKNOWN):
        engine.ask_as("ann", "select s from root.a.open order by t")
    with pytest.raises(Exception, match=_UNKNOWN):
        engine.ask_as("ann", "select count(s) from root.a.open group by variation(t, 1)")


def test_an_answer_does_not_tell_whether_there_is_something(engine: Secured) -> None:
    engine.allow(Privilege.READ_DATA, "root.a.open.**")
    engine.allow(Privilege.READ_SCHEMA, "root.a.open.**")
    engine.allow(Privilege.WRITE_DATA, "root.a.open.**")
    engine.allow(Privilege.WRITE_SCHEMA, "root.a.open.**")
    texts = (
        "select s from {}",
        "select last s from {}",
        "select s from {} align by device",
        "explain select s from {}",
        "insert into {}(time, s) values (1, 1.0)",
        "delete from {}.s",
        "delete from {}.*",
        "drop timeseries {}.s",
        "drop timeseries {}.*",
        "alter timeseries {}.s add tags k='v'",
        "create timeseries {}.s INT32",
        "count timeseries {}.*",
        "show devices {}",
        "show child nodes {}",
        "show child paths {}",
        "show databases {}",
        "count nodes {}.** level=2",
        "show timeseries {}.s",
    )
    for text in texts:
        answers = []
        for path in ("root.a.shut", "root.a.none"):
            try:
                answers.append(repr(engine.ask_as("ann", text.format(path))))
            except Exception as error:  # noqa: BLE001 (which one is the question)
                answers.append(repr(error).replace(path, "{}"))
        assert answers[0].replace("shut", "none") == answers[1], text


def test_that_there_are_points_is_data_not_schema(engine: Secured) -> None:
    engine.allow(Privilege.READ_SCHEMA, "root.a.**")
    engine.allow(Privilege.READ_DATA, "root.a.shut.t")
    for text in ("show timeseries root.a.** where time >= 1", "show timeseries where time = 1 or time = 3"):
        assert ["root.a.shut.t"] == [row[0] for row in engine.ask_as("ann", text)]
    assert ["root.a.shut"] == [row[0] for row in engine.ask_as("ann", "show devices root.** where time > 0")]
    assert [[1]] == engine.ask_as("ann", "count timeseries root.** where time > 0")
    assert [[0]] == engine.ask_as("ann", "count devices root.a.open where time > 0")


def test_schema_that_may_not_be_read_does_not_show(engine: Secured) -> None:
    engine.allow(Privilege.READ_SCHEMA, "root.a.open.s")
    assert ["root.a.open.s"] == [row[0] for row in engine.ask_as("ann", "show timeseries")]
    assert ["root.a.open.s"] == [row[0] for row in engine.ask_as("ann", "show latest timeseries")]
    assert [["root.a.open.s"]] == engine.ask_as("ann", "select timeseries from information_schema.timeseries")
    assert [[1]] == engine.ask_as("ann", "select count(*) from information_schema.devices")
    assert ["root.a"] == [row[0] for row in engine.ask_as("ann", "show databases")]
    assert [["root.a.open"]] == [row[:1] for row in engine.ask_as("ann", "show devices")]
    assert [["root.a", "DATABASE"]] == engine.ask_as("ann", "show child paths root")
    assert [["root.a.open", "DEVICE"]] == engine.ask_as("ann", "show child paths root.a")
    assert [["root.a.open.s", "TIMESERIES"]] == engine.ask_as("ann", "show child paths root.a.open")
    assert [["open"]] == engine.ask_as("ann", "show child nodes root.a")
    assert [[1]] == engine.ask_as("ann", "count timeseries")
    assert [[1]] == engine.ask_as("ann", "count devices")
    assert [[1]] == engine.ask_as("ann", "count databases")
    assert [[1]] == engine.ask_as("ann", "count nodes root.** level=2")
    assert [[0]] == engine.ask_as("ann", "count nodes root.b.** level=1")
    assert [["root.a", 1]] == engine.ask_as("ann", "count timeseries group by level=1")


def test_plans_are_not_shared_between_users_nor_kept_when_rights_change(engine: Secured) -> None:
    text = "select * from root.a.*"
    assert 6 == len(engine.header_as("root", text))
    assert ["Time"] == engine.header_as("ann", text)
    engine.allow(Privilege.READ_DATA, "root.a.shut.**")
    assert ["Time", "root.a.shut.s", "root.a.shut.t"] == engine.header_as("ann", text)
    engine.ask_as("root", "revoke read_data on root.a.** from user ann")
    assert ["Time"] == engine.header_as("ann", text)
    engine.do(CreateUser("bob", "$"), Grant((Privilege.READ_DATA,), ("root.a.open.s",), Grantee(Kind.USER, "bob")))
    assert ["Time", "root.a.open.s"] == engine.header_as("bob", text)
    assert 6 == len(engine.header_as("root", text))


def test_rights_are_asked_for_each_time_a_prepared_question_is_asked(engine: Secured) -> None:
    text = "select s, t from root.a.open where time = ?"

    def ask(user: str, time: int) -> list[str]:
        session = SessionContext(access=access_of(engine.directory.users(), user))
        result = engine.engine.execute(text, session, (time,))
        result.close()
        return [field.name for field in result.fields]

    both = ["root.a.open.s", "root.a.open.t"]
    assert both == ask("root", 1)
    with pytest.raises(NoPermission):
        ask("ann", 1)
    engine.do(Grant((Privilege.READ_DATA,), ("root.a.open.**",), STAFF), GrantRole("staff", "ann"))
    assert [both, both] == [ask("ann", 2), ask("ann", 3)]
    engine.do(Revoke((Privilege.READ_DATA,), ("root.a.open.**",), STAFF))
    with pytest.raises(NoPermission):
        ask("ann", 3)
    assert both == ask("root", 3)


def test_a_series_is_known_by_its_alias_too(engine: Secured) -> None:
    engine.allow(Privilege.READ_DATA, "root.a.open.named")
    assert [[1, 7.0]] == engine.ask_as("ann", "select nick from root.a.open")
    engine.denied("delete from root.a.open.nick")
    engine.denied("insert into root.a.open(time, nick) values (2, 1.0)")
    engine.do(CreateUser("bob", "$"), Grant((Privilege.WRITE_DATA,), ("root.a.open.nick",), Grantee(Kind.USER, "bob")))
    for text in ("delete from root.a.open.nick", "insert into root.a.open(time, nick) values (2, 1.0)"):
        engine.denied(text, "bob")
    assert [] == engine.ask_as("bob", "select nick from root.a.open")


# ---------------------------------------------------------------------------------------------- writing


def test_columns_are_checked_like_rows(engine: Secured) -> None:
    def insert(device: str, *names: str) -> int:
        session = SessionContext(access=access_of(engine.directory.users(), "ann"), trail=engine.trail)
        columns = {name: Column(DataType.DOUBLE, np.ones(2)) for name in names}
        return engine.engine.insert_columns(device, np.arange(2), columns, session=session)

    with pytest.raises(NoPermission, match=r"WRITE_DATA on \[root.a.open.s\]"):
        insert("root.a.open", "s")
    assert ("denied", "columns for root.a.open", 803) == engine.trail.lines[-1]
    engine.allow(Privilege.WRITE_DATA, "root.a.open.**")
    assert 4 == insert("root.a.open", "s", "t")
    assert 2 == insert("root.a.`open`", "s")
    with pytest.raises(NoPermission, match=r"WRITE_SCHEMA on \[root.a.open.u\]"):
        insert("root.a.open", "s", "u")
    engine.allow(Privilege.WRITE_SCHEMA, "root.a.open.**")
    assert 4 == insert("root.a.open", "s", "u")
    with pytest.raises(NoPermission, match=r"WRITE_DATA on \[root.a.shut.s\]"):
        insert("root.a.shut", "s")


def test_writing_makes_a_database_only_for_those_who_may(engine: Secured) -> None:
    engine.allow(Privilege.WRITE_DATA, "root.c.**")
    text = "insert into root.c.d(time, s) values (1, 1.0)"
    assert "WRITE_SCHEMA on [root.c.d.s]" in engine.denied(text)
    engine.allow(Privilege.WRITE_SCHEMA, "root.c.**")
    assert "MANAGE_DATABASE" in engine.denied(text)
    engine.allow(Privilege.MANAGE_DATABASE)
    engine.ask_as("ann", text)


def test_what_deletes_needs_the_privilege_on_all_that_could_match(engine: Secured) -> None:
    engine.allow(Privilege.WRITE_DATA, "root.a.open.**")
    engine.allow(Privilege.WRITE_SCHEMA, "root.a.open.**")
    for pattern in ("root.**", "root.a.**", "root.a.*.s", "root.*.open.s", "root.a.open*.s"):
        engine.denied(f"delete from {pattern}")
        engine.denied(f"drop timeseries {pattern}")
    engine.ask_as("ann", "delete from root.a.open.* where time < 2")
    engine.ask_as("ann", "drop timeseries root.a.open.*")


# ---------------------------------------------------------------------------------------------- users


def test_who_manages_users_does_not_become_an_administrator(engine: Secured) -> None:
    engine.allow(Privilege.MANAGE_USER)
    engine.allow(Privilege.MANAGE_ROLE)
    engine.denied("alter user root set password 'a long password'")
    engine.denied("create token t for user root")
    engine.denied("drop token t of user root")
    engine.denied("drop user root")
    engine.denied("grant all on root.** to user ann")
    engine.denied("grant read_data on root.a.** to role staff")
    engine.denied("revoke manage_user on root.** from user ann")
    engine.ask_as("ann", "create user root2 'a long password'")
    engine.ask_as("ann", "drop user root2")
    with pytest.raises(UserMistake):
        engine.ask_as("ann", "drop user nobody")


@pytest.mark.parametrize(
    "text",
    [
        "grant read_data on root.a.** to user root",
        "revoke read_data on root.a.** from user root",
        "grant role staff to root",
        "revoke role staff from root",
    ],
)
def test_nothing_is_granted_to_an_administrator(engine: Secured, text: str) -> None:
    with pytest.raises(UserMistake, match="root is an administrator") as caught:
        engine.ask_as("root", text)
    assert 803 == caught.value.code
    assert [] == engine.ask_as("root", "list role of user root")


def test_the_grant_option_passes_on_what_it_covers(engine: Secured) -> None:
    engine.do(CreateUser("bob", "$"))
    engine.allow(Privilege.READ_DATA, "root.a.**", option=True)
    engine.ask_as("ann", "grant read_data on root.a.open.** to user bob")
    engine.denied("grant read_data on root.** to user bob")
    engine.denied("grant write_data on root.a.open.** to user bob")
    engine.denied("grant read on root.a.open.** to user bob")
    assert [[1, 1.0], [2, 3.0]] == engine.ask_as("bob", "select s from root.a.open")
    engine.ask_as("ann", "revoke read_data on root.a.** from user bob")
    engine.denied("select s from root.a.open", "bob")


def test_lists_are_cut_to_what_the_user_may_see(engine: Secured) -> None:
    engine.do(GrantRole("staff", "ann"), Grant((Privilege.READ_DATA,), ("root.b.**",), STAFF))
    engine.allow(Privilege.MAINTAIN)
    engine.do(Grant((Privilege.WRITE_DATA,), ("root.a.**",), ANN, option=True))
    assert [["ann"]] == engine.ask_as("ann", "list user")
    assert [["ann"], ["clerk"], ["root"]] == engine.ask_as("root", "list user")
    assert [["staff"]] == engine.ask_as("ann", "list role")
    expected = [
        ["", "root.**", "MAINTAIN", False],
        ["", "root.a.**", "WRITE_DATA", True],
        ["staff", "root.b.**", "READ_DATA", False],
    ]
    assert expected == engine.ask_as("ann", "list privileges of user ann")
    assert ["Role", "Path", "Privileges", "GrantOption"] == engine.header_as("ann", "list privileges of user ann")
    assert [["staff", "root.b.**", "READ_DATA", False]] == engine.ask_as("ann", "list privileges of role staff")
    assert [["ann"]] == engine.ask_as("root", "list user of role staff")
    assert len(Privilege) == len(engine.ask_as("root", "list privileges of user root"))


def test_queries_of_others_are_neither_shown_nor_ended(engine: Secured) -> None:
    session = SessionContext(access=access_of(engine.directory.users(), "root"))
    engine.engine.insert_columns("root.a.big", np.arange(300_000), {"s": Column(DataType.DOUBLE, np.ones(300_000))})
    running = engine.engine.execute("select s, s + 1, s + 2 from root.a.big", session)
    try:
        assert [] == engine.ask_as("ann", "show queries")
        with pytest.raises(QueryNotFound):
            engine.ask_as("ann", f"kill query '{running.query_id}'")
        engine.ask_as("ann", "kill all queries")
        assert 1 == len(engine.ask_as("root", "show queries"))
        engine.allow(Privilege.MAINTAIN)
        assert 1 == len(engine.ask_as("ann", "show queries"))
        engine.ask_as("ann", f"kill query '{running.query_id}'")
    finally:
        running.close()


# ---------------------------------------------------------------------------------------------- trail, differential


def test_the_trail_is_told_of_changes_and_denials_without_passwords(engine: Secured) -> None:
    engine.ask_as("root", "create user bob 'canary-password'")
    engine.ask_as("root", "alter user bob set password 'canary-password'")
    engine.ask_as("root", "create database root.c")
    with pytest.raises(UserMistake):
        engine.ask_as("root", "create database root.c")
    engine.ask_as("root", "delete from root.a.open.s where time < 0")
    engine.denied("create user eve 'canary-password'")
    for quiet in (
        "select s from root.a.open",
        "insert into root.a.open(time, s) values (9, 9.0)",
        "list user",
        "show version",
    ):
        engine.ask_as("root", quiet)
    assert [
        ("users", "create user bob '***'", 0),
        ("users", "alter user bob set password '***'", 0),
        ("schema", "create database root.c", 0),
        ("schema", "create database root.c", 501),
        ("delete", "delete from root.a.open.s where time < 0", 0),
        ("denied", "create user eve '***'", 803),
    ] == engine.trail.lines


def test_a_user_with_few_rights_gets_a_part_of_what_the_administrator_gets(engine: Secured) -> None:
    """A user with random grants gets those columns of root's results that a simple matcher of the grants allows."""
    chance = random.Random(7)
    paths = ["root.a.open.s", "root.a.open.t", "root.a.open.named", "root.a.shut.s", "root.a.shut.t", "root.b.shut.s"]
    areas = [*paths, "root.a.**", "root.a.open.**", "root.a.shut.**", "root.b.**"]
    queries = [
        f"select {items} from {source}"
        for items, source in itertools.product(("*", "s, t", "**", "s"), ("root.a.*", "root.**", "root.*.shut"))
    ] + ["select ** from root", "select *.*.s from root"]
    for _ in range(12):
        granted = chance.sample(areas, chance.randint(0, 3))
        engine.do(CreateUser(name := f"u{chance.getrandbits(60)}", "$"))
        if granted:
            engine.do(Grant((Privilege.READ_DATA,), tuple(granted), Grantee(Kind.USER, name)))
        for text in queries:
            every = engine.header_as("root", text)
            expected = [
                c for c in every if c == "Time" or any(parse_pattern(g).matches(split_path(c)) for g in granted)
            ]
            assert expected == engine.header_as(name, text), (granted, text)


# ---------------------------------------------------------------------------------------------- SELECT INTO, CQ


def test_select_into_reads_and_writes_as_its_user(engine: Secured) -> None:
    engine.allow(Privilege.READ_DATA, "root.a.open.**")
    assert "WRITE_DATA" in engine.denied("select s into root.a.copy(s) from root.a.open")
    engine.allow(Privilege.WRITE_DATA, "root.a.copy.**")
    assert "WRITE_SCHEMA" in engine.denied("select s into root.a.copy(s) from root.a.open")
    engine.allow(Privilege.WRITE_SCHEMA, "root.a.copy.**")
    # Of the series that match the wildcard, only those that the user may read are copied.
    assert [["root.a.open.s", "root.a.copy.s", 2]] == engine.ask_as("ann", "select s into root.a.copy(s) from root.a.*")


def test_a_continuous_query_has_what_its_creator_has_when_it_runs(engine: Secured) -> None:
    engine.allow(Privilege.USE_CQ)
    engine.allow(Privilege.READ_DATA, "root.a.open.**")
    engine.allow(Privilege.WRITE_DATA, "root.a.copy.**")
    engine.allow(Privilege.WRITE_SCHEMA, "root.a.copy.**")
    text = "create cq c resample every 1h range 1h begin select s into root.a.copy(s) from root.a.open end"
    engine.ask_as("ann", text)
    query = continuous_queries(engine.store.schema)[0]
    engine.engine.run_continuous(query, 1_000)
    assert [[1, 1.0], [2, 3.0]] == engine.ask_as("root", "select s from root.a.copy")
    engine.do(Revoke((Privilege.WRITE_DATA,), ("root.a.copy.**",), ANN))
    with pytest.raises(NoPermission):
        engine.engine.run_continuous(query, 1_000)
