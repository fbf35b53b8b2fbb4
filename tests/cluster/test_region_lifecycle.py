"""The life of a data group's replica: waits for memory or the disk, releases of log entries, and snapshots."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import pytest
from cluster.test_log_shipped_files import Sender, tsfile
from cluster.test_region_apply import OPTIONS, Member, catch_up_by_snapshot, creates, write
from msgspec.structs import replace
from waiting import PATIENCE_S, wait_equal, wait_until

from saros_cluster.data import region_apply
from saros_cluster.data.command import NO_REQUEST, Request
from saros_cluster.multiraft.peers import Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import membership
from saros_cluster.raft.messages import Entry, EntryKind, Position, Snapshot
from saros_storage.base.types import DataType
from saros_storage.flush import flusher
from saros_storage.io.disk import File, LocalDisk
from saros_storage.mutation.mutation import Mutation
from saros_storage.read.view import LocalReadView
from saros_storage.scan.reading import ScanRequest
from saros_storage.scan.snapshot import everything
from saros_storage.schema import CreateDatabase, DeleteDatabase, SetTtl, UnsetTtl


def started(do: Any, *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=do, args=arguments, daemon=True)
    thread.start()
    return thread


def assert_ends(thread: threading.Thread) -> None:
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


# ---------------------------------------------------------------------- entries


def test_an_entry_without_data_counts_as_applied(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.log.append(Entry(2, 1, EntryKind.NOOP))
    assert [None] == list(member.machine.apply(member.log[-1:]))
    member.machine.save()
    assert 2 == member.base


def test_expired_files_stay_until_the_last_entry_of_before_the_start_is_applied(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation([*creates("root.a.d"), SetTtl("root.a.**", 1)]))
    member.machine.save()
    member.add(NO_REQUEST, write("root.a.d", 0, 1, 7))
    member.add(NO_REQUEST, Mutation([UnsetTtl("root.a.**", 1)]))
    member.machine.region.flush()
    member.start_alone()
    for entry in member.log[1:]:
        member.machine.apply([entry])
        member.machine.region.expire()
    assert {0: 7} == member.points("root.a.d")


class FullDisk(LocalDisk):
    """A disk without room for the region's files until `has_room` is set."""

    def __init__(self) -> None:
        self.has_room = False
        self.attempts = 0

    def create(self, path: str) -> File:
        if "/groups/1/" in path and not self.has_room:
            self.attempts += 1
            raise OSError(errno.ENOSPC, "no space left")
        return super().create(path)


def test_committed_entries_wait_for_memory_as_long_as_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The member waits, since a member that refused a committed entry would differ from the other members."""
    monkeypatch.setattr(flusher, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(region_apply, "_FULL_DISK_SECONDS", 0.01)
    monkeypatch.setattr("cluster.test_region_apply.OPTIONS", replace(OPTIONS, memtables_total_bytes_max=8_000))
    member = Member(tmp_path)
    member.disk = disk = FullDisk()
    member.restart()
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    count = 0
    while member.machine.region.partitions.memory_bytes <= 8_000:
        member.add(NO_REQUEST, write("root.a.d", 90 * count, 90, count))
        count += 1
    applying = started(member.add, NO_REQUEST, write("root.a.d", 0, 1, -1))
    before = disk.attempts
    wait_until(lambda: disk.attempts >= before + 3)
    assert applying.is_alive()
    assert 0 == member.points("root.a.d")[0]
    disk.has_room = True
    assert_ends(applying)
    assert -1 == member.points("root.a.d")[0]
    assert [None] * (count + 2) == member.outcomes


class FlushingDisk(LocalDisk):
    """A disk on which a flush waits at its first file."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()

    def create(self, path: str) -> File:
        if "/groups/1/" in path and ".tsfile" in path:
            self.began.set()
            assert self.may_end.wait(PATIENCE_S)
        return super().create(path)


def test_writes_do_not_wait_for_a_flush_and_a_dropped_database_leaves_no_file_of_one(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.disk = disk = FlushingDisk()
    member.restart()
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.add(NO_REQUEST, write("root.a.d", 0, 5, 1))
    region = member.machine.region
    flushing = started(region.flush)
    assert disk.began.wait(PATIENCE_S)
    assert_ends(started(member.add, NO_REQUEST, write("root.a.d", 1, 1, 2)))
    assert {0: 1, 1: 2, 2: 1, 3: 1, 4: 1} == member.points("root.a.d")
    dropping = started(member.add, NO_REQUEST, Mutation([DeleteDatabase("root.a")]), 7)
    wait_until(lambda: region.flusher.folders.is_contended or not dropping.is_alive())
    disk.may_end.set()
    assert_ends(dropping)
    assert_ends(flushing)
    assert ({}, ()) == (member.points("root.a.d"), region.status(0).problems)
    assert [] == list(member.folder.rglob("*.tsfile"))


# ---------------------------------------------------------------------- freeing the log


def flush(member: Member) -> None:
    """Flush, and wait until the flusher has released the log's entries."""
    member.machine.region.flush()
    with member.machine.region.flusher.folders:
        pass


def test_the_log_is_freed_when_that_frees_enough_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release is expensive because it writes the state file."""
    monkeypatch.setattr(region_apply, "_RELEASE_ENTRIES", 3)
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    freed = []
    for number in range(6):
        member.add(NO_REQUEST, write("root.a.d", number, 1, number))
        flush(member)
        freed.append(member.base)
    assert [0, 3, 3, 3, 6, 6] == freed
    assert not member.machine.region.status(0).problems
    member.restart()
    assert {n: n for n in range(6)} == member.points("root.a.d")


@pytest.mark.parametrize("more", [0, 1])
def test_the_log_is_freed_when_it_has_brought_many_bytes_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    sender = Sender((tsfile(tmp_path / "file", "root.a.d", 0),))
    monkeypatch.setattr(region_apply, "_RELEASE_SHIPPED_BYTES", len(sender.files[0]) + more)
    member = Member(tmp_path / "member")
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    assert sender.whole(member, 0, Request(7, 1)) is None
    flush(member)
    loaded = len(member.log)
    assert (0 if more else loaded) == member.base
    member.add(NO_REQUEST, write("root.a.d", 0, 1, 1))
    flush(member)
    assert (0 if more else loaded) == member.base


def test_a_save_that_frees_nothing_writes_nothing(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.machine.save()
    state = member.folder / "meta" / "group-1"
    before = state.stat()
    member.machine.save()
    assert (before.st_ino, before.st_mtime_ns) == (state.stat().st_ino, state.stat().st_mtime_ns)


# ---------------------------------------------------------------------- snapshots


def test_files_of_a_snapshot_that_nobody_wants_any_more_are_released(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d"), (), [*write("root.a.d", 0, 1, 1).tablets]))
    _, token = member.machine.take_snapshot()
    assert held_files(tmp_path)
    member.machine.forget_snapshot(token)
    assert [] == held_files(tmp_path)


def held_files(folder: Path) -> list[Path]:
    """Return the files that exist only because of captures."""
    return [path for path in (folder / "snapshots").rglob("*") if path.is_file()]


def test_a_capture_has_all_entries_up_to_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The capture also has the entries that are applied during its first flush."""
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.add(NO_REQUEST, write("root.a.d", 0, 1, 1))
    region = member.machine.region
    flush_chosen = region.flush_chosen

    def then_write(*chosen: Any, **options: Any) -> None:
        flush_chosen(*chosen, **options)
        monkeypatch.undo()
        member.add(NO_REQUEST, write("root.a.d", 1, 1, 2))

    monkeypatch.setattr(region, "flush_chosen", then_write)
    captured = member.machine._shelf.capture(member.machine.capture(everything))
    assert [2] == [len(partition.manifest.files) for partition in captured.partitions]


def values(view: LocalReadView) -> dict[int, int]:
    reader = view.open(ScanRequest("root.a.d", ("x",), (DataType.INT64,), False))
    found: dict[int, int] = {}
    while (block := reader.next()) is not None:
        found.update(zip(block.times.tolist(), block.columns[0].to_list(), strict=True))
    reader.close()
    return found


def leader_of(folder: Path) -> Member:
    leader = Member(folder)
    leader.add(NO_REQUEST, Mutation(creates("root.a.d")))
    leader.add(NO_REQUEST, write("root.a.d", 0, 3, 1))
    return leader


def test_a_view_that_is_open_keeps_what_a_snapshot_replaces(tmp_path: Path) -> None:
    leader, laggard = leader_of(tmp_path / "leader"), Member(tmp_path / "laggard")
    laggard.add(NO_REQUEST, Mutation(creates("root.a.d")))
    laggard.add(NO_REQUEST, write("root.a.d", 0, 2, 99))
    laggard.machine.region.flush()
    laggard.start_alone()  # a read opens the files
    view = laggard.machine.region.view()
    catch_up_by_snapshot(leader, laggard)
    assert {0: 1, 1: 1, 2: 1} == laggard.points("root.a.d")
    assert {0: 99, 1: 99} == values(view)
    view.close()


def test_a_snapshot_that_is_installed_already_changes_nothing(tmp_path: Path) -> None:
    leader, laggard = leader_of(tmp_path / "leader"), Member(tmp_path / "laggard")
    index = catch_up_by_snapshot(leader, laggard)
    laggard.add(NO_REQUEST, write("root.a.d", 9, 1, 9))
    region = laggard.machine.region
    for older in (index, index - 1):
        laggard.machine.install(Snapshot(Position(older, 1, membership(1, [1, 2])), b""))
    assert region is laggard.machine.region
    assert {0: 1, 1: 1, 2: 1, 9: 9} == laggard.points("root.a.d")


def test_other_nodes_learn_the_schema_at_the_start_and_with_a_snapshot(tmp_path: Path) -> None:
    leader, laggard = leader_of(tmp_path / "leader"), Member(tmp_path / "laggard")
    assert [(0, True, ())] == [(news.index, news.whole, news.changes) for news in laggard.news]
    index = catch_up_by_snapshot(leader, laggard)
    assert (index, True) == (laggard.news[-1].index, laggard.news[-1].whole)
    assert CreateDatabase("root.a") in laggard.news[-1].changes
    laggard.news.clear()
    laggard.start_alone()
    assert [(index, True)] == [(news.index, news.whole) for news in laggard.news]
    assert CreateDatabase("root.a") in laggard.news[0].changes


def test_expired_files_go_once_a_snapshot_has_replaced_the_log(tmp_path: Path) -> None:
    """When the node started, its log had entries that the node will never apply."""
    leader, laggard = leader_of(tmp_path / "leader"), Member(tmp_path / "laggard")
    laggard.log = [Entry(n, 1, EntryKind.NOOP) for n in range(1, 100)]
    laggard.start_alone()
    leader.add(NO_REQUEST, Mutation([SetTtl("root.a.**", 1)]))
    catch_up_by_snapshot(leader, laggard)
    laggard.machine.region.expire()
    assert not any(partition.files for partition in laggard.machine.region.partitions)


class Compactions:
    """A replacement of `Compactor` that records the regions which are being compacted."""

    def __init__(self) -> None:
        self.current: list[object] = []

    def add(self, ground: object) -> None:
        self.current.append(ground)

    def remove(self, ground: object) -> None:
        self.current.remove(ground)

    def schedule(self, ground: object, partition: object) -> None:
        assert ground in self.current


def flushers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "saros-flush"}


def test_a_region_is_compacted_from_its_start_to_its_end(tmp_path: Path) -> None:
    leader, before = leader_of(tmp_path / "leader"), flushers()
    laggard, compactions = Member(tmp_path / "laggard"), Compactions()
    laggard.compactor = compactions  # type: ignore[assignment]
    laggard.start_alone()
    (first,) = compactions.current
    catch_up_by_snapshot(leader, laggard)
    (second,) = compactions.current
    assert first is not second
    laggard.machine.close()
    laggard.machine.close()
    wait_equal([], lambda: compactions.current)
    wait_until(lambda: flushers() <= before)


def test_a_snapshot_that_was_not_fetched_is_not_installed(tmp_path: Path) -> None:
    leader, laggard = leader_of(tmp_path / "leader"), Member(tmp_path / "laggard")
    index, token = leader.machine.take_snapshot()
    laggard.others[NodeId(1)] = leader
    snapshot = Snapshot(Position(index, 1, membership(1, [1, 2])), token)
    laggard.machine.stage(NodeId(1), snapshot)

    def unreachable(node: NodeId, name: str, request: bytes) -> bytes:
        raise Unreachable(node, "gone")

    laggard.machine._ask = unreachable
    with pytest.raises(Unreachable):
        laggard.machine.stage(NodeId(1), snapshot)
    with pytest.raises(AssertionError):
        laggard.machine.install(snapshot)
