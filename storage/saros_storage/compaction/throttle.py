"""The pace of a job: a limit of bytes per second, and at most a quarter of a thread's time.

    work |###|         |###|         |##|            after each slice a pause: three times as long as the slice, or
    rest     |.........|   |.........|  |..........  until its bytes are within the rate, if that takes longer

During the pauses, writers and queries get the interpreter lock. A rate of 0 means no limit and no pauses. Pure; belongs
to one thread.
"""

from __future__ import annotations

_SECOND_NS = 1_000_000_000
#: Work between two pauses: less than the interpreter's switch interval, after which a waiting thread gets its turn.
_SLICE_NS = 4_000_000
#: Length of a pause as a multiple of the work before the pause. With this value, a concurrent writer keeps more than 70
#: % of its rate.
_REST = 3


class Throttle:
    """The accounting of work and pauses of a job."""

    def __init__(self, bytes_per_second: int) -> None:
        self._rate = bytes_per_second
        #: Time at which the last pause ended.
        self._resumed_ns: int | None = None
        #: Bytes of the current slice.
        self._bytes = 0

    def set_rate(self, bytes_per_second: int) -> None:
        """Change the limit; 0 means no limit, and no pauses. Any thread may call this."""
        self._rate = bytes_per_second

    def resume(self, now_ns: int) -> None:
        """Begin a slice of work, at the start or after a pause."""
        self._resumed_ns = now_ns
        self._bytes = 0

    def pause_ns(self, size: int, now_ns: int) -> int:
        """Count `size` more bytes; return how long the job must pause before it calls `resume` (0: no pause)."""
        assert self._resumed_ns is not None
        rate = self._rate  # another thread may change it
        if rate == 0:
            return 0
        self._bytes += size
        worked_ns = max(0, now_ns - self._resumed_ns)
        due_ns = self._bytes * _SECOND_NS // rate
        if max(worked_ns, due_ns) < _SLICE_NS:
            return 0
        return max(_REST * worked_ns, due_ns - worked_ns)
