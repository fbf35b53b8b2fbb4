"""The command of a data group's entry: whose request it is, and what it does.

    u64 client | u64 sequence | u64 drop | u64 epoch | u64 inbound | a mutation, as storage encodes it
    u64 -1     | u64 bytes    | 0        | 0         | 0           | a transfer of slots | a mutation

Client 0 asks for no protection against repetition. `drop` is the number of the drop that the mutation carries out, or
the newest one that its coordinator has seen (`drops`). `epoch` and `inbound` say of which table the coordinator of an
entry that concerns all groups knew (`ownership`). Frames stay aligned to 8 bytes. Pure: any thread.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from saros_cluster.data.ownership import Transfer, transfer_of, words_of
from saros_storage.block import TextArray
from saros_storage.errors import CorruptFile
from saros_storage.mutation import Mutation, decode_mutation, encode_mutation
from saros_storage.paths import parse_pattern, split_path
from saros_storage.schema import SchemaChange
from saros_storage.tablet_codec import decode_tablet

_HEAD = struct.Struct("<QQQQQ")
#: No client has that number.
_TRANSFER = (1 << 64) - 1


class Request(NamedTuple):
    """A client's request: however often it arrives, it has one effect."""

    client: int
    sequence: int


NO_REQUEST = Request(0, 0)


class Known(NamedTuple):
    """What the coordinator of an entry that concerns all groups knew of the table; see `Ownership.check_epoch`."""

    epoch: int
    inbound: int


NOTHING_KNOWN = Known(0, 0)


class Command(NamedTuple):
    """See the module."""

    request: Request
    drop: int
    mutation: Mutation
    known: Known
    transfer: Transfer | None


def encode_command(request: Request, mutation: Mutation, drop: int = 0, known: Known | None = None) -> bytes:
    """The entry's data."""
    return b"".join([_HEAD.pack(*request, drop, *(known or NOTHING_KNOWN)), *encode_mutation(mutation)])


def encode_transfer(transfer: Transfer, changes: Sequence[SchemaChange] = ()) -> bytes:
    """The entry's data; `changes`: the schema that comes with the slots."""
    words = json.dumps(words_of(transfer), ensure_ascii=False, separators=(",", ":")).encode()
    words += b" " * (-len(words) & 7)
    return b"".join([_HEAD.pack(_TRANSFER, len(words), 0, 0, 0), words, *encode_mutation(Mutation(changes))])


def decode_command(data: bytes) -> Command:
    """The inverse; frames are views of `data`. Raises CorruptFile."""
    if len(data) < _HEAD.size:
        raise CorruptFile("log", 0, "an entry is too short")
    client, sequence, drop, epoch, inbound = _HEAD.unpack_from(data)
    if client == _TRANSFER:
        end = _HEAD.size + sequence
        return Command(
            NO_REQUEST, 0, decode_mutation(memoryview(data)[end:]), NOTHING_KNOWN, _transfer(data[_HEAD.size : end])
        )
    mutation = decode_mutation(memoryview(data)[_HEAD.size :])
    return Command(Request(client, sequence), drop, mutation, Known(epoch, inbound), None)


def _transfer(words: bytes) -> Transfer:
    try:
        found = json.loads(words)
    except (ValueError, RecursionError) as error:
        raise CorruptFile("log", 0, f"not a transfer of slots: {error}") from error
    return transfer_of(found)


def check_command(data: bytes) -> None:
    """Raise CorruptFile, UserMistake if the bytes are no command, down to the arrays of its tablets."""
    command = decode_command(data)
    if command.transfer is None and not (
        command.mutation.changes or command.mutation.deletions or command.mutation.tablets
    ):
        raise CorruptFile("log", 0, "a command that does nothing")
    for deletion in command.mutation.deletions:
        for pattern in deletion.patterns:
            parse_pattern(pattern)
    for placed in command.mutation.tablets:
        tablet = decode_tablet(placed.frame)
        if not tablet.rows or not 2 <= placed.depth <= len(split_path(tablet.device)):
            raise CorruptFile("log", 0, f"a tablet of {tablet.rows} rows, {placed.depth} nodes deep")
        for column in tablet.columns:
            if isinstance(column.values, TextArray) and not column.values.sound:
                raise CorruptFile("log", 0, f"text of {tablet.device} that lies outside of its tablet")


#: The client's request that this thread (or task) carries out. Without one, a node takes a number of its own.
current_request: ContextVar[Request] = ContextVar("current_request", default=NO_REQUEST)


@contextmanager
def carrying_out(request: tuple[int, int]) -> Iterator[None]:
    """What is written meanwhile, on this thread, is of a client's request."""
    token = current_request.set(Request(*request))
    try:
        yield
    finally:
        current_request.reset(token)
