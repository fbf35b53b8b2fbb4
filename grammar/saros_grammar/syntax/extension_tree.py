"""Statements about user-defined functions and triggers; exported by `ast`. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from saros_grammar.syntax.expression_tree import PathExpression


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """CREATE FUNCTION name AS 'entry point'."""

    name: str
    entry: str


@dataclass(frozen=True, slots=True)
class DropFunction:
    """DROP FUNCTION name."""

    name: str


@dataclass(frozen=True, slots=True)
class CreateTrigger:
    """CREATE [STATELESS] TRIGGER name BEFORE | AFTER INSERT ON path AS 'entry point' [WITH ('k'='v', ...)]."""

    name: str
    before: bool
    path: PathExpression
    entry: str
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DropTrigger:
    """DROP TRIGGER name."""

    name: str


ExtensionStatement = CreateFunction | DropFunction | CreateTrigger | DropTrigger
