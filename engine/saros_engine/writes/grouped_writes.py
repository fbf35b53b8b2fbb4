"""Group concurrent writes of several threads, to pass them to the database in one call.

    no group in progress            a write starts at once: a single writer never waits for others
    a group in progress             a write waits; when the group ends, the first waiting write leads the next group
    ... for over HOLD_SECONDS       a waiting write starts without waiting for the group, which may be stuck

The leader passes all writes of its group to the database in one call and waits for them; the other threads sleep. A
write therefore costs one thread switch instead of one for every lock and fsync. Each write has its own outcome.
Thread-safe.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence

from saros_engine.base.database import PendingWrite
from saros_storage.base.clock import Clock
from saros_storage.base.tablet import Tablet
from saros_storage.base.write_request import WriteRequest

#: The longest time that writes outside of a group wait for the group to end.
HOLD_SECONDS = 0.05
#: If the outcome of a write is unknown after this time, the write is repeated alone, which settles the outcome.
PENDING_SECONDS = 2.0

Submit = Callable[[Sequence[tuple[Tablet, WriteRequest]]], Sequence[PendingWrite | None]]


class _Member:
    """A write that waits for a group, or belongs to one."""

    __slots__ = ("after", "is_over", "is_written", "pending", "request", "tablet", "wake")

    def __init__(self, tablet: Tablet, request: WriteRequest) -> None:
        self.tablet = tablet
        self.request = request
        self.pending: PendingWrite | None = None
        #: None while the outcome is not known.
        self.is_written: bool | None = None
        #: True after the member's group has ended.
        self.is_over = False
        #: The member whose thread this member's thread wakes when the group has ended. If all threads were woken at
        #: once, they would contend for the interpreter's lock.
        self.after: _Member | None = None
        #: The thread sleeps by acquiring this lock; releasing it wakes the thread.
        self.wake = threading.Lock()
        self.wake.acquire()


class GroupedWrites:
    """Groups the concurrent writes to one database."""

    def __init__(self, submit: Submit, clock: Clock) -> None:
        """`submit`: see `Database.submit_writes`."""
        self._submit = submit
        self._clock = clock
        #: Guards the next three fields.
        self._lock = threading.Lock()
        self._waiting: list[_Member] = []
        #: The write whose thread leads a group, or was woken to lead the next group; None if there is no such write.
        #: `_led_since_ns` is the time at which this thread became the leader.
        self._leader: _Member | None = None
        self._led_since_ns = 0

    def write(self, tablet: Tablet, request: WriteRequest) -> bool | None:
        """Write a tablet of existing series; return True if it is written.

        Otherwise, the caller must use `Database.write`. False means that the tablet was not written, None that the
        write was started and its outcome is not known.
        """
        own = _Member(tablet, request)
        with self._lock:
            self._waiting.append(own)
            group = self._take_group(own)
        group = group or self._sleep(own)
        if group:
            self._lead(own, group)
        elif own.after is not None:
            with self._lock:
                _wake(own.after)
        if own.is_written is None and own.pending is not None:
            return own.pending.wait(self._patience_s(request))
        return bool(own.is_written)

    def _take_group(self, own: _Member) -> Sequence[_Member]:
        """Take all waiting writes, to lead them as a group. Call with the lock held.

        The result is empty if another thread has led a group for less than HOLD_SECONDS, or has taken the write.
        """
        now_ns = self._clock.monotonic_ns()
        is_led = self._leader not in (None, own) and now_ns - self._led_since_ns < HOLD_SECONDS * 1e9
        if is_led or own not in self._waiting:
            return ()
        self._leader, self._led_since_ns = own, now_ns
        group, self._waiting = self._waiting, []
        return group

    def _sleep(self, own: _Member) -> Sequence[_Member]:
        """Sleep until the write's group has ended, or return the group that the write must lead."""
        while not own.is_over:
            own.wake.acquire(timeout=HOLD_SECONDS)
            with self._lock:
                if group := self._take_group(own):
                    return group
        return ()

    def _lead(self, own: _Member, group: Sequence[_Member]) -> None:
        """Write a group, and wake its first member and the next leader; each member wakes the member after it."""
        try:
            self._write(group)
        finally:
            sleeping = [member for member in group if member is not own]
            for member, after in itertools.pairwise(sleeping):
                member.after = after
            with self._lock:
                following: Sequence[_Member] = ()
                if self._leader is own:
                    following = self._waiting[:1]
                    self._leader, self._led_since_ns = next(iter(following), None), self._clock.monotonic_ns()
                for member in sleeping:
                    member.is_over = True
                for member in (*following, *sleeping[:1]):
                    _wake(member)

    def _write(self, group: Sequence[_Member]) -> None:
        """Start all writes of a group, and wait up to HOLD_SECONDS for their outcomes."""
        pending = self._submit([(member.tablet, member.request) for member in group])
        until_ns = self._clock.monotonic_ns() + round(HOLD_SECONDS * 1e9)
        for member, write in zip(group, pending, strict=True):
            member.pending = write
            if write is not None:
                member.is_written = write.wait(max(until_ns - self._clock.monotonic_ns(), 0) / 1e9)

    def _patience_s(self, request: WriteRequest) -> float:
        """Return how many seconds a write whose group has ended should wait for its outcome."""
        if request.deadline_ns is None:
            return PENDING_SECONDS
        return min(PENDING_SECONDS, max(request.deadline_ns - self._clock.monotonic_ns(), 0) / 1e9)


def _wake(member: _Member) -> None:
    """Wake the thread of a member. Call with the lock held."""
    if member.wake.locked():
        member.wake.release()
