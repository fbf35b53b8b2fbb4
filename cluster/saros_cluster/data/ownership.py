"""The slots that a group owns after an entry of its log, and for each slot the moves that brought it and took it away.

    slot     since   until
      17         0   never     owned from the start
      18         0       4     the fourth move took it away (Fence): no more writes; reads by older tables still arrive
      19         5   never     the fifth move brought it here (Open)
      20      never      -     owned by another group

    Fence     after this entry, nothing is written to or deleted from these slots: their data here no longer changes,
              so all members that have applied the entry serve fetches and reads equally well
    Prepare   schema of slots that are about to be opened, if it is too large for one entry
    Open      from this entry on the group owns the slots; their data is elsewhere at first (`Arrival`)
    Release   the slots are complete elsewhere: their data here is removed
    Complete  all members have all the data that the move brought

An entry's effect depends on its group's log alone, so all members agree on it. A repeated entry has no effect. A reader
states the epoch of its partition table, and sees the slots that the group owned at that epoch. An entry that concerns
all groups states the epoch of its coordinator's table. A group refuses the entry (`check_epoch`) if it has seen newer
moves, or has not yet seen all moves of that table, since the entry would otherwise miss slots that are being moved.

Pure; single-threaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from saros_cluster.data.applied_ranges import AppliedRange
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import MOVED, slot_of
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.change import nodes_of, runs, slots_of_runs
from saros_storage.base.errors import CorruptFile, UserMistake

#: A special value of `inbound`, for a group that received slots and reads their data at the former group: the reader
#: wants exactly the slots that left with the move of its epoch.
LEFT = (1 << 62) - 2
#: An epoch that no move has.
NEVER = (1 << 62) - 1
#: Maximum number of slices whose slots are cached.
_CACHED_SLICES = 65_536


class Arrival(msgspec.Struct, frozen=True):
    """Slots that a move brings to this group, the nodes that have their data, and their partitions.

    `change` is the number of the topology change, and `move` is the number of the move within the change. `partitions`
    are (database, slice), sorted.
    """

    epoch: int
    change: int
    move: int
    source: GroupId
    #: After this entry of the source's log, the slots' data and schema no longer change there.
    fence: int
    holders: tuple[NodeId, ...]
    slots: tuple[int, ...]
    partitions: tuple[tuple[str, int], ...]
    #: The entry of this group's log that opened the slots, or 0 within that entry itself.
    entry: int = 0

    def to_json(self) -> list[object]:
        """Return the value in a form that JSON can encode."""
        where = [self.source, self.fence, self.holders]
        return [self.epoch, self.change, self.move, where, runs(self.slots), self.partitions, self.entry]

    @staticmethod
    def from_json(words: Sequence[Any]) -> Arrival:
        """Return the arrival that `to_json` encoded. Raises ValueError, TypeError."""
        epoch, change, move, (source, fence, holders), slots, partitions, entry = words
        return Arrival(
            int(epoch),
            int(change),
            int(move),
            GroupId(int(source)),
            int(fence),
            nodes_of(holders),
            slots_of_runs(slots),
            tuple((str(database), int(number)) for database, number in partitions),
            int(entry),
        )


class Fence(msgspec.Struct, frozen=True):
    """The group stops owning `slots`: their data and schema do not change here after this entry."""

    epoch: int
    slots: tuple[int, ...]


class Prepare(msgspec.Struct, frozen=True):
    """Add the schema of slots that are about to be opened. This has no effect once the slots are open."""

    epoch: int


class Open(msgspec.Struct, frozen=True):
    """The group starts to own slots. It treats the source group's `requests` and `drops` as applied here."""

    arrival: Arrival
    requests: tuple[AppliedRange, ...]
    drops: tuple[object, ...]


class Release(msgspec.Struct, frozen=True):
    """The slots that a move took away are complete at their new group. Their data here is removed."""

    epoch: int


class Complete(msgspec.Struct, frozen=True):
    """All members have all the data that a move brought."""

    epoch: int


Transfer = Fence | Prepare | Open | Release | Complete


def transfer_to_json(transfer: Transfer) -> list[object]:
    """Return the transfer in a form that JSON can encode."""
    match transfer:
        case Fence(epoch, slots):
            return ["fence", epoch, runs(slots)]
        case Prepare(epoch):
            return ["bring", epoch]
        case Open(arrival, requests, drops):
            return ["open", arrival.to_json(), [had.to_json() for had in requests], drops]
        case Release(epoch):
            return ["let go", epoch]
        case Complete(epoch):
            return ["settle", epoch]


def transfer_from_json(words: Sequence[Any]) -> Transfer:
    """Return the transfer that `transfer_to_json` encoded. Raises CorruptFile."""
    try:
        match words:
            case ["fence", epoch, slots]:
                return Fence(int(epoch), slots_of_runs(slots))
            case ["bring", epoch]:
                return Prepare(int(epoch))
            case ["open", arrival, requests, drops]:
                return Open(Arrival.from_json(arrival), tuple(map(AppliedRange.from_json, requests)), tuple(drops))
            case ["let go", epoch]:
                return Release(int(epoch))
            case ["settle", epoch]:
                return Complete(int(epoch))
    except (ValueError, TypeError) as error:
        raise CorruptFile("log", 0, f"invalid slot transfer: {error}") from error
    raise CorruptFile("log", 0, "invalid slot transfer")


class Ownership:
    """For each slot, the move that brought it to the group, and the move that took it away."""

    def __init__(self, owned: npt.NDArray[np.bool_]) -> None:
        """`owned`: bool[slots], the slots that the group owns at its start."""
        self._since = np.where(owned, 0, NEVER).astype(np.int64)
        self._until = np.full(len(owned), NEVER, np.int64)
        #: The last move that took slots away, the last move that brought slots, and the last move whose slots' data was
        #: removed here.
        self.fenced = self.opened = self.released = 0
        #: The entry that fenced a move's slots, keyed by the move's epoch, for moves whose slots left but are not
        #: removed yet.
        self.fences: dict[int, int] = {}
        #: Moves to this group that are not complete here, keyed by their epochs.
        self.arrivals: dict[int, Arrival] = {}

    def slot(self, database: str, number: int) -> int:
        """Return the slot of slice `number` of a database."""
        return _slot(database, number, len(self._since))

    def owns_schema(self, database: str) -> bool:
        """Return whether the group keeps the schema of the database's series."""
        return self.owns(self.slot(database, 0))

    def has_schema(self, database: str) -> bool:
        """Return whether the schema of the database may be here: its slot is owned, or fenced but not released."""
        return self.has(self.slot(database, 0))

    def owns(self, slot: int) -> bool:
        """Return whether the group accepts entries for the slot."""
        return bool(self._since[slot] < NEVER == self._until[slot])

    def has(self, slot: int) -> bool:
        """Return whether data of the slot may be here: the slot is owned, or fenced but not released."""
        return bool(self._since[slot] < NEVER)

    def since(self, slot: int) -> int:
        """Return the move that brought the slot here; 0 if the group owned it from the start."""
        return int(self._since[slot])

    def leaving(self, epoch: int) -> dict[int, frozenset[int]]:
        """Return the unreleased slots that move `epoch` took away, grouped by the move that brought them."""
        return self._by_move(self._until == epoch)

    def owned(self) -> dict[int, frozenset[int]]:
        """Return the slots for which the group accepts entries, grouped by the move that brought them."""
        return self._by_move((self._since < NEVER) & (self._until == NEVER))

    def _by_move(self, chosen: npt.NDArray[np.bool_]) -> dict[int, frozenset[int]]:
        slots = np.flatnonzero(chosen)
        since = self._since[slots]
        return {came: frozenset(slots[since == came].tolist()) for came in np.unique(since).tolist()}

    def shows(self, slot: int, epoch: int, inbound: int) -> bool:
        """Return whether a reader whose table has this epoch finds the slot here."""
        if inbound == LEFT:
            return bool(self._until[slot] == epoch)
        return bool(self._since[slot] <= epoch < self._until[slot])

    def check(self, slots: Sequence[int], inbound: int) -> None:
        """Raise UserMistake (MOVED) unless the group owns all slots and the coordinator's table says that it does.

        `inbound` is the last move to this group that the table contains.
        """
        for slot in slots:
            if not self.owns(slot):
                raise UserMistake(
                    "the slot belongs to another group or is not open yet; read the partition table again", code=MOVED
                )
            if self.since(slot) > inbound:
                raise UserMistake("the slot moved here after the partition table was read; read it again", code=MOVED)

    def check_epoch(self, epoch: int, inbound: int) -> None:
        """Raise UserMistake (MOVED) if the coordinator's table is older or newer than the moves applied here.

        `inbound` is the last move to this group that the coordinator's table contains.
        """
        if epoch < max(self.fenced, self.opened) or inbound > self.opened:
            raise UserMistake("slots have moved or are about to move; read the partition table again", code=MOVED)

    @property
    def has_moved(self) -> bool:
        """True if slots have ever moved to or from the group."""
        return bool(self.fenced or self.opened)

    def has_left(self, epoch: int) -> bool:
        """Return whether slots that a move took away are not released yet."""
        return bool((self._until == epoch).any())

    def is_fenced_at(self, slot: int, index: int) -> bool:
        """Return whether a move took the slot away before entry `index`. If so, the entry must not change the slot."""
        fence = self.fences.get(int(self._until[slot]))
        return fence is not None and index > fence

    def check_view(self, epoch: int, inbound: int) -> None:
        """Raise UserMistake (MOVED) if a reader may look for slots that are already removed here, or not open here yet.

        `epoch` and `inbound` come from the reader's table.
        """
        is_shown = self.has_left(epoch) if inbound == LEFT else epoch >= self.released and inbound <= self.opened
        if not is_shown:
            raise UserMistake("slots have moved or are about to move; read the partition table again", code=MOVED)

    # ------------------------------------------------------------------ entries

    def fence(self, fence: Fence, index: int) -> None:
        """Apply a `Fence`, which is entry `index`."""
        if fence.epoch > self.fenced:
            self._until[list(fence.slots)] = fence.epoch
            self.fenced = fence.epoch
            self.fences[fence.epoch] = index

    def open(self, arrival: Arrival) -> bool:
        """Apply an `Open`. Return False if the move was opened before."""
        if arrival.epoch <= self.opened:
            return False
        slots = list(arrival.slots)
        self._since[slots] = arrival.epoch
        self._until[slots] = NEVER
        self.opened = arrival.epoch
        self.arrivals[arrival.epoch] = arrival
        return True

    def forget(self, database: str) -> None:
        """Remove the partitions of a dropped database from the arrivals."""
        for epoch, arrival in self.arrivals.items():
            left = tuple(key for key in arrival.partitions if key[0] != database)
            self.arrivals[epoch] = replace(arrival, partitions=left)

    def complete(self, epoch: int) -> None:
        """Apply a `Complete`."""
        self.arrivals.pop(epoch, None)

    def leave(self, epoch: int) -> npt.NDArray[np.intp]:
        """Apply a `Release`. Return the slots whose data is no longer on this replica."""
        gone = np.flatnonzero(self._until == epoch)
        self._since[gone] = NEVER
        self._until[gone] = NEVER
        self.fences.pop(epoch, None)
        self.released = max(self.released, epoch)
        return gone

    # ------------------------------------------------------------------ JSON

    def to_json(self) -> dict[str, object]:
        """Return the value in a form that JSON can encode.

        The slots are encoded as runs with equal epochs: (count, since, until).
        """
        changes = np.flatnonzero(
            np.diff(self._since, prepend=self._since[0] - 1) | np.diff(self._until, prepend=self._until[0])
        )
        counts = np.diff(changes, append=len(self._since)).tolist()
        since, until = self._since[changes].tolist(), self._until[changes].tolist()
        return {
            "slots": [list(run) for run in zip(counts, since, until, strict=True)],
            "fenced": self.fenced,
            "opened": self.opened,
            "let_go": self.released,
            "fences": list(self.fences.items()),
            "arrivals": [arrival.to_json() for arrival in self.arrivals.values()],
        }

    @staticmethod
    def from_json(words: Mapping[str, Any]) -> Ownership:
        """Return the ownership that `to_json` encoded. Raises ValueError, TypeError, KeyError."""
        counts, since, until = (np.array(column, np.int64) for column in zip(*words["slots"], strict=True))
        found = Ownership(np.zeros(int(counts.sum()), np.bool_))
        found._since, found._until = np.repeat(since, counts), np.repeat(until, counts)
        found.fenced, found.opened, found.released = (int(words[key]) for key in ("fenced", "opened", "let_go"))
        found.fences = {int(epoch): int(index) for epoch, index in words["fences"]}
        arrivals = [Arrival.from_json(arrival) for arrival in words["arrivals"]]
        found.arrivals = {arrival.epoch: arrival for arrival in arrivals}
        return found


_slot = lru_cache(_CACHED_SLICES)(slot_of)
