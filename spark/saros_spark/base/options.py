"""Convert options of the data sources from Spark's text to typed values. An unknown option is an error.

Spark passes options as a case-insensitive mapping of text, and ignores misspelt options. Here, a misspelt option causes
an error that suggests the most similar name. Values are checked before a connection is opened. The functions have no
state, and read only the password file. Any thread may call them.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, cast, get_args

import msgspec

from saros_spark.base.errors import SourceError
from saros_spark.base.times import parse_duration, parse_time
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, split_path

Layout = Literal["by_device", "by_time", "narrow"]
TimeType = Literal["auto", "timestamp", "long"]
Method = Literal["tablet", "bulk"]
Unit = Literal["ms", "us", "ns"]
Snapshot = Literal["auto", "strict", "none"]
T = TypeVar("T")

_CONNECT = ("url", "user", "password", "passwordFile", "tlsCa", "consistency", "timeout")
_WHAT = ("path", "paths", "devices", "columns", "startTime", "endTime", "where", "aggregate", "interval", "sql")
_RELATION = (*_CONNECT, *_WHAT, "layout", "timeType", "valueType", "pointsPerPartition", "maxPartitions")
#: Options for which a session may have settings `spark.saros.*`.
SESSION = _CONNECT
#: The options of each operation on the two formats.
READ = (*_RELATION, "snapshot", "snapshotLease")
WRITE = (
    *(*_CONNECT, "path", "devices", "startTime", "endTime", "layout", "device", "aligned", "batchRows", "method"),
    *("bulkFolder", "bulkPoints"),
)
FILES = (
    *(
        "path",
        "paths",
        "pathGlobFilter",
        "devices",
        "columns",
        "startTime",
        "endTime",
        "layout",
        "timeUnit",
        "timeType",
    ),
    *("valueType", "pointsPerPartition"),
)
FILES_WRITE = ("path", "layout", "device", "aligned", "timeUnit", "maxPoints")
STREAM = (*_RELATION, "delay", "maxRowsPerTrigger")
STREAM_WRITE = (
    *(*_CONNECT, "path", "layout", "device", "aligned", "batchRows"),
    *("progress", "checkpointLocation", "queryName"),
)
#: The default number of points per task. A task then takes about a second, and holds some tens of MB of Arrow data at a
#: time.
_POINTS_PER_PARTITION = 5_000_000
#: The default limit of partitions. Each slice is a task with a closure, so a larger number would only burden Spark's
#: driver.
_PARTITIONS_MAX = 10_000
_TIMEOUT_S = 600.0
#: How long the server keeps a job's read point while none of its tasks reads.
_LEASE_S = 600.0
_BATCH_ROWS = 10_000
#: The only statement that may create tables of TsFiles. If another statement creates a table, Spark does not pass the
#: table's options.
_FILE_TABLE = "CREATE TABLE name USING tsfile LOCATION '/data/files' without a list of columns"
#: The number of points that a task of a bulk write buffers and sorts before it writes files. A point takes some 16
#: bytes.
_BULK_POINTS = 20_000_000


@dataclass(frozen=True, slots=True)
class Connecting:
    """The target and the login. The repr omits `password`, which Spark sends to its tasks, as for a JDBC source."""

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls_ca: str | None = None
    consistency: str | None = None
    timeout_s: float = _TIMEOUT_S


class ScanOptions(msgspec.Struct, frozen=True):
    """A relation: the part of the database to read, and the layout of its rows.

    Times are text here, since only the database knows the unit of its times.
    """

    connecting: Connecting
    devices: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None
    where: str | None = None
    aggregate: str | None = None
    interval: str | None = None
    sql: str | None = None
    layout: Layout = "by_device"
    time_type: TimeType = "auto"
    value_type: str | None = None
    points_per_partition: int = _POINTS_PER_PARTITION
    partitions_max: int = _PARTITIONS_MAX
    #: Tells whether all tasks share a read point, and whether they may take a new read point if the shared one is lost.
    snapshot: Snapshot = "auto"
    lease_s: float = _LEASE_S


class WriteOptions(msgspec.Struct, frozen=True):
    """The options of a write. `devices`, `start` and `end` describe the data that mode overwrite replaces."""

    connecting: Connecting
    layout: Layout = "by_device"
    device: str | None = None
    aligned: bool | None = None
    batch_rows: int = _BATCH_ROWS
    method: Method = "tablet"
    bulk_folder: str | None = None
    bulk_points: int = _BULK_POINTS
    devices: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None
    #: The device that records the committed batches of a stream.
    progress: str | None = None


class FileOptions(msgspec.Struct, frozen=True):
    """Folders of TsFiles, and the part of them to read."""

    paths: tuple[str, ...]
    glob: str | None = None
    devices: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None
    layout: Layout = "by_device"
    time_unit: str = "ms"
    time_type: TimeType = "auto"
    value_type: str | None = None
    points_per_partition: int = _POINTS_PER_PARTITION


class FileWriteOptions(msgspec.Struct, frozen=True):
    """The folder for TsFiles, and the layout of the rows."""

    path: str
    rows: WriteOptions
    time_unit: str = "ms"


class StreamOptions(msgspec.Struct, frozen=True):
    """A stream by time. Each batch ends `delay` before the newest point, or earlier after `rows_per_trigger` rows."""

    scan: ScanOptions
    delay: str = "0s"
    rows_per_trigger: int | None = None


def created_table(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of a CREATE TABLE statement, or None if `options` are not from one.

    Spark mixes these options with properties of the table (provider, owner, location), and repeats them as `option.*`.
    Raises SourceError for a password, which Spark's catalog would store.
    """
    if "provider" not in options:
        return None
    given = {name.removeprefix("option."): value for name, value in options.items() if name.startswith("option.")}
    if "password" in given:
        raise SourceError("a table would keep the password in Spark's catalog: give passwordFile instead")
    return given


def created_file_table(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of a CREATE TABLE statement for files (Spark passes its LOCATION as the path), or None."""
    table = created_table(options)
    return {**table, "path": options["path"]} if table is not None and "path" in options else table


def writable(options: Mapping[str, str], known: Iterable[str] = WRITE) -> dict[str, str]:
    """Return the options of a table that apply to writes."""
    names = {name.lower() for name in known}
    return {name: value for name, value in options.items() if name in names}


def with_session(given: Mapping[str, str], session: Mapping[str, str]) -> dict[str, str]:
    """Return `given`, and add the session's options unless `given` has a url.

    The session's login is therefore sent only to the session's own target.
    """
    return dict(given) if "url" in given else {**session, **given}


def scan_options(options: Mapping[str, str]) -> ScanOptions:
    """Return the options of a batch read. Raises SourceError."""
    return _scan(_RawOptions(options, READ))


def relation_options(options: Mapping[str, str]) -> ScanOptions:
    """Return the options of a batch or streaming read if only its schema is needed. Raises SourceError."""
    return _scan(_RawOptions(options, (*READ, *STREAM)))


def stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Return the options of a streaming read. Raises SourceError."""
    given = _RawOptions(options, STREAM)
    scan = _scan(given)
    for name, value in (("sql", scan.sql), ("aggregate", scan.aggregate)):
        if value is not None:
            raise SourceError(f"option {name} is for batch reads: aggregate the stream in Spark, or read a batch")
    return StreamOptions(scan, given.duration("delay") or "0s", given.number("maxRowsPerTrigger", int, 1))


def write_options(options: Mapping[str, str], *, streaming: bool = False) -> WriteOptions:
    """Return the options of a write. Raises SourceError."""
    given = _RawOptions(options, STREAM_WRITE if streaming else WRITE)
    return WriteOptions(
        connecting=_connecting(given),
        layout=given.choice("layout", Layout, "by_device"),
        device=given.text("device"),
        aligned=given.flag("aligned"),
        batch_rows=given.number("batchRows", int, 1) or _BATCH_ROWS,
        method=given.choice("method", Method, "tablet"),
        bulk_folder=given.text("bulkFolder"),
        bulk_points=given.number("bulkPoints", int, 1) or _BULK_POINTS,
        devices=_devices(given),
        start=given.time("startTime"),
        end=given.time("endTime"),
        progress=_progress(given) if streaming else None,
    )


def _progress(given: _RawOptions) -> str | None:
    text = given.text("progress")
    try:
        return None if text is None else join_nodes(split_path(text))
    except UserMistake as error:
        raise SourceError(f"option progress must be the path of a device: {error}") from error


def file_options(options: Mapping[str, str]) -> FileOptions:
    """Return the options of a read of TsFiles. Raises SourceError."""
    given = _RawOptions(options, FILES)
    path, paths = given.text("path"), given.text("paths")
    made = FileOptions(
        paths=tuple(json.loads(paths)) if paths else () if path is None else (path.removeprefix("file:"),),
        glob=given.text("pathGlobFilter"),
        devices=given.text_list("devices"),
        columns=given.text_list("columns"),
        start=given.time("startTime"),
        end=given.time("endTime"),
        layout=given.choice("layout", Layout, "by_device"),
        time_unit=given.choice("timeUnit", Unit, "ms"),
        time_type=given.choice("timeType", TimeType, "auto"),
        value_type=given.text("valueType"),
        points_per_partition=given.number("pointsPerPartition", int, 1) or _POINTS_PER_PARTITION,
    )
    if not made.paths:
        raise SourceError(f"no folder is given; use load('/data/files'), or {_FILE_TABLE}")
    if made.layout == "by_time":
        raise SourceError("format tsfile has the layouts by_device and narrow")
    return made


def file_write_options(options: Mapping[str, str]) -> FileWriteOptions:
    """Return the options of a write of TsFiles. Raises SourceError."""
    given = _RawOptions(options, FILES_WRITE)
    path = given.text("path")
    if path is None:
        raise SourceError(f"no folder is given; use save('/data/files'), or {_FILE_TABLE}")
    rows = WriteOptions(
        Connecting(""),
        layout=given.choice("layout", Layout, "by_device"),
        device=given.text("device"),
        aligned=given.flag("aligned"),
        bulk_points=given.number("maxPoints", int, 1) or _BULK_POINTS,
    )
    return FileWriteOptions(path.removeprefix("file:"), rows, given.choice("timeUnit", Unit, "ms"))


def _scan(given: _RawOptions) -> ScanOptions:
    lease = given.number("snapshotLease", float, 1)
    made = ScanOptions(
        connecting=_connecting(given),
        devices=_devices(given),
        columns=given.text_list("columns"),
        start=given.time("startTime"),
        end=given.time("endTime"),
        where=given.text("where"),
        aggregate=given.text("aggregate"),
        interval=given.duration("interval"),
        sql=given.text("sql"),
        layout=given.choice("layout", Layout, "by_device"),
        time_type=given.choice("timeType", TimeType, "auto"),
        value_type=given.text("valueType"),
        points_per_partition=given.number("pointsPerPartition", int, 1) or _POINTS_PER_PARTITION,
        partitions_max=given.number("maxPartitions", int, 1) or _PARTITIONS_MAX,
        snapshot=given.choice("snapshot", Snapshot, "auto"),
        lease_s=_LEASE_S if lease is None else lease,
    )
    _check_scan(made, given)
    return made


def _check_scan(made: ScanOptions, given: _RawOptions) -> None:
    if made.sql is not None:
        others = [name for name in (*_WHAT, "layout") if name != "sql" and given.text(name) is not None]
        if others:
            shown = ", ".join("load(...)" if name in ("path", "paths") else name for name in others)
            raise SourceError(
                f"option sql is a whole query: {shown} cannot be given with it; write load() without a path"
            )
        _check_sql(made.sql)
        return
    if not made.devices:
        raise SourceError("nothing to read is given; use load('root.plant.**'), or the option devices or sql")
    if made.interval is not None and made.aggregate is None:
        raise SourceError("option interval is the width of an aggregate's windows; pass aggregate, too")
    if made.aggregate is not None and (made.columns or made.layout != "by_device"):
        raise SourceError("option aggregate names its columns itself, by device; omit columns and layout")
    if made.value_type is not None and made.layout != "narrow":
        raise SourceError("option valueType is for the layout narrow")
    if made.where is not None:
        _check_condition(made.where)


def _check_condition(text: str) -> None:
    from saros_grammar.queries import check_condition  # for this option only
    from saros_grammar.syntax.errors import ParseError

    try:
        check_condition(text)
    except ParseError as error:
        raise SourceError(f"option where, {error}\n{error.caret()}") from error


def _check_sql(text: str) -> None:
    """Raise SourceError unless the text is a query that only reads. Spark runs it for the plan and for each attempt."""
    from saros_grammar.queries import is_non_query  # for this option only

    if is_non_query(text):
        raise SourceError(f"option sql takes a query that returns rows and writes none; this was not run: {text}")


def _connecting(given: _RawOptions) -> Connecting:
    url = given.text("url")
    if url is None:
        raise SourceError("option url is missing: saros://host:6667, or the data folder of a running server")
    password = given.text("password")
    file = given.text("passwordFile")
    if file is not None:
        if password is not None:
            raise SourceError("give password or passwordFile, not both")
        password = first_line(file)
    timeout = given.number("timeout", float, 0.001)
    return Connecting(
        url,
        given.text("user"),
        password,
        given.text("tlsCa"),
        given.text("consistency"),
        _TIMEOUT_S if timeout is None else timeout,
    )


def first_line(file: str) -> str:
    """Return the password of a password file. Raises SourceError."""
    try:
        with open(file, encoding="utf-8") as stream:
            return stream.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"the password file {file} cannot be read: {error}") from error


def _devices(given: _RawOptions) -> tuple[str, ...]:
    found = [name for name in ("devices", "path", "paths") if given.text(name) is not None]
    if len(found) > 1:
        raise SourceError(f"{' and '.join(found)} both name the devices; pass one of them")
    if found == ["paths"]:
        return tuple(json.loads(given.text("paths") or "[]"))
    return given.text_list(found[0]) if found else ()


def split_list(text: str) -> tuple[str, ...]:
    """Split text at commas that are outside of back-quotes and parentheses."""
    words, depth, quoted, word = [], 0, False, ""
    for letter in text:
        quoted ^= letter == "`"
        depth += 0 if quoted else (letter == "(") - (letter == ")")
        if letter == "," and not quoted and depth == 0:
            words.append(word)
            word = ""
        else:
            word += letter
    return tuple(stripped for part in (*words, word) if (stripped := part.strip()))


class _RawOptions:
    """The options that Spark passed. Options are read by their documented names, and checked when they are read."""

    def __init__(self, options: Mapping[str, str], known: Iterable[str]) -> None:
        names = {name.lower(): name for name in known}
        self._values = {name.lower(): str(value) for name, value in options.items()}
        for name in self._values:
            if name not in names:
                near = difflib.get_close_matches(name, names, 1, 0.5)
                hint = (
                    f"did you mean {names[near[0]]}?"
                    if near
                    else f"the options are {', '.join(sorted(names.values()))}"
                )
                raise SourceError(f"there is no option {name}: {hint}")

    def text(self, name: str) -> str | None:
        return self._values.get(name.lower()) or None

    def text_list(self, name: str) -> tuple[str, ...]:
        return split_list(self.text(name) or "")

    def time(self, name: str) -> str | None:
        value = self.text(name)
        if value is not None:
            parse_time(value, name)
        return value

    def duration(self, name: str) -> str | None:
        value = self.text(name)
        if value is not None:
            parse_duration(value, name)
        return value

    def choice(self, name: str, type_: object, default: T) -> T:
        value = self.text(name)
        choices: tuple[str, ...] = get_args(type_)
        if value is None:
            return default
        if value not in choices:
            raise SourceError(f"option {name} must be one of {', '.join(choices)}, not {value!r}")
        return cast("T", value)

    def flag(self, name: str) -> bool | None:
        value = self.text(name)
        if value is None:
            return None
        if value.lower() not in ("true", "false"):
            raise SourceError(f"option {name} must be true or false, not {value!r}")
        return value.lower() == "true"

    def number(self, name: str, type_: Callable[[str], T], least: float) -> T | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            number = type_(value)
        except ValueError:
            raise SourceError(f"option {name} must be a number, not {value!r}") from None
        if float(value) < least:
            raise SourceError(f"option {name} must be at least {least:g}, not {value}")
        return number
