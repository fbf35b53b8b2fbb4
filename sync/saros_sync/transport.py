"""The interface between a sender and a receiver: three requests, each of which may be repeated.

    begin    the number of a round, its document's SHA-256    -> the missing contents, and how many bytes of each exist
    chunk    bytes of one content, from an offset on          -> the number of bytes stored from the content's start
    commit   the round is complete                            -> the round is visible; the devices that are refused

Several chunks may be in flight. Each chunk has its own answer, and chunks need not arrive in order.

Pure: values and an interface. A node implements it with `receiver.Receiver`. Tests have other implementations.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

import msgspec

from saros_sync.round import Content

#: The maximum size of a chunk in bytes.
CHUNK_BYTES_MAX = 4 << 20
#: The maximum number of bytes in flight, except that a single chunk is always allowed. It also limits how many bytes of
#: a content a receiver buffers because they arrived before the bytes that precede them.
FLIGHT_BYTES_MAX = 8 << 20
#: Waits for the answer to a chunk: the number of bytes of the content that the receiver has. Raises the errors of
#: `Transport`.
Answer = Callable[[], int]


class RoundStatus(Enum):
    """The state of a round at a receiver."""

    #: The receiver lacks contents: send them, then `commit`.
    WANTED = "wanted"
    #: The receiver shows the round.
    COMMITTED = "committed"
    #: The receiver has committed a round with a higher number, or another round with this number.
    OLD = "old"


class MissingContent(msgspec.Struct, frozen=True):
    """A content that the receiver lacks, and how many of its bytes it has (`have`)."""

    content: Content
    have: int


class Conflict(msgspec.Struct, frozen=True):
    """A device that the receiver refuses: its owner at the receiver ("" if it has none), and the reason."""

    device: str
    owner: str
    reason: str


class BeginReply(msgspec.Struct, frozen=True):
    """The answer to `begin` and `commit`.

    In the answer to `begin`, `last` is the number of the sender's last committed round.
    """

    status: RoundStatus
    last: int
    wants: tuple[MissingContent, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


class Transport(Protocol):
    """A sender's connection to a receiver.

    All methods raise Unreachable (the caller should repeat the request), and StorageError with the receiver's message.
    """

    def begin(self, sender: str, name: str, number: int, document: Content) -> BeginReply:
        """Begin a round, or resume it. The answer lists the contents that are missing."""
        ...

    def chunk(self, sender: str, number: int, sha256: str, offset: int, crc32: int, data: memoryview) -> Answer:
        """Send bytes of a content. The caller may send more chunks before it waits for the answer."""
        ...

    def commit(self, sender: str, number: int) -> BeginReply:
        """Make the round visible."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
