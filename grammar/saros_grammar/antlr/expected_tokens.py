"""Finds the words that may follow the beginning of a statement, for completion.

This module runs the parser's transition network (ATN) like a nondeterministic automaton. A configuration is a
transition that reads a token, together with the stack of rules to return to. Each token advances all configurations.
After the last token, the transitions of all configurations read exactly the tokens that may follow the text. Because
the grammar needs one token of lookahead nearly everywhere, there are few configurations (under 200), and a long
statement takes milliseconds.

    "show ch"  ->  keywords CHILD (the unfinished word is not part of the beginning)
    "select "  ->  keywords LAST, CASE, NOT ...; names in rule expressionNode: a series or a function

Thread-safe.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from antlr4.atn.ATNState import RuleStopState
from antlr4.atn.Transition import Transition
from antlr4.Token import Token

from saros_grammar.antlr.lexer import tokens_of
from saros_grammar.generated.Sql import Sql


class Expected(msgspec.Struct, frozen=True):
    """The ways to continue the beginning of a statement.

    keywords  keywords that may follow, without keywords that are allowed only as names
    names     rules in which a name may follow, such as "expressionNode" or "typeName"
    rules     rules in progress, such as "clause"
    """

    keywords: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    rules: frozenset[str] = frozenset()


class _Frame(msgspec.Struct, frozen=True, eq=False):
    """A rule in progress: the state to return to, and the frame of the enclosing rule. Equal frames are identical."""

    state: Any
    outer: _Frame | None


#: A transition that reads a token, its rule, and the stack.
_Reading = tuple[Any, int, _Frame | None]


def expected_after(text: str) -> Expected:
    """Return the ways to continue `text`, whose last word is complete.

    The result is empty if no statement begins with `text`.
    """
    frames: dict[tuple[Any, _Frame | None], _Frame] = {}
    reading = _closure([(Sql.atn.ruleToStartState[Sql.RULE_singleStatement], None)], frames)
    for token in tokens_of(text).tokens:
        if token.channel == Token.DEFAULT_CHANNEL and token.type != Token.EOF:
            reading = _closure(((step.target, frame) for step, _, frame in reading if _reads(step, token.type)), frames)
    keywords: set[str] = set()
    names: set[str] = set()
    for step, rule, frame in reading:
        if rule != Sql.RULE_name:
            keywords.update(Sql.symbolicNames[kind] for kind in _kinds(step) if Sql.ABORT <= kind <= Sql.ZONE)
        elif frame is not None:
            names.add(Sql.ruleNames[frame.state.ruleIndex])
    return Expected(tuple(sorted(keywords)), frozenset(names), _rules(reading))


def _closure(
    configurations: Iterable[tuple[Any, _Frame | None]], frames: dict[tuple[Any, _Frame | None], _Frame]
) -> list[_Reading]:
    """Follow all transitions that read no token, and return the transitions that read a token."""
    left = list(configurations)
    seen: set[tuple[Any, _Frame | None]] = set()
    found: list[_Reading] = []
    while left:
        configuration = left.pop()
        if configuration in seen:
            continue
        seen.add(configuration)
        state, frame = configuration
        if isinstance(state, RuleStopState):
            left += [(frame.state, frame.outer)] if frame is not None else []
            continue
        for step in state.transitions:
            if step.serializationType == Transition.RULE:
                key = (step.followState, frame)
                left.append((step.target, frames.setdefault(key, _Frame(*key))))
            elif step.isEpsilon:
                left.append((step.target, frame))
            else:
                found.append((step, state.ruleIndex, frame))
    return found


def _reads(step: Any, kind: int) -> bool:
    return bool(step.matches(kind, Token.MIN_USER_TOKEN_TYPE, Sql.atn.maxTokenType))


def _kinds(step: Any) -> list[int]:
    return [kind for interval in step.label.intervals or () for kind in interval]


def _rules(reading: Iterable[_Reading]) -> frozenset[str]:
    found = {rule for _, rule, _ in reading}
    frames = {frame for _, _, frame in reading}
    while frames:
        found |= {frame.state.ruleIndex for frame in frames if frame is not None}
        frames = {frame.outer for frame in frames if frame is not None}
    return frozenset(Sql.ruleNames[rule] for rule in found)
