"""Changes of a sender's replicas: the new replicas have the sender's round before the previous ones leave."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from random import Random

import pytest
from cluster.test_growth import Log, steps
from cluster.test_growth import cluster as topology_of
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.store_model import delete_series, write_rows
from storage.store_opening import FOLDER
from sync.cluster_world import Places
from sync.sync_world import SENDING, Edge, devices_of

from saros_cluster.meta.metadata_kv import Notes, PutNotes
from saros_cluster.multiraft.peers import Unreachable as NodeUnreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.topology.commands import Begin, GiveUp
from saros_cluster.topology.topology import NodeState
from saros_storage.base.errors import StorageError
from saros_sync.clustered import catalog as ledger
from saros_sync.clustered.replica_sets import all_replicas, has_quorum, replica_sets
from saros_sync.errors import BeginAgain, Unreachable
from saros_sync.receiver.catalog import SenderEntry
from saros_sync.receiver.mirror import FOLDER as SYNC

A, B, C = NodeId(1), NodeId(2), NodeId(3)


# ---------------------------------------------------------------------- the nodes that are to have a round


@given(st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(0, 1 << 30))
@settings(max_examples=40)
def test_who_keeps_a_sender_after_a_change_is_to_have_its_rounds_since_the_change_began(
    replicas: int, joining: int, leaving: int, seed: int
) -> None:
    random, log = Random(seed), Log(topology_of(4, replicas))
    senders = [f"{number:032x}" for number in range(8)]
    log.admit(*range(5, 5 + joining))
    before = {sender: replica_sets(log.now, sender) for sender in senders}
    assert all(1 == len(found) for found in before.values())
    leave = tuple(random.sample(log.now.in_state(NodeState.IN), leaving))
    log.send(Begin(tuple(log.now.in_state(NodeState.WAITING)), leave))
    seen = [log.now]
    while log.now.change is not None:
        log.send(random.choice(list(steps(log.now))))
        seen.append(log.now)
    for sender in senders:
        (last,) = replica_sets(log.now, sender)
        assert not set(last) & set(leave)
        for topology in seen:
            found = replica_sets(topology, sender)
            assert set(last) in map(set, found)
            assert has_quorum(found, all_replicas(found))
            assert not has_quorum(found, all_replicas(found) - set(last))


def test_who_is_lost_for_good_is_not_waited_for() -> None:
    log = Log(topology_of(3, 3))
    log.send(GiveUp((B,)))
    assert {(A, C)} == {tuple(sorted(half)) for half in replica_sets(log.now, "5" * 32)}


# ---------------------------------------------------------------------- the nodes that have a round


@pytest.fixture
def places() -> Iterator[Places]:
    """Yield three nodes, only the first of which keeps data."""
    made = Places(3, copies=1)
    yield made
    made.close()


def sent(places: Places) -> tuple[Edge, SenderEntry]:
    """Send rows of an edge to the third node, which is not a replica; return the edge and its entry in the catalog."""
    edge = Edge(places.line(C))
    edge.tell(write_rows("root.a.d1", range(100), 1))
    edge.sync()
    places.settle()
    return edge, places.catalog.senders[edge.id]


def test_who_said_that_it_has_a_round_has_it_when_the_change_ends(places: Places) -> None:
    _, entry = sent(places)
    places.change(entry.id, [B])
    asked = 0
    while not places.running[A].replica_store.is_at([B], entry):
        places.wait(0.1)
        asked += 1
    assert 0 < asked < 10
    for _ in range(5):
        places.wait(100.0)
    assert places.end_change(entry.id, A)
    places.stop(A)
    assert places.running[B].replica_store.mirror(entry.id, entry.document) is not None


def test_what_a_node_may_have_that_does_not_answer_is_not_lost(places: Places) -> None:
    edge, entry = sent(places)
    places.change(entry.id, [B])

    def silent(what: str) -> None:
        if what == "ask":
            raise NodeUnreachable(A, "no answer")

    places.meanwhile = silent
    for _ in range(3):
        places.wait(1.0)
        assert not places.end_change(entry.id, B)
        assert not places.running[B].replica_store.has_arrived()
    places.meanwhile = lambda _: None
    places.wait(1.0)
    assert places.end_change(entry.id, B)
    places.settle()
    places.check_nothing_left("at the end")
    assert [devices_of(edge.store)] * 3 == places.states()


def test_what_no_node_has_holds_up_no_change_and_comes_from_the_sender(places: Places) -> None:
    edge, entry = sent(places)
    data = f"{FOLDER}/{SYNC}/{entry.id}/data"
    place = places.running[A]
    places.stop(A)
    (file,) = [name for name in place.disk.list(data) if name.endswith(".tsfile")]
    place.disk.remove(f"{data}/{file}")
    places.start(A, place.disk)
    places.change(entry.id, [B])
    places.wait(1.0)
    assert places.running[B].replica_store.has_arrived()
    assert places.end_change(entry.id, C)
    edge.sync()
    places.settle()
    places.check_durable(entry.id)
    assert [devices_of(edge.store)] * 3 == places.states()


@pytest.mark.slow
def test_a_round_is_committed_when_those_have_it_who_are_to_keep_it_next(places: Places) -> None:
    edge, entry = sent(places)
    places.change(entry.id, [B])
    place = places.running[B]
    places.stop(B)
    edge.tell(write_rows("root.a.d1", [500], 1))
    with pytest.raises(Unreachable, match="1 of the nodes 1, 2, which store"):
        edge.sync()
    places.start(B, place.disk)
    edge.sync()
    places.check_durable(entry.id)
    assert places.end_change(entry.id, A)


def test_a_change_that_begins_while_a_round_is_committed_is_heard_of(places: Places) -> None:
    """The change begins when the previous replicas have the round, but before the note about the round is written."""
    edge, entry = sent(places)
    edge.tell(write_rows("root.a.d2", [1], 1))
    begun: list[bool] = []

    def begin(what: str) -> None:
        if what == "schema" and not begun:
            begun.append(True)
            places.change(entry.id, [B])
        if what == "put":
            places.check_durable(entry.id)

    places.meanwhile = begin
    edge.sync()
    assert begun
    assert 2 == places.catalog.senders[edge.id].number


# ---------------------------------------------------------------------- a sender that comes to another node


@pytest.mark.slow
def test_a_round_is_begun_again_at_once_at_the_node_that_the_sender_comes_to(places: Places) -> None:
    line = places.line(A)
    edge = Edge(line)
    edge.tell(write_rows("root.a.d1", range(1_000), 1))
    at: list[NodeId] = []

    def go_on(what: str) -> None:
        if what == "ask" and line.node != C:
            line.node = NodeId(line.node + 1)
            at.append(line.node)

    places.meanwhile = go_on
    sent = edge.sync()
    assert ([B, C], 1, ()) == (at, sent.number, sent.conflicts)
    assert [devices_of(edge.store)] * 3 == places.states()


def test_a_receiver_that_never_has_the_round_in_hand_is_not_asked_for_ever(places: Places) -> None:
    line = places.line(A)
    edge = Edge(line)
    edge.tell(write_rows("root.a.d1", [1], 1))
    asked: list[int] = []

    def chunk(sender: str, number: int, *_: object) -> int:
        asked.append(number)
        raise BeginAgain(f"round {number} is not in progress here")

    line.chunk = chunk  # type: ignore[method-assign]
    with pytest.raises(BeginAgain):
        edge.sync()
    assert [1] * (1 + SENDING.retries) == asked
    del line.chunk
    assert 1 == edge.sync().number


# ---------------------------------------------------------------------- changes given to the schema


def cut_short(places: Places) -> Edge:
    """Return an edge that has sent the drop of a device. The receiving node went down right after the commit."""
    edge = Edge(places.line(C))
    edge.tell(write_rows("root.a.d1", [1], 1), write_rows("root.a.d2", [1], 1))
    edge.sync()
    edge.tell(delete_series("root.a.d2.*"))

    def go_down(what: str) -> None:
        if what == "put":
            places.stop(C)
            raise StorageError("the node is gone, and so is the sender")

    places.meanwhile = go_down
    with pytest.raises(StorageError, match="the node is gone"):
        edge.sync()
    places.meanwhile = lambda _: None
    assert 2 == places.catalog.senders[edge.id].number
    return edge


def test_the_leader_gives_the_schema_what_a_commit_that_was_cut_short_has_not(places: Places) -> None:
    cut_short(places)
    places.wait(1.0)
    places.finish()
    places.wait(4.0)
    places.finish()
    assert places.schema.device("root.a.d2") is not None  # another node may not yet have dropped it
    places.wait(2.0)
    places.finish()
    assert places.schema.device("root.a.d2") is None
    assert places.schema.device("root.a.d1") is not None


def test_what_cannot_be_given_to_the_schema_now_is_given_later(places: Places) -> None:
    cut_short(places)
    disk = places.running[A].disk
    places.stop(A)  # only this node has the round
    for _ in range(3):
        places.wait(6.0)
        places.finish()
    assert places.schema.device("root.a.d2") is not None
    places.start(A, disk)
    for _ in range(2):
        places.wait(6.0)
        places.finish()
    assert places.schema.device("root.a.d2") is None


# ---------------------------------------------------------------------- the notes on senders


def test_two_threads_that_read_the_notes_both_read_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow thread with older notes must not overwrite the newer notes that another thread has read."""
    places = Places(1)
    edge = Edge(places.line())
    edge.tell(write_rows("root.a.d1", [1], 1))
    edge.sync()
    first = places.notes
    edge.tell(write_rows("root.a.d1", [2], 1))
    edge.sync()
    now = [first]
    book = ledger.ClusterCatalog(lambda: now[0])
    assert 1 == book.now.catalog.senders[edge.id].number
    slow, go_on = threading.Event(), threading.Event()
    decode: Callable[[str, str], SenderEntry] = ledger.decode_entry

    def decode_slowly(sender: str, text: str) -> SenderEntry:
        if threading.current_thread() is reader:
            slow.set()
            assert go_on.wait(60)
        return decode(sender, text)

    monkeypatch.setattr(ledger, "decode_entry", decode_slowly)
    now[0] = places.notes
    reader = threading.Thread(target=lambda: book.now)
    reader.start()
    assert slow.wait(60)
    now[0] = Notes.put(places.notes, PutNotes(places.notes.version, {"else": "x"}), places.notes.version + 1)
    assert 2 == book.now.catalog.senders[edge.id].number
    go_on.set()
    reader.join()
    assert 2 == book.now.catalog.senders[edge.id].number
    assert now[0].version == book.now.version
    edge.store.close()
    places.close()
