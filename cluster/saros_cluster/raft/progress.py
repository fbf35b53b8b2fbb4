"""What a leader knows about one follower, and what it may send to it next.

              rejected                          compacted
    PROBE <----------------- REPLICATE    PROBE ----------> SNAPSHOT
      |  ---- accepted ------->   ^         ^   <- installed -  |
      '--- one message a beat     '-- many, up to a window      '-- nothing but the offer, repeated

    match < next;   1..match is known to be the same and durable there;   next is the first entry to send

The window is counted in bytes and in messages; a response frees all messages up to its index, so a lost response costs
nothing. A lost message is detected by the rejection of the next one or, if it was the last, by the probe that follows a
heartbeat response.

Pure; one thread.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from saros_cluster.raft.messages import Snapshot

#: Bytes, and messages, sent to a follower and not answered: more would only wait in its queue.
IN_FLIGHT_BYTES_MAX = 8 << 20
IN_FLIGHT_MESSAGES_MAX = 64


class Mode(Enum):
    """See the module."""

    PROBE = "probe"
    REPLICATE = "replicate"
    SNAPSHOT = "snapshot"


class Progress:
    """One follower's. `accepted`, `rejected` and the like are the only ways to change it."""

    def __init__(self, next_index: int, *, active: bool = False, heard: int = 0) -> None:
        #: Known to be durable there. Invariant: match < next.
        self.match = 0
        self.next = next_index
        self.mode = Mode.PROBE
        #: Heard from since the last check of the quorum.
        self.active = active
        #: The leader's tick at which it was heard last.
        self.heard = heard
        #: A probe is on its way; the answer, or the next heartbeat's, lets another one go.
        self.probing = False
        #: Send an append even if there is nothing new: something may have been lost.
        self.ask = False
        #: The highest commit it was told.
        self.commit_sent = 0
        #: The runner makes a snapshot for it.
        self.is_snapshot_asked = False
        #: The snapshot that is offered.
        self.offered: Snapshot | None = None
        #: Ticks until it is offered again, or another one is asked for.
        self.offer_ticks = 0
        #: What matched when it answered a heartbeat last.
        self._answered_match = 0
        self._in_flight: deque[tuple[int, int]] = deque()
        self._in_flight_bytes = 0

    def may_send(self, last_index: int, news: int) -> bool:
        """Whether an append is due, and allowed; `news` is a commit that it must know even if there are no entries."""
        if self.mode is Mode.SNAPSHOT:
            return False
        if self.mode is Mode.PROBE:
            return not self.probing
        if self.ask or (self.commit_sent < news and self.next > last_index):
            return True
        return self.next <= last_index and not self._is_full()

    def room_bytes(self) -> int:
        """How many bytes of entries may go now; one entry may always be larger."""
        return 0 if self._is_full() else IN_FLIGHT_BYTES_MAX - self._in_flight_bytes

    def sent_entries(self, last_index: int, size_bytes: int, commit: int) -> None:
        """Note that an append with entries up to `last_index` (or none: next - 1) was sent."""
        self.ask = False
        self.commit_sent = max(self.commit_sent, min(commit, last_index))
        if self.mode is Mode.PROBE:
            self.probing = True
        elif last_index >= self.next:
            self.next = last_index + 1
            self._in_flight.append((last_index, size_bytes))
            self._in_flight_bytes += size_bytes

    def sent_commit(self, commit: int) -> None:
        """Note that a heartbeat carried this commit index."""
        self.commit_sent = max(self.commit_sent, commit)

    def accepted(self, index: int, base_index: int) -> None:
        """It has everything up to there; the log begins behind `base_index`."""
        self.match = max(self.match, index)
        self.next = max(self.next, index + 1)
        while self._in_flight and self._in_flight[0][0] <= index:
            self._in_flight_bytes -= self._in_flight.popleft()[1]
        if self.mode is Mode.PROBE or (self.mode is Mode.SNAPSHOT and self.match >= base_index):
            self._become(Mode.REPLICATE, self.match + 1)
        elif self.offered is not None and self.match >= self.offered.position.index:
            self.snapshot_failed(0)  # it has that one, and the log has moved on since

    def rejected(self, index: int, next_index: int, *, is_learner: bool = False) -> bool:
        """An append behind `index` did not match; begin at `next_index` instead. False if that is an old story.

        A learner may have left the group and joined anew, without what it had. An answer of then that comes late looks
        as if it had it still; so what it rejects, it does not have. A voter loses nothing.
        """
        if self.mode is Mode.SNAPSHOT:
            return False
        if is_learner and 0 < index <= self.match:
            self.match = 0
        elif index <= self.match or (self.mode is Mode.PROBE and index != self.next - 1):
            return False
        self._become(Mode.PROBE, max(min(next_index, index), self.match + 1))
        return True

    def heartbeat_answered(self, last_index: int) -> None:
        """It is there; if it lacks something and got nowhere since its last answer, what was sent may be lost."""
        self.probing = False
        self.ask = self._answered_match == self.match < last_index
        self._answered_match = self.match

    def needs_snapshot(self) -> None:
        """What it lacks is compacted."""
        self._become(Mode.SNAPSHOT, self.next)
        self.offer_ticks = 0

    @property
    def is_offer_due(self) -> bool:
        """Whether it is to be told of its snapshot, or one is to be made."""
        return self.mode is Mode.SNAPSHOT and self.offer_ticks == 0 and not self.is_snapshot_asked

    def offer(self, snapshot: Snapshot) -> None:
        """There is one for it; it is to be told at once."""
        self.is_snapshot_asked = False
        if self.mode is Mode.SNAPSHOT and snapshot.position.index > self.match:
            self.offered, self.offer_ticks = snapshot, 0

    def snapshot_failed(self, ticks: int) -> None:
        """There is none, or that one does not help: another one is needed, after some ticks."""
        self.is_snapshot_asked = False
        self.offered, self.offer_ticks = None, ticks

    def _become(self, mode: Mode, next_index: int) -> None:
        self.mode, self.next = mode, next_index
        self.probing = self.ask = False
        self.offered = None
        self._in_flight.clear()
        self._in_flight_bytes = 0

    def _is_full(self) -> bool:
        return self._in_flight_bytes >= IN_FLIGHT_BYTES_MAX or len(self._in_flight) >= IN_FLIGHT_MESSAGES_MAX

    def validate(self) -> None:
        """Assert the module's invariants."""
        assert 0 <= self.match < self.next
        assert self._in_flight_bytes == sum(size for _, size in self._in_flight)
        assert len(self._in_flight) <= IN_FLIGHT_MESSAGES_MAX
        assert self.mode is Mode.REPLICATE or not self._in_flight
