"""The calls of the gRPC protocol: each turns its message into the request of an operation, and the answer back.

`wire/saros_wire/protocol.py` describes the calls. Functions take a `Client`, which calls operations on behalf of the
RPC's client, and a message; those in `STREAMS` return the messages of a stream. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from google.protobuf.message import DecodeError

from saros_cluster.database.partial_failure import RowRange, RowsLeft
from saros_server.api import operations
from saros_server.api.calls import Operation
from saros_server.api.cancellation import CancelToken
from saros_server.api.errors import BadMessage
from saros_server.api.executions import ResultEnd, ResultHead, ResultStream, Statement
from saros_server.api.insert_batching import InsertPart
from saros_sync.round import Content
from saros_sync.transport import BeginReply, RoundStatus
from saros_wire import protocol
from saros_wire.bytes_field import cut_bytes
from saros_wire.generated import client_pb2
from saros_wire.read_point import ReadPoint

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class Client(Protocol):
    """The client of an RPC."""

    def __call__(
        self, operation: Operation[_Request, _Answer], request: _Request, cancel: CancelToken | None = None
    ) -> _Answer:
        """Call an operation of the API for the client."""
        ...

    def cancel_token(self) -> CancelToken:
        """Return a token that is cancelled when the RPC ends, for whatever reason."""
        ...

    def set_trailer(self, key: str, value: str | bytes) -> None:
        """Set the RPC's trailing metadata."""
        ...


@dataclass(frozen=True, slots=True)
class Rpc:
    """A call: its function, and the decoder of its message."""

    run: Callable[[Client, Any], Any]
    decode: Callable[[bytes], Any]


class _OldClient(Exception):
    """The client speaks only protocols that this node does not."""

    code = 2015

    def __init__(self) -> None:
        super().__init__(
            f"this node speaks protocols {protocol.PROTOCOL_MIN} to {protocol.PROTOCOL}: use a newer driver"
        )


# ---------------------------------------------------------------------------------------------- sessions


def _open(client: Client, message: client_pb2.OpenRequest) -> client_pb2.OpenReply:
    if message.protocol < protocol.PROTOCOL_MIN:
        raise _OldClient
    login = operations.Login(
        user=message.user,
        password=message.password,
        time_zone=message.time_zone,
        consistency=message.consistency,
        partial_results=message.partial_results,
        client_id=message.client_id,
    )
    opened = client(operations.OPEN, login)
    return client_pb2.OpenReply(
        protocol=min(message.protocol, protocol.PROTOCOL),
        session=opened.token,
        time_unit=opened.time_unit,
        server=opened.server,
        addresses=opened.addresses,
        memory=opened.memory,
    )


def _ping(client: Client, _: client_pb2.PingRequest) -> client_pb2.PingReply:
    health = client(operations.PING, None)
    return client_pb2.PingReply(
        server=health.server,
        uptime_ms=health.uptime_ms,
        sessions=health.sessions,
        queries=health.queries,
        problems=health.problems,
    )


def _close(client: Client, _: client_pb2.CloseRequest) -> client_pb2.CloseReply:
    client(operations.CLOSE, None)
    return client_pb2.CloseReply()


# ---------------------------------------------------------------------------------------------- statements


def _ask(client: Client, message: client_pb2.ExecuteRequest) -> client_pb2.Answer:
    answer = client(operations.EXECUTE, _statement(message), client.cancel_token())
    return client_pb2.Answer(
        head=_head(answer.head),
        batches=map(bytes, answer.messages),
        rest=answer.cursor,
        end=None if answer.end is None else _end(answer.end),
    )


def _rest(client: Client, message: client_pb2.RestRequest) -> Iterator[bytes | memoryview]:
    return _messages(client, client(operations.FETCH, message.rest, client.cancel_token()))


def _discard_rest(client: Client, message: client_pb2.RestRequest) -> client_pb2.DiscardRestReply:
    client(operations.DISCARD, message.rest)
    return client_pb2.DiscardRestReply()


def _execute(client: Client, message: client_pb2.ExecuteRequest) -> Iterator[bytes | memoryview]:
    stream = client(operations.STREAM, _statement(message), client.cancel_token())
    return _messages(client, stream, headed=True)


def _messages(client: Client, stream: ResultStream, *, headed: bool = False) -> Iterator[bytes | memoryview]:
    if headed:
        yield _head(stream.head).SerializeToString()
    yield from stream
    if stream.end is not None:
        client.set_trailer(protocol.END_KEY, _end(stream.end).SerializeToString())


def _statement(message: client_pb2.ExecuteRequest) -> Statement:
    try:
        parameters = protocol.decode_values(message.parameters)
    except ArithmeticError as error:
        raise BadMessage(f"a parameter that cannot be read: {error!r}") from error
    return Statement(
        message.statement,
        parameters,
        message.timeout_ms,
        message.sequence,
        dict(message.shown),
        _read_point(message.read_point) if message.HasField("read_point") else None,
    )


def _read_point(message: client_pb2.ReadPoint) -> ReadPoint:
    return ReadPoint(message.name, 0.0, "", message.instance)


def _head(head: ResultHead) -> client_pb2.ResultHead:
    return client_pb2.ResultHead(
        query_id=head.query_id,
        schema=head.schema,
        type_names=head.type_names,
        update_count=head.update_count,
        stale=head.stale,
        missing=head.missing,
    )


def _end(end: ResultEnd) -> client_pb2.ResultEnd:
    return client_pb2.ResultEnd(stale=end.stale, shown=end.shown, missing=end.missing)


def _hold(client: Client, message: client_pb2.HoldRequest) -> client_pb2.HoldReply:
    point = message.read_point
    if not message.lease_ms:
        client(operations.RELEASE, point.name)
        return client_pb2.HoldReply()
    instance = client(operations.HOLD, operations.Hold(point.name, point.instance, message.lease_ms))
    return client_pb2.HoldReply(instance=instance)


# ---------------------------------------------------------------------------------------------- writes


def _insert(client: Client, columns: bytes) -> client_pb2.InsertReply:
    outcome = client(operations.INSERT, columns)
    return client_pb2.InsertReply(points=outcome.points, leader=outcome.leader)


def _insert_together(client: Client, message: client_pb2.InsertTogetherRequest) -> client_pb2.InsertTogetherReply:
    parts = [InsertPart(part.session, part.columns) for part in message.parts]
    outcomes = [
        client_pb2.InsertOutcome(
            points=outcome.points,
            leader=outcome.leader,
            code=outcome.code,
            message=outcome.message,
            pending=outcome.pending,
            partial_write=None if outcome.rows is None else partial_write(outcome.rows),
        )
        for outcome in client(operations.INSERT_MANY, parts)
    ]
    return client_pb2.InsertTogetherReply(outcomes=outcomes)


def partial_write(rows: RowsLeft) -> client_pb2.PartialWrite:
    """Return the message of a write that was done in part."""
    return client_pb2.PartialWrite(
        written=_row_ranges(rows.written), missing=_row_ranges(rows.missing), final=rows.is_final
    )


def _row_ranges(ranges: Sequence[RowRange]) -> Iterator[client_pb2.RowRanges]:
    for device, found in groupby(ranges, attrgetter("device")):
        own = list(found)
        yield client_pb2.RowRanges(device=device, starts=[rows.start for rows in own], ends=[rows.end for rows in own])


def _upload(client: Client, message: client_pb2.UploadRequest) -> client_pb2.UploadReply:
    job, name = message.job, message.name
    if message.data:
        chunk = operations.UploadChunk(job, name, message.offset, message.crc32, message.data)
        return client_pb2.UploadReply(have=client(operations.UPLOAD, chunk))
    path = client(operations.FINISH_UPLOAD, operations.UploadEnd(job, name, message.size, message.crc32))
    return client_pb2.UploadReply(have=message.size, path=path)


def _discard_uploads(client: Client, message: client_pb2.DiscardUploadsRequest) -> client_pb2.DiscardUploadsReply:
    client(operations.DISCARD_UPLOADS, message.job)
    return client_pb2.DiscardUploadsReply()


# ---------------------------------------------------------------------------------------------- backups


def _freeze(client: Client, message: client_pb2.FreezeRequest) -> Iterator[bytes]:
    since = None if message.since < 0 else message.since
    content = client(operations.CREATE_CHECKPOINT, since, client.cancel_token())
    step = protocol.FREEZE_BYTES
    return iter([content[start : start + step] for start in range(0, len(content), step)])


def _fetch(client: Client, message: client_pb2.FetchRequest) -> Iterator[bytes]:
    file = operations.CheckpointFile(message.capture, message.number, message.offset)
    return client(operations.READ_CHECKPOINT, file)


def _release_checkpoints(client: Client, message: client_pb2.ThawRequest) -> client_pb2.ThawReply:
    client(operations.RELEASE_CHECKPOINTS, list(message.captures))
    return client_pb2.ThawReply()


# ---------------------------------------------------------------------------------------------- the sync tool


def _sync_begin(client: Client, message: client_pb2.SyncBeginRequest) -> client_pb2.SyncReply:
    document = Content(message.sha256, message.size)
    begin = operations.SyncBegin(message.sender, message.name, message.number, document)
    return _sync_reply(client(operations.SYNC_BEGIN, begin))


def _sync_chunk(client: Client, message: bytes) -> client_pb2.SyncChunkReply:
    try:
        rest, data = cut_bytes(message, client_pb2.SyncChunkRequest.DATA_FIELD_NUMBER)
        head = client_pb2.SyncChunkRequest.FromString(rest)
    except DecodeError as error:
        raise BadMessage(f"a chunk that cannot be read: {error}") from error
    chunk = operations.SyncChunk(head.sender, head.number, head.sha256, head.offset, head.crc32, data)
    return client_pb2.SyncChunkReply(have=client(operations.SYNC_CHUNK, chunk))


def _sync_commit(client: Client, message: client_pb2.SyncCommitRequest) -> client_pb2.SyncReply:
    return _sync_reply(client(operations.SYNC_COMMIT, operations.SyncCommit(message.sender, message.number)))


def _sync_reply(answer: BeginReply) -> client_pb2.SyncReply:
    reply = client_pb2.SyncReply(standing=answer.status.value, last=answer.last)
    for want in answer.wants[: protocol.SYNC_WANTS_MAX] if answer.status is RoundStatus.WANTED else ():
        reply.wants.add(sha256=want.content.sha256, size=want.content.size, have=want.have)
    for conflict in answer.conflicts[: protocol.SYNC_CONFLICTS_MAX]:
        reply.conflicts.add(device=conflict.device, owner=conflict.owner, reason=conflict.reason)
    return reply


#: The calls that are answered by one message.
UNARY: dict[str, Rpc] = {
    protocol.OPEN: Rpc(_open, client_pb2.OpenRequest.FromString),
    protocol.PING: Rpc(_ping, client_pb2.PingRequest.FromString),
    protocol.CLOSE: Rpc(_close, client_pb2.CloseRequest.FromString),
    protocol.ASK: Rpc(_ask, client_pb2.ExecuteRequest.FromString),
    protocol.DISCARD_REST: Rpc(_discard_rest, client_pb2.RestRequest.FromString),
    protocol.HOLD: Rpc(_hold, client_pb2.HoldRequest.FromString),
    protocol.INSERT: Rpc(_insert, bytes),
    protocol.INSERT_TOGETHER: Rpc(_insert_together, client_pb2.InsertTogetherRequest.FromString),
    protocol.UPLOAD: Rpc(_upload, client_pb2.UploadRequest.FromString),
    protocol.DISCARD_UPLOADS: Rpc(_discard_uploads, client_pb2.DiscardUploadsRequest.FromString),
    protocol.THAW: Rpc(_release_checkpoints, client_pb2.ThawRequest.FromString),
    protocol.SYNC_BEGIN: Rpc(_sync_begin, client_pb2.SyncBeginRequest.FromString),
    protocol.SYNC_CHUNK: Rpc(_sync_chunk, bytes),
    protocol.SYNC_COMMIT: Rpc(_sync_commit, client_pb2.SyncCommitRequest.FromString),
}
#: The calls that are answered by a stream.
STREAMS: dict[str, Rpc] = {
    protocol.EXECUTE: Rpc(_execute, client_pb2.ExecuteRequest.FromString),
    protocol.REST: Rpc(_rest, client_pb2.RestRequest.FromString),
    protocol.FREEZE: Rpc(_freeze, client_pb2.FreezeRequest.FromString),
    protocol.FETCH: Rpc(_fetch, client_pb2.FetchRequest.FromString),
}
