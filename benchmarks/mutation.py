"""Mutants of a module's functions: small changes to its syntax tree, compiled and installed in the running program.

    changes(tree)          each change in turn: made in the tree on entry, undone on exit
    mutants(file)          their descriptions, in the same order
    mutated_code(mutant)   the code object of the mutant's function
    probed_code(file)      code objects that call a function with the line of each statement before it is executed

A mutant is installed with `function.__code__ = ...`: all references to the function then run the mutant, and the rest
of the program runs at full speed. Only functions of modules and classes are mutated, including the functions nested in
them. Module constants, defaults and decorators are not mutated, and neither are assertions, logger calls, and the
exceptions that `raise` statements raise.
"""

from __future__ import annotations

import ast
import gc
import inspect
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType

#: The name of the built-in function that probes call.
PROBE = "__saros_probe__"
#: Names that loggers have.
LOGGERS = {"log", "logger", "logging", "_log", "_logger"}
EXCHANGED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
RENAMED = {
    "min": "max", "max": "min", "any": "all", "all": "any", "bisect_left": "bisect_right", "bisect_right": "bisect_left"
}  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one statement. `before` and `after` are the statement, or its first line if it is compound."""

    file: str
    function: str
    before: str
    after: str
    operator: str
    #: The line of the statement.
    line: int
    #: The index of the change among all changes of the file.
    number: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The mutant's identity, which does not depend on changes elsewhere in the file."""
        return self.file, self.function, self.before, self.after


@dataclass(frozen=True, slots=True)
class Change:
    """A possible change to a tree: new content for a field of a node."""

    function: str
    statement: ast.stmt
    operator: str
    owner: ast.AST
    field: str
    #: The index in the field, if the field is a list.
    index: int | None
    node: ast.AST

    @contextmanager
    def made(self) -> Iterator[None]:
        """Make the change, and undo it at the end of the context."""
        before = self._put(self.node)
        try:
            yield
        finally:
            self._put(before)

    def texts(self) -> tuple[str, str]:
        """Return the statement's first line before and after the change or, if that is equal, only the changed part."""
        part = getattr(self.owner, self.field)
        part = part if self.index is None else part[self.index]
        before = _first_line(self.statement)
        with self.made():
            after = _first_line(self.node if part is self.statement else self.statement)
        return (before, after) if before != after else (ast.unparse(part), ast.unparse(self.node))

    def _put(self, node: ast.AST) -> ast.AST:
        held = getattr(self.owner, self.field)
        if self.index is None:
            setattr(self.owner, self.field, node)
            return held
        before, held[self.index] = held[self.index], node
        return before


# ---------------------------------------------------------------------------------------------- what is changed


def replacements(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names of mutation operators, each with a replacement for `node`."""
    if isinstance(node, ast.stmt):
        yield from _of_statement(node)
    elif isinstance(node, ast.expr):
        yield from _of_expression(node)


def _of_statement(node: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    match node:
        case ast.AugAssign(target, op, value) if type(op) in EXCHANGED:
            yield "arithmetic", ast.AugAssign(target, EXCHANGED[type(op)](), value)
        case ast.If(test, body, orelse) if _is_plain(test):
            yield "condition", ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.Continue():
            yield "jump", ast.Break()
        case ast.Break():
            yield "jump", ast.Continue()
        case ast.Return(value) if not isinstance(value, ast.Constant | None):
            yield "return", ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call()):
            yield "removed call", ast.Pass()
        case ast.Raise():
            yield "removed raise", ast.Pass()
        case ast.Assign([ast.Attribute() | ast.Subscript()]) | ast.Delete():
            yield "removed assignment", ast.Pass()


def _of_expression(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Compare(left, ops, comparators):
            for place, op in enumerate(ops):
                others = [*ops[:place], EXCHANGED[type(op)](), *ops[place + 1 :]]
                yield "comparison", ast.Compare(left, others, comparators)
        case ast.BoolOp(op, values):
            yield "and or", ast.BoolOp(EXCHANGED[type(op)](), values)
        case ast.BinOp(left, op, right) if type(op) in EXCHANGED:
            yield "arithmetic", ast.BinOp(left, EXCHANGED[type(op)](), right)
        case ast.UnaryOp(ast.Not(), operand):
            yield "not", operand
        case ast.IfExp(test, body, orelse) if _is_plain(test):
            yield "condition", ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.Constant(bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(int(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Name(id) if id in RENAMED:
            yield "function", ast.Name(RENAMED[id], ast.Load())


def _is_plain(test: ast.expr) -> bool:
    """Return whether a mutant negates the condition; comparisons, `and`, `or` and `not` have other mutants instead."""
    return not isinstance(test, ast.Compare | ast.BoolOp) and not (
        isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    )


def _is_left_alone(node: ast.AST) -> bool:
    """Return whether the node is never mutated, such as an assertion, f-string, signature, docstring or logger call."""
    match node:
        case ast.Assert() | ast.JoinedStr() | ast.arguments() | ast.Expr(ast.Constant()) | ast.keyword(arg="strict"):
            return True
        case ast.Expr(ast.Call(func)):
            names = {part.id if isinstance(part, ast.Name) else part.attr for part in _names(func)}
            return bool(names & LOGGERS)
    return False


def _has_super(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "super" for part in ast.walk(node))


def _first_line(statement: ast.AST) -> str:
    return ast.unparse(statement).partition("\n")[0]


def _names(node: ast.expr) -> Iterator[ast.Name | ast.Attribute]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute))


#: Fields whose contents are not mutated.
SKIPPED = {"annotation", "returns", "decorator_list", "exc", "cause", "ctx", "pattern"}


def changes(tree: ast.Module) -> Iterator[Change]:
    """Yield all changes of the tree's functions."""
    for name, function in functions(tree):
        for field, index, child in _children(function):
            yield from _changes_of(name, function, function, field, index, child)


def _changes_of(
    name: str, statement: ast.stmt, owner: ast.AST, field: str, index: int | None, node: ast.AST
) -> Iterator[Change]:
    if _is_left_alone(node):
        return
    if isinstance(node, ast.stmt):
        statement = node
    if name.endswith("__init__") and isinstance(node, ast.Assign):  # without it, everything fails
        replaced: Iterable[tuple[str, ast.AST]] = ()
    elif field == "comparators" and isinstance(owner, ast.Compare) and isinstance(owner.ops[-1], ast.GtE | ast.Lt):
        replaced = ()  # for integers, comparing with 1 more equals exchanging the operator
    else:
        replaced = replacements(node)
    for operator, other in replaced:
        if _has_super(node) != _has_super(other):  # `super()` needs a variable that the code must keep
            continue
        ast.copy_location(other, node)
        yield Change(name, statement, operator, owner, field, index, ast.fix_missing_locations(other))
    for child_field, child_index, child in _children(node):
        yield from _changes_of(name, statement, node, child_field, child_index, child)


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field in SKIPPED:
            continue
        if isinstance(value, ast.AST):
            yield field, None, value
        elif isinstance(value, list):
            yield from ((field, place, item) for place, item in enumerate(value) if isinstance(item, ast.AST))


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield (qualified name, function) for the functions of a module and of its classes, if the name is unique."""

    def within(prefix: str, body: list[ast.stmt]) -> Iterator[tuple[str, Function]]:
        for node in body:
            if isinstance(node, Function):
                yield prefix + node.name, node
            elif isinstance(node, ast.ClassDef):
                yield from within(f"{prefix}{node.name}.", node.body)

    found = list(within("", tree.body))
    seen = Counter(name for name, _ in found)
    return ((name, node) for name, node in found if seen[name] == 1)


# ---------------------------------------------------------------------------------------------- mutants of a file


@lru_cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def mutants(root: Path, file: str) -> list[Mutant]:
    """Return the mutants of a file below `root`. The second of two changes that look the same gets a `(2)`."""
    found, seen = [], Counter[tuple[str, str, str]]()
    for number, change in enumerate(changes(_tree(root / file))):
        before, after = change.texts()
        same = (change.function, before, after)
        seen[same] += 1
        if seen[same] > 1:
            after += f" ({seen[same]})"
        found.append(Mutant(file, change.function, before, after, change.operator, change.statement.lineno, number))
    return found


def mutated_code(root: Path, mutant: Mutant) -> CodeType:
    """Return the code of the mutant's function."""
    tree = _tree(root / mutant.file)
    change = next(itertools.islice(changes(tree), mutant.number, None))
    with change.made():
        return _codes(tree, root / mutant.file)[mutant.function]


def probed_code(root: Path, file: str, number: int) -> dict[str, CodeType]:
    """Return the code of all functions with a probe before each statement: a call of `PROBE` with (`number`, line)."""
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    for _, function in functions(tree):
        for node in list(ast.walk(function)):
            for field, value in ast.iter_fields(node):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    setattr(node, field, [each for stmt in value for each in (_probe(number, stmt), stmt)])
    return _codes(ast.fix_missing_locations(tree), root / file)


def _probe(number: int, statement: ast.stmt) -> ast.stmt:
    call = ast.Call(ast.Name(PROBE, ast.Load()), [ast.Constant((number, statement.lineno))], [])
    return ast.copy_location(ast.Expr(call), statement)


def _codes(tree: ast.Module, file: Path) -> dict[str, CodeType]:
    """Return the code objects of the functions by qualified name; if several have the same name, the last one."""
    found: dict[str, CodeType] = {}

    def within(code: CodeType) -> None:
        for each in code.co_consts:
            if isinstance(each, CodeType):
                if each.co_flags & inspect.CO_OPTIMIZED:
                    found[each.co_qualname] = each
                else:  # the body of a class
                    within(each)

    within(compile(tree, str(file), "exec", dont_inherit=True))
    return found


def live_functions(files: Collection[Path]) -> dict[tuple[str, str], FunctionType]:
    """Return the functions of the running program that are defined in the files, by file and qualified name."""
    names = {str(file) for file in files}
    return {
        (each.__code__.co_filename, each.__code__.co_qualname): each
        for each in gc.get_objects()
        if isinstance(each, FunctionType) and each.__code__.co_filename in names
    }
