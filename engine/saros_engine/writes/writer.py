"""Writing: turns INSERT statements and columnar batches into tablets and the schema changes that they need.

    INSERT rows -- per measurement: type, values --> columns --> Tablet --> Store.write(tablets, creates)
    batch of columns -----------------------------------------^

A missing series is created. Its type is the type of the batch's array, or follows from the first value of an INSERT. A
missing database is created at a configured level below root. A null is an absent point; NaN is a value. Columns that
contain only nulls are removed first, because their types mean nothing.

INSERT can be partial, as in IoTDB: values that do not fit are left out, the other values are written, and the error
(507) names the values that were left out. A batch is written completely or not at all, except that columns that do not
fit are left out of a `partial` batch. Rows that are expired when they arrive are left out of INSERTs and batches, and
reported by an error (607). Both errors are `PartlyWritten`, which gives the number of points written and lists the
parts that were left out.

Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from saros_cluster.database.partial_failure import PartialFailure, final_refusal, is_refusal, of_device
from saros_engine.base.database import Database
from saros_engine.catalog.tag_keys import require_not_internal
from saros_engine.catalog.templates import template_for, with_template
from saros_engine.catalog.views import require_no_views, sources_of_aliases
from saros_engine.expressions.time_filter import TimeContext, constant_time
from saros_engine.extensions.triggers import Triggers
from saros_engine.writes.automatic_schema import AutomaticSchema
from saros_engine.writes.batches import ColumnBatch, MultiBatch, failure_of_others, joined, outcomes_of
from saros_engine.writes.device_kinds import DeviceKind, independent_paths, kinds_of
from saros_engine.writes.fitting import (
    TYPE_MISMATCH,
    check_duplicates,
    fit_all,
    missing_series,
    new_series,
    new_series_of_all,
    points_of,
    series_of_template,
    with_points,
    without_new,
)
from saros_engine.writes.grouped_writes import GroupedWrites
from saros_engine.writes.insert_values import InsertValues, values_in, values_of
from saros_engine.writes.joint_writes import BatchKey, CheckedBatch, Fitted, Group, JointWrite, JointWrites
from saros_engine.writes.schema_check import SchemaCheck
from saros_engine.writes.view_writes import parts_of_batch, parts_of_insert, write_each
from saros_grammar.syntax.ast import Insert
from saros_storage.base.block import Column
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.paths import join_nodes, parent_of, split_path
from saros_storage.base.tablet import MultiTablet, Tablet
from saros_storage.base.types import BoolArray, Int64Array
from saros_storage.base.write_request import WriteRequest
from saros_storage.schema import CreateDatabase, CreateSeries, DeviceSchema, Expiry, SchemaChange, SeriesSchema

_OUT_OF_TTL = 607
#: The maximum number of measurements that an error message lists.
_NAMED_MAX = 5
#: The codes of errors that a concurrent schema change can cause: a database, series or path already exists, a database
#: or series no longer exists, or the type of a series or the alignment of a device is not as expected.
_OVERTAKEN = (501, 503, 504, 506, 507, 508, 511)
#: The maximum number of cached shapes of batches; each takes some 600 bytes.
_SHAPES_MAX = 50_000


class PartlyWritten(UserMistake):
    """Raised by a write that did not write all rows or values; `points` is the number of points written."""

    def __init__(self, device: str, points: int, given: int, left_out: Sequence[str], *, code: int) -> None:
        """`given` is the number of points in the request; `left_out` has texts about the omitted points."""
        message = f"{points} of {given} points of {device} were written; left out: {'; '.join(left_out)}"
        super().__init__(message, code=code)
        self.points = points


class _Shape(msgspec.Struct, frozen=True):
    """The canonical device and the alignment of tablets whose batches have one shape, at one version of the schema."""

    version: int
    device: str
    aligned: bool


class Writer:
    """Writes INSERT statements and batches to a store."""

    def __init__(self, store: Database, automatic: AutomaticSchema, clock: Clock, triggers: Triggers) -> None:
        self._store = store
        self._triggers = triggers
        self._clock = clock
        #: The databases and series that writes create.
        self.automatic = automatic
        self._grouped = GroupedWrites(store.submit_writes, clock)
        self._shapes: dict[BatchKey, _Shape] = {}

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
        """Write a batch; return the number of points. Raises UserMistake, PartlyWritten, StorageError.

        The keys of `columns` are canonical measurements or aliases.
        """
        return self._insert(self._checked(ColumnBatch(device, times, columns, aligned)), request)

    def _insert(self, batch: CheckedBatch, request: WriteRequest, joint: JointWrites | None = None) -> int:
        """Write a batch; return the number of points. Raises UserMistake.

        If `joint` is given, a batch that fires no trigger and has no columns of views is added to `joint` instead of
        being written.
        """
        parts = self._parts_through_views(batch)
        if parts:
            return write_each(parts, lambda part: self._insert(self._checked(part), request.unnumbered))
        fitted: Fitted | None = None
        schema_check = SchemaCheck(self._store, request) if joint is None else joint.schema_check

        def write() -> None:
            nonlocal fitted
            known = self._tablet_of_known_shape(batch)
            fitted = schema_check.fit(batch.key[0], lambda: self._fitted(batch)) if known is None else Fitted(known)
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
            self._creating(batch.key[0], write, schema_check)
        return _outcome(batch, fitted)

    def _parts_through_views(self, batch: CheckedBatch) -> list[ColumnBatch]:
        """Return the parts of a batch that has columns of views, or an empty list if it has no such columns."""
        if not self._store.schema.catalogue.by_key or self._tablet_of_known_shape(batch) is not None:
            return []
        device, names, _, aligned = batch.key
        sources = sources_of_aliases(self._store.schema, join_nodes(split_path(device)), names)
        whole = ColumnBatch(device, batch.times, batch.columns, aligned, batch.partial, batch.tags)
        return parts_of_batch(whole, sources) if sources else []

    def insert_batches(
        self, batches: Sequence[ColumnBatch | Exception], request: WriteRequest
    ) -> list[int | Exception]:
        """Write batches of different devices; return the number of points or the error of each batch.

        Errors among `batches` are returned unchanged. Batches that fire no trigger are joined into at most two writes:
        first the batches that create series, then the other batches; if the request is numbered, there is only one
        write. Small batches of devices of one kind form one tablet. If a write is refused, its batches that were not
        written are written one by one, or together again if the schema has changed. Any other failure is the outcome of
        all batches that were not written before the failure.
        """
        joint = JointWrites.of(self._store, request)
        groups: list[Group] = []
        tables = [] if self._triggers.exist else joined(batches)
        if tables:
            given = [batch for batch in batches if isinstance(batch, ColumnBatch)]
            paths = independent_paths([batch.device for batch in given], set().union(*(b.columns for b in given)))
            by_device = {} if paths is None else dict(zip((batch.device for batch in given), paths, strict=True))
            for numbers, rows in tables if by_device else ():
                groups += self._groups(rows, [by_device[device] for device in rows.devices], (), numbers)
        together = _numbers_of(groups)
        alone = {number: batch for number, batch in enumerate(batches) if number not in together}
        return self._insert_groups(groups, alone, joint, request)

    def insert_rows(
        self, rows: MultiBatch, refused: Mapping[int, Exception], request: WriteRequest
    ) -> list[int | Exception]:
        """Write rows of many devices as `insert_batches` does; return the outcome of each device.

        `refused` has the errors of the devices that must not be written, by the devices' numbers.
        """
        joint = JointWrites.of(self._store, request)
        numbers = range(len(rows.devices))
        paths = None if self._triggers.exist else independent_paths(rows.devices, rows.columns.keys())
        groups = [] if paths is None else self._groups(rows, paths, refused, numbers)
        together = _numbers_of(groups)
        left = [number for number in numbers if number not in together and number not in refused]
        alone: dict[int, ColumnBatch | Exception] = {**refused, **dict(zip(left, rows.batches(left), strict=True))}
        return self._insert_groups(groups, dict(sorted(alone.items())), joint, request)

    def _insert_groups(
        self,
        groups: Sequence[Group],
        alone: Mapping[int, ColumnBatch | Exception],
        joint: JointWrites,
        request: WriteRequest,
    ) -> list[int | Exception]:
        """Write groups, then the batches that belong to no group; return the outcomes in the order of their numbers."""
        for group in groups:
            joint.add_group(group)
        checked = outcomes_of([*alone.values()], self._checked)
        outcomes, failed = self._insert_jointly(checked, joint, request)
        found = dict(zip(alone, outcomes, strict=True))
        for group in groups:
            found.update(zip(group.numbers, group.outcomes(failed), strict=True))
        return [found[number] for number in range(len(found))]

    def _groups(
        self, rows: MultiBatch, paths: Sequence[str | None], refused: Collection[int], numbers: Sequence[int]
    ) -> list[Group]:
        """Return groups of devices that can be written together; `numbers` are the devices' numbers in the request."""
        schema = self._store.schema
        expiry = Expiry(schema.ttl, self._clock.now_ns(), self._store.options.time_unit)
        kinds = [kind for kind in kinds_of(rows, paths, refused, schema, expiry) if len(kind.numbers) > 1]
        return [group for kind in kinds if (group := self._group(rows, kind, numbers)) is not None]

    def _group(self, rows: MultiBatch, kind: DeviceKind, numbers: Sequence[int]) -> Group | None:
        """Return the devices of a kind as a group, or None if columns have to be converted or refused."""
        try:
            first = self._checked(rows.batches(kind.numbers[:1])[0])
            fitted = self._fitted(first)
        except UserMistake:
            return None
        given = first.columns.values()
        if not given or not _is_same(fitted.tablet.columns, given):
            return None
        members = [*zip(kind.numbers, kind.paths, strict=True)]
        creates: list[SchemaChange] = []
        if fitted.creates:
            databases, found = self._creates_like(fitted, kind, rows.tags)
            members = [member for member in members if member[1] in found]
            creates = [*databases, *found.values()]
        own = rows.chosen([number for number, _ in members])
        tablet = MultiTablet(
            [path for _, path in members],
            own.counts,
            fitted.tablet.measurements,
            own.times,
            tuple(own.columns.values()),
            fitted.tablet.aligned,
        )
        return Group([numbers[number] for number, _ in members], own, tablet, creates) if members else None

    def _creates_like(
        self, fitted: Fitted, kind: DeviceKind, tags: Sequence[Mapping[str, str]]
    ) -> tuple[Collection[SchemaChange], dict[str, CreateSeries]]:
        """Return the databases that the devices of a kind need, and each device's `CreateSeries` by the device's path.

        Devices that must be checked individually are left out. `tags` has the tags for each device's series, by the
        device's number; it is empty if there are none.
        """
        like = fitted.creates[-1]
        assert isinstance(like, CreateSeries)
        names = [series.measurement for series in like.series]
        catalogue = self._store.schema.catalogue
        databases: dict[SchemaChange, None] = {}
        found: dict[str, CreateSeries] = {}
        below: dict[str, Sequence[SchemaChange]] = {}
        for number, path in zip(kind.numbers, kind.paths, strict=True):
            try:
                require_not_internal(path)
                require_no_views(catalogue, path, names)
                needed = self._database_below(path, below) if kind.known is None else ()
            except UserMistake:
                continue
            series = like.series
            if tags and tags[number]:
                series = tuple([replace(one, tags=tags[number]) for one in series])
            if needed:
                databases.update(dict.fromkeys(needed))
            found[path] = CreateSeries(path, like.aligned, series, if_missing=True)
        return databases, found

    def _insert_jointly(
        self, batches: Sequence[CheckedBatch | Exception], joint: JointWrites, request: WriteRequest
    ) -> tuple[list[int | Exception], dict[CheckedBatch, int | Exception]]:
        """Add batches to joint writes, and execute the joint writes.

        Returns the outcomes of `batches`, and the outcomes of all batches that the joint writes did not write.
        """
        alone = request.unnumbered
        outcomes = outcomes_of(batches, lambda batch: self._insert(batch, alone, joint))
        failed = self._write_together(joint.creating, request)
        if joint.plain is not joint.creating:
            errors = [found for found in map(_failure_of_others, failed.values()) if found is not None]
            if errors:
                failed |= dict.fromkeys((batch for batch, _ in self._members(joint.plain)), errors[0])
            else:
                failed |= self._write_together(joint.plain, request)
        return [
            outcome if isinstance(batch, Exception) else failed.get(batch, outcome)
            for batch, outcome in zip(batches, outcomes, strict=True)
        ], failed

    def _write_together(self, joint: JointWrite, request: WriteRequest) -> dict[CheckedBatch, int | Exception]:
        """Write batches together; return the outcomes of the batches that this write did not write."""
        content = joint.content
        if not content:
            return {}
        try:
            self._store.write(content, joint.creates, request=request)
        except PartialFailure as error:
            members = self._members(joint)
            left: dict[CheckedBatch, int | Exception] = {
                batch: found for batch, device in members if (found := of_device(error, device)) is not None
            }
            return self._one_by_one(list(left), request.unnumbered) if is_refusal(error) else left
        except StorageError as error:
            batches = [batch for batch, _ in self._members(joint)]
            if not is_refusal(error):
                return dict.fromkeys(batches, error)
            if isinstance(error, UserMistake) and self._is_overtaken(error, joint.version):
                return self._together_again(batches, request)
            return self._one_by_one(batches, request.unnumbered)
        return {}

    def _together_again(
        self, batches: Sequence[CheckedBatch], request: WriteRequest
    ) -> dict[CheckedBatch, int | Exception]:
        """Fit batches again to the schema, which has changed, and write them together; return all outcomes.

        Nothing has been written yet, so the request keeps its number. If the client repeats the request later, the
        repetition must have no effect.
        """
        joint = JointWrites.of(self._store, request)
        return dict(zip(batches, self._insert_jointly(batches, joint, request)[0], strict=True))

    def _members(self, joint: JointWrite) -> list[tuple[CheckedBatch, str]]:
        """Return the batches of a failed joint write, including the batches of its groups, with their devices."""
        members = [(batch, tablet.device) for batch, tablet in joint.tablets.items()]
        for group in joint.groups:
            group.batches[:] = map(self._checked, group.rows.batches(range(len(group.rows.devices))))
            members += zip(group.batches, group.tablet.devices, strict=True)
        return members

    def _one_by_one(
        self, batches: Sequence[CheckedBatch], request: WriteRequest
    ) -> dict[CheckedBatch, int | Exception]:
        return dict(zip(batches, outcomes_of(batches, lambda batch: self._insert(batch, request)), strict=True))

    def _checked(self, batch: ColumnBatch) -> CheckedBatch:
        """Return the batch without columns that contain only nulls, and without expired rows.

        Raises UserMistake if a column does not have one value per row.
        """
        device, times, rows = batch.device, batch.times, len(batch.times)
        for name, column in batch.columns.items():
            if len(column.values) != rows:
                raise UserMistake(f"column {name} has {len(column)} values for {rows} times", code=2003)
        columns, given, expired = with_points(batch.columns), 0, ""
        if self._store.schema.ttl and columns and rows:
            living = self._living(join_nodes(split_path(device)), times)
            if living is not None:
                given, expired = points_of(tuple(columns.values())), _expired(times, living)
                times = times[living]
                columns = with_points({name: column.compress(living) for name, column in columns.items()})
        key = (device, tuple(columns), tuple([column.type for column in columns.values()]), batch.aligned)
        return CheckedBatch(key, times, columns, given, expired, batch.partial, batch.tags)

    def _tablet_of_known_shape(self, batch: CheckedBatch) -> Tablet | None:
        """Return the tablet of a batch whose shape is cached for the current schema, otherwise None."""
        shape = self._shapes.get(batch.key)
        if shape is None or shape.version != self._store.schema.version:
            return None
        return Tablet(shape.device, batch.key[1], batch.times, tuple(batch.columns.values()), shape.aligned)

    def _fitted(self, batch: CheckedBatch) -> Fitted:
        """Return the tablet of a batch, and the schema changes that it needs. Raises UserMistake."""
        text, names, _, asked = batch.key
        path = join_nodes(split_path(text))
        known = self._store.schema.device(path)
        template = template_for(self._store.schema, path)
        if known is None and template is None and not batch.tags and self.automatic.is_on:
            return self._of_new_device(batch, path)
        aligned = self._aligned_as(known, path, asked=asked)
        found = [None if known is None else known.find(name) for name in names]
        wanted = [s or series_of_template(template, n) for n, s in zip(names, found, strict=True)]
        columns, misfits = fit_all(path, wanted, tuple(batch.columns.values()), partial=batch.partial)
        if not self.automatic.is_on:
            columns, refused = without_new(path, names, found, columns)
            if refused and not batch.partial:
                raise UserMistake(refused[0], code=TYPE_MISMATCH)
            misfits = [*misfits, *refused]
        parts = [part for part in zip(names, columns, found, wanted, strict=True) if part[1] is not None]
        missing = [w or new_series(n, c.type, batch.tags) for n, c, s, w in parts if s is None and c is not None]
        own = tuple(n if s is None else s.measurement for n, _, s, _ in parts)
        check_duplicates(own, names)
        written = tuple(column for column in columns if column is not None)
        creates = self._creates(path, missing, aligned)
        lost = points_of([c for c, f in zip(batch.columns.values(), columns, strict=True) if f is None])
        return Fitted(Tablet(path, own, batch.times, written, aligned), creates, lost, misfits)

    def _of_new_device(self, batch: CheckedBatch, path: str) -> Fitted:
        """Return the tablet of a batch whose device does not exist yet. The series get the defaults of their types."""
        _, names, types, asked = batch.key
        creates = self._creates(path, new_series_of_all(names, types), bool(asked))
        return Fitted(Tablet(path, names, batch.times, tuple(batch.columns.values()), bool(asked)), creates)

    def _remember_shape(self, batch: CheckedBatch, tablet: Tablet) -> None:
        """Cache the tablet's shape if the tablet has the batch's own columns. All its series must exist."""
        columns = batch.columns.values()
        if tablet.measurements == batch.key[1] and _is_same(tablet.columns, columns):
            if len(self._shapes) >= _SHAPES_MAX:
                self._shapes.clear()
            self._shapes[batch.key] = _Shape(self._store.schema.version, tablet.device, tablet.aligned)

    def _write(self, tablet: Tablet, request: WriteRequest, creates: Sequence[SchemaChange] = ()) -> None:
        """Write a batch, and fire its triggers before and after."""
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

    def _creating(self, device: str, write: Callable[[], None], schema_check: SchemaCheck) -> None:
        """Run a write, which may create missing series. Repeat it if a concurrent schema change made it fail.

        Before a write is refused, this node's schema is brought up to date: the change may have been made at another
        node. Raises PartialFailure if the write is finally refused after an earlier attempt was partly written.
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
                if self._is_overtaken(error, version):
                    continue
                if partly is not None:
                    raise final_refusal(partly.done, error, partly.rows) from error
                if error.code not in _OVERTAKEN or not schema_check.is_outdated(device, version):
                    raise
            else:
                return

    def _is_overtaken(self, error: UserMistake, version: int) -> bool:
        """Return whether a write may have failed because the schema has changed since `version`."""
        return error.code in _OVERTAKEN and self._store.schema.version != version

    # ------------------------------------------------------------------ INSERT

    def insert(self, statement: Insert, moment: TimeContext, request: WriteRequest) -> int:
        """Execute an INSERT whose parameters are bound; return the number of points written.

        Raises PartlyWritten after a partial write: 507 if values do not fit, 607 if only expired rows were left out.
        """
        path = join_nodes(statement.device.nodes)
        sources = sources_of_aliases(self._store.schema, path, statement.measurements)
        if sources:
            parts = parts_of_insert(statement, sources)
            return write_each(parts, lambda part: self.insert(part, moment, request.unnumbered))
        check_duplicates(statement.measurements, statement.measurements)
        if len(statement.times) > 1 and None in statement.times:
            raise UserMistake("several rows need times: without them, all rows would have the current time", code=701)
        times = np.array([constant_time(t, moment) for t in statement.times], np.int64)
        outcome, points = InsertValues(), 0
        living = self._living(path, times)
        schema_check = SchemaCheck(self._store, request)

        def write() -> None:
            nonlocal outcome, points
            outcome = schema_check.fit(path, lambda: self._values_of(statement, path, moment))
            if outcome.columns:
                aligned = self._aligned_as(self._store.schema.device(path), path, asked=statement.aligned or None)
                creates = self._creates(path, outcome.missing, aligned)
                tablet = Tablet(path, tuple(outcome.names), times, tuple(outcome.columns), aligned)
                if living is not None:
                    tablet = _compressed(tablet, living)
                self._write(tablet, request, creates)
                points = points_of(tablet.columns)

        if living is None or living.any():
            self._creating(path, write, schema_check)
        left_out = ([] if living is None else [_expired(times, living)]) + _listed(outcome.misfits)
        if left_out:
            code = TYPE_MISMATCH if outcome.misfits else _OUT_OF_TTL
            raise PartlyWritten(path, points, values_in(statement), left_out, code=code)
        return points

    def _values_of(self, statement: Insert, path: str, moment: TimeContext) -> InsertValues:
        schema = self._store.schema
        return values_of(statement, schema.device(path), template_for(schema, path), moment, self.automatic)

    def _living(self, device: str, times: Int64Array) -> BoolArray | None:
        """Return a mask of the rows that are not expired, or None if no row is expired."""
        expiry = Expiry(self._store.schema.ttl, self._clock.now_ns(), self._store.options.time_unit)
        limit = expiry.expired_before(device)
        if limit is None:
            return None
        living: BoolArray = times >= limit
        return None if living.all() else living

    # ------------------------------------------------------------------ schema

    def _aligned_as(self, known: DeviceSchema | None, path: str, *, asked: bool | None) -> bool:
        """Return whether a device is or will be aligned; a new device without a template is aligned if `asked`."""
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

    def require_automatic(self, device: str, measurements: Sequence[str]) -> None:
        """Raise UserMistake 507 unless writes may create series."""
        if not self.automatic.is_on:
            raise UserMistake(missing_series(f"{device}.{measurements[0]}"), code=TYPE_MISMATCH)

    def _database_below(self, device: str, known: dict[str, Sequence[SchemaChange]]) -> Sequence[SchemaChange]:
        """Return `database_for` of a device; `known` caches results that all devices below one node share."""
        above = parent_of(device)
        found = known.get(above)
        if found is None or (found and self._store.schema.is_database(device)):
            found = self.database_for(device)
            is_common = not found or len(split_path(above)) > self.automatic.database_level
            if is_common and not self._store.schema.is_database(device):
                known[above] = found
        return found

    def database_for(self, device: str) -> list[SchemaChange]:
        """Return the change that creates a device's database, or [] if the database exists. Raises UserMistake 509."""
        if self._store.schema.database_of(device) is not None:
            return []
        nodes = split_path(device)
        if len(nodes) <= self.automatic.database_level:
            needed = f"databases are created {self.automatic.database_level} level(s) below root"
            raise UserMistake(f"{device} is not in a database and is too short to create one: {needed}", code=509)
        return [CreateDatabase(join_nodes(nodes[: self.automatic.database_level + 1]))]


def _outcome(batch: CheckedBatch, fitted: Fitted | None) -> int:
    """Return the number of points that were written. Raises PartlyWritten if rows or columns were left out."""
    misfits = [] if fitted is None else _listed(fitted.misfits)
    left_out = ([batch.expired] if batch.expired else []) + misfits
    points = batch.points - (0 if fitted is None else fitted.lost)
    if left_out:
        code = TYPE_MISMATCH if misfits else _OUT_OF_TTL
        raise PartlyWritten(batch.key[0], points, batch.given or batch.points, left_out, code=code)
    return points


def _numbers_of(groups: Iterable[Group]) -> set[int]:
    """Return the numbers of all devices in the groups."""
    return {number for group in groups for number in group.numbers}


def _is_same(fitted: Sequence[Column], given: Collection[Column]) -> bool:
    """Return whether a tablet has all columns of its batch, and all of them unchanged."""
    return len(fitted) == len(given) and all(f is c for f, c in zip(fitted, given, strict=True))


def _failure_of_others(outcome: int | Exception) -> Exception | None:
    """Return the error for the remaining batches if they must not be tried after `outcome`, or None to try them."""
    return failure_of_others(outcome) if isinstance(outcome, Exception) else None


def _compressed(tablet: Tablet, rows: BoolArray) -> Tablet:
    columns = tuple(column.compress(rows) for column in tablet.columns)
    return replace(tablet, times=tablet.times[rows], columns=columns)


def _expired(times: Int64Array, living: BoolArray) -> str:
    """Return a text that describes the rows older than the TTL."""
    expired = times[~living]
    return f"{len(expired)} of {len(times)} rows, older than the TTL, such as time {int(expired[0])}"


def _listed(misfits: Sequence[str]) -> list[str]:
    """Return texts about some of the values that do not fit, and the next step; an empty list if all values fit."""
    if not misfits:
        return []
    more = len(misfits) - _NAMED_MAX
    others = [f"values of {more} more measurement{'s' * (more > 1)}"] if more > 0 else []
    return [*misfits[:_NAMED_MAX], *others, "insert corrected values for these"]
