"""Connections: `connect` opens a database, and a `Connection` is one session on it.

Connections of one process to the same folder share one node, which closes with the last of these connections. The
effect of a statement is durable when the call returns. The folder's option `durability` sets the degree of durability.
There are no transactions: `commit` does nothing, and `rollback` raises NotSupportedError.

Threads may share a connection. Only one thread may use a cursor at a time, except that any thread may call
`Cursor.cancel`. After a fork, the child process must open new connections: the parent's connections raise
InterfaceError in the child (`fork_guard.py`).
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
from saros.base.fork_guard import ForkGuard, refuse_pickling
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
    """The keyword arguments of `connect`, to annotate functions that pass them on."""

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
    """Open the database in a folder, or connect to a server or cluster.

        with saros.connect("./data", options={"durability": "os"}) as connection: ...
        with saros.connect("saros://plant@10.0.0.1,10.0.0.2", password=secret, timeout=30) as connection: ...

    target      the path of a folder, which is created if it does not exist; or ":memory:", a temporary database that
                is deleted when the connection closes; or
                saros://[user[:password]@]host[:port][,host[:port]...][/?consistency=...&tls=ca.pem
                &partial_results=true]
    user, password, consistency, tls_ca, partial_results   only with saros://; override the same options in `target`
                consistency: "strong", "mid" or "weak" (default: "strong"); tls_ca: the file with the certificate
                of the authority that signed the nodes' certificates (default: no TLS);
                partial_results: if groups of nodes are not available, reads skip their data, and list the skipped data
                in `Cursor.missing` (default: such reads raise OperationalError)
    failover_s  seconds for which a call tries to reach a node that can answer, before it raises OperationalError
    timestamps  "datetime": rows have aware `datetime` objects in the session's time zone;
                "epoch": integers in the database's time precision
    time_zone   the session's time zone, such as "Europe/Berlin" (default: as configured, normally UTC);
                SET TIME ZONE changes it
    timeout     seconds that a statement may take (default: the option `query_timeout_ms`)
    options     configuration of the folder, such as {"durability": "os"}, if no other connection of this process has
                it open; docs/configuration.md lists the keys
    read_only   open a snapshot of the folder, which another process may have open. The snapshot contains everything
                that was written before; connect again to see later writes. Nothing is written to the folder

    Raises InterfaceError (wrong target or argument), ProgrammingError (wrong option), OperationalError (folder in use,
    folder of a newer version, no node answers).
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
    return Connection(session, target=os.fspath(target), timestamps=timestamps, timeout=timeout)


def target_of(target: object, **given: Unpack[Options]) -> Target | str:
    """Return the nodes or the folder to which the arguments of `connect` refer.

    Raises InterfaceError if an argument is wrong.
    """
    timeout, time_zone = given.get("timeout"), given.get("time_zone")
    if given.get("timestamps", "datetime") not in ("datetime", "epoch"):
        raise InterfaceError(f'timestamps must be "datetime" or "epoch", not {given["timestamps"]!r}')
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise InterfaceError(f"timeout must be a number of seconds above 0, not {timeout!r}")
    if time_zone is not None and not isinstance(time_zone, str):
        raise InterfaceError(f"time_zone must be a name such as 'Europe/Berlin' or '+08:00', not {time_zone!r}")
    if not isinstance(target, str | os.PathLike) or target == "":
        raise InterfaceError(f"the target must be the path of a folder, or saros://host:port, not {target!r}")
    if given.get("partial_results") not in (None, True, False):
        raise InterfaceError(f"partial_results must be True or False, not {given['partial_results']!r}")
    read_only = given.get("read_only", False)
    if read_only not in (True, False):
        raise InterfaceError(f"read_only must be True or False, not {read_only!r}")
    text: str = os.fspath(target)
    if read_only and ("://" in text or text == MEMORY):
        raise InterfaceError(f"read_only is for folders only: connect to {without_password(text)} without it")
    if "://" not in text:
        return _folder_of(text, given)
    if given.get("options"):
        raise InterfaceError("options are for folders only: set the options of a server where it is started")
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
        raise InterfaceError(f"{only} are for saros:// targets only: open a folder without them")
    meant = suggested_target(text)
    if meant is not None and not os.path.exists(text):
        shown = without_password(meant)
        raise InterfaceError(f"the target looks like an address: write {shown}, or begin with ./ for a folder")
    return text


class Connection:
    """A session on a database, to execute statements and to write columns.

    Made by `connect`. Use it as a context manager, or call `close`. Threads may share it.
    """

    __reduce__ = refuse_pickling

    def __init__(self, session: Session, *, target: str, timestamps: Timestamps, timeout: float | None) -> None:
        self._session = session
        self._target = without_password(target)
        self._timestamps = timestamps
        self._timeout = timeout
        #: The process that may use the connection.
        self._owner = ForkGuard()
        self._lock = threading.Lock()
        self._cursors: weakref.WeakSet[Cursor] = weakref.WeakSet()
        #: References to the open writers, so that no writer is garbage-collected while it holds rows.
        self._writers: list[BulkWriter] = []
        self._closed = False

    def __repr__(self) -> str:
        """Return the target without its password, or state that the connection is closed."""
        return f"<saros.Connection: {'closed' if self._closed else self._target}>"

    def cursor(self) -> Cursor:
        """Return a new cursor. Raises InterfaceError if the connection is closed."""
        session = self._open_session()
        cursor = Cursor(self, session, self._owner, epoch=self._timestamps == "epoch", timeout=self._timeout)
        with self._lock:
            self._cursors.add(cursor)
        return cursor

    def execute(self, statement: str, parameters: Sequence[object] = (), *, at: ReadPoint | None = None) -> Cursor:
        """Execute a statement on a new cursor, and return the cursor.

            rows = connection.execute("select * from root.plant.** where time > ?", [start]).fetchall()

        The arguments and errors are those of `Cursor.execute`.
        """
        return self.cursor().execute(statement, parameters, at=at)

    def executemany(self, statement: str, rows: Iterable[Sequence[object]]) -> Cursor:
        """Execute a statement once for each row of parameters on a new cursor, and return the cursor.

        The arguments and errors are those of `Cursor.executemany`.
        """
        return self.cursor().executemany(statement, rows)

    def hold(self, lease_s: float = 600.0, *, name: str | None = None, like: ReadPoint | None = None) -> ReadPoint:
        """Return a read point: a snapshot of the data that several SELECTs can read.

            point = connection.hold()
            connection.execute("select count(*) from root.plant.**", at=point)

        Other connections and processes can use the read point, too. Later writes and deletions are not visible in the
        snapshot, but series that are dropped later are missing in it. The node keeps the snapshot until `let_go` is
        called, or until nothing has read the snapshot for `lease_s` seconds.

        name  a name for the snapshot: the first call with a name takes the snapshot, and later calls return it
        like  a read point; the new snapshot is taken at the same node

        Raises OperationalError (2032: the node of `like` was restarted), ProgrammingError (2003: wrong argument).
        """
        with translated_errors():
            return self._open_session().hold(secrets.token_hex(16) if name is None else name, lease_s, like)

    def let_go(self, point: ReadPoint) -> None:
        """Release a read point. Idempotent. Raises OperationalError if its node does not answer."""
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
        """Write columns of one device, or rows of several devices. Return the number of points written.

            times = np.arange("2024-01-01", "2024-01-02", dtype="datetime64[s]")
            connection.insert("root.plant.pump1", times, {"temperature": np.full(len(times), 20.5)})

        device   a path; or one path for each row, as an array or list of shape (n,)
        times    shape (n,): int64 in the database's time precision, datetime64, `datetime` objects, a pandas index or
                 an Arrow array; naive `datetime` objects are in the session's time zone
        columns  a mapping of measurements to n values each (NumPy, Arrow, pandas, or a list); or a DataFrame or Arrow
                 table without times
        aligned  True creates new devices aligned, None and False not aligned; True and False must match the devices
                 that exist

        insert(device, frame) takes the times from the frame: from its column named time (case does not matter), or
        from the index of a pandas DataFrame. A frame is a DataFrame of pandas or Polars, an Arrow table, or another
        object with Arrow's PyCapsule interface.

        Missing series are created with the type of their column. Nulls (Arrow nulls, None, masked values, NaN in a
        DataFrame) are absent points. A column in which all values are null is ignored. NaN in a NumPy array is a value.
        Of two rows with the same time, the later one wins.

        Rows of several devices are written in as few calls as possible, which costs much less than one call for each
        device. If the rows of some devices are refused, the rows of all other devices are written, and BulkError lists
        the refused rows.

        Raises DataError (type, time), ProgrammingError (lengths, path, alignment of a device), IntegrityError (the path
        is a series), InterfaceError (not a frame), BulkError (refused rows of several devices), OperationalError (not
        possible at the moment; PartialWriteError lists the rows that were written).
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
        """Write lines of InfluxDB's line protocol. Return the number of points written.

            connection.write_lines("cpu,host=h1 load=1.5 1700000000", database="plant", precision="s")

        data       the lines, separated by newlines; at most 16 MiB if the database is a server
        database   the database without root, such as "plant": the line `cpu,host=h1 load=1.5` goes to root.plant.cpu.h1
        precision  the unit of the times in the lines: "ns", "us", "ms", "s", "m" or "h"
        template   the path of devices, such as "root.{db}.{host}.{measurement}" (default: the option
                   `line_protocol_device`)
        time_ns    the time of lines that contain no time, in nanoseconds since 1970 (default: now)

        If some lines are wrong, or have values of the wrong type, all other lines are written, and the error lists the
        wrong lines by number. Writing lines again has no effect if the lines have times, or if `time_ns` is given.

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
        """Return a writer that collects rows of many devices into batches, and sends the batches on threads.

            with connection.bulk_writer() as writer:
                writer.add_row("root.plant.pump1", time, {"temperature": 20.5})

        When the `with` block ends, all rows have been written, or BulkError lists the rows that were not written.

        batch_rows     rows of a device that are sent together
        max_in_flight  batches that are sent at the same time
        progress       a function that is called with the current totals (`BulkProgress`) after batches were sent

        Raises InterfaceError if a number is below 1.
        """
        from saros.api.bulk import BulkWriter

        writer = BulkWriter(self._open_session(), batch_rows=batch_rows, max_in_flight=max_in_flight, progress=progress)
        with self._lock:
            self._writers = [*(known for known in self._writers if not known.closed), writer]
        return writer

    def commit(self) -> None:
        """Do nothing: every statement is durable when it returns. Raises InterfaceError if the connection is closed."""
        self._open_session()

    def rollback(self) -> None:
        """Raise NotSupportedError: there are no transactions."""
        raise NotSupportedError("rollback: Saros has no transactions; each statement is durable when it returns", 2002)

    def close(self) -> None:
        """Close the connection with its cursors, and cancel its running statements. Idempotent.

        Bulk writers are closed first, which may raise BulkError. In a forked process, the parent's connection stays
        open.
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
        """True after `close` was called."""
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
