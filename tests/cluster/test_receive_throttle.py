"""Files from other nodes: their bytes are counted, and no file is received faster than allowed."""

from __future__ import annotations

import time

import pytest

from saros_cluster.data.snapshots import DONE, LIST, PULL
from saros_cluster.node.receive_throttle import ReceiveCounters, ReceiveThrottle
from saros_cluster.placement.ring import NodeId
from saros_storage.checkpoint.checkpoint import Checkpoint, CheckpointPartition, encode_capture
from saros_storage.folder.manifest import FileEntry, Manifest
from saros_storage.scan.snapshot import Rank

SECOND = 1_000_000_000


class FakeTime:
    """A clock, and a sleep that advances the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ns = 5 * SECOND
        monkeypatch.setattr(time, "sleep", self.sleep)

    def now_ns(self) -> int:
        return self.ns

    def monotonic_ns(self) -> int:
        return self.ns

    def sleep(self, seconds: float) -> None:
        self.ns += int(seconds * SECOND)


def other(node: NodeId, name: str, request: bytes) -> bytes:
    """Answer like a node that has one file of 3,000 bytes, and 200 bytes of statistics about that file."""
    if name == PULL:
        return bytes(1_000)
    entry = FileEntry("17-1-0-0.tsfile", True, Rank(0, 1), 3_000, 1, 2)
    partition = CheckpointPartition(0, Manifest("root.a", 1).with_files((entry,), 1), (200,))
    return encode_capture(Checkpoint(1, 1, 1, b"", (partition,))) if name == LIST else b""


def test_what_comes_is_counted_and_paced(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeTime(monkeypatch)
    inflow = ReceiveThrottle(500, clock)
    inflow.begin(7)
    ask = inflow.paced(other)
    began_ns = clock.ns
    ask(NodeId(2), LIST, b"")
    for _ in range(4):
        assert 1_000 == len(ask(NodeId(2), PULL, b""))
    ask(NodeId(2), DONE, b"")
    assert 6 * SECOND == clock.ns - began_ns  # each of the last three pieces waits 2 s because of the piece before it
    assert ReceiveCounters(7, 3_200, 4_000, 6.0) == inflow.received()
    inflow.begin(7)
    assert 4_000 == inflow.received().bytes
    inflow.begin(9)
    assert ReceiveCounters(9) == inflow.received()


def test_without_a_limit_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeTime(monkeypatch)
    ask = ReceiveThrottle(0, clock).paced(other)
    for _ in range(100):
        ask(NodeId(2), PULL, b"")
    assert 5 * SECOND == clock.ns
