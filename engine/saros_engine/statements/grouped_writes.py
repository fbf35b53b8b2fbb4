"""Writes of several threads that go together: those that come while others are under way wait, and are one group.

    nothing under way       goes at once                       a single writer never waits for others
    a group under way       waits; when the group is over, the first that waits leads all of them
    ... for HOLD_SECONDS    goes without the group: one of its writes may have met with trouble

The leader hands all writes of its group to the database in one call, and waits for them; the others sleep. So a write
costs one switch of threads instead of one for each lock and each fsync on its way. Each write has its own outcome.
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

#: The longest time that a group keeps other writes waiting.
HOLD_SECONDS = 0.05
#: A write that has no outcome after this is written by itself, which finds out what became of it.
PENDING_SECONDS = 2.0

Submit = Callable[[Sequence[tuple[Tablet, WriteRequest]]], Sequence[PendingWrite | None]]


class _Member:
    """A write that waits for its turn, or belongs to a group."""

    __slots__ = ("after", "is_over", "is_written", "pending", "request", "tablet", "wake")

    def __init__(self, tablet: Tablet, request: WriteRequest) -> None:
        self.tablet = tablet
        self.request = request
        self.pending: PendingWrite | None = None
        #: None: that is not known yet.
        self.is_written: bool | None = None
        #: Its group is over.
        self.is_over = False
        #: The one that it wakes then: all at once would contend for the interpreter.
        self.after: _Member | None = None
        #: Held while the thread has nothing to do.
        self.wake = threading.Lock()
        self.wake.acquire()


class GroupedWrites:
    """See the module."""

    def __init__(self, submit: Submit, clock: Clock) -> None:
        """`submit`: see `Database.submit_writes`."""
        self._submit = submit
        self._clock = clock
        #: Guards the next three.
        self._lock = threading.Lock()
        self._waiting: list[_Member] = []
        #: The write whose thread leads a group, or was woken to, and since when; None: nothing is under way.
        self._leader: _Member | None = None
        self._led_since_ns = 0

    def write(self, tablet: Tablet, request: WriteRequest) -> bool | None:
        """Write a tablet of series that exist; return whether it is written. Otherwise `Database.write` has to do it.

        None: it was begun, and may be written all the same.
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
        """Take all that waits, to lead it, unless another thread leads, and does not take long; under the lock."""
        now_ns = self._clock.monotonic_ns()
        is_led = self._leader not in (None, own) and now_ns - self._led_since_ns < HOLD_SECONDS * 1e9
        if is_led or own not in self._waiting:
            return ()
        self._leader, self._led_since_ns = own, now_ns
        group, self._waiting = self._waiting, []
        return group

    def _sleep(self, own: _Member) -> Sequence[_Member]:
        """Sleep until the write's group is over, or return the group that it is to lead."""
        while not own.is_over:
            own.wake.acquire(timeout=HOLD_SECONDS)
            with self._lock:
                if group := self._take_group(own):
                    return group
        return ()

    def _lead(self, own: _Member, group: Sequence[_Member]) -> None:
        """Write a group, wake its members one after the other, and hand the lead over."""
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
        """Begin all writes, and wait for their outcomes as long as others may be kept waiting."""
        pending = self._submit([(member.tablet, member.request) for member in group])
        until_ns = self._clock.monotonic_ns() + round(HOLD_SECONDS * 1e9)
        for member, write in zip(group, pending, strict=True):
            member.pending = write
            if write is not None:
                member.is_written = write.wait(max(until_ns - self._clock.monotonic_ns(), 0) / 1e9)

    def _patience_s(self, request: WriteRequest) -> float:
        """Return the seconds to wait for a write that has taken long."""
        if request.deadline_ns is None:
            return PENDING_SECONDS
        return min(PENDING_SECONDS, max(request.deadline_ns - self._clock.monotonic_ns(), 0) / 1e9)


def _wake(member: _Member) -> None:
    """Let the thread of a member go on; under the lock."""
    if member.wake.locked():
        member.wake.release()
