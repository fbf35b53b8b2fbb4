"""The calls of the sync tool: a session's user speaks for a sender, the node's receiver answers. Thread-safe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from saros_server.api.errors import BadMessage
from saros_server.api.session import EmbeddedSession
from saros_sync.round import Content
from saros_sync.transport import BeginReply, RoundStatus
from saros_wire import protocol
from saros_wire.bytes_field import cut_bytes
from saros_wire.generated import client_pb2


def _begin(
    request: client_pb2.SyncBeginRequest, _: grpc.ServicerContext, session: EmbeddedSession
) -> client_pb2.SyncReply:
    receiver, speaker = session.receive()
    document = Content(request.sha256, request.size)
    return _reply(receiver.begin(speaker, request.sender, request.name, request.number, document))


def _chunk(message: bytes, _: grpc.ServicerContext, session: EmbeddedSession) -> client_pb2.SyncChunkReply:
    receiver, speaker = session.receive()
    try:
        head, data = cut_bytes(message, client_pb2.SyncChunkRequest.DATA_FIELD_NUMBER)
        request = client_pb2.SyncChunkRequest.FromString(head)
    except DecodeError as error:
        raise BadMessage(f"a chunk that cannot be read: {error}") from error
    have = receiver.chunk(speaker, request.sender, request.number, request.sha256, request.offset, request.crc32, data)
    return client_pb2.SyncChunkReply(have=have)


def _commit(
    request: client_pb2.SyncCommitRequest, _: grpc.ServicerContext, session: EmbeddedSession
) -> client_pb2.SyncReply:
    receiver, speaker = session.receive("sync")
    return _reply(receiver.commit(speaker, request.sender, request.number))


def _reply(begun: BeginReply) -> client_pb2.SyncReply:
    standing = begun.status
    reply = client_pb2.SyncReply(standing=standing.value, last=begun.last)
    for want in begun.wants[: protocol.SYNC_WANTS_MAX] if standing is RoundStatus.WANTED else ():
        reply.wants.add(sha256=want.content.sha256, size=want.content.size, have=want.have)
    for conflict in begun.conflicts[: protocol.SYNC_CONFLICTS_MAX]:
        reply.conflicts.add(device=conflict.device, owner=conflict.owner, reason=conflict.reason)
    return reply


#: By call: the method, and what decodes its request.
SYNC_CALLS: dict[str, tuple[Callable[..., Any], Callable[[bytes], Any]]] = {
    protocol.SYNC_BEGIN: (_begin, client_pb2.SyncBeginRequest.FromString),
    protocol.SYNC_CHUNK: (_chunk, bytes),
    protocol.SYNC_COMMIT: (_commit, client_pb2.SyncCommitRequest.FromString),
}
