"""Figures about the load of a partition, by which a cluster balances its load.

Reads are measured in delivered points rather than in time, since a time would depend on the speed and the load of the
node.
"""

from __future__ import annotations

import msgspec


class Activity(msgspec.Struct, eq=False):
    """Points written and read since the process opened the partition.

    The numbers are approximate, since scans count without a lock.
    """

    written: int = 0
    read: int = 0


class PartitionActivity(msgspec.Struct, frozen=True):
    """The cumulative activity of one partition, and the size of its files in bytes."""

    database: str
    slice: int
    written: int
    read: int
    bytes: int
