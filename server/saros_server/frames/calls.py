"""The calls of the native protocol: translate messages to requests of operations, and answers to messages.

`wire/saros_wire/frames.py` lists the calls with their messages and bodies. A function takes a `Caller`, the message of
the request's head, and its body. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import msgspec

from saros_cluster.database.partial_failure import RowRange, RowsLeft
from saros_server.api import operations
from saros_server.api.calls import Operation
from saros_server.api.cancellation import CancelToken
from saros_server.api.client_api import ApiConnection
from saros_server.api.errors import BadMessage
from saros_server.api.executions import NOTHING_SHOWN, Answer, ResultEnd, Statement
from saros_sync.round import Content
from saros_sync.transport import BeginReply, RoundStatus
from saros_wire import parameter_values, protocol
from saros_wire.frames import Call
from saros_wire.generated import client_pb2
from saros_wire.line_writes import LineWrite
from saros_wire.read_point import ReadPoint

#: The number of bytes in each item of the stream that answers CREATE_CHECKPOINT.
_CHECKPOINT_ITEM_BYTES = 1 << 20
#: The maximum number of schemas whose encoded form is cached, and the maximum size of such a form in bytes.
_SCHEMAS_CACHED, _SMALL_SCHEMA_BYTES = 1_024, 4_096

#: Consecutive buffers of bytes.
Buffers = Sequence[bytes | memoryview]
_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class Caller(NamedTuple):
    """The client that a request comes from."""

    connection: ApiConnection
    token: bytes
    wait_ms: int | None
    #: Cancelled when the client disconnects, or asks for it.
    cancel: CancelToken

    def __call__(self, operation: Operation[_Request, _Answer], request: _Request) -> _Answer:
        """Call an operation of the API for the client."""
        return self.connection.call(operation, self.token, request, cancel=self.cancel, wait_ms=self.wait_ms)


class Reply(NamedTuple):
    """The answer to a request."""

    head: bytes = b""
    body: Buffers = ()
    #: The items of the stream that follows the answer; each item consists of one or more buffers. None: no stream
    #: follows.
    items: Iterable[Buffers] | None = None
    #: Returns the head of the stream's end, after the last item.
    end: Callable[[], bytes] = bytes


class CallType(msgspec.Struct, frozen=True):
    """A call: its function, the decoder of its message, and whether its requests have bodies."""

    run: Callable[[Caller, Any, memoryview], Reply]
    decode: Callable[[bytes], Any]
    has_body: bool = False


# ---------------------------------------------------------------------------------------------- sessions


def _open(caller: Caller, message: client_pb2.OpenRequest, _: memoryview) -> Reply:
    login = operations.Login(
        user=message.user,
        password=message.password,
        time_zone=message.time_zone,
        consistency=message.consistency,
        partial_results=message.partial_results,
        client_id=message.client_id,
    )
    opened = caller(operations.OPEN, login)
    return _reply(
        client_pb2.OpenReply(
            session=opened.token,
            time_unit=opened.time_unit,
            server=opened.server,
            addresses=opened.addresses,
            memory=opened.memory,
        )
    )


def _ping(caller: Caller, _: None, __: memoryview) -> Reply:
    health = caller(operations.PING, None)
    return _reply(
        client_pb2.PingReply(
            server=health.server,
            uptime_ms=health.uptime_ms,
            sessions=health.sessions,
            queries=health.queries,
            problems=health.problems,
        )
    )


def _close(caller: Caller, _: None, __: memoryview) -> Reply:
    caller(operations.CLOSE, None)
    return Reply()


# ---------------------------------------------------------------------------------------------- statements


def _execute(caller: Caller, message: client_pb2.ExecuteRequest, _: memoryview) -> Reply:
    answer = caller(operations.EXECUTE, _statement(message))
    head = _answer(answer)
    body = [buffer for message in answer.messages for buffer in message.buffers]
    if not answer.cursor:
        return Reply(head, body)
    stream = caller(operations.FETCH, answer.cursor)
    items = (message.buffers for message in stream)
    return Reply(head, body, items, lambda: b"" if stream.end is None else _serialized(_end(stream.end)))


def _statement(message: client_pb2.ExecuteRequest) -> Statement:
    try:
        parameters = parameter_values.decode_values(message.parameters)
    except (ArithmeticError, ValueError) as error:
        raise BadMessage(f"a parameter that cannot be read: {error!r}") from error
    return Statement(
        message.statement,
        parameters,
        message.timeout_ms,
        message.sequence,
        dict(message.shown) if message.shown else NOTHING_SHOWN,
        _read_point(message.read_point) if message.HasField("read_point") else None,
    )


def _read_point(message: client_pb2.ReadPoint) -> ReadPoint:
    return ReadPoint(message.name, 0.0, "", message.instance)


def _answer(answer: Answer) -> bytes:
    """Return the encoded answer.

    It is a concatenation of two parts, which protobuf reads as one message with all fields.
    """
    head = answer.head
    encode = _small_columns if len(head.schema) <= _SMALL_SCHEMA_BYTES else _columns
    made = client_pb2.Answer(batch_bytes=[message.nbytes for message in answer.messages])
    own = made.head
    own.query_id, own.update_count, own.stale = head.query_id, head.update_count, head.stale
    if head.missing:
        own.missing.extend(head.missing)
    if answer.end is not None:
        made.end.CopyFrom(_end(answer.end))
    return encode(head.schema, head.type_names) + _serialized(made)


def _columns(schema: bytes, type_names: tuple[str, ...]) -> bytes:
    """Return the part of an answer that is the same for all results with these columns."""
    return _serialized(client_pb2.Answer(head=client_pb2.ResultHead(schema=schema, type_names=type_names)))


_small_columns = lru_cache(_SCHEMAS_CACHED)(_columns)


def _end(end: ResultEnd) -> client_pb2.ResultEnd:
    return client_pb2.ResultEnd(stale=end.stale, shown=end.shown, missing=end.missing)


def _hold(caller: Caller, message: client_pb2.HoldRequest, _: memoryview) -> Reply:
    point = message.read_point
    if not message.lease_ms:
        caller(operations.RELEASE, point.name)
        return _reply(client_pb2.HoldReply())
    instance = caller(operations.HOLD, operations.Hold(point.name, point.instance, message.lease_ms))
    return _reply(client_pb2.HoldReply(instance=instance))


# ---------------------------------------------------------------------------------------------- writes


def _insert(caller: Caller, _: None, columns: memoryview) -> Reply:
    outcome = caller(operations.INSERT, columns)
    return _reply(client_pb2.InsertReply(points=outcome.points, leader=outcome.leader))


def _insert_rows(caller: Caller, message: client_pb2.InsertRowsRequest, columns: memoryview) -> Reply:
    aligned = message.aligned if message.HasField("aligned") else None
    insert = operations.InsertRows(message.devices, message.counts, aligned, message.sequence, columns)
    written = caller(operations.INSERT_ROWS, insert)
    refused = [
        client_pb2.RefusedRows(device=number, error=client_pb2.ErrorReply(code=code, message=text))
        for number, (code, text) in written.refused.items()
    ]
    return _reply(client_pb2.InsertRowsReply(points=written.points, refused=refused))


def _write_lines(caller: Caller, message: client_pb2.WriteLinesRequest, lines: memoryview) -> Reply:
    write = LineWrite(bytes(lines), message.database, message.precision, message.time_ns, message.template)
    result = caller(operations.WRITE_LINES, write)
    return _reply(
        client_pb2.WriteLinesReply(
            points=result.points,
            problems=result.problems,
            problem_count=result.problem_count,
            codes=result.codes,
        )
    )


def partial_write(rows: RowsLeft) -> client_pb2.PartialWrite:
    """Return the message of a partial write."""
    return client_pb2.PartialWrite(
        written=_row_ranges(rows.written), missing=_row_ranges(rows.missing), final=rows.is_final
    )


def _row_ranges(ranges: Sequence[RowRange]) -> Iterator[client_pb2.RowRanges]:
    for device, found in groupby(ranges, attrgetter("device")):
        own = list(found)
        yield client_pb2.RowRanges(device=device, starts=[rows.start for rows in own], ends=[rows.end for rows in own])


def _upload(caller: Caller, message: client_pb2.UploadRequest, body: memoryview) -> Reply:
    job, name = message.job, message.name
    if len(body):
        chunk = operations.UploadChunk(job, name, message.offset, message.crc32, body)
        return _reply(client_pb2.UploadReply(have=caller(operations.UPLOAD, chunk)))
    path = caller(operations.FINISH_UPLOAD, operations.UploadEnd(job, name, message.size, message.crc32))
    return _reply(client_pb2.UploadReply(have=message.size, path=path))


def _discard_uploads(caller: Caller, message: client_pb2.DiscardUploadsRequest, _: memoryview) -> Reply:
    caller(operations.DISCARD_UPLOADS, message.job)
    return Reply()


# ---------------------------------------------------------------------------------------------- backups


def _create_checkpoint(caller: Caller, message: client_pb2.CreateCheckpointRequest, _: memoryview) -> Reply:
    since = None if message.since < 0 else message.since
    content, step = caller(operations.CREATE_CHECKPOINT, since), _CHECKPOINT_ITEM_BYTES
    return Reply(items=[(content[start : start + step],) for start in range(0, len(content), step)])


def _read_checkpoint(caller: Caller, message: client_pb2.ReadCheckpointRequest, _: memoryview) -> Reply:
    file = operations.CheckpointFile(message.capture, message.number, message.offset)
    return Reply(items=((piece,) for piece in caller(operations.READ_CHECKPOINT, file)))


def _release_checkpoints(caller: Caller, message: client_pb2.ReleaseCheckpointsRequest, _: memoryview) -> Reply:
    caller(operations.RELEASE_CHECKPOINTS, list(message.captures))
    return Reply()


# ---------------------------------------------------------------------------------------------- the sync tool


def _sync_begin(caller: Caller, message: client_pb2.SyncBeginRequest, _: memoryview) -> Reply:
    document = Content(message.sha256, message.size)
    begin = operations.SyncBegin(message.sender, message.name, message.number, document)
    return _sync_reply(caller(operations.SYNC_BEGIN, begin))


def _sync_chunk(caller: Caller, message: client_pb2.SyncChunkRequest, body: memoryview) -> Reply:
    chunk = operations.SyncChunk(message.sender, message.number, message.sha256, message.offset, message.crc32, body)
    return _reply(client_pb2.SyncChunkReply(have=caller(operations.SYNC_CHUNK, chunk)))


def _sync_commit(caller: Caller, message: client_pb2.SyncCommitRequest, _: memoryview) -> Reply:
    return _sync_reply(caller(operations.SYNC_COMMIT, operations.SyncCommit(message.sender, message.number)))


def _sync_reply(answer: BeginReply) -> Reply:
    reply = client_pb2.SyncReply(standing=answer.status.value, last=answer.last)
    for want in answer.wants[: protocol.SYNC_WANTS_MAX] if answer.status is RoundStatus.WANTED else ():
        reply.wants.add(sha256=want.content.sha256, size=want.content.size, have=want.have)
    for conflict in answer.conflicts[: protocol.SYNC_CONFLICTS_MAX]:
        reply.conflicts.add(device=conflict.device, owner=conflict.owner, reason=conflict.reason)
    return _reply(reply)


# ---------------------------------------------------------------------------------------------- the table


def _reply(message: Any) -> Reply:
    return Reply(_serialized(message))


def _serialized(message: Any) -> bytes:
    encoded: bytes = message.SerializeToString()
    return encoded


def _nothing(head: bytes) -> None:
    """Decode the head of a call without a message. Raises BadMessage."""
    if head:
        raise BadMessage(f"a message of {len(head)} bytes for a call that takes none")


#: All calls.
CALLS: dict[int, CallType] = {
    Call.OPEN: CallType(_open, client_pb2.OpenRequest.FromString),
    Call.CLOSE: CallType(_close, _nothing),
    Call.PING: CallType(_ping, _nothing),
    Call.EXECUTE: CallType(_execute, client_pb2.ExecuteRequest.FromString),
    Call.INSERT: CallType(_insert, _nothing, has_body=True),
    Call.INSERT_ROWS: CallType(_insert_rows, client_pb2.InsertRowsRequest.FromString, has_body=True),
    Call.WRITE_LINES: CallType(_write_lines, client_pb2.WriteLinesRequest.FromString, has_body=True),
    Call.HOLD: CallType(_hold, client_pb2.HoldRequest.FromString),
    Call.UPLOAD: CallType(_upload, client_pb2.UploadRequest.FromString, has_body=True),
    Call.DISCARD_UPLOADS: CallType(_discard_uploads, client_pb2.DiscardUploadsRequest.FromString),
    Call.CREATE_CHECKPOINT: CallType(_create_checkpoint, client_pb2.CreateCheckpointRequest.FromString),
    Call.READ_CHECKPOINT: CallType(_read_checkpoint, client_pb2.ReadCheckpointRequest.FromString),
    Call.RELEASE_CHECKPOINTS: CallType(_release_checkpoints, client_pb2.ReleaseCheckpointsRequest.FromString),
    Call.SYNC_BEGIN: CallType(_sync_begin, client_pb2.SyncBeginRequest.FromString),
    Call.SYNC_CHUNK: CallType(_sync_chunk, client_pb2.SyncChunkRequest.FromString, has_body=True),
    Call.SYNC_COMMIT: CallType(_sync_commit, client_pb2.SyncCommitRequest.FromString),
}
