"""Checks of data folders: a folder that holds other files must not become a data folder.

Reads names only; any thread.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from saros_storage.base.errors import UserMistake
from saros_storage.folder.layout import NODE_FILE, TEMPORARY
from saros_storage.io.platform import require_local_folders, user_name

#: The folder of the certificates that a start creates (option `tls_self_signed`).
TLS_FOLDER = "tls"
#: The names of files that a new data folder may already contain: remains of an interrupted start, and files that the
#: operator has put there. Hidden files, such as .gitkeep, are allowed as well.
_BEFORE_DATA = {
    "LOCK",
    "audit",
    "cluster.json",
    "groups",
    "kernels",
    "log",
    "lost+found",
    "meta",
    "saros.toml",
    "server.log",
    TLS_FOLDER,
} | {NODE_FILE + TEMPORARY}
_CERTIFICATES = (".pem", ".key", ".crt")
_NO_FOLDER = 2051
#: The target that the driver uses for a temporary database.
_MEMORY = ":memory:"


def check_not_foreign(folder: str) -> None:
    """Raise UserMistake for a file, a folder with other files, an unreadable folder, and on unsupported systems."""
    check_not_memory(folder)
    require_local_folders()
    if not os.path.lexists(folder):
        return
    try:
        names = sorted(os.listdir(folder))
    except NotADirectoryError:
        raise UserMistake(f"{folder} is a file, not a data folder", code=_NO_FOLDER) from None
    except OSError as error:
        raise cannot_open(folder, error) from error
    foreign = [name for name in names if not _is_ignorable(name)]
    if NODE_FILE not in names and foreign:
        raise UserMistake(
            f"{folder} is not a data folder: it contains {foreign[0]}; choose an empty or a new folder", code=_NO_FOLDER
        )


def check_not_memory(folder: str) -> None:
    """Raise UserMistake if the path is the target of a temporary database."""
    if folder == _MEMORY:
        raise UserMistake(f"{_MEMORY} is a temporary database of one connection: name a folder", code=_NO_FOLDER)


def _is_ignorable(name: str) -> bool:
    return name in _BEFORE_DATA or name.startswith(".") or Path(name).suffix in _CERTIFICATES


def cannot_open(folder: str, error: OSError) -> UserMistake:
    """Return the error for a folder that the operating system refuses to open."""
    why = f"{error.filename} is a file" if isinstance(error, FileExistsError) else reason(error)
    if error.errno == errno.EROFS:
        why += "; pass --read-only, or read_only=True, to read it"
    return UserMistake(f"cannot open {folder} as a data folder: {why}", code=_NO_FOLDER)


def reason(error: BaseException) -> str:
    """Return an error's text for users.

    If the error comes from the operating system, the text names the file, its owner and the cause.
    """
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    what = error.strerror if error.filename is None else f"{os.fsdecode(error.filename)}: {error.strerror}"
    return f"{what}{_owner_hint(error.filename)}" if isinstance(error, PermissionError) else what


def _owner_hint(path: str | bytes | None) -> str:
    """Return the owner of the nearest visible folder of a path, and the user of this process, as a text."""
    if path is None:
        return ""
    seen = Path(os.path.realpath(os.fsdecode(path)))
    while seen != seen.parent:
        try:
            return f" ({seen} is {user_name(seen.stat().st_uid)}'s, this process {user_name(os.geteuid())}'s)"
        except OSError:
            seen = seen.parent
    return ""
