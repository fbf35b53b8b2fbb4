"""The calls that neither open sessions nor read or write rows: backups, moments that are kept, files for LOAD.

    Freeze, Fetch, Thaw          what a backup copies              Hold      a moment for statements to come
    Upload, DiscardUploads       what a client brings for LOAD

Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc

from saros_server.api.session import EmbeddedSession
from saros_storage.checkpoint.checkpoint_set import encode_checkpoint_set
from saros_wire import protocol
from saros_wire.generated import client_pb2
from saros_wire.read_point import ReadPoint


def named_point(point: client_pb2.ReadPoint) -> ReadPoint:
    """The moment that a client names."""
    return ReadPoint(point.name, 0.0, "", point.instance)


def _create_checkpoint(
    request: client_pb2.FreezeRequest, context: grpc.ServicerContext, session: EmbeddedSession
) -> Iterator[bytes]:
    frozen = session.create_checkpoint(None if request.since < 0 else request.since)
    if not context.is_active():  # nobody would let go of it
        session.release_checkpoints(frozen.ids)
    content = encode_checkpoint_set(frozen)
    step = protocol.FREEZE_BYTES
    return iter([content[start : start + step] for start in range(0, len(content), step)])


def _fetch(request: client_pb2.FetchRequest, _: grpc.ServicerContext, session: EmbeddedSession) -> Iterator[bytes]:
    return session.read_captured(request.capture, request.number, request.offset)


def _release_checkpoints(
    request: client_pb2.ThawRequest, _: grpc.ServicerContext, session: EmbeddedSession
) -> client_pb2.ThawReply:
    session.release_checkpoints(request.captures)
    return client_pb2.ThawReply()


def _hold(request: client_pb2.HoldRequest, _: grpc.ServicerContext, session: EmbeddedSession) -> client_pb2.HoldReply:
    wanted = named_point(request.read_point)
    if not request.lease_ms:
        session.let_go(wanted)
        return client_pb2.HoldReply()
    point = session.hold(wanted.name, request.lease_ms / 1_000, wanted)
    return client_pb2.HoldReply(instance=point.instance)


def _upload(
    request: client_pb2.UploadRequest, _: grpc.ServicerContext, session: EmbeddedSession
) -> client_pb2.UploadReply:
    uploads = session.uploads()
    if request.data:
        have = uploads.receive(request.job, request.name, request.offset, request.crc32, request.data)
        return client_pb2.UploadReply(have=have)
    path = uploads.finish(request.job, request.name, request.size, request.crc32)
    return client_pb2.UploadReply(have=request.size, path=path)


def _discard_uploads(
    request: client_pb2.DiscardUploadsRequest, _: grpc.ServicerContext, session: EmbeddedSession
) -> client_pb2.DiscardUploadsReply:
    session.uploads().discard(request.job)
    return client_pb2.DiscardUploadsReply()


#: By call: the method, and what decodes its request.
OTHER_CALLS: dict[str, tuple[Callable[..., Any], Callable[[bytes], Any]]] = {
    protocol.HOLD: (_hold, client_pb2.HoldRequest.FromString),
    protocol.UPLOAD: (_upload, client_pb2.UploadRequest.FromString),
    protocol.DISCARD_UPLOADS: (_discard_uploads, client_pb2.DiscardUploadsRequest.FromString),
    protocol.THAW: (_release_checkpoints, client_pb2.ThawRequest.FromString),
}
#: The same, of calls that are answered with a stream.
OTHER_STREAMS: dict[str, tuple[Callable[..., Any], Callable[[bytes], Any]]] = {
    protocol.FREEZE: (_create_checkpoint, client_pb2.FreezeRequest.FromString),
    protocol.FETCH: (_fetch, client_pb2.FetchRequest.FromString),
}
