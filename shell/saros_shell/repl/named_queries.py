r"""Named queries: each query is a text file in the folder of the user's configuration.

\ns hot select last * from root.plant.** where temperature > $1
\n hot 90
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from saros_shell.repl.shell_config import config_folder
from saros_storage.folder.layout import caseless

_NAME = re.compile(r"\w[\w-]*")
_PARAMETER = re.compile(r"\$([1-9]\d*)")


class NamedQueryError(Exception):
    """The name of a query or its parameters are wrong. The message has the reason."""


def names() -> list[str]:
    """Return all names, sorted."""
    return sorted(path.stem for path in _folder().glob("*.sql"))


def text_of(name: str, arguments: str = "") -> str:
    """Return a query with `arguments` (words or quoted texts) in place of its parameters $1, $2 ...

    Raises NamedQueryError.
    """
    text = stored_text(name)
    try:
        given = shlex.split(arguments)
    except ValueError as error:
        raise NamedQueryError(f"cannot read the parameters: {error}") from None
    wanted = max((int(number) for number in _PARAMETER.findall(text)), default=0)
    if wanted != len(given):
        raise NamedQueryError(f"{name} takes {wanted} parameters, not {len(given)}: {text}")
    return _PARAMETER.sub(lambda match: given[int(match[1]) - 1], text)


def stored_text(name: str) -> str:
    """Return a query as it was saved. Raises NamedQueryError."""
    try:
        return _file_of(name).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise NamedQueryError(rf"there is no query named {name}; \n lists all queries") from None


def save(name: str, text: str) -> None:
    """Save a query, which replaces a query with the same name. Raises NamedQueryError, OSError.

    A name that differs from an existing name only in case is refused, because on some file systems both names denote
    the same file.
    """
    file = _file_of(name)
    others = [known for known in names() if known != name and caseless(known) == caseless(name)]
    if others and name not in names():
        raise NamedQueryError(f"there is a query named {others[0]}; use a name that differs in more than case")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_text(text.strip() + "\n", encoding="utf-8")


def delete(name: str) -> None:
    """Delete a query. Raises NamedQueryError."""
    try:
        _file_of(name).unlink()
    except FileNotFoundError:
        raise NamedQueryError(rf"there is no query named {name}; \n lists all queries") from None


def _file_of(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise NamedQueryError(f"a name consists of letters, digits, - and _, not {name!r}")
    return _folder() / f"{name}.sql"


def _folder() -> Path:
    return config_folder() / "queries"
