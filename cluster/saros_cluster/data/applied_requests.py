"""Requests that have had their effect: what makes a repeated one harmless (cluster-wide, by the log).

    entry 100: client 7, sequence 3   applied          remembered until entry 100 + MEMORY
    entry 140: client 7, sequence 3   repeated         no effect, same answer

A request may come again after slots have come here, with rows for these too, which it did not bring the first time. So
it counts for the slots that were the group's by the table of who sent it; and what was applied elsewhere to slots that
came here since counts for those (`Ownership.since`). Who knows an older table may well come after the slots: had it
counted for these, too, their rows would be passed by the next time, and be lost. So would those of slots that leave, if
what others bring afterwards for the rest went along as what they had.

What is remembered follows from the log alone, so all members agree. Only effects are remembered: a command that failed
did nothing, and may come again. Pure; one thread.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

from saros_cluster.data.applied_ranges import AppliedRange, RequestSet
from saros_cluster.data.command import NO_REQUEST, Request

#: Entries for which a request is remembered. A client gives up after seconds; this many entries take longer.
MEMORY = 131_072


class AppliedRequests:
    """See the module."""

    def __init__(
        self, known: Iterable[Sequence[int]] = (), arrived: Iterable[tuple[int, int, Iterable[AppliedRange]]] = ()
    ) -> None:
        """`known`: (client, sequence, index, epoch), oldest first; `arrived`: epoch, index, what slots have had."""
        #: By request: its entries, each with the last move that had brought slots here as far as its sender knew.
        self._known: OrderedDict[tuple[int, int], tuple[tuple[int, int], ...]] = OrderedDict()
        for client, sequence, index, epoch in known:
            self._record((client, sequence), index, epoch)
        #: By move: the entry that opened what it brought, and what that has had.
        self._arrived: dict[int, tuple[int, tuple[AppliedRange, ...]]] = {}
        for epoch, index, had in arrived:
            self.add_arrived(epoch, index, had)

    def is_known(self, request: Request, index: int) -> bool:
        """Whether the request of entry `index` had its effect before, here or on slots that came."""
        came = (had for epoch in self._arrived for had in self._arrived_ranges(index, epoch))
        return bool(self._effects(request, index)) or any(request in had.requests for had in came)

    def entry_of(self, request: Request) -> int | None:
        """The first entry with which a request had its effect; None: it is not known."""
        found = self._known.get(request)
        return None if found is None else found[0][0]

    def covers(self, request: Request, index: int, slot: int, since: int) -> bool:
        """Whether it had its effect on a slot that came here with move `since` (0: it was here from the beginning)."""
        return bool(self.covered(request, index, frozenset((slot,)), since))

    def covered(self, request: Request, index: int, slots: frozenset[int], since: int) -> frozenset[int]:
        """Those of `slots`, which came here with move `since`, on which it had its effect."""
        if any(since <= epoch for _, epoch in self._effects(request, index)):
            return slots
        came = [had.slots for had in self._arrived_ranges(index, since) if request in had.requests]
        return slots.intersection(frozenset().union(*came))

    def _effects(self, request: Request, index: int) -> list[tuple[int, int]]:
        return [(at, epoch) for at, epoch in self._known.get(request, ()) if index - at <= MEMORY]

    def _arrived_ranges(self, index: int, epoch: int) -> tuple[AppliedRange, ...]:
        at, came = self._arrived.get(epoch, (0, ()))
        return came if index - at <= MEMORY else ()

    def remember(self, request: Request, index: int, epoch: int = 0) -> None:
        """The request of entry `index` has its effect now.

        `epoch`: the last move that has brought slots here as far as its sender knows.
        """
        if request == NO_REQUEST:
            return
        self._record(request, index, epoch)
        while index - next(iter(self._known.values()))[-1][0] > MEMORY:
            self._known.popitem(last=False)
        for old in [epoch for epoch, (at, _) in self._arrived.items() if index - at > MEMORY]:
            del self._arrived[old]

    def _record(self, request: tuple[int, int], index: int, epoch: int) -> None:
        self._known[request] = (*self._known.pop(request, ()), (index, epoch))

    def add_arrived(self, epoch: int, index: int, had: Iterable[AppliedRange]) -> None:
        """Note the requests `had` that slots, which a move brings with entry `index`, have applied."""
        self._arrived[epoch] = index, tuple(had)

    def ranges_leaving(self, leaving: Mapping[int, frozenset[int]], fence: int) -> tuple[AppliedRange, ...]:
        """Return the requests that slots, which leave with entry `fence`, have applied.

        `leaving`: the slots, by the move that brought them here. Entries behind the fence were for other slots.
        """
        found: list[AppliedRange] = []
        for since, slots in leaving.items():
            here = RequestSet.of(
                request
                for request, known in self._known.items()
                if any(at < fence and since <= epoch for at, epoch in known)
            )
            rest = slots
            for had in self._arrived.get(since, (0, ()))[1]:
                found.append(AppliedRange(had.slots & slots, had.requests.then(here)))
                rest -= had.slots
            found.append(AppliedRange(rest, here))
        return tuple(had for had in found if had.slots and had.requests)

    def dump(self) -> list[tuple[int, int, int, int]]:
        """What `__init__` takes first."""
        return [(*request, index, epoch) for request, found in self._known.items() for index, epoch in found]

    def dump_arrived(self) -> list[tuple[int, int, tuple[AppliedRange, ...]]]:
        """What it takes then."""
        return [(epoch, index, had) for epoch, (index, had) in self._arrived.items()]
