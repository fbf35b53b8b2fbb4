r"""The parser that uses ANTLR: lexer, parse tree, builder, syntax errors. `parser` loads this module on first use.

    text --`lexer`--> tokens --ANTLR, SLL, stops at the first mistake--> tree --builder--> Statement
      \--on a mistake: ANTLR's lexer, LL, MistakeListener--> tree or ParseError(line, column, expected tokens)

SLL prediction is fast, but rejects some valid texts in rare cases. An error is therefore reported only if the exact LL
prediction also finds an error. A text beyond the limits (see `limits.py`) is refused before ANTLR parses it, and
recursion is bounded by `NESTING_MAX` levels of parentheses and CASE. A deep tree needs more stack frames than Python
allows by default. The first deep tree raises the limit for the process. The limit is not lowered afterwards, because
code that walks the tree later needs the frames, too.

Thread-safe: all parses share ANTLR's tables, which only grow, and each parse has a separate parser.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

from antlr4.atn.PredictionMode import PredictionMode
from antlr4.error.Errors import ParseCancellationException
from antlr4.error.ErrorStrategy import BailErrorStrategy

from saros_grammar.antlr.lexer import exact_tokens_of, tokens_of
from saros_grammar.antlr.listener import MistakeListener
from saros_grammar.antlr.literal_lists import without_runs
from saros_grammar.antlr.redaction import may_hold_password, redacted, redacted_error
from saros_grammar.antlr.unsupported import unsupported_statement
from saros_grammar.builders.builder import StatementBuilder
from saros_grammar.builders.expressions import EXPRESSION_HEIGHT_MAX, TOO_DEEP, ExpressionBuilder, Slot
from saros_grammar.generated.Sql import Sql
from saros_grammar.limits import NESTING_MAX, STATEMENT_CHARACTERS_MAX
from saros_grammar.shape import fill_in, scan
from saros_grammar.source import Source
from saros_grammar.syntax.ast import Insert, Literal, NotSupported, Parsed, PathExpression, Statement, holds_password
from saros_grammar.syntax.errors import STATEMENT_TOO_LARGE, ParseError, error_at
from saros_grammar.templates import Rebuild, compile_template

#: The number of stack frames for parsing NESTING_MAX levels, and for walking a tree of height EXPRESSION_HEIGHT_MAX.
_FRAMES = 20_000
_FRAMES_BY_DEFAULT_SUFFICE = 30
_OPENERS = re.compile(r"[(\[]|\bcase\b", re.IGNORECASE)
_DEPTH = {Sql.LEFT_PARENTHESIS: 1, Sql.LEFT_BRACKET: 1, Sql.CASE: 1}
_DEPTH |= {Sql.RIGHT_PARENTHESIS: -1, Sql.RIGHT_BRACKET: -1, Sql.END: -1}

#: The AND of a BETWEEN is not an operator.
_LINKS = {Sql.AND: 1, Sql.AMPERSAND: 1, Sql.OR: 1, Sql.BAR: 1, Sql.BETWEEN: -1}
_CHAIN_ENDS = frozenset(
    {Sql.COMMA, Sql.FROM, Sql.WHERE, Sql.GROUP, Sql.HAVING, Sql.ORDER, Sql.WHEN, Sql.THEN, Sql.ELSE}
)

#: The types of nodes that the cache replaces with the nodes of another text.
_REBOUND = (Literal, PathExpression)


def parse_source(text: str) -> Source:
    """Parse `text` with ANTLR, for `parser.parse_source`. Raises ParseError."""
    if len(text) > STATEMENT_CHARACTERS_MAX:
        message = f"the statement has {len(text)} characters; at most {STATEMENT_CHARACTERS_MAX} are allowed"
        raise ParseError(message, text=text[:1000], code=STATEMENT_TOO_LARGE)
    tokens = tokens_of(text)
    try:
        return _parse_tokens(text, tokens)
    except ParseError:
        what = unsupported_statement(tokens.tokens)
        if what is None and not may_hold_password(tokens.tokens):
            raise
    if what is not None:
        return Source(Parsed(NotSupported(what), 0, text))
    raise redacted_error()


def _parse_tokens(text: str, tokens: Any) -> Source:
    if len(_OPENERS.findall(text)) > _FRAMES_BY_DEFAULT_SUFFICE:
        _check_nesting(text, tokens.tokens)
    if len(tokens.tokens) > EXPRESSION_HEIGHT_MAX:
        _check_chains(text, tokens.tokens)
    starts = [token.start for token in tokens.tokens if token.type == Sql.PARAMETER]
    try:
        built = _without_runs(text, tokens.tokens, starts)
        if built is None:
            expressions = ExpressionBuilder(text, starts)
            built = StatementBuilder(expressions).statement(_tree(text, tokens)), expressions
        statement, expressions = built
    except RecursionError:
        raise ParseError("the statement is nested too deeply for this thread's stack", text=text) from None
    if expressions.height > _FRAMES_BY_DEFAULT_SUFFICE:
        _raise_frame_limit()
    if holds_password(statement):
        return Source(Parsed(statement, len(starts), "", redacted=redacted(text, tokens.tokens)))
    return _source(text, statement, expressions.slots, len(starts))


def _without_runs(
    text: str, tokens: Sequence[Any], starts: Sequence[int]
) -> tuple[Statement, ExpressionBuilder] | None:
    """Parse a text with long lists of literals (`literal_lists`). Return None if the text must be parsed as a whole."""
    found = without_runs(tokens)
    if found is None:
        return None
    stream, runs = found
    expressions = ExpressionBuilder(text, starts, runs)
    try:
        statement = StatementBuilder(expressions).statement(_quick_tree(stream))
    except (ParseCancellationException, ParseError):
        return None  # parsing the whole text will report where the mistake is
    return (statement, expressions) if expressions.has_all_runs else None


def _tree(text: str, tokens: Any) -> Any:
    """Return the `statement` context of the whole text. Raises ParseError."""
    try:
        return _quick_tree(tokens)
    except ParseCancellationException:
        exact: Any = Sql(exact_tokens_of(text))
    exact.removeErrorListeners()
    exact.addErrorListener(MistakeListener(text))
    return exact.singleStatement().statement()


def _quick_tree(tokens: Any) -> Any:
    """Return the `statement` context by SLL prediction. Raises ParseCancellationException at the first mistake."""
    parser: Any = Sql(tokens)
    parser.removeErrorListeners()
    parser._interp.predictionMode = PredictionMode.SLL  # noqa: SLF001  # the runtime's documented way
    parser._errHandler = BailErrorStrategy()  # noqa: SLF001
    return parser.singleStatement().statement()


def _check_nesting(text: str, tokens: Sequence[Any]) -> None:
    depth = deepest = 0
    for token in tokens:
        step = _DEPTH.get(token.type)
        if step is not None:
            # The level never falls below 0, because `end` may also be a column, which closes no level.
            depth = max(0, depth + step)
            deepest = max(deepest, depth)
            if depth > NESTING_MAX:
                raise error_at(text, token.start, f"nested too deeply: at most {NESTING_MAX} levels are allowed")
    if deepest > _FRAMES_BY_DEFAULT_SUFFICE:
        _raise_frame_limit()


def _check_chains(text: str, tokens: Sequence[Any]) -> None:
    """Refuse a chain of AND and OR that the builder would refuse later: ANTLR would parse a long chain for seconds."""
    links = [0]  # the length of the chain at each level of parentheses
    for token in tokens:
        step = _DEPTH.get(token.type, 0)
        if step > 0:
            links.append(0)
        elif step < 0:
            if len(links) > 1:
                links.pop()
        elif token.type in _CHAIN_ENDS:
            links[-1] = 0
        else:
            links[-1] += _LINKS.get(token.type, 0)
            if links[-1] > EXPRESSION_HEIGHT_MAX:
                raise error_at(text, token.start, TOO_DEEP)


def _raise_frame_limit() -> None:
    if sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)


def _source(text: str, statement: Statement, slots: Sequence[Slot], parameters: int) -> Source:
    """Find the literals and paths in the text that are nodes of the tree, and make a template of the tree."""
    scanned = scan(text)
    if scanned is None:
        return Source(Parsed(statement, parameters, "" if isinstance(statement, Insert) else text))
    ordinal_of = {span: ordinal for ordinal, span in enumerate(scanned.spans)}
    found = [slot for slot in slots if (slot.start, slot.stop) in ordinal_of]
    live, rebuild = _holes(statement, sorted(found, key=lambda slot: slot.start))
    ordinals = tuple(ordinal_of[slot.start, slot.stop] for slot in live)
    if isinstance(statement, Insert):
        return Source(Parsed(statement, parameters, ""), scanned, live, ordinals, rebuild=rebuild)
    written = frozenset(range(len(scanned.spans))).difference(ordinals).union(scanned.paths)
    literals = tuple(slot.made for slot in live if isinstance(slot.made, Literal))
    parsed = Parsed(statement, parameters, fill_in(scanned, text, written), literals)
    return Source(parsed, scanned, live, ordinals, written, rebuild)


def _holes(statement: Statement, slots: Sequence[Slot]) -> tuple[tuple[Slot, ...], Rebuild | None]:
    """Return the slots that are nodes of the tree, and a function that rebuilds the tree with other nodes in them."""
    holes = {id(slot.made): hole for hole, slot in enumerate(slots)}
    met: set[int] = set()

    def hole_of(node: Any) -> int | None:
        hole = holes.get(id(node)) if type(node) in _REBOUND else None
        if hole is not None:
            met.add(hole)
        return hole

    rebuild = compile_template(statement, hole_of)
    if len(met) < len(slots):
        # Some slots were converted to plain text (attributes, options) or are parts of other paths, so they cannot be
        # holes.
        return _holes(statement, [slot for hole, slot in enumerate(slots) if hole in met])
    return tuple(slots), rebuild
