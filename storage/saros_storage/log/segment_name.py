"""The names of a log's segments.

    00000000000000000042-9f3a6c01.log    begins with record 42; its records are valid only with the salt 9f3a6c01
    00000000000000000042.log             written by an earlier version, without a salt (0)

The salt is a random number that enters into the checksums of each record, see `record`. The salt is in the name, not in
the file: a name is durable before the first record is acknowledged, and damage to a block of the file cannot change a
name. Pure except for functions that take a `Disk`. Any thread.
"""

from __future__ import annotations

import os
import re
import secrets

import msgspec

from saros_storage.base.errors import CorruptFile
from saros_storage.io.disk import Disk

SUFFIX = ".log"
SALT_BITS = 32
_NAME = re.compile(r"(\d{1,20})(?:-([0-9a-f]{8}))?\.log")


class SegmentName(msgspec.Struct, frozen=True):
    """The index of a segment's first record, and the segment's salt (0 if the segment has no salt)."""

    first_index: int
    salt: int

    @staticmethod
    def of(path: str) -> SegmentName:
        """Parse the last part of a path. Raises CorruptFile if this part is not a segment's name."""
        match = _NAME.fullmatch(os.path.basename(path))
        if match is None:
            raise CorruptFile(path, 0, "not the name of a log segment")
        return SegmentName(int(match.group(1)), int(match.group(2) or "0", 16))

    def __str__(self) -> str:
        return f"{self.first_index:020}-{self.salt:08x}{SUFFIX}" if self.salt else f"{self.first_index:020}{SUFFIX}"


def new_salt() -> int:
    """Return a random salt, which is not 0."""
    return secrets.randbits(SALT_BITS) or 1


def list_segments(disk: Disk, folder: str) -> list[str]:
    """Return the paths of the segments in a folder, oldest first."""
    return [os.path.join(folder, name) for name in disk.list(folder) if name.endswith(SUFFIX)]
