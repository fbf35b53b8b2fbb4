"""A receiver's status, for `saros sync status`: progress of the round, history, last error.

The file is replaced from time to time during a round, and is only for display. Values; pure.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict

from saros_sync.framing import decode_framed, encode_framed

_KIND = "status"
#: The maximum number of remembered rounds, and the maximum number of refused devices that are listed.
HISTORY_MAX, CONFLICTS_MAX = 20, 100


class Status(msgspec.Struct, frozen=True):
    """The status of one receiver.

    Times are in nanoseconds since the epoch, by the sender's clock, or 0 for never. Sizes are in bytes.
    """

    state: str = "waiting"
    #: The current round, or the last one.
    round: int = 0
    files: int = 0
    files_done: int = 0
    size: int = 0
    size_done: int = 0
    #: The rate of the current round, or of the last round that sent anything.
    bytes_per_second: float = 0.0
    failures: int = 0
    #: The receiver shows everything that was sealed up to this time.
    shown_ns: int = 0
    error: str = ""
    error_ns: int = 0
    conflicts: int = 0
    #: Device, owner and reason of the first conflicts.
    conflict_list: list[list[str]] = msgspec.field(default_factory=list)
    #: The past rounds, newest first, each as (number, end time, files, bytes, seconds).
    history: list[list[float]] = msgspec.field(default_factory=list)


def encode_status(status: Status) -> bytes:
    """Return the file's bytes."""
    return encode_framed(_KIND, asdict(status))


def decode_status(path: str, data: bytes) -> Status:
    """Decode the status in a file's bytes. Raises CorruptFile, StorageError 2015 if a newer Saros wrote it."""
    return Status(**decode_framed(path, _KIND, data))  # type: ignore[arg-type]
