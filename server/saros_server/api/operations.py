"""The operations of the client API: the policy, the request and the answer of each operation.

    sessions     OPEN CLOSE PING RENEW
    statements   EXECUTE FETCH DISCARD STREAM CANCEL
    read points  HOLD RELEASE
    writes       INSERT INSERT_MANY INSERT_ROWS WRITE_LINES
    files        UPLOAD FINISH_UPLOAD DISCARD_UPLOADS: for LOAD
    imports      IMPORT_CHUNK IMPORT_FILE DISCARD_IMPORT: of CSV and Parquet files
    backups      CREATE_CHECKPOINT READ_CHECKPOINT RELEASE_CHECKPOINTS
    sync tool    SYNC_BEGIN SYNC_CHUNK SYNC_COMMIT
    monitoring   SLOW_STATEMENTS AUDIT_TAIL

A protocol passes an operation to `ClientApi.call`. Requests and answers are plain values. Thread-safe.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from saros_engine.base.slow_queries import SlowQuery
from saros_server.api.calls import Call, Operation, Policy
from saros_server.api.errors import BadMessage
from saros_server.api.executions import Answer, ResultStream, Statement
from saros_server.api.insert_request import Columns, InsertRequest, read_columns, read_insert
from saros_server.api.session import open_session
from saros_server.auth.audit import AuditTail
from saros_server.node.uploads import UploadRefused
from saros_server.process.version import RELEASE as _VERSION
from saros_storage.checkpoint.checkpoint_set import encode_checkpoint_set
from saros_sync.round import Content
from saros_sync.transport import BeginReply
from saros_wire.device_rows import DeviceRows, RowsWritten
from saros_wire.line_writes import LinesWritten, LineWrite
from saros_wire.read_point import ReadPoint

#: The default consistency of reads.
_CONSISTENCY = "strong"

# ---------------------------------------------------------------------------------------------- sessions


class Login(msgspec.Struct, frozen=True):
    """A request to open a session."""

    user: str = ""
    password: str = ""
    #: Empty stands for the node's configured time zone.
    time_zone: str = ""
    #: strong, mid or weak; empty stands for strong.
    consistency: str = ""
    #: Reads skip the data of unavailable groups, and list it in `ResultHead.missing`.
    partial_results: bool = False
    #: A random number that identifies the client, even after the client reconnects. With a sequence number, it
    #: identifies a write. It is 0 if the client has no id.
    client_id: int = 0
    #: The session is shared by independent clients, so its settings cannot be changed.
    shared: bool = False


class OpenedSession(msgspec.Struct, frozen=True):
    """A session that was opened for a client."""

    #: A secret, which allows any process on the same host to use the session.
    token: bytes
    #: ms, us or ns.
    time_unit: str
    #: The node's version.
    server: str
    #: The host:port of each node that clients may connect to, this node's first; empty if the node is not in a cluster.
    addresses: Sequence[str]
    #: Identifies the record in memory that the node uses to recognize repeated writes; 0 if it uses the cluster's log
    #: for this.
    memory: int


class NodeHealth(msgspec.Struct, frozen=True):
    """The part of a node's state that the peer may see."""

    server: str
    uptime_ms: int = 0
    sessions: int = 0
    queries: int = 0
    problems: Sequence[str] = ()


def _open(call: Call, login: Login) -> OpenedSession:
    services, peer = call.services, call.peer
    client = services.gate.enter(login.user, login.password, peer.host)
    session = open_session(
        services.folder,
        time_zone=login.time_zone or None,
        options={},
        consistency=login.consistency or _CONSISTENCY,
        partial=login.partial_results,
        files=False,
        host=peer.address,
        is_shared=login.shared,
    )
    session.client_id = login.client_id
    token = services.sessions.add(session, call.holder, client)
    node = services.node
    addresses = [] if node.cluster is None else node.cluster.status.client_addresses()
    memory = node.requests.memory if node.cluster is None else 0
    return OpenedSession(token, session.time_unit.suffix, _VERSION, addresses, memory)


def _close(call: Call, _: None) -> None:
    call.services.sessions.remove(call.token)


def _renew(_: Call, __: None) -> None:
    """Keep the session from expiring while its client processes results and makes no other calls."""


def _ping(call: Call, _: None) -> NodeHealth:
    """Return the node's health. If the node has users, a remote peer gets the version only."""
    services = call.services
    if not services.gate.is_open and not call.peer.is_local:
        return NodeHealth(_VERSION)
    node = services.node
    uptime_ms = int(services.uptime_s * 1_000)
    return NodeHealth(_VERSION, uptime_ms, len(services.sessions), node.engine.open_queries, node.problems())


# ---------------------------------------------------------------------------------------------- statements


class Hold(msgspec.Struct, frozen=True):
    """A request to hold a read point: the one that already has this name, or else a new one."""

    name: str
    #: The node process that must hold the read point; 0 allows any process.
    instance: int
    #: The read point is released if no read uses it for this long.
    lease_ms: int


def _execute(call: Call, statement: Statement) -> Answer:
    request = call.numbered(statement.sequence, statement.timeout_ms)
    return call.services.executions.execute(call.session, statement, request, call.cancel)


def _fetch(call: Call, cursor: int) -> ResultStream:
    return call.services.executions.fetch(call.session, cursor, call.cancel)


def _discard(call: Call, cursor: int) -> None:
    call.services.executions.discard(call.session, cursor)


def _stream(call: Call, statement: Statement) -> ResultStream:
    request = call.numbered(statement.sequence, statement.timeout_ms)
    return call.services.executions.stream(call.session, statement, request, call.cancel)


def _cancel(call: Call, query_id: str) -> None:
    """Kill a query that the session's user may see. Raises QueryNotFound."""
    quoted = query_id.replace("'", "''")
    call.session.execute(f"kill query '{quoted}'", (), None).close()


def _hold(call: Call, hold: Hold) -> int:
    """Return the instance of the process that holds the read point."""
    wanted = ReadPoint(hold.name, 0.0, "", hold.instance)
    return call.session.hold(hold.name, hold.lease_ms / 1_000, wanted).instance


def _release(call: Call, name: str) -> None:
    call.session.let_go(ReadPoint(name, 0.0, "", 0))


# ---------------------------------------------------------------------------------------------- writes


class InsertOutcome(msgspec.Struct, frozen=True):
    """The outcome of an insert."""

    points: int
    #: The host:port of the leader that executed the write, if it is another node. The client may send its next write
    #: there.
    leader: str = ""


class UploadChunk(msgspec.Struct, frozen=True):
    """A chunk of a file that a LOAD statement will read."""

    job: str
    name: str
    offset: int
    #: The checksum of the data.
    crc32: int
    data: bytes | memoryview


class UploadEnd(msgspec.Struct, frozen=True):
    """The end of an upload: the file was sent completely."""

    job: str
    name: str
    size: int
    #: The checksum of the file.
    crc32: int


def _insert(call: Call, columns: Columns) -> InsertOutcome:
    insert = read_insert(columns)
    points = call.session.insert(
        insert.device,
        insert.times,
        insert.columns,
        aligned=insert.aligned,
        request=call.numbered(insert.sequence),
    )
    return InsertOutcome(points, call.services.node.leader_elsewhere(insert.device))


def _insert_many(call: Call, inserts: Sequence[InsertRequest]) -> list[InsertOutcome | Exception]:
    """Write the rows of several inserts without sequence numbers; return the outcome or the error of each insert."""
    leader = call.services.node.leader_elsewhere
    outcomes = call.session.insert_batches(inserts, call.numbered(0))
    return [
        InsertOutcome(outcome, leader(insert.device)) if isinstance(outcome, int) else outcome
        for insert, outcome in zip(inserts, outcomes, strict=True)
    ]


class InsertRows(msgspec.Struct, frozen=True):
    """Rows of several devices, whose times and columns are given as an Arrow IPC stream."""

    devices: Sequence[str]
    counts: Sequence[int]
    aligned: bool | None
    #: See `InsertRequest`.
    sequence: int
    columns: memoryview


def _insert_rows(call: Call, insert: InsertRows) -> RowsWritten:
    if not insert.devices or len(insert.devices) != len(insert.counts):
        raise BadMessage(f"rows of {len(insert.devices)} devices, and {len(insert.counts)} numbers of rows")
    rows = DeviceRows(insert.devices, insert.counts, *read_columns(insert.columns), insert.aligned)
    return call.session.insert_rows(rows, request=call.numbered(insert.sequence))


def _write_lines(call: Call, write: LineWrite) -> LinesWritten:
    return call.session.write_lines(write, request=call.numbered(0))


def _upload(call: Call, chunk: UploadChunk) -> int:
    """Store a chunk; return how many bytes of the file the node has."""
    return call.session.uploads().receive(chunk.job, chunk.name, chunk.offset, chunk.crc32, chunk.data)


def _finish_upload(call: Call, end: UploadEnd) -> str:
    """Finish a file, and return its path for LOAD."""
    return call.session.uploads().finish(end.job, end.name, end.size, end.crc32)


def _discard_uploads(call: Call, job: str) -> None:
    call.session.uploads().discard(job)


# ---------------------------------------------------------------------------------------------- imports

#: Larger files need `saros import`, which does not copy the file.
IMPORT_BYTES_MAX = 4 << 30
_IMPORTED = "file"


class ImportChunk(msgspec.Struct, frozen=True):
    """A chunk of a file whose rows will be imported; `job` is a random name, which only the same user can use."""

    job: str
    offset: int
    data: bytes


class ImportFile(msgspec.Struct, frozen=True):
    """A file that was sent completely."""

    job: str
    size: int


def _import_chunk(call: Call, chunk: ImportChunk) -> int:
    """Store a chunk; return how many bytes of the file the node has. Raises UploadRefused, DiskFull."""
    if chunk.offset + len(chunk.data) > IMPORT_BYTES_MAX:
        raise UploadRefused(f"the file has more than {IMPORT_BYTES_MAX >> 30} GiB: load it with saros import")
    job, data = _import_job(call, chunk.job), chunk.data
    return call.session.imports().receive(job, _IMPORTED, chunk.offset, zlib.crc32(data), data)


def _import_file(call: Call, file: ImportFile) -> str:
    """Return the path of the file. Raises UploadRefused if it is not complete."""
    path, size = call.session.imports().received(_import_job(call, file.job), _IMPORTED)
    if size != file.size:
        raise UploadRefused(f"only {size} of {file.size} bytes of the file were received: send the rest first")
    return path


def _discard_import(call: Call, job: str) -> None:
    call.session.imports().discard(_import_job(call, job))


def _import_job(call: Call, job: str) -> str:
    """Return a job's name, which is unique among the jobs of all users. Raises UploadRefused."""
    owner = hashlib.blake2b(call.session.user.encode(), digest_size=8).hexdigest()
    return f"import-{owner}-{job}"


# ---------------------------------------------------------------------------------------------- backups


class CheckpointFile(msgspec.Struct, frozen=True):
    """A file of a checkpoint, and the offset from which it is read."""

    checkpoint: bytes
    number: int
    offset: int


def _create_checkpoint(call: Call, since: int | None) -> bytes:
    """Create a checkpoint set, and return it as JSON."""
    created = call.session.create_checkpoint(since)
    if call.cancel.cancelled:  # the client cannot release it
        call.session.release_checkpoints(created.ids)
    return encode_checkpoint_set(created)


def _read_checkpoint(call: Call, file: CheckpointFile) -> Iterator[bytes]:
    return call.session.read_captured(file.checkpoint, file.number, file.offset)


def _release_checkpoints(call: Call, ids: Sequence[bytes]) -> None:
    call.session.release_checkpoints(ids)


# ---------------------------------------------------------------------------------------------- the sync tool


class SyncBegin(msgspec.Struct, frozen=True):
    """The start of a sender's round."""

    sender: str
    name: str
    number: int
    document: Content


class SyncChunk(msgspec.Struct, frozen=True):
    """Bytes of a round's content, and the offset at which they begin."""

    sender: str
    number: int
    sha256: str
    offset: int
    #: The checksum of the data.
    crc32: int
    data: memoryview


class SyncCommit(msgspec.Struct, frozen=True):
    """A round whose contents were sent completely."""

    sender: str
    number: int


def _sync_begin(call: Call, begin: SyncBegin) -> BeginReply:
    receiver, requester = call.session.receive()
    return receiver.begin(requester, begin.sender, begin.name, begin.number, begin.document)


def _sync_chunk(call: Call, chunk: SyncChunk) -> int:
    """Store a chunk; return how many bytes of the content, counted from its start, the node now has."""
    receiver, requester = call.session.receive()
    return receiver.chunk(requester, chunk.sender, chunk.number, chunk.sha256, chunk.offset, chunk.crc32, chunk.data)


def _sync_commit(call: Call, commit: SyncCommit) -> BeginReply:
    receiver, requester = call.session.receive("sync")
    return receiver.commit(requester, commit.sender, commit.number)


# ---------------------------------------------------------------------------------------------- monitoring


class AuditQuery(msgspec.Struct, frozen=True):
    """A query of the audit trail. An empty `user` matches all users, and an empty `event` matches all events."""

    user: str
    event: str
    lines_max: int


def _slow_statements(call: Call, _: None) -> list[SlowQuery]:
    """Return the slow statements of this node that the user may see, newest first."""
    found = call.services.node.engine.slow_queries.newest_first()
    return [slow for slow in found if call.session.sees_statements_of(slow.client.user)]


def _audit_tail(call: Call, query: AuditQuery) -> AuditTail:
    call.session.require_audit()
    return call.services.gate.audit.tail(query.lines_max, user=query.user, event=query.event)


# ---------------------------------------------------------------------------------------------- the table

OPEN = Operation("open", Policy.ANYONE, _open)
PING = Operation("ping", Policy.ANYONE, _ping)
CLOSE = Operation("close", Policy.SESSION, _close)
RENEW = Operation("renew", Policy.SESSION, _renew)
EXECUTE = Operation("execute", Policy.SESSION, _execute)
FETCH = Operation("fetch", Policy.SESSION, _fetch)
DISCARD = Operation("discard", Policy.SESSION, _discard)
STREAM = Operation("stream", Policy.SESSION, _stream)
CANCEL = Operation("cancel", Policy.SESSION, _cancel)
HOLD = Operation("hold", Policy.SESSION, _hold)
RELEASE = Operation("release", Policy.SESSION, _release)
INSERT = Operation("insert", Policy.SESSION, _insert)
INSERT_MANY = Operation("insert many", Policy.SESSION, _insert_many)
INSERT_ROWS = Operation("insert rows", Policy.SESSION, _insert_rows)
WRITE_LINES = Operation("write lines", Policy.SESSION, _write_lines)
UPLOAD = Operation("upload", Policy.SESSION, _upload)
FINISH_UPLOAD = Operation("finish upload", Policy.SESSION, _finish_upload)
DISCARD_UPLOADS = Operation("discard uploads", Policy.SESSION, _discard_uploads)
CREATE_CHECKPOINT = Operation("create checkpoint", Policy.SESSION, _create_checkpoint)
READ_CHECKPOINT = Operation("read checkpoint", Policy.SESSION, _read_checkpoint)
RELEASE_CHECKPOINTS = Operation("release checkpoints", Policy.SESSION, _release_checkpoints)
SYNC_BEGIN = Operation("sync begin", Policy.SESSION, _sync_begin)
SYNC_CHUNK = Operation("sync chunk", Policy.SESSION, _sync_chunk)
SYNC_COMMIT = Operation("sync commit", Policy.SESSION, _sync_commit)
IMPORT_CHUNK = Operation("import chunk", Policy.SESSION, _import_chunk)
IMPORT_FILE = Operation("import file", Policy.SESSION, _import_file)
DISCARD_IMPORT = Operation("discard import", Policy.SESSION, _discard_import)
SLOW_STATEMENTS = Operation("slow statements", Policy.SESSION, _slow_statements)
AUDIT_TAIL = Operation("audit tail", Policy.SESSION, _audit_tail)

#: All operations, by name.
OPERATIONS: dict[str, Operation[Any, Any]] = {
    operation.name: operation
    for operation in (
        *(OPEN, PING, CLOSE, RENEW, EXECUTE, FETCH, DISCARD, STREAM, CANCEL, HOLD, RELEASE, INSERT, INSERT_MANY),
        *(UPLOAD, FINISH_UPLOAD, DISCARD_UPLOADS, CREATE_CHECKPOINT, READ_CHECKPOINT, RELEASE_CHECKPOINTS),
        *(INSERT_ROWS, WRITE_LINES, SYNC_BEGIN, SYNC_CHUNK, SYNC_COMMIT),
        *(IMPORT_CHUNK, IMPORT_FILE, DISCARD_IMPORT, SLOW_STATEMENTS, AUDIT_TAIL),
    )
}
