"""Return fields of a JSON body after checking their types. Pure: any thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from saros_server.http.errors import HttpError

_Kind = TypeVar("_Kind")

_KINDS: dict[type, str] = {str: "a text", int: "a whole number", bool: "true or false", list: "an array"}


def text(body: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """Return a field that is a text. It is required unless `default` is given. Raises HttpError 400."""
    value = body.get(name)
    if value is None and default is not None:
        return default
    return _checked(name, value, str)


def integer(body: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """Return a field that is an integer. It is required unless `default` is given. Raises HttpError 400."""
    value = body.get(name)
    if value is None and default is not None:
        return default
    return _checked(name, value, int)


def flag(body: Mapping[str, Any], name: str) -> bool | None:
    """Return a field that is a boolean, or None if the field is missing. Raises HttpError 400."""
    value = body.get(name)
    return None if value is None else _checked(name, value, bool)


def array(body: Mapping[str, Any], name: str) -> list[Any]:
    """Return an array. Raises HttpError 400."""
    return _checked(name, body.get(name), list)


def array_of(body: Mapping[str, Any], name: str, kind: type, length: int | None = None) -> list[Any]:
    """Return a field that is an array whose elements all have the type `kind`.

    If `length` is given, the array must have this length. Raises HttpError 400.
    """
    values = array(body, name)
    if length is not None and len(values) != length:
        raise HttpError(400, f"{name} has {len(values)} elements; {length} are needed")
    for place, value in enumerate(values):
        if type(value) is not kind:
            raise HttpError(400, f"{name}[{place}] must be {_KINDS[kind]}, not {_abbreviated(value)}")
    return values


def _checked(name: str, value: Any, kind: type[_Kind]) -> _Kind:
    if type(value) is not kind:
        found = "it is missing" if value is None else f"it is {_abbreviated(value)}"
        raise HttpError(400, f"{name} must be {_KINDS[kind]}: {found}")
    checked: _Kind = value
    return checked


def _abbreviated(value: Any) -> str:
    return repr(value)[:60]
