"""What a sender tells of a receiver: how far the round is, what was, what went wrong. For `saros sync status`.

Replaced now and then while a round runs; of no use but to be read. Values; pure.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from saros_sync.framing import decode_framed, encode_framed

_KIND = "status"
#: Rounds that are remembered, and refused devices that are named.
HISTORY_MAX, CONFLICTS_MAX = 20, 100


@dataclass(frozen=True, slots=True)
class Status:
    """Times in nanoseconds since the epoch, by the sender's clock; 0: never. Sizes in bytes."""

    state: str = "waiting"
    #: The round in hand, or the last one.
    round: int = 0
    files: int = 0
    files_done: int = 0
    size: int = 0
    size_done: int = 0
    #: Of the round in hand, or of the last one that sent anything.
    bytes_per_second: float = 0.0
    failures: int = 0
    #: The receiver shows what was sealed then.
    shown_ns: int = 0
    error: str = ""
    error_ns: int = 0
    conflicts: int = 0
    #: Device, owner, reason of the first of them.
    conflict_list: list[list[str]] = field(default_factory=list)
    #: Newest first: number, end, files, bytes, seconds.
    history: list[list[float]] = field(default_factory=list)


def encode_status(status: Status) -> bytes:
    """The file's bytes."""
    return encode_framed(_KIND, asdict(status))


def decode_status(path: str, data: bytes) -> Status:
    """The inverse. Raises CorruptFile."""
    return Status(**decode_framed(path, _KIND, data))  # type: ignore[arg-type]
