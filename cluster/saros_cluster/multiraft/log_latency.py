"""The latency of a node's log writes, and the verdict on whether the node's disk is slow.

    excess = duration - size / 20 MB/s              large batches may take longer
    limit  = 8 times the usual excess, at least 0.3 s, at most 1 s
    score  = smoothed excess / limit, where one write counts for at most 2

              score >= 1, or one write takes 2 s
    healthy ----------------------------------------------> slow
            <----------------------------------------------
              score <= 1/2, and 30 s without a slow write

So a log counts as slow after three long writes in a row, or after a single write that takes 2 s or never ends, but not
after one long write. A recovery takes longer to detect than a failure, so a disk that is slow from time to time always
counts as slow.

The usual excess is an average over those writes of a healthy log that stayed below the limit, so it never adapts to a
slow disk. If the disk is slow when the node starts, no usual excess is known yet. In this case, the lowest limit
applies.

Only writes measure the disk. While a log is or may be slow, `is_probe_due` therefore requests test writes. A healthy
log is not tested, so an idle node writes nothing.

If a second passes without a write or a check, this process was paused. A write that began before the pause says nothing
about the disk and is not counted.

Pure; one thread.
"""

from __future__ import annotations

import msgspec

_SECOND = 1_000_000_000
#: The lower and upper bounds of the limit. Users do not notice a latency below the lower bound. At a latency above the
#: upper bound, a healthy follower answers sooner than this disk on any network.
LIMIT_MIN_NS, LIMIT_MAX_NS = 3 * _SECOND // 10, _SECOND
#: The limit is this many times the usual excess. A disk that is merely busy, or shared with other work, stays below
#: this factor.
_RATIO = 8
#: A single write that takes longer than this makes the log slow: users notice this many seconds without a commit.
STUCK_NS = 2 * _SECOND
#: The weight of one write in the smoothed score, and the upper limit of a single write's score: three slow writes are
#: needed.
_SHARE, _WEIGHT_MAX = 1 / 4, 2.0
#: The weight of one write in the usual excess.
_USUAL_SHARE = 1 / 64
_SLOW_SCORE, _HEALTHY_SCORE = 1.0, 0.5
#: A healthy log is not tested while its score is lower than this.
_SUSPICIOUS_SCORE = 0.25
RECOVERY_NS = 30 * _SECOND
#: The interval between tests of a log that may be slow, and the interval between tests of a slow log.
_SUSPICION_PROBE_NS, _SLOW_PROBE_NS = _SECOND, 5 * _SECOND
#: Checks are made 20 times per second. If the time between two checks is longer than this, the process was paused.
_PAUSE_NS = _SECOND
#: The time per byte of a disk that writes 20 MB/s. A disk with less throughput is slow.
_NS_PER_BYTE = 50


class LogHealth(msgspec.Struct, frozen=True):
    """The verdict on the disk, and the smoothed and the usual duration of a write in nanoseconds."""

    slow: bool = False
    write_ns: int = 0
    usual_ns: int = 0

    @property
    def text(self) -> str:
        """Both durations as a text that messages to users contain."""
        return f"{self.write_ns / _SECOND:.3f} s, usually {self.usual_ns / _SECOND:.3f} s"


class LogLatency:
    """The durations of past writes, and the verdict that follows from them.

    All times come from the same monotonic clock.
    """

    def __init__(self) -> None:
        self._slow = False
        self._score = 0.0
        self._write_ns = 0.0
        self._usual_ns = 0.0
        #: The end of the last write, and the end of the last slow write.
        self._written_at_ns: int | None = None
        self._slow_at_ns = 0
        #: The last call of `record` or `check`, and the end of the last pause.
        self._seen_at_ns: int | None = None
        self._resumed_at_ns = 0

    @property
    def limit_ns(self) -> float:
        """The excess at which a write counts as slow."""
        return min(max(_RATIO * self._usual_ns, LIMIT_MIN_NS), LIMIT_MAX_NS)

    def record(self, now_ns: int, took_ns: int, size_bytes: int) -> None:
        """Record that a write of `size_bytes` became durable."""
        self._notice_pause(now_ns)
        if now_ns - took_ns < self._resumed_at_ns:
            return
        excess_ns = max(took_ns - size_bytes * _NS_PER_BYTE, 0)
        limit_ns = self.limit_ns
        self._write_ns += (took_ns - self._write_ns) * (_SHARE if self._written_at_ns is not None else 1)
        self._written_at_ns = now_ns
        self._score += (min(excess_ns / limit_ns, _WEIGHT_MAX) - self._score) * _SHARE
        if excess_ns >= STUCK_NS:
            self._score = max(self._score, _SLOW_SCORE)
        if excess_ns >= limit_ns:
            self._slow_at_ns = now_ns
        elif not self._slow:
            self._usual_ns += (excess_ns - self._usual_ns) * _USUAL_SHARE

    def check(self, now_ns: int, pending_ns: int = 0, size_bytes: int = 0) -> LogHealth:
        """Return the current verdict. `pending_ns` is how long a write of `size_bytes` has waited for the disk."""
        self._notice_pause(now_ns)
        pending_ns = max(min(pending_ns, now_ns - self._resumed_at_ns), 0)
        if pending_ns - size_bytes * _NS_PER_BYTE >= STUCK_NS:
            self._slow, self._slow_at_ns = True, now_ns
        elif self._score >= _SLOW_SCORE:
            self._slow = True
        elif self._score <= _HEALTHY_SCORE and now_ns - self._slow_at_ns >= RECOVERY_NS:
            self._slow = False
        return LogHealth(self._slow, int(max(self._write_ns, pending_ns)), int(self._usual_ns))

    def _notice_pause(self, now_ns: int) -> None:
        if self._seen_at_ns is None or now_ns - self._seen_at_ns > _PAUSE_NS:
            self._resumed_at_ns = now_ns
        self._seen_at_ns = max(self._seen_at_ns or now_ns, now_ns)

    def is_probe_due(self, now_ns: int) -> bool:
        """Return whether a write should test the log, given that no other write is in progress."""
        if self._written_at_ns is None or (not self._slow and self._score < _SUSPICIOUS_SCORE):
            return False
        return now_ns - self._written_at_ns >= (_SLOW_PROBE_NS if self._slow else _SUSPICION_PROBE_NS)
