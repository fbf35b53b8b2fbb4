"""Scopes: resolve the paths of an expression to series, and expand wildcards to one expression per series.

    FROM root.a.*          SELECT s1 + s2      ->  root.a.d1.s1 + root.a.d1.s2,  root.a.d1.s1 + root.a.d2.s2, ...
                           count(*)            ->  count(root.a.d1.s1), count(root.a.d1.s2), ...

Each path is looked up below each FROM path, in the order of the FROM paths; the series below one FROM path are found in
the order of their paths. An expression with several paths expands to all combinations of the series of these paths; the
series of the first path vary slowest. Each path of an expanded expression is the full path of exactly one series, which
`Scope.series` contains.

In ALIGN BY DEVICE the scope is one device, and paths stay relative to that device.

A scope belongs to one statement.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeGuard

import msgspec
from msgspec.structs import replace

from saros_engine.base.authorized_schema import SchemaReader
from saros_engine.base.errors import SemanticError
from saros_grammar.syntax.ast import (
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Expression,
    InList,
    IsNull,
    Like,
    PathExpression,
    Unary,
)
from saros_storage.base.paths import parse_pattern, split_path
from saros_storage.schema import DeviceSchema, SeriesSchema

_ALL = PathExpression(("*",))
#: The maximum number of expressions that one expression with wildcards may expand to.
_COMBINATIONS_MAX = 100_000


class Leaf(msgspec.Struct, frozen=True):
    """One series, and the path that names it in the statement: the path ends with the measurement or its alias."""

    path: PathExpression
    device: DeviceSchema
    series: SeriesSchema


class Scope:
    """The series below the FROM paths of a statement."""

    def __init__(self, schema: SchemaReader, prefixes: Sequence[PathExpression]) -> None:
        self._schema = schema
        self._prefixes = prefixes
        #: The series to which each path in the expanded expressions refers.
        self.series: dict[PathExpression, Leaf] = {}
        self._found: dict[PathExpression, list[PathExpression]] = {}

    def find(self, path: PathExpression) -> list[PathExpression]:
        """Return the full paths of the series that a path matches."""
        found = self._found.get(path)
        if found is None:
            wholes = [path] if path.absolute else [PathExpression(p.nodes + path.nodes) for p in self._prefixes]
            found = self._found[path] = [leaf.path for whole in wholes for leaf in self._leaves(whole)]
        return found

    def _leaves(self, whole: PathExpression) -> Iterator[Leaf]:
        if not whole.has_wildcard:
            device = self._schema.device(".".join(whole.nodes[:-1]))
            series = None if device is None else device.find(whole.nodes[-1])
            if device is not None and series is not None:
                yield self._keep(Leaf(whole, device, series))
            return
        last: DeviceSchema | None = None
        nodes: tuple[str, ...] = ()
        named = None if PathExpression(whole.nodes[-1:]).has_wildcard else whole.nodes[-1]
        for device, series in self._schema.match_series(parse_pattern(str(whole))):
            if device is not last:
                last, nodes = device, split_path(device.path)
            yield self._keep(Leaf(PathExpression((*nodes, named or series.measurement)), device, series))

    def _keep(self, leaf: Leaf) -> Leaf:
        self.series[leaf.path] = leaf
        return leaf

    def expand(self, expression: Expression) -> list[Expression]:
        """Return the expressions that an expression expands to, or an empty list if one of its paths has no series."""
        if isinstance(expression, PathExpression):
            return list(self.find(expression))
        if counts_rows(expression):
            return _row_count(expression, self.find)
        if type(expression) is Call and len(expression.arguments) == 1:
            argument = expression.arguments[0]
            if isinstance(argument, PathExpression):  # fast path for the usual case, such as count(*)
                name, more, from_for = expression.name, expression.attributes, expression.from_for
                return [Call(name, (path,), more, from_for) for path in self.find(argument)]
        paths = list(paths_of(expression))
        if not paths:
            return [expression]
        found = [self.find(path) for path in paths]
        if all(len(one) == 1 for one in found):
            chosen = [one[0] for one in found]
            return [expression if chosen == paths else with_paths(expression, chosen)]
        return _combinations(expression, found)

    def expand_known(self, expression: Expression) -> list[Expression]:
        """Return the expressions that a condition expands to. Paths that match no series are kept and become null."""
        return _combinations(expression, [self.find(path) or [path] for path in paths_of(expression)])


def require_suffix(path: PathExpression) -> None:
    """Raise SemanticError unless the path is valid in ALIGN BY DEVICE."""
    if len(path.nodes) != 1 or path.nodes[0] == "**":
        raise SemanticError(
            f"{path}: with ALIGN BY DEVICE the suffix paths can only be measurement or one-level wildcard"
        )


class DeviceScope:
    """The series of one device in ALIGN BY DEVICE, where a path is a measurement or `*`."""

    def __init__(self, device: DeviceSchema) -> None:
        self.device = device
        self.series: dict[PathExpression, Leaf] = {}

    def find(self, path: PathExpression) -> list[PathExpression]:
        """Return the measurements of the device that a path matches."""
        require_suffix(path)
        if path.has_wildcard:
            pattern = parse_pattern(f"root.{path}")
            names = [name for name in sorted(self.device.series) if pattern.matches(("root", name))]
        else:
            names = [path.nodes[0]]
        found = []
        for name in names:
            series = self.device.find(name)
            if series is not None:
                whole = PathExpression((name,))
                self.series[whole] = Leaf(whole, self.device, series)
                found.append(whole)
        return found

    def expand(self, expression: Expression) -> list[Expression]:
        """See `Scope.expand`."""
        if counts_rows(expression):
            return _row_count(expression, self.find)
        paths = list(paths_of(expression))
        if not paths:
            return [expression]
        return _combinations(expression, [self.find(path) for path in paths])


def counts_rows(expression: Expression) -> TypeGuard[Call]:
    """Return whether the expression is COUNT_TIME, which takes all series at once."""
    return isinstance(expression, Call) and expression.name.lower() == "count_time"


def _row_count(call: Call, find: Callable[[PathExpression], Sequence[PathExpression]]) -> list[Expression]:
    """Return one COUNT_TIME over all series of the scope, or an empty list if the scope is empty.

    Raises SemanticError if the argument is not `*`.
    """
    if call.arguments != (_ALL,):
        raise SemanticError("The parameter of count_time can only be '*'.")
    found = tuple(find(_ALL))
    return [replace(call, arguments=found)] if found else []


def _combinations(expression: Expression, found: Sequence[Sequence[PathExpression]]) -> list[Expression]:
    """Return the expression for each combination of series of its paths. Raises SemanticError if there are too many."""
    count = math.prod(map(len, found))
    if count > _COMBINATIONS_MAX:
        raise SemanticError(
            f"{expression} matches {count} combinations of series, more than {_COMBINATIONS_MAX}: select fewer"
        )
    return [with_paths(expression, choice) for choice in itertools.product(*found)]


def children_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands of an expression, in the order in which they are written."""
    if isinstance(expression, PathExpression):  # fast path for the usual case
        return ()
    match expression:
        case Unary(_, operand) | IsNull(operand) | Cast(operand):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case Call():
            return expression.arguments
        case Between(operand, low, high):
            return (operand, low, high)
        case InList(operand, items):
            return (operand, *items)
        case Like(operand, pattern):
            return (operand, pattern)
        case Case(whens, otherwise):
            flat = tuple(part for when in whens for part in when)
            return flat if otherwise is None else (*flat, otherwise)
        case _:
            return ()


def rebuilt(expression: Expression, children: Sequence[Expression]) -> Expression:
    """Return a copy of the expression whose operands, in the order of `children_of`, are replaced by `children`."""
    match expression:
        case Unary() | IsNull() | Cast():
            return replace(expression, operand=children[0])
        case Binary():
            return replace(expression, left=children[0], right=children[1])
        case Call():
            return replace(expression, arguments=tuple(children))
        case Between():
            return replace(expression, operand=children[0], low=children[1], high=children[2])
        case InList():
            return replace(expression, operand=children[0], items=tuple(children[1:]))
        case Like():
            return replace(expression, operand=children[0], pattern=children[1])
        case Case(whens, otherwise):
            pairs = tuple((children[2 * i], children[2 * i + 1]) for i in range(len(whens)))
            return replace(expression, whens=pairs, otherwise=None if otherwise is None else children[-1])
        case _:
            return expression


def paths_of(expression: Expression) -> Iterator[PathExpression]:
    """Yield all paths in an expression, from left to right."""
    if isinstance(expression, PathExpression):
        yield expression
    for child in children_of(expression):
        yield from paths_of(child)


def names_series(expression: Expression) -> bool:
    """Return whether the expression contains a path."""
    return any(True for _ in paths_of(expression))


def with_paths(expression: Expression, paths: Sequence[Expression]) -> Expression:
    """Return the expression with its paths replaced, from left to right."""
    return _replaced(expression, iter(paths))


def _replaced(expression: Expression, paths: Iterator[Expression]) -> Expression:
    if isinstance(expression, PathExpression):
        return next(paths)
    children = children_of(expression)
    return rebuilt(expression, [_replaced(child, paths) for child in children]) if children else expression


def any_part(expression: Expression, wanted: Callable[[Expression], bool]) -> bool:
    """Return whether `wanted` holds for the expression or any expression inside it."""
    return wanted(expression) or any(any_part(child, wanted) for child in children_of(expression))
