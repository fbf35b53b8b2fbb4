"""A data group's state follows from its log alone, on every member and after every restart."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import PATIENCE_S

from saros_cluster.data import region_apply
from saros_cluster.data.applied_ranges import AppliedRange, RequestSet
from saros_cluster.data.applied_requests import MEMORY, AppliedRequests
from saros_cluster.data.command import NO_REQUEST, NOTHING_KNOWN, Request, TableVersion, encode_command, encode_transfer
from saros_cluster.data.drops import OVERTAKEN, Drop, effect_of
from saros_cluster.data.ownership import (
    LEFT,
    MOVED,
    Arrival,
    Complete,
    Fence,
    Open,
    Ownership,
    Prepare,
    Release,
    Transfer,
)
from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.data.schema_delta import SchemaDelta
from saros_cluster.data.snapshots import call_handlers
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import membership
from saros_cluster.raft.messages import Entry, EntryKind, GroupId, Position, Snapshot
from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import CorruptFile, UserMistake
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.compaction.compactor import Compactor
from saros_storage.folder.layout import TRASH_PREFIX
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import Disk, File, LocalDisk
from saros_storage.mutation.mutation import Deletion, Mutation, PlacedTablet
from saros_storage.mutation.tablet_codec import encode_tablet
from saros_storage.read.latest_cache import Point
from saros_storage.scan.reading import ScanRequest, TimeRange
from saros_storage.scan.snapshot import Rank, everything
from saros_storage.schema import (
    CreateDatabase,
    CreateSeries,
    DeleteDatabase,
    DeleteSeries,
    SchemaChange,
    SeriesSchema,
    SetTtl,
    UnsetTtl,
)

OPTIONS = StoreOptions(durability="os", time_partition_interval=100, memtable_bytes_max=3_000)
DEVICES = ("root.a.d", "root.b.d")


OWNS_SCHEMA, HAS_SCHEMA = Ownership.owns_schema, Ownership.has_schema


@pytest.fixture(scope="module", autouse=True)
def others_own_schemas() -> Iterator[None]:
    """Let another group own the schema of all databases except root.a within this context."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Ownership, "owns_schema", lambda _, database: database == "root.a")
        patched.setattr(Ownership, "has_schema", lambda _, database: database == "root.a")
        yield


class Elsewhere:
    """A `MemorySource` for data that has not arrived yet; tests do not read it."""

    rank = Rank(0, 0)

    def span(self, device: str) -> None:
        return None

    def newer(self, request: ScanRequest) -> dict[str, DataType]:
        return {}

    def latest(self, request: ScanRequest) -> list[Point | None]:
        return [None] * len(request.measurements)

    def read(self, request: ScanRequest) -> None:
        return None


def elsewhere(arrival: Arrival, database: str, number: int) -> Elsewhere:
    return Elsewhere()


class Member:
    """A `RegionMachine` with its folder and its log, which can be restarted."""

    def __init__(self, folder: Path, *, owned: bool = True) -> None:
        """Open a group that begins with all slots if `owned` is True, and otherwise with no slots."""
        self.folder = folder
        self.disk: Disk = LocalDisk()
        self.owned = np.full(10_000, owned)
        self.log: list[Entry] = []
        self.base = 0
        self.outcomes: list[object] = []
        self.others: dict[NodeId, Member] = {}
        #: The schema changes that the group has announced.
        self.news: list[SchemaDelta] = []
        self.compactor: Compactor | None = None
        self.machine = self.open()

    def open(self) -> RegionMachine:
        (self.folder / "meta").mkdir(parents=True, exist_ok=True)
        machine = RegionMachine(
            GroupId(1),
            str(self.folder / "groups" / "1"),
            str(self.folder / "meta" / "group-1"),
            OPTIONS,
            self.disk,
            SystemClock(),
            ChunkCache(1 << 20),
            self.owned,
            elsewhere,
            self.news.append,
            CheckpointRegistry(str(self.folder / "snapshots"), LocalDisk(), SystemClock()),
            self.ask,
            self.compactor,
        )
        machine.start(self.compact, lambda: None, self.log[-1] if self.log[self.base :] else None)
        return machine

    def ask(self, node: NodeId, name: str, request: bytes) -> bytes:
        return call_handlers(self.others[node].machine._shelf)[name](NodeId(9), request)

    def compact(self, index: int) -> None:
        self.base = max(self.base, index)

    def add(
        self, request: Request, mutation: Mutation, drop: int | None = None, known: TableVersion | None = None
    ) -> object:
        """Add an entry to the log, and apply it.

        By default, a drop has a new number, and the sender of a write knows all drops and the newest table.
        """
        table = TableVersion(0, self.machine.replica.ownership.opened) if known is None else known
        return self.append(encode_command(request, mutation, len(self.log) + 1 if drop is None else drop, table))

    def append(self, command: bytes) -> object:
        """Append and apply the next entry."""
        self.log.append(Entry(len(self.log) + 1, 1, EntryKind.DATA, command))
        (outcome,) = self.machine.apply(self.log[-1:])
        self.outcomes.append(outcome)
        return outcome

    def transfer(self, transfer: Transfer, changes: Sequence[SchemaChange] = ()) -> None:
        index = len(self.log) + 1
        self.log.append(Entry(index, 1, EntryKind.DATA, encode_transfer(transfer, changes)))
        assert [None] == list(self.machine.apply(self.log[-1:]))

    def slot(self, database: str, number: int) -> int:
        return self.machine.replica.ownership.slot(database, number)

    def restart(self) -> None:
        """Lose the state in memory, and apply the log's entries after `base` again."""
        self.start_alone()
        self.replay()

    def start_alone(self) -> None:
        """Lose the state in memory, and restart while no other node answers, which leaves the commit index unknown."""
        self.machine.close()
        self.machine = self.open()

    def replay(self) -> None:
        self.machine.apply(self.log[self.base :])

    def points(self, device: str) -> dict[int, int]:
        view = self.machine.region.view()
        reader = view.open(ScanRequest(device, ("x",), (DataType.INT64,), False))
        found: dict[int, int] = {}
        while (block := reader.next()) is not None:
            found.update(zip(block.times.tolist(), block.columns[0].to_list(), strict=True))
        reader.close()
        view.close()
        return found

    def state(self) -> tuple[bytes, list[dict[int, int]]]:
        return self.machine.region.schema.dump(), [self.points(device) for device in DEVICES]


def series(type_: DataType = DataType.INT64) -> tuple[SeriesSchema, ...]:
    return (SeriesSchema("x", type_, Encoding.PLAIN, Compressor.UNCOMPRESSED),)


def creates(device: str) -> list[SchemaChange]:
    return [CreateDatabase(device[:-2]), CreateSeries(device, False, series())]


def rows(device: str, start: int, count: int, value: int, type_: DataType = DataType.INT64) -> PlacedTablet:
    times = np.arange(start, start + count)
    values = np.full(count, value, np.int64 if type_ is DataType.INT64 else np.float64)
    return PlacedTablet(2, encode_tablet(Tablet(device, ("x",), times, (Column(type_, values),), False)))


def write(device: str, start: int, count: int, value: int) -> Mutation:
    return Mutation(tablets=[rows(device, start, count, value)])


def test_a_repeated_request_has_one_effect(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    assert member.add(Request(7, 1), write("root.a.d", 0, 1, 10)) is None
    assert member.add(Request(7, 2), write("root.a.d", 0, 1, 20)) is None
    assert member.add(Request(7, 1), write("root.a.d", 0, 1, 10)) is None
    assert {0: 20} == member.points("root.a.d")
    member.restart()
    assert {0: 20} == member.points("root.a.d")


def test_what_is_saved_before_the_log_is_replayed_is_not_ahead_of_the_replay(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.machine.save()
    for number in range(1, 6):
        member.add(Request(7, number), write("root.a.d", number, 1, number))
    member.machine.region.flush()  # now the files are newer than the saved state
    member.machine.close()
    member.machine = member.open()
    member.machine.save()
    member.restart()
    member.add(Request(7, 9), write("root.a.d", 5, 1, 50))
    assert member.add(Request(7, 5), write("root.a.d", 5, 1, 5)) is None
    assert {1: 1, 2: 2, 3: 3, 4: 4, 5: 50} == member.points("root.a.d")


def test_what_no_file_has_is_not_released_before_the_log_is_replayed(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.add(NO_REQUEST, write("root.a.d", 0, 1, 1))
    member.machine.region.flush()
    member.add(NO_REQUEST, write("root.a.d", 0, 1, 2))
    member.add(NO_REQUEST, write("root.a.d", 100, 1, 3))
    slices = {partition.key[1]: partition for partition in member.machine.region.partitions}
    with member.machine.region.lock:
        member.machine.region.flusher.freeze(slices[1])
        while member.machine.region.flusher.busy:
            member.machine.region.lock.wait()
    member.machine.save()  # has all entries, but a restart replays entries that are not in files
    member.machine.close()
    member.machine = member.open()
    member.machine.save()
    member.restart()
    assert {0: 2, 100: 3} == member.points("root.a.d")


@pytest.mark.parametrize("lost", [0, 2])
def test_nothing_goes_by_a_rule_of_ttl_that_entries_of_before_the_start_take_back(tmp_path: Path, lost: int) -> None:
    """The saved state has the TTL rule. `lost` is the number of uncommitted entries that a new leader replaces."""
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation([*creates("root.a.d"), SetTtl("root.a.**", 1)]))
    member.machine.save()
    member.add(NO_REQUEST, Mutation([UnsetTtl("root.a.**", 1)]))
    member.add(NO_REQUEST, write("root.a.d", 0, 1, 7))
    member.machine.region.flush()
    committed = len(member.log)
    member.log += [Entry(committed + 1 + n, 1, EntryKind.NOOP) for n in range(lost)]
    member.start_alone()
    member.machine.region.expire()
    if lost:
        member.log[committed:] = [Entry(committed + 1, 2, EntryKind.NOOP)]
    member.replay()
    assert {0: 7} == member.points("root.a.d")
    member.add(NO_REQUEST, Mutation([SetTtl("root.a.**", 1, 2)]))
    member.machine.region.expire()
    assert not any(partition.files for partition in member.machine.region.partitions)


def test_a_request_that_failed_may_come_again(tmp_path: Path) -> None:
    member = Member(tmp_path)
    outcome = member.add(Request(7, 1), write("root.a.d", 0, 1, 10))
    assert isinstance(outcome, UserMistake)
    assert outcome.code == 508
    member.add(Request(7, 2), Mutation(creates("root.a.d")))
    assert member.add(Request(7, 1), write("root.a.d", 0, 1, 10)) is None
    assert {0: 10} == member.points("root.a.d")


def test_what_failed_once_does_not_succeed_in_a_replay(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, write("root.a.d", 0, 1, 10))
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.add(NO_REQUEST, write("root.a.d", 50, 1, 50))
    member.machine.save(first=1)
    member.machine.save(first=2)
    member.base = 0
    member.restart()
    assert {50: 50} == member.points("root.a.d")


def test_tablets_are_compared_with_the_schema_only_where_it_is_kept(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    wrong = Mutation(tablets=[rows("root.a.d", 0, 1, 1, DataType.DOUBLE)])
    outcome = member.add(NO_REQUEST, wrong)
    assert isinstance(outcome, UserMistake)
    assert outcome.code == 507
    assert member.add(NO_REQUEST, write("root.b.d", 0, 1, 5)) is None
    assert {0: 5} == member.points("root.b.d")
    assert ["root.a", "root.b"] == member.machine.region.schema.databases()


def test_a_command_with_rows_and_a_change_that_cannot_be_made_changes_nothing(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    before = member.state()
    outcome = member.add(NO_REQUEST, Mutation(creates("root.a.d"), (), [rows("root.a.d", 0, 1, 1)]))
    assert isinstance(outcome, UserMistake)
    assert outcome.code == 503
    assert before == member.state()


def test_series_that_a_write_needs_may_be_there_already_unless_they_have_another_type(tmp_path: Path) -> None:
    """Two coordinators may both create a series without an error; if their types differ, the first type stays."""
    member = Member(tmp_path)
    needed = [CreateDatabase("root.a"), CreateSeries("root.a.d", False, series(), if_missing=True)]
    assert member.add(NO_REQUEST, Mutation(needed, (), [rows("root.a.d", 0, 1, 1)])) is None
    assert member.add(NO_REQUEST, Mutation(needed, (), [rows("root.a.d", 1, 1, 2)])) is None
    assert member.add(NO_REQUEST, Mutation(needed)) is None
    other = [CreateSeries("root.a.d", False, series(DataType.DOUBLE), if_missing=True)]
    outcome = member.add(NO_REQUEST, Mutation(other, (), [rows("root.a.d", 2, 1, 3, DataType.DOUBLE)]))
    assert isinstance(outcome, UserMistake)
    assert (507, "root.a.d.x is INT64, not DOUBLE") == (outcome.code, str(outcome))
    assert {0: 1, 1: 2} == member.points("root.a.d")
    news = [change for change in member.machine.replica.delta_since(0).changes if isinstance(change, CreateSeries)]
    assert [CreateSeries("root.a.d", False, series())] == news


def test_a_dropped_database_takes_its_points_along_and_may_be_dropped_again(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d"), (), [rows("root.a.d", 0, 5, 1)]))
    member.machine.region.flush()
    drop = Mutation([DeleteDatabase("root.a")])
    assert member.add(NO_REQUEST, drop, drop=7) is None
    assert member.add(NO_REQUEST, drop, drop=7) is None
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    assert {} == member.points("root.a.d")
    member.restart()
    assert {} == member.points("root.a.d")


@pytest.mark.parametrize("drop", [DeleteDatabase("root.a"), DeleteSeries("root.a.*.x")])
def test_a_group_that_slots_have_left_carries_out_drops(tmp_path: Path, drop: Drop) -> None:
    """A drop is sent to all groups.

    The sender of a drop need not know the owners of slots, since no slot moves during the drop.
    """
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d"), (), [rows("root.a.d", 0, 5, 1)]))
    member.transfer(Fence(4, (member.slot("root.b", 0),)))
    assert member.add(NO_REQUEST, effect_of(drop), drop=7) is None
    assert {} == member.points("root.a.d")


@pytest.mark.parametrize("drop", [DeleteDatabase("root.a"), DeleteSeries("root.a.*.x")])
def test_a_drop_that_comes_again_later_leaves_what_was_made_anew(tmp_path: Path, drop: Drop) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d"), (), [rows("root.a.d", 0, 5, 1)]))
    assert member.add(NO_REQUEST, effect_of(drop), drop=7) is None
    anew = Mutation(creates("root.a.d"), (), [rows("root.a.d", 3, 1, 2)])
    assert member.add(NO_REQUEST, anew, drop=7) is None
    for number in (7, 6):
        assert member.add(Request(1, number), effect_of(drop), drop=number) is None
    assert {3: 2} == member.points("root.a.d")
    member.restart()
    assert {3: 2} == member.points("root.a.d")


def test_a_write_that_has_not_seen_a_drop_of_its_device_is_refused(tmp_path: Path) -> None:
    """Group 1 does not have the schema of root.b, so it cannot check that the series has the type of the rows."""
    member = Member(tmp_path)
    assert member.add(NO_REQUEST, write("root.b.d", 0, 1, 1), drop=0) is None
    member.add(NO_REQUEST, effect_of(DeleteSeries("root.b.d.*")), drop=5)
    for seen, mutation in (
        (4, write("root.b.d", 1, 1, 2)),
        (0, Mutation(creates("root.b.d"))),
        (4, Mutation(creates("root.b.d"), (), [rows("root.b.d", 1, 1, 2)])),
    ):
        outcome = member.add(NO_REQUEST, mutation, drop=seen)
        assert isinstance(outcome, UserMistake)
        assert OVERTAKEN == outcome.code
    assert member.add(NO_REQUEST, write("root.b.e", 1, 1, 3), drop=0) is None
    assert member.add(NO_REQUEST, write("root.b.d", 1, 1, 4), drop=5) is None
    assert {1: 4} == member.points("root.b.d")
    member.machine.save()
    member.restart()
    assert {1: 4} == member.points("root.b.d")
    assert isinstance(member.add(NO_REQUEST, write("root.b.d", 2, 1, 2), drop=4), UserMistake)


def test_news_of_the_schema(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.add(NO_REQUEST, write("root.a.d", 0, 1, 1))
    member.add(NO_REQUEST, Mutation([DeleteSeries("root.a.d.x")]))
    news = member.machine.replica.delta_since(1)
    assert (3, False, (DeleteSeries("root.a.d.x"),)) == (news.index, news.whole, news.changes)
    assert news == SchemaDelta.from_json(news.to_json())
    assert () == member.machine.replica.delta_since(3).changes
    member.machine.save(first=4)
    member.restart()
    whole = member.machine.replica.delta_since(0)
    assert (3, True, (CreateDatabase("root.a"),)) == (whole.index, whole.whole, whole.changes)


def test_a_group_does_not_speak_for_databases_whose_series_another_keeps(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, write("root.b.d", 0, 1, 5))
    member.add(NO_REQUEST, Mutation([CreateDatabase("root.a")]))
    member.machine.save(first=3)
    member.restart()
    assert (CreateDatabase("root.a"),) == member.machine.replica.delta_since(0).changes


def test_requests_are_forgotten_by_the_log_not_by_time() -> None:
    requests = AppliedRequests()
    requests.remember(Request(1, 1), 10)
    assert requests.is_known(Request(1, 1), 10 + MEMORY)
    assert not requests.is_known(Request(1, 1), 11 + MEMORY)
    requests.remember(Request(1, 2), 11 + MEMORY)
    assert [(1, 2, 11 + MEMORY, 0)] == requests.dump()
    assert not requests.is_known(NO_REQUEST, 12)


# ---------------------------------------------------------------------- slots that move


def opening(member: Member, epoch: int, *partitions: tuple[str, int]) -> Open:
    slots = tuple(sorted({member.slot(*key) for key in partitions}))
    return Open(Arrival(epoch, 1, 0, GroupId(2), 9, (NodeId(2),), slots, partitions), (), (0,))


def arrive(member: Member, other: Member, database: str, number: int) -> None:
    """Fetch a partition's data from another member."""
    shelf = other.machine._shelf
    id_ = other.machine.capture(everything)
    member.machine.region.arrive({(database, number)}, shelf.capture(id_), shelf.folder_of(id_))
    shelf.release(id_)


def test_slots_that_come_back_are_what_they_were_elsewhere_after_a_restart_too(tmp_path: Path) -> None:
    """The replayed log still has the earlier writes to the slots, and the entry with which the slots left."""
    member, other = Member(tmp_path / "member"), Member(tmp_path / "other")
    for each in (member, other):
        each.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.add(NO_REQUEST, write("root.a.d", 0, 3, 1))
    other.add(NO_REQUEST, write("root.a.d", 0, 2, 2))
    member.transfer(Fence(4, (member.slot("root.a", 0),)))
    member.transfer(Release(4))
    assert {} == member.points("root.a.d")
    member.transfer(opening(member, 5, ("root.a", 0)), creates("root.a.d"))
    arrive(member, other, "root.a", 0)
    member.add(NO_REQUEST, write("root.a.d", 1, 1, 3))
    expected = {0: 2, 1: 3}
    assert expected == member.points("root.a.d")
    member.restart()
    assert expected == member.points("root.a.d")
    member.transfer(Complete(5))
    member.machine.save(first=2)
    member.base = 1
    member.restart()
    assert expected == member.points("root.a.d")


@pytest.mark.parametrize(
    "mutation",
    [
        Mutation(deletions=[Deletion(("root.**",), TimeRange())]),
        effect_of(DeleteSeries("root.a.d.x")),
        effect_of(DeleteDatabase("root.a")),
    ],
    ids=("delete", "drop series", "drop database"),
)
def test_what_has_left_stays_as_it_is(tmp_path: Path, mutation: Mutation) -> None:
    """A member that has applied the fence can be the source of a move, even if it has applied later entries."""
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.add(NO_REQUEST, write("root.a.d", 0, 2, 1))
    member.add(NO_REQUEST, write("root.a.d", 100, 2, 1))
    member.add(NO_REQUEST, Mutation(deletions=[Deletion(("root.a.d.x",), TimeRange(1, 2))]))
    member.transfer(Fence(4, (member.slot("root.a", 0),)))
    assert member.add(NO_REQUEST, mutation, known=TableVersion(4, 0)) is None
    assert {0: 1} == member.points("root.a.d")
    member.restart()
    assert {0: 1} == member.points("root.a.d")
    member.machine.save(first=2)
    member.base = 1
    member.restart()
    assert {0: 1} == member.points("root.a.d")
    member.transfer(Release(4))
    assert {} == member.points("root.a.d")


def test_who_has_just_started_tells_nothing_of_slots_that_left_until_all_of_them_is_here_again(tmp_path: Path) -> None:
    """The slots have left according to the state file, but some of their points are still replayed from the log."""
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.add(NO_REQUEST, write("root.a.d", 0, 2, 1))
    member.transfer(Fence(4, (member.slot("root.a", 0),)))
    member.add(NO_REQUEST, write("root.a.d", 100, 2, 1))
    member.machine.save(first=2)
    member.machine.close()
    member.machine = member.open()
    for reached, entry in enumerate(member.log[1:], 1):
        machine = member.machine
        if reached > 2:
            assert machine.replica.has_left(4)
            fence, opening, _ = machine.replica.describe(4)
            assert (3, (("root.a", 0),)) == (fence, opening.arrival.partitions)
            assert machine.capture_left(4)
            region, pinned, _ = machine.replica.pin(TableVersion(4, LEFT))
            region.unpin()
            assert [0] == [snapshot.slice for snapshot in pinned["root.a"]]
        else:
            assert not machine.replica.has_left(4)
            for ask in (
                machine.replica.describe,
                machine.capture_left,
                lambda epoch, m=machine: m.replica.pin(TableVersion(epoch, LEFT)),
            ):
                with pytest.raises(UserMistake) as early:
                    ask(4)
                assert MOVED == early.value.code
        machine.apply([entry])


def test_a_replica_that_lags_is_none_for_who_knows_that_slots_have_left_its_group(tmp_path: Path) -> None:
    """A reader would get the same rows twice: from the lagging replica, and from the group that has the slots now."""
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    before, since = TableVersion(3, 0, 0), TableVersion(4, 0, 4)
    assert [True, False] == [member.machine.replica.knows_table(known) for known in (before, since)]
    member.transfer(Fence(4, (member.slot("root.a", 0),)))
    assert [True, True] == [member.machine.replica.knows_table(known) for known in (before, since)]


class Lame(LocalDisk):
    """A disk that is full for a while, and then fails when a partition's folder is about to be removed."""

    def __init__(self) -> None:
        self.full_writes = 1

    def create(self, path: str) -> File:
        if "group-1" in path and self.full_writes:
            self.full_writes -= 1
            raise OSError(errno.ENOSPC, "no space left")
        return super().create(path)

    def replace(self, source: str, target: str) -> None:
        if os.path.basename(target).startswith(TRASH_PREFIX):
            raise OSError(errno.EIO, "the node dies")
        super().replace(source, target)


def test_who_dies_while_it_lets_go_of_slots_does_so_when_it_is_back(tmp_path: Path) -> None:
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.add(NO_REQUEST, write("root.a.d", 0, 2, 1))
    member.transfer(Fence(1, (member.slot("root.a", 0),)))
    member.machine.region.flush()
    member.disk = Lame()
    member.restart()
    with pytest.raises(OSError, match="dies"):
        member.transfer(Release(1))
    member.machine.region.flush()
    member.machine.save()
    member.disk = LocalDisk()
    member.start_alone()
    assert {0: 1, 1: 1} == member.points("root.a.d")
    with pytest.raises(UserMistake):
        member.machine.replica.pin(TableVersion(0, 0, 0))
    region, pinned, _ = member.machine.replica.pin(TableVersion(1, 0, 1))
    region.unpin()
    assert () == pinned["root.a"]
    member.replay()
    assert {} == member.points("root.a.d")
    member.restart()
    assert {} == member.points("root.a.d")


@pytest.mark.parametrize("drop", [DeleteDatabase("root.a"), DeleteSeries("root.a.d.x")])
def test_a_group_that_series_have_left_does_not_tell_of_their_end(
    tmp_path: Path, drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new owner of the series may have created them again before the old group applies the drop."""
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    monkeypatch.setattr(Ownership, "owns_schema", OWNS_SCHEMA)
    member.transfer(Fence(4, (member.slot("root.a", 0),)))
    assert member.add(NO_REQUEST, effect_of(drop), drop=7) is None
    assert ((), 7) == (member.machine.replica.delta_since(2).changes, member.machine.replica.delta_since(2).drop)


def test_a_request_counts_for_slots_that_its_sender_knew_to_be_here(tmp_path: Path) -> None:
    """At the first attempt, some slots had not arrived yet, and another group refused the rows for these slots."""
    member, request = Member(tmp_path), Request(7, 1)
    member.add(NO_REQUEST, Mutation([*creates("root.a.d"), *creates("root.b.d")]))
    member.transfer(Fence(2, (member.slot("root.b", 0), member.slot("root.c", 0))))
    member.transfer(Release(2))
    member.transfer(opening(member, 3, ("root.b", 0), ("root.c", 0)), creates("root.b.d"))
    first, rest = rows("root.a.d", 0, 2, 1), rows("root.b.d", 0, 2, 1)
    assert member.add(request, Mutation(creates("root.a.e"), (), [first]), known=NOTHING_KNOWN) is None
    member.add(NO_REQUEST, write("root.a.d", 1, 1, 5))
    again = Mutation([*creates("root.a.e"), *creates("root.c.d")], (), [first, rest])
    assert member.add(request, again) is None
    assert {0: 1, 1: 5} == member.points("root.a.d")
    assert {0: 1, 1: 1} == member.points("root.b.d")
    assert member.machine.replica.region.schema.device("root.c.d") is not None
    assert member.add(request, again) is None
    member.restart()
    assert {0: 1, 1: 5} == member.points("root.a.d")
    assert {0: 1, 1: 1} == member.points("root.b.d")


def test_rows_for_slots_that_their_sender_knew_to_be_elsewhere_are_refused(tmp_path: Path) -> None:
    """The slots left and came back after the sender had read its table of slots."""
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.transfer(Fence(2, (member.slot("root.a", 0),)))
    member.transfer(Release(2))
    member.transfer(opening(member, 3, ("root.a", 0)), creates("root.a.d"))
    refused = member.add(Request(7, 1), write("root.a.d", 0, 2, 1), known=NOTHING_KNOWN)
    assert isinstance(refused, UserMistake)
    assert MOVED == refused.code
    assert member.add(Request(7, 1), write("root.a.d", 0, 2, 1)) is None
    assert {0: 1, 1: 1} == member.points("root.a.d")


def test_what_was_deleted_before_slots_came_is_not_deleted_of_them_in_a_replay(tmp_path: Path) -> None:
    member, other = Member(tmp_path / "member"), Member(tmp_path / "other")
    other.add(NO_REQUEST, Mutation(creates("root.b.d")))
    other.add(NO_REQUEST, write("root.b.d", 0, 2, 2))
    slot = member.slot("root.b", 0)
    member.transfer(Fence(1, (slot,)))
    member.transfer(Release(1))
    member.add(NO_REQUEST, Mutation(deletions=[Deletion(("root.b.**",), TimeRange())]), known=TableVersion(1, 0))
    member.transfer(opening(member, 2, ("root.b", 0)), creates("root.b.d"))
    member.add(NO_REQUEST, Mutation(deletions=[Deletion(("root.b.**",), TimeRange(1, 2))]), known=TableVersion(2, 2))
    member.machine.save(first=2)
    member.base = 1
    member.restart()
    arrive(member, other, "root.b", 0)
    assert {0: 2} == member.points("root.b.d")


def test_a_repeated_deletion_spares_slots_that_have_had_it(tmp_path: Path) -> None:
    """The deletion is repeated for slots that were moving.

    In other slots, rows that were written since the first attempt stay.
    """
    member, request = Member(tmp_path), Request(7, 1)
    deletion = Mutation(deletions=[Deletion(("root.**",), TimeRange())])
    member.add(NO_REQUEST, Mutation([*creates("root.a.d"), *creates("root.b.d")]))
    member.add(NO_REQUEST, write("root.a.d", 0, 2, 1))
    member.transfer(Fence(1, (member.slot("root.b", 0),)))
    member.transfer(Release(1))
    assert member.add(request, deletion, known=TableVersion(1, 0)) is None
    member.add(NO_REQUEST, write("root.a.d", 1, 1, 5), known=TableVersion(1, 0))
    member.transfer(opening(member, 2, ("root.b", 0)), creates("root.b.d"))
    member.add(NO_REQUEST, write("root.b.d", 0, 2, 1))
    refused = member.add(request, deletion, known=TableVersion(1, 0))
    assert isinstance(refused, UserMistake)
    assert MOVED == refused.code
    assert member.add(request, deletion, known=TableVersion(2, 2)) is None
    member.add(NO_REQUEST, write("root.b.d", 1, 1, 7))
    assert member.add(request, deletion, known=TableVersion(2, 2)) is None
    for save in (lambda: None, lambda: member.machine.save(first=2)):
        assert {1: 5} == member.points("root.a.d")
        assert {1: 7} == member.points("root.b.d")
        save()
        member.restart()
    assert {1: 5} == member.points("root.a.d")
    assert {1: 7} == member.points("root.b.d")


def test_a_repeated_deletion_comes_to_the_same_where_what_was_written_since_is_in_files(tmp_path: Path) -> None:
    """One of two members with the same log replays all of it, although its files already have the later rows."""
    found, request = [], Request(7, 1)
    deletion = Mutation(deletions=[Deletion(("root.**",), TimeRange())])
    for restarts in (False, True):
        member = Member(tmp_path / str(restarts))
        slots = (member.slot("root.b", 0),)
        member.transfer(Fence(1, slots))
        member.transfer(Release(1))
        assert member.add(request, deletion, known=TableVersion(1, 0)) is None
        member.transfer(Open(Arrival(2, 1, 0, GroupId(2), 9, (NodeId(2),), slots, ()), (), (0,)))
        assert member.add(request, deletion, known=TableVersion(2, 2)) is None
        member.add(NO_REQUEST, Mutation(creates("root.b.d")))
        member.add(NO_REQUEST, write("root.b.d", 1, 1, 7))
        if restarts:
            member.machine.region.flush()
            member.restart()
        assert member.add(request, deletion, known=TableVersion(2, 2)) is None
        found.append(member.points("root.b.d"))
    assert [{1: 7}, {1: 7}] == found


def test_what_was_made_anew_behind_a_drop_has_nothing_elsewhere_after_a_restart_either(tmp_path: Path) -> None:
    """The state on the disk is older than the drop; the re-created series is newer than the drop."""
    member = Member(tmp_path)
    slots = (member.slot("root.b", 0),)
    member.transfer(Fence(1, slots))
    member.transfer(Release(1))
    member.transfer(opening(member, 2, ("root.b", 0)), creates("root.b.d"))
    member.machine.save(first=3)
    member.base = 2
    member.add(NO_REQUEST, Mutation([DeleteDatabase("root.b")]), known=TableVersion(2, 2))
    member.add(NO_REQUEST, Mutation(creates("root.b.d")), known=TableVersion(2, 2))
    member.add(NO_REQUEST, write("root.b.d", 0, 2, 1))
    member.machine.region.flush()
    assert {0: 1, 1: 1} == member.points("root.b.d")
    member.restart()
    assert not any(p.underlay is not None for p in member.machine.region.partitions)
    assert {0: 1, 1: 1} == member.points("root.b.d")


def test_files_of_one_name_in_and_out_of_sequence_both_arrive_where_both_are_out_of_it(tmp_path: Path) -> None:
    member, other = Member(tmp_path / "member"), Member(tmp_path / "other")
    other.add(NO_REQUEST, Mutation(creates("root.b.d")))
    other.add(NO_REQUEST, write("root.b.d", 50, 1, 1))
    other.machine.region.flush()
    for time in (10, 60):  # both rows are in one MemTable; the first row is late
        other.add(NO_REQUEST, write("root.b.d", time, 1, 2))
    slots = (member.slot("root.b", 0),)
    member.transfer(Fence(1, slots))
    member.transfer(Release(1))
    member.transfer(opening(member, 2, ("root.b", 0)), creates("root.b.d"))
    for time in (55, 70):
        member.add(NO_REQUEST, write("root.b.d", time, 1, 3))
    member.machine.region.flush()
    arrive(member, other, "root.b", 0)
    expected = {10: 2, 50: 1, 55: 3, 60: 2, 70: 3}
    assert expected == member.points("root.b.d")
    member.restart()
    assert expected == member.points("root.b.d")


class Cramped(LocalDisk):
    """A disk without room for the manifest of one slice."""

    def __init__(self, number: int) -> None:
        self.number: int | None = number

    def create(self, path: str) -> File:
        if self.number is not None and "/groups/1/" in path and f"/{self.number}/MANIFEST" in path:
            raise OSError(errno.ENOSPC, "no space left")
        return super().create(path)


def test_slices_that_arrive_while_the_disk_is_full_arrive_when_there_is_room(tmp_path: Path) -> None:
    """Until there is room, the slices are read from the other group.

    At first, the disk has no room for the manifest of one slice. The node is also restarted.
    """
    member, other = Member(tmp_path / "member"), Member(tmp_path / "other")
    count = 20
    keys = [("root.b", number) for number in range(count)]
    other.add(NO_REQUEST, Mutation(creates("root.b.d")))
    for number in range(count):
        other.add(NO_REQUEST, write("root.b.d", number * 100, 1, number))
    slots = tuple(sorted({member.slot(*key) for key in keys}))
    member.transfer(Fence(1, slots))
    member.transfer(Release(1))
    member.disk = disk = Cramped(count // 2)
    member.restart()
    member.transfer(opening(member, 2, *keys), creates("root.b.d"))
    member.add(NO_REQUEST, write("root.b.d", 1, 1, -1))
    shelf = other.machine._shelf
    id_ = other.machine.capture(everything)
    with pytest.raises(OSError, match="no space"):
        member.machine.region.arrive(set(keys), shelf.capture(id_), shelf.folder_of(id_))
    assert {p.key for p in member.machine.region.partitions if p.underlay is not None} == set(keys)
    disk.number = None
    member.machine.region.arrive(set(keys), shelf.capture(id_), shelf.folder_of(id_))
    shelf.release(id_)
    there, here = (
        {p.stat().st_ino for p in m.folder.glob("groups/1/*/root.b/*/seq/*.tsfile")} for m in (other, member)
    )
    assert len(there) == count
    assert there <= here  # no file was copied
    expected = {number * 100: number for number in range(count)} | {1: -1}
    assert expected == member.points("root.b.d")
    member.restart()
    assert expected == member.points("root.b.d")


def test_a_group_tells_nothing_of_series_that_it_has_let_go_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that asks for all changes would otherwise apply the answer to series that another group owns now."""
    monkeypatch.setattr(Ownership, "has_schema", HAS_SCHEMA)
    member = Member(tmp_path)
    member.add(NO_REQUEST, Mutation(creates("root.a.d")))
    member.transfer(Fence(1, (member.slot("root.a", 0),)))
    assert {"root.a": 0} == member.machine.replica.delta_since(0).since
    member.transfer(Release(1))
    for _ in range(2):
        news = member.machine.replica.delta_since(0)
        assert (True, (), 1) == (news.whole, news.changes, news.left)
        member.restart()


def test_schema_comes_in_pieces_ahead_of_slots_and_again(tmp_path: Path) -> None:
    member = Member(tmp_path)
    slot = member.slot("root.a", 0)
    member.transfer(Fence(1, (slot,)))
    member.transfer(Release(1))
    more = [CreateSeries("root.a.e", False, series())]
    for _ in range(2):
        member.transfer(Prepare(2), creates("root.a.d"))
    assert member.add(NO_REQUEST, write("root.a.d", 0, 1, 1)) is not None  # the slot is not open yet
    member.transfer(opening(member, 2, ("root.a", 0)), more)
    member.transfer(Prepare(2), [CreateSeries("root.a.late", False, series())])
    told = member.machine.replica.delta_since(len(member.log) - 2).changes
    assert [CreateDatabase("root.a"), CreateSeries("root.a.d", False, series()), *more] == list(told)
    assert member.add(NO_REQUEST, write("root.a.d", 0, 1, 1)) is None
    before = member.machine.region.schema.dump()
    member.restart()
    assert before == member.machine.region.schema.dump()


def test_requests_that_came_with_slots_are_forgotten_too() -> None:
    requests = AppliedRequests()
    had = AppliedRange(frozenset({8, 9}), RequestSet.of([(1, 1)]))
    requests.add_arrived(3, 10, [had])
    for found in (requests, AppliedRequests(requests.dump(), requests.dump_arrived())):
        assert found.is_known(Request(1, 1), 10 + MEMORY)
        assert found.covers(Request(1, 1), 10 + MEMORY, 9, 3)
        assert not found.covers(Request(1, 1), 10 + MEMORY, 7, 3)
        assert not found.covers(Request(1, 1), 10 + MEMORY, 9, 0)
        assert not found.is_known(Request(1, 1), 11 + MEMORY)
        assert not found.covers(Request(1, 1), 11 + MEMORY, 9, 3)
        assert [(3, 10, (had,))] == found.dump_arrived()
        found.remember(Request(1, 2), 11 + MEMORY)
        assert [] == found.dump_arrived()


def test_a_request_that_is_repeated_after_a_move_still_counts_for_what_it_had_its_effect_on() -> None:
    """A request took effect on the group's first slots, and later on slots that had arrived.

    Both records move with the slots.
    """
    requests, request = AppliedRequests(), Request(1, 1)
    requests.add_arrived(3, 10, [AppliedRange(frozenset({5}), RequestSet.of([(1, 9)]))])
    requests.remember(request, 20, 0)
    requests.remember(request, 40, 3)
    found = AppliedRequests(requests.dump(), requests.dump_arrived())
    assert requests.dump() == found.dump()
    both, first, came = [(1, 9), (1, 1)], [(1, 1)], [(1, 9)]
    leaving = {0: frozenset({1}), 3: frozenset({5, 6})}
    for fence, expected in (
        (50, [({1}, first), ({5}, both), ({6}, first)]),
        (30, [({1}, first), ({5}, came)]),
        (15, [({5}, came)]),
    ):
        assert [AppliedRange(frozenset(s), RequestSet.of(r)) for s, r in expected] == list(
            found.ranges_leaving(leaving, fence)
        )


def test_slots_take_along_what_they_have_had_and_nothing_else(tmp_path: Path) -> None:
    """The records of a slot's requests move with the slot.

    Requests that the source applied to other slots after the fence do not move.
    """
    first, second, third = (Member(tmp_path / name) for name in ("first", "second", "third"))
    slots = (first.slot("root.a", 0),)
    for other in (second, third):
        other.transfer(Fence(1, slots))
        other.transfer(Release(1))

    def pass_on(source: Member, target: Member, epoch: int) -> None:
        _, told, changes = source.machine.replica.describe(epoch)
        arrival = opening(target, epoch, ("root.a", 0)).arrival
        target.transfer(Open(arrival, told.requests, told.drops), changes)

    before, meanwhile = Request(7, 1), Request(7, 2)
    first.add(NO_REQUEST, Mutation([*creates("root.a.d"), *creates("root.b.d")]))
    first.add(before, write("root.a.d", 0, 2, 1))
    first.transfer(Fence(2, slots))
    first.add(meanwhile, write("root.b.d", 0, 2, 1))
    pass_on(first, second, 2)
    second.transfer(Fence(3, slots))
    pass_on(second, third, 3)
    third.add(NO_REQUEST, write("root.a.d", 0, 1, 5))
    third.add(before, write("root.a.d", 0, 2, 1))
    third.add(meanwhile, write("root.a.d", 1, 1, 3))
    assert {0: 5, 1: 3} == third.points("root.a.d")
    assert [None] * 3 == third.outcomes


def catch_up_by_snapshot(leader: Member, laggard: Member) -> int:
    index, token = leader.machine.take_snapshot()
    snapshot = Snapshot(Position(index, 1, membership(1, [1, 2])), token)
    laggard.others[NodeId(1)] = leader
    laggard.machine.stage(NodeId(1), snapshot)
    laggard.machine.install(snapshot)
    laggard.log = list(leader.log)
    laggard.base = index
    laggard.machine.apply(laggard.log[index:])
    return index


def busy_leader(folder: Path) -> Member:
    leader = Member(folder)
    leader.add(NO_REQUEST, Mutation(creates("root.a.d")))
    leader.add(Request(1, 1), write("root.a.d", 0, 250, 1))
    leader.add(NO_REQUEST, write("root.b.d", 0, 10, 1))
    leader.machine.region.flush()
    leader.add(NO_REQUEST, write("root.a.d", 100, 50, 2))
    leader.add(NO_REQUEST, Mutation(deletions=[Deletion(("root.a.d.x",), TimeRange(120, 140))]))
    leader.add(NO_REQUEST, write("root.missing.d", 0, 1, 1))
    return leader


def test_a_member_that_lacks_too_much_gets_a_snapshot(tmp_path: Path) -> None:
    leader, laggard = busy_leader(tmp_path / "leader"), Member(tmp_path / "laggard")
    laggard.add(NO_REQUEST, Mutation(creates("root.a.d")))
    laggard.add(NO_REQUEST, write("root.a.d", 0, 5, 99))
    view = laggard.machine.region.view()
    catch_up_by_snapshot(leader, laggard)
    assert leader.state() == laggard.state()
    view.close()
    for number in range(3):
        for member in (leader, laggard):
            member.add(Request(1, 1), write("root.a.d", 0, 250, 7))
            member.add(Request(2, number), write("root.a.d", 300 + number, 1, number))
        laggard.restart()
        assert leader.state() == laggard.state()


def test_a_snapshot_whose_files_are_not_what_they_should_be_is_refused(tmp_path: Path) -> None:
    leader, laggard = busy_leader(tmp_path / "leader"), Member(tmp_path / "laggard")
    before = laggard.state()
    ask = laggard.ask
    laggard.machine._ask = lambda node, name, request: ask(node, name, request).replace(b"TsFile", b"TsFail")
    with pytest.raises(CorruptFile):
        catch_up_by_snapshot(leader, laggard)
    assert before == laggard.state()
    laggard.machine._ask = ask
    catch_up_by_snapshot(leader, laggard)
    assert leader.state() == laggard.state()


class Slow(LocalDisk):
    """A disk on which a flush waits until another region begins to write its state."""

    def __init__(self) -> None:
        self.flushing, self.replacing = threading.Event(), threading.Event()

    def create(self, path: str) -> File:
        if "/groups/1/0/" in path and ".tsfile" in path:
            self.flushing.set()
            assert self.replacing.wait(PATIENCE_S)
        elif "group-1" in path and self.flushing.is_set():
            self.replacing.set()
        return super().create(path)


def test_a_snapshot_takes_the_place_of_a_region_that_is_about_to_free_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The region's last flush also writes the state file. Closing the region must not block that write."""
    monkeypatch.setattr(region_apply, "_RELEASE_ENTRIES", 1)
    leader, laggard = busy_leader(tmp_path / "leader"), Member(tmp_path / "laggard")
    laggard.disk = Slow()
    laggard.restart()
    laggard.add(NO_REQUEST, Mutation(creates("root.a.d")))
    laggard.add(NO_REQUEST, write("root.a.d", 0, 5, 99))
    index, token = leader.machine.take_snapshot()
    laggard.others[NodeId(1)] = leader
    snapshot = Snapshot(Position(index, 1, membership(1, [1, 2])), token)
    laggard.machine.stage(NodeId(1), snapshot)
    region = laggard.machine.region
    with region.lock:
        for partition in region.partitions:
            region.flusher.freeze(partition)
    assert laggard.disk.flushing.wait(PATIENCE_S)
    installing = threading.Thread(target=laggard.machine.install, args=(snapshot,), daemon=True)
    installing.start()
    installing.join(PATIENCE_S)
    assert not installing.is_alive()
    assert leader.state() == laggard.state()
    laggard.disk = LocalDisk()
    laggard.log, laggard.base = list(leader.log), index
    laggard.restart()
    assert leader.state() == laggard.state()


def test_a_crash_before_the_state_file_leaves_the_old_region(tmp_path: Path) -> None:
    leader, laggard = busy_leader(tmp_path / "leader"), Member(tmp_path / "laggard")
    laggard.add(NO_REQUEST, Mutation(creates("root.a.d"), (), [rows("root.a.d", 0, 5, 99)]))
    before = laggard.state()
    index, token = leader.machine.take_snapshot()
    laggard.others[NodeId(1)] = leader
    laggard.machine.stage(NodeId(1), Snapshot(Position(index, 1, membership(1, [1, 2])), token))
    group = tmp_path / "laggard" / "groups" / "1"
    (group / "staging").rename(group / "1")
    laggard.restart()
    assert before == laggard.state()
    catch_up_by_snapshot(leader, laggard)
    assert leader.state() == laggard.state()
    assert ["1"] == [path.name for path in group.iterdir()]


STEP = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(DEVICES), st.integers(0, 250), st.integers(1, 60)),
    st.tuples(st.just("create"), st.sampled_from(DEVICES)),
    st.tuples(st.just("delete"), st.sampled_from(DEVICES), st.integers(0, 250), st.integers(1, 100)),
    st.tuples(st.just("drop series"), st.sampled_from(DEVICES)),
    st.tuples(st.just("drop database"), st.sampled_from(DEVICES)),
    st.tuples(st.just("repeat"), st.integers(0, 30)),
    st.tuples(st.just("flush")),
    st.tuples(st.just("save")),
    st.tuples(st.just("restart")),
    st.tuples(st.just("snapshot")),
)


def mutation_of(step: Sequence[object], number: int) -> Mutation:
    match step:
        case ["write", str(device), int(start), int(count)]:
            return write(device, start, count, number)
        case ["create", str(device)]:
            return Mutation(creates(device))
        case ["delete", str(device), int(start), int(count)]:
            return Mutation(deletions=[Deletion((f"{device}.*",), TimeRange(start, start + count))])
        case ["drop series", str(device)]:
            return Mutation([DeleteSeries(f"{device}.x")], [Deletion((f"{device}.x",), TimeRange())])
        case ["drop database", str(device)]:
            return Mutation([DeleteDatabase(device[:-2])])
    raise AssertionError(step)


@settings(max_examples=40)
@given(st.lists(STEP, max_size=40))
def test_restarts_change_nothing(tmp_path_factory, steps: list[tuple[object, ...]]) -> None:
    """A member that flushes, saves and restarts has the same final state as a member that only applies entries."""
    folder = tmp_path_factory.mktemp("members")
    steady, restless = Member(folder / "steady"), Member(folder / "restless")
    sent: list[tuple[Request, Mutation]] = []
    try:
        for number, step in enumerate(steps):
            match step[0]:
                case "flush":
                    restless.machine.region.flush()
                case "save":
                    restless.machine.save()
                case "restart":
                    restless.restart()
                case "snapshot":
                    replaced, restless = restless, Member(folder / f"restless{number}")
                    catch_up_by_snapshot(replaced, restless)
                    replaced.machine.close()
                case "repeat" if not sent:
                    pass
                case _:
                    if step[0] == "repeat":
                        request, mutation = sent[int(str(step[1])) % len(sent)]
                    else:
                        request, mutation = Request(3, number), mutation_of(list(step), number)
                        sent.append((request, mutation))
                    outcomes = [steady.add(request, mutation), restless.add(request, mutation)]
                    assert str(outcomes[0]) == str(outcomes[1])
        restless.restart()
        assert steady.state() == restless.state()
    finally:
        steady.machine.close()
        restless.machine.close()
