"""How long the log of this node takes to make writes durable, and the verdict whether its disk is slow.

    excess = duration - size / 20 MB/s              large batches may take longer
    limit  = 8 times the usual excess, at least 0.3 s, at most 1 s
    score  = smoothed excess / limit, where one write counts for at most 2

              score >= 1, or one write takes 2 s
    healthy ----------------------------------------------> slow
            <----------------------------------------------
              score <= 1/2, and 30 s without a slow write

So one long write does not make a log slow, three in a row do, and so does a write that does not end. The way back is
longer than the way there: a disk that is slow now and then is slow all the time.

The usual excess is an average over the writes of a healthy log that stayed below the limit, so it never becomes that of
a slow disk. A node that starts with a slow disk knows no usual excess; the least limit applies to it.

Nothing is learned of a disk to which nothing is written. While a log is slow, or may be, `is_probe_due` therefore asks
for a write that only tests it. A healthy log is not tested: an idle node writes nothing.

If neither a write nor a check comes for a second, this process was paused: a write from before says nothing about the
disk, and is not counted.

Pure; one thread.
"""

from __future__ import annotations

from dataclasses import dataclass

_SECOND = 1_000_000_000
#: Below the first, nobody minds. Above the second, followers that are healthy answer sooner on any network.
LIMIT_MIN_NS, LIMIT_MAX_NS = 3 * _SECOND // 10, _SECOND
#: Times the usual excess: more than a busy disk, or other work on the same one, brings about.
_RATIO = 8
#: A write that takes longer is slow by itself: this many seconds without a commit are noticed.
STUCK_NS = 2 * _SECOND
#: The share of one write in the score, and what it counts for at most: three slow ones are needed.
_SHARE, _WEIGHT_MAX = 1 / 4, 2.0
#: The share of one write in the usual excess.
_USUAL_SHARE = 1 / 64
_SLOW_SCORE, _HEALTHY_SCORE = 1.0, 0.5
#: A lower score is no reason to test a healthy log.
_SUSPICIOUS_SCORE = 0.25
RECOVERY_NS = 30 * _SECOND
#: Between two tests: of a log that may be slow, and of one that is.
_SUSPICION_PROBE_NS, _SLOW_PROBE_NS = _SECOND, 5 * _SECOND
#: Checks come 20 times a second; after a longer gap, the process was paused.
_PAUSE_NS = _SECOND
#: A disk that writes 20 MB/s needs this for a byte; slower ones are slow.
_NS_PER_BYTE = 50


@dataclass(frozen=True, slots=True)
class LogHealth:
    """The verdict, and the durations of writes in nanoseconds: smoothed, and usually."""

    slow: bool = False
    write_ns: int = 0
    usual_ns: int = 0

    @property
    def text(self) -> str:
        """Both durations, for people."""
        return f"{self.write_ns / _SECOND:.3f} s, usually {self.usual_ns / _SECOND:.3f} s"


class LogLatency:
    """See the module. Times are of one monotonic clock."""

    def __init__(self) -> None:
        self._slow = False
        self._score = 0.0
        self._write_ns = 0.0
        self._usual_ns = 0.0
        #: Ends of the last write, and of the last slow one.
        self._written_at_ns: int | None = None
        self._slow_at_ns = 0
        #: The last note or check, and the end of the last pause.
        self._seen_at_ns: int | None = None
        self._resumed_at_ns = 0

    @property
    def limit_ns(self) -> float:
        """A write with this excess is slow."""
        return min(max(_RATIO * self._usual_ns, LIMIT_MIN_NS), LIMIT_MAX_NS)

    def record(self, now_ns: int, took_ns: int, size_bytes: int) -> None:
        """Note that a write of some bytes became durable."""
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
        """Return the verdict as of now; `pending_ns`: for how long a write of some bytes has waited for the disk."""
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
        """Return whether the log should be tested by a write, if no other one is on its way."""
        if self._written_at_ns is None or (not self._slow and self._score < _SUSPICIOUS_SCORE):
            return False
        return now_ns - self._written_at_ns >= (_SLOW_PROBE_NS if self._slow else _SUSPICION_PROBE_NS)
