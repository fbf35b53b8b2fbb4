"""Named snapshots that this node holds, so that several statements, in sessions of any process, read the same data.

    hold      takes a snapshot under a name, or renews the one already held under it
    find      returns its read point for a statement              release   drops it; so does the end of its lease

A snapshot of the database (`Database.hold`) has a lease, which is renewed at the start and end of every statement. Its
files stay on disk and its MemTables in memory, so at most `KEPT_MAX` snapshots are held. If there are this many, a new
one evicts the least recently read one. A restarted process holds no snapshots; its `instance` differs from that of the
previous process.

The schema is not part of the snapshot: a series that was dropped after the snapshot was taken is missing for the
snapshot's readers, too.

Thread-safe. A timer runs while there are snapshots.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import msgspec

from saros_engine.base.database import Database
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.read.latest_cache import Point
from saros_storage.scan.read_point import ReadPoint
from saros_storage.scan.reading import MultiSeriesReader, ReadCounters, ReadView, ScanRequest, SeriesReader

#: Each snapshot may keep MemTables in memory that would otherwise be freed: some hundred megabytes in the worst case.
KEPT_MAX = 32
#: This is long enough for a job that computes for a while between two reads, but short enough that a disk does not fill
#: up unnoticed.
LEASE_MS_MAX = 86_400_000
_NAME_MAX = 128
_TIMER_SECONDS = 1.0


class NoSuchReadPoint(StorageError):
    """The node does not hold this read point, or no longer holds it."""

    code = 2032

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"the read point {name} no longer exists: {why}")


class _PinnedSnapshot(msgspec.Struct, eq=False):
    """A snapshot, its lease, and its current users."""

    view: ReadView
    stale: bool
    lease_ns: int
    touched_ns: int
    #: The number of statements that read the snapshot.
    users: int = 0
    #: True if the snapshot was removed. In this case, its last user closes the view.
    ended: bool = False


class PinnedSnapshots:
    """The snapshots of a node; `instance` identifies the node's process."""

    def __init__(self, database: Database, clock: Clock, instance: int) -> None:
        self.instance = instance
        self._database = database
        self._clock = clock
        #: Held while a snapshot is taken, which may wait for other nodes.
        self._taking = threading.Lock()
        #: Guards the fields below. It is not held while a view is opened or closed.
        self._lock = threading.Lock()
        self._kept: dict[str, _PinnedSnapshot] = {}
        self._timer: threading.Timer | None = None
        self._closed = False

    @property
    def count(self) -> int:
        """The number of snapshots."""
        return len(self._kept)

    def hold(self, name: str, instance: int, lease_ms: int, consistency: str) -> None:
        """Take a snapshot with the name `name`, or renew the lease of the snapshot that already has this name.

        `instance` is the process that the caller expects; 0 allows any process. Raises NoSuchReadPoint (another
        process), UserMistake 2003, and the errors of `Database.read_point`.
        """
        if not 0 < len(name) <= _NAME_MAX or not 0 < lease_ms <= LEASE_MS_MAX:
            raise UserMistake(
                f"a read point needs a name of 1 to {_NAME_MAX} characters, and a lease of 1 to {LEASE_MS_MAX} ms",
                code=2003,
            )
        self._check_instance(name, instance)
        with self._taking:
            with self._lock:
                known = self._kept.get(name)
                if known is not None:
                    known.touched_ns = self._clock.monotonic_ns()
                    return
            point = self._database.read_point(consistency)
            view = self._database.hold(point)
            with self._lock:
                if not self._closed:
                    over = self._evict_for_room()
                    kept = _PinnedSnapshot(view, point.stale, lease_ms * 1_000_000, self._clock.monotonic_ns())
                    self._kept[name] = kept
                    self._start_timer()
                else:
                    over = [view]
        for one in over:
            one.close()

    def find(self, name: str, instance: int) -> ReadPoint:
        """Return the read point of a snapshot.

        Both this method and the read point's `picture` raise NoSuchReadPoint.
        """
        self._check_instance(name, instance)
        with self._lock:
            kept = self._get(name)
            return ReadPoint(kept.stale, picture=lambda: self._use(name))

    def _use(self, name: str) -> ReadView:
        with self._lock:
            kept = self._get(name)
            kept.users += 1
            kept.touched_ns = self._clock.monotonic_ns()
        return _Shared(kept.view, lambda: self._leave(kept))

    def _get(self, name: str) -> _PinnedSnapshot:
        kept = self._kept.get(name)
        if kept is None:
            raise NoSuchReadPoint(name, "its lease has expired, or newer ones have replaced it")
        return kept

    def _check_instance(self, name: str, instance: int) -> None:
        if instance not in (0, self.instance):
            raise NoSuchReadPoint(name, "its node was restarted")

    def _leave(self, kept: _PinnedSnapshot) -> None:
        with self._lock:
            kept.users -= 1
            kept.touched_ns = self._clock.monotonic_ns()
            closing = kept.ended and kept.users == 0
        if closing:
            kept.view.close()

    # ------------------------------------------------------------------ ending

    def release(self, name: str) -> None:
        """Drop a snapshot, if it is held. Statements that are reading it continue."""
        with self._lock:
            over = self._end([name] if name in self._kept else [])
        for view in over:
            view.close()

    def expire(self) -> int:
        """Drop the snapshots whose lease has expired; return the number that remain."""
        now = self._clock.monotonic_ns()
        with self._lock:
            due = [n for n, k in self._kept.items() if not k.users and now - k.touched_ns >= k.lease_ns]
            over = self._end(due)
            left = len(self._kept)
        for view in over:
            view.close()
        return left

    def close(self) -> None:
        """Drop all snapshots. Called when the node stops and no statement is running."""
        with self._lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            over = self._end(list(self._kept))
        for view in over:
            view.close()

    def _evict_for_room(self) -> list[ReadView]:
        """If the limit is reached, evict a snapshot, preferably one that no statement reads.

        Statements that are reading it continue.
        """
        if len(self._kept) < KEPT_MAX:
            return []
        idle = [(kept.touched_ns, name) for name, kept in self._kept.items() if not kept.users]
        return self._end([min(idle)[1]] if idle else [min(self._kept, key=lambda n: self._kept[n].touched_ns)])

    def _end(self, names: list[str]) -> list[ReadView]:
        """Remove snapshots, and return the views of those without users.

        The caller must close these views. With the lock held.
        """
        over = []
        for name in names:
            kept = self._kept.pop(name)
            kept.ended = True
            if not kept.users:
                over.append(kept.view)
        return over

    def _start_timer(self) -> None:
        """Start the timer if it does not run. With the lock held."""
        if self._timer is None:
            self._timer = threading.Timer(_TIMER_SECONDS, self._tick)
            self._timer.daemon = True
            self._timer.start()

    def _tick(self) -> None:
        left = self.expire()
        with self._lock:
            self._timer = None
            if left and not self._closed:
                self._start_timer()


class _Shared:
    """One statement's reference to a shared view; an implementation of `reading.ReadView`."""

    def __init__(self, view: ReadView, leave: Callable[[], None]) -> None:
        self._view = view
        self._leave = leave
        self._lock = threading.Lock()
        self._closed = False

    @property
    def shown(self) -> Mapping[int, int]:
        """See `ReadView.shown`."""
        return self._view.shown

    def open(self, request: ScanRequest) -> SeriesReader:
        """See `ReaderFactory.open`."""
        return self._view.open(request)

    def open_lockstep(self, request: ScanRequest) -> MultiSeriesReader | None:
        """See `ReaderFactory.open_lockstep`."""
        return self._view.open_lockstep(request)

    def open_in_step(self, request: ScanRequest) -> SeriesReader | None:
        """See `ReaderFactory.open_in_step`."""
        return self._view.open_in_step(request)

    def cuts(self, request: ScanRequest) -> Sequence[int]:
        """See `ReaderFactory.cuts`."""
        return self._view.cuts(request)

    def latest(self, request: ScanRequest, counters: ReadCounters) -> list[Point | None]:
        """See `ReaderFactory.latest`."""
        return self._view.latest(request, counters)

    def expect(self, request: ScanRequest) -> None:
        """See `ReaderFactory.expect`."""
        self._view.expect(request)

    def close(self) -> None:
        """See `ReadView.close`. This releases only the reference."""
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            self._leave()
