"""Frames of the native protocol: the bytes that clients and nodes send over a socket. Pure data: any thread.

    connection   PREFACE from the client, then frames in both directions; there is no negotiation
    frame        header (16 bytes, little-endian) | head | body

        head_bytes u32 | body_bytes u32 | request u32 | kind u8 | call u8 | reserved u16 (0)

A head is a protobuf message, or a few bytes with a fixed layout. A body is Arrow IPC or the bytes of a file, and is
sent and received without being copied.

    client -> node                                     node -> client
    REQUEST  call, its head, its body                  REPLY   the answer to a request; ITEMs follow if `call` is MORE
    CANCEL   end a request                             ITEM    a part of a stream: body
    CREDIT   grant bytes of further ITEMs              END     the end of a stream: head (ResultEnd, or empty)
    PING     check that the node is alive              ERROR   the end of a request: head (ErrorReply)
                                                       PONG    the answer to PING

A client numbers its requests, and answers carry the number of their request. A node executes the requests of a
connection one after the other, in the order of their arrival. While it executes a request, it also reads CANCEL, CREDIT
and PING. A client may send further requests before the first request is answered, but the node reads ahead only up to a
limit (`QUEUED_REQUESTS`, `QUEUED_BYTES`). A CREDIT or CANCEL beyond the limit takes effect only after the node has
executed the requests before it.

Each request is answered by one REPLY or ERROR. A REPLY with MORE is followed by ITEMs and an END or ERROR. The node
sends ITEMs as long as the bodies it has sent exceed the granted credit by less than `WINDOW_BYTES`, so the last ITEM
may exceed the window. A cancelled request ends with ERROR (715) unless it has ended before; CANCEL and CREDIT have no
effect on a request that has ended. An ERROR of request 0 ends the connection.

A request's head begins with a prefix (`encode_prefix`): the milliseconds for which the node may wait for other nodes
(`NO_WAIT_LIMIT`: the limit of each step), and the token of the session (zeros: no session).

All versions have the same layouts of the header, of ERROR, and of the first five bytes of the preface. Therefore, a
node can refuse a client of another version with an error that gives the reason.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from saros_wire.payload import MESSAGE_BYTES_MAX

#: The version of the protocol, raised with every incompatible change.
VERSION = 7
#: The first bytes of a connection.
MAGIC = b"SAROS"
PREFACE = MAGIC + bytes((VERSION, 0x0D, 0x0A))
#: The number of bytes of items that a node sends without a CREDIT.
WINDOW_BYTES = 8 << 20
#: The number of bytes of items after which a client sends a CREDIT.
CREDIT_BYTES = WINDOW_BYTES // 2
#: The maximum numbers of requests, and of bytes in all frames, that a node reads while it executes an earlier request.
QUEUED_REQUESTS, QUEUED_BYTES = 64, 16 << 20
HEAD_BYTES_MAX = 16 << 20
BODY_BYTES_MAX = MESSAGE_BYTES_MAX
TOKEN_BYTES = 32
NO_TOKEN = bytes(TOKEN_BYTES)
NO_WAIT_LIMIT = 0xFFFF_FFFF
#: The `call` of a REPLY that is followed by ITEMs and an END.
MORE = 1

_HEADER = struct.Struct("<IIIBBH")
_PREFIX = struct.Struct(f"<I{TOKEN_BYTES}s")
_CREDIT = struct.Struct("<I")
HEADER_BYTES = _HEADER.size
PREFIX_BYTES = _PREFIX.size


class Kind(IntEnum):
    """The kind of a frame."""

    REQUEST = 1
    CANCEL = 2
    CREDIT = 3
    PING = 4
    REPLY = 16
    ITEM = 17
    END = 18
    ERROR = 19
    PONG = 20


#: The kinds, keyed by number. A look-up in this table is much faster than `Kind(number)`.
_KINDS = {kind.value: kind for kind in Kind}
#: The frames that a client sends.
CLIENT_KINDS = frozenset((Kind.REQUEST, Kind.CANCEL, Kind.CREDIT, Kind.PING))


class Call(IntEnum):
    """The call of a request.

    The comment on each call names the messages of its request and answer (`client.proto`), and their bodies.
    """

    OPEN = 1  # OpenRequest -> OpenReply
    CLOSE = 2  # nothing -> nothing
    PING = 3  # nothing -> PingReply
    EXECUTE = 4  # ExecuteRequest -> Answer, concatenated record batches; MORE: one batch for each item, ResultEnd
    INSERT = 5  # nothing, an insert (`payload`) -> InsertReply
    HOLD = 6  # HoldRequest -> HoldReply
    UPLOAD = 7  # UploadRequest, bytes of the file -> UploadReply
    DISCARD_UPLOADS = 8  # DiscardUploadsRequest -> nothing
    CREATE_CHECKPOINT = 9  # CreateCheckpointRequest -> MORE: JSON in pieces
    READ_CHECKPOINT = 10  # ReadCheckpointRequest -> MORE: bytes of a file in pieces
    RELEASE_CHECKPOINTS = 11  # ReleaseCheckpointsRequest -> nothing
    SYNC_BEGIN = 12  # SyncBeginRequest -> SyncReply
    SYNC_CHUNK = 13  # SyncChunkRequest, bytes of the content -> SyncChunkReply
    SYNC_COMMIT = 14  # SyncCommitRequest -> SyncReply
    WRITE_LINES = 15  # WriteLinesRequest, lines -> WriteLinesReply
    INSERT_ROWS = 16  # InsertRowsRequest, an Arrow IPC stream -> InsertRowsReply


class BadFrame(Exception):
    """Bytes that are not a frame of this protocol. The connection must be closed."""


class Header(NamedTuple):
    """The header of a frame."""

    kind: Kind
    #: The number of a `Call` in a REQUEST; 0 or MORE in a REPLY; 0 otherwise.
    call: int
    request: int
    head_bytes: int
    body_bytes: int


def encode_header(kind: Kind, request: int, head_bytes: int = 0, body_bytes: int = 0, call: int = 0) -> bytes:
    """Return the header of a frame."""
    return _HEADER.pack(head_bytes, body_bytes, request, kind, call, 0)


def decode_header(data: bytes | bytearray | memoryview) -> Header:
    """Return the header at the start of `data`, which has `HEADER_BYTES`. Raises BadFrame."""
    head_bytes, body_bytes, request, number, call, reserved = _HEADER.unpack_from(data)
    kind = _KINDS.get(number)
    if kind is None:
        raise BadFrame(f"a frame of kind {number}")
    if reserved:
        raise BadFrame(f"reserved bytes of a header are {reserved}, not 0")
    if head_bytes > HEAD_BYTES_MAX:
        raise BadFrame(f"a head of {head_bytes} bytes: more than {HEAD_BYTES_MAX}")
    if body_bytes > BODY_BYTES_MAX:
        raise BadFrame(f"a body of {body_bytes} bytes: more than {BODY_BYTES_MAX}")
    return Header(kind, call, request, head_bytes, body_bytes)


def encode_prefix(token: bytes = NO_TOKEN, wait_ms: int = NO_WAIT_LIMIT) -> bytes:
    """Return the prefix of a request's head."""
    return _PREFIX.pack(wait_ms, token)


def decode_prefix(head: bytes | bytearray | memoryview) -> tuple[bytes, int | None]:
    """Return a request's token (empty without a session) and wait limit in ms (None if unlimited). Raises BadFrame."""
    if len(head) < PREFIX_BYTES:
        raise BadFrame(f"a request's head of {len(head)} bytes: less than {PREFIX_BYTES}")
    wait_ms, token = _PREFIX.unpack_from(head)
    return b"" if token == NO_TOKEN else token, None if wait_ms == NO_WAIT_LIMIT else wait_ms


def encode_credit(count: int) -> bytes:
    """Return the head of a CREDIT for `count` bytes."""
    return _CREDIT.pack(count)


def decode_credit(head: bytes | bytearray | memoryview) -> int:
    """Return the number of bytes that a CREDIT grants. Raises BadFrame."""
    if len(head) != _CREDIT.size:
        raise BadFrame(f"a credit of {len(head)} bytes")
    (count,) = _CREDIT.unpack(head)
    return int(count)
