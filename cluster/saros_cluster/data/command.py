"""The command in an entry of a data group: the client's request, and its effect.

    u64 client | u64 sequence | u64 drop | u64 epoch | u64 inbound | a mutation, as storage encodes it
    u64 -1     | u64 bytes    | 0        | 0         | 0           | a transfer of slots (JSON) | a mutation
    u64 -2     | u64 bytes    | 0        | 0         | 0           | a piece of a file (JSON) | its bytes

Repeated requests of client 0 are not detected. `drop` is the number of the drop that the mutation applies, or of the
newest drop that the sending coordinator has seen (`drops`). `epoch` and `inbound` are the version of the partition
table that the coordinator used (`ownership`, `applied_requests`). A mutation that loads a file contains nothing else;
the file was sent before, in pieces (`log_shipped_files`). The start of each frame remains aligned to 8 bytes. Pure: any
thread.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from saros_cluster.data import log_shipped_files
from saros_cluster.data.log_shipped_files import Piece, Shipping
from saros_cluster.data.ownership import Transfer, transfer_from_json, transfer_to_json
from saros_storage.base.block import TextArray
from saros_storage.base.errors import CorruptFile
from saros_storage.base.paths import parse_pattern, split_path
from saros_storage.mutation.mutation import Mutation, decode_mutation, encode_mutation
from saros_storage.mutation.tablet_codec import decode_tablet
from saros_storage.schema import SchemaChange

_HEAD = struct.Struct("<QQQQQ")
#: Values of the client field that mark a transfer of slots and a piece of a file. No client has these numbers.
_TRANSFER = (1 << 64) - 1
_SHIPPING = (1 << 64) - 2
#: Minimum number of nodes in the path of a database.
_DEPTH_MIN = 2


class Request(NamedTuple):
    """The identity of a client's request. A request takes effect once, however often it arrives."""

    client: int
    sequence: int


NO_REQUEST = Request(0, 0)


class TableVersion(NamedTuple):
    """The version, for one group, of the partition table that a coordinator or reader uses.

    `epoch` is the epoch of the table, `inbound` is the last move of slots to the group, and `outbound` is the last move
    away from the group. Only readers set `outbound`: an entry does not need it, since its place in the log is before or
    after the fence.
    """

    epoch: int
    inbound: int
    outbound: int = 0


NOTHING_KNOWN = TableVersion(0, 0)


class Command(NamedTuple):
    """A decoded command: a request's mutation, a transfer of slots, or a piece of a file."""

    request: Request
    drop: int
    mutation: Mutation
    known: TableVersion
    transfer: Transfer | None = None
    shipping: Shipping | None = None


def encode_command(request: Request, mutation: Mutation, drop: int = 0, known: TableVersion = NOTHING_KNOWN) -> bytes:
    """Return the data of an entry that applies a request's mutation."""
    return b"".join([_HEAD.pack(*request, drop, known.epoch, known.inbound), *encode_mutation(mutation)])


def encode_transfer(transfer: Transfer, changes: Sequence[SchemaChange] = ()) -> bytes:
    """Return the data of an entry that moves slots. `changes` is the schema of these slots."""
    return _encode_json(_TRANSFER, transfer_to_json(transfer), encode_mutation(Mutation(changes)))


def encode_shipping(shipping: Shipping) -> bytes:
    """Return the data of an entry that carries a piece of a file, or the notice that the file is no longer needed."""
    data = [shipping.data] if isinstance(shipping, Piece) else []
    return _encode_json(_SHIPPING, log_shipped_files.shipping_to_json(shipping), data)


def _encode_json(kind: int, words: Sequence[object], rest: Sequence[bytes | memoryview]) -> bytes:
    text = json.dumps(words, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) & 7)
    return b"".join([_HEAD.pack(kind, len(text), 0, 0, 0), text, *rest])


def decode_command(data: bytes) -> Command:
    """Decode an entry's data. Frames are views of `data`. Raises CorruptFile."""
    if len(data) < _HEAD.size:
        raise CorruptFile("log", 0, "an entry is too short")
    client, sequence, drop, epoch, inbound = _HEAD.unpack_from(data)
    if client in (_TRANSFER, _SHIPPING):
        end = _HEAD.size + sequence
        words, rest = _decode_json(data[_HEAD.size : end]), memoryview(data)[end:]
        if client == _TRANSFER:
            return Command(NO_REQUEST, 0, decode_mutation(rest), NOTHING_KNOWN, transfer=transfer_from_json(words))
        shipping = log_shipped_files.shipping_from_json(words, rest)
        return Command(NO_REQUEST, 0, Mutation(), NOTHING_KNOWN, shipping=shipping)
    mutation = decode_mutation(memoryview(data)[_HEAD.size :])
    return Command(Request(client, sequence), drop, mutation, TableVersion(epoch, inbound))


def _decode_json(text: bytes) -> list[Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFile("log", 0, f"invalid JSON: {error}") from error
    if not isinstance(found, list):
        raise CorruptFile("log", 0, "not a JSON list")
    return found


def check_command(data: bytes) -> None:
    """Raise CorruptFile or UserMistake unless the bytes are a valid command, including the arrays of its tablets."""
    command = decode_command(data)
    mutation = command.mutation
    does_something = mutation.changes or mutation.deletions or mutation.tablets or mutation.loads
    if command.transfer is None and command.shipping is None and not does_something:
        raise CorruptFile("log", 0, "a command without effect")
    if mutation.loads:
        _check_load(mutation)
    for deletion in mutation.deletions:
        for pattern in deletion.patterns:
            parse_pattern(pattern)
    for placed in mutation.tablets:
        tablet = decode_tablet(placed.frame)
        if not tablet.rows or not _DEPTH_MIN <= placed.depth <= len(split_path(tablet.device)):
            raise CorruptFile("log", 0, f"a tablet of {tablet.rows} rows, {placed.depth} nodes deep")
        for column in tablet.columns:
            if isinstance(column.values, TextArray) and not column.values.sound:
                raise CorruptFile("log", 0, f"text of {tablet.device} that is outside its tablet")


def _check_load(mutation: Mutation) -> None:
    first = mutation.loads[0]
    if len(mutation.loads) > 1 or mutation.changes or mutation.deletions or mutation.tablets:
        raise CorruptFile("log", 0, "an entry with a LOAD must have exactly one file and nothing else")
    name = first.name.partition("/")[0]
    log_shipped_files.check_name(name)
    if first.name != log_shipped_files.staged_name(name) or len(split_path(first.database)) < _DEPTH_MIN:
        raise CorruptFile("log", 0, f"{first.name!r} cannot be loaded for {first.database!r}")
