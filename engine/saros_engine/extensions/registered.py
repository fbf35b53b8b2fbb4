"""User-defined functions. CREATE FUNCTION names a function, and the schema's catalogue stores it.

    ("function", "CELSIUS")    {"name": "celsius", "entry": "celsius"}

    SELECT celsius(s1) ...  --resolved-->  the same expression, in which each call holds its function

A plan runs on the node that made it, so every node that serves queries needs the package.

Pure, except that loading imports modules: any thread.
"""

from __future__ import annotations

import json

import msgspec

from saros_engine.analysis.scope import any_part, children_of, rebuilt
from saros_engine.extensions.aggregates import OwnAggregate
from saros_engine.extensions.functions import function_of_definition
from saros_engine.extensions.installed import installed_function
from saros_engine.extensions.interface import AggregateFunction
from saros_engine.functions.aggregate import Aggregate
from saros_engine.functions.function import Function
from saros_engine.functions.patterns import PATTERN_AGGREGATES
from saros_engine.functions.regex import REGEX_FUNCTIONS
from saros_engine.functions.registry import AGGREGATES, FUNCTIONS, RegisteredCall
from saros_engine.transforms import LIBRARY_TRANSFORMS, POINT_FUNCTIONS
from saros_grammar.syntax.ast import Call, CreateFunction, Expression
from saros_storage.base.errors import UserMistake
from saros_storage.schema import Catalogue, SchemaChange, SetEntry

KIND = "function"
_EXISTS, _MISSING = 2081, 2082
#: The built-in functions that no table of functions contains.
_OTHERS = frozenset({"now", "version", "cast", "count_time", "tags"})
#: The package of IoTDB's function library, whose functions are built into Saros.
_LIBRARY = "org.apache.iotdb.library."
_LIBRARY_FUNCTIONS = frozenset(
    (
        *LIBRARY_TRANSFORMS,
        *(function.name for function in REGEX_FUNCTIONS),
        *(aggregate.name for aggregate in PATTERN_AGGREGATES),
    )
)


class RegisteredFunction(msgspec.Struct, frozen=True):
    """A registered function: its name as written in CREATE FUNCTION, and its entry point."""

    name: str
    entry: str


def is_built_in(name: str) -> bool:
    """Return whether a function of this name, in upper or lower case, is built into Saros."""
    word = name.lower()
    return any(word in names for names in (FUNCTIONS, POINT_FUNCTIONS, AGGREGATES, _OTHERS))


def registered_functions(catalogue: Catalogue) -> list[RegisteredFunction]:
    """Return all registered functions, sorted by name."""
    return [RegisteredFunction(**json.loads(text)) for _, text in catalogue.all_of(KIND)]


def function_creation(statement: CreateFunction, catalogue: Catalogue) -> list[SchemaChange]:
    """Return the schema change of CREATE FUNCTION. A function of IoTDB's library is built in and needs none.

    Raises UserMistake 2081 if the name is taken, and 1200 if the entry point is not installed on this node.
    """
    name = statement.name
    if is_built_in(name):
        if statement.entry.startswith(_LIBRARY):
            return []
        raise UserMistake(f"{name} is a built-in function: choose another name", code=_EXISTS)
    if catalogue.get(KIND, name.upper()) is not None:
        raise UserMistake(f"function {name} already exists: drop it first", code=_EXISTS)
    installed_function(statement.entry)
    words = {"name": name, "entry": statement.entry}
    return [SetEntry(KIND, name.upper(), json.dumps(words, ensure_ascii=False))]


def function_removal(name: str, catalogue: Catalogue) -> list[SchemaChange]:
    """Return the schema change of DROP FUNCTION. A function of IoTDB's library needs none. Raises UserMistake 2082."""
    if catalogue.get(KIND, name.upper()) is None:
        if name.lower() in _LIBRARY_FUNCTIONS:
            return []
        if is_built_in(name):
            raise UserMistake(f"{name} is a built-in function and cannot be dropped", code=_MISSING)
        raise UserMistake(f"function {name} doesn't exist: see SHOW FUNCTIONS", code=_MISSING)
    return [SetEntry(KIND, name.upper(), None)]


def function_rows(catalogue: Catalogue) -> list[tuple[str, str, str, str]]:
    """Return the rows of SHOW FUNCTIONS for registered functions: name, type, entry point, state on this node."""
    rows = []
    for function in registered_functions(catalogue):
        kind, state = "external UDTF", "AVAILABLE"
        try:
            if isinstance(installed_function(function.entry), AggregateFunction):
                kind = "external UDAF"
        except UserMistake:
            state = "UNAVAILABLE"
        rows.append((function.name.upper(), kind, function.entry, state))
    return rows


# ---------------------------------------------------------------------------------------------- calls


def calls_registered(expression: Expression) -> bool:
    """Return whether the expression calls a registered function."""
    return any_part(expression, lambda part: isinstance(part, RegisteredCall))


def resolved(expression: Expression, catalogue: Catalogue) -> Expression:
    """Resolve the calls of registered functions. Raises UserMistake 1200 if this node lacks a function.

    If a later version of Saros has a built-in function with the same name, the registered function still takes
    precedence.
    """
    children = children_of(expression)
    changed = [resolved(child, catalogue) for child in children]
    if any(new is not old for new, old in zip(changed, children, strict=True)):
        expression = rebuilt(expression, changed)
    if not isinstance(expression, Call):
        return expression
    text = catalogue.get(KIND, expression.name.upper())
    if text is None:
        return expression
    function = _function(RegisteredFunction(**json.loads(text)))
    return RegisteredCall(expression.name, expression.arguments, expression.attributes, expression.from_for, function)


def _function(registered: RegisteredFunction) -> Function | Aggregate:
    name = registered.name.lower()
    try:
        definition = installed_function(registered.entry)
    except UserMistake as error:
        raise UserMistake(f"function {name} cannot be called on this node: {error.message}", code=error.code) from error
    if isinstance(definition, AggregateFunction):
        return OwnAggregate(name, definition)
    return function_of_definition(name, definition)
