"""Import CSV, JSON lines and Parquet files over HTTP, with the readers of `saros import`.

    POST /import/chunk?job=J&offset=N    append a piece to the file in the data folder; return the size received so far
    POST /import/preview                 return the first rows as they would be written
    POST /import/run                     write the rows; return the progress and the outcome as JSON lines
    POST /import/discard                 remove the file

The name of the job is random. The client sends one piece after the other. After each batch, `run` sends a line, and
reads the next batch once the client has received this line. If the client disconnects, the import ends, but the rows
that it has already written are kept. If `run` succeeds, it removes the file. Files that remain are removed after an
hour, or when the server starts.
"""

from __future__ import annotations

import csv
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
import orjson
import pyarrow as pa
from msgspec.structs import replace

from saros_server.api import operations
from saros_server.api.cancellation import CancelToken
from saros_server.api.client_sessions import NoSession
from saros_server.api.executions import Statement
from saros_server.api.insert_request import InsertRequest
from saros_server.http.errors import BUSY, HttpError, failure_of
from saros_server.http.request import HttpRequest
from saros_server.http.response import JSON, Chunks, Response, json_response
from saros_server.http.routes import Description, Policy, Route
from saros_server.http.session import HttpSession
from saros_server.rest import fields
from saros_server.rest.results import execute, iso_times, json_column
from saros_server.sources.destination import Destination, by_device, check_device
from saros_server.sources.input_files import read_source
from saros_server.sources.parquet_worker.process import ParquetWorker
from saros_server.sources.series_types import FileSeries, SeriesTypes
from saros_server.sources.source_layout import SourceBatch
from saros_server.sources.source_options import SourceError, SourceOptions
from saros_server.sources.source_times import CUT_NOTE, cut_to
from saros_storage.base.paths import quote_node

_NDJSON = "application/x-ndjson"
_TAG = "import"
#: The number of rows in a batch, which is converted and written at once.
_BATCH_ROWS = 20_000
PREVIEW_ROWS = 20
SKIP_LINES_MAX = 1_000_000
#: The maximum number of bad rows that are listed. Any more are only counted.
BAD_ROWS_MAX = 100
_NOTES_MAX = 20
_FORMATS = ("csv", "json", "parquet")
#: The maximum number of processes that read Parquet files at the same time, and the number of seconds that a request
#: waits for one of them. Each process may use as much memory as one import is allowed.
WORKERS_MAX, _WORKER_SECONDS = 2, 20.0
_WORKERS = threading.BoundedSemaphore(WORKERS_MAX)
_JOB = {"job": "The random name of the import.", "offset": "The place of the piece in the file, in bytes."}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_NAMED = {"type": "object", "additionalProperties": {"type": "string"}}
_TEXT = {"type": "string"}
_IMPORT = {
    "type": "object",
    "required": ["job", "size", "name"],
    "description": "A file that was sent, and the options of `saros import`.",
    "properties": {
        "job": _TEXT,
        "size": {"type": "integer"},
        "name": _TEXT,
        "format": {"type": "string", "enum": list(_FORMATS), "description": "By default, the content decides."},
        "device": _TEXT,
        "device_column": _TEXT,
        "aligned": {"type": "boolean"},
        "time_columns": _TEXTS,
        "time_format": _TEXT,
        "zone": _TEXT,
        "delimiter": _TEXT,
        "decimal": _TEXT,
        "thousands": _TEXT,
        "encoding": _TEXT,
        "skip_lines": {"type": "integer"},
        "nulls": _TEXTS,
        "columns": _TEXTS,
        "names": _NAMED,
        "types": _NAMED,
    },
}


def routes() -> list[Route]:
    """Return the routes."""
    answer = {JSON: {"type": "object"}}
    binary = {"application/octet-stream": {"type": "string", "format": "binary"}}
    about = {JSON: _IMPORT}
    lines = {_NDJSON: {"type": "string"}}
    job = {JSON: {"type": "object", "required": ["job"], "properties": {"job": _TEXT}}}
    return [
        _route("chunk", _chunk, Description("Send a piece of a file.", _TAG, _JOB, binary, answer)),
        _route("preview", _preview, Description("Show the first rows of a file.", _TAG, {}, about, answer)),
        _route("run", _run, Description("Write the rows of a file.", _TAG, {}, about, lines)),
        _route("discard", _discard, Description("Remove a file that was sent.", _TAG, {}, job, answer)),
    ]


def _route(name: str, function: Callable[[HttpRequest, HttpSession], Response], description: Description) -> Route:
    return Route("POST", f"/import/{name}", Policy.AUTHENTICATED, function, description)


# ---------------------------------------------------------------------------------------------- files


def _chunk(request: HttpRequest, session: HttpSession) -> Response:
    job, offset = request.query.get("job", ""), request.query.get("offset", "0")
    if not (offset.isascii() and offset.isdecimal()) or int(offset) > operations.IMPORT_BYTES_MAX:
        raise HttpError(400, f"offset is {offset[:40]!r}: expected a number of bytes")
    chunk = operations.ImportChunk(job, int(offset), request.body())
    return json_response({"size": session.call(operations.IMPORT_CHUNK, chunk)})


def _discard(request: HttpRequest, session: HttpSession) -> Response:
    session.call(operations.DISCARD_IMPORT, fields.text(request.object(), "job"))
    return json_response({"code": 200, "message": "SUCCESS_STATUS"})


# ---------------------------------------------------------------------------------------------- reading


class _SessionStatements(msgspec.Struct, frozen=True):
    """An implementation of `Statements` that uses the session of a request."""

    session: HttpSession

    def execute(self, statement: str, /) -> list[Sequence[object]]:
        """See `Statements.execute`."""
        _, result = execute(self.session, Statement(statement))
        if result is None:
            return []
        try:
            return list(chain.from_iterable(map(_rows_of, result.batches())))
        finally:
            result.close()


class _Import(msgspec.Struct, frozen=True):
    """A file that was uploaded, and the options for its import."""

    job: str
    name: str
    path: Path
    #: The format of the file, or None to detect it from the content.
    format: str | None
    options: SourceOptions
    destination: Destination
    types: SeriesTypes
    aligned: bool
    memory_bytes: int
    cancel: CancelToken

    def batches(self) -> Generator[SourceBatch]:
        """Yield the rows. Raises SourceError, HttpError."""
        series = FileSeries(self.destination, self.types)
        try:
            for batch in read_source(self.path, self.format, self.options, series, self.name, self._worker):
                times = cut_to(batch.times, self.options.unit, CUT_NOTE, batch.notes)
                yield replace(batch, times=times)
        except (pa.ArrowException, csv.Error, UnicodeError) as error:
            raise SourceError(f"{self.name} cannot be read: {error}") from error

    @contextmanager
    def _worker(self) -> Iterator[ParquetWorker]:
        """Yield a process that reads Parquet files.

        If the request is cancelled, the process ends. Raises HttpError 503 if too many files are being read.
        """
        if not _WORKERS.acquire(timeout=_WORKER_SECONDS):
            raise HttpError(503, f"{WORKERS_MAX} Parquet files are read at the moment: try again later", BUSY)
        try:
            with ParquetWorker(self.memory_bytes) as worker:
                if not self.cancel.on_cancel(worker.close):
                    worker.close()
                yield worker
        finally:
            _WORKERS.release()


def _import(request: HttpRequest, session: HttpSession) -> _Import:
    """Return the import that the body of a request describes. Raises HttpError, UploadRefused."""
    body = request.object()
    name, format_ = fields.text(body, "name"), fields.text(body, "format", "") or None
    if format_ not in (None, *_FORMATS):
        raise HttpError(400, f"format is {format_[:40]!r}: expected {', '.join(_FORMATS)}, or none")
    options = _options(body, session.time_unit)
    template = fields.text(body, "device", "") or None
    job = fields.text(body, "job")
    check_device(template, options.device_column)
    path = session.call(operations.IMPORT_FILE, operations.ImportFile(job, fields.integer(body, "size")))
    types = SeriesTypes(_SessionStatements(session))
    destination = Destination(template, Path(name))
    memory_bytes = session.api.node.configuration.import_memory_bytes
    aligned = bool(fields.flag(body, "aligned"))
    return _Import(job, name, Path(path), format_, options, destination, types, aligned, memory_bytes, session.cancel)


def _options(body: Mapping[str, Any], unit: str) -> SourceOptions:
    """Return the options for reading the file. Raises HttpError."""
    return SourceOptions(
        time_columns=tuple(_texts(body, "time_columns")),
        time_format=fields.text(body, "time_format", "") or None,
        zone=_zone(fields.text(body, "zone", "") or "UTC"),
        unit=unit,
        delimiter=_character(body, "delimiter"),
        nulls=tuple(_texts(body, "nulls")),
        only=tuple(_texts(body, "columns")) or None,
        names=_named(body, "names"),
        types=_named(body, "types"),
        batch_rows=_BATCH_ROWS,
        device_column=fields.text(body, "device_column", "") or None,
        encoding=_encoding(fields.text(body, "encoding", "") or "utf-8"),
        decimal=_character(body, "decimal") or ".",
        thousands=_character(body, "thousands"),
        skip_lines=_skip_lines(body),
    )


def _texts(body: Mapping[str, Any], name: str) -> list[str]:
    return [] if body.get(name) is None else fields.array_of(body, name, str)


def _named(body: Mapping[str, Any], name: str) -> dict[str, str]:
    found = body.get(name) or {}
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise HttpError(400, f"{name} must be an object whose values are texts")
    return found


def _character(body: Mapping[str, Any], name: str) -> str | None:
    """Return a field that is one ASCII character, or None if the field is missing."""
    found = fields.text(body, name, "")
    if len(found) > 1 or not found.isascii() or found in ('"', "\n", "\r", "\0"):
        raise HttpError(400, f"{name} is {found[:20]!r}: expected one character")
    return found or None


def _skip_lines(body: Mapping[str, Any]) -> int:
    found = fields.integer(body, "skip_lines", 0)
    if not 0 <= found <= SKIP_LINES_MAX:
        raise HttpError(400, f"skip_lines is {found}: expected a number from 0 to {SKIP_LINES_MAX}")
    return found


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise HttpError(400, f"time zone {name[:60]!r} is unknown: use a name such as UTC or Europe/Berlin") from None
    return name


def _encoding(name: str) -> str:
    try:
        "a".encode(name)
    except (LookupError, ValueError):
        raise HttpError(400, f"encoding {name[:60]!r} is unknown: use one such as utf-8, latin-1 or cp1252") from None
    return name


# ---------------------------------------------------------------------------------------------- preview


def _preview(request: HttpRequest, session: HttpSession) -> Response:
    found = _import(request, session)
    with closing(found.batches()) as batches:
        batch = next(batches, None)
    if batch is None:
        return json_response({"time": [], "columns": [], "rows": [], "bad": [], "notes": []})
    times = _texts_of(batch.times.slice(0, PREVIEW_ROWS), session.time_unit)
    devices = [] if batch.devices is None else batch.devices.slice(0, PREVIEW_ROWS).to_pylist()
    values = [_as_json(column.values.slice(0, PREVIEW_ROWS)) for column in batch.columns]
    columns = [
        {
            "header": column.header,
            "type": column.type.name,
            "series": FileSeries(found.destination, found.types).path_of(column.name, devices[0] if devices else None),
        }
        for column in batch.columns
    ]
    return json_response(
        {
            "time": batch.time_columns,
            "headers": batch.headers,
            "columns": columns,
            "devices": devices,
            "rows": [list(row) for row in zip(times, *values, strict=True)],
            "bad": _bad_rows(batch, PREVIEW_ROWS),
            "notes": [*batch.notes, *map(str, batch.rounded)][:_NOTES_MAX],
        }
    )


def _rows_of(batch: pa.RecordBatch) -> Iterator[Sequence[object]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _as_json(array: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(array.type):
        return iso_times(array).to_pylist()  # type: ignore[no-any-return]
    return list(json_column(array))


def _texts_of(times: pa.Array, unit: str) -> list[Any]:
    """Return times as ISO 8601 texts in UTC."""
    return _as_json(times.cast(pa.timestamp(unit, "UTC"), safe=False))


def _bad_rows(batch: SourceBatch, count: int) -> list[dict[str, Any]]:
    return [{row.unit: row.number, "reason": row.reason} for row in batch.bad[: max(count, 0)]]


# ---------------------------------------------------------------------------------------------- writing


class _Progress(msgspec.Struct):
    """The progress of an import."""

    rows: int = 0
    points: int = 0
    #: Number of bytes that have been read from the file.
    position: int = 0
    bad_rows: int = 0
    #: The type of each series, by name.
    types: dict[str, str] = msgspec.field(default_factory=dict)
    notes: list[str] = msgspec.field(default_factory=list)

    def line(self, **more: object) -> bytes:
        """Return the progress as a line of JSON, with the members `more` added."""
        counts = {"rows": self.rows, "points": self.points, "bytes": self.position, "bad_rows": self.bad_rows}
        return orjson.dumps(counts | more) + b"\n"


def _run(request: HttpRequest, session: HttpSession) -> Response:
    found = _import(request, session)
    progress = _Progress()
    is_failed = threading.Event()

    def close() -> None:
        if session.cancel.cancelled or not is_failed.is_set():
            with suppress(NoSession):
                session.call(operations.DISCARD_IMPORT, found.job)

    return Response(Chunks(_lines(found, session, progress, is_failed), close), content_type=_NDJSON)


def _lines(found: _Import, session: HttpSession, progress: _Progress, is_failed: threading.Event) -> Iterator[bytes]:
    """Write the rows, and yield a line for each batch. If an error occurs, the file is kept for another attempt."""
    try:
        with closing(found.batches()) as batches:
            for batch in batches:
                if session.cancel.cancelled:
                    return
                bad = _bad_rows(batch, BAD_ROWS_MAX - progress.bad_rows)
                _write(found, session, batch, progress)
                yield progress.line(bad=bad)
        notes = progress.notes[:_NOTES_MAX]
        yield progress.line(done=True, bad=[], types=progress.types, notes=notes)
    except Exception as error:  # noqa: BLE001 (the top of a response)
        is_failed.set()
        failure = failure_of(error)
        yield progress.line(bad=[], error={"code": failure.code, "message": failure.message})


def _write(found: _Import, session: HttpSession, batch: SourceBatch, progress: _Progress) -> None:
    """Write a batch. Raises SourceError, and the errors of an insert."""
    aligned = found.aligned
    for device, part in by_device(batch, found.destination) if batch.times_count else ():
        found.types.write(device, {column.name: column.type for column in part.columns}, aligned=aligned)
        columns = {quote_node(column.name): column.values for column in part.columns}
        insert = InsertRequest(device, aligned or None, 0, part.times, columns)
        progress.points += session.call(operations.INSERT, insert).points
    progress.rows += batch.times_count
    progress.position = batch.position
    progress.bad_rows += len(batch.bad)
    progress.types.update({column.name: column.type.name for column in batch.columns})
    told = (*batch.notes, *map(str, batch.rounded))
    progress.notes += [note for note in told if note not in progress.notes]
