"""Requests that have taken effect, so that a repeated request has no effect anywhere in the cluster.

    entry 100: client 7, sequence 3   applied          remembered until entry 100 + MEMORY
    entry 140: client 7, sequence 3   repeated         no effect, same answer

A client may repeat a request after slots have moved to this group. The repeated request may then carry rows for these
slots, which the first attempt sent to another group. So a request counts as applied only to the slots that the group
owned according to the sender's partition table. For slots that moved here later, this group uses the list of requests
that their former groups had applied to them (`Ownership.since` gives the move that brought a slot).

Without this distinction, rows would be lost in two cases. First, a request that was routed by an older table may be
applied after the slots arrived: if it counted as applied to these slots, its repetition would skip their rows. Second,
a request that is applied after a fence concerns only the slots that remain: if its record moved with the slots that
leave, their new group would skip the rows of the request.

This record depends on the group's log alone, so all members have the same record. Only commands with an effect are
remembered: a command that failed did nothing, and may be sent again. Pure; single-threaded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

from saros_cluster.data.applied_ranges import AppliedRange, RequestSet
from saros_cluster.data.command import NO_REQUEST, Request

#: Number of entries for which a request is remembered. A client stops repeating a request long before that.
MEMORY = 131_072


class AppliedRequests:
    """The requests that took effect in one group, or on slots before they moved to it."""

    def __init__(
        self, known: Iterable[Sequence[int]] = (), arrived: Iterable[tuple[int, int, Iterable[AppliedRange]]] = ()
    ) -> None:
        """Start with the state that `dump` and `dump_arrived` returned.

        Each item of `known` is (client, sequence, index, epoch), oldest first. Each item of `arrived` describes one
        move: its epoch, the entry that opened its slots, and the requests that were applied to these slots before the
        move.
        """
        #: For each request, the entries that applied it. Each entry is paired with the last move to this group that the
        #: entry's sender knew of.
        self._known: OrderedDict[tuple[int, int], tuple[tuple[int, int], ...]] = OrderedDict()
        for client, sequence, index, epoch in known:
            self._record((client, sequence), index, epoch)
        #: For each move, the entry that opened its slots, and the requests that were applied to these slots before the
        #: move.
        self._arrived: dict[int, tuple[int, tuple[AppliedRange, ...]]] = {}
        for epoch, index, had in arrived:
            self.add_arrived(epoch, index, had)

    def is_known(self, request: Request, index: int) -> bool:
        """Return whether the request of entry `index` took effect earlier, here or on slots that moved here."""
        came = (had for epoch in self._arrived for had in self._arrived_ranges(index, epoch))
        return bool(self._effects(request, index)) or any(request in had.requests for had in came)

    def entry_of(self, request: Request) -> int | None:
        """Return the first entry by which a request took effect, or None if the request is not known."""
        found = self._known.get(request)
        return None if found is None else found[0][0]

    def covers(self, request: Request, index: int, slot: int, since: int) -> bool:
        """Return whether the request took effect on a slot that came with move `since` (0: it was always here)."""
        return bool(self.covered(request, index, frozenset((slot,)), since))

    def covered(self, request: Request, index: int, slots: frozenset[int], since: int) -> frozenset[int]:
        """Return those of `slots` on which the request took effect. Move `since` brought all of `slots`."""
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
        """Record that entry `index` applies the request.

        `epoch` is the last move to this group that the request's sender knew of.
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
        """Record `had`, the requests that other groups had applied to the slots that entry `index` opens."""
        self._arrived[epoch] = index, tuple(had)

    def ranges_leaving(self, leaving: Mapping[int, frozenset[int]], fence: int) -> tuple[AppliedRange, ...]:
        """Return the requests that were applied to the slots that entry `fence` takes away.

        For each move that brought some of these slots here, `leaving` has those slots. Requests that were applied after
        the fence are omitted, since they did not concern these slots.
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
        """Return the value for the argument `known` of `__init__`."""
        return [(*request, index, epoch) for request, found in self._known.items() for index, epoch in found]

    def dump_arrived(self) -> list[tuple[int, int, tuple[AppliedRange, ...]]]:
        """Return the value for the argument `arrived` of `__init__`."""
        return [(epoch, index, had) for epoch, (index, had) in self._arrived.items()]
