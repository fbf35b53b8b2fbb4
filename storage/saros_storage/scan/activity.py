"""How busy a partition is, so that a cluster can balance its load.

Reads are measured in delivered points rather than in time, so that the figure does not depend on how fast or how busy
the node is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Activity:
    """Points since the process opened the partition. Scans count without a lock, so it is about right."""

    written: int = 0
    read: int = 0


@dataclass(frozen=True, slots=True)
class PartitionActivity:
    """Of one partition: its activity until now, and the bytes of its files."""

    database: str
    slice: int
    written: int
    read: int
    bytes: int
