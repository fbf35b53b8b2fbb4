"""A task's rows into the database: tablets that are seen at once, or files that are loaded when the job commits.

    tablet   batches -> rows by device -> BulkWriter -> server          an effect at once; `abort` takes nothing back
    bulk     batches -> rows by device -> sealed TsFiles at the job's node; commit: LOAD each; abort: files go

Files come to the node by upload, or lie in bulkFolder, which executors and node share. The node is one of the cluster
that answered when the job began: all its tasks bring their files there, and LOAD takes them to their groups.

A point is known by device, measurement and time, so a task that runs again (retry, speculation, a job that is repeated)
writes the same points once more: no row is twice there, whoever of them wins. Files carry job, partition and attempt;
only those whose attempt Spark commits are loaded, and by requests made of these names: a commit that comes again finds
what was done.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from saros_spark.base.connecting import at_node, connect, repeatable, uploads_to
from saros_spark.base.errors import SourceError
from saros_spark.base.options import Connecting, WriteOptions
from saros_spark.base.times import parse_ticks
from saros_spark.base.worker_gc import collect_garbage
from saros_spark.read.catalogue import read_series, unit_of
from saros_spark.write.rows import Rows, Shape, describe_misfit, shape_of, split_rows
from saros_spark.write.tsfile_output import DatabaseSchema, Sealer
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import parse_pattern, split_path
from saros_wire.protocol import SEQUENCES_KEPT

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
class Job:
    """What a job's tasks and its end share."""

    name: str
    #: host:port of the node that loads its files; None: there are none.
    node: str | None = None
    replacement: Replacement | None = None


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


def prepare(schema: pa.Schema, options: WriteOptions, job: str, *, overwrite: bool) -> Job:
    """Before any task: check what can be checked, choose the node, make the folder, delete what tablets replace.

    Raises SourceError, and the driver's errors.
    """
    shape_of(schema, options)
    with connect(options.connecting) as connection:
        replacement = _replacement(connection, options) if overwrite else None
        if replacement is not None and options.method == "tablet":
            for text in replacement.statements():
                connection.execute(text)
    if options.method == "tablet":
        return Job(job, None, replacement)
    if options.bulk_folder is not None:
        folder = job_folder(options, job)
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise SourceError(f"bulkFolder: cannot make {folder}: {error.strerror}") from error
    with uploads_to(options.connecting) as uploads:
        return Job(job, uploads.address, replacement)


def _replacement(connection: saros.Connection, options: WriteOptions) -> Replacement:
    if not options.devices:
        raise SourceError(
            "mode overwrite replaces what the options devices (and startTime, endTime) describe: give devices, such as"
            " root.plant.**, or write in mode append, where equal times are replaced"
        )
    unit = unit_of(connection)
    start = None if options.start is None else parse_ticks(options.start, unit, "startTime")
    end = None if options.end is None else parse_ticks(options.end, unit, "endTime")
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
    job: Job,
) -> Receipt:
    """One task. Raises SourceError that names the row, and the driver's errors."""
    with connect(options.connecting) as connection:
        writer = _Task(connection, shape_of(schema, options), options, job)
        receipt = writer.seal(batches, attempt) if options.method == "bulk" else writer.send(batches, attempt)
    collect_garbage()
    return receipt


class _Task:
    def __init__(self, connection: saros.Connection, shape: Shape, options: WriteOptions, job: Job) -> None:
        self._connection = connection
        self._job = job
        self._shape = shape
        self._options = options
        replaced = job.replacement
        self._bounds = None if replaced is None else _Bounds(replaced, unit_of(connection).suffix)
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
        name = f"part-{attempt.partition}-{attempt.attempt}"
        if self._options.bulk_folder is not None:
            files = self._sealed(batches, job_folder(self._options, attempt.job), name)
            return Receipt(attempt, self._rows, tuple(files))
        with TemporaryDirectory(prefix="saros-bulk-") as folder:
            files = self._sealed(batches, Path(folder), name)
            with uploads_to(self._options.connecting, self._job.node) as uploads:
                brought = [uploads.send(attempt.job, Path(file).stem, file) for file in files]
        return Receipt(attempt, self._rows, tuple(brought))

    def _sealed(self, batches: Iterable[pa.RecordBatch], folder: Path, name: str) -> list[str]:
        known = DatabaseSchema(self._connection, aligned=bool(self._options.aligned))
        sealer = Sealer(known, folder, name, points_max=self._options.bulk_points)
        for rows in self._split(batches):
            sealer.add(rows)
        return sealer.finish()

    def _split(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Rows]:
        for batch in batches:
            for rows in split_rows(batch, self._shape, self._rows):
                if self._bounds is not None:
                    self._bounds.check(rows)
                yield rows
            self._rows += batch.num_rows

    def _explained(self, error: saros.BulkError) -> Exception:
        """The error with the row that it is about, if that is to be found out; SourceError: no retry would help."""
        import saros

        failure = error.failures[0]
        types = read_series(self._connection, [failure.device]).get(failure.device, {})
        times, columns = pa.array(failure.times), {name: _as_array(values) for name, values in failure.columns.items()}
        said = describe_misfit(failure.device, times, columns, types, unit_of(self._connection).suffix)
        if said is not None:
            return SourceError(f"{said}; {len(error.failures)} batches were refused")
        refused = isinstance(failure.error, saros.ProgrammingError | saros.DataError | saros.NotSupportedError)
        return SourceError(str(error)) if refused else error


def _as_array(values: object) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values)


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


def commit(receipts: Sequence[Receipt], options: WriteOptions, job: Job) -> None:
    """Load the files of the attempts that count, after deleting what they replace.

    Statements are numbered by the job and its files, so a commit that comes again, however far the one before it came,
    leaves alone what was done, and what others have written to the same points since. Raises the driver's error; its
    message says how many files are loaded. Each file is loaded whole or not at all.
    """
    if options.method == "tablet":
        return
    files = sorted(file for receipt in receipts for file in receipt.files)
    deletions = job.replacement.statements() if job.replacement is not None else []
    statements = [*deletions, *(_load(file) for file in files)]
    name = "\n".join([job.name, *files])
    for start in range(0, len(statements), SEQUENCES_KEPT):
        part = _Part(f"{start}\n{name}", statements[start : start + SEQUENCES_KEPT], start - len(deletions), len(files))
        part.carry_out(at_node(options.connecting, job.node))
    discard(options, job)


@dataclass(frozen=True, slots=True)
class _Part:
    """As many of a commit's statements as a node remembers; `loaded` of `files` files before them."""

    name: str
    statements: Sequence[str]
    loaded: int
    files: int

    def carry_out(self, connecting: Connecting) -> None:
        """All of them, once each. Raises SourceError."""
        import saros

        done = 0
        for attempt in range(1, _COMMIT_ATTEMPTS + 1):
            try:
                with repeatable(connecting, self.name) as connection:
                    for number, text in enumerate(self.statements):
                        done = max(done, number)
                        connection.execute(text)
            except saros.OperationalError as error:
                if attempt == _COMMIT_ATTEMPTS:
                    raise SourceError(f"{error}; {self._progress(done)}: write the same again to have all") from error
                clock.sleep(_COMMIT_PAUSE_S)
            except saros.Error as error:
                raise SourceError(f"{error}; {self._progress(done)}") from error
            else:
                return

    def _progress(self, done: int) -> str:
        return f"{max(self.loaded + done, 0)} of {self.files} files are loaded"


def _load(file: str) -> str:
    quoted = file.replace("'", "''")
    return f"load '{quoted}' verify=false, onSuccess=none"


def discard(options: WriteOptions, job: Job) -> None:
    """Remove a job's files; attempts that still run are refused, or find no folder, and fail."""
    if options.method == "tablet":
        return
    if options.bulk_folder is None:
        with uploads_to(options.connecting, job.node) as uploads:
            uploads.discard(job.name)
        return
    folder = job_folder(options, job.name)
    for file in folder.glob("part-*") if folder.is_dir() else ():
        file.unlink(missing_ok=True)
    with suppress(OSError):  # an attempt has just written there; its file is no one's and is not loaded
        folder.rmdir()
