"""What may become a data folder: nothing that is there for something else. Reads names only; any thread."""

from __future__ import annotations

import errno
import os
import pwd
from pathlib import Path

from saros_storage.base.errors import UserMistake
from saros_storage.folder.layout import NODE_FILE, TEMPORARY

#: What a folder may have that is to be a data folder: what a start that was cut short left, and an operator's part
#: (hidden files, such as a .gitkeep, too).
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
} | {NODE_FILE + TEMPORARY}
_CERTIFICATES = (".pem", ".key", ".crt")
_NO_FOLDER = 2051
#: The driver's target for a temporary database.
_MEMORY = ":memory:"


def check_not_foreign(folder: str) -> None:
    """Raise UserMistake for a file, for a folder that is something else's, and for one that cannot be read."""
    check_not_memory(folder)
    if not os.path.lexists(folder):
        return
    try:
        names = sorted(os.listdir(folder))
    except NotADirectoryError:
        raise UserMistake(f"{folder} is a file, and a data folder is wanted", code=_NO_FOLDER) from None
    except OSError as error:
        raise cannot_open(folder, error) from error
    foreign = [name for name in names if not _is_ignorable(name)]
    if NODE_FILE not in names and foreign:
        raise UserMistake(
            f"{folder} is no data folder, and has {foreign[0]} in it: choose an empty or a new one", code=_NO_FOLDER
        )


def check_not_memory(folder: str) -> None:
    """Raise UserMistake for the name of a temporary database."""
    if folder == _MEMORY:
        raise UserMistake(f"{_MEMORY} is a temporary database of one connection: name a folder", code=_NO_FOLDER)


def _is_ignorable(name: str) -> bool:
    return name in _BEFORE_DATA or name.startswith(".") or Path(name).suffix in _CERTIFICATES


def cannot_open(folder: str, error: OSError) -> UserMistake:
    """What to say when the operating system refuses."""
    why = f"{error.filename} is a file" if isinstance(error, FileExistsError) else reason(error)
    if error.errno == errno.EROFS:
        why += "; also who reads a database writes in its folder: copy it"
    return UserMistake(f"cannot open {folder} as a data folder: {why}", code=_NO_FOLDER)


def reason(error: BaseException) -> str:
    """What an operating system's error says to people: which file, why not, and whose it is; others as they are."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    what = error.strerror if error.filename is None else f"{os.fsdecode(error.filename)}: {error.strerror}"
    return f"{what}{_owner_hint(error.filename)}" if isinstance(error, PermissionError) else what


def _owner_hint(path: str | bytes | None) -> str:
    """Whose the nearest folder of a path is that can be seen, and who asks."""
    if path is None:
        return ""
    seen = Path(os.path.realpath(os.fsdecode(path)))
    while seen != seen.parent:
        try:
            return f" ({seen} is {_name(seen.stat().st_uid)}'s, this process {_name(os.geteuid())}'s)"
        except OSError:
            seen = seen.parent
    return ""


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
