"""Convert the columns of a batch to the types of their series. A column is refused if a value would be lost.

Columns are widened to the series' type. Series of integers accept a column of floats if all its values are integral,
because data frames store integers with gaps as floats. If a series has a declared number of decimals, its values are
rounded here, so that the log, memory and files have the same values.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from saros_engine.catalog.templates import Template
from saros_engine.expressions.conversion import check_conversion, convert, exact_integers, rounded
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DEFAULT_COMPRESSOR, DEFAULT_ENCODING, FLOATING_TYPES, INTEGER_TYPES, DataType
from saros_storage.schema import SeriesSchema

TYPE_MISMATCH = 507
#: The types of series that accept batch columns of each type.
_ACCEPTED: dict[DataType, frozenset[DataType]] = {
    DataType.INT32: frozenset({DataType.INT64, DataType.FLOAT, DataType.DOUBLE}),
    DataType.INT64: frozenset({DataType.DOUBLE, DataType.TIMESTAMP, DataType.INT32, DataType.FLOAT}),
    DataType.FLOAT: frozenset({DataType.DOUBLE}),
    DataType.DOUBLE: frozenset({DataType.FLOAT}),
    DataType.TEXT: frozenset({DataType.STRING}),
    DataType.STRING: frozenset({DataType.TEXT}),
    DataType.TIMESTAMP: frozenset({DataType.INT64}),
}
#: The number of cached sets of series for new devices.
_SERIES_SETS_MAX = 4_096


def new_series(measurement: str, type_: DataType, tags: Mapping[str, str] = MappingProxyType({})) -> SeriesSchema:
    """Return a new series with the default encoding of its type and the default compressor."""
    return SeriesSchema(measurement, type_, DEFAULT_ENCODING[type_], DEFAULT_COMPRESSOR, tags=tags)


@lru_cache(_SERIES_SETS_MAX)
def new_series_of_all(measurements: tuple[str, ...], types: tuple[DataType, ...]) -> tuple[SeriesSchema, ...]:
    """Return new series with default encodings and compressor; devices with the same series share the result."""
    return tuple(map(new_series, measurements, types))


def points_of(columns: Sequence[Column]) -> int:
    """Return the number of points in columns."""
    return sum([column.present_count for column in columns])


def with_points(columns: Mapping[str, Column]) -> Mapping[str, Column]:
    """Return the columns that contain a value. If all columns do, return the same mapping."""
    absent = {name for name, column in columns.items() if column.valid is not None and not column.valid.any()}
    return {name: column for name, column in columns.items() if name not in absent} if absent else columns


def series_of_template(template: Template | None, name: str) -> SeriesSchema | None:
    """Return the template's series with a name, if there is one."""
    return None if template is None else template.find(name)


def check_duplicates(own: Sequence[str], names: Sequence[str]) -> None:
    """Raise UserMistake 701 if two of the statement's `names` denote the same series; `own` are their measurements."""
    if len(set(own)) < len(own):
        raise UserMistake(f"INSERT names a measurement twice: {', '.join(names)}", code=701)


def missing_series(path: str) -> str:
    """Return the reason why a value of a series that does not exist is refused, and the next step."""
    return f"{path} does not exist, and auto_create_schema is off: create it first"


def fit_all(
    device: str, wanted: Sequence[SeriesSchema | None], columns: Sequence[Column], *, partial: bool
) -> tuple[Sequence[Column | None], Sequence[str]]:
    """Convert columns to their series' types. If `partial`, columns that do not fit become None, each with a reason.

    Raises UserMistake 507, or 2008 with a value that would be lost.
    """
    fitted, misfits = list[Column | None](), list[str]()
    for series, column in zip(wanted, columns, strict=True):
        try:
            fitted.append(column if series is None else _fit(device, series, column))
        except UserMistake as error:
            if not partial:
                raise
            fitted.append(None)
            misfits.append(str(error))
    return fitted, misfits


def without_new(
    device: str, names: Sequence[str], found: Sequence[SeriesSchema | None], columns: Sequence[Column | None]
) -> tuple[Sequence[Column | None], Sequence[str]]:
    """Replace the columns whose series (`found`) do not exist by None; also return a reason for each of them."""
    reasons = [missing_series(f"{device}.{name}") for name, series in zip(names, found, strict=True) if series is None]
    return [None if series is None else c for series, c in zip(found, columns, strict=True)], reasons


def _fit(device: str, series: SeriesSchema, column: Column) -> Column:
    """Convert a column to the series' type. Raises UserMistake 507, or 2008 with a value that would be lost."""
    if column.type is series.type:
        return as_declared(series, column)
    mismatch = f"{device}.{series.measurement} is {series.type.name}: a column of {column.type.name} does not fit"
    if column.type in FLOATING_TYPES and series.type in INTEGER_TYPES:
        try:
            return exact_integers(column, series.type)
        except UserMistake as error:
            raise UserMistake(f"{mismatch}: {error}", code=error.code) from error
    if series.type not in _ACCEPTED.get(column.type, frozenset()):
        raise UserMistake(mismatch, code=TYPE_MISMATCH)
    check_conversion(column.type, series.type)
    try:
        converted = convert(column, series.type)
    except UserMistake as error:
        message = f"{device}.{series.measurement}: {str(error).removeprefix('CAST: ')}"
        raise UserMistake(message, code=error.code) from error
    return as_declared(series, converted)


def as_declared(series: SeriesSchema, column: Column) -> Column:
    """Round a column to the series' decimals, if declared. The result is then a new column, so no shape is cached."""
    return column if series.decimals is None else rounded(column, series.decimals)
