"""Replicas fetch a round's files before all of the round has arrived, and check them like all other files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator

import pytest
from storage.crash_disk import CrashDisk
from storage.store_model import write_rows
from storage.store_opening import FOLDER
from sync.cluster_world import Line, Places
from sync.sync_world import Edge, devices_of

from saros_cluster.multiraft.peers import BadRequest
from saros_cluster.placement.ring import NodeId
from saros_sync.clustered.content_store import Contents
from saros_sync.clustered.replica_store import READ, READ_PART
from saros_sync.errors import RoundRefused
from saros_sync.receiver.catalog import SenderEntry
from saros_sync.transport import Answer, BeginReply

TAKES, KEEPS = NodeId(1), NodeId(2)


class Telling(Line):
    """A link that calls functions after each chunk and before the commit."""

    def __init__(self, places: Places) -> None:
        super().__init__(places, TAKES)
        self.after_chunk: Callable[[str, int], None] = lambda _, __: None
        self.before_commit: Callable[[], object] = lambda: None

    def chunk(self, sender: str, number: int, sha256: str, offset: int, crc32: int, data: memoryview) -> Answer:
        answer = super().chunk(sender, number, sha256, offset, crc32, data)
        self.after_chunk(sender, number)
        return answer

    def commit(self, sender: str, number: int) -> BeginReply:
        self.before_commit()
        return super().commit(sender, number)


def edge_with_files(line: Line) -> Edge:
    """Return an edge with two files in two partitions."""
    edge = Edge(line)
    edge.tell(write_rows("root.a.d1", range(30), 1), write_rows("root.b.c.d1", range(30), 1))
    edge.store.flush()
    return edge


def kept(places: Places, node: NodeId, sender: str) -> int:
    """Return the number of a sender's files that a node keeps."""
    disk = places.running[node].disk
    return sum(name.endswith(".tsfile") for name in disk.list(Contents(FOLDER, disk).folder(sender).data))


@pytest.mark.slow
def test_a_keeper_has_all_files_before_it_is_asked_for_the_round() -> None:
    places = Places()
    line = Telling(places)
    edge = edge_with_files(line)
    found: list[int] = []
    line.before_commit = lambda: found.extend(kept(places, node, edge.id) for node in (KEEPS, NodeId(3)))
    edge.sending.run_round()
    assert [2, 2] == found
    assert [devices_of(edge.store)] * 3 == places.states()
    places.settle()
    places.check_nothing_left("after the round")


def test_what_has_not_arrived_yet_is_not_lost() -> None:
    places = Places()
    line = Telling(places)
    edge = edge_with_files(line)
    replica_store = places.running[TAKES].replica_store
    asked: list[bool] = []

    def ask(sender: str, number: int) -> None:
        if not asked and kept(places, KEEPS, sender) == 1:
            document = places.running[TAKES].receiver._incoming[sender].document
            asked.append(replica_store.is_at([KEEPS], SenderEntry(sender, "", "", number, document)))

    line.after_chunk = ask
    edge.sending.run_round()
    assert [False] == asked
    assert [devices_of(edge.store)] * 3 == places.states()


def test_what_is_damaged_between_nodes_gets_no_name_and_is_fetched_again() -> None:
    damaged: list[str] = []
    found: list[int] = []

    class Bad(Places):
        def read(
            self, asker: NodeId, node: NodeId, name: str, request: bytes, _: float
        ) -> Generator[bytes, None, None]:
            for answer in super().read(asker, node, name, request, _):
                if asker == KEEPS and not found and not request.endswith(b'.round", 0]'):
                    damaged.append(name)
                    yield answer[:-1] + bytes([answer[-1] ^ 1])
                else:
                    yield answer

    places = Bad()
    line = Telling(places)
    edge = edge_with_files(line)
    line.before_commit = lambda: found.append(kept(places, KEEPS, edge.id))
    edge.sending.run_round()
    assert {READ, READ_PART} == set(damaged)
    assert [0] == found
    assert [devices_of(edge.store)] * 3 == places.states()
    places.settle()
    places.check_durable(edge.id)
    places.check_nothing_left("after the round")


def test_a_round_that_is_never_committed_is_let_go_of_where_it_was_fetched() -> None:
    places = Places()
    line = Telling(places)
    edge = edge_with_files(line)

    def refuse() -> None:
        raise RoundRefused("not now")

    line.before_commit = refuse
    with pytest.raises(RoundRefused):
        edge.sending.run_round()
    assert kept(places, KEEPS, edge.id) == 2
    places.settle()
    assert kept(places, KEEPS, edge.id) == 0


def names(places: Places, node: NodeId, sender: str, ending: str) -> dict[str, int]:
    """Return the lengths of a sender's files at a node whose names have an ending, by name without the ending."""
    disk = places.running[node].disk
    data = Contents(FOLDER, disk).folder(sender).data
    return {name.removesuffix(ending): disk.size(f"{data}/{name}") for name in disk.list(data) if name.endswith(ending)}


def test_a_keeper_has_what_came_of_a_file_and_no_name_for_it_before_it_has_one_where_it_arrives() -> None:
    places = Places()
    line = Telling(places)
    edge = edge_with_files(line)
    seen: dict[str, int] = {}

    def look(sender: str, _: int) -> None:
        arriving = places.running[TAKES].receiver._contents
        fetched = names(places, KEEPS, sender, ".tsfile.pull")
        assert fetched.keys() <= set(arriving.parts(sender))
        seen.update(fetched)
        whole = names(places, KEEPS, sender, ".tsfile").keys()
        assert {f"{sha256}.tsfile" for sha256 in whole} == arriving.has(sender, [f"{w}.tsfile" for w in whole])

    line.after_chunk = look
    edge.sending.run_round()
    assert len(seen) == 2
    assert all(seen.values())
    assert not names(places, KEEPS, edge.id, ".tsfile.pull")
    assert [devices_of(edge.store)] * 3 == places.states()


def test_what_came_of_a_file_that_comes_no_further_is_let_go_of() -> None:
    places = Places()
    line = Telling(places)
    edge = edge_with_files(line)

    def refuse(sender: str, _: int) -> None:
        if names(places, KEEPS, sender, ".tsfile.pull"):
            raise RoundRefused("not now")

    line.after_chunk = refuse
    with pytest.raises(RoundRefused):
        edge.sending.run_round()
    assert names(places, KEEPS, edge.id, ".tsfile.pull")
    places.settle()
    assert not places.running[KEEPS].disk.exists(Contents(FOLDER, places.running[KEEPS].disk).folder(edge.id).data)


def test_who_fetches_many_files_at_a_time_leaves_the_rest_until_they_are_whole() -> None:
    disk = CrashDisk()
    contents = Contents(FOLDER, disk)
    target = contents.folder(Edge(Telling(Places())).id)
    hashes = [hashlib.sha256(bytes([number])).hexdigest() for number in range(10)]
    for sha256 in hashes:
        contents.fetch(target, f"{sha256}.tsfile", [b"some"])
    assert [4] * 8 + [0] * 2 == [contents.fetched(target, f"{sha256}.tsfile") for sha256 in hashes]


@pytest.mark.parametrize("name", [READ, READ_PART])
@pytest.mark.parametrize("content", ["", "..", "../x", "/etc/passwd", "0" * 63, "0" * 64 + "/../x", "load.log", "\0"])
def test_nothing_but_contents_is_read_by_other_nodes(name: str, content: str) -> None:
    places = Places()
    edge = edge_with_files(Telling(places))
    edge.sending.run_round()
    for sender in (edge.id, "..", "", content):
        question = json.dumps([sender, content, 0]).encode()
        assert [] == list(places.running[TAKES].replica_store.streams()[name](KEEPS, question))


@pytest.mark.parametrize("question", [b"", b"5", b"[]", b"[1, 2]", b'["a", "b", "c"]', b"\xff"])
def test_a_question_that_cannot_be_read_is_refused(question: bytes) -> None:
    with pytest.raises(BadRequest):
        Places().running[TAKES].replica_store.streams()[READ_PART](KEEPS, question)
