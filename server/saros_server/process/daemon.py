"""A server in the background. The log of its process is `<data>/server.log`, which the process locks until it ends.

    launch -> lock on the log, held by the process -> a second or more -> lock on the folder -> `server.json`: it serves

Through this lock, other processes see the launched process even before it has locked the folder. Otherwise, a second
process could be launched in the meantime, and it would take the folder once the first process has ended. A server in
the foreground does not lock the log.
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

#: The log of a background server, in its data folder.
LOG_FILE = "server.log"
#: Number of attempts to take the lock, and the time between them. An attempt may fail because another process checks
#: the lock (`is_launched`): for that, it holds the lock for some microseconds.
_TRIES, _TRY_SECONDS = 20, 0.01


def launch(folder: str, arguments: Sequence[str]) -> None:
    """Launch a server for the folder with these arguments of `saros start`. Raises FolderInUse, OSError."""
    launch_command(folder, ["saros_server", "--foreground", *arguments])


def launch_command(folder: str, words: Sequence[str], stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Launch `python -m WORDS` as the folder's background process. Raises FolderInUse, OSError."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(Path(folder, LOG_FILE), "ab", opener=_private) as stream:
        _lock(stream, folder)
        return subprocess.Popen(  # noqa: S603 (our own command)
            [sys.executable, "-m", *words],
            stdin=stdin,
            stdout=stream,  # the lock belongs to the open file, which the new process inherits
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
    """Return whether a process that was launched for the folder is alive, even if it does not accept requests yet."""
    return is_held(Path(folder, LOG_FILE))


def is_taken(folder: str) -> bool:
    """Return whether a process has locked the folder, or was launched for it."""
    return is_launched(folder) or not is_free(folder)


def last_log_line(folder: str) -> str:
    """Return the last line of a folder's log, without the name of the command, and then the path of the log."""
    log = Path(folder, LOG_FILE)
    last = log.read_text(errors="replace").strip().splitlines()[-1:]
    said = " ".join(last).removeprefix("saros start: ") or "its log is empty"
    return f"{said}; see {log}"
