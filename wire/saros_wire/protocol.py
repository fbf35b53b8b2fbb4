"""The client protocol: names of the calls, limits, and what protobuf does not carry.

    Open Close Ping     protobuf both ways
    Ask Rest            ExecuteRequest -> Answer: all of a small result, or the beginning of a large one, whose rest
                        is a stream of record batches as Arrow IPC messages; in the trailing metadata of a read that is
                        not strong: ResultEnd
    DiscardRest         nobody will come for a rest: its query ends. A stream that is cancelled may not have begun there
    Execute             the same as a stream: ResultHead, then record batches and ResultEnd as by Rest
    Insert              an Arrow IPC stream of one batch -> InsertReply; the device stands in its schema's metadata
    InsertTogether      several of these, each with its session's token -> their outcomes
    Hold                keep a moment, or let go of it: what statements see that present it
    Upload DiscardUploads      files for a LOAD, in chunks with checksums; the end of a job that brought some
    Freeze Fetch Thaw   captures for a backup: what there is, as JSON in pieces; a file's bytes; the end of it
    SyncBegin SyncChunk SyncCommit      a round of the sync tool: what is lacking of it; bytes; that it be shown

Calls other than Open, Ping and InsertTogether carry the session's token in their metadata; writes also say how many
milliseconds a node of a cluster may wait for others. Errors end a call with a status whose trailing metadata has the
code of `status.py`, and, of a write that was done in part, a PartialWrite. Pure: any thread.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from saros_wire.generated import client_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Raised with every change that an older side would not understand. A node speaks the client's, from `PROTOCOL_MIN` on.
PROTOCOL, PROTOCOL_MIN = 4, 1
#: From this one on, a node remembers the numbers of writes: a write that is sent again has no second effect.
PROTOCOL_SEQUENCES = 2
#: From this one on, a node takes InsertTogether.
PROTOCOL_TOGETHER = 3
#: From this one on, a node takes Ask and Rest.
PROTOCOL_ASK = 4
#: So many of a client's numbers are remembered; a client does not run further ahead of its oldest unanswered write.
SEQUENCES_KEPT = 256
SERVICE = "saros.client.v1.Client"
OPEN, CLOSE, PING, EXECUTE, INSERT = "Open", "Close", "Ping", "Execute", "Insert"
ASK, REST, DISCARD_REST = "Ask", "Rest", "DiscardRest"
INSERT_TOGETHER = "InsertTogether"
HOLD = "Hold"
UPLOAD, DISCARD_UPLOADS = "Upload", "DiscardUploads"
FREEZE, FETCH, THAW = "Freeze", "Fetch", "Thaw"
SYNC_BEGIN, SYNC_CHUNK, SYNC_COMMIT = "SyncBegin", "SyncChunk", "SyncCommit"
#: Calls that are answered by a stream.
STREAMS = frozenset({EXECUTE, REST, FREEZE, FETCH})
#: Bytes of one message of Freeze.
FREEZE_BYTES = 1 << 20
DEFAULT_PORT = 6667
#: A client pings a node that has sent nothing for `KEEPALIVE_MS` while a call waits, and gives the connection up
#: `KEEPALIVE_TIMEOUT_MS` later: a frozen process or a vanished machine is noticed within 5 s. A node whose threads all
#: compute answers pings nevertheless: gRPC does that outside of the interpreter.
KEEPALIVE_MS, KEEPALIVE_TIMEOUT_MS = 2_000, 2_500
#: Contents that an answer to SyncBegin or SyncCommit names as lacking, and devices that it names as refused.
SYNC_WANTS_MAX, SYNC_CONFLICTS_MAX = 10_000, 1_000
#: Columns of a write go in messages of about this size.
INSERT_BYTES = 8 << 20
SESSION_KEY, CODE_KEY, END_KEY = "saros-session-bin", "saros-code", "saros-end-bin"
#: How long a write waits at a node of a cluster: for leaders, their confirmation, and what other nodes have to tell.
#: Absent: each step waits as long as it allows.
WAIT_KEY = "saros-wait-ms"
#: The rows of a write that was done in part: a PartialWrite. It is left out if it has more bytes than this, since
#: gRPC limits the metadata of a call to 8 KiB.
PARTIAL_WRITE_KEY, PARTIAL_WRITE_BYTES_MAX = "saros-partial-write-bin", 3 << 10
_INT64 = 1 << 63
_NANOSECONDS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def path_of(call: str) -> str:
    """The call's name on the wire."""
    return f"/{SERVICE}/{call}"


def encode_values(values: Sequence[object]) -> list[client_pb2.Value]:
    """Python values as parameters. Raises TypeError naming the first that has no form."""
    return [_encode(value, number) for number, value in enumerate(values, 1)]


def _encode(value: object, number: int) -> client_pb2.Value:
    item = getattr(value, "item", None)
    if callable(item) and type(value).__module__ == "numpy":
        value = item()
    match value:
        case None:
            return client_pb2.Value(null=True)
        case bool():
            return client_pb2.Value(boolean=value)
        case int() if -_INT64 <= value < _INT64:
            return client_pb2.Value(integer=value)
        case int() | Decimal():
            return client_pb2.Value(decimal=str(value))
        case float():
            return client_pb2.Value(number=value)
        case str():
            return client_pb2.Value(text=value)
        case bytes() | bytearray() | memoryview():
            return client_pb2.Value(blob=bytes(value))
        case datetime() if value.tzinfo is not None:
            return client_pb2.Value(instant_ns=_nanoseconds(value))
        case date():
            return client_pb2.Value(local_time=value.isoformat())
        case _:
            raise TypeError(f"parameter {number} is a {type(value).__name__}, which has no SQL type")


def _nanoseconds(moment: datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * _NANOSECONDS + since.microseconds * 1_000


def decode_values(values: Sequence[client_pb2.Value]) -> list[object]:
    """The inverse; instants come as `numpy.datetime64` in nanoseconds."""
    return [_decode(value) for value in values]


def _decode(value: client_pb2.Value) -> object:
    kind = value.WhichOneof("kind")
    if kind is None or kind == "null":
        return None
    content: object = getattr(value, kind)
    if kind == "instant_ns":
        import numpy as np

        return np.datetime64(value.instant_ns, "ns")
    if kind == "decimal":
        return Decimal(value.decimal)
    if kind == "local_time":
        text = value.local_time
        return datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)
    return content
