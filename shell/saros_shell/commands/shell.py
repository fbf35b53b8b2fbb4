"""`saros shell [FOLDER]`: is interactive on a terminal, or runs the statements of -e, -f or standard input, and exits.

Exit codes: 0 all statements ran, 1 a statement failed, 2 wrong usage or the folder cannot be opened, 130 interrupted.
After a failed statement, the later statements are not run, except with --continue.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import TextIOWrapper
from typing import TextIO

import saros
from saros_server.config.arguments import CommandParser
from saros_shell.output.login import password_of
from saros_shell.output.user_files import NOT_UTF8, ScriptError, new_database_note, script_text
from saros_shell.repl.shell_config import FORMATS, ShellConfig, config_folder, load_config

READ_ONLY = ", read-only"
Connect = Callable[[str], saros.Connection]


def main(arguments: Sequence[str]) -> int:
    """Run the shell and return its exit code."""
    options = parser().parse_args(arguments)
    note = READ_ONLY if options.read_only else new_database_note(options.target)
    interactive = not (options.execute or options.file) and sys.stdin.isatty()
    config, mistakes = load_config(config_folder() / "config.toml") if interactive else (ShellConfig(), [])
    sys.stderr.writelines(f"saros shell: {mistake}\n" for mistake in mistakes)

    def connect(target: str) -> saros.Connection:
        return saros.connect(
            target,
            password=password_of(target),
            timeout=options.timeout,
            time_zone=options.zone or config.zone or None,
            options=dict(_pair(text) for text in options.overrides) or None,
            read_only=options.read_only,
        )

    try:
        connection = connect(options.target)
    except saros.Error as error:
        sys.stderr.write(f"saros shell: {error}\n")
        return 1 if isinstance(error, saros.OperationalError) else 2
    if not interactive:
        return run_script(connection, connect, options)
    return _run_terminal(connection, connect, options, config, note)


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros shell`."""
    made = CommandParser(prog="saros shell", description="SQL shell on a Saros database.")
    made.add_argument("target", nargs="?", default="./data", help="data folder (default ./data), or saros://host:port")
    made.add_argument("-e", "--execute", action="append", default=[], metavar="SQL", help="run statements and exit")
    made.add_argument("-f", "--file", metavar="FILE", help="run the statements of a file and exit")
    made.add_argument("--format", choices=FORMATS, help="output format (default table)")
    made.add_argument("--timeout", type=float, metavar="SECONDS", help="time limit per statement")
    made.add_argument("--zone", metavar="NAME", help="time zone of the session")
    made.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="set an option")
    made.add_argument("--read-only", action="store_true", help="open a folder read-only, in its current state")
    made.add_argument("--continue", dest="go_on", action="store_true", help="continue after a failed statement")
    made.add_argument("-q", "--quiet", action="store_true", help="print rows and errors only")
    made.add_argument("-y", "--yes", action="store_true", help="on a terminal, delete without asking")
    return made


def _run_terminal(
    connection: saros.Connection, connect: Connect, options: argparse.Namespace, config: ShellConfig, note: str
) -> int:
    from saros_shell.repl.repl import Shell  # prompt_toolkit is needed only on a terminal
    from saros_shell.repl.runner import Settings

    settings = Settings(options.format or config.format, config.timing, not options.quiet, config.null_text)
    confirm = config.confirm and not options.yes
    shell = Shell(connection, options.target, config=config, settings=settings, connect=connect, confirm=confirm)
    shell.session.read_only = options.read_only
    try:
        return shell.run(note)
    finally:
        shell.session.close()


def run_script(connection: saros.Connection, connect: Connect, options: argparse.Namespace) -> int:
    """Run the statements of -e, -f or standard input, and return the exit code."""
    from saros_shell.repl.runner import Settings, StatementRunner
    from saros_shell.repl.session import Session

    settings = Settings(options.format or "table", chatty=options.format in (None, "table") and not options.quiet)
    runner = StatementRunner(connection, _printer(sys.stdout), _printer(sys.stderr), settings)
    session = Session(runner, options.target, connect, read_only=options.read_only)
    good = True
    try:
        for script, text in _texts(options):
            good = session.run(text, script, go_on=options.go_on) and good
            if session.leaving or not (good or options.go_on):
                break
    except ScriptError as error:
        sys.stderr.write(f"saros shell: {error}\n")
        return 2
    finally:
        session.close()
    return 0 if good else 1


def _texts(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the name of the file, if any, and the text of each script to run. Raises ScriptError."""
    if options.execute:
        yield from (("", text) for text in options.execute)
    elif options.file:
        yield options.file, script_text(options.file)
    else:
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(newline="")  # keeps line ends within values unchanged
        try:
            text = sys.stdin.read()
        except UnicodeDecodeError as error:
            raise ScriptError(f"cannot read standard input: {NOT_UTF8.format(error.start)}") from error
        yield "<stdin>", text


def _printer(stream: TextIO) -> Callable[[Iterable[str]], None]:
    def write(lines: Iterable[str]) -> None:
        stream.writelines(line + "\n" for line in lines)
        stream.flush()

    return write


def _pair(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    return key, value
