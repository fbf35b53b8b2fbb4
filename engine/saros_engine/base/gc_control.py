"""Python's collector of cycles, which runs seldom while a wide plan is made or run, and while many batches are written.

A plan of 100,000 series, its operators and its blocks are some million objects that are alive and in no cycle; the
collector would look at them again and again, for longer than all the rest takes. So it runs less often for as long as a
thread is within `reduced_gc`:

    new objects that start it: the process's number -- first to enter --> YOUNG_MAX -- last to leave --> as before

It is not switched off: garbage of other threads waits for as many new objects as `YOUNG_MAX` at most. A process that
has switched it off, or runs it more seldom already, is left alone; so is one that sets a threshold meanwhile.

Process-wide, as the collector is; any thread, nested too. After a fork from another thread a child may keep YOUNG_MAX.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

#: Series or columns from which on a plan is wide: of fewer, there is little to look at.
WIDE_MIN = 1_000
#: New objects between two looks at the new ones: some 20 MB of them.
YOUNG_MAX = 200_000

_Thresholds = tuple[int, int, int]


class _GcControl:
    """Who wants the collector seldom, and what to go back to."""

    def __init__(self) -> None:
        #: A finaliser that runs in here may enter again.
        self._lock = threading.RLock()
        self._inside = 0
        #: What the process had; None while it is left alone.
        self._before: _Thresholds | None = None

    def enter(self) -> None:
        """One more."""
        with self._lock:
            self._inside += 1
            found = gc.get_threshold()
            if self._inside == 1 and 0 < found[0] < YOUNG_MAX:
                self._before = found
                gc.set_threshold(YOUNG_MAX, *found[1:])

    def leave(self) -> None:
        """One less."""
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
    """See the module; nothing happens for less than `WIDE_MIN` series."""
    return _UNCHANGED if width < WIDE_MIN else _reduced()


@contextmanager
def _reduced() -> Iterator[None]:
    _rarity.enter()
    try:
        yield
    finally:
        _rarity.leave()
