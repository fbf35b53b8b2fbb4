"""Changes of a series' type (SET DATA TYPE): the types to which it can change, and the conversion of its points.

    from          to                                          value
    INT32         INT64 TIMESTAMP FLOAT DOUBLE TEXT STRING    the same number, FLOAT: the nearest; or its digits
    INT64         TIMESTAMP DOUBLE TEXT STRING                the same number, DOUBLE: the nearest; or its digits
    TIMESTAMP     INT64 DOUBLE TEXT STRING                    as INT64
    FLOAT         DOUBLE TEXT STRING                          the same number; or its shortest digits
    DOUBLE        TEXT STRING                                 its shortest digits
    BOOLEAN DATE  TEXT STRING                                 true, false; YYYY-MM-DD
    TEXT STRING BLOB                  each other              the same bytes

A change of type does not rewrite stored points. Files and MemTables keep the type with which points were written. The
reader is given the current type of the series, and converts the values of each source to it. Compaction stores points
again with a later type, so a point must convert to the same value through every type that the series has had. A change
of type that would violate this rule is refused: INT32 16777217 is DOUBLE 16777217, but 16777216 through FLOAT; 5 is the
text 5, but the text 5.0 through DOUBLE. That is why a series remembers its earlier types (`SeriesSchema.earlier`).

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from saros_storage.base.block import Column
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.text_conversion import format_column
from saros_storage.base.types import INTEGER_TYPES, NUMPY_DTYPE, STRING_TYPES, TEXT_TYPES, DataType, Scalar
from saros_storage.scan.reading import Statistics

#: For each type of a series, the types to which it may change.
_CHANGES: dict[DataType, frozenset[DataType]] = {
    DataType.INT32: STRING_TYPES | {DataType.INT64, DataType.TIMESTAMP, DataType.FLOAT, DataType.DOUBLE},
    DataType.INT64: STRING_TYPES | {DataType.TIMESTAMP, DataType.DOUBLE},
    DataType.TIMESTAMP: STRING_TYPES | {DataType.INT64, DataType.DOUBLE},
    DataType.FLOAT: STRING_TYPES | {DataType.DOUBLE},
    DataType.DOUBLE: STRING_TYPES,
    DataType.BOOLEAN: STRING_TYPES,
    DataType.DATE: STRING_TYPES,
    DataType.TEXT: frozenset({DataType.STRING, DataType.BLOB}),
    DataType.STRING: frozenset({DataType.TEXT, DataType.BLOB}),
    DataType.BLOB: STRING_TYPES,
}
#: For each stored type, the types as which its points can be read: all types that a series can have after one or more
#: changes.
_READINGS = {type_: found if type_ in TEXT_TYPES else found | {DataType.BLOB} for type_, found in _CHANGES.items()}
#: Integers up to this magnitude are exact as FLOAT.
_FLOAT_WHOLE_MAX = 2**24


class TypeChanged(StorageError):
    """The query found points of a newer type than the type that it reads, which changed after the query began."""

    code = 2021

    def __init__(self, path: str, asked: DataType, found: DataType) -> None:
        super().__init__(f"{path} changed from {asked.name} to {found.name} during the query; run it again")


def check_change(path: str, current: DataType, earlier: Collection[DataType], wanted: DataType) -> None:
    """Raise UserMistake 507 unless a series of type `current`, with these `earlier` types, may change to `wanted`."""
    if wanted is current:
        return
    possible = ", ".join(sorted(type_.name for type_ in _CHANGES[current]))
    otherwise = "CAST converts what is read, SELECT INTO writes it to another series"
    if wanted not in _CHANGES[current]:
        raise UserMistake(
            f"{path} is {current.name}, which may become {possible}, not {wanted.name}: {otherwise}", code=507
        )
    lost = [type_.name for type_ in earlier if not _is_equivalent_via(type_, current, wanted)]
    if lost:
        raise UserMistake(
            f"{path} was {lost[0]} before it was {current.name}: older points would differ as {wanted.name}, "
            f"depending on whether they are converted directly or by way of {current.name}. {otherwise}",
            code=507,
        )


def _is_equivalent_via(source: DataType, by_way_of: DataType, target: DataType) -> bool:
    """Return whether each value of `source` converts to the same `target` value directly and through `by_way_of`."""
    if by_way_of is DataType.FLOAT:
        return source not in INTEGER_TYPES
    if by_way_of is DataType.DOUBLE:
        return target not in TEXT_TYPES or source not in INTEGER_TYPES | {DataType.FLOAT}
    return True


def reads_as(stored: DataType, asked: DataType) -> bool:
    """Return whether points written with the type `stored` can be read as `asked`."""
    return stored is asked or asked in _READINGS[stored]


def is_newer(stored: DataType, asked: DataType) -> bool:
    """Return whether a series can change from type `asked` to type `stored`, but not back."""
    return reads_as(asked, stored) and not reads_as(stored, asked)


def read_as(column: Column, asked: DataType) -> Column:
    """Convert a column to the type `asked`, which `reads_as` must allow."""
    if column.type is asked:
        return column
    assert reads_as(column.type, asked), (column.type, asked)
    if asked in TEXT_TYPES:
        values = column.text if column.type in TEXT_TYPES else format_column(column)
        return Column(asked, values, column.valid)
    return Column(asked, column.numbers.astype(NUMPY_DTYPE[asked]), column.valid)


def value_read_as(value: Scalar, stored: DataType, asked: DataType) -> Scalar:
    """Convert one value; see `read_as`."""
    return value if stored is asked else read_as(Column.of(stored, [value]), asked).to_list()[0]


def statistics_read_as(known: Statistics, stored: DataType, asked: DataType) -> Statistics | None:
    """Return the statistics of points read as another type; None if they cannot be derived from `known`."""
    if stored is asked:
        return known
    if asked in TEXT_TYPES:
        return _of_texts(known, stored, asked)
    if asked is DataType.TIMESTAMP:
        return replace(known, total=None)
    if known.total is None:
        return None
    assert known.minimum is not None
    assert known.maximum is not None
    if asked is DataType.INT64:
        return replace(known, total=float(known.total))
    if asked is DataType.FLOAT and max(-known.minimum, known.maximum) > _FLOAT_WHOLE_MAX:
        return None
    assert isinstance(known.first, int | float)
    assert isinstance(known.last, int | float)
    return replace(
        known,
        first=float(known.first),
        last=float(known.last),
        minimum=float(known.minimum),
        maximum=float(known.maximum),
        total=float(known.total),
    )


def _of_texts(known: Statistics, stored: DataType, asked: DataType) -> Statistics | None:
    if asked is DataType.BLOB and stored in TEXT_TYPES:
        return replace(known, first=None, last=None)
    return known if stored in STRING_TYPES else None
