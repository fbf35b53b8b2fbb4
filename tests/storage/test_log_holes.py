"""Holes in a log: the log is truncated at a hole that a power cut left in unacknowledged data; other holes are damage.

`test_raft_log_crashes` and `test_store_crashes` cover the holes that a power cut may leave. The other cases are tested
here: damage, saturated and old records, payloads that look like records, and bytes that make the search expensive.
"""

from __future__ import annotations

import random
import struct
import time
import zlib
from pathlib import Path

import pytest
from storage.crash_disk import CrashDisk

from saros_storage.base.errors import CorruptFile, LogFailed
from saros_storage.io.disk import LocalDisk
from saros_storage.log import Durability, LogOptions, SegmentedLog, SegmentName, segmented_log
from saros_storage.log.record import HEADER_BYTES, PendingRecord, scan

SALT = 0x9F3A6C01
PAYLOADS = [b"", b"one", b"two and a half records", b"x" * 70, b"last"]


@pytest.fixture(autouse=True)
def _known_salt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segmented_log, "new_salt", lambda: SALT)


def written(*batches: list[bytes]) -> bytes:
    """Write batches of records, each of which is fsynced before the next; return the log's only segment."""
    disk = CrashDisk()
    log, _ = SegmentedLog.open("log", disk, LogOptions())
    for batch in batches:
        tickets = [log.append(3, 7, [payload]) for payload in batch]
        for ticket in tickets:
            log.wait(ticket)
    log.close()
    (data,) = disk.files.values()
    return data


def old_record(index: int, payload: bytes) -> bytes:
    """Return a record in the old format, which does not state which earlier records were fsynced."""
    crc = zlib.crc32(payload, zlib.crc32(struct.pack("<QII", index, 3, 7)))
    return struct.pack("<IIQII", len(payload), crc, index, 3, 7) + payload + bytes(-len(payload) & 7)


def payloads_of(data: bytes, salt: int = SALT) -> list[bytes]:
    """Return the payloads that a log finds. Raises CorruptFile."""
    _, records = SegmentedLog.open("log", CrashDisk.of({f"log/{SegmentName(1, salt)}": data}), LogOptions())
    return [bytes(record.payload) for record in records]


def padding(data: bytes) -> set[int]:
    """Return the positions of bytes that pad records."""
    found = set()
    position = 0
    for record in scan(memoryview(data), 1, SALT).records:
        end = position + HEADER_BYTES + len(record.payload)
        position += record.size_bytes
        found |= set(range(end, position))
    return found


def test_no_byte_of_an_acknowledged_record_can_go_bad_unseen_but_of_the_last_batch() -> None:
    data = written(*([payload] for payload in PAYLOADS))
    last = len(data) - HEADER_BYTES - 8
    harmless = padding(data)
    for place in range(len(data)):
        for bit in range(8):
            bad = bytearray(data)
            bad[place] ^= 1 << bit
            if place in harmless:
                assert payloads_of(bytes(bad)) == PAYLOADS
            elif place >= last:
                assert payloads_of(bytes(bad)) == PAYLOADS[:-1]
            else:
                with pytest.raises(CorruptFile, match="a record of the log is damaged"):
                    payloads_of(bytes(bad))


@pytest.mark.parametrize("fill", [b"\0", b"\xff"])
def test_blocks_that_go_bad_are_seen_wherever_they_begin(fill: bytes) -> None:
    data = written(*([payload] for payload in PAYLOADS))
    for start in range(0, len(data) - 100, 8):
        bad = data[:start] + fill * 64 + data[start + 64 :]
        with pytest.raises(CorruptFile):
            payloads_of(bad)


def test_records_that_are_cut_out_are_missed() -> None:
    data = written(*([payload] for payload in PAYLOADS))
    ends = [0]
    for record in scan(memoryview(data), 1, SALT).records:
        ends.append(ends[-1] + record.size_bytes)
    for first in range(len(PAYLOADS) - 1):
        for stop in range(first + 1, len(PAYLOADS)):
            with pytest.raises(CorruptFile):
                payloads_of(data[: ends[first]] + data[ends[stop] :])


def test_a_batch_that_was_fsynced_with_the_bad_record_does_not_tell_but_the_next_one_does() -> None:
    one, two = written(PAYLOADS), written(PAYLOADS, [b"next"])
    bad = HEADER_BYTES + 8 + 4  # in the second record
    assert PAYLOADS[:1] == payloads_of(one[:bad] + b"\xff" * 4 + one[bad + 4 :])
    with pytest.raises(CorruptFile):
        payloads_of(two[:bad] + b"\xff" * 4 + two[bad + 4 :])


@pytest.mark.slow
def test_after_so_many_without_a_fsync_nothing_is_known() -> None:
    drafts = [PendingRecord.of(3, 7, [b"%d" % n]) for n in range(65_600)]
    parts = [b"".join(draft.encode(index, 0, SALT)) for index, draft in enumerate(drafts, 1)]
    cut = scan(memoryview(b"".join((*parts[:5], bytes(len(parts[5])), *parts[6:]))), 1, SALT)
    assert (5, False) == (len(cut.records), cut.damaged)
    parts.append(b"".join(PendingRecord.of(3, 7, [b"synced"]).encode(len(parts) + 1, len(parts), SALT)))
    damaged = scan(memoryview(b"".join((*parts[:5], bytes(len(parts[5])), *parts[6:]))), 1, SALT)
    assert (5, True) == (len(damaged.records), damaged.damaged)


def test_an_old_log_opens_and_goes_on_and_its_damage_is_seen_as_before(tmp_path: Path) -> None:
    old = [old_record(index, payload) for index, payload in enumerate(PAYLOADS, 1)]
    (tmp_path / f"{1:020}.log").write_bytes(b"".join(old) + bytes(100))
    log, records = SegmentedLog.open(str(tmp_path), LocalDisk(), LogOptions())
    assert PAYLOADS == [bytes(record.payload) for record in records]
    log.wait(log.append(3, 7, [b"new"]))
    log.close()
    _, records = SegmentedLog.open(str(tmp_path), LocalDisk(), LogOptions())
    assert [*PAYLOADS, b"new"] == [bytes(record.payload) for record in records]
    assert PAYLOADS[:4] == payloads_of(b"".join(old)[:-9], salt=0)
    bad = bytearray(b"".join(old))
    bad[len(old[0]) + HEADER_BYTES] ^= 1
    with pytest.raises(CorruptFile):
        payloads_of(bytes(bad), salt=0)


def test_a_torn_record_whose_payload_looks_like_records_is_cut_off() -> None:
    draft = PendingRecord.of(3, 7, [b"forged"])
    forged = b"".join(b"".join(draft.encode(index, index - 1, SALT)) for index in range(2, 40))
    data = written([b"first"], [forged + b"." * 100])
    assert [b"first"] == payloads_of(data[:-60])
    assert [b"first"] == payloads_of(data[:-60] + bytes(600))


def test_a_search_that_finds_only_what_looks_like_headers_ends_soon() -> None:
    header = bytearray(b"".join(PendingRecord.of(3, 7, [bytes(1 << 20)]).encode(50, 49, SALT))[:HEADER_BYTES])
    header[4] ^= 1  # a byte of the crc32
    data = memoryview(written([b"first"], [b"second"])[:-8] + bytes(header) * 200_000)
    started = time.thread_time()
    assert scan(data, 1, SALT).damaged
    assert time.thread_time() - started < 1


def test_the_search_crosses_the_borders_of_its_pieces() -> None:
    chance = random.Random(3)
    last = b"".join(PendingRecord.of(3, 7, [b"last"]).encode(9, 8, SALT))
    for place in ((1 << 21) - 16, (1 << 21) - 8, 1 << 21, 5 << 20):
        junk = chance.randbytes(place)
        assert scan(memoryview(junk + last), 1, SALT).damaged
        assert not scan(memoryview(junk), 1, SALT).damaged


class Interrupting(CrashDisk):
    """A file that acts as if Ctrl-C were pressed while a record is being written."""

    is_pressed = False

    def _failure_of(self, kind: str) -> int:
        if self.is_pressed and kind == "write":
            self.is_pressed = False
            raise KeyboardInterrupt
        return super()._failure_of(kind)


def test_a_write_that_is_interrupted_ends_the_log_since_its_records_may_be_there() -> None:
    disk = Interrupting()
    log, _ = SegmentedLog.open("log", disk, LogOptions(Durability.OS))
    log.wait(log.append(3, 7, [b"first"]))
    disk.is_pressed = True
    with pytest.raises(KeyboardInterrupt):
        log.wait(log.append(3, 7, [b"second"]))
    with pytest.raises(LogFailed):
        log.wait(log.append(3, 7, [b"third"]))
    _, records = SegmentedLog.open("log", disk, LogOptions(Durability.OS))
    assert [b"first"] == [bytes(record.payload) for record in records]
