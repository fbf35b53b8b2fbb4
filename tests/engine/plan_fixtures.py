"""Plans over a small schema as texts, which `test_planner` and `test_optimizer` compare with their fixture files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from saros_engine.base.errors import EngineError
from saros_engine.execution.explain import explain
from saros_engine.expressions.time_filter import TimeContext
from saros_engine.plan.expression import Bound, Constant, FunctionCall, InputColumn, InputTime, Membership, Operation
from saros_engine.plan.plan import Filter, LastScan, Node, Project, QueryPlan, TimeWindows
from saros_engine.planner import LogicalPlan, PlanContext, plan_select
from saros_grammar.parser import parse
from saros_grammar.syntax.ast import Expression, Select
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import Compressor, DataType, Encoding, TimeUnit
from saros_storage.schema import CreateDatabase, CreateSeries, SchemaTree, SeriesSchema

TESTDATA = Path(__file__).parent / "testdata"
NOW = 1_000_000


def series(name: str, type_: DataType, alias: str | None = None) -> SeriesSchema:
    return SeriesSchema(name, type_, Encoding.PLAIN, Compressor.LZ4, alias)


def plant() -> SchemaTree:
    """Return a schema: d1 and d2 are not aligned, d3 is aligned; d2 lacks s2; tx is TEXT; some names need quotes."""
    tree = SchemaTree()
    double, int64, text = DataType.DOUBLE, DataType.INT64, DataType.TEXT
    for change in (
        CreateDatabase("root.a"),
        CreateDatabase("root.odd"),
        CreateSeries("root.a.d1", False, (series("s1", int64), series("s2", double, "heat"), series("tx", text))),
        CreateSeries("root.a.d2", False, (series("s1", int64), series("s3", double))),
        CreateSeries("root.a.d3", True, (series("s1", int64), series("s2", double), series("f", DataType.FLOAT))),
        CreateSeries("root.odd.`x.*`", False, (series("`p q`", double),)),
        CreateSeries("root.odd.`x-z`", False, (series("`p q`", double),)),
        CreateSeries("root.odd.mixed", False, (series("s1", double),)),
    ):
        tree.check(change)
        tree.apply(change)
    return tree


PLANT = plant()
MOMENT = TimeContext("UTC", TimeUnit.MILLISECOND, NOW)


def select_of(text: str) -> Select:
    statement = parse(text).statement
    assert isinstance(statement, Select)
    return statement


def expression_of(text: str) -> Expression:
    """Return the syntax tree of an expression in WHERE."""
    where = select_of(f"select s1 from root.a.d1 where {text}").where
    assert where is not None
    return where


def plan(text: str, moment: TimeContext = MOMENT) -> LogicalPlan:
    return plan_select(select_of(text), PlanContext(PLANT, moment))


def shown_plan(text: str) -> str:
    """Return the header and the tree of a statement's plan, or the error."""
    try:
        found = plan(text)
    except (EngineError, UserMistake) as error:
        return f"{error.code}: {error}"
    header = ["Time"] * found.timed + [f"{field.name} {field.type.name}" for field in found.fields]
    return "\n".join([" | ".join(header), *tree(found.root)])


def tree(root: Node) -> list[str]:
    """Return the plan as shown by EXPLAIN, with the expressions that EXPLAIN omits."""
    lines = explain(QueryPlan((), True, root, ()))[1:]
    details = _details(root)
    return [line[2:] + next(details) for line in lines]


def _details(node: Node) -> Iterator[str]:
    """Yield the texts to append to the lines of the nodes, in the order of the lines."""
    if isinstance(node, Filter):
        yield f"  {written(node.predicate)}"
    elif isinstance(node, Project):
        yield "  = " + ", ".join(written(e) for e in node.expressions)
    elif isinstance(node, LastScan) and node.predicate is not None:
        yield f"  where {written(node.predicate)}"
    elif isinstance(windows := getattr(node, "windows", None), TimeWindows):
        yield (
            "  every "
            + _step(windows.step_ticks, windows.step_months)
            + (
                ""
                if (windows.interval_ticks, windows.interval_months) == (windows.step_ticks, windows.step_months)
                else " for " + _step(windows.interval_ticks, windows.interval_months)
            )
            + ("  labelled by the end" if windows.label_end else "")
        )
    else:
        yield "  by time" if getattr(node, "by_time", False) else ""
    children = getattr(node, "children", None) or [getattr(node, "child", None)]
    for child in children:
        if child is not None:
            yield from _details(child)


def _step(ticks: int, months: int) -> str:
    return f"{months} months" if months else f"{ticks}"


def written(bound: Bound) -> str:
    """Return the text of a bound expression; columns are #0, #1, ..."""
    match bound:
        case InputColumn(index):
            return f"#{index}"
        case InputTime():
            return "time"
        case Constant(value, type_):
            return f"null {type_.name}" if value is None else repr(value)
        case Operation(operator, left, right):
            return f"({written(left)} {operator.value} {written(right)})"
        case FunctionCall(name, arguments):
            return f"{name}({', '.join(map(written, arguments))})"
        case Membership(operand, items, negated):
            return f"{written(operand)} {'not ' * negated}in {list(items)}"
        case _:
            return f"{type(bound).__name__}({written(bound.operand)})" if hasattr(bound, "operand") else str(bound)


def cases(name: str) -> list[tuple[str, str]]:
    """Return (statement, output) of each case; in the file, a line `----` separates them, and an empty line follows."""
    found = []
    for block in (TESTDATA / name).read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.strip("\n").splitlines() if not line.startswith("#")]
        if lines:
            text, _, output = "\n".join(lines).partition("\n----\n")
            found.append((text, output))
    return found
