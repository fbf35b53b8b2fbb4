"""Paged output: if `less` is installed, it shows results that do not fit the terminal.

Long results, and tables that are wider than the screen, do not fit. The header of a table stays visible if `less`
supports header lines (from version 600 on).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice

from saros_shell.output.render import display_width

#: Prompts in the syntax of `less`. `less` exits at once if all lines fit the screen, except for wide tables, whose
#: columns are cut off.
WIDE_PROMPT = r"-Psarrow keys move, q leaves, \\x shows rows as blocks"
LONG_PROMPT = "-Ps?e(the end) .space goes on, q leaves"
#: Printed after a result that the user has not paged through to its end.
UNREAD = "(you left before the end; other rows were not fetched)"
#: The first version of `less` with header lines.
_HEADER_VERSION = 600


def print_paged(lines: Iterable[str]) -> bool:
    """Print lines, through the pager if they do not fit the terminal.

    Return False if the user left the pager before all lines were written to it.
    """
    size = shutil.get_terminal_size()
    iterator = iter(lines)
    head = list(islice(iterator, size.lines - 1))
    long = sum(max(-(-display_width(line) // size.columns), 1) for line in head) > size.lines - 2
    table = _is_table(head)
    wide = table and "+" in head[1] and any(display_width(line) > size.columns for line in head)
    pager = shutil.which("less") if sys.stdout.isatty() else None
    if pager is None or not (long or wide):
        print_lines(head)
        print_lines(iterator)
        return True
    keys = ["-RSX", WIDE_PROMPT] if wide else ["-FRSX", LONG_PROMPT]
    header = ["--header=2"] if table and _version(pager) >= _HEADER_VERSION else []
    return _run_pager([pager, *keys, *header], head, iterator)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines on standard output."""
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _run_pager(command: list[str], head: list[str], rest: Iterator[str]) -> bool:
    # In secure mode the user can neither write files nor run commands from the pager.
    secure = os.environ | {"LESSSECURE": "1"}
    process = subprocess.Popen(  # noqa: S603 - found by which
        command, stdin=subprocess.PIPE, text=True, errors="backslashreplace", env=secure
    )
    assert process.stdin is not None
    try:
        for part in (head, rest):
            process.stdin.writelines(line + "\n" for line in part)
    except BrokenPipeError:
        return False
    finally:
        _wait_until_left(process)
    return True


def _wait_until_left(pager: subprocess.Popen[str]) -> None:
    """Wait until the user leaves the pager.

    During the wait, only the pager handles Ctrl-C, because two programs must not read from one terminal.
    """
    assert pager.stdin is not None
    while pager.returncode is None:
        with suppress(KeyboardInterrupt):
            with suppress(BrokenPipeError):
                pager.stdin.close()
            pager.wait()


def _is_table(head: list[str]) -> bool:
    """Return whether the second line is the rule below a table's header."""
    return len(head) > 1 and not head[1].strip("-+")


@cache
def _version(pager: str) -> int:
    said = subprocess.run([pager, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    found = re.match(r"less (\d+)", said)
    return int(found[1]) if found else 0
