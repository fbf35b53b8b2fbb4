"""MERGE on all nodes: the coordinator polls each node until the node's merge has ended.

A node that is no longer polled stops its merge.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from manual_clock import LateClock
from waiting import wait_equal

from saros_cluster.multiraft.peers import BadRequest, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.routing.merges import Merges, Stopped, encode_request, merge_everywhere
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import DiskFull

SECOND_NS = 1_000_000_000


def test_every_node_is_asked_until_it_is_done() -> None:
    asked: list[tuple[int, bytes]] = []

    def ask(node: NodeId, request: bytes) -> bytes:
        asked.append((node, request))
        if node == 3:
            raise Unreachable(node, "down")
        return b"done" if asked.count((node, request)) == node else b""

    merge_everywhere(b"x", [NodeId(1), NodeId(2), NodeId(3)], ask, lambda: False)
    assert [(1, b"x"), (2, b"x"), (3, b"x"), (2, b"x")] == asked


def test_nobody_is_asked_after_the_end() -> None:
    merge_everywhere(b"x", [NodeId(1)], lambda _node, _request: pytest.fail("asked"), lambda: True)


def test_a_node_merges_once_however_often_it_is_asked() -> None:
    calls: list[tuple[Sequence[str] | None, bool]] = []
    go = threading.Event()

    def merge_here(databases: Sequence[str] | None, full: bool, _stopped: Stopped) -> None:
        calls.append((databases, full))
        assert go.wait(60)

    merges = Merges(merge_here, SystemClock())
    request = encode_request("a", ["root.a"], full=True)
    assert b"" == merges.answer(request)
    assert b"" == merges.answer(request)
    go.set()
    wait_equal(b"done", lambda: merges.answer(request))
    assert [(["root.a"], True)] == calls
    wait_equal(b"done", lambda: merges.answer(encode_request("b", None, full=False)))
    assert [(None, False)] == calls[1:]
    merges.close()


def test_what_went_wrong_reaches_whoever_asked() -> None:
    def merge_here(_databases: Sequence[str] | None, _full: bool, _stopped: Stopped) -> None:
        raise DiskFull("no room")

    merges = Merges(merge_here, SystemClock())
    with pytest.raises(DiskFull, match="no room"):
        wait_equal(b"done", lambda: merges.answer(encode_request("a", None, full=False)))
    with pytest.raises(BadRequest):
        merges.answer(b"[]")
    merges.close()


def test_a_merge_that_nobody_asks_for_is_given_up() -> None:
    clock = LateClock()
    ended = threading.Event()

    def merge_here(_databases: Sequence[str] | None, _full: bool, stopped: Stopped) -> None:
        while not stopped():
            ended.wait(0.01)
        ended.set()

    merges = Merges(merge_here, clock)
    assert b"" == merges.answer(encode_request("a", None, full=False))
    clock.later_ns = 20 * SECOND_NS
    assert ended.wait(60)
    merges.close()


def test_closing_gives_up_all() -> None:
    begun = threading.Event()

    def merge_here(_databases: Sequence[str] | None, _full: bool, stopped: Stopped) -> None:
        while not stopped():
            begun.wait(0.01)

    merges = Merges(merge_here, SystemClock())
    assert b"" == merges.answer(encode_request("a", None, full=False))
    merges.close()
