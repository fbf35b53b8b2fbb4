"""Requests that had their effect already: what makes a repeated one harmless (cluster-wide, by the log).

    entry 100: client 7, sequence 3   applied          remembered until entry 100 + MEMORY
    entry 140: client 7, sequence 3   repeated         no effect, same answer

A request may come again after slots have come here, with rows for these too, which it did not bring the first time. So
it counts for the slots that were the group's when it was applied; and what was applied elsewhere to slots that came
here since counts for those (`Ownership.since`).

What is remembered follows from the log alone, so all members agree. Only effects are remembered: a command that failed
did nothing, and may come again. Pure; one thread.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from saros_cluster.data.command import NO_REQUEST, Request

#: Entries for which a request is remembered. A client gives up after seconds; this many entries take longer.
MEMORY = 131_072
#: Requests that come along with slots, the last ones: a client repeats what it did seconds ago.
ARRIVING_MAX = 16_384


class Requests:
    """See the module."""

    def __init__(
        self,
        known: Iterable[Sequence[int]] = (),
        arrived: Iterable[tuple[int, int, Iterable[Sequence[int]]]] = (),
    ) -> None:
        """`known`: (client, sequence, index, epoch), by rising index; `arrived`: epoch, index, (client, sequence)."""
        #: By request: its entry, and the last move that had brought slots here then.
        self._known: OrderedDict[Request, tuple[int, int]] = OrderedDict()
        for client, sequence, index, epoch in known:
            self._known[Request(client, sequence)] = index, epoch
        #: By move: the entry that opened what it brought, and what that has had.
        self._arrived: dict[int, tuple[int, frozenset[Request]]] = {}
        for epoch, index, found in arrived:
            self.take_in(epoch, index, found)

    def is_repeated(self, request: Request, index: int) -> bool:
        """Whether the request of entry `index` had its effect before, here."""
        return self._found(request, index) is not None

    def is_known(self, request: Request, index: int) -> bool:
        """Whether it had its effect before, here or on slots that came."""
        return self.is_repeated(request, index) or any(self._came(request, index, epoch) for epoch in self._arrived)

    def covers(self, request: Request, index: int, since: int) -> bool:
        """Whether it had its effect on a slot that came here with move `since` (0: it was here from the beginning)."""
        epoch = self._found(request, index)
        return (epoch is not None and since <= epoch) or self._came(request, index, since)

    def _found(self, request: Request, index: int) -> int | None:
        found = self._known.get(request)
        return None if found is None or index - found[0] > MEMORY else found[1]

    def _came(self, request: Request, index: int, epoch: int) -> bool:
        at, found = self._arrived.get(epoch, (0, frozenset()))
        return index - at <= MEMORY and request in found

    def remember(self, request: Request, index: int, epoch: int = 0) -> None:
        """The request of entry `index` has its effect now; `epoch`: the last move that has brought slots here."""
        if request == NO_REQUEST:
            return
        self._known.pop(request, None)
        self._known[request] = index, epoch
        while index - next(iter(self._known.values()))[0] > MEMORY:
            self._known.popitem(last=False)
        for old in [epoch for epoch, (at, _) in self._arrived.items() if index - at > MEMORY]:
            del self._arrived[old]

    def take_in(self, epoch: int, index: int, requests: Iterable[Sequence[int]]) -> None:
        """Slots come with a move, by entry `index`, that have had these."""
        self._arrived[epoch] = index, frozenset(Request(*request) for request in requests)

    def newest(self) -> list[tuple[int, int]]:
        """(client, sequence) of the last ones."""
        return [(request.client, request.sequence) for request in list(self._known)[-ARRIVING_MAX:]]

    def dump(self) -> list[tuple[int, int, int, int]]:
        """What `__init__` takes first."""
        return [(r.client, r.sequence, index, epoch) for r, (index, epoch) in self._known.items()]

    def dump_arrived(self) -> list[tuple[int, int, list[Request]]]:
        """What it takes then."""
        return [(epoch, index, sorted(found)) for epoch, (index, found) in self._arrived.items()]
