from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest
from cluster.raft_log_model import FOLDER, ModelledLog, entries_of, position, vote
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.crash_disk import CrashDisk

from saros_cluster.multiraft.log_records import Base, Entries, RecordKind, Restart, encode_change
from saros_cluster.multiraft.raft_log import LogContents, RaftLog
from saros_cluster.raft.messages import Entry, EntryKind, GroupId, HardState
from saros_cluster.raft.ready import Persist
from saros_storage.base.errors import CorruptFile, LogFailed, StorageError
from saros_storage.io.disk import LocalDisk
from saros_storage.log import Durability, LogOptions, SegmentedLog
from saros_storage.log.record import PendingRecord

#: Options with a small segment size: a few writes fill a segment.
SMALL = LogOptions(segment_bytes=260)


def new_model(options: LogOptions = SMALL, groups: int = 2) -> ModelledLog:
    model = ModelledLog(CrashDisk(), options)
    for group in range(1, groups + 1):
        model.create(group, position(0, 0))
        model.append(group, vote(1, group))
    model.wait()
    return model


def reopened(model: ModelledLog) -> dict[GroupId, LogContents]:
    """Return the contents that a new process finds after a power cut."""
    return RaftLog.open(FOLDER, model.disk.after_power_cut(), SMALL)[1]


def fill(model: ModelledLog, group: int, count: int) -> None:
    """Append `count` entries, each of which is durable before the next is appended."""
    for _ in range(count):
        index, term = model.now[GroupId(group)].last
        model.append(group, entries=entries_of(index + 1, max(term, 1), 1))
        assert model.wait()


# ---------------------------------------------------------------------- written records are found


def test_each_group_finds_its_base_hard_state_and_entries() -> None:
    model = ModelledLog(CrashDisk(), SMALL)
    model.create(7, position(0, 0))
    model.create(8, position(20, 3))
    model.append(7, vote(2, 5), entries=entries_of(1, 2, 3))
    model.append(8, vote(4))
    model.wait()
    expected = {
        7: LogContents(position(0, 0), vote(2, 5), entries_of(1, 2, 3)),
        8: LogContents(position(20, 3), vote(4), ()),
    }
    assert expected == reopened(model)


def test_entries_of_a_lower_index_replace_what_was_there() -> None:
    model = new_model()
    fill(model, 1, 6)
    model.append(1, vote(3), entries=entries_of(3, 3, 2))
    model.wait()
    assert entries_of(1, 1, 2) + entries_of(3, 3, 2) == reopened(model)[GroupId(1)].entries


@pytest.mark.parametrize("index", [3, 9])
def test_a_snapshot_begins_the_log_anew_wherever_it_ended(index: int) -> None:
    model = new_model()
    fill(model, 1, 6)
    model.append(1, vote(2), position(index, 2), entries_of(index + 1, 2, 2))
    model.wait()
    assert LogContents(position(index, 2), vote(2), entries_of(index + 1, 2, 2)) == reopened(model)[GroupId(1)]


def test_hard_state_comes_before_base_and_base_before_entries() -> None:
    model = new_model()
    model.append(1, vote(5), position(9, 4), entries_of(10, 5, 1))
    model.wait()
    _, records = SegmentedLog.open(FOLDER, model.disk, SMALL)
    assert [RecordKind.HARD_STATE, RecordKind.RESTART, RecordKind.ENTRIES] == [r.kind for r in records[-3:]]


def test_an_append_of_nothing_is_durable() -> None:
    model = new_model()
    model.disk.syncs = 0
    model.append(1)
    assert model.wait()
    assert 0 == model.disk.syncs


def test_the_data_of_entries_is_not_copied() -> None:
    entries = (Entry(1, 1, EntryKind.DATA, b"x" * 5_000), Entry(2, 1, EntryKind.NOOP))
    _, parts = encode_change(Entries(entries))
    assert 2 == len(parts)
    assert parts[1] is entries[0].data


def test_one_fsync_serves_all_groups() -> None:
    model = new_model(LogOptions(), groups=50)
    model.disk.syncs = 0
    for group in range(1, 51):
        model.append(group, entries=entries_of(1, 1, 3))
    model.wait()
    assert 1 == model.disk.syncs
    assert all(entries_of(1, 1, 3) == found.entries for found in reopened(model).values())


def test_a_group_that_left_is_forgotten_and_may_come_again() -> None:
    model = new_model()
    fill(model, 1, 3)
    model.drop(1)
    model.wait()
    assert {2} == reopened(model).keys()
    model.create(1, position(5, 9))
    model.wait()
    assert LogContents(position(5, 9), HardState(), ()) == reopened(model)[GroupId(1)]


def test_what_is_done_twice_or_after_the_end_is_a_mistake_of_ours() -> None:
    model = new_model()
    with pytest.raises(AssertionError):
        model.log.create(GroupId(1), position(0, 0))
    model.drop(1)
    with pytest.raises(AssertionError):
        model.log.append(GroupId(1), Persist(0, vote(2), None, None, ()))
    with pytest.raises(AssertionError):
        model.log.drop(GroupId(1))


# ---------------------------------------------------------------------- truncation


def test_a_release_alone_removes_nothing_and_a_cut_removes_what_all_have_released() -> None:
    model = new_model()
    fill(model, 1, 20)
    segments = model.disk.list(FOLDER)
    model.release(1, 15)
    assert segments == model.disk.list(FOLDER)
    first = model.needed_segments()[GroupId(1)]
    assert first > 1
    size = model.log.bytes
    assert first == model.cut()
    assert segments[first:] == model.disk.list(FOLDER)[: len(segments) - first]
    assert size > model.log.bytes
    assert 0 == model.cut()
    assert LogContents(position(15, 1), vote(1, 1), entries_of(16, 1, 5)) == reopened(model)[GroupId(1)]


def test_a_group_that_is_behind_holds_the_log() -> None:
    model = new_model(groups=3)
    fill(model, 2, 1)
    fill(model, 1, 20)
    model.release(1, 20)
    model.cut()
    assert 2 == model.log.held_by()
    assert 0 == model.cut()
    assert 0 == model.needed_segments()[GroupId(2)]
    model.release(2, 1)
    assert model.log.held_by() is None
    last = model.disk.list(FOLDER)[-1]
    assert model.cut() > 1
    assert last == model.disk.list(FOLDER)[0]


def test_the_vote_of_an_idle_group_survives_every_cut() -> None:
    model = new_model()
    for _ in range(5):
        fill(model, 1, 20)
        model.release(1, model.now[GroupId(1)].last[0])
        assert model.cut() > 1
        assert LogContents(position(0, 0), vote(1, 2), ()) == reopened(model)[GroupId(2)]


def test_a_cut_makes_durable_what_it_relies_on_whatever_the_durability() -> None:
    model = new_model(LogOptions(Durability.OS, 260))
    fill(model, 1, 20)
    model.drop(2)
    model.wait()
    model.release(1, 20)
    assert model.cut() > 1
    assert {1: LogContents(position(20, 1), vote(1, 1), ())} == reopened(model)


def test_a_cut_says_nothing_again_that_something_newer_in_the_queue_replaces() -> None:
    model = new_model(groups=4)
    fill(model, 1, 20)
    model.release(1, 20)
    model.append(2, vote(5, 3))
    model.drop(3)
    model.append(4, vote(2), position(30, 2), entries_of(31, 2, 1))
    assert model.cut() > 1
    expected = {
        1: LogContents(position(20, 1), vote(1, 1), ()),
        2: LogContents(position(0, 0), vote(5, 3), ()),
        4: LogContents(position(30, 2), vote(2), entries_of(31, 2, 1)),
    }
    assert expected == reopened(model)


def test_a_cut_relies_on_a_queued_drop_only_when_it_is_durable() -> None:
    model = new_model(groups=1)
    fill(model, 1, 20)
    model.release(1, 20)
    before = reopened(model)
    model.disk.is_full = True
    model.drop(1)
    assert -1 == model.cut()
    assert before == reopened(model)
    model.disk.is_full = False
    model.drop(1)
    assert model.cut() > 1
    assert {} == reopened(model)


def test_a_cut_with_nothing_to_say_again_makes_durable_what_was_only_written() -> None:
    model = new_model(LogOptions(Durability.OS, 260), groups=1)
    fill(model, 1, 20)
    model.drop(1)
    model.wait()
    assert model.cut() > 1
    for how, disk in model.disk.picture().crashes():
        assert {} == RaftLog.open(FOLDER, disk, SMALL)[1], how


def test_entries_that_were_replaced_hold_no_segment_and_those_before_them_do() -> None:
    model = new_model()
    model.append(1, entries=entries_of(1, 1, 6))
    fill(model, 1, 15)
    model.append(1, vote(2), entries=entries_of(4, 2, 3))
    model.wait()
    first = model.needed_segments()[GroupId(1)]
    segments = model.disk.list(FOLDER)[first:]
    assert first == model.cut()
    assert entries_of(1, 1, 3) + entries_of(4, 2, 3) == reopened(model)[GroupId(1)].entries
    model.release(1, 3)
    assert len(segments) - 1 == model.cut() > 1
    assert LogContents(position(3, 1), vote(2), entries_of(4, 2, 3)) == reopened(model)[GroupId(1)]


def test_entries_before_a_snapshot_hold_no_segment() -> None:
    model = new_model()
    fill(model, 1, 20)
    model.append(1, vote(2), position(30, 2))
    model.wait()
    assert model.log.held_by() is None
    assert model.cut() > 1
    assert LogContents(position(30, 2), vote(2), ()) == reopened(model)[GroupId(1)]


def test_a_release_that_comes_late_changes_nothing() -> None:
    model = new_model()
    fill(model, 1, 9)
    model.append(1, vote(2), position(30, 2))
    model.wait()
    model.log.release(GroupId(1), position(8, 1))
    model.log.release(GroupId(9), position(8, 1))
    model.cut()
    assert LogContents(position(30, 2), vote(2), ()) == reopened(model)[GroupId(1)]


def test_the_size_counts_all_segments(tmp_path: Path) -> None:
    log, _ = RaftLog.open(str(tmp_path), LocalDisk(), SMALL)
    log.create(GroupId(1), position(0, 0))
    for index in range(1, 20):
        log.wait(log.append(GroupId(1), Persist(index, vote(1), None, None, entries_of(index, 1, 1))))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == log.bytes
    log.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == log.bytes
    again, _ = RaftLog.open(str(tmp_path), LocalDisk(), SMALL)
    assert log.bytes == again.bytes


# ---------------------------------------------------------------------- a disk that is full, or fails


def test_a_full_disk_takes_all_that_was_queued_back_and_it_can_be_queued_again() -> None:
    model = new_model()
    fill(model, 1, 3)
    before = reopened(model)
    model.disk.is_full = True
    for _ in range(2):
        model.append(1, vote(7), entries=entries_of(2, 7, 2))
        model.append(2, vote(7))
        model.drop(2)
        assert not model.wait()
        assert before == reopened(model)
    model.disk.is_full = False
    model.append(1, vote(7), entries=entries_of(2, 7, 2))
    assert model.wait()
    assert entries_of(1, 1, 1) + entries_of(2, 7, 2) == reopened(model)[GroupId(1)].entries
    assert model.log.failure is None


def test_a_cut_relies_on_nothing_that_a_full_disk_took_back() -> None:
    model = new_model(groups=3)
    fill(model, 1, 20)
    model.disk.is_full = True
    model.append(2, vote(9, 1))
    model.append(1, vote(9), entries=entries_of(2, 9, 1))
    model.drop(3)
    assert not model.wait()
    model.append(2, vote(9, 1))
    assert -1 == model.cut()
    model.disk.is_full = False
    model.release(1, 10)
    assert model.cut() > 1
    expected = {
        1: LogContents(position(10, 1), vote(1, 1), entries_of(11, 1, 10)),
        2: LogContents(position(0, 0), vote(1, 2), ()),
        3: LogContents(position(0, 0), vote(1, 3), ()),
    }
    assert expected == reopened(model)


def test_a_failed_fsync_ends_the_log() -> None:
    model = new_model()
    model.disk.fails_at = (model.disk.operations + 1, errno.EIO)
    model.append(1, vote(2))
    with pytest.raises(LogFailed):
        model.wait()
    with pytest.raises(LogFailed):
        model.append(1, vote(2))
    assert model.log.failure is not None
    model.log.close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "bad"])
def test_whichever_operation_fails_nothing_is_lost_that_was_waited_for(number: int) -> None:
    """Repeat the same calls. In each round, let a different disk operation fail.

    The log stops after the failure, or continues if the disk was only full.
    """
    fails_at = 0
    while True:
        model = ModelledLog(CrashDisk(), SMALL)
        model.disk.fails_at = (fails_at, number)
        try:
            for group in (1, 2):
                model.create(group, position(0, 0))
                while not model.wait():
                    model.create(group, position(0, 0))
            for step in range(12):
                index = step + 1
                hard_state, entries = vote(index, 1), entries_of(index, index, 1)
                model.append(1, hard_state, entries=entries)
                while not model.wait():
                    model.append(1, hard_state, entries=entries)
                if step % 5 == 4:
                    model.release(1, index - 1)
                    model.cut()
        except (LogFailed, OSError):
            assert model.disk.operations > fails_at  # the failure did occur
        for how, disk in model.disk.picture().crashes():
            _, found = RaftLog.open(FOLDER, disk, SMALL)
            assert model.note().allows(found, how) is not None, (fails_at, how, found)
        if model.disk.operations <= fails_at:
            break
        fails_at += 1
    assert fails_at > 30


# ---------------------------------------------------------------------- bytes that no log has written


def open_records(*records: tuple[int, list[bytes]]) -> dict[GroupId, LogContents]:
    """Return the contents found in a log with records of group 3, given as (kind, payload)."""
    data = b"".join(b"".join(PendingRecord.of(3, *record).encode(n, n - 1, 0)) for n, record in enumerate(records, 1))
    disk = CrashDisk.of({f"{FOLDER}/{1:020}.log": data})
    return RaftLog.open(FOLDER, disk, SMALL)[1]


HARD = encode_change(vote(9))
ROOT = encode_change(Restart(position(0, 0)))


def entries_record(first: int, term: int, count: int) -> tuple[int, list[bytes]]:
    return encode_change(Entries(entries_of(first, term, count)))


@pytest.mark.parametrize(
    "record", [(6, [b"?"]), (0, []), (RecordKind.ENTRIES, [bytes([1] + [0] * 7 + [1] + [0] * 3 + [77] + [0] * 12)])]
)
def test_what_a_newer_version_wrote_is_named(record: tuple[int, list[bytes]]) -> None:
    with pytest.raises(StorageError, match="newer Saros") as caught:
        open_records(ROOT, record)
    assert 2015 == caught.value.code


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([ROOT, HARD, entries_record(1, 1, 2), entries_record(4, 1, 1)], "entry 4 follows entry 2"),
        ([ROOT, HARD, entries_record(2, 1, 1)], "entry 2 of term 1 follows entry 0"),
        ([ROOT, HARD, entries_record(1, 2, 1), entries_record(2, 1, 1)], "entry 2 of term 1 follows entry 1 of term 2"),
        ([ROOT, entries_record(1, 2, 1)], "its term is 0, and entry 1 has term 2"),
        ([HARD], "the log has no base record"),
        ([ROOT, HARD, entries_record(0, 1, 1)], "entry 0 does not come after the base at 0"),
        ([ROOT, HARD, entries_record(1, 1, 2), encode_change(Base(position(1, 2)))], "entry 1 has term 1, the base 2"),
        ([ROOT, (RecordKind.DROP, [b"?"])], "a drop record with a payload"),
        ([ROOT, (RecordKind.HARD_STATE, [bytes(16)])], "too short"),
        ([ROOT, (RecordKind.HARD_STATE, [bytes(16) + b"\1"])], "an invalid vote"),
        ([(RecordKind.RESTART, [bytes(16), b"[1,[2]]"])], "values to unpack"),
        ([ROOT, (RecordKind.ENTRIES, [bytes(12)])], "0 entries do not fit in 12 bytes"),
        ([ROOT, (RecordKind.ENTRIES, [b"\1" * 12])], "16843009 entries do not fit in 12 bytes"),
        ([ROOT, (RecordKind.ENTRIES, [*entries_record(1, 1, 1)[1], b"?"])], "entries of"),
        ([ROOT, (RecordKind.ENTRIES, entries_record(1, 1, 1)[1][:1])], "entries of"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_records_that_make_no_log_are_refused_with_their_place(
    records: list[tuple[int, list[bytes]]], reason: str
) -> None:
    with pytest.raises(CorruptFile, match=reason) as caught:
        open_records(*records)
    last = b"".join(b"".join(PendingRecord.of(3, *r).encode(n, n - 1, 0)) for n, r in enumerate(records[:-1], 1))
    assert (f"{FOLDER}/{1:020}.log", len(last)) == (caught.value.file, caught.value.offset)
    assert "group 3" in caught.value.reason


def test_damage_in_the_middle_is_an_error_and_no_shorter_log() -> None:
    model = new_model(LogOptions())
    fill(model, 1, 3)
    (name,) = model.disk.list(FOLDER)
    data = bytearray(model.disk.map(f"{FOLDER}/{name}"))
    data[data.index(b"2.1.0")] ^= 1
    with pytest.raises(CorruptFile):
        RaftLog.open(FOLDER, CrashDisk.of({f"{FOLDER}/{name}": bytes(data)}), SMALL)


# ---------------------------------------------------------------------- many threads


def test_writers_and_a_cutter_in_many_threads(tmp_path: Path) -> None:
    options = LogOptions(Durability.OS, segment_bytes=2_000)
    log, _ = RaftLog.open(str(tmp_path), LocalDisk(), options)
    groups = [GroupId(n) for n in range(1, 7)]
    done = threading.Event()
    cuts = []

    def write(group: GroupId) -> None:
        log.wait(log.create(group, position(0, 0)))
        for index in range(1, 151):
            log.wait(log.append(group, Persist(index, vote(index), None, None, entries_of(index, index, 1))))
            if index % 10 == 0:
                log.release(group, position(index - 5, index - 5))

    def cut() -> None:
        while not done.is_set():
            cuts.append(log.cut())

    writers = [threading.Thread(target=write, args=(group,)) for group in groups]
    cutter = threading.Thread(target=cut)
    for thread in (*writers, cutter):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    cutter.join()
    cuts.append(log.cut())
    assert sum(cuts) > 5
    _, found = RaftLog.open(str(tmp_path), LocalDisk(), options)
    for group in groups:
        assert vote(150) == found[group].hard_state
        assert 150 == found[group].entries[-1].index
        assert found[group].base.index <= 145
    log.close()


# ---------------------------------------------------------------------- all steps in any order

STEPS = ["extend"] * 3 + [
    "conflict",
    "vote",
    "snapshot",
    "drop",
    "wait",
    "wait",
    "release",
    "release",
    "cut",
    "full",
    "reopen",
]
STEP = st.tuples(st.sampled_from(STEPS), st.integers(1, 3), st.integers(0, 7))


class Walk:
    """A model that takes any step that is possible in its current state."""

    def __init__(self, durability: Durability) -> None:
        self.options = LogOptions(durability, SMALL.segment_bytes)
        self.model = ModelledLog(CrashDisk(), self.options)

    def take(self, step: str, group: int, number: int) -> None:
        if step in ("wait", "cut", "full", "reopen"):
            getattr(self, step)(number)
        elif GroupId(group) not in self.model.now:
            self.model.create(group, position(number, number))
        else:
            getattr(self, step)(group, number)

    def extend(self, group: int, number: int) -> None:
        state = self.model.now[GroupId(group)]
        term = max(state.last[1], 1) + number // 6
        hard_state = vote(term, number) if term > state.hard_state.term else None
        self.model.append(group, hard_state, None, entries_of(state.last[0] + 1, term, 1 + number % 4))

    def conflict(self, group: int, number: int) -> None:
        state = self.model.now[GroupId(group)]
        first = max(state.last[0] - number, self.model.released_index(group), state.base.index) + 1
        term = state.last[1] + 1
        self.model.append(group, vote(max(term, state.hard_state.term)), None, entries_of(first, term, 1 + number % 3))

    def vote(self, group: int, number: int) -> None:
        self.model.append(group, vote(self.model.now[GroupId(group)].hard_state.term + 1, number))

    def snapshot(self, group: int, number: int) -> None:
        state = self.model.now[GroupId(group)]
        low = max(self.model.released_index(group), state.base.index) + 1
        index, term = max(low, state.last[0] + number - 4), state.last[1] + 1
        hard_state = vote(max(term, state.hard_state.term))
        self.model.append(group, hard_state, position(index, term), entries_of(index + 1, term, number % 3))

    def drop(self, group: int, number: int) -> None:
        if number < 2:
            self.model.drop(group)

    def release(self, group: int, number: int) -> None:
        state = self.model.now[GroupId(group)]
        index = max(state.last[0] - number // 2, state.base.index)
        if self.model.is_settled and index >= self.model.released_index(group):
            self.model.release(group, index)

    def wait(self, _: int) -> None:
        self.model.wait()

    def full(self, number: int) -> None:
        self.model.disk.is_full = number < 3

    def cut(self, _: int) -> None:
        model = self.model
        was_settled = model.is_settled
        if model.cut() >= 0 and was_settled:
            needed = model.needed_segments().values()
            assert 0 == min(needed, default=0)
            assert needed or len(model.disk.list(FOLDER)) <= 2  # two if the first segment was full

    def reopen(self, number: int) -> None:
        """Reopen the log after a power cut, after the death of the process, or after it was closed."""
        crashes = list(self.model.disk.picture().crashes())
        how, disk = crashes[number % len(crashes)]
        note = self.model.note()
        if number == 7 and self.model.wait():
            self.model.log.close()
            how, note, disk = "process", self.model.note(), self.model.disk
        self.model = ModelledLog(disk, self.options)
        state = note.allows(self.model.found, how)
        assert state is not None, (how, note, self.model.found)

    def check(self) -> None:
        model = self.model
        if not model.is_settled:
            return
        needed = model.needed_segments()
        holder = model.log.held_by()
        assert (holder is None) == (not needed)
        assert holder is None or needed[holder] == min(needed.values())


@pytest.mark.slow
@given(st.sampled_from([Durability.FSYNC, Durability.OS]), st.lists(STEP, min_size=30, max_size=80))
@settings(max_examples=250)
def test_any_steps_leave_what_a_dictionary_says(durability: Durability, steps: list[tuple[str, int, int]]) -> None:
    walk = Walk(durability)
    for step in steps:
        walk.take(*step)
        walk.check()
    walk.reopen(0)
