"""The latest slow statements of a node, for SHOW SLOW QUERIES. Thread-safe.

    start of the statement --> Stopwatch --> last row read, error, or close --> at least the threshold: recorded

The duration includes the time in which the client read the rows. Literals are removed before a statement is recorded,
so that records may be shown to operators and logged. The records are kept in memory only, and their number is bounded.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import msgspec

from saros_engine.base.query_registry import ClientInfo
from saros_grammar.shape import without_literals
from saros_storage.base.clock import Clock

#: The number of statements kept; the oldest is dropped first.
KEPT_MAX = 200
#: The maximum length of a recorded statement; longer texts are truncated.
_CHARACTERS_MAX = 500
_NANOSECONDS_PER_MS = 1_000_000


class SlowQuery(msgspec.Struct, frozen=True):
    """A statement, successful or not, that took at least as long as the threshold."""

    #: The id is empty if the statement is not a query, or if it failed before its first row.
    query_id: str
    client: ClientInfo
    #: Wall-clock time.
    started_ns: int
    elapsed_ms: int
    #: The statement without its literals.
    statement: str


class SlowQueries:
    """The slow queries of this node."""

    def __init__(self, clock: Clock, threshold_ms: int) -> None:
        self._clock = clock
        #: Statements that take at least this many milliseconds are slow.
        self.threshold_ms = threshold_ms
        self._lock = threading.Lock()
        #: The recorded statements; the last is the newest.
        self._kept: deque[SlowQuery] = deque(maxlen=KEPT_MAX)
        #: A function that is called with each slow query, unless it is None.
        self.listener: Callable[[SlowQuery], None] | None = None

    def start(self, statement: str, client: ClientInfo) -> Stopwatch:
        """Return a running stopwatch for a statement."""
        return Stopwatch(self, statement, client, self._clock.monotonic_ns())

    def add(self, watch: Stopwatch, query_id: str) -> None:
        """Record the statement of a stopwatch if it was slow."""
        elapsed_ms = (self._clock.monotonic_ns() - watch.started_ns) // _NANOSECONDS_PER_MS
        if elapsed_ms < self.threshold_ms:
            return
        started_ns = self._clock.now_ns() - elapsed_ms * _NANOSECONDS_PER_MS
        slow = SlowQuery(query_id, watch.client, started_ns, elapsed_ms, shape_of(watch.statement))
        with self._lock:
            self._kept.append(slow)
        if self.listener is not None:
            self.listener(slow)

    def newest_first(self) -> list[SlowQuery]:
        """Return the recorded statements, the most recently ended first."""
        with self._lock:
            return list(reversed(self._kept))


class Stopwatch:
    """Measures the time that one statement takes. Any thread may stop it."""

    __slots__ = ("_log", "_running", "client", "started_ns", "statement")

    def __init__(self, log: SlowQueries, statement: str, client: ClientInfo, started_ns: int) -> None:
        self._log = log
        #: Holds one item, which the first `stop` pops; popping is atomic.
        self._running = [True]
        self.statement = statement
        self.client = client
        #: The monotonic time of the start.
        self.started_ns = started_ns

    def stop(self, query_id: str) -> None:
        """Record the statement if it was slow. Only the first call has an effect."""
        try:
            self._running.pop()
        except IndexError:
            return
        self._log.add(self, query_id)


def shape_of(statement: str) -> str:
    """Return the statement without its literals, truncated."""
    text = without_literals(statement) or "(unreadable)"
    return text if len(text) <= _CHARACTERS_MAX else text[:_CHARACTERS_MAX] + "..."
