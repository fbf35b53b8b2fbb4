"""Statements about series. `ast` exports the classes. Pure data."""

from __future__ import annotations

from enum import Enum

import msgspec

from saros_grammar.syntax.expression_tree import PathExpression


class SeriesColumn(msgspec.Struct, frozen=True):
    """One series of CREATE TIMESERIES. Names of types are in upper case. Options that are not given are None."""

    measurement: str
    type_name: str
    encoding: str | None = None
    compressor: str | None = None
    alias: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    #: Other `key=value` pairs of WITH (decimals, deadband), whose names the engine checks.
    properties: tuple[tuple[str, str], ...] = ()


class CreateTimeseries(msgspec.Struct, frozen=True):
    """CREATE TIMESERIES device.measurement ...; CREATE ALIGNED TIMESERIES device(m type ..., ...)."""

    device: PathExpression
    columns: tuple[SeriesColumn, ...]
    aligned: bool = False


class DeleteTimeseries(msgspec.Struct, frozen=True):
    """DELETE / DROP TIMESERIES patterns."""

    paths: tuple[PathExpression, ...]


class AlterKind(Enum):
    """The forms of ALTER TIMESERIES."""

    RENAME = "rename"  # names = ((old, new),)
    SET = "set"
    DROP = "drop"  # keys in names as (key, "")
    ADD_TAGS = "add tags"
    ADD_ATTRIBUTES = "add attributes"
    UPSERT = "upsert"
    TYPE = "type"


class AlterTimeseries(msgspec.Struct, frozen=True):
    """ALTER TIMESERIES path (RENAME a TO b | SET k=v | SET DATA TYPE t | DROP k | ADD TAGS, ATTRIBUTES | UPSERT)."""

    path: PathExpression
    kind: AlterKind
    names: tuple[tuple[str, str], ...] = ()
    alias: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    type_name: str | None = None


class AlterStorage(msgspec.Struct, frozen=True):
    """ALTER TIMESERIES [IF EXISTS] path, ... SET STORAGE_PROPERTIES encoding=e, compressor=c. None changes nothing."""

    paths: tuple[PathExpression, ...]
    encoding: str | None = None
    compressor: str | None = None
    if_exists: bool = False
