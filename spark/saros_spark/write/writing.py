"""Write a task's rows as tablets, which are visible at once, or as files, which are loaded at the job's commit.

    tablet   batches -> rows by device -> BulkWriter -> server          takes effect at once; `abort` undoes nothing
    bulk     batches -> rows by device -> sealed TsFiles at the job's node; commit: LOAD each; abort: remove them

Files are uploaded to the node, or written to `bulkFolder`, a folder that the executors and the node share. The node is
chosen when the job begins: it is the first node that answers. All tasks send their files to this node, and LOAD
distributes the rows to the groups of their devices.

A point is identified by device, measurement and time. A repeated task (retry, speculation, repeated job) therefore
overwrites the same points, and creates no duplicates. File names contain job, partition and attempt; only the files of
attempts that Spark commits are loaded. The ids of the load requests derive from these names, so a repeated commit has
no further effect.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec
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

#: The number of attempts of a commit, and the pause between them. A leader election or the restart of a server may take
#: longer than the driver's failover.
_COMMIT_ATTEMPTS, _COMMIT_PAUSE_S = 3, 1.0


class Attempt(msgspec.Struct, frozen=True):
    """One attempt of a write task: its job, its partition, and the number of the attempt."""

    job: str
    partition: int
    attempt: int


class Receipt(msgspec.Struct, frozen=True):
    """The result of an attempt; `files` are loaded at the commit."""

    attempt: Attempt
    rows: int
    files: tuple[str, ...] = ()


class Job(msgspec.Struct, frozen=True):
    """The values that the tasks and the commit of a job share."""

    name: str
    #: host:port of the node that loads the job's files, or None if the job writes tablets.
    node: str | None = None
    replacement: Replacement | None = None


class Replacement(msgspec.Struct, frozen=True):
    """The data that mode overwrite replaces: devices and [start, end) in ticks."""

    patterns: tuple[str, ...]
    start: int | None
    end: int | None

    def statements(self) -> list[str]:
        """Return the statements that delete the data."""
        bounds = [] if self.start is None else [f"time >= {self.start}"]
        bounds += [] if self.end is None else [f"time < {self.end}"]
        where = f" where {' and '.join(bounds)}" if bounds else ""
        return [f"delete from {pattern}.*{where}" for pattern in self.patterns]  # noqa: S608 (canonical patterns)


def prepare(schema: pa.Schema, options: WriteOptions, job: str, *, overwrite: bool) -> Job:
    """Prepare a job before its tasks run: check options, choose the node; delete old data or create a folder.

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
    """Return the folder below bulkFolder for the files of a job."""
    assert options.bulk_folder is not None
    return Path(options.bulk_folder) / f"job-{job}"


def write_rows(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    options: WriteOptions,
    attempt: Attempt,
    job: Job,
) -> Receipt:
    """Write the rows of a task. Raises SourceError that names the row, and the driver's errors."""
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
        """Return an error that names the failing row, if it is found.

        The error is a SourceError if a retry cannot help.
        """
        import saros

        failure = error.failures[0]
        types = read_series(self._connection, [failure.device]).get(failure.device, {})
        times, columns = pa.array(failure.times), {name: _as_array(values) for name, values in failure.columns.items()}
        said = describe_misfit(failure.device, times, columns, types, unit_of(self._connection).suffix)
        if said is not None:
            count = len(error.failures)
            return SourceError(f"{said}; {count} {'batch was' if count == 1 else 'batches were'} refused")
        refused = isinstance(failure.error, saros.ProgrammingError | saros.DataError | saros.NotSupportedError)
        return SourceError(str(error)) if refused else error


def _as_array(values: object) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values)


class _Bounds:
    """Checks that rows written in mode overwrite belong to the data that they replace."""

    def __init__(self, replacement: Replacement, unit: str) -> None:
        self._replacement = replacement
        self._patterns = [parse_pattern(text) for text in replacement.patterns]
        self._instant = pa.timestamp(unit, tz="UTC")
        self._known: set[str] = set()

    def check(self, rows: Rows) -> None:
        """Raise SourceError if rows are outside the replaced data, naming one of them."""
        wanted = self._replacement
        if rows.device not in self._known:
            if not any(pattern.matches(split_path(rows.device)) for pattern in self._patterns):
                raise SourceError(
                    f"a row of {rows.device} is outside the replaced devices: {', '.join(wanted.patterns)}"
                )
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
                    f"the row of {rows.device} at {rows.times[row]} is outside the replaced range, from startTime to"
                    " endTime"
                )


# ---------------------------------------------------------------------------------------------- commit, abort


def commit(receipts: Sequence[Receipt], options: WriteOptions, job: Job) -> None:
    """Delete the data that the files of the committed attempts replace, and load the files.

    Statements are numbered by job and files. A repeated commit therefore skips the statements that were executed
    before, and does not overwrite points that other clients have written since. Each file is loaded completely or not
    at all. Raises SourceError, whose message says how many files are loaded.
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


class _Part(msgspec.Struct, frozen=True):
    """A part of a commit, with at most as many statements as a node remembers. Earlier parts load `loaded` files."""

    name: str
    statements: Sequence[str]
    loaded: int
    files: int

    def carry_out(self, connecting: Connecting) -> None:
        """Execute each of the statements once. Raises SourceError."""
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
                    raise SourceError(f"{error}; {self._progress(done)}; repeat the write to load the rest") from error
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
    """Remove a job's files.

    Any attempt that still runs then fails, since its uploads are refused or its folder is gone.
    """
    if options.method == "tablet":
        return
    if options.bulk_folder is None:
        with uploads_to(options.connecting, job.node) as uploads:
            uploads.discard(job.name)
        return
    folder = job_folder(options, job.name)
    for file in folder.glob("part-*") if folder.is_dir() else ():
        file.unlink(missing_ok=True)
    with suppress(OSError):  # an attempt has just written a file there, which is never loaded
        folder.rmdir()
