"""Files and folders of the shell's user: files of statements, errors in writing files, folders without a database."""

from __future__ import annotations

import os
from pathlib import Path

import saros
from saros.base.target import SCHEME
from saros_storage.folder.layout import NODE_FILE
from saros_storage.io.disk import FULL_ERRNOS

NOT_UTF8 = "it is not UTF-8 text (at byte {})"


class ScriptError(Exception):
    """A file of statements cannot be read. The message has the reason."""


def script_text(name: str) -> str:
    """Return the text of a file of statements, with its line ends unchanged. Raises ScriptError."""
    try:
        with Path(name).expanduser().open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except OSError as error:
        raise ScriptError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ScriptError(f"cannot read {name}: {NOT_UTF8.format(error.start)}") from error


def cannot_write(target: Path, error: OSError) -> saros.Error:
    """Return the error to raise if the operating system refuses to write `target`."""
    said = f"cannot write {target}: {error.strerror}"
    return saros.OperationalError(said, 611) if error.errno in FULL_ERRNOS else saros.InterfaceError(said)


def new_database_note(target: str) -> str:
    """Return a note if a connection to the target creates a database. The folder's name may then be mistyped."""
    exists = target.startswith(SCHEME) or os.path.exists(os.path.join(target, NODE_FILE))
    return "" if exists else ", a new database"
