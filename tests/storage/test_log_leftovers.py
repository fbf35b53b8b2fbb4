"""Records of removed segments that a power cut may leave at the end of a segment.

ext4 with `data=writeback` may leave blocks of removed files in a growing file; see `record`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from storage.crash_disk import CrashDisk
from storage.test_log_holes import old_record

from saros_storage.base.errors import CorruptFile
from saros_storage.folder_check import sound_segments
from saros_storage.io.disk import LocalDisk
from saros_storage.log import Durability, LogOptions, SegmentedLog, SegmentName
from saros_storage.log.record import PendingRecord, heads, scan

SALT, OTHER = 0x9F3A6C01, 0x5D20B7E4
NAMES = [b"%d" % number for number in range(1, 10)]


def records(first: int, last: int, salt: int, *, together: bool = False) -> bytes:
    """Return records of the same size, which were fsynced one by one or, with `together`, all at once."""
    return b"".join(
        b"".join(PendingRecord.of(3, 7, [NAMES[n - 1]]).encode(n, first - 1 if together else n - 1, salt))
        for n in range(first, last + 1)
    )


def payloads_of(data: bytes, salt: int) -> list[bytes]:
    """Return the payloads that a log finds in its only segment. Raises CorruptFile."""
    _, found = SegmentedLog.open("log", CrashDisk.of({f"log/{SegmentName(1, salt)}": data}), LogOptions())
    return [bytes(record.payload) for record in found]


def test_a_segment_ends_where_the_records_of_another_one_begin_at_the_same_places() -> None:
    leftover = records(1, 9, OTHER)
    assert payloads_of(leftover, OTHER) == NAMES
    for count in range(10):
        own = records(1, count, SALT)
        assert payloads_of(own + leftover[len(own) :], SALT) == NAMES[:count]


def test_records_of_a_segment_without_a_salt_do_not_count_either() -> None:
    old = b"".join(old_record(n, name) for n, name in enumerate(NAMES, 1))
    for leftover in (records(1, 9, 0), old):
        assert payloads_of(leftover, 0) == NAMES
        for count in range(9):
            own = records(1, count, SALT)
            assert payloads_of(own + leftover[len(own) :], SALT) == NAMES[:count]
            assert payloads_of(own + bytes(32) + leftover[len(own) + 32 :], SALT) == NAMES[:count]


def test_records_of_another_segment_are_no_evidence_that_a_torn_record_was_fsynced() -> None:
    own = records(1, 3, SALT)
    for torn in (b"", bytes(32), records(4, 4, SALT)[:24] + b"?" * 8):
        for later in (records(5, 9, OTHER), records(7, 9, 0)):
            assert payloads_of(own + torn + later, SALT) == NAMES[:3]


def test_its_own_later_records_are_evidence_also_among_those_of_others() -> None:
    own = records(1, 9, SALT)
    for place in range(8):
        with pytest.raises(CorruptFile, match="a record of the log is damaged"):
            payloads_of(
                own[: 32 * place] + records(1, 9, OTHER)[32 * place : 32 * place + 32] + own[32 * place + 32 :], SALT
            )


def test_any_number_of_others_records_ends_the_search_without_a_verdict_of_damage() -> None:
    """An earlier data folder in the same place had a longer log."""
    draft = PendingRecord.of(3, 7, [b"8 bytes."])
    leftover = b"".join(b"".join(draft.encode(n, n - 1, OTHER)) for n in range(100, 20_100))
    found = scan(memoryview(records(1, 3, SALT) + leftover), 1, SALT)
    assert (3, 96, False) == (len(found.records), found.end, found.damaged)


def test_a_record_whose_short_check_fits_by_chance_is_told_by_its_checksum() -> None:
    mine = records(4, 4, SALT)
    other, leftover = next(
        (salt, record) for salt in range(1, 1 << 22) if (record := records(4, 4, salt))[14:16] == mine[14:16]
    )
    assert 1 == len(scan(memoryview(leftover), 4, other).records)
    assert payloads_of(records(1, 3, SALT) + leftover, SALT) == NAMES[:3]
    assert payloads_of(records(1, 3, SALT) + bytes(32) + leftover, SALT) == NAMES[:3]


def test_heads_end_there_too() -> None:
    for leftover in (records(1, 9, OTHER), b"".join(old_record(n, name) for n, name in enumerate(NAMES, 1))):
        data = records(1, 4, SALT) + leftover[4 * 32 :]
        found = heads(lambda offset, count, data=data: data[offset : offset + count], 0, 1, SALT)
        assert [1, 2, 3, 4] == [head.index for head in found]


def test_a_log_goes_on_where_leftovers_were_and_the_check_of_a_folder_sees_none(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    log, _ = SegmentedLog.open(str(folder), LocalDisk(), LogOptions())
    for name in NAMES[:3]:
        log.wait(log.append(3, 7, [name]))
    log.close()
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes() + records(4, 9, OTHER))
    ((_, found),) = sound_segments(str(tmp_path), LocalDisk())
    assert 3 == len(found)
    again, found = SegmentedLog.open(str(folder), LocalDisk(), LogOptions())
    assert 3 == len(found)
    again.wait(again.append(3, 7, [b"new"]))
    again.close()
    _, found = SegmentedLog.open(str(folder), LocalDisk(), LogOptions())
    assert [*NAMES[:3], b"new"] == [bytes(record.payload) for record in found]


# ---------------------------------------------------------------------- names and salts


def test_every_segment_has_another_salt() -> None:
    disk = CrashDisk()
    log, _ = SegmentedLog.open("log", disk, LogOptions(Durability.OS, segment_bytes=1))
    for name in NAMES:
        log.wait(log.append(3, 7, [name]))
    names = [SegmentName.of(path) for path, _ in log.segments()]
    assert list(range(1, 10)) == [name.first_index for name in names]
    assert 9 == len({name.salt for name in names} - {0})


@pytest.mark.parametrize("salt", [0, SALT])
def test_a_segment_without_records_gets_another_salt_before_it_gets_records(salt: int) -> None:
    """A torn record of the segment must not reappear in the blocks of a later record."""
    torn = records(1, 1, salt)[:-9]
    disk = CrashDisk.of({f"log/{SegmentName(1, salt)}": torn})
    log, _ = SegmentedLog.open("log", disk, LogOptions())
    log.wait(log.append(3, 7, [b"new"]))
    log.close()
    ((path, data),) = disk.files.items()
    name = SegmentName.of(path)
    assert (1, True) == (name.first_index, name.salt not in (0, salt))
    assert [b"new"] == payloads_of(data, name.salt)


def test_no_crash_leaves_two_segments_for_the_same_records() -> None:
    disk = CrashDisk.of({f"log/{SegmentName(1, SALT)}": records(1, 2, SALT), f"log/{SegmentName(3, SALT)}": b"torn"})
    disk.keeps_pictures = True
    log, _ = SegmentedLog.open("log", disk, LogOptions())
    log.wait(log.append(3, 7, [b"new"]))
    tried = 0
    for picture in disk.pictures:
        for _, found in picture.crashes():
            tried += 1
            assert 2 == len(found.list("log"))
            again, kept = SegmentedLog.open("log", found, LogOptions())
            assert [*NAMES[:2], b"new"][: len(kept)] == [bytes(record.payload) for record in kept]
            assert again.next_index in (3, 4)
    assert tried > 10


def test_a_segment_of_an_earlier_version_is_read_and_later_records_go_into_one_with_a_salt() -> None:
    disk = CrashDisk.of({f"log/{1:020}.log": records(1, 3, 0)})
    log, found = SegmentedLog.open("log", disk, LogOptions())
    assert NAMES[:3] == [bytes(record.payload) for record in found]
    log.wait(log.append(3, 7, [b"new"]))
    log.close()
    old, new = map(SegmentName.of, disk.files)
    assert (SegmentName(1, 0), 4, True) == (old, new.first_index, new.salt > 0)
    _, found = SegmentedLog.open("log", disk, LogOptions())
    assert [*NAMES[:3], b"new"] == [bytes(record.payload) for record in found]


@pytest.mark.parametrize("name", ["1-.log", "1-9F3A6C01.log", "1-9f3a6c01-2.log", "x.log", "-9f3a6c01.log"])
def test_a_name_of_another_form_is_an_error(name: str) -> None:
    with pytest.raises(CorruptFile, match="not the name of a log segment"):
        SegmentedLog.open("log", CrashDisk.of({f"log/{name}": b""}), LogOptions())


def test_a_salt_is_written_with_all_its_digits() -> None:
    assert "00000000000000000042-00000abc.log" == str(SegmentName(42, 0xABC))
    assert SegmentName(42, 0xABC) == SegmentName.of("log/00000000000000000042-00000abc.log")
    assert SegmentName(42, 0) == SegmentName.of(str(SegmentName(42, 0)))
