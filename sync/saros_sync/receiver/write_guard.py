"""What may not be changed here, since a sender's data shows it: the one look of every database that shows senders.

A statement on one device of a sender is refused as a whole (2061), with whom it comes from. A value; pure but for
`refuse_file`, which reads a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from saros_storage.base.errors import CorruptFile, UnsupportedFile
from saros_storage.base.paths import parse_pattern
from saros_storage.io.disk import Disk
from saros_storage.schema import OF_ONE_DEVICE, SchemaChange, SchemaTree
from saros_storage.tsfile.reader import TsFileReader
from saros_sync.errors import SentElsewhere
from saros_sync.receiver.catalog import Catalog


@dataclass(frozen=True, slots=True)
class WriteGuard:
    """See the module. Methods raise SentElsewhere."""

    catalog: Catalog
    #: The sender of each device that has one.
    owners: Mapping[str, str]
    schema: SchemaTree

    def refuse(self, devices: Iterable[str]) -> None:
        """Rows, series: of these devices."""
        for device in devices if self.owners else ():
            if device in self.owners:
                owner = self.catalog.name_of(self.owners[device])
                raise SentElsewhere(f"{device} comes from {owner}: change it there, and it changes here")

    def refuse_changes(self, changes: Iterable[SchemaChange]) -> None:
        """Series that are to be made or altered."""
        self.refuse(change.device for change in changes if isinstance(change, OF_ONE_DEVICE))

    def refuse_patterns(self, patterns: Sequence[str]) -> None:
        """Deletions: of all series that match."""
        for pattern in patterns if self.owners else ():
            self.refuse(device.path for device, _ in self.schema.match_series(parse_pattern(pattern)))

    def refuse_file(self, path: str, disk: Disk) -> None:
        """A file that is to be loaded; one that cannot be read is left to the LOAD, which says it better."""
        if self.owners:
            with suppress(OSError, CorruptFile, UnsupportedFile):
                self.refuse(TsFileReader(path, disk.map(path)).devices())
