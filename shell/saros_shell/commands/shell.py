"""`saros shell [FOLDER]`: interactive on a terminal; else runs -e, -f or standard input and exits.

Exit codes: 0 all statements ran, 1 one failed (the rest is not run), 2 wrong use or the folder cannot be opened,
130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import TextIOWrapper
from typing import TextIO

import saros
from saros.base.target import SCHEME, without_password
from saros_server.config.arguments import CommandParser
from saros_shell.output.login import password_of
from saros_storage.folder.layout import NODE_FILE

#: Of a folder that was not there: it may be a slip.
NEW = ", a new database"


def main(arguments: Sequence[str]) -> int:
    """Run the shell; returns the exit code."""
    options = parser().parse_args(arguments)
    new = not options.target.startswith(SCHEME) and not os.path.exists(os.path.join(options.target, NODE_FILE))
    try:
        overrides = dict(_pair(text) for text in options.overrides)
        connection = saros.connect(
            options.target,
            password=password_of(options.target),
            timeout=options.timeout,
            time_zone=options.zone,
            options=overrides or None,
        )
    except saros.Error as error:
        sys.stderr.write(f"saros shell: {error}\n")
        return 1 if isinstance(error, saros.OperationalError) else 2
    with connection:
        if options.execute or options.file or not sys.stdin.isatty():
            return run_script(connection, options)
        from saros_shell.repl.repl import Shell  # prompt_toolkit is for people only

        return Shell(connection, f"{without_password(options.target)}{NEW if new else ''}").run()


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = CommandParser(prog="saros shell", description="SQL shell on a Saros database.")
    made.add_argument("target", nargs="?", default="./data", help="data folder (default ./data), or saros://host:port")
    made.add_argument("-e", "--execute", action="append", default=[], metavar="SQL", help="run it and exit")
    made.add_argument("-f", "--file", metavar="FILE", help="run the statements of a file and exit")
    made.add_argument("--format", default="table", choices=("table", "csv", "json", "vertical"))
    made.add_argument("--timeout", type=float, metavar="SECONDS", help="time limit per statement")
    made.add_argument("--zone", metavar="NAME", help="time zone of the session")
    made.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="set an option")
    made.add_argument("--continue", dest="go_on", action="store_true", help="continue after a failed statement")
    return made


def run_script(connection: saros.Connection, options: argparse.Namespace) -> int:
    """Run what -e, -f or standard input holds."""
    from saros_shell.repl.backslash_commands import NOT_UTF8
    from saros_shell.repl.runner import Settings, StatementRunner
    from saros_shell.repl.session import Session

    settings = Settings(format=options.format, chatty=options.format == "table")
    session = Session(StatementRunner(connection, _printer(sys.stdout), _printer(sys.stderr), settings))
    good = True
    try:
        for script, text in _texts(options):
            good = session.run(text, script, go_on=options.go_on) and good
            if session.leaving or not (good or options.go_on):
                break
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: nothing to say to it
    except OSError as error:
        sys.stderr.write(f"saros shell: cannot read {options.file}: {error.strerror}\n")
        return 2
    except UnicodeDecodeError as error:
        name = options.file or "standard input"
        sys.stderr.write(f"saros shell: cannot read {name}: {NOT_UTF8.format(error.start)}\n")
        return 2
    return 0 if good else 1


def _texts(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """What is to be run, and the name of the file that it is from."""
    from saros_shell.repl.backslash_commands import script_text

    if options.execute:
        yield from (("", text) for text in options.execute)
    elif options.file:
        yield options.file, script_text(options.file)
    else:
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(newline="")  # line ends in values are what they are
        yield "<stdin>", sys.stdin.read()


def _printer(stream: TextIO) -> Callable[[Iterable[str]], None]:
    def write(lines: Iterable[str]) -> None:
        stream.writelines(line + "\n" for line in lines)
        stream.flush()

    return write


def _pair(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    return key, value
