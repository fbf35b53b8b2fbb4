"""LOAD at any node of a cluster: all replicas get the file's points exactly once, even if a node fails meanwhile."""

from __future__ import annotations

import importlib.util
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from server.test_load import export
from system.cluster_fixture import Nodes
from waiting import wait_until

import saros
from saros_cluster.data.command import decode_command
from saros_cluster.data.log_shipped_files import Abandon, Piece
from saros_cluster.database import load_coordinator
from saros_cluster.database.load_coordinator import LoadedInPart
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader
from saros_cluster.routing.proposer import Proposer
from saros_cluster.routing.routing import Routing
from saros_cluster.topology.topology import META
from saros_storage.base.errors import UserMistake
from saros_storage.base.write_request import WriteRequest

pytestmark = pytest.mark.slow

WEEK = 7 * 86_400_000
SLICES = 3
#: The number of rows of each device in each slice.
ROWS = 2_000
DEVICES = ("root.plant.line1.aligned", "root.plant.line1.plain", "root.other.d")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    monkeypatch.setattr(load_coordinator, "PIECE_BYTES", 1 << 14)  # so that even small files are sent in many pieces
    made = Nodes(tmp_path / "cluster", 3, 3)
    yield made
    made.close()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with devices of two databases, which have points in three slices."""
    folder = tmp_path_factory.mktemp("source")
    chance = np.random.default_rng(5)
    times = np.concatenate([WEEK * n + np.arange(ROWS) * 1000 for n in range(SLICES)])
    with saros.connect(str(folder / "data"), options={"durability": "os"}) as connection:
        for number, device in enumerate(DEVICES):
            columns = {"x": chance.normal(size=len(times)), "n": chance.integers(0, 1 << 60, len(times))}
            connection.insert(device, times, columns, aligned=number == 0)
    return export(folder / "data", folder / "source.tsfile")


def expected(source: Path, folder: Path) -> list[list[tuple[object, ...]]]:
    """Return the rows of a single store that has loaded the file."""
    with saros.connect(str(folder), options={"durability": "os"}, timestamps="epoch") as connection:
        connection.execute(f"load '{source}'")
        return [connection.execute(f"select n, x from {device}").fetchall() for device in DEVICES]


def found(cluster: Nodes, number: int, consistency: str = "weak") -> list[list[tuple[object, ...]]]:
    return [cluster.run(number, f"select n, x from {device}", consistency) for device in DEVICES]


def wait_same(cluster: Nodes, rows: list[list[tuple[object, ...]]]) -> None:
    """Wait until each node's own replicas have these rows."""
    for number in range(len(cluster.nodes)):
        wait_until(lambda n=number: found(cluster, n) == rows)


def staged(cluster: Nodes) -> list[str]:
    """Return the paths of all staged parts of files; their folders may appear and disappear during the search."""
    walks = (os.walk(folder) for folder in cluster.folders)
    return [f"{at}/{name}" for walk in walks for at, _, names in walk if "/.staged/" in at for name in names]


def test_a_loaded_file_is_at_every_node_and_leaves_nothing_behind(cluster: Nodes, source: Path, tmp_path: Path) -> None:
    """At first, the node that receives the file believes that a slice belongs to another group."""
    rows = expected(source, tmp_path / "alone")
    group_at, wrong = Routing.group_at, [1]

    def believed(self: Routing, database: str, slice_: int) -> GroupId:
        right = group_at(self, database, slice_)
        return GroupId(right % 3 + 1) if wrong and wrong.pop() else right

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Routing, "group_at", believed)
        patched.setattr(load_coordinator, "FILE_BYTES", 1 << 12)
        # In each slice, each plain series and each aligned device becomes a separate file.
        assert 5 * SLICES == cluster.database(1).load(str(source), load_coordinator.LoadOptions())
    assert not wrong
    assert rows == found(cluster, 0, "strong")
    wait_same(cluster, rows)
    cluster.run(2, "insert into root.other.d(time, n) values (0, 7)")
    rows[2][0] = (0, 7, rows[2][0][2])
    wait_same(cluster, rows)  # the later row has replaced the loaded one
    cluster.run(0, "flush")
    wait_same(cluster, rows)
    wait_until(lambda: not staged(cluster))
    for number in range(3):
        cluster.stop(number)
        cluster.start(number)
        cluster.wait_ready()
    wait_same(cluster, rows)


def test_a_file_that_does_not_fit_is_refused_as_a_whole(cluster: Nodes, source: Path) -> None:
    cluster.run(0, "create timeseries root.other.d.n boolean")
    with pytest.raises(UserMistake, match=r"root\.other\.d\.n is BOOLEAN, the file has INT64") as raised:
        cluster.run(1, f"load '{source}'")
    assert raised.value.code == 507
    assert [] == cluster.run(0, "show devices root.plant.**")
    assert [] == staged(cluster)


def test_nodes_that_start_again_amid_a_load_come_to_the_same(cluster: Nodes, source: Path, tmp_path: Path) -> None:
    """First a follower fails, then a leader."""
    rows = expected(source, tmp_path / "alone")
    owner = cluster.database(0).routing.group_at("root.plant", 0)
    propose, amid, goes_on = Proposer.propose, threading.Event(), threading.Event()
    sent = 0

    def proposing(self: Proposer, group: int, data: bytes, *rest: Any, **options: Any) -> None:
        nonlocal sent
        propose(self, group, data, *rest, **options)  # type: ignore[arg-type]
        sent += group != META and isinstance(decode_command(data).shipping, Piece)
        if sent in (2, 5):
            amid.set()
            goes_on.wait(60)
            goes_on.clear()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Proposer, "propose", proposing)
        load_coordinator = threading.Thread(target=cluster.run, args=(0, f"load '{source}'"))
        load_coordinator.start()
        for leads in (False, True):
            assert amid.wait(60)
            amid.clear()
            leader = cluster.database(0)._parts.proposer.leader_of(owner)
            for number in (1, 2):
                if (leader == number + 1) is leads or leader == 1:
                    cluster.stop(number)
                    cluster.start(number)
                    break
            sent += 1
            goes_on.set()
        load_coordinator.join(120)
    assert not load_coordinator.is_alive()
    wait_same(cluster, rows)
    cluster.run(0, "flush")
    wait_same(cluster, rows)


def test_a_load_that_is_sent_again_does_what_is_missing_and_nothing_twice(
    cluster: Nodes, source: Path, tmp_path: Path
) -> None:
    rows = expected(source, tmp_path / "alone")
    store, propose, loads = cluster.database(0), Proposer.propose, 0

    def failing(self: Proposer, group: int, data: bytes, *rest: Any, **options: Any) -> None:
        nonlocal loads
        if group != META and decode_command(data).mutation.loads:
            loads += 1
            if loads == 3:
                raise NoLeader(group, "the test says so")  # type: ignore[arg-type]
        propose(self, group, data, *rest, **options)  # type: ignore[arg-type]

    request = WriteRequest(77, 1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Proposer, "propose", failing)
        with pytest.raises(LoadedInPart, match=r"2 of 6 parts\); loading slice 2 of root\.other failed") as raised:
            store.load(str(source), load_coordinator.LoadOptions(), request=request)
        assert raised.value.code == 2020
    cluster.run(1, "insert into root.other.d(time, n) values (0, 7)")  # this row is newer than the loaded points
    rows[2][0] = (0, 7, rows[2][0][2])
    assert 6 == store.load(str(source), load_coordinator.LoadOptions(), request=request)
    wait_same(cluster, rows)
    wait_until(lambda: not staged(cluster))


def test_what_a_coordinator_left_behind_is_given_up(cluster: Nodes) -> None:
    store = cluster.database(0)
    group = store.routing.group_at("root.plant", 0)
    store._parts.proposer.propose(group, load_coordinator.encode_shipping(Piece("a-1", 0, b"some bytes")))
    wait_until(lambda: 3 == len(staged(cluster)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("saros_cluster.database.database._SHIPMENT_LEASE_NS", 0)
        wait_until(lambda: not staged(cluster))  # the leader's periodic work removes the files
    with pytest.raises(UserMistake, match="send the file again"):
        store._parts.proposer.propose(group, load_coordinator.encode_shipping(Piece("a-1", 10, b"more")))
    store._parts.proposer.propose(group, load_coordinator.encode_shipping(Abandon("a-1")))


@pytest.mark.skipif(importlib.util.find_spec("tsfile") is None, reason="the package tsfile is not installed")
def test_a_file_of_another_writer_is_loaded(cluster: Nodes, tmp_path: Path) -> None:
    from storage.test_tsfile_interop import apache

    rows = [(n * WEEK // 2, float(n)) for n in range(9)]
    column = {"type": 4, "encoding": 0, "compressor": 0, "rows": rows}
    spec, path = tmp_path / "spec.json", tmp_path / "apache.tsfile"
    spec.write_text(json.dumps({"model": "tree", "devices": {"root.apache.d": {"s": column}}}))
    apache("write", str(path), str(spec))
    cluster.run(2, f"load '{path}'")
    for number in range(3):
        wait_until(lambda n=number: rows == cluster.run(n, "select s from root.apache.d", "weak"))
