"""The builder of LOAD, with options as in IoTDB 1 (`sglevel=2 onSuccess=delete`) or 2 (`with ('verify'='true')`).

Pure. Parse-tree contexts are generated code without types, so they are `Any` here.
"""

from __future__ import annotations

from typing import Any

from saros_grammar.builders.expressions import ExpressionBuilder
from saros_grammar.syntax.ast import Load, NotSupported
from saros_grammar.syntax.errors import SEMANTIC_ERROR
from saros_grammar.syntax.literals import unquote_name, unquote_string

#: The name that Saros uses for each option, keyed by the names in both versions of IoTDB.
_NAMES = {
    "sglevel": "level",
    "database-level": "level",
    "verify": "verify",
    "onsuccess": "delete",
    "on-success": "delete",
    "model": "table",
    "database-name": "database",
    "convert-on-type-mismatch": "convert",
    "async": "async",
    "tablet-conversion-threshold": "threshold",
}
_BOOLEANS = {"true": True, "false": False}
#: The values of the options whose values are words. `convert`, `async` and `threshold` have no effect: a file is never
#: converted, and the statement waits until the file is loaded.
_WORDS = {
    "verify": _BOOLEANS,
    "delete": {"none": False, "delete": True},
    "table": {"tree": False, "table": True},
    "convert": _BOOLEANS,
    "async": _BOOLEANS,
}


def build(expressions: ExpressionBuilder, context: Any) -> Load | NotSupported:
    """Build the statement of a `load` context. Raises ParseError."""
    found: dict[str, int | bool] = {}
    for pair in context.pair():
        key = _text(expressions, pair.key())
        name = _NAMES.get(key.lower())
        if name is None:
            options = "sglevel, verify, onSuccess, model, convert-on-type-mismatch, async, tablet-conversion-threshold"
            message = f"LOAD has no option {key}: there are {options}"
            raise expressions.error(pair, message, ("sglevel",), SEMANTIC_ERROR)
        if name in found:
            raise expressions.error(pair, f"{key} is given twice")
        found[name] = _value(expressions, name, pair.value())
    if found.get("table") or "database" in found:
        return NotSupported("LOAD into the table model")
    level, verify, delete = (found.get(name) for name in ("level", "verify", "delete"))
    return Load(
        unquote_string(context.source.text),
        None if level is None else int(level),
        None if verify is None else bool(verify),
        None if delete is None else bool(delete),
    )


def _value(expressions: ExpressionBuilder, name: str, context: Any) -> int | bool:
    text = _text(expressions, context)
    if name == "database":
        return True
    if name == "level":
        if not text.isdecimal() or not int(text):
            raise expressions.error(context, "a database must lie at least 1 level below root", ("1",), SEMANTIC_ERROR)
        return int(text)
    if name == "threshold":
        if not text.lstrip("-").isdecimal():
            raise expressions.error(context, "a threshold must be a number of bytes", ("an integer",), SEMANTIC_ERROR)
        return True
    words = _WORDS[name]
    if text.lower() not in words:
        message = f"{text} is not one of {', '.join(words)}"
        raise expressions.error(context, message, tuple(words), SEMANTIC_ERROR)
    return words[text.lower()]


def _text(expressions: ExpressionBuilder, context: Any) -> str:
    text = expressions.raw(context)
    return unquote_string(text) if text[0] in "'\"" else unquote_name(text)
