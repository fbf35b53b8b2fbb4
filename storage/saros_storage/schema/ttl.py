"""Expiry of points: a device may have a time limit that moves with the clock. Its points before the limit are expired.

    now 10:00, TTL of root.db.** 1 h      expired_before("root.db.d") = 09:00; a point at 08:59:59.999 is expired
    reads                                  start at the limit immediately, whatever the files still contain
    file: root.db.d up to 08:30            fully expired: removed from the manifest as a whole
    file: root.db.d up to 09:30            expired points are removed when the file is merged, or rewritten because most
                                           of its points are expired

An immutable value: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from saros_storage.base.types import TIME_MIN, TimeUnit
from saros_storage.scan.snapshot import FileSource
from saros_storage.schema.ttl_rules import TtlRules

_MS_PER_SECOND = 1_000
_NS_PER_SECOND = 1_000_000_000


class Expiry(msgspec.Struct, frozen=True):
    """The TTL rules, evaluated at one moment."""

    rules: TtlRules
    now_ns: int
    unit: TimeUnit

    def expired_before(self, device: str) -> int | None:
        """Return the earliest time at which the device's points are not expired, or None if its points never expire."""
        if not self.rules:
            return None
        return self._limit(self.rules.milliseconds(device))

    @property
    def expired_before_at_most(self) -> int | None:
        """The latest of all devices' limits, at or after which no point is expired. None if no points expire."""
        return self._limit(min((ms for _, ms in self.rules.live() if ms is not None), default=None))

    def _limit(self, milliseconds: int | None) -> int | None:
        if milliseconds is None:
            return None
        now = self.now_ns * self.unit.value // _NS_PER_SECOND
        return max(TIME_MIN, now - milliseconds * self.unit.value // _MS_PER_SECOND)

    def is_expired(self, file: FileSource) -> bool:
        """Return whether all points of a file are expired."""
        for device, span in file.devices.items():
            limit = self.expired_before(device)
            if limit is None or span.end >= limit:
                return False
        return bool(file.devices)

    def expired(self, files: Iterable[FileSource]) -> list[FileSource]:
        """Return the files whose points are all expired."""
        return [file for file in files if self.is_expired(file)] if self.rules else []
