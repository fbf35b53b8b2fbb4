"""Files of the shell's user: the text of a file of statements, and errors of reading and writing."""

from __future__ import annotations

from pathlib import Path

import saros
from saros_storage.io.disk import FULL_ERRNOS

NOT_UTF8 = "it is not UTF-8 text (at byte {})"


class ScriptError(Exception):
    """A file of statements cannot be read; the message has the reason."""


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
