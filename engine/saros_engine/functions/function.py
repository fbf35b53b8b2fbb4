"""Functions that SELECT and WHERE can call, and the checks of their arguments and attributes.

Each of `scalar`, `series` and `regex` ends with a table of its functions, which `registry` joins. An entry is made with
`declared` if the signature states all that must be checked, and otherwise with `Function`. Functions that generate
points, whose times need not be those of the input, are in `transforms`.

Pure data: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum

import msgspec

from saros_engine.expressions.times import duration_ticks
from saros_engine.plan.expression import Constant, FunctionCall
from saros_grammar.syntax.literals import LiteralError, duration_of, is_duration
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType, Scalar, TimeUnit

#: A function that computes the result column from the argument columns and the block that they were computed from.
Evaluator = Callable[[Sequence[Column], Block], Column]
Attributes = Mapping[str, str]

_MIN, _MAX = -(1 << 63), (1 << 63) - 1


class FunctionKind(Enum):
    """The rows on which the result for a row depends: only that row (SCALAR), or also earlier rows (SERIES)."""

    SCALAR = "scalar"
    SERIES = "series"


class Function(msgspec.Struct, frozen=True):
    """One entry of `registry.FUNCTIONS`."""

    name: str
    kind: FunctionKind
    #: A function from argument types and attributes to the result type. If they are not accepted, it raises
    #: UserMistake.
    result_type: Callable[[Sequence[DataType], Attributes], DataType]
    #: A function that makes an evaluator for a call. Each operator makes its own evaluator.
    make: Callable[[FunctionCall], Evaluator]
    #: True if a result may overflow its integer type. Such an overflow is an error (750).
    overflows: bool = False
    #: Alternative names of the function in SQL; messages show `name`.
    aliases: tuple[str, ...] = ()

    def check(self, types: Sequence[DataType], attributes: Iterable[tuple[str, str]] = ()) -> DataType:
        """Return the result type for arguments of `types`.

        Raises UserMistake 701, whose message names the accepted types.
        """
        return self.result_type(types, dict(attributes))


def declared(
    name: str,
    make: Callable[[FunctionCall], Evaluator],
    *arguments: frozenset[DataType],
    result: DataType | None = None,
    kind: FunctionKind = FunctionKind.SCALAR,
    optional: int = 0,
    attributes: Sequence[str] = (),
    overflows: bool = False,
    aliases: tuple[str, ...] = (),
) -> Function:
    """Return a function whose signature states all that must be checked.

    `arguments` lists the types that each argument may have; the last `optional` arguments may be missing. `attributes`
    lists the required attributes. `result` is None if it is the type of the first argument.
    """

    def check(types: Sequence[DataType], given: Attributes) -> DataType:
        expect(name, types, *arguments, optional=optional)
        for key in attributes:
            required(name, given, key)
        return types[0] if result is None else result

    return Function(name, kind, check, make, overflows, aliases)


def stateless(run: Evaluator) -> Callable[[FunctionCall], Evaluator]:
    """Return a `make` function that returns the same evaluator for all calls."""
    return lambda _: run


# ---------------------------------------------------------------------------------------------- checks


def expect(name: str, types: Sequence[DataType], *wanted: frozenset[DataType], optional: int = 0) -> None:
    """Raise UserMistake 701 unless `types` match `wanted`; the last `optional` types may be missing."""
    fits = len(wanted) - optional <= len(types) <= len(wanted)
    if not fits or any(given not in allowed for given, allowed in zip(types, wanted, strict=False)):
        needs = ", ".join("/".join(sorted(t.name for t in allowed)) for allowed in wanted)
        got = ", ".join(t.name for t in types) or "nothing"
        raise UserMistake(f"{name} takes ({needs}), not ({got})", code=701)


def required(name: str, attributes: Attributes, key: str) -> str:
    """Return a required attribute. Raises UserMistake 701 if the attribute is missing."""
    if key not in attributes:
        raise UserMistake(f"{name} needs the attribute '{key}', as in {name}(s, '{key}'='...')", code=701)
    return attributes[key]


def number_attribute(name: str, attributes: Attributes, key: str) -> float:
    """Return a required attribute that must be a number. Raises UserMistake 701."""
    text = required(name, attributes, key)
    try:
        return float(text)
    except ValueError as problem:
        raise UserMistake(f"{name}: '{key}' must be a number, not {text!r}", code=701) from problem


def integer_attribute(
    name: str, attributes: Attributes, key: str, default: int | None = None, *, low: int = _MIN, high: int = _MAX
) -> int:
    """Return an attribute that must be an integer from `low` to `high`; it is required unless it has a default."""
    text = required(name, attributes, key) if default is None else attributes.get(key, str(default))
    try:
        value = int(text)
    except ValueError as problem:
        raise UserMistake(f"{name}: '{key}' must be an integer, not {text!r}", code=701) from problem
    if not low <= value <= high:
        raise UserMistake(f"{name}: '{key}' must be from {low} to {high}, not {value}", code=701)
    return value


def duration_attribute(name: str, attributes: Attributes, key: str, unit: TimeUnit) -> int:
    """Return a required attribute such as `5m`, in ticks. Raises UserMistake 701."""
    text = required(name, attributes, key)
    try:
        ticks = duration_ticks(duration_of(text), unit) if is_duration(text) else 0
    except LiteralError as error:
        raise UserMistake(f"{name}: '{key}': {error}", code=701) from error
    if ticks <= 0:
        raise UserMistake(f"{name}: '{key}' must be a duration such as 5m, not {text!r}", code=701)
    return ticks


def choice_attribute(name: str, attributes: Attributes, key: str, allowed: Sequence[str]) -> str:
    """Return an attribute that must be one of `allowed`, in upper or lower case; the first of them is the default."""
    text = attributes.get(key, allowed[0]).lower()
    if text not in allowed:
        raise UserMistake(f"{name}: '{key}' must be one of {', '.join(allowed)}, not {text!r}", code=701)
    return text


def flag_attribute(name: str, attributes: Attributes, key: str, *, default: bool) -> bool:
    """Return an attribute that must be true or false."""
    text = attributes.get(key, str(default)).lower()
    if text not in ("true", "false"):
        raise UserMistake(f"{name}: '{key}' must be true or false, not {text!r}", code=701)
    return text == "true"


def constant_argument(call: FunctionCall, index: int) -> Scalar:
    """Return an argument that must be a literal. Raises UserMistake 701."""
    argument = call.arguments[index]
    if not isinstance(argument, Constant) or argument.value is None:
        raise UserMistake(f"{call.name}: argument {index + 1} must be a constant", code=701)
    return argument.value
