"""Conversion of the values of an INSERT statement to columns for its device.

The first value for a series that does not exist determines its type: BOOLEAN for true and false, TEXT for quoted text,
and the types of `AutomaticSchema` for numbers. Values that do not fit their series, or that have no series and may not
create one, are left out, and the error names them.

Pure: any thread.
"""

from __future__ import annotations

import msgspec

from saros_engine.catalog.templates import Template
from saros_engine.expressions.literal_values import column_of_literals, inferred_type
from saros_engine.expressions.time_filter import TimeContext, constant_time
from saros_engine.writes.automatic_schema import AutomaticSchema
from saros_engine.writes.fitting import as_declared, check_duplicates, missing_series, new_series, series_of_template
from saros_grammar.syntax.ast import Expression, Insert, Literal, LiteralKind
from saros_storage.base.block import Column
from saros_storage.base.paths import join_nodes
from saros_storage.schema import DeviceSchema, SeriesSchema


class InsertValues(msgspec.Struct):
    """The columns to write for an INSERT, the series to create, and texts about values that do not fit."""

    names: list[str] = msgspec.field(default_factory=list)
    columns: list[Column] = msgspec.field(default_factory=list)
    missing: list[SeriesSchema] = msgspec.field(default_factory=list)
    #: A text for each measurement with values that do not fit.
    misfits: list[str] = msgspec.field(default_factory=list)


def values_in(statement: Insert) -> int:
    """Return the number of values of an INSERT that are not null."""
    values = [value for row in statement.rows for value in row]
    return sum(not (isinstance(value, Literal) and value.kind is LiteralKind.NULL) for value in values)


def values_of(
    statement: Insert,
    known: DeviceSchema | None,
    template: Template | None,
    moment: TimeContext,
    automatic: AutomaticSchema,
) -> InsertValues:
    """Convert the statement's values to columns for a device whose schema is `known`."""
    found = InsertValues()
    met: list[str] = []
    for place, name in enumerate(statement.measurements):
        literals = [_literal(row[place], moment) for row in statement.rows]
        series = None if known is None else known.find(name)
        met.append(name if series is None else series.measurement)
        created = None
        if series is None:
            type_ = inferred_type(literals, automatic.integers, automatic.decimals)
            if type_ is None:
                continue
            if not automatic.is_on:
                found.misfits.append(missing_series(join_nodes((*statement.device.nodes, name))))
                continue
            series = created = series_of_template(template, name) or new_series(name, type_)
        column, misfits = column_of_literals(literals, series.type, moment.zone, moment.unit)
        if misfits is not None:
            found.misfits.append(name + misfits)
            if not column.present.any():
                continue
        found.names.append(series.measurement)
        found.columns.append(as_declared(series, column))
        if created is not None:
            found.missing.append(created)
    check_duplicates(met, statement.measurements)
    return found


def _literal(value: Expression, moment: TimeContext) -> Literal:
    """Return a value as a literal. An expression such as now() is computed, and becomes a time."""
    if isinstance(value, Literal):
        return value
    return Literal(LiteralKind.TIME, constant_time(value, moment), str(value))
