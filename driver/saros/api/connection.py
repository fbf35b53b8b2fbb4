"""Connections: `connect` opens a database, a `Connection` is one session of it.

Connections to the same folder in one process share one node, which closes with the last of them. Every statement is
durable when it returns (as the folder's `durability` says): there are no transactions, so `commit` does nothing and
`rollback` is refused.

Threads may share a connection; a cursor belongs to one thread (`Cursor.cancel` may be called from any). A process that
was forked opens new connections: its parent's connections are refused there (`fork_guard.py`).
"""

from __future__ import annotations

import os
import secrets
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypedDict, Unpack

from saros.api.cursor import Cursor
from saros.api.embedded import MEMORY, open_embedded
from saros.base.fork_guard import ForkGuard
from saros.base.frames import times_and_columns
from saros.base.line_writes import line_write, points_of
from saros.base.target import Target, parse_target, suggested_target, without_password
from saros.errors import InterfaceError, NotSupportedError, translated_errors

if TYPE_CHECKING:
    from saros.api.bulk import BulkProgress, BulkWriter
    from saros.api.session import Session
    from saros_wire.read_point import ReadPoint

Timestamps = Literal["datetime", "epoch"]
Consistency = Literal["strong", "mid", "weak"]


class Options(TypedDict, total=False):
    """What `connect` takes beside the target, for functions that pass it on."""

    user: str | None
    password: str | None
    consistency: Consistency | None
    tls_ca: str | None
    partial_results: bool | None
    failover_s: float
    timestamps: Timestamps
    time_zone: str | None
    timeout: float | None
    options: Mapping[str, object] | None
    read_only: bool


def connect(
    target: str | os.PathLike[str],
    *,
    user: str | None = None,
    password: str | None = None,
    consistency: Consistency | None = None,
    tls_ca: str | None = None,
    partial_results: bool | None = None,
    failover_s: float = 30.0,
    timestamps: Timestamps = "datetime",
    time_zone: str | None = None,
    timeout: float | None = None,
    options: Mapping[str, object] | None = None,
    read_only: bool = False,
) -> Connection:
    """Open the database in folder `target`, which is made if it does not exist, or connect to a server or cluster.

    target      a folder; or ":memory:", a temporary database that goes with the connection; or
                saros://[user[:password]@]host[:port][,host[:port]...][/?consistency=...&tls=ca.pem
                &partial_results=true]
    user, password, consistency, tls_ca, partial_results   go before what the target says; only with saros://
                consistency "strong", "mid" or "weak" (default: as the nodes are configured); tls_ca: file of the
                authority that signed the nodes' certificates (default: no TLS); partial_results: reads leave out data
                of groups of nodes that are not available, and list it in `Cursor.missing` (default: they fail)
    failover_s  seconds for which a call looks for a node that answers, and waits for the nodes that it needs, before
                OperationalError is raised
    timestamps  "datetime": aware `datetime`s in the session's zone; "epoch": integers in the database's unit
    time_zone   name of the session's zone (default: the configuration's, UTC); SET TIME ZONE changes it
    timeout     seconds a statement may take (default: the configuration's `query_timeout_ms`)
    options     configuration keys for a folder that no connection of this process has open, such as
                {"durability": "os"}; see docs/configuration.md
    read_only   open a folder as it is now, also one that another process has open: with all that was written to it
                before; connect again to see later writes. Nothing is written to the folder

    Raises OperationalError (folder in use, newer format, nobody answers), ProgrammingError (bad option),
    InterfaceError (bad target).
    """
    where = target_of(
        target,
        user=user,
        password=password,
        consistency=consistency,
        tls_ca=tls_ca,
        partial_results=partial_results,
        timestamps=timestamps,
        time_zone=time_zone,
        timeout=timeout,
        options=options,
        read_only=read_only,
    )
    session: Session
    if isinstance(where, Target):
        from saros.transport.remote import RemoteSession

        session = RemoteSession(where, time_zone=time_zone, failover_s=failover_s, timeout_s=timeout)
    else:
        session = open_embedded(where, time_zone=time_zone, options=options, read_only=read_only)
    return Connection(session, timestamps=timestamps, timeout=timeout)


def target_of(target: object, **given: Unpack[Options]) -> Target | str:
    """Return the nodes, or the folder, that the arguments of `connect` name. Raises InterfaceError."""
    timeout, time_zone = given.get("timeout"), given.get("time_zone")
    if given.get("timestamps", "datetime") not in ("datetime", "epoch"):
        raise InterfaceError(f'timestamps is "datetime" or "epoch", not {given["timestamps"]!r}')
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise InterfaceError(f"timeout is a number of seconds above 0, not {timeout!r}")
    if time_zone is not None and not isinstance(time_zone, str):
        raise InterfaceError(f"time_zone is a name such as 'Europe/Berlin' or '+08:00', not {time_zone!r}")
    if not isinstance(target, str | os.PathLike) or target == "":
        raise InterfaceError(f"the target is a folder's path or saros://host:port, not {target!r}")
    if given.get("partial_results") not in (None, True, False):
        raise InterfaceError(f"partial_results is True or False, not {given['partial_results']!r}")
    read_only = given.get("read_only", False)
    if read_only not in (True, False):
        raise InterfaceError(f"read_only is True or False, not {read_only!r}")
    text: str = os.fspath(target)
    if read_only and ("://" in text or text == MEMORY):
        raise InterfaceError("read_only is for folders")
    if "://" not in text:
        return _folder_of(text, given)
    if given.get("options"):
        raise InterfaceError("options belong to the node: give them where it is started")
    return parse_target(text).override(
        user=given.get("user"),
        password=given.get("password"),
        consistency=given.get("consistency"),
        tls_ca=given.get("tls_ca"),
        partial_results=given.get("partial_results"),
    )


def _folder_of(text: str, given: Options) -> str:
    for_nodes = ("user", "password", "consistency", "tls_ca", "partial_results")
    if any(given.get(name) is not None for name in for_nodes):
        only = "user, password, consistency, tls_ca and partial_results"
        raise InterfaceError(f"{only} are for saros:// targets; a folder has none")
    meant = suggested_target(text)
    if meant is not None and not os.path.exists(text):
        shown = without_password(meant)
        raise InterfaceError(f"this looks like an address: write {shown}, or begin with ./ for a folder")
    return text


class Connection:
    """A session of a database, to execute statements and insert columns. Made by `connect`; threads may share it."""

    def __init__(self, session: Session, *, timestamps: Timestamps, timeout: float | None) -> None:
        self._session = session
        self._timestamps = timestamps
        self._timeout = timeout
        #: Where the connection is of use.
        self._owner = ForkGuard()
        self._lock = threading.Lock()
        self._cursors: weakref.WeakSet[Cursor] = weakref.WeakSet()
        #: Held until the end: none may vanish with rows in it.
        self._writers: list[BulkWriter] = []
        self._closed = False

    def cursor(self) -> Cursor:
        """A new cursor."""
        session = self._open_session()
        cursor = Cursor(self, session, self._owner, epoch=self._timestamps == "epoch", timeout=self._timeout)
        with self._lock:
            self._cursors.add(cursor)
        return cursor

    def execute(self, statement: str, parameters: Sequence[object] = (), *, at: ReadPoint | None = None) -> Cursor:
        """A new cursor that has executed `statement`; `at`: the moment that a SELECT sees."""
        return self.cursor().execute(statement, parameters, at=at)

    def hold(self, lease_s: float = 600.0, *, name: str | None = None, like: ReadPoint | None = None) -> ReadPoint:
        """A moment that later SELECTs, of other connections and processes too, see alike: give it to `execute`.

        Later writes and deletions do not show there; dropped series are gone. The node keeps the moment until nothing
        has been read at it for `lease_s` seconds, or until `let_go`. `name`: the first call with a name sets its
        moment; `like`: a read point whose node is to be used.

        Raises OperationalError (2032: the node of `like` was restarted), ProgrammingError (2003).
        """
        with translated_errors():
            return self._open_session().hold(secrets.token_hex(16) if name is None else name, lease_s, like)

    def let_go(self, point: ReadPoint) -> None:
        """Have the node keep a moment no longer. Idempotent. Raises OperationalError."""
        with translated_errors():
            self._open_session().let_go(point)

    def insert(
        self,
        device: str | Iterable[str],
        times: object,
        columns: object | None = None,
        *,
        aligned: bool | None = None,
    ) -> int:
        """Write columns of one device, or rows of several; returns the number of points.

        device   a path; or one for each row, as an array or list: shape (n,)
        times    int64 in the database's unit, datetime64, datetimes, a pandas index or an Arrow array: shape (n,);
                 naive datetimes are in the session's zone
        columns  {measurement: n values} of NumPy, Arrow, pandas or lists; or a whole DataFrame or Arrow table
        aligned  what a new device becomes (default: not aligned); must agree with an existing one if given

        insert(device, frame) takes the times from the frame: from its column time, in any case, or from the index of a
        pandas DataFrame. A frame is a DataFrame of pandas or Polars, an Arrow table, or any other object with Arrow's
        PyCapsule interface.

        Missing series are registered with the type of their column. Nulls (Arrow nulls, None, masked values, NaN in a
        DataFrame) are absent points, and columns of nulls only are left out; NaN in a NumPy array is a value. Of equal
        times the later row wins.
        Rows of several devices are written together, which costs much less than a call for each device. If those of a
        device are refused, the others are written, and BulkError has the failed ones.
        Raises DataError (type, length, time), ProgrammingError (path), IntegrityError, InterfaceError (not a frame),
        BulkError (several devices).
        """
        with translated_errors():
            session = self._open_session()
            if isinstance(device, str):
                times, named = times_and_columns(device, times, columns)
                return session.insert(device, times, named, aligned=aligned)
            from saros.api.bulk import device_insert

            insert = device_insert(device, times, columns, aligned)
            for part in insert.parts:
                insert.record(part, session.insert_rows(part))
            return insert.result()

    def write_lines(
        self,
        data: str | bytes,
        *,
        database: str,
        precision: str = "ns",
        template: str | None = None,
        time_ns: int | None = None,
    ) -> int:
        """Write lines of InfluxDB's line protocol; returns the number of points.

        data       lines, as one text; to a server, 16 MiB at most
        database   the database, without root, such as "plant": a line `cpu,host=h1 load=1.5` goes to root.plant.cpu.h1
        precision  the unit of times: "ns", "us", "ms", "s", "m" or "h"
        template   of devices, such as "root.{db}.{host}.{measurement}" (default: the option `line_protocol_device`)
        time_ns    the time of lines that have none, in nanoseconds since 1970 (default: now)

        If some lines are wrong, or do not fit their series, everything else is written, and the error names them by
        their number. Writing the same lines again changes nothing if they have times, or `time_ns` is given.
        Raises DataError (2044: wrong lines; 507: values of another type), ProgrammingError (precision, template, too
        many bytes), OperationalError (points cannot be written now).
        """
        with translated_errors():
            write = line_write(data, database, precision, template, time_ns)
            return points_of(self._open_session().write_lines(write))

    def bulk_writer(
        self,
        *,
        batch_rows: int = 10_000,
        max_in_flight: int = 4,
        progress: Callable[[BulkProgress], object] | None = None,
    ) -> BulkWriter:
        """A writer for many devices: collects `batch_rows` of each, sends `max_in_flight` batches at once.

        Use it as a context manager: at its end everything is written, or BulkError says what is not.
        """
        from saros.api.bulk import BulkWriter

        writer = BulkWriter(self._open_session(), batch_rows=batch_rows, max_in_flight=max_in_flight, progress=progress)
        with self._lock:
            self._writers = [*(known for known in self._writers if not known.closed), writer]
        return writer

    def commit(self) -> None:
        """Nothing: every statement is durable when it returns."""
        self._open_session()

    def rollback(self) -> None:
        """Refused: there are no transactions."""
        raise NotSupportedError("rollback: Saros has no transactions; each statement is durable when it returns", 2002)

    def close(self) -> None:
        """Close the connection and its cursors, and cancel its running statements. Idempotent.

        Bulk writers are closed first, and may raise BulkError. In a process that was forked the parent's stays open.
        """
        if not self._owner.is_own_process:
            self._closed = True
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            cursors = list(self._cursors)
        with ExitStack() as closing:
            closing.callback(self._close_session)
            for cursor in cursors:
                closing.callback(cursor.close)
            for writer in self._writers:
                closing.callback(writer.close)

    def _close_session(self) -> None:
        with translated_errors():
            self._session.close()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def __enter__(self) -> Self:
        self._open_session()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_session(self) -> Session:
        if self._closed:
            raise InterfaceError("the connection is closed", 2014)
        self._owner.check()
        return self._session
