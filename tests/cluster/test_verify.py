"""Checks of a cluster node's folder, in addition to the checks of `folder_check`: they name each kind of damage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from saros_cluster.data.state_file import GroupState, save_state
from saros_cluster.meta.machine import MetaMachine
from saros_cluster.multiraft.raft_log import RaftLog
from saros_cluster.node.cluster_file import ClusterFile, NodeAddress, save
from saros_cluster.node.verify import NodeResult, check_node
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import Entry, EntryKind, GroupId, HardState, Position
from saros_cluster.raft.ready import Persist
from saros_cluster.topology.topology import META, Node, Topology
from saros_cluster.users.directory import USERS_FILE
from saros_storage.folder.manifest import Manifest
from saros_storage.io.disk import LocalDisk
from saros_storage.log import LogOptions
from saros_storage.partition.partition_files import save_manifest

DISK = LocalDisk()
DATA = GroupId(1)
CLUSTER = "123e4567-e89b-12d3-a456-426614174000"
MEMBERS = Membership(1, (NodeId(1),))


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Return a node's folder. Its data group has entries 6 to 9 in the log, and the data of entries 1 to 7 in files."""
    save(str(tmp_path), ClusterFile(CLUSTER, NodeId(1), 1, 16, {NodeId(1): NodeAddress("h:1", "h:2")}), DISK)
    DISK.make_folder(str(tmp_path / "meta"))
    first = Topology.first({NodeId(1): Node("h:1", "h:2")}, 1, 16)
    MetaMachine(state_path(tmp_path, META), DISK, lambda _: None, first)
    write_log(tmp_path, range(6, 10))
    save_state(DISK, state_path(tmp_path, DATA), GroupState(index=9, released=7))
    save_manifest(DISK, partition(tmp_path), Manifest("root.a", created=1, flushed=7))
    return str(tmp_path)


def state_path(folder: Path | str, group: GroupId) -> str:
    return os.path.join(folder, "meta", f"group-{group}")


def partition(folder: Path | str) -> str:
    return os.path.join(folder, "groups", str(DATA), "0", "root.a", "0")


def write_log(folder: Path | str, indices: range) -> None:
    log, _ = RaftLog.open(os.path.join(folder, "log"), DISK, LogOptions())
    log.wait(log.create(META, Position(0, 0, MEMBERS)))
    log.wait(log.create(DATA, Position(indices.start - 1, 1, MEMBERS)))
    entries = tuple(Entry(index, 1, EntryKind.DATA, b"x") for index in indices)
    log.wait(log.append(DATA, Persist(indices[-1], HardState(1, None), None, None, entries)))
    log.close()


def problems(folder: str) -> list[str]:
    return [str(problem) for problem in check_node(folder, DISK).problems]


def flip(path: str, place: int) -> None:
    data = bytearray(Path(path).read_bytes())
    data[place] ^= 1
    Path(path).write_bytes(data)


def test_a_sound_folder(folder: str) -> None:
    assert NodeResult(groups=2, entries=4) == check_node(folder, DISK)


def test_a_folder_without_a_cluster_has_users_at_most(folder: str) -> None:
    os.remove(os.path.join(folder, "cluster.json"))
    flip(state_path(folder, DATA), -1)
    assert NodeResult() == check_node(folder, DISK)
    Path(folder, USERS_FILE).write_bytes(b"saros-users 1 00000000\n{}")
    assert ["checksum mismatch in the users"] == [p.split(": ", 1)[1] for p in problems(folder)]


@pytest.mark.parametrize("group", [META, DATA])
def test_a_damaged_state_is_named(folder: str, group: GroupId) -> None:
    flip(state_path(folder, group), -3)
    (problem,) = problems(folder)
    assert state_path(folder, group) in problem
    assert "checksum" in problem


def test_a_lost_state_leaves_a_gap(folder: str) -> None:
    os.remove(state_path(folder, DATA))
    (problem,) = problems(folder)
    assert "it has entries up to 0, but the log only has entries after 5" in problem


def test_a_lost_log_is_noticed(folder: str) -> None:
    for name in os.listdir(os.path.join(folder, "log")):
        os.remove(os.path.join(folder, "log", name))
    (problem,) = problems(folder)
    assert "has entries up to 7, but the log has no records of group 1" in problem


def test_a_log_that_lacks_its_end_is_noticed(folder: str) -> None:
    for name in os.listdir(os.path.join(folder, "log")):
        os.remove(os.path.join(folder, "log", name))
    write_log(folder, range(6, 8))
    save_state(DISK, state_path(folder, DATA), GroupState(index=7, released=7))
    save_manifest(DISK, partition(folder), Manifest("root.a", created=1, flushed=8))
    (problem,) = problems(folder)
    assert partition(folder) in problem
    assert "it has entries up to 8, but the log of group 1 ends at entry 7" in problem


def test_records_that_do_not_fit_are_named_once(folder: str) -> None:
    log, _ = RaftLog.open(os.path.join(folder, "log"), DISK, LogOptions())
    for first in (20, 30):
        log.append(DATA, Persist(first, None, None, None, (Entry(first, 1, EntryKind.DATA, b"x"),)))
    log.close()
    (problem,) = problems(folder)
    assert "group 1: entry 20 follows entry 9" in problem


def test_damage_that_the_folder_check_tells_is_not_told_twice(folder: str) -> None:
    (name,) = os.listdir(os.path.join(folder, "log"))
    flip(os.path.join(folder, "log", name), 30)
    flip(os.path.join(partition(folder), "MANIFEST"), -2)
    assert [] == problems(folder)
