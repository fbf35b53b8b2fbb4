"""Files that keepers fetch while a round still arrives: no promise, nothing lost, checked like all others."""

from __future__ import annotations

from collections.abc import Callable, Generator

import pytest
from storage.store_model import write_rows
from storage.store_opening import FOLDER
from sync.cluster_world import Line, Places
from sync.sync_world import Edge, devices_of

from saros_cluster.placement.ring import NodeId
from saros_sync.clustered.contents import Contents
from saros_sync.errors import RoundRefused
from saros_sync.receiver.catalog import SenderEntry
from saros_sync.transport import Answer, Begun

TAKES, KEEPS = NodeId(1), NodeId(2)


class Telling(Line):
    """Tells when a chunk has come, and before the commit."""

    def __init__(self, places: Places) -> None:
        super().__init__(places, TAKES)
        self.after_chunk: Callable[[str, int], None] = lambda _, __: None
        self.before_commit: Callable[[], object] = lambda: None

    def chunk(self, sender: str, number: int, sha256: str, offset: int, crc32: int, data: memoryview) -> Answer:
        answer = super().chunk(sender, number, sha256, offset, crc32, data)
        self.after_chunk(sender, number)
        return answer

    def commit(self, sender: str, number: int) -> Begun:
        self.before_commit()
        return super().commit(sender, number)


def edge_with_files(line: Line) -> Edge:
    """Two files in two partitions."""
    edge = Edge(line)
    edge.tell(write_rows("root.a.d1", range(30), 1), write_rows("root.b.c.d1", range(30), 1))
    edge.store.flush()
    return edge


def kept(places: Places, node: NodeId, sender: str) -> int:
    """How many files of a sender a node keeps."""
    disk = places.running[node].disk
    return sum(name.endswith(".tsfile") for name in disk.list(Contents(FOLDER, disk).folder(sender).data))


def test_a_keeper_has_all_files_before_it_is_asked_for_the_round() -> None:
    places = Places()
    line = Telling(places)
    edge = edge_with_files(line)
    found: list[int] = []
    line.before_commit = lambda: found.extend(kept(places, node, edge.id) for node in (KEEPS, NodeId(3)))
    edge.sending.once()
    assert [2, 2] == found
    assert [devices_of(edge.store)] * 3 == places.states()
    places.settle()
    places.check_nothing_left("after the round")


def test_what_has_not_arrived_yet_is_not_lost() -> None:
    places = Places()
    line = Telling(places)
    edge = edge_with_files(line)
    keeper = places.running[TAKES].keeper
    asked: list[bool] = []

    def ask(sender: str, number: int) -> None:
        if not asked and kept(places, KEEPS, sender) == 1:
            document = places.running[TAKES].receiver._incoming[sender].document
            asked.append(keeper.is_at([KEEPS], SenderEntry(sender, "", "", number, document)))

    line.after_chunk = ask
    edge.sending.once()
    assert [False] == asked
    assert [devices_of(edge.store)] * 3 == places.states()


def test_what_is_damaged_between_nodes_gets_no_name_and_is_fetched_again() -> None:
    damaged: list[str] = []

    class Bad(Places):
        def read(
            self, asker: NodeId, node: NodeId, name: str, request: bytes, _: float
        ) -> Generator[bytes, None, None]:
            for answer in super().read(asker, node, name, request, _):
                if asker == KEEPS and len(damaged) < 6 and b".tsfile" in request:
                    damaged.append(name)
                    yield answer[:-1] + bytes([answer[-1] ^ 1])
                else:
                    yield answer

    places = Bad()
    line = Telling(places)
    edge = edge_with_files(line)
    found: list[int] = []
    line.before_commit = lambda: found.append(kept(places, KEEPS, edge.id))
    edge.sending.once()
    assert damaged
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
        edge.sending.once()
    assert kept(places, KEEPS, edge.id) == 2
    places.settle()
    assert kept(places, KEEPS, edge.id) == 0
