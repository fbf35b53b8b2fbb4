"""A server in the background. Its log is `<data>/server.log`, and while the process lives it has a lock on that file.

    launch -> lock on the log, held by the process -> a second or more -> lock on the folder -> `server.json`: it serves

So a process that has not locked the folder yet is already visible: nobody launches a second one, which would take the
folder once the first has ended. A server in the foreground holds no such lock.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from saros_storage.base.errors import FolderInUse
from saros_storage.io import platform
from saros_storage.io.folder_lock import is_free, is_held

_LOG = "server.log"
#: Whoever looks has the lock too, for some microseconds.
_TRIES, _TRY_SECONDS = 20, 0.01


def launch(folder: str, arguments: Sequence[str]) -> None:
    """A process of its own that serves the folder, by the arguments of `saros start`. Raises FolderInUse, OSError."""
    launch_command(folder, ["saros_server", "--foreground", *arguments])


def launch_command(folder: str, words: Sequence[str], stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """The same by `python -m WORDS`."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(Path(folder, _LOG), "ab", opener=_private) as stream:
        _lock(stream, folder)
        return subprocess.Popen(  # noqa: S603 (our own command)
            [sys.executable, "-m", *words],
            stdin=stdin,
            stdout=stream,  # the lock is the open file's, which the process has from here on
            stderr=stream,
            start_new_session=True,
        )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _lock(stream: BinaryIO, folder: str) -> None:
    for _ in range(_TRIES):
        try:
            platform.lock(stream.fileno())
        except BlockingIOError:
            time.sleep(_TRY_SECONDS)
        else:
            return
    raise FolderInUse(folder, None)


def is_launched(folder: str) -> bool:
    """Whether a process that was launched for the folder lives, also if it does not serve yet, or any more."""
    return is_held(Path(folder, _LOG))


def is_taken(folder: str) -> bool:
    """Whether a process has the folder, or was launched to take it."""
    return is_launched(folder) or not is_free(folder)


def last_log_line(folder: str) -> str:
    """The last line of a folder's log, and where the log is; who tells it says of which command it is."""
    log = Path(folder, _LOG)
    last = log.read_text(errors="replace").strip().splitlines()[-1:]
    said = " ".join(last).removeprefix("saros start: ") or "it has said nothing yet"
    return f"{said}; see {log}"
