"""Compute a series with the tags, attributes and alias that ALTER TIMESERIES gives to it. Pure: any thread."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from saros_grammar.syntax.ast import AlterKind, AlterTimeseries
from saros_storage.base.errors import UserMistake
from saros_storage.schema import SeriesSchema

_METADATA = 507


def altered(series: SeriesSchema, statement: AlterTimeseries) -> SeriesSchema:
    """Return the series with the changes of the statement. Raises UserMistake 507."""
    return _ALTER[statement.kind](series, statement)


def _rename(series: SeriesSchema, statement: AlterTimeseries) -> SeriesSchema:
    for old, new in statement.names:
        if old not in series.tags and old not in series.attributes:
            raise UserMistake(f"{statement.path} has no tag or attribute {old}", code=_METADATA)
        if new in series.tags or new in series.attributes:
            raise UserMistake(f"{statement.path} already has a tag or attribute {new}", code=_METADATA)
        series = replace(
            series,
            tags={new if k == old else k: v for k, v in series.tags.items()},
            attributes={new if k == old else k: v for k, v in series.attributes.items()},
        )
    return series


def _set(series: SeriesSchema, statement: AlterTimeseries) -> SeriesSchema:
    tags, attributes = dict(series.tags), dict(series.attributes)
    for key, value in statement.names:
        if key in tags:
            tags[key] = value
        elif key in attributes:
            attributes[key] = value
        else:
            raise UserMistake(f"{statement.path} has no tag or attribute {key}", code=_METADATA)
    return replace(series, tags=tags, attributes=attributes)


def _drop(series: SeriesSchema, statement: AlterTimeseries) -> SeriesSchema:
    gone = {key for key, _ in statement.names}
    return replace(
        series,
        tags={k: v for k, v in series.tags.items() if k not in gone},
        attributes={k: v for k, v in series.attributes.items() if k not in gone},
    )


def _add_tags(series: SeriesSchema, statement: AlterTimeseries) -> SeriesSchema:
    _check_new(series.tags, statement.tags, statement)
    return replace(series, tags={**series.tags, **dict(statement.tags)})


def _add_attributes(series: SeriesSchema, statement: AlterTimeseries) -> SeriesSchema:
    _check_new(series.attributes, statement.attributes, statement)
    return replace(series, attributes={**series.attributes, **dict(statement.attributes)})


def _check_new(known: Mapping[str, str], added: tuple[tuple[str, str], ...], statement: AlterTimeseries) -> None:
    for key, _ in added:
        if key in known:
            raise UserMistake(f"{statement.path} already has {key}: use SET or UPSERT", code=_METADATA)


def _upsert(series: SeriesSchema, statement: AlterTimeseries) -> SeriesSchema:
    return replace(
        series,
        alias=series.alias if statement.alias is None else statement.alias,
        tags={**series.tags, **dict(statement.tags)},
        attributes={**series.attributes, **dict(statement.attributes)},
    )


_ALTER = {
    AlterKind.RENAME: _rename,
    AlterKind.SET: _set,
    AlterKind.DROP: _drop,
    AlterKind.ADD_TAGS: _add_tags,
    AlterKind.ADD_ATTRIBUTES: _add_attributes,
    AlterKind.UPSERT: _upsert,
}
