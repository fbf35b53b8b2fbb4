"""The builder of CREATE and ALTER TIMESERIES.

    create timeseries root.a.b INT32 encoding=PLAIN compressor=LZ4
    create timeseries root.a.b(alias) with datatype=INT32, encoding=RLE tags(k=v) attributes(k=v)
    create aligned timeseries root.a(b INT32 encoding=RLE, c(alias) TEXT)

The functions get the ExpressionBuilder of one statement. Parse-tree contexts are generated code without types, so they
are `Any` here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from saros_grammar.builders.expressions import ExpressionBuilder
from saros_grammar.generated.Sql import Sql
from saros_grammar.syntax.ast import (
    AlterKind,
    AlterStorage,
    AlterTimeseries,
    CreateTimeseries,
    PathExpression,
    SeriesColumn,
)
from saros_grammar.syntax.literals import canonical_name, quote_name, unquote_name, unquote_string

_Pairs = tuple[tuple[str, str], ...]

#: The options of CREATE TIMESERIES, with their names in the statement. All other names are properties.
_OPTIONS = {"datatype": "datatype", "encoding": "encoding", "compression": "compressor", "compressor": "compressor"}


def create_series(expressions: ExpressionBuilder, path: PathExpression, context: Any) -> CreateTimeseries:
    """Build CREATE TIMESERIES for `path` from a `createSeries` context. Raises ParseError."""
    if len(path.nodes) < 2:
        raise expressions.error(context.exactPath(), "a series needs a device and a measurement: root.sg.d1.s1")
    measurement = context.exactPath().nodes[-1]
    if measurement.name() is None:  # in an INSERT, the column with this name has the times
        word = expressions.raw(measurement)
        message = f"a measurement called {word} needs back-quotes: `{word}`"
        raise expressions.error(measurement, message, ("a name",))
    return CreateTimeseries(PathExpression(path.nodes[:-1]), (column(expressions, path.nodes[-1], context),))


def create_aligned(expressions: ExpressionBuilder, device: PathExpression, context: Any) -> CreateTimeseries:
    """Build CREATE ALIGNED TIMESERIES for `device` from a `createAligned` context. Raises ParseError."""
    columns = tuple(column(expressions, expressions.canonical(c.measurement), c) for c in context.alignedColumn())
    return CreateTimeseries(device, columns, aligned=True)


def column(expressions: ExpressionBuilder, measurement: str, context: Any) -> SeriesColumn:
    """Build a series of CREATE TIMESERIES or of a template from a context with `seriesOptions`. Raises ParseError."""
    options = context.seriesOptions()
    found: dict[str, str] = {}
    properties: list[tuple[str, str]] = []
    first = _text(expressions, options.first)
    if options.value() is not None:
        _option(expressions, options, first, options.value(), found, properties)
    elif first.upper() != "WITH":  # WITH is parsed as a name if a quoted key follows
        found["datatype"] = first
    for pair in options.pair():
        _option(expressions, pair, _text(expressions, pair.key()), pair.value(), found, properties)
    if "datatype" not in found:
        raise expressions.error(options, f"the type of {measurement} is missing", ("a data type",))
    tags, attributes = _labels(expressions, options.labels())
    encoding, compressor = found.get("encoding"), found.get("compressor")
    return SeriesColumn(
        measurement,
        found["datatype"].upper(),
        None if encoding is None else encoding.upper(),
        None if compressor is None else compressor.upper(),
        None if getattr(context, "alias", None) is None else expressions.canonical(context.alias),
        tags,
        attributes,
        tuple(properties),
    )


def _option(
    expressions: ExpressionBuilder,
    place: Any,
    key: str,
    value: Any,
    found: dict[str, str],
    properties: list[tuple[str, str]],
) -> None:
    text = _text(expressions, value)
    name = _OPTIONS.get(key.lower())
    if name is None:
        properties.append((key, text))
    elif name in found:
        raise expressions.error(place, f"{key} is given twice")
    else:
        found[name] = text


def alter(expressions: ExpressionBuilder, path: PathExpression, context: Any) -> AlterTimeseries:
    """Build the statement of an `alteration` context for the series `path`."""
    kind = context.start.type
    if kind == Sql.RENAME:
        names = ((_text(expressions, context.old), _text(expressions, context.new)),)
        return AlterTimeseries(path, AlterKind.RENAME, names)
    if kind == Sql.SET and context.wanted is not None:
        return AlterTimeseries(path, AlterKind.TYPE, type_name=_text(expressions, context.wanted).upper())
    if kind == Sql.SET:
        return AlterTimeseries(path, AlterKind.SET, pairs(expressions, context.pair()))
    if kind == Sql.DROP:
        return AlterTimeseries(path, AlterKind.DROP, tuple((_text(expressions, key), "") for key in context.key()))
    if kind == Sql.ADD:
        added = pairs(expressions, context.pair())
        if context.kind.type == Sql.TAGS:
            return AlterTimeseries(path, AlterKind.ADD_TAGS, tags=added)
        return AlterTimeseries(path, AlterKind.ADD_ATTRIBUTES, attributes=added)
    alias = None if context.alias is None else _alias(expressions, context.alias)
    tags, attributes = _labels(expressions, context.labels())
    return AlterTimeseries(path, AlterKind.UPSERT, alias=alias, tags=tags, attributes=attributes)


def alter_storage(expressions: ExpressionBuilder, paths: tuple[PathExpression, ...], context: Any) -> AlterStorage:
    """Build the statement of an `alterStorage` context for `paths`. Raises ParseError."""
    found: dict[str, str] = {}
    unknown: list[tuple[str, str]] = []
    for pair in context.pair():
        _option(expressions, pair, _text(expressions, pair.key()), pair.value(), found, unknown)
    for name in [*(name for name, _ in unknown), *(name for name in found if name == "datatype")]:
        raise expressions.error(context, f"{name} is not a storage property", ("encoding", "compressor"))
    encoding, compressor = found.get("encoding"), found.get("compressor")
    return AlterStorage(
        paths,
        None if encoding is None else encoding.upper(),
        None if compressor is None else compressor.upper(),
        context.EXISTS() is not None,
    )


def _alias(expressions: ExpressionBuilder, context: Any) -> str:
    text = expressions.raw(context)
    return quote_name(unquote_string(text)) if text[0] in "'\"" else canonical_name(text)


def _labels(expressions: ExpressionBuilder, contexts: Iterable[Any]) -> tuple[_Pairs, _Pairs]:
    """Return tags and attributes. Raises ParseError if an option is given twice."""
    found: dict[int, _Pairs] = {}
    for context in contexts:
        kind = context.kind.type
        if kind in found:
            raise expressions.error(context, f"{context.kind.text.upper()} is given twice")
        found[kind] = pairs(expressions, context.pair())
    return found.get(Sql.TAGS, ()), found.get(Sql.ATTRIBUTES, ())


def pairs(expressions: ExpressionBuilder, contexts: Iterable[Any]) -> _Pairs:
    """Return `k = v` pairs as texts."""
    return tuple((_text(expressions, pair.key()), _text(expressions, pair.value())) for pair in contexts)


def _text(expressions: ExpressionBuilder, context: Any) -> str:
    """Return a name or a string without its quotes, or a number as it is written in the statement."""
    text = expressions.raw(context)
    return unquote_string(text) if text[0] in "'\"" else unquote_name(text)
