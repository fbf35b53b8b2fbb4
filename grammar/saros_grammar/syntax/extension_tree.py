"""Statements about user-defined functions and triggers. `ast` exports the classes. Pure data."""

from __future__ import annotations

import msgspec

from saros_grammar.syntax.expression_tree import PathExpression


class CreateFunction(msgspec.Struct, frozen=True):
    """CREATE FUNCTION name AS 'entry point'."""

    name: str
    entry: str


class DropFunction(msgspec.Struct, frozen=True):
    """DROP FUNCTION name."""

    name: str


class CreateTrigger(msgspec.Struct, frozen=True):
    """CREATE [STATELESS] TRIGGER name BEFORE | AFTER INSERT ON path AS 'entry point' [WITH ('k'='v', ...)]."""

    name: str
    before: bool
    path: PathExpression
    entry: str
    attributes: tuple[tuple[str, str], ...] = ()


class DropTrigger(msgspec.Struct, frozen=True):
    """DROP TRIGGER name."""

    name: str


ExtensionStatement = CreateFunction | DropFunction | CreateTrigger | DropTrigger
