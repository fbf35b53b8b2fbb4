r"""Backslash commands: registered once, with name, arguments and help in one place.

Each takes the `Shell` and the words after its name. `\?` prints the table, which is also the one in docs/shell.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from saros_shell.copying import copy_command
from saros_shell.render import RENDERERS
from saros_shell.statements import split_statements

if TYPE_CHECKING:
    from saros_shell.repl import Shell

Action = Callable[["Shell", str], None]


class MetaError(Exception):
    """A backslash command was used wrongly; the message says how it is used."""


@dataclass(frozen=True, slots=True)
class MetaCommand:
    """One command: `usage` is how it is typed, `what` what it does."""

    usage: str
    what: str
    action: Action


COMMANDS: dict[str, MetaCommand] = {}


def command(usage: str, what: str) -> Callable[[Action], Action]:
    """Register the decorated action under the first word of `usage`."""

    def register(action: Action) -> Action:
        COMMANDS[usage.split(maxsplit=1)[0]] = MetaCommand(usage, what, action)
        return action

    return register


def run_meta(shell: Shell, line: str) -> None:
    """Carry out a line that begins with a backslash. Raises MetaError."""
    name, _, rest = line.strip().rstrip(";").partition(" ")
    known = COMMANDS.get(name)
    if known is None:
        raise MetaError(rf"there is no command {name}; \? lists them")
    known.action(shell, rest.strip())


@command(r"\?", "list these commands")
def _help(shell: Shell, _: str) -> None:
    width = max(len(c.usage) for c in COMMANDS.values())
    shell.runner.out([f"{c.usage:<{width}}  {c.what}" for c in COMMANDS.values()])


@command(r"\q", "leave (also Ctrl-D)")
def _quit(shell: Shell, _: str) -> None:
    shell.leaving = True


@command(r"\l", "list databases")
def _databases(shell: Shell, _: str) -> None:
    shell.runner.run("show databases")


@command(r"\d [PATTERN]", "list series (of a path pattern)")
def _series(shell: Shell, pattern: str) -> None:
    shell.runner.run(f"show timeseries {pattern}")


@command(r"\dd [PATTERN]", "list devices")
def _devices(shell: Shell, pattern: str) -> None:
    shell.runner.run(f"show devices {pattern}")


@command(r"\dn [PATH]", "list child nodes of a path")
def _children(shell: Shell, path: str) -> None:
    shell.runner.run(f"show child nodes {path or 'root'}")


@command(r"\df", "list functions")
def _functions(shell: Shell, _: str) -> None:
    shell.runner.run("show functions")


@command(r"\timing [on|off]", "print how long statements take")
def _timing(shell: Shell, word: str) -> None:
    settings = shell.runner.settings
    settings.timing = _switch(word, current=settings.timing)
    shell.runner.out([f"timing is {'on' if settings.timing else 'off'}"])


@command(r"\format NAME", "print results as table, csv, json or vertical")
def _format(shell: Shell, name: str) -> None:
    if name not in RENDERERS:
        raise MetaError(rf"\format takes one of {', '.join(RENDERERS)}")
    shell.runner.settings.format = name


@command(r"\x", "switch between table and vertical")
def _vertical(shell: Shell, _: str) -> None:
    settings = shell.runner.settings
    settings.format = "table" if settings.format == "vertical" else "vertical"
    shell.runner.out([f"format is {settings.format}"])


@command(r"\pager [on|off]", "page long results")
def _pager(shell: Shell, word: str) -> None:
    shell.paging = _switch(word, current=shell.paging)
    shell.runner.out([f"pager is {'on' if shell.paging else 'off'}"])


@command(r"\zone [NAME]", "show or set the session's time zone")
def _zone(shell: Shell, name: str) -> None:
    shell.runner.run(f"set time zone to '{name}'" if name else "show time zone")


@command(r"\i FILE", "run the statements of a file")
def _include(shell: Shell, name: str) -> None:
    try:
        text = Path(name).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise MetaError(f"cannot read {name or 'nothing'}: {error.strerror}") from error
    for statement in split_statements(text):
        if not shell.runner.run(statement):
            return


@command(r"\watch [SECONDS] STATEMENT", "run a statement again and again until Ctrl-C")
def _watch(shell: Shell, rest: str) -> None:
    first, _, tail = rest.partition(" ")
    number = first.replace(".", "", 1).isdigit()
    seconds, statement = (float(first), tail) if number else (2.0, rest)
    if not statement.strip():
        raise MetaError(r"\watch needs a statement: \watch 5 select last * from root.plant.pump1")
    try:
        while shell.runner.run(statement):
            time.sleep(seconds)
    except KeyboardInterrupt:
        shell.runner.error(["stopped watching"])


@command(r"\copy (SELECT ...) TO FILE", "write a result to .csv, .json or .parquet")
def _copy(shell: Shell, rest: str) -> None:
    shell.runner.out([copy_command(shell.runner.connection, rest)])


def _switch(word: str, *, current: bool) -> bool:
    if word not in ("", "on", "off"):
        raise MetaError("say on or off")
    return not current if not word else word == "on"
