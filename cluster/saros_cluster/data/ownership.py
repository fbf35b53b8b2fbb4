"""Which slots a group owns, as of an entry of its log: since which of the cluster's moves, and until which.

    slot     since   until
      17         0   never     from the beginning
      18         0       4     the fourth move took it away (Fence): no more writes; reads by an older table still come
      19         5   never     the fifth move brought it here (Open)
      20      never      -     another group's

    Fence     after this entry, nothing is written to or deleted from these slots: their data here no longer changes,
              so all members that have applied the entry serve fetches and reads equally well
    Prepare   schema of slots that are about to be opened, if it is too large for one entry
    Open      from here on this group owns the slots; their data is elsewhere at first (`Arrival`)
    Release   the slots are complete elsewhere: their data here is removed
    Complete  everything that came with a move is at all members

An entry's effect depends on its group's log alone, so all members agree on it. A repeated entry has no effect. A reader
states the epoch of its table, and finds the slots that the group owned then. An entry that concerns all groups states
the epoch of its coordinator's table; a group that is ahead of or behind that epoch refuses it (`check_epoch`), since
the entry would otherwise miss slots that are being moved.

Pure; one thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from saros_cluster.data.applied_ranges import AppliedRange
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import MOVED, slot_of
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.change import nodes_of, runs, slots_of_runs
from saros_storage.base.errors import CorruptFile, UserMistake

#: Says who reads for slots that came to it: those that went with the move of that epoch are wanted, and no others.
LEFT = (1 << 62) - 2
#: An epoch that never comes.
NEVER = (1 << 62) - 1
#: Slices whose slots are remembered.
_CACHED_SLICES = 65_536


@dataclass(frozen=True, slots=True)
class Arrival:
    """Slots that came with move `move` of change `change`: where their data lies, and which partitions there are.

    `partitions` are (database, slice), sorted.
    """

    epoch: int
    change: int
    move: int
    source: GroupId
    #: Behind this entry of the source's log nothing of the slots has changed there.
    fence: int
    holders: tuple[NodeId, ...]
    slots: tuple[int, ...] = field(repr=False)
    partitions: tuple[tuple[str, int], ...] = field(repr=False)
    #: The entry of this group's log that opened them; 0 in that entry itself.
    entry: int = 0

    def to_json(self) -> list[object]:
        """As values that JSON knows."""
        where = [self.source, self.fence, self.holders]
        return [self.epoch, self.change, self.move, where, runs(self.slots), self.partitions, self.entry]

    @staticmethod
    def from_json(words: Sequence[Any]) -> Arrival:
        """The inverse. Raises ValueError, TypeError."""
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


@dataclass(frozen=True, slots=True)
class Fence:
    """See the module."""

    epoch: int
    slots: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Prepare:
    """See the module. Has no effect once the move is opened."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Open:
    """See the module. `requests` and `drops` are what the source had carried out: they count here, too."""

    arrival: Arrival
    requests: tuple[AppliedRange, ...] = field(repr=False)
    drops: tuple[object, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Release:
    """See the module."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Complete:
    """See the module."""

    epoch: int


Transfer = Fence | Prepare | Open | Release | Complete


def transfer_to_json(transfer: Transfer) -> list[object]:
    """As values that JSON knows."""
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
    """The inverse. Raises CorruptFile."""
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
        raise CorruptFile("log", 0, f"not a transfer of slots: {error}") from error
    raise CorruptFile("log", 0, "not a transfer of slots")


class Ownership:
    """See the module."""

    def __init__(self, owned: npt.NDArray[np.bool_]) -> None:
        """`owned`: bool[slots], how the group begins."""
        self._since = np.where(owned, 0, NEVER).astype(np.int64)
        self._until = np.full(len(owned), NEVER, np.int64)
        #: The last moves that took slots away, brought some, and were let go of.
        self.fenced = self.opened = self.released = 0
        #: By epoch of a move that took slots away, of which something may be here still: the entry that fenced them.
        self.fences: dict[int, int] = {}
        #: What is on its way here, by epoch.
        self.arrivals: dict[int, Arrival] = {}

    def slot(self, database: str, number: int) -> int:
        """The slot of a database's slice."""
        return _slot(database, number, len(self._since))

    def owns_schema(self, database: str) -> bool:
        """Whether the group keeps the schema of the database's series."""
        return self.owns(self.slot(database, 0))

    def has_schema(self, database: str) -> bool:
        """Likewise, or did until others could take it over."""
        return self.has(self.slot(database, 0))

    def owns(self, slot: int) -> bool:
        """Whether entries for the slot are taken now."""
        return bool(self._since[slot] < NEVER == self._until[slot])

    def has(self, slot: int) -> bool:
        """Whether there may be something of the slot here."""
        return bool(self._since[slot] < NEVER)

    def since(self, slot: int) -> int:
        """The move that brought the slot here; 0: it was here from the beginning."""
        return int(self._since[slot])

    def leaving(self, epoch: int) -> dict[int, frozenset[int]]:
        """The slots that a move took away, and that are here still, by the move that brought them."""
        return self._by_move(self._until == epoch)

    def owned(self) -> dict[int, frozenset[int]]:
        """The slots for which entries are taken now, by the move that brought them."""
        return self._by_move((self._since < NEVER) & (self._until == NEVER))

    def _by_move(self, chosen: npt.NDArray[np.bool_]) -> dict[int, frozenset[int]]:
        slots = np.flatnonzero(chosen)
        since = self._since[slots]
        return {came: frozenset(slots[since == came].tolist()) for came in np.unique(since).tolist()}

    def shows(self, slot: int, epoch: int, inbound: int) -> bool:
        """Whether a reader whose table is of that epoch finds the slot here."""
        if inbound == LEFT:
            return bool(self._until[slot] == epoch)
        return bool(self._since[slot] <= epoch < self._until[slot])

    def check(self, slots: Sequence[int], inbound: int) -> None:
        """Raise UserMistake (MOVED) if one of the slots is not this group's now, or a table does not know that it is.

        `inbound` is the last move that brought slots here as far as that table knows.
        """
        for slot in slots:
            if not self.owns(slot):
                raise UserMistake("the slot is another group's, or not open yet: look at the table again", code=MOVED)
            if self.since(slot) > inbound:
                raise UserMistake("the slot has come since, and by chance: look at the table again", code=MOVED)

    def check_epoch(self, epoch: int, inbound: int) -> None:
        """Raise UserMistake (MOVED) if a table of that epoch does not show what is here.

        `inbound` is the last move that brought slots here as far as that table knows.
        """
        if epoch < max(self.fenced, self.opened) or inbound > self.opened:
            raise UserMistake("slots have moved, or are about to: look at the table again", code=MOVED)

    @property
    def has_moved(self) -> bool:
        """Whether slots have ever come or gone."""
        return bool(self.fenced or self.opened)

    def has_left(self, epoch: int) -> bool:
        """Whether slots that a move took away are still here."""
        return bool((self._until == epoch).any())

    def is_fenced_at(self, slot: int, index: int) -> bool:
        """Whether nothing changes of the slot with entry `index`: a move has taken it away before."""
        fence = self.fences.get(int(self._until[slot]))
        return fence is not None and index > fence

    def check_view(self, epoch: int, inbound: int) -> None:
        """Raise UserMistake (MOVED) if who reads by a table of that epoch looks for what is gone, or not here yet."""
        is_shown = self.has_left(epoch) if inbound == LEFT else epoch >= self.released and inbound <= self.opened
        if not is_shown:
            raise UserMistake("slots have moved, or are about to: look at the table again", code=MOVED)

    # ------------------------------------------------------------------ entries

    def fence(self, fence: Fence, index: int) -> None:
        """See `Fence`; entry `index`."""
        if fence.epoch > self.fenced:
            self._until[list(fence.slots)] = fence.epoch
            self.fenced = fence.epoch
            self.fences[fence.epoch] = index

    def open(self, arrival: Arrival) -> bool:
        """See `Open`; False if it was opened before."""
        if arrival.epoch <= self.opened:
            return False
        slots = list(arrival.slots)
        self._since[slots] = arrival.epoch
        self._until[slots] = NEVER
        self.opened = arrival.epoch
        self.arrivals[arrival.epoch] = arrival
        return True

    def forget(self, database: str) -> None:
        """A database was dropped: nothing of it is on its way any more."""
        for epoch, arrival in self.arrivals.items():
            left = tuple(key for key in arrival.partitions if key[0] != database)
            self.arrivals[epoch] = replace(arrival, partitions=left)

    def complete(self, epoch: int) -> None:
        """See `Complete`."""
        self.arrivals.pop(epoch, None)

    def leave(self, epoch: int) -> npt.NDArray[np.intp]:
        """See `Release`; the slots that are not here any more."""
        gone = np.flatnonzero(self._until == epoch)
        self._since[gone] = NEVER
        self._until[gone] = NEVER
        self.fences.pop(epoch, None)
        self.released = max(self.released, epoch)
        return gone

    # ------------------------------------------------------------------ words

    def to_json(self) -> dict[str, object]:
        """As values that JSON knows; runs of slots with their epochs."""
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
        """The inverse. Raises ValueError, TypeError, KeyError."""
        counts, since, until = (np.array(column, np.int64) for column in zip(*words["slots"], strict=True))
        found = Ownership(np.zeros(int(counts.sum()), np.bool_))
        found._since, found._until = np.repeat(since, counts), np.repeat(until, counts)
        found.fenced, found.opened, found.released = (int(words[key]) for key in ("fenced", "opened", "let_go"))
        found.fences = {int(epoch): int(index) for epoch, index in words["fences"]}
        arrivals = [Arrival.from_json(arrival) for arrival in words["arrivals"]]
        found.arrivals = {arrival.epoch: arrival for arrival in arrivals}
        return found


_slot = lru_cache(_CACHED_SLICES)(slot_of)
