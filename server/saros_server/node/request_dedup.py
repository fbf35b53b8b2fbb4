"""Writes that were done or are being done, by their client's numbers: what makes a repeated one harmless on one node.

    begin   NEW        carry it out, then `finish` or `give_up`
            RUNNING    another thread is at it: ask again when that is over
            an answer  it was carried out, and answered this
            FORGOTTEN  too old to be known: refuse it

The newest `SEQUENCES_KEPT` numbers of the `CLIENTS_MAX` clients that wrote last are known, in 20 MB at most; clients do
not ask for older ones. A write that failed did nothing, and may come again. The memory is this process's: the reply to
Open names it, so that clients notice when it is another one.

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
#: A request that nobody will repeat.
NO_REQUEST: Request = (0, 0)
#: In the place of an answer, which is never negative.
_NOTHING, _RUNNING = -2, -1


class State(Enum):
    """See the module."""

    NEW = "new"
    RUNNING = "running"
    FORGOTTEN = "forgotten"


class _Client:
    """The answers of a client's newest numbers; that of number n at place n % SEQUENCES_KEPT."""

    __slots__ = ("answers", "newest")

    def __init__(self) -> None:
        self.newest = 0
        self.answers = array("q", [_NOTHING]) * SEQUENCES_KEPT

    def advance(self, sequence: int) -> None:
        """Make room up to `sequence`."""
        for number in range(max(self.newest, sequence - SEQUENCES_KEPT) + 1, sequence + 1):
            self.answers[number % SEQUENCES_KEPT] = _NOTHING
        self.newest = max(self.newest, sequence)


class RequestTable:
    """See the module."""

    def __init__(self) -> None:
        #: The client that wrote last is the last.
        self._clients: OrderedDict[int, _Client] = OrderedDict()

    def begin(self, request: Request) -> State | int:
        """Somebody asks for it."""
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
        """It was carried out; `answer` is not negative."""
        assert answer >= 0
        self._put(request, answer)

    def give_up(self, request: Request) -> None:
        """It failed."""
        self._put(request, _NOTHING)

    def _put(self, request: Request, answer: int) -> None:
        client, sequence = request
        known = self._clients.get(client)
        if known is not None and sequence > known.newest - SEQUENCES_KEPT:
            known.answers[sequence % SEQUENCES_KEPT] = answer
