r"""Backslash commands: registered once, with name, arguments and help in one place.

Each takes the session and the words after its name. `\?` prints the table, which is also the one in docs/commands.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import saros
from saros_server.config.arguments import did_you_mean
from saros_shell.output.render import RENDERERS
from saros_shell.repl.copy import copy_command

if TYPE_CHECKING:
    from saros_shell.repl.session import Session

#: False: it failed, and has said why.
Action = Callable[["Session", str], bool]


class MetaError(Exception):
    """A backslash command was used wrongly; the message says how it is used."""


@dataclass(frozen=True, slots=True)
class MetaCommand:
    """One command: `usage` is how it is typed, `what` what it does."""

    usage: str
    what: str
    action: Action


COMMANDS: dict[str, MetaCommand] = {}
NOT_UTF8 = "it is no text in UTF-8 (at byte {})"
_ALSO = {r"\help": r"\?", r"\h": r"\?"}


def script_text(name: str) -> str:
    """A file of statements, as it is: line ends in values are what the file has. Raises OSError, UnicodeDecodeError."""
    with Path(name).expanduser().open(encoding="utf-8-sig", newline="") as file:
        return file.read()


def command(usage: str, what: str) -> Callable[[Action], Action]:
    """Register the decorated action under the first word of `usage`."""

    def register(action: Action) -> Action:
        COMMANDS[usage.split(maxsplit=1)[0]] = MetaCommand(usage, what, action)
        return action

    return register


def run_meta(session: Session, line: str) -> bool:
    """Carry out a line that begins with a backslash; False if it failed, and has said why. Raises MetaError."""
    name, _, rest = line.strip().rstrip(";").partition(" ")
    known = COMMANDS.get(_ALSO.get(name, name))
    if known is None:
        raise MetaError(rf"there is no command {name}{did_you_mean(name, COMMANDS)}; \? lists them")
    return known.action(session, rest.strip())


@command(r"\?", r"list these commands (also: \help, help)")
def _help(session: Session, _: str) -> bool:
    width = max(len(c.usage) for c in COMMANDS.values())
    session.runner.out([f"{c.usage:<{width}}  {c.what}" for c in COMMANDS.values()])
    return True


@command(r"\q", "leave (also Ctrl-D, exit, quit)")
def _quit(session: Session, _: str) -> bool:
    session.leaving = True
    return True


@command(r"\l", "list databases")
def _databases(session: Session, _: str) -> bool:
    return session.runner.run("show databases")


@command(r"\d [PATTERN]", "list series: of a path pattern, or all below a path")
def _series(session: Session, pattern: str) -> bool:
    if pattern and "*" not in pattern and _has_children(session, pattern):
        pattern += ".**"
    return session.runner.run(f"show timeseries {pattern}", _compact_columns)


def _compact_columns(series: pa.Table) -> pa.Table:
    """Of SHOW TIMESERIES what every series has, and what some have: aliases, tags, a view that they are."""
    shown = ["Timeseries", "DataType", "Encoding", "Compression"]
    usual = {"ViewType": "BASE"}
    for name in series.column_names:
        told = set(series[name].unique().to_pylist()) - {None, usual.get(name)}
        if told and name not in (*shown, "Database"):
            shown.append(name)
    return series.select(shown)


def _has_children(session: Session, path: str) -> bool:
    """Whether the path is none of a series; a text that is no path has none, and is complained of later."""
    try:
        with session.runner.connection.execute(f"show child nodes {path}") as cursor:
            return cursor.fetchone() is not None
    except saros.Error:
        return False


@command(r"\dd [PATTERN]", "list devices")
def _devices(session: Session, pattern: str) -> bool:
    return session.runner.run(f"show devices {pattern}")


@command(r"\dn [PATH]", "list child nodes of a path")
def _children(session: Session, path: str) -> bool:
    return session.runner.run(f"show child nodes {path or 'root'}")


@command(r"\df", "list functions")
def _functions(session: Session, _: str) -> bool:
    return session.runner.run("show functions")


@command(r"\timing [on|off]", "print how long statements take")
def _timing(session: Session, word: str) -> bool:
    settings = session.runner.settings
    settings.timing = _switch(word, current=settings.timing)
    session.runner.say(f"timing is {'on' if settings.timing else 'off'}")
    return True


@command(r"\format NAME", "print results as table, csv, json or vertical")
def _format(session: Session, name: str) -> bool:
    if name not in RENDERERS:
        raise MetaError(rf"\format takes one of {', '.join(RENDERERS)}")
    session.runner.settings.format = name
    return True


@command(r"\x", "switch between table and vertical")
def _vertical(session: Session, _: str) -> bool:
    settings = session.runner.settings
    settings.format = "table" if settings.format == "vertical" else "vertical"
    session.runner.say(f"format is {settings.format}")
    return True


@command(r"\pager [on|off]", "page long results")
def _pager(session: Session, word: str) -> bool:
    session.paging = _switch(word, current=session.paging)
    session.runner.say(f"pager is {'on' if session.paging else 'off'}")
    return True


@command(r"\zone [NAME]", "show or set the session's time zone")
def _zone(session: Session, name: str) -> bool:
    return session.runner.run(f"set time zone to '{name}'" if name else "show time zone")


@command(r"\i FILE", "run the statements and commands of a file")
def _include(session: Session, name: str) -> bool:
    try:
        text = script_text(name)
    except OSError as error:
        raise MetaError(f"cannot read {name or 'nothing'}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise MetaError(f"cannot read {name}: {NOT_UTF8.format(error.start)}") from error
    return session.run(text, name)


@command(r"\watch [SECONDS] STATEMENT", "run a statement again and again until Ctrl-C")
def _watch(session: Session, rest: str) -> bool:
    first, _, tail = rest.partition(" ")
    number = first.replace(".", "", 1).isdigit()
    seconds, statement = (float(first), tail) if number else (2.0, rest)
    if not statement.strip():
        raise MetaError(r"\watch needs a statement: \watch 5 select last * from root.plant.pump1")
    try:
        while session.runner.run(statement):
            time.sleep(seconds)
    except KeyboardInterrupt:
        session.runner.error(["stopped watching"])
        return True
    return False


@command(r"\copy (SELECT ...) TO FILE", "write a result to .csv, .json or .parquet")
def _copy(session: Session, rest: str) -> bool:
    session.runner.say(copy_command(session.runner.connection, rest))
    return True


def _switch(word: str, *, current: bool) -> bool:
    if word not in ("", "on", "off"):
        raise MetaError("say on or off")
    return not current if not word else word == "on"
