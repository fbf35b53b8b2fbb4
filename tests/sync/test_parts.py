"""The small parts of the sync tool: records, owners, missing schema, the rate limit, and reads of a growing log."""

from __future__ import annotations

import errno

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from storage.crash_disk import CrashDisk
from storage.store_model import delete_database, write_rows
from storage.store_opening import FOLDER, OPTIONS, open_store
from sync.sync_world import reads

from saros_storage.base.errors import CorruptFile
from saros_storage.base.types import DEFAULT_ENCODING, Compressor, DataType
from saros_storage.io.rate_limit import RateLimit
from saros_storage.schema import CreateDatabase, CreateSeries, DeviceSchema, SchemaTree, SeriesSchema
from saros_sync.framing import decode_framed, encode_framed
from saros_sync.journal import Journal, JournalRecord, decode_notes, encode_note
from saros_sync.receiver.ownership import claims
from saros_sync.receiver.reconcile import refused, repair
from saros_sync.sender.live import SchemaFollower
from saros_sync.sender.sending import retry_delay_s

NOTES = st.builds(
    JournalRecord, st.integers(1, 99), st.text(max_size=9), st.tuples(st.text(max_size=20), st.integers(0, 1 << 60))
)


@settings(max_examples=40)
@given(st.lists(NOTES, max_size=5), st.binary(max_size=40), st.data())
def test_a_torn_or_foreign_tail_is_no_record(notes: list[JournalRecord], tail: bytes, data: st.DataObject) -> None:
    whole = b"".join(map(encode_note, notes))
    assert notes == decode_notes(whole)[0]
    cut = data.draw(st.integers(0, len(whole)))
    found, size = decode_notes(whole[:cut] + bytes(len(tail)))
    assert found == notes[: len(found)]
    assert size <= cut
    assert len(found) == len(notes) or size + len(encode_note(notes[len(found)])) > cut


def test_a_journal_forgets_other_rounds_and_cuts_its_tail() -> None:
    disk = CrashDisk()
    disk.make_folder("x")
    disk.place(
        "x/log", encode_note(JournalRecord(1, "start")) + encode_note(JournalRecord(2, "start")) + b"\x09\0\0\0torn"
    )
    journal = Journal(disk, "x/log")
    assert [JournalRecord(2, "start")] == journal.notes
    journal.add(JournalRecord(2, "sent", ("a", 1)))
    assert [JournalRecord(2, "start"), JournalRecord(2, "sent", ("a", 1))] == Journal(disk, "x/log").notes
    journal.end()
    assert (0, []) == (Journal(disk, "x/log").round, Journal(disk, "x/log").notes)


@pytest.mark.parametrize("behind", [0, 1, 2, 3, 4])
def test_a_record_that_a_failing_disk_cut_short_hides_none_that_come_later(behind: int) -> None:
    disk = CrashDisk()
    disk.make_folder("x")
    journal = Journal(disk, "x/log")
    disk.fails_at = (disk.operations + behind, errno.ENOSPC)
    notes = [JournalRecord(1, "start"), JournalRecord(1, "good", ("a", 1)), JournalRecord(1, "done", ("a",))]
    said = []
    for note in notes:
        try:
            journal.add(note)
        except OSError:
            journal.add(note)
        said.append(note)
        assert said == Journal(disk.after_power_cut(), "x/log").notes
    assert disk.failed


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1], lambda d: d + b"x", lambda d: d.replace(b"7", b"8"), lambda _: b""]
)
def test_a_damaged_file_is_not_read(damage: object) -> None:
    data = encode_framed("status", {"a": 7})
    assert {"a": 7} == decode_framed("f", "status", data)
    with pytest.raises(CorruptFile):
        decode_framed("f", "status", damage(data))  # type: ignore[operator]
    with pytest.raises(CorruptFile):
        decode_framed("f", "receiver", data)


def test_devices_are_granted_first_come_first_served() -> None:
    found = claims(
        "b",
        ["x", "y", "z", "w", "v"],
        {"x": "a", "y": "b"},
        {"y", "z"}.__contains__,
        {"x", "y", "z", "v"}.__contains__,
        str,
    )
    assert {"y", "v"} == found.granted
    assert [("x", "a"), ("z", "this server"), ("w", "")] == [(c.device, c.owner) for c in found.conflicts]


def series(name: str, type_: DataType = DataType.INT64) -> SeriesSchema:
    return SeriesSchema(name, type_, DEFAULT_ENCODING[type_], Compressor.LZ4)


def device(path: str, *found: SeriesSchema, aligned: bool = False) -> DeviceSchema:
    return DeviceSchema(path, "root.a", aligned, {s.measurement: s for s in found})


def tree_with(*devices: DeviceSchema) -> SchemaTree:
    tree = SchemaTree()
    tree.apply(CreateDatabase("root.a"))
    for found in devices:
        tree.apply(CreateSeries(found.path, found.aligned, tuple(found.series.values())))
    return tree


HAVE = [
    device("root.a.d", series("x"), series("y")),
    device("root.a.d", series("x", DataType.TEXT), replace(series("z"), alias="other")),
    device("root.a.d", series("x"), series("y"), aligned=True),
    device("root.a.d", replace(series("x"), tags={"a": "b"})),
]


@pytest.mark.parametrize("have", [None, *HAVE])
@pytest.mark.parametrize("want", HAVE)
def test_a_repaired_schema_has_the_device_as_it_is_wanted_and_needs_no_repair(
    have: DeviceSchema | None, want: DeviceSchema
) -> None:
    other = device("root.a.e", series("x"))
    tree = tree_with(other) if have is None else tree_with(other, have)
    for changes in (lambda r: r.drops, lambda r: r.creates):
        for change in changes(repair(tree, [want], ["root.a.none"])):
            tree.check(change)
            tree.apply(change)
    found = tree.device("root.a.d")
    assert found is not None
    assert (want.aligned, dict(want.series)) == (found.aligned, dict(found.series))
    assert tree.device("root.a.e") is not None
    assert ((), ()) == (repair(tree, [want], []).drops, repair(tree, [want], []).creates)


def test_a_device_below_a_series_is_refused_and_others_are_not() -> None:
    tree = tree_with(device("root.a.d", series("x")))
    new = [device("root.a.d.x.y", series("z")), device("root.a.f", series("z"))]
    assert ["root.a.d.x.y"] == list(refused(tree, new))


def test_a_pace_is_kept_over_any_time() -> None:
    pace, now, sent = RateLimit(1_000), 0, 0
    for size in (500, 2_000, 1, 0, 700, 3_000):
        now += int(pace.wait_s(now, size) * 1e9)
        assert sent <= 1_000 * now // 1_000_000_000 + 1
        sent += size
    assert 0.0 == RateLimit(0).wait_s(0, 1 << 40)
    assert [0.5, 1.0, 2.0, 60.0, 60.0] == [retry_delay_s(n) for n in (1, 2, 3, 9, 10_000)]


def test_the_schema_is_followed_through_segments_that_come_and_go() -> None:
    disk = CrashDisk()
    store = open_store(disk, replace(OPTIONS, segment_bytes=300))
    follower = SchemaFollower(FOLDER, disk, reads(disk))
    assert b"" == follower.dump()
    for number in range(12):
        write_rows("root.a.d1", [number], number, ("x", "y", "t")[: 1 + number % 3]).run(store)
        if number % 4 == 3:
            delete_database("root.a").run(store)
        if number % 5 == 4:
            store.flush()
        assert store.schema.dump() == follower.dump()
        again = SchemaFollower(FOLDER, disk, reads(disk))
        assert store.schema.dump() == again.dump()
    store.close()


def logged(*widths: int, rows: int) -> tuple[CrashDisk, bytes, list[bytes]]:
    """Write `rows` rows of each width; return the disk, its log, and the schema's dumps before and after each write."""
    disk = CrashDisk()
    store = open_store(disk, replace(OPTIONS, segment_bytes=1 << 30))
    dumps = [store.schema.dump()]
    for number, width in enumerate(widths):
        write_rows("root.a.d1", range(number, number + rows), number, ("x", "y", "t")[:width]).run(store)
        dumps.append(store.schema.dump())
    (name,) = disk.list(f"{FOLDER}/log")
    log = bytes(disk.map(f"{FOLDER}/log/{name}"))
    store.close()
    return disk, log, dumps


def test_what_is_in_the_midst_of_being_written_is_followed_when_it_is_there() -> None:
    disk, log, dumps = logged(1, 1, 2, 3, 3, rows=1)
    shown = 0

    def read(_: str, offset: int, count: int) -> bytes:
        return (log[:shown] + bytes(len(log) - shown))[offset : offset + count]

    seen = set()
    for cut in range(0, len(log.rstrip(b"\0")) + 8, 4):
        shown = cut
        follower = SchemaFollower(FOLDER, disk, read)
        seen.add(follower.dump())
        shown = len(log)
        assert dumps[-1] == follower.dump()
    assert set(dumps) == seen


def test_rows_that_are_fsynced_are_not_read_for_the_schema_and_their_damage_hides_none() -> None:
    disk, log, dumps = logged(1, 1, 2, 2, 3, rows=20_000)
    damaged, count_read = bytearray(log), 0
    damaged[log.index(np.arange(1, 20_001).astype("<i8").tobytes()) + 5_000] ^= 1

    def read(_: str, offset: int, count: int) -> bytes:
        nonlocal count_read
        count_read += count
        return bytes(damaged[offset : offset + count])

    assert dumps[-1] == SchemaFollower(FOLDER, disk, read).dump()
    assert count_read < len(log.rstrip(b"\0"))


def test_a_change_of_the_schema_that_is_damaged_is_not_taken_over() -> None:
    disk, log, dumps = logged(1, 2, 3, rows=1)
    for place in range(len(log.rstrip(b"\0"))):
        damaged = log[:place] + bytes([log[place] ^ 1]) + log[place + 1 :]
        found = SchemaFollower(FOLDER, disk, lambda _, offset, count, log=damaged: log[offset : offset + count]).dump()
        assert found in dumps
