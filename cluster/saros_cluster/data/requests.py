"""Requests that had their effect already: what makes a repeated one harmless (cluster-wide, by the log).

    entry 100: client 7, sequence 3   applied          remembered until entry 100 + MEMORY
    entry 140: client 7, sequence 3   repeated         no effect, same answer

What is remembered follows from the log alone, so all members agree. Only effects are remembered: a command that failed
did nothing, and may come again. Pure; one thread.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from saros_cluster.data.command import NO_REQUEST, Request

#: Entries for which a request is remembered. A client gives up after seconds; this many entries take longer.
MEMORY = 131_072


class Requests:
    """See the module."""

    def __init__(self, known: Iterable[tuple[int, int, int]] = ()) -> None:
        """`known`: (client, sequence, index), by rising index."""
        self._known: OrderedDict[Request, int] = OrderedDict()
        for client, sequence, index in known:
            self._known[Request(client, sequence)] = index

    def is_repeated(self, request: Request, index: int) -> bool:
        """Whether the request of entry `index` had its effect before."""
        if request == NO_REQUEST:
            return False
        found = self._known.get(request)
        return found is not None and index - found <= MEMORY

    def remember(self, request: Request, index: int) -> None:
        """The request of entry `index` has its effect now."""
        if request == NO_REQUEST:
            return
        self._known.pop(request, None)
        self._known[request] = index
        while index - next(iter(self._known.values())) > MEMORY:
            self._known.popitem(last=False)

    def dump(self) -> list[tuple[int, int, int]]:
        """What `__init__` takes."""
        return [(request.client, request.sequence, index) for request, index in self._known.items()]
