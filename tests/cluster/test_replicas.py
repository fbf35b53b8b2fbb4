"""Reads and backups of all replicas of a node, while slots move between its groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from cluster.test_region_apply import NO_REQUEST, OPTIONS, Member, arrive, creates, opening, write

from saros_cluster.data.command import TableVersion
from saros_cluster.data.ownership import Fence, Release
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.replicas import Replicas
from saros_storage.backup.making import BackupRun
from saros_storage.backup.repository import Repository
from saros_storage.backup.restoring import Restore
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.checkpoint.checkpoint_set import CheckpointSet
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.io.disk import Disk, LocalDisk
from saros_storage.mutation.mutation import Deletion, Mutation
from saros_storage.region import Region
from saros_storage.scan.reading import ReadView, ScanRequest, TimeRange
from saros_storage.store import Store

NOW = TableVersion(1, 1, 1)


def shown(members: Sequence[Member], epoch: int, moved: int) -> list[int]:
    """Return the times of the points of root.a.d that a reader finds in groups 1 and 2 of a node.

    `epoch` is the epoch of the reader's table; `moved` is the last move from group 1 to group 2 in this table.
    """
    view = node_of(*members).view(
        {GroupId(1): TableVersion(epoch, 0, moved), GroupId(2): TableVersion(epoch, moved, 0)}
    )
    return [time for time, _ in points(view)]


def node_of(*members: Member) -> Replicas:
    replicas = Replicas(ChunkCache(1 << 20))
    for number, member in enumerate(members, 1):
        replicas.put(GroupId(number), member.machine)
    return replicas


def points(view: ReadView) -> list[tuple[int, object]]:
    """Return the points of root.a.d in a view, and close the view."""
    reader = view.open(ScanRequest("root.a.d", ("x",), (DataType.INT64,), False))
    found: list[tuple[int, object]] = []
    while (block := reader.next()) is not None:
        found += zip(block.times.tolist(), block.columns[0].to_list(), strict=True)
    reader.close()
    view.close()
    return found


def moved_from(source: Member, target: Member) -> None:
    """Fence a slice that has points in one group, and open the slice in another group."""
    source.add(NO_REQUEST, Mutation(creates("root.a.d")))
    source.add(NO_REQUEST, write("root.a.d", 0, 2, 1))
    source.transfer(Fence(1, (source.slot("root.a", 0),)))
    target.transfer(opening(target, 1, ("root.a", 0)), creates("root.a.d"))


@pytest.mark.parametrize("has_arrived", [True, False])
def test_slots_that_came_show_once_before_the_log_says_again_that_they_came(tmp_path: Path, has_arrived: bool) -> None:
    """The node starts alone: its table is older than the move, but the new group's files are newer than the move."""
    source, target = Member(tmp_path / "source"), Member(tmp_path / "target", owned=False)
    moved_from(source, target)
    if has_arrived:
        arrive(target, source, "root.a", 0)
    else:
        target.add(NO_REQUEST, write("root.a.d", 0, 2, 2))
        source.machine.region.flush()
        target.machine.region.flush()
    for member in (source, target):
        member.start_alone()
    assert [0, 1] == shown((source, target), 0, 0)
    for member in (source, target):
        member.replay()
    assert [0, 1] == shown((source, target), 1, 1)


def test_slots_that_left_do_not_seem_empty_before_the_log_says_again_that_they_left(tmp_path: Path) -> None:
    """The node starts alone with an old table, and the old group's files are gone."""
    source, target = Member(tmp_path / "source"), Member(tmp_path / "target", owned=False)
    moved_from(source, target)
    arrive(target, source, "root.a", 0)
    source.transfer(Release(1))
    for member in (source, target):
        member.start_alone()
    with pytest.raises(UserMistake) as gone:
        shown((source, target), 0, 0)
    assert MOVED == gone.value.code
    for member in (source, target):
        member.replay()
    assert [0, 1] == shown((source, target), 1, 1)


class Here:
    """The data of a node, for a backup. Implements `Source`."""

    def __init__(self, folder: Path, *members: Member, disk: Disk | None = None) -> None:
        self._shelf = CheckpointRegistry(str(folder), disk or LocalDisk(), SystemClock())
        self._members = members
        for member in members:
            member.machine._shelf = self._shelf  # all groups of a node share it
        self._ids: tuple[bytes, ...] = ()

    def create_checkpoint(self, since: int | None) -> CheckpointSet:
        self._ids, captures = node_of(*self._members).capture(self._shelf)
        schema = self._members[0].machine.region.schema.dump()
        return CheckpointSet("ms", 100, False, schema, self._ids, captures)

    def read(self, capture: int, number: int) -> Iterator[bytes]:
        return self._shelf.pieces(self._ids[capture], number, 0)

    def release(self) -> None:
        for id_ in self._ids:
            self._shelf.release(id_)


def restored(folder: Path, *members: Member) -> list[tuple[int, object]]:
    """Return the points of root.a.d in a backup of a node with these groups."""
    repository = Repository(str(folder / "backups"), LocalDisk())
    BackupRun(repository, Here(folder / "shelf", *members), SystemClock(), incremental=False).run()
    Restore(repository, str(folder / "restored"), LocalDisk()).run(None)
    store = Store.open(str(folder / "restored"), OPTIONS, LocalDisk(), SystemClock())
    try:
        return points(store.view())
    finally:
        store.close()


@pytest.mark.parametrize("newer_first", [True, False])
def test_a_backup_takes_slots_from_the_group_that_has_them_now(tmp_path: Path, newer_first: bool) -> None:
    """The old group still has data of the slots, which must not be restored."""
    source, target = Member(tmp_path / "source"), Member(tmp_path / "target", owned=False)
    moved_from(source, target)
    source.machine.region.flush()
    arrive(target, source, "root.a", 0)
    target.add(NO_REQUEST, write("root.a.d", 1, 2, 2))
    target.add(NO_REQUEST, Mutation(deletions=[Deletion(("root.a.d.x",), TimeRange(0, 1))]), known=NOW)
    members = (target, source) if newer_first else (source, target)
    assert [(1, 2), (2, 2)] == restored(tmp_path, *members)


def test_a_backup_waits_for_slots_that_are_on_their_way_here(tmp_path: Path) -> None:
    source, target = Member(tmp_path / "source"), Member(tmp_path / "target", owned=False)
    moved_from(source, target)
    for members in ((source, target), (target,)):
        with pytest.raises(UserMistake) as early:
            restored(tmp_path / str(len(members)), *members)
        assert MOVED == early.value.code
    arrive(target, source, "root.a", 0)
    assert [(0, 1), (1, 1)] == restored(tmp_path / "later", source, target)


class Watched(LocalDisk):
    """A disk that calls a function when the first file is captured."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self._happens = [happens]

    def link(self, source: str, target: str) -> None:
        while self._happens:
            self._happens.pop()()
        super().link(source, target)


def test_a_backup_during_which_slots_come_is_refused(tmp_path: Path) -> None:
    """If data moves during the backup, the captures of both groups may lack this data."""
    source, target = Member(tmp_path / "source"), Member(tmp_path / "target", owned=False)
    source.add(NO_REQUEST, Mutation(creates("root.a.d")))
    source.add(NO_REQUEST, write("root.a.d", 0, 2, 1))
    source.transfer(Fence(1, (source.slot("root.a", 0),)))
    disk = Watched(lambda: target.transfer(opening(target, 1, ("root.a", 0)), creates("root.a.d")))
    here = Here(tmp_path / "shelf", source, target, disk=disk)
    with pytest.raises(UserMistake) as meanwhile:
        here.create_checkpoint(None)
    assert MOVED == meanwhile.value.code
    assert not list((tmp_path / "shelf").iterdir())


def test_a_group_that_is_left_meanwhile_does_not_keep_others_from_being_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving, staying = Member(tmp_path / "leaving"), Member(tmp_path / "staying")
    staying.add(NO_REQUEST, Mutation(creates("root.a.d")))
    staying.add(NO_REQUEST, write("root.a.d", 0, 2, 1))
    node = node_of(leaving, staying)
    flush = Region.flush

    def flush_late(region: Region, databases: Sequence[str] | None = None) -> None:
        if region is leaving.machine.region:
            node.take(GroupId(1)).close()
        flush(region, databases)

    monkeypatch.setattr(Region, "flush", flush_late)
    node.flush(None)
    assert staying.machine.region.status(0).memtable_bytes == 0
