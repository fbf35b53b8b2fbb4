"""What is done with a partition, so that a cluster can be balanced by it.

Points that scans deliver stand for the time that they take: they are the same on a slow node and on a busy one.
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
