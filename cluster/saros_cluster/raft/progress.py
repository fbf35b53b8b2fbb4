"""A leader's knowledge of one follower, and the choice of the entries or the snapshot to send next.

              rejected                          compacted
    PROBE <----------------- REPLICATE    PROBE ----------> SNAPSHOT
      |  ---- accepted ------->   ^         ^   <- installed -  |
      '--- one message a beat     '-- many, up to a window      '-- nothing but the offer, repeated

    match < next;   entries 1..match are durable at the follower;   next is the first entry to send

The window limits bytes and messages. A response frees all messages up to the index that it confirms, so a lost response
costs nothing. A lost message is detected when the follower rejects the next one or, if the lost message was the last,
by the probe that follows a heartbeat response.

Pure; one thread.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from saros_cluster.raft.messages import Snapshot

#: The bytes and messages that may be in flight to a follower, that is, sent but not answered: more would only wait in
#: its queue.
IN_FLIGHT_BYTES_MAX = 8 << 20
IN_FLIGHT_MESSAGES_MAX = 64


class Mode(Enum):
    """The state of replication to a follower. The drawing in the module's docstring shows the transitions."""

    PROBE = "probe"
    REPLICATE = "replicate"
    SNAPSHOT = "snapshot"


class Progress:
    """The progress of one follower. Only methods such as `accepted` and `rejected` change it."""

    def __init__(self, next_index: int, *, active: bool = False, heard: int = 0) -> None:
        #: The last index that is known to be durable at the follower. Invariant: match < next.
        self.match = 0
        self.next = next_index
        self.mode = Mode.PROBE
        #: True if the follower has sent a message since the last check of the quorum.
        self.active = active
        #: The leader's tick at which the last message from the follower arrived.
        self.heard = heard
        #: True if a probe was sent. The answer to the probe, or to the next heartbeat, allows another probe.
        self.probing = False
        #: True if an append must be sent even without new entries, since an earlier message may have been lost.
        self.ask = False
        #: The highest commit index that was sent to the follower.
        self.commit_sent = 0
        #: True while the runner makes a snapshot for the follower.
        self.is_snapshot_asked = False
        #: The snapshot that the follower is told to fetch.
        self.offered: Snapshot | None = None
        #: Ticks until the offer is repeated, or another snapshot is requested.
        self.offer_ticks = 0
        #: The value of `match` at the follower's last answer to a heartbeat.
        self._answered_match = 0
        self._in_flight: deque[tuple[int, int]] = deque()
        self._in_flight_bytes = 0

    def may_send(self, last_index: int, news: int) -> bool:
        """Return whether an append is due and allowed. `news` is a commit index to announce even without entries."""
        if self.mode is Mode.SNAPSHOT:
            return False
        if self.mode is Mode.PROBE:
            return not self.probing
        if self.ask or (self.commit_sent < news and self.next > last_index):
            return True
        return self.next <= last_index and not self._is_full()

    def room_bytes(self) -> int:
        """Return how many bytes of entries may be sent now. A single entry may be larger."""
        return 0 if self._is_full() else IN_FLIGHT_BYTES_MAX - self._in_flight_bytes

    def sent_entries(self, last_index: int, size_bytes: int, commit: int) -> None:
        """Record that an append was sent, with entries up to `last_index`, or without entries if that is `next` - 1."""
        self.ask = False
        self.commit_sent = max(self.commit_sent, min(commit, last_index))
        if self.mode is Mode.PROBE:
            self.probing = True
        elif last_index >= self.next:
            self.next = last_index + 1
            self._in_flight.append((last_index, size_bytes))
            self._in_flight_bytes += size_bytes

    def sent_commit(self, commit: int) -> None:
        """Record that a heartbeat carried this commit index."""
        self.commit_sent = max(self.commit_sent, commit)

    def accepted(self, index: int, base_index: int) -> None:
        """Record that the follower has everything up to `index`. The leader's log begins after `base_index`."""
        self.match = max(self.match, index)
        self.next = max(self.next, index + 1)
        while self._in_flight and self._in_flight[0][0] <= index:
            self._in_flight_bytes -= self._in_flight.popleft()[1]
        if self.mode is Mode.PROBE or (self.mode is Mode.SNAPSHOT and self.match >= base_index):
            self._become(Mode.REPLICATE, self.match + 1)
        elif self.offered is not None and self.match >= self.offered.position.index:
            self.snapshot_failed(0)  # the snapshot is installed, but the log was compacted further

    def rejected(self, index: int, next_index: int, *, is_learner: bool = False) -> bool:
        """Record that an append after `index` did not match, and go back to `next_index`.

        Return False if the rejection is outdated. A learner may have left the group and joined again with an empty log.
        If an answer that it sent before it left arrives late, `match` becomes too high. So an entry that a learner
        rejects counts as missing even if it is not after `match`. A voter never loses entries.
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
        """Record a heartbeat's answer. Probe if entries are missing and `match` has not grown since the last answer."""
        self.probing = False
        self.ask = self._answered_match == self.match < last_index
        self._answered_match = self.match

    def needs_snapshot(self) -> None:
        """Stop sending entries, since the log no longer has the entries that the follower lacks."""
        self._become(Mode.SNAPSHOT, self.next)
        self.offer_ticks = 0

    @property
    def is_offer_due(self) -> bool:
        """True if a snapshot must be offered to the follower (again), or must be made."""
        return self.mode is Mode.SNAPSHOT and self.offer_ticks == 0 and not self.is_snapshot_asked

    def offer(self, snapshot: Snapshot) -> None:
        """Offer the follower at once a snapshot that was made for it."""
        self.is_snapshot_asked = False
        if self.mode is Mode.SNAPSHOT and snapshot.position.index > self.match:
            self.offered, self.offer_ticks = snapshot, 0

    def snapshot_failed(self, ticks: int) -> None:
        """Record that no snapshot was made, or that the offered snapshot does not help the follower.

        Request another after `ticks`.
        """
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
