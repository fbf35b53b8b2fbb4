"""The files of state machines: a state with which a node started survives, even if its writer was killed."""

from __future__ import annotations

import numpy as np
from cluster.test_region_apply import elsewhere
from storage.crash_disk import CrashDisk

from saros_cluster.data.command import NO_REQUEST
from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.data.state_file import GroupState, encode_state, load_state, save_state
from saros_cluster.meta.machine import MetaMachine, encode_meta_entry
from saros_cluster.meta.state import CreateDatabase
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Entry, EntryKind, GroupId
from saros_cluster.topology.topology import Node, Topology
from saros_cluster.users.commands import CreateUser
from saros_cluster.users.directory import USERS_FILE, FileDirectory
from saros_storage.base.clock import SystemClock
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.folder.layout import write_durably, write_synced
from saros_storage.folder.store_options import StoreOptions

PATH = "/meta/group-1"
FIRST = Topology.first({NodeId(n): Node(f"host{n}:1", f"host{n}:2") for n in (1, 2, 3)}, 3, 12)


def empty_disk() -> CrashDisk:
    disk = CrashDisk()
    disk.make_folder("/meta")
    return disk


def test_a_groups_state_that_a_node_began_with_is_there_after_a_power_cut() -> None:
    """A process was killed before the name of its state file was durable.

    The next process then started with this state and truncated the log, so the state must survive.
    """
    disk = empty_disk()
    save_state(disk, PATH, GroupState(index=2, released=2))
    write_synced(disk, PATH, encode_state(GroupState(index=7, released=7)))
    assert 7 == open_group(disk).replica.released
    assert 7 == load_state(disk.after_power_cut(), PATH).released


def open_group(disk: CrashDisk) -> RegionMachine:
    clock = SystemClock()
    shelf = CheckpointRegistry("/snapshots", disk, clock)
    return RegionMachine(
        GroupId(1),
        "/groups/1",
        PATH,
        StoreOptions(),
        disk,
        clock,
        ChunkCache(1 << 20),
        np.ones(12, dtype=np.bool_),
        elsewhere,
        lambda news: None,
        shelf,
        lambda node, name, request: b"",
    )


def test_the_meta_groups_state_that_a_node_began_with_is_there_after_a_power_cut() -> None:
    disk = empty_disk()
    machine = MetaMachine(PATH, disk, lambda state: None, FIRST)
    machine.apply([Entry(1, 1, EntryKind.DATA, encode_meta_entry(NO_REQUEST, CreateDatabase("root.a")))])
    write_synced(disk, PATH, machine.take_snapshot()[1])
    assert ["root.a"] == databases(disk)
    assert ["root.a"] == databases(disk.after_power_cut())


def databases(disk: CrashDisk) -> list[str]:
    return MetaMachine(PATH, disk, lambda state: None, FIRST).state.databases


def test_users_that_a_server_began_with_are_there_after_a_power_cut() -> None:
    disk = empty_disk()
    FileDirectory("", disk).change(CreateUser("ann", "a"))
    before = bytes(disk.map(USERS_FILE))
    FileDirectory("", disk).change(CreateUser("bob", "b"))
    after = bytes(disk.map(USERS_FILE))
    write_durably(disk, USERS_FILE, before)
    write_synced(disk, USERS_FILE, after)
    assert after == bytes(disk.map(USERS_FILE))
    FileDirectory("", disk)
    assert after == bytes(disk.after_power_cut().map(USERS_FILE))
