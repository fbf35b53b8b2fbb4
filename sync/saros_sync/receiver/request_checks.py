"""Checks that all receivers make of senders' requests: identity, permission, disk space."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from saros_storage.base.errors import DiskFull
from saros_storage.io.disk import FULL_ERRNOS, Disk
from saros_sync.errors import BeginAgain, RoundRefused
from saros_sync.receiver.catalog import SenderEntry
from saros_sync.receiver.incoming import Incoming
from saros_sync.round import is_sender
from saros_sync.transport import MissingContent

_SENDERS_MAX = 10_000
_NAME_CHARS_MAX = 100
#: The disk space that a round must leave free for the store.
_RESERVED_BYTES = 256 << 20


class Requester(msgspec.Struct, frozen=True):
    """The user of a request, and its write permissions. The defaults are for a server without users."""

    user: str = ""
    may_write: Callable[[str], bool] = lambda _: True
    administrator: bool = True


class SenderLocks:
    """One lock for each sender, which serializes its requests. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}

    def of(self, sender: str) -> threading.Lock:
        """Return a sender's lock. Raises RoundRefused if the id is malformed, or if there are too many senders."""
        if not is_sender(sender):
            raise RoundRefused(f"{sender[:64]!r} is not a sender id (32 hexadecimal digits)")
        with self._lock:
            if sender not in self._locks and len(self._locks) >= _SENDERS_MAX:
                raise RoundRefused(f"there are {_SENDERS_MAX} senders already; drop some")
            return self._locks.setdefault(sender, threading.Lock())


def check_speaker(speaker: Requester, sender: str, entry: SenderEntry | None) -> None:
    """Raise RoundRefused if the user may not act for a known sender."""
    if entry is not None and entry.user not in ("", speaker.user) and not speaker.administrator:
        raise RoundRefused(f"sender {sender} belongs to another user; use another sender id")


def require_in_progress(incoming: Incoming | None, speaker: Requester, sender: str, number: int) -> Incoming:
    """Return the round in progress. Raises BeginAgain if its number differs, RoundRefused if another user began it."""
    if incoming is None or incoming.number != number or number == 0:
        raise BeginAgain(f"round {number} of sender {sender} is not in progress here; start it again")
    if incoming.user != speaker.user:
        raise RoundRefused(f"sender {sender} belongs to another user; use another sender id")
    return incoming


def check_room(incoming: Incoming, wants: Sequence[MissingContent], unit: str, disk: Disk, folder: str) -> None:
    """Raise RoundRefused if the time units differ, DiskFull if the disk has no room for the missing contents."""
    if incoming.round is not None and incoming.round.time_unit != unit:
        raise RoundRefused(f"the sender's time unit is {incoming.round.time_unit}, the receiver's is {unit}")
    needed = sum(want.content.size - want.have for want in wants)
    if needed + _RESERVED_BYTES > disk.free_bytes(folder):
        raise DiskFull(f"not enough disk space in {folder}: the round needs {needed} bytes")


@contextmanager
def disk_errors(folder: str) -> Iterator[None]:
    """Turn the OSError of a full disk into DiskFull, which makes senders retry later."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_ERRNOS:
            raise DiskFull(f"no space left in {folder}") from error
        raise


def printable(name: str) -> str:
    """Return a shortened name of a sender without unprintable characters."""
    return "".join(c for c in name[:_NAME_CHARS_MAX] if c.isprintable())
