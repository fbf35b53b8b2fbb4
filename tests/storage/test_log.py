from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.crash_disk import CrashDisk

from saros_storage.base.errors import CorruptFile, DiskFull, LogFailed, StoreClosed, UserMistake
from saros_storage.io.disk import File, LocalDisk
from saros_storage.log import Durability, LogOptions, SegmentedLog, record
from saros_storage.log.record import (
    HEADER_BYTES,
    PAYLOAD_BYTES_MAX,
    Head,
    PendingRecord,
    check_payload,
    heads,
    scan,
    whole_record,
)

OS = LogOptions(Durability.OS)
SALT = 0x9F3A6C01


class FaultyFile:
    """A file whose next write or sync fails if its disk says so. A full disk accepts half of the bytes."""

    def __init__(self, file: File, disk: FaultyDisk) -> None:
        self._file = file
        self._disk = disk
        disk.open_files += 1

    @property
    def size(self) -> int:
        return self._file.size

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        self._disk.during_write()
        if self._disk.fail_writes:
            data = b"".join(parts)
            self._file.write([data[: len(data) // 2]])
            raise OSError(self._disk.fail_writes, "no room")
        self._file.write(parts)

    def reserve(self, count: int) -> None:
        if failure := self._disk.fail_writes or self._disk.fail_reserves:
            raise OSError(failure, "no room")
        self._file.reserve(count)

    def sync(self) -> None:
        self._disk.syncs += 1
        if self._disk.fail_syncs:
            raise OSError(self._disk.fail_syncs, "bad sector")
        self._file.sync()

    def close(self) -> None:
        self._file.close()
        self._disk.open_files -= 1


class FaultyDisk(LocalDisk):
    def __init__(self) -> None:
        self.fail_writes = self.fail_reserves = 0
        self.open_files = 0
        self.during_write: Callable[[], object] = lambda: None
        self.fail_syncs = 0
        self.fail_creates = 0
        self.fail_folders = 0
        self.free = 1 << 40
        self.syncs = 0

    def create(self, path: str) -> File:
        if self.fail_creates:
            raise OSError(self.fail_creates, "no room")
        return FaultyFile(super().create(path), self)

    def sync_folder(self, path: str) -> None:
        if self.fail_folders:
            raise OSError(self.fail_folders, "no room")
        super().sync_folder(path)

    def free_bytes(self, path: str) -> int:
        return self.free

    def append(self, path: str) -> File:
        return FaultyFile(super().append(path), self)


def write(log: SegmentedLog, *payloads: bytes) -> None:
    for payload in payloads:
        log.wait(log.append(3, 7, [payload]))


def reopen(folder: Path, disk: LocalDisk | None = None, options: LogOptions = OS) -> tuple[SegmentedLog, list[bytes]]:
    log, records = SegmentedLog.open(str(folder), disk or LocalDisk(), options)
    assert [log.next_index - len(records) + i for i in range(len(records))] == [r.index for r in records]
    assert all((r.group, r.kind) == (3, 7) for r in records)
    return log, [bytes(r.payload) for r in records]


@pytest.mark.parametrize("durability", Durability, ids=lambda d: d.name)
def test_what_was_acknowledged_is_there_after_reopening(tmp_path: Path, durability: Durability) -> None:
    log, found = reopen(tmp_path, options=LogOptions(durability))
    assert [] == found
    write(log, b"a", b"", b"c" * 1_000)
    # no close: the process dies here
    again, found = reopen(tmp_path)
    assert ([b"a", b"", b"c" * 1_000], 4) == (found, again.next_index)
    write(again, b"d")
    assert [b"a", b"", b"c" * 1_000, b"d"] == reopen(tmp_path)[1]


def test_segments_roll_and_are_cut_below_an_index(tmp_path: Path) -> None:
    log, _ = reopen(tmp_path, options=LogOptions(Durability.OS, segment_bytes=100))
    write(log, *(bytes(60) for _ in range(6)))
    firsts = [first for _, first in log.segments()]
    assert [1, 3, 5] == firsts
    assert 0 == log.cut(2)
    assert 2 == log.cut(6)
    assert [5] == [first for _, first in log.segments()]
    again, found = reopen(tmp_path)
    assert (2, 7) == (len(found), again.next_index)


def test_what_a_killed_process_cut_does_not_come_back_before_what_is_cut_next() -> None:
    """If a power cut undid only the first of two removals, the log would have a gap."""
    disk = CrashDisk()
    options = LogOptions(segment_bytes=100)
    log, _ = SegmentedLog.open("log", disk, options)
    write(log, *(bytes(60) for _ in range(6)))
    disk.remove(log.segments()[0][0])
    again, _ = SegmentedLog.open("log", disk, options)
    disk.keeps_pictures = True
    assert 1 == again.cut(5)
    for picture in disk.pictures:
        for _, found in picture.crashes():
            assert 7 == SegmentedLog.open("log", found, options)[0].next_index


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=6), st.data())
@settings(max_examples=50)
def test_a_cut_tail_loses_only_records_that_were_cut(payloads: list[bytes], data: st.DataObject) -> None:
    stream = b""
    ends = [0]
    needed = []
    for index, payload in enumerate(payloads, 1):
        stream += b"".join(PendingRecord.of(3, 7, [payload]).encode(index, index - 1, SALT))
        ends.append(len(stream))
        needed.append(len(stream) - (-len(payload) & 7))  # the padding to 8 bytes has no meaning
    cut = data.draw(st.integers(0, len(stream)))
    tail = data.draw(st.sampled_from([b"", b"\0" * 64, b"\xff" * 30]))
    crashed = stream[:cut] + tail
    there = [
        len(crashed) >= end and crashed[:stop] == stream[:stop] for end, stop in zip(ends[1:], needed, strict=True)
    ]
    whole = there.index(False) if False in there else len(there)
    found = scan(memoryview(crashed), 1, SALT)
    assert payloads[:whole] == [bytes(r.payload) for r in found.records]
    assert (ends[whole], False) == (found.end, found.damaged)


def test_a_torn_tail_is_cut_off_and_the_log_goes_on(tmp_path: Path) -> None:
    log, _ = reopen(tmp_path)
    write(log, b"first", b"second")
    (path,) = tmp_path.glob("*.log")
    path.write_bytes(path.read_bytes()[:-3])
    again, found = reopen(tmp_path)
    assert [b"first"] == found
    write(again, b"third")
    assert [b"first", b"third"] == reopen(tmp_path)[1]


def test_damage_in_the_middle_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    log, _ = reopen(tmp_path, options=LogOptions())
    write(log, b"first", b"second", b"third")
    (path,) = tmp_path.glob("*.log")
    data = bytearray(path.read_bytes())
    second = HEADER_BYTES + 8
    data[second + HEADER_BYTES] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptFile) as caught:
        reopen(tmp_path)
    assert (str(path), second) == (caught.value.file, caught.value.offset)


def test_a_missing_segment_is_an_error(tmp_path: Path) -> None:
    log, _ = reopen(tmp_path, options=LogOptions(Durability.OS, segment_bytes=1))
    write(log, b"a", b"b", b"c")
    sorted(tmp_path.glob("*.log"))[1].unlink()
    with pytest.raises(CorruptFile, match="lacks the records from 2"):
        reopen(tmp_path)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_failed_fsync_ends_the_log_and_is_not_tried_again(tmp_path: Path, code: int) -> None:
    disk = FaultyDisk()
    log, _ = reopen(tmp_path, disk, LogOptions())
    write(log, b"a")
    disk.fail_syncs, disk.syncs = code, 0
    with pytest.raises(LogFailed):
        write(log, b"b")
    disk.fail_syncs = 0
    with pytest.raises(LogFailed):
        write(log, b"c")
    log.close()
    assert 1 == disk.syncs


def test_a_full_disk_takes_the_write_back_and_the_log_goes_on(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = reopen(tmp_path, disk)
    write(log, b"a")
    disk.fail_writes = errno.ENOSPC
    ticket = log.append(3, 7, [b"lost" * 100])
    for _ in range(2):
        with pytest.raises(DiskFull):
            log.wait(ticket)
    disk.fail_writes = 0
    write(log, b"b")
    with pytest.raises(DiskFull):
        log.wait(ticket)
    assert [b"a", b"b"] == reopen(tmp_path)[1]


def test_a_full_disk_is_told_of_until_there_is_room_or_a_write_went_through(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    disk = FaultyDisk()
    log, _ = reopen(tmp_path, disk)
    for _ in range(2):
        disk.fail_writes, disk.free = errno.ENOSPC, 10
        for _ in range(2):
            with pytest.raises(DiskFull):
                write(log, b"lost" * 100)
        assert f"no space left for the log in {tmp_path}" == log.blocked_by()
        disk.fail_writes, disk.free = 0, 1_000
        assert log.blocked_by() is None
        disk.free = 10
        write(log, b"a")
        assert log.blocked_by() is None
    assert ["no space left for the log", "the log has disk space again"] * 2 == [r.getMessage() for r in caplog.records]


def test_any_other_failed_write_ends_the_log(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = reopen(tmp_path, disk)
    disk.fail_writes = errno.EIO
    with pytest.raises(LogFailed, match="no room"):
        write(log, b"a")
    with pytest.raises(LogFailed):
        log.append(3, 7, [b"b"])


def test_a_segment_whose_name_is_not_durable_ends_the_log_and_costs_no_record(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = reopen(tmp_path, disk, LogOptions(segment_bytes=1))
    write(log, b"a")
    disk.fail_folders = errno.ENOSPC
    with pytest.raises(LogFailed):
        write(log, b"b")
    disk.fail_folders = 0
    with pytest.raises(LogFailed):
        write(log, b"c")
    assert [b"a"] == reopen(tmp_path)[1]


def test_what_is_written_can_be_fsynced_while_there_is_no_room_for_a_segment(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = reopen(tmp_path, disk, LogOptions(Durability.OS, segment_bytes=1))
    ticket = log.append(3, 7, [b"a"])
    log.wait(ticket)
    disk.fail_creates = errno.ENOSPC
    lost = log.append(3, 7, [b"b"])
    log.wait(ticket, fsync=True)
    assert (1, 1, True) == (log.written_index, log.synced_index, log.is_lost(lost))
    disk.fail_creates = 0
    write(log, b"c")
    assert [b"a", b"c"] == reopen(tmp_path)[1]


def test_what_is_due_is_fsynced_on_a_full_disk_too_and_a_failure_is_told(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = reopen(tmp_path, disk)
    write(log, b"a")
    disk.fail_writes = errno.ENOSPC
    lost = log.append(3, 7, [b"b"])
    log.sync_due()
    assert (1, True) == (log.synced_index, log.is_lost(lost))
    disk.fail_writes, disk.fail_syncs = 0, errno.EIO
    log.append(3, 7, [b"c"])
    with pytest.raises(LogFailed):
        log.sync_due()


def test_a_wait_may_ask_for_more_than_the_options_say(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = reopen(tmp_path, disk)
    ticket = log.append(3, 7, [b"a"])
    log.wait(ticket)
    assert 0 == disk.syncs
    log.wait(ticket, fsync=True)
    log.wait(ticket, fsync=True)
    assert 1 == disk.syncs


def test_the_size_is_that_of_the_files(tmp_path: Path) -> None:
    log, _ = reopen(tmp_path, options=LogOptions(segment_bytes=200))
    assert 0 == log.size_bytes
    for _ in range(8):
        write(log, bytes(90))
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) == log.size_bytes
    log.cut(5)
    log.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == log.size_bytes
    again, _ = reopen(tmp_path)
    assert log.size_bytes == again.size_bytes


def test_one_fsync_serves_all_who_wait(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = reopen(tmp_path, disk, LogOptions())
    tickets = [log.append(3, 7, [bytes([i])]) for i in range(20)]
    threads = [threading.Thread(target=log.wait, args=(t,)) for t in tickets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 == disk.syncs
    assert 20 == log.synced_index
    log.close()


def test_many_writers_all_find_their_records(tmp_path: Path) -> None:
    log, _ = reopen(tmp_path, options=LogOptions(segment_bytes=2_000))

    def work(number: int) -> None:
        write(log, *(b"%d-%d" % (number, i) for i in range(50)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    _, found = reopen(tmp_path)
    for number in range(8):
        assert [b"%d-%d" % (number, i) for i in range(50)] == [p for p in found if p.startswith(b"%d-" % number)]


def test_interval_fsyncs_when_it_is_due_and_a_closed_log_says_so(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = reopen(tmp_path, disk, LogOptions(Durability.INTERVAL))
    write(log, b"a")
    assert (0, 0) == (disk.syncs, log.synced_index)
    log.sync_due()
    log.sync_due()
    assert (1, 1) == (disk.syncs, log.synced_index)
    log.close()
    log.close()
    with pytest.raises(StoreClosed):
        log.append(3, 7, [b"b"])


def test_what_was_reserved_and_not_used_is_no_record_and_goes(tmp_path: Path) -> None:
    log, _ = reopen(tmp_path, options=LogOptions(Durability.FSYNC))
    write(log, b"first", b"second")
    (path,) = tmp_path.glob("*.log")
    crashed = path.read_bytes()
    assert crashed.endswith(bytes(1 << 20))
    log.close()
    assert path.stat().st_size < 200
    path.write_bytes(crashed)
    again, found = reopen(tmp_path, options=LogOptions(Durability.FSYNC))
    assert [b"first", b"second"] == found
    write(again, b"third")
    again.close()
    assert [b"first", b"second", b"third"] == reopen(tmp_path, options=LogOptions(Durability.FSYNC))[1]


def test_a_large_write_is_followed_by_no_zeros(tmp_path: Path) -> None:
    log, _ = reopen(tmp_path, options=LogOptions(Durability.FSYNC))
    large = bytes(range(256)) * 2_000
    write(log, large)
    (path,) = tmp_path.glob("*.log")
    assert HEADER_BYTES + len(large) == path.stat().st_size == log.size_bytes
    write(log, b"small", large * 10, b"small again")
    log.close()
    assert [large, b"small", large * 10, b"small again"] == reopen(tmp_path)[1]


def test_a_segment_that_cannot_be_removed_goes_before_those_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FaultyDisk()
    log, _ = reopen(tmp_path, disk, LogOptions(Durability.OS, segment_bytes=1))
    for n in range(4):
        write(log, b"%d" % n)

    def fails(path: str) -> None:
        raise OSError(errno.EIO, "bad sector", path)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "remove", fails)
        with pytest.raises(OSError, match="bad sector"):
            log.cut(3)
    assert 2 == log.cut(3)
    log.close()
    assert [b"2", b"3"] == reopen(tmp_path)[1]


class SyncedPieces:
    """A segment of records that were fsynced three at a time, read in pieces."""

    def __init__(self, payloads: Sequence[bytes], first: int = 5) -> None:
        self.reads = 0
        self.data = b"".join(
            b"".join(PendingRecord.of(index % 3, index % 7, [payload]).encode(index, synced, SALT))
            for index, payload in enumerate(payloads, first)
            for synced in [index - 1 - (index - first) % 3]
        )

    def __call__(self, offset: int, count: int) -> bytes:
        self.reads += 1
        return self.data[offset : offset + count]


@pytest.mark.parametrize("tail", [b"", bytes(100), b"\xff" * 100])
def test_the_heads_of_records_are_read_without_their_payloads(tail: bytes) -> None:
    payloads = [b"", b"one", b"x" * 100, b"y" * 70_000, *(b"%d" % number for number in range(2_000)), b"last"]
    segment = SyncedPieces(payloads)
    records = scan(memoryview(segment.data), 5, SALT).records
    segment.data += tail
    found = list(heads(segment, 0, 5, SALT))
    expected, offset = [], 0
    for place, (each, payload) in enumerate(zip(records, payloads, strict=True)):
        synced = each.index - 1 - place % 3
        crc32 = found[place].crc32
        expected.append(Head(offset, each.index, each.index % 7, len(payload), crc32, synced, payload[:24], SALT))
        offset += each.size_bytes
        assert offset == found[place].end
    assert expected == found
    assert segment.reads < 6
    for head, each in zip(found[:6], records, strict=False):
        assert each == whole_record(segment, head)
    assert found[3:] == list(heads(segment, found[3].offset, found[3].index, SALT))
    assert [] == list(heads(segment, found[3].offset, found[3].index + 1, SALT))


def test_a_record_that_is_not_intact_or_another_one_is_none() -> None:
    segment = SyncedPieces([b"first", b"x" * 100, b"third"])
    found = list(heads(segment, 0, 5, SALT))
    segment.data = segment.data[:100] + b"." + segment.data[101:]
    assert [True, False, True] == [whole_record(segment, head) is not None for head in found]
    segment.data = SyncedPieces([b"first", b"x" * 100, b"third"], first=6).data
    assert [None] * 3 == [whole_record(segment, head) for head in found]


def test_heads_end_where_a_header_is_damaged() -> None:
    segment = SyncedPieces([b"first", b"second", b"third"])
    second = list(heads(segment, 0, 5, SALT))[1].offset
    whole = segment.data
    for place in (*range(second, second + 4), *range(second + 8, second + HEADER_BYTES)):
        segment.data = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        assert [5] == [head.index for head in heads(segment, 0, 5, SALT)]


def test_the_largest_payload_is_the_one_that_readers_accept() -> None:
    assert PAYLOAD_BYTES_MAX == 1 << 30
    size = PAYLOAD_BYTES_MAX + 1
    with pytest.raises(UserMistake, match="a write of 1,073,741,825 bytes is too large: at most 1,073,741,824"):
        check_payload(size)
    check_payload(size - 1)


@pytest.mark.parametrize("torn", [False, True])
def test_only_a_torn_tail_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture, torn: bool) -> None:
    log, _ = SegmentedLog.open(str(tmp_path), LocalDisk(), OS)
    write(log, b"first", b"second")
    log.close()
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()
    file.write_bytes((data[:-8] if torn else data) + bytes(100))
    reopen(tmp_path)[0].close()
    expected = ["truncating the torn tail of the log"] if torn else []
    assert expected == [record.getMessage() for record in caplog.records]


def test_a_disk_that_is_full_and_fails_ends_the_log(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = SegmentedLog.open(str(tmp_path), disk, OS)
    write(log, b"first")
    disk.fail_writes = errno.ENOSPC
    disk.truncate = failing  # type: ignore[method-assign]
    with pytest.raises(LogFailed):
        write(log, b"second")
    disk.fail_writes = 0
    with pytest.raises(LogFailed):
        write(log, b"third")
    assert "the log failed" in str(log.blocked_by())
    log.close()


def failing(path: str, size: int) -> None:
    raise OSError(errno.EIO, "bad sector")


def test_a_full_disk_takes_back_what_was_queued_in_the_meantime_too(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = SegmentedLog.open(str(tmp_path), disk, OS)
    write(log, b"first")
    disk.fail_writes = errno.ENOSPC
    tickets: list[tuple[int, int]] = []
    disk.during_write = lambda: tickets.append(log.append(3, 7, [b"third"]))
    tickets.append(log.append(3, 7, [b"second"]))
    with pytest.raises(DiskFull):
        log.wait(tickets[0])
    with pytest.raises(DiskFull):
        log.wait(tickets[1])
    assert all(log.is_lost(ticket) for ticket in tickets)
    disk.fail_writes, disk.during_write = 0, lambda: None
    write(log, b"fourth")
    log.close()
    log.close()
    assert [b"first", b"fourth"] == reopen(tmp_path)[1]


def test_a_full_disk_counts_as_such_until_something_was_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    disk = FaultyDisk()
    log, _ = SegmentedLog.open(str(tmp_path), disk, LogOptions(Durability.INTERVAL))
    write(log, b"first")
    assert [] == caplog.messages
    disk.fail_writes, disk.free = errno.ENOSPC, 9
    with pytest.raises(DiskFull):
        write(log, b"ten bytes.")
    log.sync_due()
    assert f"no space left for the log in {tmp_path}" == log.blocked_by()
    disk.free = 10
    assert log.blocked_by() is None
    disk.free, disk.fail_writes = 9, 0
    write(log, b"second")
    assert log.blocked_by() is None
    assert ["no space left for the log", "the log has disk space again"] == caplog.messages


def test_what_a_full_disk_gave_back_is_not_counted(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = SegmentedLog.open(str(tmp_path), disk, LogOptions())
    write(log, b"first")
    disk.fail_writes = errno.ENOSPC
    with pytest.raises(DiskFull):
        write(log, bytes(8 << 20))
    (file,) = tmp_path.iterdir()
    assert HEADER_BYTES + 8 == file.stat().st_size == log.size_bytes
    log.close()
    assert 0 == disk.open_files


def test_room_that_cannot_be_reserved_for_another_reason_than_a_full_disk_ends_the_log(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = SegmentedLog.open(str(tmp_path), disk, LogOptions())
    disk.fail_reserves = errno.ENOSPC
    write(log, b"first")
    disk.fail_reserves = errno.EIO
    with pytest.raises(LogFailed):
        write(log, b"second")


def test_a_payload_that_is_too_large_is_refused_and_the_log_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "PAYLOAD_BYTES_MAX", 8)
    log, _ = SegmentedLog.open(str(tmp_path), LocalDisk(), OS)
    with pytest.raises(UserMistake, match="a write of 9 bytes is too large: at most 8; split it"):
        log.append(3, 7, [b"12345", b"6789"])
    write(log, b"12345678")
    log.close()
    assert [b"12345678"] == reopen(tmp_path)[1]


@pytest.mark.parametrize("verb", ["sync_due", "close"])
def test_it_waits_for_the_caller_that_is_writing(tmp_path: Path, verb: str) -> None:
    disk = FaultyDisk()
    log, _ = SegmentedLog.open(str(tmp_path), disk, LogOptions())
    is_writing, may_go_on = threading.Event(), threading.Event()

    def pause() -> None:
        is_writing.set()
        assert may_go_on.wait(60)

    disk.during_write = pause
    writer = threading.Thread(target=write, args=(log, b"first"))
    writer.start()
    assert is_writing.wait(60)
    other = threading.Thread(target=getattr(log, verb))
    other.start()
    may_go_on.set()
    for thread in (writer, other):
        thread.join(60)
        assert not thread.is_alive()
    log.close()
    assert (1, 1, 0) == (log.written_index, log.synced_index, disk.open_files)


def test_segments_that_were_cut_stay_away_after_a_power_cut() -> None:
    disk = CrashDisk()
    log, _ = SegmentedLog.open("log", disk, LogOptions(segment_bytes=1))
    write(log, b"first", b"second", b"third")
    assert 2 == log.cut(3)
    _, records = SegmentedLog.open("log", disk.after_power_cut(), OS)
    assert [b"third"] == [bytes(record.payload) for record in records]


def test_a_segment_is_fsynced_before_it_gets_a_successor() -> None:
    disk = CrashDisk()
    log, _ = SegmentedLog.open("log", disk, LogOptions(Durability.OS, segment_bytes=1))
    write(log, b"first", b"second")
    _, records = SegmentedLog.open("log", disk.after_power_cut(), OS)
    assert [b"first"] == [bytes(record.payload) for record in records]


def test_closing_writes_and_fsyncs_a_record_that_nobody_waits_for() -> None:
    disk = CrashDisk()
    log, _ = SegmentedLog.open("log", disk, LogOptions())
    log.append(0, 0, [b"only"])
    log.close()
    _, records = SegmentedLog.open("log", disk.after_power_cut(), OS)
    assert [b"only"] == [bytes(record.payload) for record in records]


def test_closing_writes_and_fsyncs_what_nobody_waits_for() -> None:
    disk = CrashDisk()
    log, _ = SegmentedLog.open("log", disk, LogOptions(Durability.INTERVAL))
    log.append(0, 0, [b"first"])
    log.wait(log.append(0, 0, [b"second"]))
    log.append(0, 0, [b"third"])
    log.close()
    _, records = SegmentedLog.open("log", disk.after_power_cut(), OS)
    assert [b"first", b"second", b"third"] == [bytes(record.payload) for record in records]


def test_a_log_that_failed_does_not_fsync_again(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log, _ = SegmentedLog.open(str(tmp_path), disk, LogOptions(Durability.INTERVAL))
    write(log, b"first")
    disk.fail_syncs = errno.EIO
    with pytest.raises(LogFailed):
        log.sync_due()
    disk.fail_syncs, tried = 0, disk.syncs
    with pytest.raises(LogFailed):
        log.sync_due()
    log.close()
    assert tried == disk.syncs
