"""Writing: INSERT statements and columnar batches become tablets, with the schema changes that they need.

    INSERT rows -- per measurement: type, values --> columns --> Tablet --> Store.write(tablets, creates)
    batch of columns -----------------------------------------^

A series that is not there is created with the type of its first value: true and false BOOLEAN, numbers DOUBLE, quoted
text TEXT (INSERT); of a batch, the type of its array. So is the database, some levels below root. A null is an absent
point; NaN is a value.

INSERT is partial, as in IoTDB: a measurement with a value that does not fit is left out as a whole, the others are
written, and the error names it (code 507). A batch is all or nothing; its columns widen to the series' type where no
value can be lost.

Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from saros_engine.conversion import check_conversion, convert
from saros_engine.literal_values import column_of_literals, inferred_type
from saros_grammar.ast import Expression, Insert, Literal
from saros_storage.block import Column
from saros_storage.errors import UserMistake
from saros_storage.paths import join_nodes, split_path
from saros_storage.schema import CreateDatabase, CreateSeries, DeviceSchema, SchemaChange, SeriesSchema
from saros_storage.store import Store
from saros_storage.tablet import Tablet
from saros_storage.types import DEFAULT_COMPRESSOR, DEFAULT_ENCODING, DataType, Int64Array, TimeUnit

_TYPE_MISMATCH = 507
#: Batch columns of these types may go to series of those.
_WIDER: dict[DataType, frozenset[DataType]] = {
    DataType.INT32: frozenset({DataType.INT64, DataType.FLOAT, DataType.DOUBLE}),
    DataType.INT64: frozenset({DataType.DOUBLE, DataType.TIMESTAMP, DataType.INT32, DataType.FLOAT}),
    DataType.FLOAT: frozenset({DataType.DOUBLE}),
    DataType.DOUBLE: frozenset({DataType.FLOAT}),
    DataType.TEXT: frozenset({DataType.STRING}),
    DataType.STRING: frozenset({DataType.TEXT}),
    DataType.TIMESTAMP: frozenset({DataType.INT64}),
}
#: Shapes of batches whose look-ups are remembered.
_SHAPES_MAX = 10_000


def new_series(measurement: str, type_: DataType) -> SeriesSchema:
    """A series with the type's defaults."""
    return SeriesSchema(measurement, type_, DEFAULT_ENCODING[type_], DEFAULT_COMPRESSOR)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a batch's device, names and types came to at one version of the schema."""

    version: int
    device: str
    aligned: bool


class Writer:
    """See the module. `level`: nodes below root of a database that is created by writing."""

    def __init__(self, store: Store, level: int) -> None:
        self._store = store
        self._level = level
        self._shapes: dict[tuple[str, tuple[str, ...], tuple[DataType, ...], bool | None], _Shape] = {}

    # ------------------------------------------------------------------ batches

    def insert_columns(
        self, device: str, times: Int64Array, columns: Mapping[str, Column], *, aligned: bool | None
    ) -> int:
        """Write a batch; `columns` are by canonical measurement. Answers the points. Raises UserMistake."""
        names = tuple(columns)
        values = tuple(columns.values())
        rows = len(times)
        for name, column in columns.items():
            if len(column.values) != rows:
                raise UserMistake(f"column {name} has {len(column)} values for {rows} times", code=2003)
        if not names or not rows:
            return 0
        key = (device, names, tuple([c.type for c in values]), aligned)
        shape = self._shapes.get(key)
        if shape is not None and shape.version == self._store.schema.version:
            self._store.write([Tablet(shape.device, names, times, values, shape.aligned)])
        else:
            self._insert_new_shape(key, times, values)
        return sum([rows if c.valid is None else int(np.count_nonzero(c.valid)) for c in values])

    def _insert_new_shape(
        self,
        key: tuple[str, tuple[str, ...], tuple[DataType, ...], bool | None],
        times: Int64Array,
        columns: Sequence[Column],
    ) -> None:
        text, names, _, aligned = key
        path = join_nodes(split_path(text))
        known = self._store.schema.device(path)
        target = _aligned_as(known, path, asked=aligned)
        fitted = []
        missing = []
        for name, column in zip(names, columns, strict=True):
            series = None if known is None else known.find(name)
            if series is None:
                missing.append(new_series(name, column.type))
                fitted.append(column)
            else:
                fitted.append(_fit(path, series, column))
        measurements = tuple(_own_names(known, names))
        creates = self._creates(path, missing, aligned=target)
        self._store.write([Tablet(path, measurements, times, tuple(fitted), target)], creates)
        if measurements == names and all(f is c for f, c in zip(fitted, columns, strict=True)):
            if len(self._shapes) >= _SHAPES_MAX:
                self._shapes.clear()
            self._shapes[key] = _Shape(self._store.schema.version, path, target)

    # ------------------------------------------------------------------ INSERT

    def insert(self, statement: Insert, time_of: Callable[[Expression | None], int], zone: str, unit: TimeUnit) -> int:
        """Carry out an INSERT whose parameters are bound; `time_of` gives an expression's time. Answers the points.

        Raises UserMistake 507 after a partial write, naming the measurements that were left out.
        """
        path = join_nodes(statement.device.nodes)
        if len(set(statement.measurements)) < len(statement.measurements):
            raise UserMistake(f"INSERT names a measurement twice: {', '.join(statement.measurements)}", code=701)
        times = np.array([time_of(t) for t in statement.times], np.int64)
        known = self._store.schema.device(path)
        aligned = _aligned_as(known, path, asked=statement.aligned or None)
        names, columns, missing, failures = [], [], [], []
        for place, name in enumerate(statement.measurements):
            literals = [value for row in statement.rows if isinstance(value := row[place], Literal)]
            assert len(literals) == len(times)
            series = None if known is None else known.find(name)
            if series is None:
                type_ = inferred_type(literals)
                if type_ is None:
                    continue
                series = new_series(name, type_)
                missing.append(series)
            try:
                column = column_of_literals(literals, series.type, zone, unit)
            except ValueError as error:
                failures.append((name, f"{error}"))
                missing = [s for s in missing if s.measurement != name]
                continue
            names.append(series.measurement)
            columns.append(column)
        if columns:
            creates = self._creates(path, missing, aligned=aligned)
            self._store.write([Tablet(path, tuple(names), times, tuple(columns), aligned)], creates)
        if failures:
            listed = ", ".join(name for name, _ in failures)
            reasons = "; ".join(reason for _, reason in failures)
            raise UserMistake(f"Fail to insert measurements [{listed}] caused by [{reasons}]", code=_TYPE_MISMATCH)
        return sum(int(np.count_nonzero(c.present)) for c in columns)

    # ------------------------------------------------------------------ schema

    def _creates(self, device: str, missing: Sequence[SeriesSchema], *, aligned: bool) -> list[SchemaChange]:
        changes: list[SchemaChange] = []
        if missing:
            changes += self.database_for(device)
            changes.append(CreateSeries(device, aligned, tuple(missing)))
        return changes

    def database_for(self, device: str) -> list[SchemaChange]:
        """The change that makes a device's database; none if it has one. Raises UserMistake 509."""
        if self._store.schema.database_of(device) is not None:
            return []
        nodes = split_path(device)
        if len(nodes) <= self._level:
            needed = f"a database is made {self._level} level(s) below root"
            raise UserMistake(f"{device} lies in no database and is too short to make one: {needed}", code=509)
        return [CreateDatabase(join_nodes(nodes[: self._level + 1]))]


def _own_names(device: DeviceSchema | None, names: Sequence[str]) -> list[str]:
    """Aliases replaced by the names of their series."""
    found = [None if device is None else device.find(name) for name in names]
    return [name if series is None else series.measurement for name, series in zip(names, found, strict=True)]


def _aligned_as(known: DeviceSchema | None, path: str, *, asked: bool | None) -> bool:
    """How a device is written to: as it is, or, if it is new, as asked for."""
    if known is None:
        return bool(asked)
    if asked and not known.aligned:
        raise UserMistake(f"device {path} is not aligned: write to it without ALIGNED", code=511)
    return known.aligned


def _fit(device: str, series: SeriesSchema, column: Column) -> Column:
    """The column as the series' type. Raises UserMistake 507, or 2008 naming a value that is lost."""
    if column.type is series.type:
        return column
    if series.type not in _WIDER.get(column.type, frozenset()):
        message = f"{device}.{series.measurement} is {series.type.name}: a column of {column.type.name} does not fit"
        raise UserMistake(message, code=_TYPE_MISMATCH)
    check_conversion(column.type, series.type)
    return convert(column, series.type)
