"""The commands of `saros` with their options, read from their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import msgspec

from saros_server.config.arguments import CommandParser

#: The shells with a completion script.
SHELLS = ("bash", "zsh", "fish")


class Option(msgspec.Struct, frozen=True):
    """An option of a command. `value` is the name of its value, or "" for a flag."""

    names: tuple[str, ...]
    what: str
    value: str
    choices: tuple[str, ...]


class Command(msgspec.Struct, frozen=True):
    """A command: its words after `saros`, its purpose, its options, and the names and values of its arguments."""

    words: tuple[str, ...]
    what: str
    arguments: tuple[str, ...]
    #: The values that the arguments may have, if the parser lists them.
    choices: tuple[str, ...]
    options: tuple[Option, ...]


def commands() -> list[Command]:
    """Return all commands, each before its sub-commands. Loads the modules of all commands."""
    return [command for words, parser in _parsers().items() for command in _commands_of(words, parser)]


def completion_parser() -> argparse.ArgumentParser:
    """Return the parser of `saros completion`."""
    made = CommandParser(prog="saros completion", description="Print the completion script of a shell.")
    made.add_argument("shell", choices=SHELLS, help="for example: source <(saros completion bash)")
    return made


def _parsers() -> dict[tuple[str, ...], argparse.ArgumentParser]:
    from saros_server import foreground
    from saros_shell.cluster import command as cluster
    from saros_shell.commands import (
        audit,
        backup,
        bench,
        config,
        console,
        server,
        shell,
        sync,
        tsfile,
        user,
        verify,
        warm_up,
    )
    from saros_shell.mqtt import command as mqtt
    from saros_shell.support import command as support
    from saros_shell.transfer import exporter, importer
    from saros_spark.pipeline import command as spark

    return {
        ("start",): foreground.parser(),
        ("stop",): server.stop_parser(),
        ("status",): server.status_parser(),
        ("cluster",): cluster.parser(),
        ("console",): console.parser(),
        ("shell",): shell.parser(),
        ("import",): importer.parser(),
        ("mqtt",): mqtt.parser(),
        ("export",): exporter.parser(),
        ("pipeline",): spark.pipeline_parser(),
        ("spark-shell",): spark.shell_parser(),
        ("bench",): bench.parser(),
        ("tsfile",): tsfile.parser(),
        ("backup",): backup.parser(),
        ("backup", "list"): backup.looking_parser(),
        ("backup", "verify"): backup.looking_parser(),
        ("restore",): backup.restore_parser(),
        ("sync",): sync.parser(),
        ("verify",): verify.parser(),
        ("support",): support.parser(),
        ("user",): user.parser(),
        ("audit",): audit.parser(),
        ("warm-up",): warm_up.parser(),
        ("config",): config.parser(),
        ("completion",): completion_parser(),
    }


def _commands_of(words: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[Command]:
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001 - no public way
    inner = [action for action in actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
    options = tuple(_option(action) for action in actions if action.option_strings)
    plain = [action for action in actions if not action.option_strings and action not in inner]
    plain = [action for action in plain if words[-1] not in (action.choices or ())]  # it is already one of the words
    choices = tuple(str(choice) for action in plain for choice in action.choices or ())
    yield Command(words, parser.description or "", tuple(map(_value, plain)), choices, options)
    for action in inner:
        for word, below in action.choices.items():
            yield from _commands_of((*words, word), below)


def _option(action: argparse.Action) -> Option:
    what = (action.help or "").replace("%%", "%")
    choices = tuple(map(str, action.choices or ()))
    return Option(tuple(action.option_strings), what, "" if action.nargs == 0 else _value(action), choices)


def _value(action: argparse.Action) -> str:
    return str(action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper()))
