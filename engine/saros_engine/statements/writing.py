"""Writing: INSERT statements and columnar batches become tablets, with the schema changes that they need.

    INSERT rows -- per measurement: type, values --> columns --> Tablet --> Store.write(tablets, creates)
    batch of columns -----------------------------------------^

A series that is not there is created with the type of its first value: true and false BOOLEAN, numbers DOUBLE, quoted
text TEXT (INSERT); of a batch, the type of its array. So is the database, some levels below root. A null is an absent
point; NaN is a value. Columns of nulls only are left out before anything else is decided: their types say nothing.

Values of a series that keeps so many decimals are rounded here, so that log, memory and files agree.

INSERT is partial, as in IoTDB: a value that does not fit is left out, the others of its row and its measurement are
written, and the error names it (code 507). A batch is all or nothing, unless it is partial: then columns that do not
fit are left out. Columns widen to the series' type where no value can be lost; floats go to series of integers if all
of them are whole numbers, since data frames keep integers with gaps as floats. Rows that are expired when they come are
left out of either, and an error (607) says so. Both are `PartlyWritten`, which says how many points were written and
everything that was left out.

Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from saros_cluster.database.partial_failure import PartialFailure, final_refusal, is_refusal, of_device
from saros_engine.base.database import Database
from saros_engine.catalog.tag_keys import require_not_internal
from saros_engine.catalog.templates import Template, template_for, with_template
from saros_engine.catalog.views import require_no_views
from saros_engine.expressions.conversion import check_conversion, convert, exact_integers, rounded
from saros_engine.expressions.literal_values import column_of_literals, inferred_type
from saros_engine.expressions.time_filter import TimeContext, constant_time
from saros_engine.extensions.triggers import Triggers
from saros_engine.statements.batches import ColumnBatch, failure_of_others, outcomes_of
from saros_engine.statements.grouped_writes import GroupedWrites
from saros_grammar.syntax.ast import Expression, Insert, Literal, LiteralKind
from saros_storage.base.block import Column
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import (
    DEFAULT_COMPRESSOR,
    DEFAULT_ENCODING,
    FLOATING_TYPES,
    INTEGER_TYPES,
    BoolArray,
    DataType,
    Int64Array,
)
from saros_storage.base.write_request import WriteRequest
from saros_storage.schema import CreateDatabase, DeviceSchema, Expiry, SchemaChange, SeriesSchema

_TYPE_MISMATCH = 507
_OUT_OF_TTL = 607
#: Measurements that a message names.
_NAMED_MAX = 5
#: Database, series, path exist already; a series' type, a series, a device is not what it was taken for.
_OVERTAKEN = (501, 503, 506, 507, 508, 511)
#: Batch columns of these types may go to series of those.
_ACCEPTED: dict[DataType, frozenset[DataType]] = {
    DataType.INT32: frozenset({DataType.INT64, DataType.FLOAT, DataType.DOUBLE}),
    DataType.INT64: frozenset({DataType.DOUBLE, DataType.TIMESTAMP, DataType.INT32, DataType.FLOAT}),
    DataType.FLOAT: frozenset({DataType.DOUBLE}),
    DataType.DOUBLE: frozenset({DataType.FLOAT}),
    DataType.TEXT: frozenset({DataType.STRING}),
    DataType.STRING: frozenset({DataType.TEXT}),
    DataType.TIMESTAMP: frozenset({DataType.INT64}),
}
#: Shapes of batches whose look-ups are remembered: some 600 bytes each.
_SHAPES_MAX = 50_000
#: Sets of series that devices are created with; each set is made once.
_SERIES_SETS_MAX = 4_096


def new_series(measurement: str, type_: DataType, tags: Mapping[str, str] = MappingProxyType({})) -> SeriesSchema:
    """Return a series with the type's defaults."""
    return SeriesSchema(measurement, type_, DEFAULT_ENCODING[type_], DEFAULT_COMPRESSOR, tags=tags)


@lru_cache(_SERIES_SETS_MAX)
def _new_series_of_all(measurements: tuple[str, ...], types: tuple[DataType, ...]) -> tuple[SeriesSchema, ...]:
    """Return series with their types' defaults; devices that are created with the same ones share them."""
    return tuple(map(new_series, measurements, types))


class PartlyWritten(UserMistake):
    """A write that left out rows or values; `transforms` were written."""

    def __init__(self, device: str, points: int, given: int, left_out: Sequence[str], *, code: int) -> None:
        """`given`: points of the request; `left_out`: which of them were not written, and why."""
        message = f"{points} of {given} points of {device} were written; left out: {'; '.join(left_out)}"
        super().__init__(message, code=code)
        self.points = points


def points_of(columns: Sequence[Column]) -> int:
    """How many points there are in columns."""
    return sum([column.present_count for column in columns])


def _with_points(columns: Mapping[str, Column]) -> Mapping[str, Column]:
    """The columns without those of nulls only, whose types say nothing; the same mapping if there are none of these."""
    absent = {name for name, column in columns.items() if column.valid is not None and not column.valid.any()}
    return {name: column for name, column in columns.items() if name not in absent} if absent else columns


#: Of a batch: its device as given, measurements, types, and whether it is to be aligned.
_Key = tuple[str, tuple[str, ...], tuple[DataType, ...], bool | None]


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """A batch that was checked: its columns have a value for each of its rows, and points; no row is expired."""

    key: _Key
    times: Int64Array
    columns: Mapping[str, Column]
    #: The points that it was given, and which of its rows were expired; empty: none.
    given: int = 0
    expired: str = ""
    #: Columns that do not fit their series are left out.
    partial: bool = False
    #: Of the series that it creates.
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def points(self) -> int:
        return 0 if self.is_empty else points_of(tuple(self.columns.values()))

    @property
    def is_empty(self) -> bool:
        return not self.columns or not len(self.times)


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A batch as it is written under the schema as it is."""

    tablet: Tablet
    creates: Sequence[SchemaChange] = ()
    #: Columns of a partial batch that are not in the tablet: their points, and the reasons.
    lost: int = 0
    misfits: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _JointWrite:
    """Batches of different devices that one write takes, and the schema changes that they need."""

    tablets: dict[_Batch, Tablet] = field(default_factory=dict)
    creates: list[SchemaChange] = field(default_factory=list)
    #: Databases among `creates`: several devices may need the same one.
    databases: set[CreateDatabase] = field(default_factory=set)

    def add(self, batch: _Batch, tablet: Tablet, creates: Sequence[SchemaChange]) -> None:
        """Add a batch."""
        self.tablets[batch] = tablet
        for change in creates:
            if isinstance(change, CreateDatabase):
                if change in self.databases:
                    continue
                self.databases.add(change)
            self.creates.append(change)


@dataclass(frozen=True, slots=True)
class _JointWrites:
    """The joint writes of a request. A create that is refused does not concern batches that create nothing."""

    plain: _JointWrite = field(default_factory=_JointWrite)
    creating: _JointWrite = field(default_factory=_JointWrite)

    def add(self, batch: _Batch, tablet: Tablet, creates: Sequence[SchemaChange]) -> None:
        """Add a batch."""
        (self.creating if creates else self.plain).add(batch, tablet, creates)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a batch's device, names and types came to at one version of the schema."""

    version: int
    device: str
    aligned: bool


class Writer:
    """See the module. `level`: nodes below root of a database that is created by writing."""

    def __init__(self, store: Database, level: int, clock: Clock, triggers: Triggers) -> None:
        self._store = store
        self._triggers = triggers
        self._clock = clock
        self._level = level
        self._grouped = GroupedWrites(store.submit_writes, clock)
        self._shapes: dict[_Key, _Shape] = {}

    # ------------------------------------------------------------------ batches

    def insert_columns(
        self,
        device: str,
        times: Int64Array,
        columns: Mapping[str, Column],
        *,
        aligned: bool | None,
        request: WriteRequest,
    ) -> int:
        """Write a batch; `columns` are by canonical measurement or alias. Answers the points. Raises UserMistake."""
        return self._insert(self._checked(ColumnBatch(device, times, columns, aligned)), request)

    def _insert(self, batch: _Batch, request: WriteRequest, joint: _JointWrites | None = None) -> int:
        """Write a batch; return the points. Raises UserMistake.

        One that fires no trigger is not written, but added to `joint` if that is given.
        """
        fitted: _Fitted | None = None

        def write() -> None:
            nonlocal fitted
            known = self._tablet_of_known_shape(batch)
            fitted = self._fitted(batch) if known is None else _Fitted(known)
            if not fitted.tablet.columns:
                return
            if joint is not None and self._triggers.firing(fitted.tablet) is None:
                joint.add(batch, fitted.tablet, fitted.creates)
                if fitted.creates:
                    return
            else:
                self._write(fitted.tablet, request, fitted.creates)
            if known is None:
                self._remember_shape(batch, fitted.tablet)

        if not batch.is_empty:
            self._creating(write)
        return _outcome(batch, fitted)

    def insert_batches(
        self, batches: Sequence[ColumnBatch | Exception], request: WriteRequest
    ) -> list[int | Exception]:
        """Write batches of different devices; return the points of each, or its error; an error is its own outcome.

        Those that fire no trigger are two writes at most: first those that create something, then the others. If the
        request is numbered they are one, with that number. If a batch is refused, those of its write are written one
        by one. Any other failure is that of all batches that were not written by then.
        """
        checked = outcomes_of(batches, self._checked)
        joint = _JointWrites()
        if request.is_numbered:
            joint = _JointWrites(creating=joint.plain, plain=joint.plain)
        alone = request.unnumbered
        outcomes = outcomes_of(checked, lambda batch: self._insert(batch, alone, joint))
        failed = self._write_together(joint.creating, request)
        if joint.plain is joint.creating:
            joint = _JointWrites()
        errors = [found for found in map(_failure_of_others, failed.values()) if found is not None]
        plain = dict.fromkeys(joint.plain.tablets, errors[0]) if errors else self._write_together(joint.plain, request)
        failed |= plain
        return [
            outcome if isinstance(batch, Exception) else failed.get(batch, outcome)
            for batch, outcome in zip(checked, outcomes, strict=True)
        ]

    def _write_together(self, joint: _JointWrite, request: WriteRequest) -> dict[_Batch, int | Exception]:
        """Write batches as one; return the outcomes of those that it did not write."""
        if not joint.tablets:
            return {}
        try:
            self._store.write(list(joint.tablets.values()), joint.creates, request=request)
        except PartialFailure as error:
            left: dict[_Batch, int | Exception] = {
                batch: found for batch, tablet in joint.tablets.items() if (found := of_device(error, tablet.device))
            }
            return self._one_by_one(list(left), request.unnumbered) if is_refusal(error) else left
        except StorageError as error:
            batches = list(joint.tablets)
            return self._one_by_one(batches, request.unnumbered) if is_refusal(error) else dict.fromkeys(batches, error)
        return {}

    def _one_by_one(self, batches: Sequence[_Batch], request: WriteRequest) -> dict[_Batch, int | Exception]:
        return dict(zip(batches, outcomes_of(batches, lambda batch: self._insert(batch, request)), strict=True))

    def _checked(self, batch: ColumnBatch) -> _Batch:
        """Return the batch without columns of nulls only, and without expired rows.

        Raises UserMistake if a column has not one value for each row.
        """
        device, times, rows = batch.device, batch.times, len(batch.times)
        for name, column in batch.columns.items():
            if len(column.values) != rows:
                raise UserMistake(f"column {name} has {len(column)} values for {rows} times", code=2003)
        columns, given, expired = _with_points(batch.columns), 0, ""
        if self._store.schema.ttl and columns and rows:
            living = self._living(join_nodes(split_path(device)), times)
            if living is not None:
                given, expired = points_of(tuple(columns.values())), _expired(times, living)
                times = times[living]
                columns = _with_points({name: column.compress(living) for name, column in columns.items()})
        key = (device, tuple(columns), tuple([column.type for column in columns.values()]), batch.aligned)
        return _Batch(key, times, columns, given, expired, batch.partial, batch.tags)

    def _tablet_of_known_shape(self, batch: _Batch) -> Tablet | None:
        """The tablet of a batch whose shape was written before, under the schema as it is; None: it was not."""
        shape = self._shapes.get(batch.key)
        if shape is None or shape.version != self._store.schema.version:
            return None
        return Tablet(shape.device, batch.key[1], batch.times, tuple(batch.columns.values()), shape.aligned)

    def _fitted(self, batch: _Batch) -> _Fitted:
        """Return the tablet of a batch, and what is to be created for it. Raises UserMistake."""
        text, names, _, asked = batch.key
        path = join_nodes(split_path(text))
        known = self._store.schema.device(path)
        aligned = self._aligned_as(known, path, asked=asked)
        template = template_for(self._store.schema, path)
        found = [None if known is None else known.find(name) for name in names]
        wanted = [s or _of_template(template, n) for n, s in zip(names, found, strict=True)]
        columns, misfits = _fit_all(path, wanted, tuple(batch.columns.values()), partial=batch.partial)
        parts = [part for part in zip(names, columns, found, wanted, strict=True) if part[1] is not None]
        if known is None and template is None and not batch.tags and len(parts) == len(names):
            missing: Sequence[SeriesSchema] = _new_series_of_all(names, batch.key[2])
        else:
            missing = [w or new_series(n, c.type, batch.tags) for n, c, s, w in parts if s is None and c is not None]
        own = tuple(n if s is None else s.measurement for n, _, s, _ in parts)
        _check_duplicates(own, names)
        written = tuple(column for column in columns if column is not None)
        creates = self._creates(path, missing, aligned)
        lost = points_of([c for c, f in zip(batch.columns.values(), columns, strict=True) if f is None])
        return _Fitted(Tablet(path, own, batch.times, written, aligned), creates, lost, misfits)

    def _remember_shape(self, batch: _Batch, tablet: Tablet) -> None:
        """Remember the tablet's shape, if its columns are those of the batch; all its series exist."""
        columns = batch.columns.values()
        if tablet.measurements == batch.key[1] and all(f is c for f, c in zip(tablet.columns, columns, strict=True)):
            if len(self._shapes) >= _SHAPES_MAX:
                self._shapes.clear()
            self._shapes[batch.key] = _Shape(self._store.schema.version, tablet.device, tablet.aligned)

    def _write(self, tablet: Tablet, request: WriteRequest, creates: Sequence[SchemaChange] = ()) -> None:
        """Write a batch, and fire what is to be fired for it."""
        firing = self._triggers.firing(tablet)
        if firing is None and not creates:
            request = self._store.numbered(request)
            is_written = self._grouped.write(tablet, request)
            if is_written:
                return
            request = replace(request, in_doubt=is_written is None)
        if firing is not None:
            firing.before()
        self._store.write([tablet], creates, request=request)
        if firing is not None:
            firing.after()

    def _creating(self, write: Callable[[], None]) -> None:
        """Do a write that creates what is missing; again, if others have created or dropped it meanwhile.

        Raises PartialFailure if it is refused at last and was done in part before.
        """
        partly: PartialFailure | None = None
        while True:
            version = self._store.schema.version
            try:
                write()
            except PartialFailure as error:
                if error.refused is None or not self._is_overtaken(error.refused, version):
                    raise
                partly = error
            except UserMistake as error:
                if not self._is_overtaken(error, version):
                    if partly is not None:
                        raise final_refusal(partly.done, error, partly.rows) from error
                    raise
            else:
                return

    def _is_overtaken(self, error: UserMistake, version: int) -> bool:
        """Whether a write may have failed because the schema is not what it was when it was looked at."""
        return error.code in _OVERTAKEN and self._store.schema.version != version

    # ------------------------------------------------------------------ INSERT

    def insert(self, statement: Insert, moment: TimeContext, request: WriteRequest) -> int:
        """Carry out an INSERT whose parameters are bound. Answers the points.

        Raises PartlyWritten after a partial write: 507 if values do not fit, 607 if only expired rows were left out.
        """
        path = join_nodes(statement.device.nodes)
        _check_duplicates(statement.measurements, statement.measurements)
        if len(statement.times) > 1 and None in statement.times:
            raise UserMistake("several rows need times: without any they would all be of now", code=701)
        times = np.array([constant_time(t, moment) for t in statement.times], np.int64)
        outcome, points = _Values(), 0
        living = self._living(path, times)

        def write() -> None:
            nonlocal outcome, points
            known = self._store.schema.device(path)
            aligned = self._aligned_as(known, path, asked=statement.aligned or None)
            template = template_for(self._store.schema, path)
            outcome = _values_of(statement, known, template, moment)
            if outcome.columns:
                creates = self._creates(path, outcome.missing, aligned)
                tablet = Tablet(path, tuple(outcome.names), times, tuple(outcome.columns), aligned)
                if living is not None:
                    tablet = _compressed(tablet, living)
                self._write(tablet, request, creates)
                points = points_of(tablet.columns)

        if living is None or living.any():
            self._creating(write)
        left_out = ([] if living is None else [_expired(times, living)]) + _listed(outcome.misfits)
        if left_out:
            code = _TYPE_MISMATCH if outcome.misfits else _OUT_OF_TTL
            raise PartlyWritten(path, points, _values_in(statement), left_out, code=code)
        return points

    def _living(self, device: str, times: Int64Array) -> BoolArray | None:
        """Which rows are not expired; None: all."""
        expiry = Expiry(self._store.schema.ttl, self._clock.now_ns(), self._store.options.time_unit)
        limit = expiry.expired_before(device)
        if limit is None:
            return None
        living: BoolArray = times >= limit
        return None if living.all() else living

    # ------------------------------------------------------------------ schema

    def _aligned_as(self, known: DeviceSchema | None, path: str, *, asked: bool | None) -> bool:
        """How a device is written to: as it is, or, if it is new, as its template says, or as asked for."""
        if known is None:
            template = template_for(self._store.schema, path)
            return bool(asked) if template is None else template.aligned
        return known.aligned

    def _creates(self, device: str, missing: Sequence[SeriesSchema], aligned: bool) -> list[SchemaChange]:
        changes: list[SchemaChange] = []
        if missing:
            require_not_internal(device)
            schema = self._store.schema
            require_no_views(schema.catalogue, device, [series.measurement for series in missing])
            changes += self.database_for(device)
            changes += with_template(schema, device, schema.device(device), missing, aligned=aligned)
        return changes

    def database_for(self, device: str) -> list[SchemaChange]:
        """The change that makes a device's database; none if it has one. Raises UserMistake 509."""
        if self._store.schema.database_of(device) is not None:
            return []
        nodes = split_path(device)
        if len(nodes) <= self._level:
            needed = f"databases are created {self._level} level(s) below root"
            raise UserMistake(f"{device} is in no database and is too short to create one: {needed}", code=509)
        return [CreateDatabase(join_nodes(nodes[: self._level + 1]))]


def _outcome(batch: _Batch, fitted: _Fitted | None) -> int:
    """Return the points that were written of a batch. Raises PartlyWritten if there are others."""
    misfits = [] if fitted is None else _listed(fitted.misfits)
    left_out = ([batch.expired] if batch.expired else []) + misfits
    points = batch.points - (0 if fitted is None else fitted.lost)
    if left_out:
        code = _TYPE_MISMATCH if misfits else _OUT_OF_TTL
        raise PartlyWritten(batch.key[0], points, batch.given or batch.points, left_out, code=code)
    return points


def _failure_of_others(outcome: int | Exception) -> Exception | None:
    """Return the error of batches that are not tried after this outcome of another one; None: they are."""
    return failure_of_others(outcome) if isinstance(outcome, Exception) else None


def _compressed(tablet: Tablet, rows: BoolArray) -> Tablet:
    columns = tuple(column.compress(rows) for column in tablet.columns)
    return replace(tablet, times=tablet.times[rows], columns=columns)


def _expired(times: Int64Array, living: BoolArray) -> str:
    """Which rows are older than the TTL."""
    expired = times[~living]
    return f"{len(expired)} of {len(times)} rows, older than the TTL, such as time {int(expired[0])}"


def _listed(misfits: Sequence[str]) -> list[str]:
    """Values that do not fit, and what to do."""
    if not misfits:
        return []
    more = len(misfits) - _NAMED_MAX
    others = [f"values of {more} more measurement{'s' * (more > 1)}"] if more > 0 else []
    return [*misfits[:_NAMED_MAX], *others, "insert corrected values for these"]


def _values_in(statement: Insert) -> int:
    """How many values of an INSERT are not null."""
    values = [value for row in statement.rows for value in row]
    return sum(not (isinstance(value, Literal) and value.kind is LiteralKind.NULL) for value in values)


@dataclass(slots=True)
class _Values:
    """The values of an INSERT as columns to write, series to create, and values that do not fit."""

    names: list[str] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    missing: list[SeriesSchema] = field(default_factory=list)
    #: Per measurement with such values: which these are.
    misfits: list[str] = field(default_factory=list)


def _values_of(
    statement: Insert, known: DeviceSchema | None, template: Template | None, moment: TimeContext
) -> _Values:
    """The statement's values for a device as it is known."""
    found = _Values()
    met: list[str] = []
    for place, name in enumerate(statement.measurements):
        literals = [_literal(row[place], moment) for row in statement.rows]
        series = None if known is None else known.find(name)
        met.append(name if series is None else series.measurement)
        created = None
        if series is None:
            type_ = inferred_type(literals)
            if type_ is None:
                continue
            series = created = _of_template(template, name) or new_series(name, type_)
        column, misfits = column_of_literals(literals, series.type, moment.zone, moment.unit)
        if misfits is not None:
            found.misfits.append(name + misfits)
            if not column.present.any():
                continue
        found.names.append(series.measurement)
        found.columns.append(_as_declared(series, column))
        if created is not None:
            found.missing.append(created)
    _check_duplicates(met, statement.measurements)
    return found


def _check_duplicates(own: Sequence[str], names: Sequence[str]) -> None:
    """Raise UserMistake 701 if two of these names are those of one series, by its alias or not."""
    if len(set(own)) < len(own):
        raise UserMistake(f"INSERT names a measurement twice: {', '.join(names)}", code=701)


def _literal(value: Expression, moment: TimeContext) -> Literal:
    """A value as it stands there, or the time that it is computed to be."""
    if isinstance(value, Literal):
        return value
    return Literal(LiteralKind.TIME, constant_time(value, moment), str(value))


def _of_template(template: Template | None, name: str) -> SeriesSchema | None:
    """A series that a device gets from its template, if that has it."""
    return None if template is None else template.find(name)


def _fit(device: str, series: SeriesSchema, column: Column) -> Column:
    """The column as the series' type. Raises UserMistake 507, or 2008 naming the series and a value that is lost."""
    if column.type is series.type:
        return _as_declared(series, column)
    mismatch = f"{device}.{series.measurement} is {series.type.name}: a column of {column.type.name} does not fit"
    if column.type in FLOATING_TYPES and series.type in INTEGER_TYPES:
        try:
            return exact_integers(column, series.type)
        except UserMistake as error:
            raise UserMistake(f"{mismatch}: {error}", code=error.code) from error
    if series.type not in _ACCEPTED.get(column.type, frozenset()):
        raise UserMistake(mismatch, code=_TYPE_MISMATCH)
    check_conversion(column.type, series.type)
    try:
        converted = convert(column, series.type)
    except UserMistake as error:
        message = f"{device}.{series.measurement}: {str(error).removeprefix('CAST: ')}"
        raise UserMistake(message, code=error.code) from error
    return _as_declared(series, converted)


def _fit_all(
    device: str, wanted: Sequence[SeriesSchema | None], columns: Sequence[Column], *, partial: bool
) -> tuple[Sequence[Column | None], Sequence[str]]:
    """Return the columns as their series' types; if `partial`, None for one that does not fit, and the reasons.

    Raises UserMistake as `_fit`.
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


def _as_declared(series: SeriesSchema, column: Column) -> Column:
    """With as many decimals as the series keeps; then it is another column, so the shape is not remembered."""
    return column if series.decimals is None else rounded(column, series.decimals)
