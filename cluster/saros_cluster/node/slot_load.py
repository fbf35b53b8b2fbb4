"""Measures the size and the recent writes and reads of each slot, which are used to balance a cluster.

    update    called repeatedly: points of this node's partitions since the last update -> points a second, by slot
    LOADS     a call of other nodes: returns the loads of this node
    united    combines the reports of all nodes

A measurement that is `HALVED_SECONDS` old counts half. All members of a group have the same written points and bytes,
so the largest of their counts is used. A read goes to only one member, so the members' counts of reads are added up.
`LoadMeter` is thread-safe.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping

import msgspec
import numpy as np

from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.multiraft.peers import CallHandler
from saros_cluster.placement.balancer import Loads
from saros_cluster.placement.slots import slot_of
from saros_cluster.raft.messages import GroupId
from saros_storage.base.clock import Clock

LOADS = "loads"
HALVED_SECONDS = 300.0
_PART = tuple[GroupId, str, int]


class SlotLoads(msgspec.Struct, frozen=True):
    """The load of each slot: points written per second, points that scans returned per second, and bytes of files."""

    written: Loads
    read: Loads
    stored: Loads

    @staticmethod
    def nothing(slots: int) -> SlotLoads:
        """Return zero loads."""
        return SlotLoads(*(np.zeros(slots) for _ in range(3)))

    def encode(self) -> bytes:
        """Return the loads as one line of JSON, without the slots that have no load."""
        columns = np.stack([self.written, self.read, self.stored])
        slots = np.flatnonzero(columns.any(axis=0))
        return json.dumps([slots.tolist(), *np.round(columns[:, slots], 3).tolist()]).encode()

    @staticmethod
    def decode(data: bytes, slots: int) -> SlotLoads:
        """Decode loads of a cluster with this number of slots. Raises ValueError, TypeError, IndexError."""
        places, *columns = json.loads(data)
        found = SlotLoads.nothing(slots)
        for column, values in zip((found.written, found.read, found.stored), columns, strict=True):
            column[np.array(places, np.int64)] = values
        return found


def united(told: Iterable[SlotLoads], slots: int) -> SlotLoads:
    """Return the loads of the cluster, computed from the reports of its nodes."""
    found = SlotLoads.nothing(slots)
    for loads in told:
        np.maximum(found.written, loads.written, out=found.written)
        np.maximum(found.stored, loads.stored, out=found.stored)
        found.read[:] += loads.read
    return found


class LoadMeter:
    """Measures the loads of this node's slots."""

    def __init__(self, machines: Callable[[], Mapping[GroupId, RegionMachine]], slots: int, clock: Clock) -> None:
        self._machines = machines
        self._slots = slots
        self._clock = clock
        self._lock = threading.Lock()
        self._looked_ns = clock.monotonic_ns()
        #: The partitions' counts of points written and read, at the last update.
        self._seen: dict[_PART, tuple[int, int]] = {}
        self._now = SlotLoads.nothing(slots)

    def update(self) -> None:
        """Update the rates."""
        with self._lock:
            now_ns = self._clock.monotonic_ns()
            seconds = (now_ns - self._looked_ns) / 1e9
            if seconds <= 0:
                return
            since = self._since()
            kept = 0.5 ** (seconds / HALVED_SECONDS)
            self._looked_ns = now_ns
            self._now = SlotLoads(
                kept * self._now.written + (1 - kept) / seconds * since.written,
                kept * self._now.read + (1 - kept) / seconds * since.read,
                since.stored,
            )

    def _since(self) -> SlotLoads:
        """Return the points written and read since the last update, and the current bytes."""
        found, seen = SlotLoads.nothing(self._slots), self._seen
        self._seen = {}
        for group, machine in self._machines().items():
            for part in machine.region.activity():
                key, slot = (group, part.database, part.slice), slot_of(part.database, part.slice, self._slots)
                written, read = seen.get(key, (0, 0))
                if part.written < written or part.read < read:
                    written = read = 0  # the partition was opened again, which reset its counts
                self._seen[key] = (part.written, part.read)
                found.written[slot] += part.written - written
                found.read[slot] += part.read - read
                found.stored[slot] += part.bytes
        return found

    def local_loads(self) -> SlotLoads:
        """Return the current loads of this node."""
        self.update()
        return self._now

    def handlers(self) -> Mapping[str, CallHandler]:
        """Return the handlers of calls from other nodes, keyed by the names of the calls."""
        return {LOADS: lambda _, __: self.local_loads().encode()}
