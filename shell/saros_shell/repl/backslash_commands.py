r"""Backslash commands, each registered with its name, arguments and help text.

A command takes the session and the text after its name. `\?` prints the table, which is also in docs/commands.md.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

import saros
from saros.api.embedded import MEMORY
from saros.base.target import SCHEME, parse_target, without_password
from saros_grammar.syntax_help import syntax_of, topics
from saros_server.config.did_you_mean import did_you_mean
from saros_shell.output.plot import NotPlottableError, plot
from saros_shell.output.render import RENDERERS
from saros_shell.output.user_files import ScriptError, new_database_note, script_text
from saros_shell.repl import named_queries
from saros_shell.repl.copy import copy_command
from saros_shell.repl.statements import MetaError, command_parts, unquoted

if TYPE_CHECKING:
    from saros_shell.repl.session import Session

#: A function that runs a command with the text after its name. If the command fails, the function prints the reason and
#: returns False.
Action = Callable[["Session", str], bool]


class MetaCommand(msgspec.Struct, frozen=True):
    """A command: its usage, its help text, and the function that runs it."""

    usage: str
    what: str
    action: Action


COMMANDS: dict[str, MetaCommand] = {}
_ALSO = {r"\help": r"\?"}


def command(usage: str, what: str) -> Callable[[Action], Action]:
    """Register the decorated action under the first word of `usage`."""

    def register(action: Action) -> Action:
        COMMANDS[usage.split(maxsplit=1)[0]] = MetaCommand(usage, what, action)
        return action

    return register


def run_meta(session: Session, line: str) -> bool:
    """Run a line that begins with a backslash. If it fails, print the reason and return False. Raises MetaError."""
    name, rest = command_parts(line.strip().rstrip(";"))
    known = COMMANDS.get(_ALSO.get(name, name))
    if known is None:
        raise MetaError(rf"there is no command {name}{did_you_mean(name, COMMANDS)}; \? lists them")
    return known.action(session, rest)


@command(r"\?", r"list these commands (also: \help, help)")
def _help(session: Session, _: str) -> bool:
    width = max(len(c.usage) for c in COMMANDS.values())
    session.runner.out_wrapped([f"{c.usage:<{width}}  {c.what}" for c in COMMANDS.values()], indent=width + 2)
    return True


@command(r"\h [TOPIC]", "show the syntax of statements, such as select or create timeseries (also: help TOPIC)")
def _syntax(session: Session, topic: str) -> bool:
    if not topic:
        words = ", ".join(map(str.lower, topics()))
        session.runner.out_wrapped([rf"\h shows the syntax of: {words}; \? lists commands"], indent=2)
        return True
    lines = syntax_of(topic)
    if not lines:
        begin = topic.split(maxsplit=1)[0].upper()
        raise MetaError(rf"no statement begins with {topic}{did_you_mean(begin, topics())}; \h lists the first words")
    session.runner.out(lines)
    return True


@command(r"\q", "leave (also Ctrl-D, exit, quit)")
def _quit(session: Session, _: str) -> bool:
    session.leaving = True
    return True


@command(r"\l", "list databases")
def _databases(session: Session, _: str) -> bool:
    return session.runner.run("show databases", lambda databases: databases.select(["Database"]))


@command(r"\d [PATTERN]", "list series: of a path pattern, or all below a path")
def _series(session: Session, pattern: str) -> bool:
    if pattern and "*" not in pattern and _has_children(session, pattern):
        pattern += ".**"
    return session.runner.run(f"show timeseries {pattern}", _compact_columns)


def _compact_columns(series: pa.Table) -> pa.Table:
    """Return the main columns of SHOW TIMESERIES, and each other column that has a value other than the default."""
    shown = ["Timeseries", "DataType", "Encoding", "Compression"]
    usual = {"ViewType": "BASE"}
    for name in series.column_names:
        told = set(series[name].unique().to_pylist()) - {None, usual.get(name)}
        if told and name not in (*shown, "Database"):
            shown.append(name)
    return series.select(shown)


def _has_children(session: Session, path: str) -> bool:
    """Return whether a path has nodes below it. For an invalid path, return False: the next statement reports it."""
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


@command(rf"\format {'|'.join(RENDERERS)}", "print results as table, csv, json or vertical")
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


@command(r"\zone [ZONE]", "show or set the session's time zone")
def _zone(session: Session, name: str) -> bool:
    return session.runner.run(f"set time zone to '{name}'" if name else "show time zone")


@command(r"\i FILE", "run the statements and commands of a file")
def _include(session: Session, name: str) -> bool:
    if not name:
        raise MetaError(r"\i needs a file: \i statements.sql")
    name = unquoted(name)
    try:
        text = script_text(name)
    except ScriptError as error:
        raise MetaError(str(error)) from error
    return session.run(text, name)


@command(r"\watch [SECONDS] STATEMENT", "repeat a statement until Ctrl-C")
def _watch(session: Session, rest: str) -> bool:
    first, _, tail = rest.partition(" ")
    number = first.replace(".", "", 1).isdigit()
    seconds, statement = (float(first), tail) if number else (2.0, rest)
    if not statement.strip():
        raise MetaError(r"\watch needs a statement: \watch 5 select last * from root.plant.pump1")
    try:
        while True:
            session.runner.say(
                f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S %Z}, every {seconds:g} s (Ctrl-C stops)"
            )
            if not session.runner.attempt(statement):
                return False
            time.sleep(seconds)
    except KeyboardInterrupt:
        session.runner.error(["stopped watching"])
        return True


@command(r"\copy (SELECT ...) TO FILE", "write a result to .csv, .json or .parquet")
def _copy(session: Session, rest: str) -> bool:
    session.runner.say(copy_command(session.runner.connection, rest))
    return True


@command(r"\o [FILE]", "write rows to a file instead of the screen; without a file, to the screen again")
def _output(session: Session, name: str) -> bool:
    session.runner.redirect(unquoted(name))
    session.runner.say(f"rows go to {unquoted(name) or 'the screen'}")
    return True


@command(r"\plot SELECT ...", "draw the numbers of a result over time")
def _plot(session: Session, statement: str) -> bool:
    if not statement:
        raise MetaError(r"\plot needs a query: \plot select temperature from root.plant.pump1")
    with session.runner.connection.execute(statement) as cursor:
        if cursor.description is None:
            raise MetaError(r"\plot needs a query that returns rows")
        table = cursor.fetch_arrow()
    size = shutil.get_terminal_size()
    try:
        session.runner.show(plot(table, size.columns, size.lines))
    except NotPlottableError as error:
        raise MetaError(f"nothing to plot: {error}") from error
    return True


@command(r"\e [FILE]", "edit a file, the statement before the cursor, or the last statement, in $EDITOR")
def _edit(session: Session, name: str) -> bool:
    if session.ask is None:
        raise MetaError(r"\e needs a terminal")
    if name:
        file = Path(unquoted(name)).expanduser()
        _run_editor(file)
        session.draft = script_text(str(file)).rstrip() if file.exists() else ""
        return True
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "statement.sql"
        last = f"{session.last_statement};\n" if session.last_statement else ""
        file.write_text(session.draft.rstrip() or last, encoding="utf-8")
        _run_editor(file)
        session.draft = script_text(str(file)).rstrip()
    return True


def _run_editor(file: Path) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode  # noqa: S603 - the user's own
    except (OSError, ValueError) as error:
        raise MetaError(f"cannot run the editor {editor}: {error}; set EDITOR") from error
    if code:
        raise MetaError(f"the editor {editor} ended with exit code {code}")


@command(r"\c TARGET", "connect to another folder or server")
def _connect(session: Session, target: str) -> bool:
    if not target:
        return _connection_info(session, "")
    target = unquoted(target)
    note = new_database_note(target)
    connection = session.connect(target)
    session.runner.connection.close()
    session.runner.connection, session.target = connection, target
    session.runner.say(f"connected to {without_password(target)}{note}")
    return True


@command(r"\conninfo", "show the target of the connection, its user, and its time zone")
def _connection_info(session: Session, _: str) -> bool:
    zone = session.runner.connection.execute("show time zone").fetchone()
    assert zone is not None
    session.runner.out([*_target_lines(session), f"time zone {zone[0]}"])
    return True


def _target_lines(session: Session) -> list[str]:
    if session.target.startswith(SCHEME):
        target = parse_target(session.target)
        return [
            f"server    {', '.join(target.addresses)}",
            f"user      {target.user or 'none'}",
            f"TLS       {target.tls_ca or 'no'}",
        ]
    if session.target == MEMORY:
        return ["folder    temporary, in this process"]
    return [f"folder    {os.path.abspath(session.target)}, in this process{', read-only' * session.read_only}"]


@command(r"\n [QUERY [PARAMETER ...]]", "run a named query, with words for $1, $2 ...; without a name, list all")
def _named_query(session: Session, rest: str) -> bool:
    name, _, arguments = rest.partition(" ")
    try:
        if name:
            return session.run(named_queries.text_of(name, arguments))
        session.runner.out([f"{name}: {named_queries.stored_text(name)}" for name in named_queries.names()])
    except named_queries.NamedQueryError as error:
        raise MetaError(str(error)) from error
    return True


@command(r"\ns QUERY STATEMENT", "save a statement as a named query")
def _save_query(session: Session, rest: str) -> bool:
    name, _, text = rest.partition(" ")
    if not text.strip():
        raise MetaError(r"\ns needs a name and a statement: \ns hot select last * from root.plant.**")
    try:
        named_queries.save(name, text)
    except (named_queries.NamedQueryError, OSError) as error:
        raise MetaError(f"cannot save the query: {error}") from error
    session.runner.say(f"saved {name}")
    return True


@command(r"\nd QUERY", "delete a named query")
def _delete_query(session: Session, name: str) -> bool:
    try:
        named_queries.delete(name)
    except named_queries.NamedQueryError as error:
        raise MetaError(str(error)) from error
    session.runner.say(f"deleted {name}")
    return True


def _switch(word: str, *, current: bool) -> bool:
    if word not in ("", "on", "off"):
        raise MetaError(f"expected on or off, not {word!r}")
    return not current if not word else word == "on"
