"""The write guard of a database that shows senders' data. Only a sender changes its devices.

A statement that touches a sender's device is refused as a whole (2061). The message names the sender. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NamedTuple

import msgspec

from saros_storage.base.errors import CorruptFile, UnsupportedFile
from saros_storage.base.paths import parse_pattern
from saros_storage.io.disk import Disk
from saros_storage.schema import OF_ONE_DEVICE, SchemaChange, SchemaTree
from saros_storage.tsfile.reader import TsFileReader
from saros_sync.errors import SentElsewhere
from saros_sync.receiver.catalog import Catalog


class Senders(NamedTuple):
    """The senders and their devices at one moment."""

    catalog: Catalog
    #: The sender of each device that belongs to a sender.
    owners: Mapping[str, str]


class SenderGuard(msgspec.Struct, frozen=True):
    """Refuses changes to senders' devices. Implements storage's `WriteGuard`. The checks raise SentElsewhere."""

    senders: Callable[[], Senders]
    schema: Callable[[], SchemaTree]
    disk: Disk
    #: See `WriteGuard.change_lock`.
    change_lock: AbstractContextManager[object] = msgspec.field(default_factory=nullcontext)

    def check_rows(self, devices: Iterable[str]) -> None:
        """See `WriteGuard`."""
        senders = self.senders()
        for device in devices if senders.owners else ():
            owner = senders.owners.get(device)
            if owner is not None:
                name = senders.catalog.name_of(owner)
                raise SentElsewhere(f"{device} is synchronized from {name}; change it there")

    def check_changes(self, changes: Iterable[SchemaChange]) -> None:
        """See `WriteGuard`."""
        self.check_rows(change.device for change in changes if isinstance(change, OF_ONE_DEVICE))

    def check_deletion(self, patterns: Sequence[str]) -> None:
        """See `WriteGuard`: checks the devices of all series that match."""
        for pattern in patterns if self.senders().owners else ():
            self.check_rows(device.path for device, _ in self.schema().match_series(parse_pattern(pattern)))

    def check_file(self, path: str) -> None:
        """See `WriteGuard`. An unreadable file passes this check, because the LOAD reports it with a better message."""
        if self.senders().owners:
            with suppress(OSError, CorruptFile, UnsupportedFile):
                self.check_rows(TsFileReader(path, self.disk.map(path)).devices())
