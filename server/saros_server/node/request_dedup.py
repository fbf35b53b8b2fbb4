"""A table of writes by client and sequence number, which makes repeated writes harmless on one node.

    begin   NEW        execute the write, then call `finish` or `give_up`
            RUNNING    another thread executes it: ask again when that has ended
            an answer  it was executed before, with this answer
            FORGOTTEN  too old to be known: refuse it

The table has the newest `SEQUENCES_KEPT` numbers of each of the `CLIENTS_MAX` clients that wrote last. It takes at most
20 MB. Clients do not repeat older writes. A failed write had no effect, and may be repeated. The table exists only in
the memory of one process. The reply to Open contains the table's id, so that clients notice a restart.

Pure and not thread-safe: `request_dedup_runner.py` adds the lock.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from enum import Enum

from saros_wire.protocol import SEQUENCES_KEPT

CLIENTS_MAX = 10_000
#: (client, sequence)
Request = tuple[int, int]
#: A request without a client's number and a sequence number, which is never repeated.
NO_REQUEST: Request = (0, 0)
#: A negative number marks a request that has no answer, since answers are never negative.
_NOTHING, _RUNNING = -2, -1


class State(Enum):
    """The state of a request for which there is no answer."""

    NEW = "new"
    RUNNING = "running"
    FORGOTTEN = "forgotten"


class _Client:
    """The answers to a client's newest requests; the answer to request number n is at index n % SEQUENCES_KEPT."""

    __slots__ = ("answers", "newest")

    def __init__(self) -> None:
        self.newest = 0
        self.answers = array("q", [_NOTHING]) * SEQUENCES_KEPT

    def advance(self, sequence: int) -> None:
        """Clear the entries for the numbers between the newest number and `sequence`."""
        for number in range(max(self.newest, sequence - SEQUENCES_KEPT) + 1, sequence + 1):
            self.answers[number % SEQUENCES_KEPT] = _NOTHING
        self.newest = max(self.newest, sequence)


class RequestTable:
    """The requests of all clients."""

    def __init__(self) -> None:
        #: Clients in the order of their last request.
        self._clients: OrderedDict[int, _Client] = OrderedDict()

    def begin(self, request: Request) -> State | int:
        """Begin a request; return the request's state, or its answer if the request was executed before."""
        client, sequence = request
        known = self._clients.get(client)
        if known is None:
            known = self._clients[client] = _Client()
            if len(self._clients) > CLIENTS_MAX:
                self._clients.popitem(last=False)
        self._clients.move_to_end(client)
        if sequence <= known.newest - SEQUENCES_KEPT:
            return State.FORGOTTEN
        known.advance(sequence)
        answer = known.answers[sequence % SEQUENCES_KEPT]
        if answer == _NOTHING:
            known.answers[sequence % SEQUENCES_KEPT] = _RUNNING
            return State.NEW
        return State.RUNNING if answer == _RUNNING else answer

    def finish(self, request: Request, answer: int) -> None:
        """Record the answer, which is not negative, of an executed request."""
        assert answer >= 0
        self._put(request, answer)

    def give_up(self, request: Request) -> None:
        """Record that a request failed, so that it can be repeated."""
        self._put(request, _NOTHING)

    def _put(self, request: Request, answer: int) -> None:
        client, sequence = request
        known = self._clients.get(client)
        if known is not None and sequence > known.newest - SEQUENCES_KEPT:
            known.answers[sequence % SEQUENCES_KEPT] = answer
