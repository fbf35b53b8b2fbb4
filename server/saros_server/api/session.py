"""Embedded sessions: sessions on a node of this process, without a socket; calls run on the caller's thread.

A process opens a folder once: all sessions on a folder share one node, which is closed when the last of them is closed.
`_nodes`, the only state of this module, holds these nodes.

Several threads may use an `EmbeddedSession`. An `Outcome` may be used by one thread only, except that any thread may
close it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, TypeVar

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from saros_cluster.node.cluster_file import CLUSTER_FILE
from saros_engine.base.access import Access, Trail
from saros_engine.base.database import CONSISTENCIES
from saros_engine.base.errors import EngineError
from saros_engine.base.session_context import SessionContext
from saros_engine.catalog.tag_keys import tag_keys
from saros_engine.execution.result import Result
from saros_engine.expressions.times import zone_of
from saros_engine.security.authorization import (
    authorize_any_write,
    authorize_audit,
    authorize_backup,
    authorize_load,
    may_send,
    sees_statements_of,
)
from saros_engine.writes.batches import ColumnBatch, MultiBatch, outcomes_of
from saros_server.api.arrow import Message, ResultSchema, encode, result_schema, to_arrow, to_column, to_times
from saros_server.api.errors import refusal_of
from saros_server.api.insert_request import InsertRequest
from saros_server.api.quoting import quoted_name
from saros_server.config.configuration import ConfigurationError, Loaded, configuration_file, load
from saros_server.config.data_folder import cannot_open, check_not_foreign
from saros_server.node.node import Node
from saros_server.node.uploads import Uploads
from saros_server.process.interrupts import UninterruptibleSection
from saros_server.process.server_file import serving
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import FolderInUse, StoreClosed, UserMistake
from saros_storage.base.gc_control import reduced_gc
from saros_storage.base.types import TIME_UNITS, Int64Array, TimeUnit
from saros_storage.base.write_request import UNNUMBERED, WriteRequest
from saros_storage.checkpoint.checkpoint_set import CheckpointSet
from saros_storage.scan.read_point import ReadHorizon
from saros_sync.receiver.request_checks import Requester
from saros_wire.device_rows import DeviceRows, RowsWritten
from saros_wire.fork_local import ForkLocal
from saros_wire.line_writes import LinesWritten, LineWrite
from saros_wire.read_point import ReadPoint as KeptPoint

if TYPE_CHECKING:
    from saros_sync.clustered.receiver import ClusterReceiver
    from saros_sync.receiver.receiver import Receiver

#: The maximum number of cache entries; each has the canonical forms of a set of column names.
_SHAPES_CACHED = 4_096
_NO_FOLDER = 2051

_T = TypeVar("_T")


class _Shared(msgspec.Struct):
    """A node and the number of its sessions. The lock of `_nodes` guards this object."""

    node: Node
    sessions: int = 0
    options: Mapping[str, object] = msgspec.field(default_factory=dict)


#: Nodes by real path. This table is emptied in a forked process, since the folders are in use by the parent process.
_nodes: ForkLocal[str, _Shared] = ForkLocal()
#: Numbers the nodes of folders that are opened read-only: each of them shows its folder at another moment.
_snapshots = count()


def open_session(
    folder: str,
    *,
    time_zone: str | None,
    options: Mapping[str, object],
    consistency: str = "strong",
    partial: bool = False,
    files: bool = True,
    host: str | None = None,
    is_shared: bool = False,
    read_only: bool = False,
    on_close: Callable[[], None] = lambda: None,
) -> EmbeddedSession:
    """Return a new session on the database in `folder`, which is opened if this process has not opened it yet.

    `partial`: reads skip the data of unavailable groups.
    `files`: LOAD may read any file that this process may read; otherwise only files in the folders of `load_folders`.
    `host`: the client's host, or None if the client is in this process. `is_shared`: independent clients share the
    session, so its settings cannot be changed. `read_only`: the session sees a snapshot of the database as it is now,
    and no later writes; another process may have the database open. `on_close`: called once, after the session is
    closed. Raises ConfigurationError (bad option, or options that differ from those of the open node), StorageError (in
    use, not a data folder, corrupt), SemanticError (unknown time zone).
    """
    if consistency not in CONSISTENCIES:
        raise UserMistake(f"consistency {consistency!r} is unknown: use one of {', '.join(CONSISTENCIES)}", code=2003)
    if time_zone is not None:
        zone_of(time_zone)
    key = os.path.realpath(folder)
    if read_only:
        key += f" read-only {next(_snapshots)}"
    with _nodes.lock:
        shared = _nodes.get(key)
        if shared is None:
            loaded = load(folder=folder, file=configuration_file(folder), overrides=options)
            node = _opened(folder, loaded, read_only=read_only)
            shared = _nodes[key] = _Shared(node, options=dict(options))
        elif options and dict(options) != shared.options:
            load(folder=folder, file=configuration_file(folder), overrides=options)  # raises for a wrong option
            raise ConfigurationError(f"{folder} is open in this process with other options: close it first")
        shared.sessions += 1
    configuration = shared.node.configuration
    listed = (shared.node.uploads.folder, *filter(None, configuration.load_folders.split(os.pathsep)))
    folders = None if files else listed
    zone = time_zone or configuration.time_zone
    context = SessionContext(zone, consistency, partial, load_folders=folders, host=host, shared=is_shared)
    return EmbeddedSession(key, shared.node, context, on_close)


def _opened(folder: str, loaded: Loaded, *, read_only: bool) -> Node:
    check_not_foreign(folder)
    if read_only and os.path.lexists(os.path.join(folder, CLUSTER_FILE)):
        message = f"{folder} belongs to a node of a cluster, and has only part of its data: connect to the cluster"
        raise UserMistake(message, code=_NO_FOLDER)
    try:
        return Node.open(os.path.abspath(folder) if read_only else folder, loaded, read_only=read_only)
    except FolderInUse as error:
        found = serving(folder)
        remedy = (
            "stop it, choose another folder, or let `saros start` serve this one to several processes"
            if found is None
            else f"connect to its server, saros://{found.address}, or stop it"
        )
        raise FolderInUse(folder, error.pid, remedy) from error
    except OSError as error:
        raise cannot_open(folder, error) from error


def _leave(key: str) -> None:
    """Decrement the node's number of sessions, and close the node if this was its last session.

    The lock is held while the node closes, so a concurrent `open_session` waits until it is closed.
    """
    with _nodes.lock:
        shared = _nodes[key]
        shared.sessions -= 1
        if shared.sessions == 0:
            del _nodes[key]
            shared.node.close()


class EmbeddedSession:
    """An implementation of the driver's `Session` on a node of this process."""

    def __init__(self, key: str, node: Node, context: SessionContext, on_close: Callable[[], None]) -> None:
        self._key = key
        self._on_close = on_close
        self._node = node
        self._unit = TIME_UNITS[node.configuration.time_unit]
        self._context = context
        #: The client whose repeated requests are recognized by their sequence numbers; 0 if they are not recognized.
        self.client_id = 0
        self._lock = threading.Lock()
        self._closed = False

    @property
    def time_unit(self) -> TimeUnit:
        """The database's time unit."""
        return self._unit

    @property
    def node(self) -> Node:
        """The node that the session belongs to."""
        return self._node

    @property
    def horizon(self) -> ReadHorizon | None:
        """The log positions of the latest data that the session has seen; None for strong reads."""
        return None if self._context.consistency == "strong" else self._context.horizon

    def set_access(self, access: Access, trail: Trail | None) -> None:
        """Set the session's privileges and audit trail; without them, the session is unrestricted and unaudited."""
        self._context.access, self._context.trail = access, trail

    def numbered(self, sequence: int, deadline_ns: int | None = None) -> WriteRequest:
        """Return a write request; it has a sequence number only if the client has an id and `sequence` is not 0."""
        client = self.client_id if sequence else 0
        return WriteRequest(client, sequence if client else 0, deadline_ns)

    def execute(
        self,
        text: str,
        parameters: Sequence[object],
        timeout_s: float | None,
        *,
        at: KeptPoint | None = None,
        request: WriteRequest = UNNUMBERED,
        read_only: bool = False,
    ) -> EmbeddedOutcome:
        """See the driver's `Session.execute`. A `request` that was executed before is not executed again.

        `read_only`: raise StatementNotAllowed unless the statement only reads.
        """
        self._check_open()
        timeout_ms = None if timeout_s is None else int(timeout_s * 1000)
        context = self._context
        if at is not None:
            context = replace(context, point=self._node.read_points.find(at.name, at.instance))
        if read_only:
            context = replace(context, read_only=True)
        results = []

        def run() -> int:
            results.append(self._node.engine.execute(text, context, parameters, timeout_ms=timeout_ms, request=request))
            return results[0].update_count

        with UninterruptibleSection(partial(self._node.engine.interrupt, threading.get_ident())):
            count = self._node.requests.run_once(request.key, run)
        return EmbeddedOutcome(results[0] if results else Result("", count=count), self)

    def hold(self, name: str, lease_s: float, like: KeptPoint | None) -> KeptPoint:
        """See the driver's `Session.hold`."""
        self._check_open()
        points = self._node.read_points
        points.hold(name, 0 if like is None else like.instance, round(lease_s * 1_000), self._context.consistency)
        return KeptPoint(name, lease_s, "", points.instance)

    def let_go(self, point: KeptPoint) -> None:
        """See the driver's `Session.let_go`."""
        self._check_open()
        self._node.read_points.release(point.name)

    def insert(
        self,
        device: str,
        times: object,
        columns: Mapping[str, object],
        *,
        aligned: bool | None,
        request: WriteRequest = UNNUMBERED,
    ) -> int:
        """See the driver's `Session.insert`. A `request` that was executed before is not executed again."""
        self._check_open()
        context = self._context
        at, ours = self._as_columns(times, columns)

        def write() -> int:
            insert = self._node.engine.insert_columns
            return insert(device, at, ours, aligned=aligned, session=context, request=request)

        with UninterruptibleSection():
            return self._node.requests.run_once(request.key, write)

    def insert_batches(self, inserts: Sequence[InsertRequest], request: WriteRequest) -> list[int | Exception]:
        """Write rows of different devices without sequence numbers; return the points or the error of each."""
        self._check_open()
        batches = outcomes_of(inserts, self._as_batch)
        with UninterruptibleSection():
            return self._node.engine.insert_batches(batches, session=self._context, request=request)

    def insert_rows(self, rows: DeviceRows, *, request: WriteRequest = UNNUMBERED) -> RowsWritten:
        """See the driver's `Session.insert_rows`. A `request` that was executed before is not executed again."""
        self._check_open()
        batch = self._multi_batch_of(rows)
        outcomes: list[int | Exception] = []

        def write() -> int:
            """Return the number of points, or -1 if a device was refused; -1 is not stored for repeated requests."""
            outcomes.extend(self._node.engine.insert_rows(batch, session=self._context, request=request))
            points = [found for found in outcomes if isinstance(found, int)]
            return sum(points) if len(points) == len(outcomes) else -1

        with UninterruptibleSection():
            points = self._node.requests.run_once(request.key, write)
        refused = {number: refusal_of(found) for number, found in enumerate(outcomes) if isinstance(found, Exception)}
        return RowsWritten(sum([n for n in outcomes if isinstance(n, int)]) if refused else points, refused)

    def _multi_batch_of(self, rows: DeviceRows) -> MultiBatch:
        """Return the rows in the form that the engine takes. Raises UserMistake."""
        times, columns = self._as_columns(rows.times, rows.columns)
        if min(rows.counts, default=1) < 1 or sum(rows.counts) != len(times):
            counted = f"{sum(rows.counts)} rows of {len(rows.counts)} devices"
            raise UserMistake(f"there are {len(times)} times for {counted}", code=2003)
        for name, column in columns.items():
            if len(column) != len(times):
                raise UserMistake(f"column {name} has {len(column)} values for {len(times)} times", code=2003)
        return MultiBatch(tuple(rows.devices), tuple(rows.counts), times, columns, rows.aligned)

    def _as_batch(self, insert: InsertRequest) -> ColumnBatch:
        """Return an insert as a batch for the engine. Raises UserMistake, UnreadableValues, TooManyBytes."""
        times, columns = self._as_columns(insert.times, insert.columns)
        return ColumnBatch(insert.device, times, columns, insert.aligned, insert.partial, insert.tags)

    def write_lines(self, write: LineWrite, *, request: WriteRequest = UNNUMBERED) -> LinesWritten:
        """See the driver's `Session.write_lines`."""
        from saros_server.line_protocol.writes import write_lines

        self._check_open()
        session = SessionLines(self._node, self._context, request)
        template = self._node.configuration.line_protocol_device
        return write_lines(write, session, default_template=template, refusal_of=refusal_of)

    def _as_columns(self, times: object, columns: Mapping[str, object]) -> tuple[Int64Array, dict[str, Column]]:
        """Return the times and the columns in the form that the engine takes. Raises UserMistake."""
        unit, zone = self._unit, self._context.zone
        names = _node_names(tuple(columns))
        ours = {name: to_column(name, values, unit, zone) for name, values in zip(names, columns.values(), strict=True)}
        return to_times(times, unit, zone), ours

    def uploads(self) -> Uploads:
        """Return the uploads of files for LOAD. Raises NoPermission."""
        self._require(authorize_load, "LOAD")
        return self._node.uploads

    def imports(self) -> Uploads:
        """Return the uploads of files whose rows will be imported. Raises NoPermission."""
        self._require(authorize_any_write, "IMPORT")
        return self._node.uploads

    def require_audit(self) -> None:
        """Raise NoPermission unless the session may read the audit trail."""
        self._require(authorize_audit, "AUDIT")

    def sees_statements_of(self, user: str) -> bool:
        """Return whether the session may see the statements of a user. Raises PasswordMustChange."""
        return sees_statements_of(self._context.access, user)

    @property
    def user(self) -> str:
        """The session's user; empty for an anonymous session."""
        return self._context.access.user

    def create_checkpoint(self, since: int | None) -> CheckpointSet:
        """Capture all data of the node for a backup. Raises NoPermission."""
        self._require(authorize_backup, "BACKUP", "backup")
        return self._node.store.create_checkpoint(since)

    def read_captured(self, id_: bytes, number: int, offset: int) -> Iterator[bytes]:
        """Yield the pieces of a checkpoint's file, from an offset to the end. Raises NoPermission, NoSuchCheckpoint."""
        self._require(authorize_backup, "BACKUP")
        return self._node.store.shelf.pieces(id_, number, offset)

    def release_checkpoints(self, ids: Sequence[bytes]) -> None:
        """Release checkpoints. Raises NoPermission."""
        self._require(authorize_backup, "BACKUP")
        for id_ in ids:
            self._node.store.shelf.release(id_)

    def receive(self, event: str | None = None) -> tuple[Receiver | ClusterReceiver, Requester]:
        """Return the receiver of the sync tool's rounds, and the name of the user that sends them.

        `event` is recorded in the audit trail. Raises NoPermission, SystemReadOnly.
        """
        self._check_open()
        self._node.engine.mode.require_running()
        self._require(authorize_any_write, "SYNC", event)
        access = self._context.access
        return self._node.receiver, Requester(access.user, partial(may_send, access), access.unrestricted)

    def _require(self, authorize: Callable[[Access], None], what: str, event: str | None = None) -> None:
        """Raise NoPermission unless the session passes `authorize`.

        Both a denial and `event` are recorded in the audit trail.
        """
        self._check_open()
        trail = self._context.trail
        try:
            authorize(self._context.access)
        except EngineError as error:
            if trail is not None:
                trail.record("denied", what, error.code)
            raise
        if trail is not None and event is not None:
            trail.record(event, what, 0)

    def schema_of(self, result: Result) -> ResultSchema:
        """Return the schema of a result in this session's time zone."""
        return result_schema(result.fields, timed=result.timed, unit=self._unit, zone=self._context.zone)

    def close(self) -> None:
        """See the driver's `Session.close`."""
        with UninterruptibleSection():
            with self._lock:
                if self._closed:
                    return
                self._closed = True
            try:
                _leave(self._key)
            finally:
                self._on_close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the session is closed")


class SessionLines(msgspec.Struct, frozen=True):
    """An implementation of `LineSession` for one write."""

    node: Node
    context: SessionContext
    request: WriteRequest

    @property
    def time_unit(self) -> TimeUnit:
        """See `LineSession.time_unit`."""
        return TIME_UNITS[self.node.configuration.time_unit]

    def tag_keys(self, prefix: str) -> Sequence[str]:
        """See `LineSession.tag_keys`."""
        return tag_keys(self.node.store.schema, prefix)

    def append_tag_key(self, prefix: str, number: int, key: str) -> None:
        """See `LineSession.append_tag_key`."""
        with UninterruptibleSection():
            self.node.engine.append_tag_key(prefix, number, key, session=self.context, request=self.request)

    def write_batches(self, batches: Sequence[ColumnBatch]) -> list[int | Exception]:
        """See `LineSession.write_batches`."""
        with UninterruptibleSection():
            return self.node.engine.insert_batches(batches, session=self.context, request=self.request)


@lru_cache(_SHAPES_CACHED)
def _node_names(names: tuple[str, ...]) -> list[str]:
    return [_node_name(name) for name in names]


def _node_name(name: str) -> str:
    """Return a client's column name as a canonical node, quoted if need be; a back-quoted name is unquoted first."""
    if not name:
        raise UserMistake("a measurement name is empty", code=509)
    return quoted_name(name)


class EmbeddedOutcome:
    """An implementation of the driver's `Outcome` on an engine's result."""

    def __init__(self, result: Result, session: EmbeddedSession) -> None:
        self._result = result
        #: Built on first use.
        self._schema: ResultSchema | None = None
        self._session = session

    @property
    def query_id(self) -> str:
        """See `Outcome.query_id`."""
        return self._result.query_id

    @property
    def names(self) -> Sequence[str] | None:
        """See `Outcome.names`."""
        return self.schema.names if self._result.has_rows else None

    @property
    def has_rows(self) -> bool:
        """True if the statement returns rows."""
        return self._result.has_rows

    @property
    def type_names(self) -> Sequence[str]:
        """See `Outcome.type_names`."""
        return self.result_schema.type_names

    @property
    def schema(self) -> pa.Schema:
        """See `Outcome.schema`."""
        return self.result_schema.arrow

    @property
    def result_schema(self) -> ResultSchema:
        """The schema of the rows, its encoded form, and the names of the columns' types."""
        if self._schema is None:
            self._schema = self._session.schema_of(self._result)
        return self._schema

    @property
    def update_count(self) -> int:
        """See `Outcome.update_count`."""
        return self._result.update_count

    @property
    def stale(self) -> bool:
        """See `Outcome.stale`."""
        return self._result.stale

    @property
    def missing(self) -> Sequence[str]:
        """See `Outcome.missing`."""
        return self._result.missing

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for the next batch or the end; return whether `next_batch` would not block."""
        return self._result.wait(seconds)

    def next_batch(self) -> pa.RecordBatch | None:
        """See `Outcome.next_batch`."""
        return self._next(to_arrow)

    def next_messages(self) -> list[Message] | None:
        """Return the next batch as Arrow IPC messages, usually one; None at the end."""
        return self._next(encode)

    def _next(self, convert: Callable[[Block, pa.Schema], _T]) -> _T | None:
        with UninterruptibleSection(self._result.close):
            block = self._result.next_block()
            if block is None:
                return None
            with reduced_gc(len(block.columns)):
                return convert(block, self.schema)

    def close(self) -> None:
        """See `Outcome.close`."""
        with UninterruptibleSection():
            self._result.close()
