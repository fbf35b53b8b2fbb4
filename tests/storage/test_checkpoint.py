"""Captures have exactly the chosen data of a region at one moment. Later changes do not affect them.

No links to files are left over.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from few_files import few_files
from manual_clock import LateClock
from msgspec.structs import replace
from storage.crash_disk import CrashDisk

from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import CorruptFile
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.checkpoint import fetch
from saros_storage.checkpoint import registry as shelf_module
from saros_storage.checkpoint.checkpoint import Checkpoint, LogPiece, decode_capture, encode_capture
from saros_storage.checkpoint.fetch import pull_files, pull_partitions
from saros_storage.checkpoint.registry import CheckpointRegistry, NoSuchCheckpoint
from saros_storage.folder.manifest import Manifest, decode_manifest
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import LocalDisk
from saros_storage.partition.partition_files import save_manifests
from saros_storage.scan.reading import TimeRange
from saros_storage.scan.snapshot import Chosen, everything
from saros_storage.schema import CreateDatabase, CreateSeries, SeriesSchema
from saros_storage.store import Store

SLICE = 100


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    options = StoreOptions(time_partition_interval=SLICE, durability="os", compaction=False)
    made = Store.open(str(tmp_path / "data"), options, LocalDisk(), SystemClock())
    series = (SeriesSchema("x", DataType.INT64, Encoding.PLAIN, Compressor.UNCOMPRESSED),)
    for database in ("root.a", "root.b"):
        made.change_schema([CreateDatabase(database), CreateSeries(f"{database}.d", False, series)])
    yield made
    made.close()


def write(store: Store, device: str, *times: int) -> None:
    at = np.array(times, np.int64)
    store.write([Tablet(device, ("x",), at, (Column(DataType.INT64, at * 10),), False)])


def take(store: Store, shelf: CheckpointRegistry, chosen: Chosen = everything) -> tuple[bytes, Checkpoint]:
    region = store._region
    region.flush_chosen(chosen)
    with region.flusher.folders:
        with region.lock:
            capture = region.capture(chosen)
        return (id_ := shelf.put(capture)), shelf.capture(id_)


def keys(capture: Checkpoint) -> list[tuple[str, int]]:
    return sorted((p.manifest.database, p.slice) for p in capture.partitions)


def test_only_what_is_chosen_is_flushed_and_captured(store: Store, tmp_path: Path) -> None:
    write(store, "root.a.d", 1, 150)
    write(store, "root.b.d", 1, 150)
    shelf = CheckpointRegistry(str(tmp_path / "shelf"), LocalDisk(), SystemClock())
    _, capture = take(store, shelf, lambda database, number: (database, number) == ("root.a", 1))
    assert [("root.a", 1)] == keys(capture)
    assert {("root.a", 1)} == {(p.database, p.slice) for p in store.partitions() if p.files}
    assert capture.index == capture.reached == store._region.partitions.applied
    assert b"root.b" in capture.schema


def test_files_are_those_of_the_moment_whatever_comes_then(store: Store, tmp_path: Path) -> None:
    write(store, "root.a.d", 1, 2)
    store.flush()
    store.delete(["root.a.d.x"], TimeRange(2, 3))
    shelf = CheckpointRegistry(str(tmp_path / "shelf"), LocalDisk(), SystemClock())
    id_, capture = take(store, shelf)
    before = {file.number: shelf.read(id_, file.number, 0) for file in capture.files()}
    write(store, "root.a.d", 1, 3)
    store.merge(full=True)
    store.delete_database("root.a")
    assert before == {file.number: shelf.read(id_, file.number, 0) for file in capture.files()}
    names = [(f.database, f.slice, f.name.partition("/")[0], f.size, len(before[f.number])) for f in capture.files()]
    assert [("root.a", 0, "seq", len(before[n]), len(before[n])) for n in (0, 1)] == names
    assert [("root.a.d.x", TimeRange(2, 3))] == [(t.pattern, t.time) for t in capture.partitions[0].manifest.tombstones]
    assert not any("/tmp" in f.name or f.name.startswith("/") for f in capture.files())


def test_entries_that_come_during_the_flush_do_not_belong_to_the_index(store: Store) -> None:
    write(store, "root.a.d", 1)
    region = store._region
    region.flush_chosen(everything)
    write(store, "root.b.d", 1)
    last = region.partitions.applied  # before this entry the log may have a clock mark, which belongs to no database
    with region.flusher.folders, region.lock:
        capture = region.capture(everything)
    assert (last - 1, last) == (capture.index, capture.reached)
    assert [("root.a", 0)] == keys(capture)


def test_a_capture_is_what_it_was_after_it_was_sent(store: Store, tmp_path: Path) -> None:
    write(store, "root.a.d", 1, 150, 7)
    shelf = CheckpointRegistry(str(tmp_path / "shelf"), LocalDisk(), SystemClock())
    id_, capture = take(store, shelf)
    assert capture == decode_capture(encode_capture(capture)) == decode_capture(shelf.listing(id_))


@pytest.mark.parametrize("name", ["../x.tsfile", "/etc/passwd", "1-1-0-0.tsfile/../..", "", "a\x00b", "seq"])
def test_a_name_that_leads_elsewhere_is_refused(store: Store, tmp_path: Path, name: str) -> None:
    write(store, "root.a.d", 1)
    _, capture = take(store, CheckpointRegistry(str(tmp_path / "shelf"), LocalDisk(), SystemClock()))
    entry = replace(capture.partitions[0].manifest.files[0], name=name)
    bad = dataclasses.replace(capture.partitions[0], manifest=replace(capture.partitions[0].manifest, files=(entry,)))
    with pytest.raises(CorruptFile, match="invalid file name"):
        decode_capture(encode_capture(replace(capture, partitions=(bad,))))


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"[" * 100_000, b'{"index": "x"}', b"\xff"])
def test_what_is_no_capture_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFile):
        decode_capture(data)


@pytest.mark.parametrize("salt", [-1, 1 << 32, 10**30])
def test_a_salt_out_of_range_is_refused(salt: int) -> None:
    capture = Checkpoint(1, 1, 1, b"", log=(LogPiece(1, 1, 32, salt),))
    with pytest.raises(CorruptFile, match="a salt of the log is out of range"):
        decode_capture(encode_capture(capture))


def test_links_go_when_they_are_let_go_forgotten_or_the_process_is_new(store: Store, tmp_path: Path) -> None:
    write(store, "root.a.d", 1)
    clock, folder = LateClock(), tmp_path / "shelf"
    shelf = CheckpointRegistry(str(folder), LocalDisk(), clock)
    released, _ = take(store, shelf)
    shelf.release(released)
    shelf.release(released)
    assert [] == list(folder.iterdir())
    forgotten, _ = take(store, shelf)
    clock.later_ns = 599_000_000_000
    assert shelf.read(forgotten, 0, 0)
    clock.later_ns += 599_000_000_000
    shelf.expire()
    assert shelf.read(forgotten, 0, 0)
    clock.later_ns += 601_000_000_000
    shelf.expire()
    for id_ in (released, forgotten):
        with pytest.raises(NoSuchCheckpoint):
            shelf.read(id_, 0, 0)
    assert [] == list(folder.iterdir())
    crashed, _ = take(store, shelf)
    shelf = CheckpointRegistry(str(folder), LocalDisk(), clock)
    with pytest.raises(NoSuchCheckpoint):
        shelf.listing(crashed)
    assert not folder.exists()


def test_pulling_finds_a_flipped_byte(store: Store, tmp_path: Path) -> None:
    write(store, "root.a.d", 1, 2, 3)
    shelf = CheckpointRegistry(str(tmp_path / "shelf"), LocalDisk(), SystemClock())
    id_, capture = take(store, shelf)
    target = str(tmp_path / "pulled")
    pull_partitions(partial(shelf.read, id_), capture, target, LocalDisk())
    assert 1 == len(list((tmp_path / "pulled" / "root.a" / "0" / "seq").glob("*.tsfile")))

    def flipped(number: int, offset: int, count: int) -> bytes:
        data = bytearray(shelf.read(id_, number, offset, count))
        data[len(data) // 2] ^= 1
        return bytes(data)

    with pytest.raises(CorruptFile, match="checksum"):
        pull_partitions(flipped, capture, target, LocalDisk())


@pytest.mark.parametrize("piece_bytes", [64, 1_000, 1_500, 1 << 20])
def test_files_smaller_and_larger_than_a_piece_come_as_they_are(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece_bytes: int
) -> None:
    for module in (fetch, shelf_module):
        monkeypatch.setattr(module, "PIECE_BYTES", piece_bytes)
    for number, rows in enumerate((1, 2, 90, 1, 60, 1)):
        write(store, "root.a.d", *range(100 * number, 100 * number + rows))
    shelf = CheckpointRegistry(str(tmp_path / "shelf"), LocalDisk(), SystemClock())
    id_, capture = take(store, shelf)
    asked: list[int] = []

    def read(number: int, offset: int, count: int) -> bytes:
        asked.append(count)
        piece = shelf.read(id_, number, offset, count)
        assert len(piece) <= piece_bytes
        return piece

    pull_files(read, capture.files(), str(tmp_path / "pulled"), LocalDisk(), 3)
    files = list(capture.files())
    assert len(files) == 12
    for file in files:
        there = (tmp_path / "shelf" / id_.hex() / str(file.number)).read_bytes()
        assert (tmp_path / "pulled" / str(file.number)).read_bytes() == there
    if piece_bytes == 1 << 20:
        assert asked == [12]


def test_many_small_files_are_pulled_by_who_may_have_few_open(store: Store, tmp_path: Path) -> None:
    write(store, "root.a.d", *range(0, 15_000, 100))
    shelf = CheckpointRegistry(str(tmp_path / "shelf"), LocalDisk(), SystemClock())
    id_, capture = take(store, shelf)
    assert len(list(capture.files())) == 300
    with few_files(60):
        pull_files(partial(shelf.read, id_), capture.files(), str(tmp_path / "pulled"), LocalDisk(), 3)


def test_what_was_pulled_survives_a_power_cut(store: Store, tmp_path: Path) -> None:
    write(store, "root.a.d", *range(0, 500, 50))
    write(store, "root.b.d", 1)
    shelf = CheckpointRegistry(str(tmp_path / "shelf"), LocalDisk(), SystemClock())
    id_, capture = take(store, shelf)
    disk = CrashDisk()
    disk.make_folder("groups", durably=False)
    pull_partitions(partial(shelf.read, id_), capture, "groups/pulled", disk)
    there = disk.after_power_cut().files
    for partition in capture.partitions:
        folder = f"groups/pulled/{partition.manifest.database}/{partition.slice}"
        assert decode_manifest("", there[f"{folder}/MANIFEST"]) == partition.manifest
        for file in partition.files(0):
            assert zlib.crc32(there[f"{folder}/{file.name}"]) == file.crc32


def test_manifests_in_new_folders_survive_a_power_cut() -> None:
    disk = CrashDisk()
    disk.make_folder("data", durably=False)
    folders = [f"data/root.{name}/{number}" for name in "ab" for number in range(2)]
    save_manifests(disk, {folder: Manifest("root.a", 1) for folder in folders})
    assert {f"{folder}/MANIFEST" for folder in folders} == set(disk.after_power_cut().files)
