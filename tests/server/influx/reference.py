"""A simple, slow reader of InfluxDB's line protocol. It returns a point for each line, or None if the line is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass

Value = bool | int | float | str

_ESCAPE = re.compile(r"\\([,= ])")


@dataclass(frozen=True, slots=True)
class Point:
    """The content of a line."""

    measurement: str
    tags: tuple[tuple[str, str], ...]
    fields: tuple[tuple[str, Value], ...]
    time: int | None


class Wrong(Exception):
    """A line is wrong."""


def read(body: str) -> list[Point | None]:
    """Return the point that each line has, or None if the line is wrong."""
    points: list[Point | None] = []
    text = body + "\n"
    while text:
        text = text.lstrip(" \t\r\n")
        if text.startswith("#"):
            text = text.partition("\n")[2]
        elif text:
            line, text = _logical_line(text)
            try:
                points.append(_point(line))
            except Wrong:
                points.append(None)
    return points


def _logical_line(text: str) -> tuple[str, str]:
    """Return the first line, and the text after it. A newline in a quoted field value does not end the line."""
    at, in_fields, quoted = 0, False, False
    while at < len(text):
        one, two = text[at], text[at : at + 2]
        if quoted:
            at += 2 if two in ('\\"', "\\\\") else 1
            quoted = one != '"'
            continue
        if one == "\n":
            return text[:at].removesuffix("\r"), text[at + 1 :]
        if not in_fields and two in ("\\ ", "\\,", "\\="):
            at += 2
            continue
        in_fields = in_fields or one == " "
        if in_fields and two == '="':
            quoted, at = True, at + 2
            continue
        at += 1
    return text.removesuffix("\n"), ""


def _point(line: str) -> Point:
    key, rest = _until(line, " ")
    measurement, tags = _until(key, ",")
    if not measurement or not rest.strip(" "):
        raise Wrong
    pairs = []
    while tags:
        tag, tags = _until(tags[1:], ",")
        name, value = _until(tag, "=")
        if not name or not value[1:] or _until(value[1:], "=")[1]:
            raise Wrong
        pairs.append((_plain(name), _plain(value[1:])))
    if len(dict(pairs)) < len(pairs):
        raise Wrong
    #: If a field occurs twice with the same type, it has the last of its values.
    fields: dict[tuple[str, type], Value] = {}
    rest = rest.lstrip(" ")
    while True:
        name, rest = _name(rest)
        value, rest = _value(rest)
        fields[_plain(name), type(value)] = value
        if not rest.startswith(","):
            break
        rest = rest[1:]
    time = re.fullmatch(r" *(-?[0-9]+)? *", rest)
    if time is None or not -(2**63) < int(time[1] or 0) < 2**63 - 1:
        raise Wrong
    values = tuple((name, value) for (name, _), value in fields.items())
    return Point(_plain(measurement), tuple(pairs), values, None if time[1] is None else int(time[1]))


def _until(text: str, delimiter: str) -> tuple[str, str]:
    """Return the text before the first unescaped delimiter, and the text from this delimiter on."""
    at = 0
    while at < len(text) and text[at] != delimiter:
        at += 2 if text[at : at + 2] in ("\\ ", "\\,", "\\=") else 1
    return text[:at], text[at:]


def _name(text: str) -> tuple[str, str]:
    name, rest = _until(text, "=")
    if not name or not rest or _until(name, ",")[1] or _until(name, " ")[1]:
        raise Wrong
    return name, rest[1:]


def _value(text: str) -> tuple[Value, str]:
    quoted = re.match(r'"((?:\\["\\]|[^"])*)"', text) if text.startswith('"') else None
    if quoted is not None:
        if text[quoted.end() :][:1] not in ("", ",", " "):
            raise Wrong
        return re.sub(r'\\(["\\])', r"\1", quoted[1]), text[quoted.end() :]
    token = re.match(r"[^, ]*", text)
    assert token
    return _scalar(token[0]), text[token.end() :]


def _scalar(text: str) -> Value:
    if text in ("t", "T", "true", "True", "TRUE"):
        return True
    if text in ("f", "F", "false", "False", "FALSE"):
        return False
    if re.fullmatch(r"[+-]?[0-9]+i|\+?[0-9]+u", text):
        whole = int(text[:-1])
        if not -(2**63) <= whole < 2**63:
            raise Wrong
        return whole
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        raise Wrong
    number = float(text)
    if abs(number) == float("inf"):
        raise Wrong
    return number


def _plain(text: str) -> str:
    return _ESCAPE.sub(r"\1", text)
