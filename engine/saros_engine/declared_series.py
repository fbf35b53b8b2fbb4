"""A series as a statement declares it, with the type's defaults for what it does not say."""

from __future__ import annotations

from collections.abc import Mapping

from saros_engine.errors import NotSupportedError
from saros_grammar.ast import SeriesColumn
from saros_storage.errors import UserMistake
from saros_storage.schema import SeriesSchema
from saros_storage.types import DEFAULT_COMPRESSOR, DEFAULT_ENCODING, Compressor, DataType, Encoding

#: Digits to keep in a lossy encoding: Saros stores such series without loss.
_IGNORED_PROPERTIES = frozenset({"max_point_number"})


def series_of(column: SeriesColumn) -> SeriesSchema:
    """What a column of CREATE TIMESERIES or of a template describes. Raises UserMistake, NotSupportedError."""
    for name, _ in column.properties:
        if name.lower() not in _IGNORED_PROPERTIES:
            raise NotSupportedError(f"property {name} of CREATE TIMESERIES")
    type_ = DataType[_known(column.type_name, DataType.__members__, "data type")]
    encoding, compressor = DEFAULT_ENCODING[type_], DEFAULT_COMPRESSOR
    if column.encoding is not None:
        encoding = Encoding[_known(column.encoding, Encoding.__members__, "encoding")]
    if column.compressor is not None:
        compressor = Compressor[_known(column.compressor, Compressor.__members__, "compressor")]
    return SeriesSchema(
        column.measurement, type_, encoding, compressor, column.alias, dict(column.tags), dict(column.attributes)
    )


def _known(name: str, names: Mapping[str, object], what: str) -> str:
    if name not in names:
        raise UserMistake(f"{what} {name} is unknown: there are {', '.join(names)}", code=701)
    return name
