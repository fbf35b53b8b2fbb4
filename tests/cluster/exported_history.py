"""Histories of registers as files, checked by porcupine: a checker in Go that shares no code with `history`.

A file contains one history: a JSON object for each operation that must be linearizable and may have had an effect.

    {"client": 1, "operation": "write", "register": "root.r.d.v 5", "value": 7, "call": 1000, "return": 2000}

`operation` is read, write or delete; `value` is null for a deletion, and for a read that found nothing. `call` and
`return` are times in nanoseconds; `return` is null if no answer came. `porcupine/main.go` reads these files. It needs
Go, and porcupine's module from Go's cache or proxy.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from cluster.history import Kind, Operation, Outcome

_SOURCE = Path(__file__).parent / "porcupine"
SUFFIX = ".history"


class PorcupineUnavailable(Exception):
    """Raised if Go is not installed, or cannot build the program."""


def export(history: Iterable[Operation], path: Path) -> None:
    """Write a history to a file."""
    with path.open("w") as file:
        file.writelines(json.dumps(line) + "\n" for line in _lines(history))


def _lines(history: Iterable[Operation]) -> Iterator[dict[str, object]]:
    for operation in history:
        is_known = operation.outcome is Outcome.OK
        has_effect = is_known or (operation.outcome is Outcome.UNKNOWN and operation.kind is not Kind.READ)
        if operation.must_be_linearizable and has_effect:
            series, timestamp = operation.register
            yield {
                "client": operation.process,
                "operation": operation.kind.value,
                "register": f"{series} {timestamp}",
                "value": operation.value,
                "call": operation.invoked_ns,
                "return": operation.returned_ns if is_known else None,
            }


@cache
def build() -> Path:
    """Build the program, unless this process has already built it. Raises PorcupineUnavailable."""
    if shutil.which("go") is None:
        raise PorcupineUnavailable("go is not installed")
    program = Path(mkdtemp(prefix="saros-porcupine-")) / "porcupine"
    built = subprocess.run(
        ("go", "build", "-mod=readonly", "-o", str(program), "."),
        cwd=_SOURCE,
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        raise PorcupineUnavailable(f"go build failed: {built.stderr.strip()}")
    return program


def complaints(paths: Iterable[Path]) -> list[str]:
    """Check files; return a line for each register whose history is not linearizable, or was not checked in time.

    Raises PorcupineUnavailable.
    """
    return _checked(paths).stdout.splitlines()


def verdict(folder: Path) -> tuple[str, bool]:
    """Check all files of a folder; return the result as text, and whether every history is linearizable."""
    try:
        checked = _checked(sorted(folder.glob(f"*{SUFFIX}")))
    except PorcupineUnavailable as error:
        return f"porcupine has not checked the histories in {folder}: {error}", True
    found = checked.stdout or "all linearizable\n"
    return f"porcupine: {checked.stderr.strip()}\n{found.rstrip()}", checked.returncode == 0


def _checked(paths: Iterable[Path]) -> subprocess.CompletedProcess[str]:
    checked = subprocess.run([build(), *paths], capture_output=True, text=True, check=False)
    if checked.returncode not in (0, 1):
        raise ValueError(checked.stderr)
    return checked
