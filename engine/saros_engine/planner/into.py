"""SELECT INTO: find the target series of each result column (`targets_of`; for CREATE VIEW, `targets_by_column`).

    into root.x.d(a, b)              one target per column, in order
    into root.x.::(::)               `::` is replaced by the source's nodes from that position on, or its measurement
    into root.x_${1}.d(m_${3})       `${i}` is replaced by node i of the source; root is node 0

If the statement refers to a series by its alias, placeholders use the alias as the series' measurement. With ALIGN BY
DEVICE, INTO has one item for each device, in order, or one item with placeholders for all devices. Each item lists the
measurements for the columns, in order. A single measurement with a placeholder applies to all columns. A column can
fill placeholders only if it is a series and not computed. However, with ALIGN BY DEVICE, the source device fills the
placeholders in the path of the target device, even if the column is computed.

Pure: any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from saros_engine.base.errors import SemanticError
from saros_engine.planner.context import LogicalPlan
from saros_grammar.syntax.ast import Expression, Into, IntoItem, PathExpression, Select
from saros_grammar.syntax.literals import quote_name, unquote_name
from saros_storage.base.paths import split_path

_PLACE = re.compile(r"\$\{(\d+)\}")


class Target(msgspec.Struct, frozen=True):
    """The series to which column `column` is written. If `source` is given, only rows of this device are written."""

    source: str | None
    column: int
    device: str
    measurement: str
    aligned: bool


def targets_of(select: Select, plan: LogicalPlan) -> tuple[Target, ...]:
    """Return the targets in the order of the columns.

    For ALIGN BY DEVICE, return them device by device. Without columns, return ().

    Raises SemanticError.
    """
    with _prefix_errors("select into"):
        return _targets(select, plan)


def targets_by_column(items: Sequence[IntoItem], sources: Sequence[Expression]) -> tuple[Target, ...]:
    """Return the targets of columns with these expressions. Raises SemanticError."""
    with _prefix_errors("create view"):
        found = _by_column(items, sources)
        _check(found)
        return tuple(found)


@contextmanager
def _prefix_errors(statement: str) -> Iterator[None]:
    try:
        yield
    except SemanticError as error:
        raise SemanticError(f"{statement}: {error}") from error


def _targets(select: Select, plan: LogicalPlan) -> tuple[Target, ...]:
    assert select.into is not None
    _check_clauses(select)
    if not plan.sources:
        return ()
    sources = [_called(source, alias) for source, alias in zip(plan.sources, plan.aliases, strict=True)]
    found: list[Target] = []
    if select.align_by_device:
        items = _items_by_device(select.into, plan.devices)
        for device, item in zip(plan.devices, items, strict=True):
            pairs = _pairs_by_column([(item, m) for m in item.measurements], sources)
            found += [_of_device(device, n, *pair, sources[n]) for n, pair in enumerate(pairs)]
    else:
        found = _by_column(select.into.items, sources)
    _check(found)
    return tuple(found)


def _called(source: Expression, alias: str | None) -> Expression:
    if alias is None or not isinstance(source, PathExpression):
        return source
    return PathExpression((*source.nodes[:-1], quote_name(alias)))


def source_columns(select: Select, plan: LogicalPlan) -> list[str]:
    """Return the names of the source columns: their expressions for ALIGN BY DEVICE, and otherwise their headers."""
    names = [field.name for field in plan.fields[len(plan.fields) - len(plan.sources) :]]
    if not select.align_by_device:
        return names
    pairs = zip(names, plan.sources, plan.aliases, strict=True)
    return [name if alias is None else str(source) for name, source, alias in pairs]


def _by_column(items: Sequence[IntoItem], sources: Sequence[Expression]) -> list[Target]:
    pairs = _pairs_by_column([(item, m) for item in items for m in item.measurements], sources)
    return [_of_series(n, *pair, sources[n]) for n, pair in enumerate(pairs)]


def _check_clauses(select: Select) -> None:
    for given, what in (
        (select.slimit is not None or select.soffset is not None, "SLIMIT and SOFFSET"),
        (select.last, "LAST"),
        (bool(select.tag_keys), "GROUP BY TAGS"),
    ):
        if given:
            raise SemanticError(f"{what} cannot be combined with INTO")


def _check(targets: Sequence[Target]) -> None:
    seen: set[tuple[str, str]] = set()
    aligned: dict[str, bool] = {}
    for target in targets:
        if (target.device, target.measurement) in seen:
            path = f"{target.device}.{target.measurement}"
            raise SemanticError(f"target paths should be different, but {path} is there twice")
        seen.add((target.device, target.measurement))
        if aligned.setdefault(target.device, target.aligned) != target.aligned:
            raise SemanticError(
                f"{target.device} is ALIGNED in one item but not in another: write ALIGNED for all or none"
            )


# ---------------------------------------------------------------------------------------------- items


def _has_place(text: str) -> bool:
    return text == "::" or _PLACE.search(text) is not None


def _items_by_device(into: Into, devices: Sequence[str]) -> Sequence[IntoItem]:
    if len(into.items) == 1 and any(map(_has_place, into.items[0].device)):
        return into.items * len(devices)
    if len(into.items) > 1 and any(_has_place(node) for item in into.items for node in item.device):
        raise SemanticError("INTO takes several items or one device with placeholders, not both")
    if len(into.items) != len(devices):
        raise SemanticError(
            f"the number of source devices ({len(devices)}) and target devices ({len(into.items)}) should be the same"
        )
    return into.items


def _pairs_by_column(pairs: list[tuple[IntoItem, str]], sources: Sequence[Expression]) -> list[tuple[IntoItem, str]]:
    """Return one pair per column."""
    for item, measurement in pairs:
        if _has_place(measurement) and len(item.measurements) > 1:
            raise SemanticError(f"{measurement} must be alone in its parentheses: it stands for all columns")
    if len(pairs) == 1 and _has_place(pairs[0][1]):
        return pairs * len(sources)
    if len(pairs) != len(sources):
        raise SemanticError(
            f"the number of source columns ({len(sources)}) and target paths ({len(pairs)}) should be the same"
        )
    return pairs


# ---------------------------------------------------------------------------------------------- placeholders


def _of_series(column: int, item: IntoItem, measurement: str, source: Expression) -> Target:
    nodes: tuple[str, ...] = ()
    if any(map(_has_place, (*item.device, measurement))):
        nodes = _series_nodes(source)
    device = _device(item.device, nodes, nodes[:-1])
    return Target(None, column, device, _measurement(measurement, nodes), item.aligned)


def _of_device(device: str, column: int, item: IntoItem, measurement: str, source: Expression) -> Target:
    nodes = split_path(device)
    series = (*nodes, *_series_nodes(source)) if _has_place(measurement) else ()
    return Target(device, column, _device(item.device, nodes, nodes), _measurement(measurement, series), item.aligned)


def _series_nodes(source: Expression) -> tuple[str, ...]:
    if not isinstance(source, PathExpression):
        raise SemanticError(f"placeholders need a series, but {source} is computed: name its target")
    return source.nodes


def _device(template: Sequence[str], nodes: Sequence[str], device: Sequence[str]) -> str:
    found: list[str] = []
    for node in template:
        found += device[len(found) :] if node == "::" else [_filled(node, nodes)]
    return ".".join(found)


def _measurement(template: str, nodes: Sequence[str]) -> str:
    return nodes[-1] if template == "::" else _filled(template, nodes)


def _filled(template: str, nodes: Sequence[str]) -> str:
    def node(match: re.Match[str]) -> str:
        number = int(match[1])
        if number >= len(nodes):
            raise SemanticError(f"{match[0]} is beyond {'.'.join(nodes)}, whose last node is ${{{len(nodes) - 1}}}")
        return unquote_name(nodes[number])

    if template.startswith("`") or not _has_place(template):
        return template
    return quote_name(_PLACE.sub(node, template))
