"""Uploads local files to a node for a LOAD at that node. It is the client of `saros_server.node.uploads`.

    send     sends chunks with a checksum each; sends a chunk again if no answer arrives                        UPLOAD
    discard  ends a job: the node deletes the files of the job, and accepts no further ones            DISCARD_UPLOADS

For one thread.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from saros.base.target import Target
from saros.transport.exchange import CallFailed
from saros.transport.node_client import session_at_first
from saros.transport.retry_policy import failure_of
from saros_wire.frames import Call
from saros_wire.generated import client_pb2

if TYPE_CHECKING:
    from google.protobuf.message import Message

_CHUNK_BYTES = 4 << 20
_SECONDS = 60.0
#: Limit on the retries of a call without an answer.
_RETRIES_MAX = 5
_PAUSE_SECONDS = 0.5


class Uploads:
    """A connection to a node for uploads."""

    def __init__(self, target: Target) -> None:
        """Connect. Raises what `session_at_first` raises."""
        self._session = session_at_first(target)

    @property
    def address(self) -> str:
        """The address of the node, as host:port."""
        return self._session.address

    def send(self, job: str, name: str, path: str) -> str:
        """Upload a file, and return its path at the node. Raises DatabaseError, OSError."""
        have = whole = 0
        with open(path, "rb") as file:
            while data := file.read(_CHUNK_BYTES):
                request = client_pb2.UploadRequest(job=job, name=name, offset=have, crc32=zlib.crc32(data))
                reply = self._upload(request, (data,))
                whole = zlib.crc32(data, whole)
                have += len(data)
                if reply.have != have:
                    break  # the final call reports the error
        end = client_pb2.UploadRequest(job=job, name=name, size=have, crc32=whole)
        return self._upload(end).path

    def discard(self, job: str) -> None:
        """Delete the files of a job at the node, and make the node refuse further files. Raises DatabaseError."""
        request = client_pb2.DiscardUploadsRequest(job=job)
        self._ask(Call.DISCARD_UPLOADS, request)

    def _upload(self, request: client_pb2.UploadRequest, body: Sequence[bytes] = ()) -> client_pb2.UploadReply:
        reply: client_pb2.UploadReply = client_pb2.UploadReply.FromString(self._ask(Call.UPLOAD, request, body))
        return reply

    def _ask(self, call: Call, request: Message, body: Sequence[bytes] = ()) -> bytes:
        retries = 0
        while True:
            try:
                return self._session.call(call, request, _SECONDS, body)
            except CallFailed as failed:
                failure = failure_of(failed, self.address)
                retries += 1
                if not failure.retryable or retries > _RETRIES_MAX:
                    raise failure.error from None
            time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        """Close the session."""
        self._session.close()
