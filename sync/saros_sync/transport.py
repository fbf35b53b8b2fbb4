"""How a sender reaches a receiver: three questions, each of which may be asked again.

    begin    this is round 7, its document has this SHA-256      -> what the receiver lacks of it, and how much it has
    chunk    bytes of one content from an offset on              -> how much of it the receiver has now, from its start
    commit   all is there                                        -> it is visible; which devices are refused

Several chunks may be on their way; each has an answer of its own, and none is bound to the order of the others.

Pure: values and a border. `receiver.Receiver` at a node is one, tests have others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from saros_sync.round import Content

#: Bytes of a chunk at most.
CHUNK_BYTES_MAX = 4 << 20
#: Of chunks that are on their way together, if they are several: what a receiver keeps of those that come too early.
FLIGHT_BYTES_MAX = 8 << 20
#: Waits for how many bytes of a content are there; raises what its question does.
Answer = Callable[[], int]


class RoundStatus(Enum):
    """Where a receiver stands with a round."""

    #: It lacks contents; once they are there, `commit`.
    WANTED = "wanted"
    #: It shows it.
    COMMITTED = "committed"
    #: It has had rounds up to a higher number.
    OLD = "old"


@dataclass(frozen=True, slots=True)
class MissingContent:
    """A content that the receiver lacks, and how many bytes of it are there."""

    content: Content
    have: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """A device that the receiver does not show as this sender has it: whose it is ("": nobody's), and why."""

    device: str
    owner: str
    reason: str


@dataclass(frozen=True, slots=True)
class BeginReply:
    """The answer to `begin`. `last` is the receiver's last round of this sender."""

    status: RoundStatus
    last: int
    wants: tuple[MissingContent, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


class Transport(Protocol):
    """See the module. All raise Unreachable (ask again), and StorageError with what the receiver says."""

    def begin(self, sender: str, name: str, number: int, document: Content) -> BeginReply:
        """Ask what is lacking of a round."""
        ...

    def chunk(self, sender: str, number: int, sha256: str, offset: int, crc32: int, data: memoryview) -> Answer:
        """Hand over bytes of a content; the answer may be waited for when others are on their way."""
        ...

    def commit(self, sender: str, number: int) -> BeginReply:
        """Make the round visible."""
        ...

    def close(self) -> None:
        """No more questions."""
        ...
