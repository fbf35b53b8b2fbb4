"""The command of a data group's entry: whose request it is, and what it does.

    u64 client | u64 sequence | u64 drop | a mutation, as storage encodes it

Client 0 asks for no protection against repetition. `drop` is the number of the drop that the mutation carries out, or
the newest one that its coordinator has seen (`drops`). The mutation's frames stay aligned to 8 bytes. Pure: any thread.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from saros_storage.block import TextArray
from saros_storage.errors import CorruptFile
from saros_storage.mutation import Mutation, decode_mutation, encode_mutation
from saros_storage.paths import parse_pattern, split_path
from saros_storage.tablet_codec import decode_tablet

_HEAD = struct.Struct("<QQQ")


class Request(NamedTuple):
    """A client's request: however often it arrives, it has one effect."""

    client: int
    sequence: int


NO_REQUEST = Request(0, 0)


class Command(NamedTuple):
    """See the module."""

    request: Request
    drop: int
    mutation: Mutation


def encode_command(request: Request, mutation: Mutation, drop: int = 0) -> bytes:
    """The entry's data."""
    return b"".join([_HEAD.pack(*request, drop), *encode_mutation(mutation)])


def decode_command(data: bytes) -> Command:
    """The inverse; frames are views of `data`. Raises CorruptFile."""
    if len(data) < _HEAD.size:
        raise CorruptFile("log", 0, "an entry is too short")
    client, sequence, drop = _HEAD.unpack_from(data)
    return Command(Request(client, sequence), drop, decode_mutation(memoryview(data)[_HEAD.size :]))


def check_command(data: bytes) -> None:
    """Raise CorruptFile, UserMistake if the bytes are no command, down to the arrays of its tablets."""
    command = decode_command(data)
    if not (command.mutation.changes or command.mutation.deletions or command.mutation.tablets):
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
