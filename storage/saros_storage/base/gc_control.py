"""Run Python's cyclic garbage collector less often during plans, writes and flushes of many series.

A plan of 100,000 series with its operators and blocks consists of millions of live objects without cycles. The index of
a file with 100,000 series has as many objects. The collector would scan these objects repeatedly, which would take
longer than the rest of the work. Therefore the collector's threshold is raised while a thread is inside `reduced_gc`:

    youngest generation's threshold    T -- the first thread enters --> YOUNG_MAX -- the last thread leaves --> T

The collector stays on: the cyclic garbage of other threads is collected after at most `YOUNG_MAX` new objects. If the
process has disabled the collector or already has a higher threshold, nothing is changed. A threshold that the process
sets in the meantime is not overwritten.

The effect is process-wide. Any thread may enter, even when it is already inside. A child process that another thread
forks in the meantime may keep YOUNG_MAX.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

#: The threshold is raised only for at least this number of series or columns: with fewer, a collection is cheap.
WIDE_MIN = 1_000
#: Number of new objects between two collections of the youngest generation. These objects take about 20 MB.
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
    """Raise the collector's threshold within a `with` block if `width` is at least `WIDE_MIN`."""
    return _UNCHANGED if width < WIDE_MIN else _reduced()


@contextmanager
def _reduced() -> Iterator[None]:
    _rarity.enter()
    try:
        yield
    finally:
        _rarity.leave()
