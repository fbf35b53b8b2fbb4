"""A task's rows into the database: tablets that are seen at once, or files that are loaded when the job commits.

    tablet   batches -> rows by device -> BulkWriter -> server          an effect at once; `abort` takes nothing back
    bulk     batches -> rows by device -> sealed TsFiles in bulkFolder; commit: LOAD each; abort: files go

A point is known by device, measurement and time, so a task that runs again (retry, speculation, a job that is repeated)
writes the same points once more: no row is twice there, whoever of them wins. Files carry job, partition and attempt;
only those whose attempt Spark commits are loaded.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from saros_spark.catalogue import unit_of
from saros_spark.connecting import connect
from saros_spark.errors import SourceError
from saros_spark.options import WriteOptions
from saros_spark.planning import moment
from saros_spark.rows import Rows, Shape, describe_misfit, shape_of, split_rows
from saros_spark.sealing import OfDatabase, Sealer
from saros_storage.errors import UserMistake
from saros_storage.paths import parse_pattern, split_path, split_series
from saros_storage.types import DataType

if TYPE_CHECKING:
    import saros

#: A cluster between leaders, or a server that starts anew: what the driver's own fail-over does not outlast.
_COMMIT_ATTEMPTS, _COMMIT_PAUSE_S = 3, 1.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """Who writes: of which job, which partition, the how-manieth time."""

    job: str
    partition: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an attempt wrote; `files` wait for the commit."""

    attempt: Attempt
    rows: int
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Replacement:
    """What mode overwrite replaces: devices and [start, end) in ticks."""

    patterns: tuple[str, ...]
    start: int | None
    end: int | None

    def statements(self) -> list[str]:
        """What deletes it."""
        bounds = [] if self.start is None else [f"time >= {self.start}"]
        bounds += [] if self.end is None else [f"time < {self.end}"]
        where = f" where {' and '.join(bounds)}" if bounds else ""
        return [f"delete from {pattern}.*{where}" for pattern in self.patterns]  # noqa: S608 (canonical patterns)


def prepare(schema: pa.Schema, options: WriteOptions, job: str, *, overwrite: bool) -> Replacement | None:
    """Before any task: check what can be checked, make the job's folder, delete what tablets replace.

    Raises SourceError, and the driver's errors.
    """
    shape_of(schema, options)
    with connect(options.connecting) as connection:
        replacement = _replacement(connection, options) if overwrite else None
        if replacement is not None and options.method == "tablet":
            for text in replacement.statements():
                connection.execute(text)
    if options.method == "bulk":
        folder = job_folder(options, job)
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise SourceError(f"bulkFolder: cannot make {folder}: {error.strerror}") from error
    return replacement


def _replacement(connection: saros.Connection, options: WriteOptions) -> Replacement:
    if not options.devices:
        raise SourceError(
            "mode overwrite replaces what the options devices (and startTime, endTime) describe: give devices, such as"
            " root.plant.**, or write in mode append, where equal times are replaced"
        )
    unit = unit_of(connection)
    start = None if options.start is None else moment(options.start, unit, "startTime")
    end = None if options.end is None else moment(options.end, unit, "endTime")
    try:
        patterns = tuple(parse_pattern(text).text for text in options.devices)
    except UserMistake as error:
        raise SourceError(f"devices: {error}") from error
    return Replacement(patterns, start, end)


def job_folder(options: WriteOptions, job: str) -> Path:
    """Where a job's files wait."""
    assert options.bulk_folder is not None
    return Path(options.bulk_folder) / f"job-{job}"


def write_rows(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    options: WriteOptions,
    attempt: Attempt,
    replacement: Replacement | None,
) -> Receipt:
    """One task. Raises SourceError that names the row, and the driver's errors."""
    with connect(options.connecting) as connection:
        writer = _Task(connection, shape_of(schema, options), options, replacement)
        if options.method == "bulk":
            return writer.seal(batches, attempt)
        return writer.send(batches, attempt)


class _Task:
    def __init__(
        self, connection: saros.Connection, shape: Shape, options: WriteOptions, replacement: Replacement | None
    ) -> None:
        self._connection = connection
        self._shape = shape
        self._options = options
        self._bounds = None if replacement is None else _Bounds(replacement, unit_of(connection).suffix)
        self._rows = 0

    def send(self, batches: Iterable[pa.RecordBatch], attempt: Attempt) -> Receipt:
        import saros

        options = self._options
        try:
            with self._connection.bulk_writer(batch_rows=options.batch_rows) as writer:
                for rows in self._split(batches):
                    writer.add(rows.device, rows.times, rows.columns, aligned=options.aligned)
        except saros.BulkError as error:
            raise self._explained(error) from error
        return Receipt(attempt, self._rows)

    def seal(self, batches: Iterable[pa.RecordBatch], attempt: Attempt) -> Receipt:
        options = self._options
        folder = job_folder(options, attempt.job)
        name = f"part-{attempt.partition}-{attempt.attempt}"
        known = OfDatabase(self._connection, aligned=bool(options.aligned))
        sealer = Sealer(known, folder, name, points_max=options.bulk_points)
        for rows in self._split(batches):
            sealer.add(rows)
        return Receipt(attempt, self._rows, tuple(sealer.finish()))

    def _split(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Rows]:
        for batch in batches:
            for rows in split_rows(batch, self._shape, self._rows):
                if self._bounds is not None:
                    self._bounds.check(rows)
                yield rows
            self._rows += batch.num_rows

    def _explained(self, error: saros.BulkError) -> Exception:
        """The error with the row that it is about, if that is to be found out."""
        failure = error.failures[0]
        types = types_of(self._connection, failure.device)
        times, columns = pa.array(failure.times), {name: _whole(values) for name, values in failure.columns.items()}
        said = describe_misfit(failure.device, times, columns, types, unit_of(self._connection).suffix)
        return error if said is None else SourceError(f"{said}; {len(error.failures)} batches were refused")


def _whole(values: object) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values)


def types_of(connection: saros.Connection, device: str) -> Mapping[str, DataType]:
    """Types of a device's series, by canonical measurement."""
    found = {}
    for path, _, _, type_, *_ in connection.execute(f"show timeseries {device}.*"):
        found[split_series(str(path))[1]] = DataType[str(type_)]
    return found


class _Bounds:
    """Rows of mode overwrite lie in what it replaces."""

    def __init__(self, replacement: Replacement, unit: str) -> None:
        self._replacement = replacement
        self._patterns = [parse_pattern(text) for text in replacement.patterns]
        self._instant = pa.timestamp(unit, tz="UTC")
        self._known: set[str] = set()

    def check(self, rows: Rows) -> None:
        """Raises SourceError naming the first row that does not."""
        wanted = self._replacement
        if rows.device not in self._known:
            if not any(pattern.matches(split_path(rows.device)) for pattern in self._patterns):
                raise SourceError(f"a row of {rows.device} is none of what is replaced: {', '.join(wanted.patterns)}")
            self._known.add(rows.device)
        times = rows.times
        if pa.types.is_timestamp(times.type):
            times = times.cast(self._instant, safe=False).cast(pa.int64())
        least, most = pc.min_max(times).values()
        for bound, outside in (
            (least, wanted.start is not None and least.as_py() < wanted.start),
            (most, wanted.end is not None and most.as_py() >= wanted.end),
        ):
            if outside:
                row = pc.index(times, bound).as_py()
                raise SourceError(
                    f"the row of {rows.device} at {rows.times[row]} is outside of startTime and endTime,"
                    " which say what is replaced"
                )


# ---------------------------------------------------------------------------------------------- the job's end


def commit(receipts: Sequence[Receipt], options: WriteOptions, job: str, replacement: Replacement | None) -> None:
    """Load the files of the attempts that count, after deleting what they replace. Twice does no harm.

    Raises the driver's error; its message says how many files are loaded. Each file is loaded whole or not at all.
    """
    if options.method == "tablet":
        return
    files = sorted(file for receipt in receipts for file in receipt.files)
    with connect(options.connecting) as connection:
        for text in replacement.statements() if replacement is not None else ():
            connection.execute(text)
        for number, file in enumerate(files):
            _load(connection, file, f"{number} of {len(files)} files are loaded")
    discard(options, job)


def _load(connection: saros.Connection, file: str, progress: str) -> None:
    import saros

    quoted = file.replace("'", "''")
    for attempt in range(1, _COMMIT_ATTEMPTS + 1):
        try:
            connection.execute(f"load '{quoted}' verify=false, onSuccess=none")
        except saros.OperationalError as error:
            if attempt == _COMMIT_ATTEMPTS:
                raise SourceError(f"{error}; {progress}: write the same again to have all") from error
            clock.sleep(_COMMIT_PAUSE_S)
        except saros.Error as error:
            raise SourceError(f"{error}; {progress}") from error
        else:
            return


def discard(options: WriteOptions, job: str) -> None:
    """Remove a job's files; attempts that still run find no folder and fail."""
    if options.method == "tablet":
        return
    folder = job_folder(options, job)
    for file in folder.glob("part-*") if folder.is_dir() else ():
        file.unlink(missing_ok=True)
    with suppress(OSError):  # an attempt has just written there; its file is no one's and is not loaded
        folder.rmdir()
