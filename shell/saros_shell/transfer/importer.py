"""`saros import FILES`: loads files into a database, can resume, and sets bad rows aside.

    CSV, JSON lines, Parquet   source batches (`input_files.py`) -> device, times, columns -> Connection.bulk_writer
                                 │       └ bad rows (line, reason, values) -> <file>.bad.csv
                                 └ types of existing series (`series_types.py`)
    TsFile                     LOAD

The device is fixed (`--device root.a.b`), one per file (`{file}` in `--device` is the file's name without suffix), or
one per value of a column (`--device-column NAME`, `{device}` in `--device`). Without `--device`, the devices come from
the file: from its metadata, from column names that are full paths, or from the paths in the device column, as in the
exported result of a query. Once a second, all rows that were read are written, and the state file records the position
in each file. `--resume` continues from these positions. A row overwrites an earlier row with the same time, so writing
a batch twice has no further effect.
"""

from __future__ import annotations

import argparse
import codecs
import csv
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

import saros
from saros.api.bulk import BulkWriter
from saros.base.target import without_password
from saros_server.config import memory_limits
from saros_server.config.arguments import CommandParser, at_least
from saros_server.config.configuration import parse_size
from saros_server.sources.destination import Destination, by_device, check_device
from saros_server.sources.input_files import read_source
from saros_server.sources.opened_file import FORMATS, is_tsfile
from saros_server.sources.parquet_files import stated_device
from saros_server.sources.parquet_worker.process import WORKER_BYTES, ParquetWorker
from saros_server.sources.plurals import counted
from saros_server.sources.series_types import FileSeries, SeriesTypes
from saros_server.sources.source_layout import Rounded, SourceBatch
from saros_server.sources.source_options import SourceError, SourceOptions
from saros_server.sources.source_times import CUT_NOTE, NO_TICKS, NO_TIME, cut_to
from saros_shell.output.login import password_of
from saros_shell.output.progress import Progress
from saros_shell.output.render import iso_times
from saros_shell.transfer.replaced import ReplacedPoints
from saros_storage.base.paths import quote_node
from saros_storage.base.types import DataType

#: The maximum number of bad rows shown on the terminal. The side file has all bad rows.
BAD_SHOWN_MAX = 5
#: The maximum number of notes shown on the terminal.
NOTES_SHOWN_MAX = 10
#: If integer times are outside these years, they are probably in another unit.
LIKELY_YEARS = range(1980, 2100)
#: The maximum number of columns whose types are shown.
TYPES_SHOWN_MAX = 20


class Report(msgspec.Struct):
    """The result of an import: counts, types, the range of times, and notes for the user."""

    files: int = 0
    rows: int = 0
    points: int = 0
    bad_rows: int = 0
    bad_files: list[str] = msgspec.field(default_factory=list)
    #: True if rows are bad because their times do not have the expected format.
    bad_times: bool = False
    #: For each column, the types of its series: one type, or several if the types differ between devices.
    types: dict[str, list[DataType]] = msgspec.field(default_factory=dict)
    #: For each column, the number of integers that were rounded to a DOUBLE, and the first rounded integer.
    rounded: dict[str, Rounded] = msgspec.field(default_factory=dict)
    #: True if times are integers and the user has not given their unit.
    bare_times: bool = False
    #: The numbers of TsFiles and of their points. TsFiles are loaded as a whole; `rows` does not include their rows.
    tsfiles: int = 0
    tsfile_points: int = 0
    replaced: ReplacedPoints = msgspec.field(default_factory=ReplacedPoints)
    #: First and last time.
    times: tuple[pa.Scalar, pa.Scalar] | None = None
    #: Messages for the user, such as assumptions that may be wrong.
    notes: list[str] = msgspec.field(default_factory=list)

    def numbers(self) -> list[tuple[int, str]]:
        """Return the counts to show and their units. If only TsFiles were loaded, the number of rows is left out."""
        rows, bad_rows = (self.rows, "row"), (self.bad_rows, "bad row")
        files, points = (self.files, "file"), (self.points, "point")
        return [files, points] if self.tsfiles == self.files else [files, rows, points, bad_rows]

    def add_times(self, times: pa.Array) -> None:
        """Extend the range of times by the times of a batch. In all batches, times have the same type."""
        bounds = pc.min_max(times)
        first, last = bounds["min"], bounds["max"]
        if first.is_valid:
            before = self.times or (first, last)
            self.times = min(first, before[0], key=_ticks), max(last, before[1], key=_ticks)

    def add_type(self, name: str, type_: DataType) -> None:
        """Record the type of a column's series."""
        types = self.types.setdefault(name, [])
        if type_ not in types:
            types.append(type_)

    def add_columns(self, batch: SourceBatch) -> None:
        """Record the types of a batch's columns, and the integers that were rounded."""
        for column in batch.columns:
            self.add_type(column.name, column.type)
        for lost in batch.rounded:
            before = self.rounded.get(lost.name)
            self.rounded[lost.name] = lost if before is None else replace(before, count=before.count + lost.count)


def main(arguments: Sequence[str]) -> int:
    """Run `saros import` and return its exit code.

    0: all rows are loaded; 1: rows are bad, or a file failed; 2: wrong usage; 130: interrupted.
    """
    options = parser().parse_args(arguments)
    files = without_bad_rows([Path(f) for f in options.files])
    missing = [str(f) for f in files if not f.is_file()]
    if missing:
        told = [f"{name} is a folder; pass its files" for name in missing if os.path.isdir(name)]
        sys.stderr.write(f"saros import: {told[0] if told else 'no such file: ' + ', '.join(missing)}\n")
        return 2
    try:
        check_device(options.device, options.device_column)
        source = source_options(options)
        password = password_of(options.database)
        with saros.connect(options.database, password=password, time_zone=options.zone) as connection:
            report = run(connection, files, source, options)
    except (saros.Error, SourceError) as error:
        sys.stderr.write(f"saros import: {error}\n")
        return 1
    except KeyboardInterrupt:
        kept = os.path.exists(options.state)
        sys.stderr.write(f"\ninterrupted; --resume continues from {options.state}\n" if kept else "\ninterrupted\n")
        return 130
    sys.stdout.write(", ".join(counted(number, what) for number, what in report.numbers()) + "\n")
    if report.types:
        sys.stdout.write(f"columns: {', '.join(describe_types(report.types))}\n")
    if report.times:
        first, last = iso_times(pa.array(report.times, report.times[0].type))
        sys.stdout.write(f"times: {first} to {last}\n")
        if report.bare_times and any(int(str(moment)[:4]) not in LIKELY_YEARS for moment in (first, last)):
            report.notes.append(
                "the times are integers, read in the database's unit since 1970; pass --time-format epoch:s for seconds"
                " (also epoch:ms, epoch:us, epoch:ns), or '%Y%m%d%H%M%S' for dates"
            )
    if 0 < report.tsfiles < report.files:
        points = counted(report.tsfile_points, "point")
        sys.stdout.write(f"{points} from {counted(report.tsfiles, 'TsFile')}, whose rows are not counted\n")
    if report.replaced.count:
        number = counted(report.replaced.count, "point")
        least = "" if report.replaced.is_exact else "at least "
        report.notes.insert(0, f"{least}{number} replaced others of this import with the same series and time")
    report.notes[:0] = map(str, report.rounded.values())
    for name in report.bad_files:
        sys.stdout.write(f"bad rows: {name}\n")
    for note in report.notes[:NOTES_SHOWN_MAX]:
        sys.stderr.write(f"note: {note}\n")
    if len(report.notes) > NOTES_SHOWN_MAX:
        sys.stderr.write(f"and {counted(len(report.notes) - NOTES_SHOWN_MAX, 'more note')}\n")
    if report.bad_times:
        sys.stderr.write(
            "hint: pass the format of times with --time-format, such as '%d.%m.%Y %H:%M:%S', and their column with"
            " --time-column, twice for date and time of day\n"
        )
    return 1 if report.bad_rows else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros import`."""
    made = CommandParser(
        prog="saros import", description="Load CSV, JSON lines, Parquet and TsFiles, compressed or not."
    )
    made.add_argument("files", nargs="+", metavar="FILE")
    made.add_argument(
        "-d", "--database", default="./data", metavar="TARGET", help="folder or saros://host (default ./data)"
    )
    made.add_argument(
        "--device",
        metavar="PATH",
        help="root.a.b, root.a.{file} or root.a.{device}; default: from the file or the paths of its columns",
    )
    made.add_argument("--device-column", metavar="NAME", help="column that names the device")
    made.add_argument("--aligned", action="store_true", help="create new devices as aligned")
    made.add_argument("--format", choices=FORMATS, help="default: by the file's content")
    made.add_argument(
        "--time-column",
        action="append",
        default=[],
        metavar="NAME",
        help="default: by its type, its name, or its texts; twice: date, then time of day",
    )
    made.add_argument(
        "--time-format",
        metavar="FORMAT",
        help="strptime format, or epoch (in the database's unit), epoch:s, :ms, :us, :ns; default: ISO 8601 or epoch",
    )
    made.add_argument("--zone", metavar="NAME", help="zone of times without one (default: UTC)")
    made.add_argument(
        "--delimiter", default=None, metavar="C", help="default: , or ; or tab or |, whichever the header has"
    )
    made.add_argument("--decimal", default=".", metavar="C", help="decimal mark, such as , (default: .)")
    made.add_argument("--thousands", metavar="C", help="thousands separator, such as . (default: none)")
    made.add_argument("--skip-lines", type=at_least(0), default=0, metavar="N", help="lines before the header")
    made.add_argument(
        "--encoding", default="utf-8", metavar="NAME", help="CSV encoding, such as latin-1 (default: utf-8)"
    )
    made.add_argument("--null", action="append", default=[], metavar="TEXT", help="text that means no value")
    made.add_argument("--columns", metavar="A,B,...", help="only these columns")
    made.add_argument("--map", action="append", default=[], metavar="HEADER=NAME", help="series name for a column")
    made.add_argument("--type", action="append", default=[], metavar="HEADER=TYPE", help="type of a column")
    made.add_argument(
        "--batch-rows", type=at_least(1), default=50_000, metavar="N", help="rows per batch (default: 50000)"
    )
    made.add_argument(
        "--memory",
        type=_memory,
        metavar="SIZE",
        help="memory limit to read a Parquet file, such as 4GiB (default: half of the machine's, at least 1GiB)",
    )
    made.add_argument("--resume", action="store_true", help="resume an interrupted import of the same files")
    made.add_argument("--state", default=".saros-import.json", metavar="FILE", help="state file for --resume")
    made.add_argument("--quiet", action="store_true", help="no progress bar")
    return made


def source_options(options: argparse.Namespace) -> SourceOptions:
    """Return the options for reading files. Raises SourceError."""
    try:
        codecs.lookup(options.encoding)
    except LookupError:
        raise SourceError(f"unknown encoding {options.encoding!r}; pass one such as utf-8, latin-1 or cp1252") from None
    return SourceOptions(
        time_columns=tuple(options.time_column),
        time_format=options.time_format,
        zone=options.zone or "UTC",
        delimiter=options.delimiter,
        nulls=tuple(options.null),
        only=tuple(options.columns.split(",")) if options.columns else None,
        names=dict(_pair(text, "--map") for text in options.map),
        types=dict(_pair(text, "--type") for text in options.type),
        batch_rows=options.batch_rows,
        device_column=options.device_column,
        encoding=options.encoding,
        decimal=options.decimal,
        thousands=options.thousands,
        skip_lines=options.skip_lines,
    )


def describe_types(types: Mapping[str, Sequence[DataType]]) -> list[str]:
    """Return the columns with their types, so that the user can check the types."""
    words = [f"{name} {' or '.join(type_.name for type_ in found)}" for name, found in types.items()]
    more = len(words) - TYPES_SHOWN_MAX
    return words if more <= 0 else [*words[:TYPES_SHOWN_MAX], f"and {more} more"]


def run(connection: saros.Connection, files: list[Path], source: SourceOptions, options: argparse.Namespace) -> Report:
    """Load the files one after the other, and return the report. Raises SourceError, saros.Error."""
    report = Report()
    progress = Progress(sum(f.stat().st_size for f in files), quiet=options.quiet)
    clock = connection.execute("show current_timestamp").fetch_arrow().schema.types[0]
    state = State(Path(options.state), _goal(options), resume=options.resume)
    memory_bytes = options.memory or max(memory_limits.memory_bytes() // 2, WORKER_BYTES)
    with connection.bulk_writer() as writer, ParquetWorker(memory_bytes) as worker:
        source = replace(source, unit=clock.unit)
        loader = _Loader(connection, writer, source, options, state, report, progress, clock, worker)
        for file in files:
            loader.load(file)
            report.files += 1
    report.points = writer.progress.points + report.tsfile_points
    state.remove()
    progress.finish()
    return report


@dataclass(slots=True)
class _Loader:
    """A loader of the files of one import."""

    connection: saros.Connection
    writer: BulkWriter
    source: SourceOptions
    options: argparse.Namespace
    state: State
    report: Report
    progress: Progress
    #: The type of times in the database's unit and the session's zone.
    clock: pa.DataType
    worker: ParquetWorker
    types: SeriesTypes = field(init=False)

    def __post_init__(self) -> None:
        self.types = SeriesTypes(self.connection)

    def load(self, file: Path) -> None:
        """Load a file. Raises SourceError, saros.Error."""
        before = self.progress.bytes_done
        try:
            as_it_is = self.options.format in (None, "tsfile") and is_tsfile(file)
        except OSError as error:
            raise SourceError(f"cannot read {file}: {error.strerror}") from error
        if as_it_is:
            self._load_tsfile(file)
        else:
            self._load_rows(file, before)
        self.progress.move_to(before + file.stat().st_size)

    def _load_tsfile(self, file: Path) -> None:
        if self.options.device is not None or self.options.device_column is not None:
            raise SourceError(f"{file} is a TsFile, which names its devices; omit --device and --device-column")
        self.writer.flush()
        path = str(file.resolve()).replace("'", "''")
        self.connection.execute(f"load '{path}'")
        self._report_tsfile(file)

    def _report_tsfile(self, file: Path) -> None:
        """Add the points, types and times that the index of a loaded file contains to the report."""
        from saros_storage.io.disk import LocalDisk  # for TsFiles only
        from saros_storage.tsfile.reader import TsFileReader

        report = self.report
        reader = TsFileReader(str(file), LocalDisk().map(str(file)))
        for path in reader.devices():
            device = reader.device(path)
            assert device is not None
            for series in device.series.values():
                report.add_type(series.measurement, series.type)
                if series.statistics is not None:
                    report.tsfile_points += series.statistics.count
                    report.add_times(pa.array([series.statistics.start, series.statistics.end], self.clock))
        report.tsfiles += 1

    def _load_rows(self, file: Path, before: int) -> None:
        done = self.state.rows_of(file)
        stated = None if self.options.device or self.options.device_column else stated_device(file, self.worker)
        destination = Destination(self.options.device, file, stated.path if stated else None)
        aligned = self.options.aligned or (stated is not None and stated.aligned and not self.types.has(stated.path))
        with ExitStack() as stack:
            bad = BadRows(file, stack, append=done > 0)
            series = FileSeries(destination, self.types)
            batches = read_source(
                file, self.options.format, self.source, series, worker=lambda: nullcontext(self.worker)
            )
            for found in batches:
                self.progress.move_to(before + found.position)
                if done and found.stop_row <= done:
                    continue
                batch = replace(found, times=cut_to(found.times, self.clock.unit, CUT_NOTE, self.report.notes))
                self._write(batch, destination, aligned=aligned)
                self.report.bad_rows += bad.write(batch)
                self.state.record(file, batch.stop_row)
                if self.state.is_due:
                    self.writer.flush()
                    self.state.save()
                self.progress.show(self.report.rows, self.writer.progress.points)
            if bad.count:
                self.report.bad_files.append(str(bad.path))

    def _write(self, batch: SourceBatch, destination: Destination, *, aligned: bool) -> None:
        report = self.report
        report.add_columns(batch)
        self._add_note_on_paths(batch)
        for device, part in by_device(batch, destination) if batch.times_count else ():
            self.types.write(device, {c.name: c.type for c in part.columns}, aligned=aligned)
            columns = {quote_node(c.name): c.values for c in part.columns}  # a name may contain back-quotes
            self.writer.add(device, part.times, columns, aligned=aligned or None)
            report.replaced.add(device, part.times.cast(self.clock, safe=False).cast(pa.int64()), columns)
        report.rows += batch.times_count
        if pa.types.is_int64(batch.times.type) or pa.types.is_timestamp(batch.times.type):
            report.add_times(batch.times.cast(self.clock, safe=False))
        self._add_notes(*batch.notes)
        report.bare_times |= self.source.time_format is None and pa.types.is_int64(batch.times.type)
        report.bad_times |= any(row.reason.endswith((NO_TIME, NO_TICKS)) for row in batch.bad)

    def _add_note_on_paths(self, batch: SourceBatch) -> None:
        """Add a note for the user if names of columns are paths, but --device makes them names of series."""
        if self.options.device is None:
            return
        path = next((column.name for column in batch.columns if column.name.startswith("root.")), None)
        if path is not None:
            self._add_notes(
                f"column {path} is imported as a series of the device {self.options.device}; omit --device to import "
                "into the series with that path"
            )

    def _add_notes(self, *notes: str) -> None:
        """Add notes to the report, except for those that it has already."""
        self.report.notes += [note for note in notes if note not in self.report.notes]


def bad_rows_of(file: Path) -> Path:
    """Return the path of the side file for the bad rows of a file."""
    return file.with_name(file.name + ".bad.csv")


def without_bad_rows(files: Sequence[Path]) -> list[Path]:
    """Return the files without the side files of earlier imports, which a pattern such as `*.csv` also matches."""
    left = {bad_rows_of(file) for file in files}
    return [file for file in files if file not in left]


class BadRows:
    """The side file for the bad rows of a file, created at the first bad row."""

    def __init__(self, file: Path, stack: ExitStack, *, append: bool) -> None:
        self.path = bad_rows_of(file)
        self.count = 0
        self._stack = stack
        self._append = append
        self._write: Callable[[Sequence[object]], object] | None = None

    def write(self, batch: SourceBatch) -> int:
        """Add the bad rows of a batch and return their number. Raises SourceError if the file cannot be written."""
        for row in batch.bad:
            if self._write is None:
                try:
                    stream = self._stack.enter_context(self.path.open("a" if self._append else "w", newline=""))
                except OSError as error:
                    raise SourceError(f"cannot write bad rows to {self.path}: {error.strerror}") from error
                self._write = csv.writer(stream).writerow
            self._write([row.number, row.reason, *row.values])
            self.count += 1
            if self.count <= BAD_SHOWN_MAX:
                name = self.path.name.removesuffix(".bad.csv")
                sys.stderr.write(f"\r{name}, {row.unit} {row.number}: {row.reason}\n")
        return len(batch.bad)


class State:
    """Stores the number of loaded rows of each file in a JSON file, which is replaced once a second.

    goal  the destination of the import; rows that were loaded into another destination do not count
    """

    def __init__(self, path: Path, goal: str, *, resume: bool) -> None:
        self._path = path
        self._goal = goal
        self._rows: dict[str, int] = {}
        self._saved_at = 0.0
        if resume and path.is_file():
            self._rows = _progress_in(path)

    def rows_of(self, file: Path) -> int:
        """Return the number of loaded rows of a file, or 0 if its size or modification time has changed."""
        return self._rows.get(self._key(file), 0)

    def record(self, file: Path, rows: int) -> None:
        """Record that `rows` rows of the file were read."""
        self._rows[self._key(file)] = rows

    def _key(self, file: Path) -> str:
        return f"{_identity(file)} -> {self._goal}"

    @property
    def is_due(self) -> bool:
        """True if the last `save` was at least a second ago."""
        return time.monotonic() - self._saved_at >= 1.0

    def save(self) -> None:
        """Save the recorded numbers of rows. The caller must have loaded these rows.

        Raises SourceError if the file cannot be written.
        """
        part = self._path.with_name(self._path.name + ".part")
        try:
            part.write_text(json.dumps(self._rows), encoding="utf-8")
            part.replace(self._path)
        except OSError as error:
            raise SourceError(f"cannot write the state file {part}: {error.strerror}; pass another --state") from error
        self._saved_at = time.monotonic()

    def remove(self) -> None:
        """Delete the state file once all rows are loaded."""
        self._path.unlink(missing_ok=True)


def _ticks(moment: pa.Scalar) -> int:
    ticks: int = moment.value
    return ticks


def _goal(options: argparse.Namespace) -> str:
    """Return the destination of an import: the database, without a password, and the devices in it."""
    target = options.database
    where = without_password(target) if "://" in target else str(Path(target).resolve())
    return f"{where} {options.device} {options.device_column}"


def _progress_in(path: Path) -> dict[str, int]:
    """Read a state file, and return the number of loaded rows of each file. Raises SourceError."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): int(count) for name, count in rows.items()}
    except (ValueError, AttributeError, OSError) as error:
        said = f"{path} is not the state of an import; delete it, and import without --resume"
        raise SourceError(said) from error


def _identity(file: Path) -> str:
    stat = file.stat()
    return f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns}"


def _memory(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not {error}") from error


def _pair(text: str, option: str) -> tuple[str, str]:
    key, equals, value = text.rpartition("=")
    if not equals:
        raise SourceError(f"{option} takes HEADER=VALUE, not {text!r}")
    return key, value
