"""Frames of the native protocol: the bytes that a client and a node send over a socket.

    connection   PREFACE from the client, then frames both ways; nothing is negotiated
    frame        header (16 bytes, little-endian) | head | body

        head_bytes u32 | body_bytes u32 | request u32 | kind u8 | call u8 | reserved u16 (0)

A head is protobuf, or a few fixed bytes; a body is Arrow IPC, or bytes of a file, which nobody copies on the way.

    client -> node                                     node -> client
    REQUEST  call, its head, its body                  REPLY   the answer to a request; more follows if `call` is MORE
    CANCEL   end a request                             ITEM    a part of a stream: body
    CREDIT   that many more bytes of ITEMs may come    END     the end of a stream: head (ResultEnd, or empty)
    PING     are you there?                            ERROR   the end of a request: head (ErrorReply)
                                                       PONG    the answer to PING

A client numbers its requests; answers carry the number. A node carries the requests of a connection out one after the
other, in the order in which they came, and reads CANCEL, CREDIT and PING meanwhile. A request may be sent before those
before it are answered, but a node reads ahead only up to a limit (`QUEUED_REQUESTS`, `QUEUED_BYTES`): a CREDIT
or CANCEL beyond it has no effect until the requests before it have had their turn.

Each request is answered by one REPLY or ERROR; a REPLY with MORE is followed by ITEMs and an END or ERROR. The node
sends another ITEM while fewer than `WINDOW_BYTES` of bodies of ITEMs lack a CREDIT: the last one may exceed the window.
A canceled request ends with ERROR (715) unless it has ended before; CANCEL and CREDIT of a request that has ended have
no effect. An ERROR of request 0 ends the connection.

A request's head begins with a prefix (`encode_prefix`): for how many milliseconds a write may wait for other nodes
(`NO_WAIT_LIMIT`: each step as long as it allows), and the token of the session (zeros: none).

The layout of the header, of ERROR, and of the first five bytes of the preface stays the same in all versions, so that a
node can tell a client of another version why it is refused. Pure data: any thread.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from saros_wire.payload import MESSAGE_BYTES_MAX

#: The version of the protocol. Raised with every change that an older side would not understand.
VERSION = 7
#: The first bytes of a connection.
MAGIC = b"SAROS"
PREFACE = MAGIC + bytes((VERSION, 0x0D, 0x0A))
#: Bytes of items that a node sends before it needs a CREDIT.
WINDOW_BYTES = 8 << 20
#: A client grants more when it has taken this many.
CREDIT_BYTES = WINDOW_BYTES // 2
#: Requests, and bytes of all frames, that a node reads while it carries out one before them.
QUEUED_REQUESTS, QUEUED_BYTES = 64, 16 << 20
HEAD_BYTES_MAX = 16 << 20
BODY_BYTES_MAX = MESSAGE_BYTES_MAX
TOKEN_BYTES = 32
NO_TOKEN = bytes(TOKEN_BYTES)
NO_WAIT_LIMIT = 0xFFFF_FFFF
#: Of a REPLY: ITEMs and an END follow.
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


#: The kinds by number: a look-up is much faster than `Kind(number)`.
_KINDS = {kind.value: kind for kind in Kind}
#: The frames that a client sends.
CLIENT_KINDS = frozenset((Kind.REQUEST, Kind.CANCEL, Kind.CREDIT, Kind.PING))


class Call(IntEnum):
    """The call of a request: the messages of its head and of its answer's (`client.proto`), and bodies."""

    OPEN = 1  # OpenRequest -> OpenReply
    CLOSE = 2  # nothing -> nothing
    PING = 3  # nothing -> PingReply
    EXECUTE = 4  # ExecuteRequest -> Answer, record batches one after the other; MORE: one in each item, ResultEnd
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
    """Bytes that are no frame of this protocol; the connection cannot go on."""


class Header(NamedTuple):
    """The header of a frame."""

    kind: Kind
    #: A number of `Call` in a REQUEST; 0 or MORE in a REPLY; else 0.
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
    """Return the start of a request's head."""
    return _PREFIX.pack(wait_ms, token)


def decode_prefix(head: bytes | bytearray | memoryview) -> tuple[bytes, int | None]:
    """Return the token of a request's head (empty: none), and its wait limit (None: none). Raises BadFrame."""
    if len(head) < PREFIX_BYTES:
        raise BadFrame(f"a request's head of {len(head)} bytes: less than {PREFIX_BYTES}")
    wait_ms, token = _PREFIX.unpack_from(head)
    return b"" if token == NO_TOKEN else token, None if wait_ms == NO_WAIT_LIMIT else wait_ms


def encode_credit(count: int) -> bytes:
    """Return the head of a CREDIT for `count` bytes."""
    return _CREDIT.pack(count)


def decode_credit(head: bytes | bytearray | memoryview) -> int:
    """Return the bytes that a CREDIT grants. Raises BadFrame."""
    if len(head) != _CREDIT.size:
        raise BadFrame(f"a credit of {len(head)} bytes")
    (count,) = _CREDIT.unpack(head)
    return int(count)
