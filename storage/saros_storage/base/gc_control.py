"""Run Python's cyclic garbage collector less often during plans, writes and flushes of many series.

A plan of 100,000 series, its operators and its blocks are millions of live objects without cycles; so are the index
entries of a file with as many series. The collector would scan them repeatedly, for longer than the rest of the work
takes. While a thread is inside `reduced_gc`, its threshold is therefore raised:

    threshold of the youngest generation: the process's -- first to enter --> YOUNG_MAX -- last to leave --> as before

The collector stays on: garbage of other threads waits for at most `YOUNG_MAX` new objects. Nothing changes if the
process has disabled the collector, has a higher threshold already, or sets one in the meantime.

The effect is process-wide. Any thread may enter, also nested. A child process forked by another thread may keep
YOUNG_MAX.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

#: Collections are reduced from this number of series or columns; below it, a collection is cheap.
WIDE_MIN = 1_000
#: New objects between two collections of the youngest generation: about 20 MB.
YOUNG_MAX = 200_000

_Thresholds = tuple[int, int, int]


class _GcControl:
    """The number of threads inside `reduced_gc`, and the thresholds to restore."""

    def __init__(self) -> None:
        #: Reentrant: a finaliser that runs while the lock is held may enter again.
        self._lock = threading.RLock()
        self._inside = 0
        #: The process's thresholds; None while they are unchanged.
        self._before: _Thresholds | None = None

    def enter(self) -> None:
        """Count a thread that enters; the first one raises the threshold."""
        with self._lock:
            self._inside += 1
            found = gc.get_threshold()
            if self._inside == 1 and 0 < found[0] < YOUNG_MAX:
                self._before = found
                gc.set_threshold(YOUNG_MAX, *found[1:])

    def leave(self) -> None:
        """Count a thread that leaves; the last one restores the threshold."""
        with self._lock:
            self._inside -= 1
            if self._inside or self._before is None:
                return
            before, self._before = self._before, None
            if gc.get_threshold() == (YOUNG_MAX, *before[1:]):
                gc.set_threshold(*before)


_rarity = _GcControl()
_UNCHANGED = nullcontext()


def reduced_gc(width: int = WIDE_MIN) -> AbstractContextManager[None]:
    """Raise the collector's threshold within a `with` block; without effect below `WIDE_MIN` series."""
    return _UNCHANGED if width < WIDE_MIN else _reduced()


@contextmanager
def _reduced() -> Iterator[None]:
    _rarity.enter()
    try:
        yield
    finally:
        _rarity.leave()
