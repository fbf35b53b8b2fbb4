"""Write the reference of the driver's interface, `docs/api.md`, from its docstrings.

    python docs/api_reference.py

Each public class and function with its signature, and each public method and property, inherited ones too.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import saros
from saros.aio.aio import AsyncConnection, AsyncCursor, AsyncPrepared
from saros.api.bulk import BulkFailure, BulkProgress, BulkWriter

PAGE = Path(__file__).with_name("api.md")
_SECTIONS: dict[str, list[object]] = {
    "Connections": [saros.connect, saros.Connection],
    "Cursors": [saros.Cursor, saros.Prepared],
    "Bulk writers": [BulkWriter, BulkProgress, BulkFailure],
    "asyncio": [saros.aio.connect, AsyncConnection, AsyncCursor, AsyncPrepared],
    "Values": [saros.ReadPoint, saros.RowRange, saros.DateFromTicks, saros.TimeFromTicks, saros.TimestampFromTicks],
    "Errors": [
        *(saros.Error, saros.InterfaceError, saros.DatabaseError, saros.DataError, saros.OperationalError),
        *(saros.PartialWriteError, saros.BulkError, saros.IntegrityError, saros.InternalError),
        *(saros.ProgrammingError, saros.NotSupportedError, saros.Warning),
    ],
}
#: Special methods that are part of the interface.
_SPECIAL = ("__arrow_c_stream__", "__arrow_c_schema__", "__iter__", "__aiter__")
_WIDTH = 100
#: A line that is indented, or has columns.
_LAID_OUT = re.compile(r"^ |\S {2,}\S", re.MULTILINE)
_HEAD = """# Python API

The interface of the package `saros`, generated from its docstrings by `docs/api_reference.py`. The guide is
[Python](driver.md).

| constant | value |
|---|---|
| `saros.apilevel` | `{saros.apilevel!r}` |
| `saros.threadsafety` | `{saros.threadsafety!r}`: threads may share the module and connections, not cursors |
| `saros.paramstyle` | `{saros.paramstyle!r}` |
| `saros.STRING`, `BINARY`, `NUMBER`, `DATETIME`, `BOOLEAN`, `ROWID` | types in `Cursor.description`, to compare with |
| `saros.Date`, `Time`, `Timestamp`, `Binary` | `datetime.date`, `datetime.time`, `datetime.datetime`, `bytes` |
"""


def page() -> str:
    """Return the page."""
    parts = [_HEAD.format(saros=saros)]
    for title, members in _SECTIONS.items():
        parts.append(f"## {title}\n")
        for member in members:
            parts += _class(member) if isinstance(member, type) else _function(member, f"### {_name(member)}")
    return "\n".join(parts)


def _class(class_: type) -> Iterator[str]:
    base = class_.__bases__[0]
    kind = f" ({base.__name__})" if issubclass(class_, BaseException) else ""
    yield f"### {_name(class_)}{kind}\n"
    yield _document(class_)
    for name, member in sorted(_members(class_).items()):
        if isinstance(member, property):
            yield f"{_heading(class_, name)}\n"
            yield _document(member)
        else:
            yield from _function(member, _heading(class_, name))


def _heading(class_: type, name: str) -> str:
    """Return the heading of a member; without the backslashes, Markdown would make the name bold."""
    return f"#### {class_.__name__}.{name}".replace("__", r"\_\_")


def _members(class_: type) -> dict[str, object]:
    """Return the public methods and properties that have a docstring, without those inherited from a public base."""
    found: dict[str, object] = {}
    for base in reversed(class_.__mro__):
        documented = base is not class_ and base.__name__ in saros.__all__
        if base.__module__.startswith("saros") and not documented:
            found |= {
                name: member
                for name, member in vars(base).items()
                if (name in _SPECIAL or not name.startswith("_"))
                and (inspect.isfunction(member) or isinstance(member, property))
                and member.__doc__
            }
    return found


def _function(function: object, title: str) -> Iterator[str]:
    yield f"{title}\n"
    yield f"```python\n{_signature(function)}\n```\n"
    yield _document(function)


def _signature(function: object) -> str:
    """Format a signature; a long one gets a line for each parameter."""
    assert inspect.isfunction(function)
    found = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=_Annotation(parameter.annotation))
        for parameter in found.parameters.values()
        if parameter.name != "self"
    ]
    found = inspect.Signature(parameters, return_annotation=_Annotation(found.return_annotation))
    line = f"{'async ' * inspect.iscoroutinefunction(function)}{function.__name__}{found}"
    if len(line) <= _WIDTH:
        return line
    star = [place for place, parameter in enumerate(parameters) if parameter.kind is parameter.KEYWORD_ONLY][:1]
    words = list(map(str, parameters))
    words[slice(*star * 2)] = ["*"] * len(star)
    head, _, _ = line.partition("(")
    return "\n".join([f"{head}(", *(f"    {word}," for word in words), f") -> {found.return_annotation}"])


class _Annotation(str):
    """An annotation as its text, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _document(member: object) -> str:
    """Format a docstring; paragraphs that are tables or drawings keep their lines."""
    paragraphs = (inspect.getdoc(member) or "").split("\n\n")
    return "\n".join(f"```text\n{textwrap.dedent(p)}\n```\n" if _LAID_OUT.search(p) else f"{p}\n" for p in paragraphs)


def _name(member: object) -> str:
    module, name = getattr(member, "__module__", ""), getattr(member, "__name__", "")
    prefix = "saros.aio" if module.startswith("saros.aio") else "saros" if name in saros.__all__ else ""
    return f"{prefix}.{name}".lstrip(".")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
