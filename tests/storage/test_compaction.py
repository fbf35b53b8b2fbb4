"""Compaction changes no query result, even if jobs are interrupted or disks fail.

The tests compare random histories with a dictionary.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from quick_disk import QuickDisk
from storage.test_store import (
    ALIGNED_DEVICE,
    PLAIN_DEVICE,
    TYPES,
    Model,
    creates,
    points,
    ranges,
    read,
    tablet,
    tablets,
)
from waiting import PATIENCE_S, wait_until

import saros_storage.tsfile.reader as reader_module
from saros_storage.base.block import Block, Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import DiskFull, StorageError, StoreClosed
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding, Scalar
from saros_storage.compaction import swap
from saros_storage.compaction.merging import Merge
from saros_storage.folder.manifest import Manifest, decode_manifest
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import File
from saros_storage.scan.reading import ScanRequest, SeriesReader, TimeRange
from saros_storage.schema import CreateSeries, SeriesSchema, SetTtl
from saros_storage.store import Store

ASKED_ONLY = StoreOptions(durability="os", time_partition_interval=10_000, page_rows=3, compaction=False)
EAGER = StoreOptions(
    durability="os",
    time_partition_interval=10_000,
    page_rows=3,
    compaction_files_min=2,
    compaction_bytes_per_second=0,
    compaction_file_bytes=3_000,
)
Answers = dict[tuple[str, ...], list[object]]


def open_store(folder: str | Path, options: StoreOptions = ASKED_ONLY, disk: QuickDisk | None = None) -> Store:
    return Store.open(str(folder), options, disk or QuickDisk(), SystemClock())


def answers(store: Store) -> Answers:
    """Return all points, series by series, and the rows of the aligned device."""
    found: Answers = {(d, n): points(store, d, n) for d in (PLAIN_DEVICE, ALIGNED_DEVICE) for n in TYPES}
    request = ScanRequest(ALIGNED_DEVICE, tuple(TYPES), tuple(TYPES.values()), True)
    return found | {(ALIGNED_DEVICE,): list(read(store, request))}


def expected(model: Model) -> Answers:
    found: Answers = {
        (d, n): sorted(model.series.get((d, n), {}).items()) for d in (PLAIN_DEVICE, ALIGNED_DEVICE) for n in TYPES
    }
    known = {name: model.series.get((ALIGNED_DEVICE, name), {}) for name in TYPES}
    times = sorted({time for column in known.values() for time in column})
    return found | {(ALIGNED_DEVICE,): [(t, tuple(known[n].get(t) for n in TYPES)) for t in times]}


def manifests(folder: str | Path) -> list[Manifest]:
    return [decode_manifest(str(path), path.read_bytes()) for path in sorted(Path(folder).rglob("MANIFEST"))]


def live(folder: str | Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*.tsfile"))


def litter(folder: str | Path) -> list[str]:
    """Return the paths of files in seq/ and unseq/ that no manifest names."""
    named = set()
    for path in Path(folder).rglob("MANIFEST"):
        for entry in decode_manifest(str(path), path.read_bytes()).files:
            file = path.parent / ("seq" if entry.sequence else "unseq") / entry.name
            named |= {str(file), f"{file}.resource"}
    there = {str(path) for kind in ("seq", "unseq") for path in Path(folder).rglob(f"{kind}/*")}
    return sorted(there - named)


def validate(store: Store) -> None:
    for partition in store._region.partitions:
        partition.validate()


def test_a_deletion_that_comes_while_merged_files_are_named_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tombstone stays while there are files with points that it deletes. After that it is not examined again."""
    store = open_store(str(tmp_path), ASKED_ONLY)
    store.change_schema(creates())
    store.write([tablet(PLAIN_DEVICE, range(9), i=range(9))])
    store.flush()
    store.delete([f"{PLAIN_DEVICE}.i"], TimeRange())
    save = swap.save_manifest

    def save_and_delete(*arguments: Any) -> None:
        save(*arguments)
        store.delete([f"{PLAIN_DEVICE}.i"], TimeRange(0, 5))

    monkeypatch.setattr(swap, "save_manifest", save_and_delete)
    store.merge(full=True)
    store.flush()
    assert [()] == [manifest.tombstones for manifest in manifests(str(tmp_path))]
    store.close()


# ---------------------------------------------------------------------------------------------- random histories

DEVICES = st.sampled_from([PLAIN_DEVICE, ALIGNED_DEVICE])
CHANGES = (
    tablets().map(lambda t: ("write", t)),
    tablets().map(lambda t: ("write", t)),
    st.just(("flush",)),
    st.just(("flush",)),
    st.tuples(st.just("delete"), DEVICES, st.sampled_from(["i", "d", "*"]), ranges()),
    st.tuples(st.just("drop"), DEVICES),
)
STEP = st.one_of(*CHANGES, st.tuples(st.just("merge"), st.booleans()), st.just(("reopen",)))


def act(store: Store, model: Model, step: tuple) -> None:
    """Apply a step of a random history to a store and to the model."""
    if step[0] == "write":
        store.write([step[1]])
        model.write(step[1])
    elif step[0] == "delete":
        store.delete([f"{step[1]}.{step[2]}"], step[3])
        model.delete(*step[1:])
    elif step[0] == "drop":
        store.delete_series(f"{step[1]}.d")
        store.change_schema(
            [
                CreateSeries(
                    step[1],
                    step[1] == ALIGNED_DEVICE,
                    (SeriesSchema("d", TYPES["d"], Encoding.GORILLA, Compressor.LZ4),),
                )
            ]
        )
        model.delete(step[1], "d", TimeRange())
    elif step[0] == "flush":
        store.flush()
    else:
        store.merge(full=step[1])


@pytest.mark.slow
@given(st.lists(STEP, min_size=3, max_size=25), st.booleans())
@settings(max_examples=150)
def test_answers_stay_the_same_whatever_is_merged_and_when(steps: list[tuple], eager: bool) -> None:
    folder = tempfile.mkdtemp()
    options = EAGER if eager else ASKED_ONLY
    store = open_store(folder, options)
    model = Model()
    try:
        store.change_schema(creates())
        for step in steps:
            if step[0] == "reopen":
                store.close()
                store = open_store(folder, options)
            else:
                act(store, model, step)
            assert expected(model) == answers(store)
        store.flush()
        store.merge(full=True)
        assert expected(model) == answers(store)
        validate(store)
        if not eager:
            assert all(len(manifest.files) <= 1 for manifest in manifests(folder))
        assert all(not manifest.tombstones for manifest in manifests(folder))
        store.close()
        store = open_store(folder, options)
        assert expected(model) == answers(store)
    finally:
        store.close()
        assert [] == litter(folder)
        shutil.rmtree(folder)


class GateDisk(QuickDisk):
    """A disk that stops a job when the job first uses a file whose name ends with `where`, until `go` is set."""

    def __init__(self) -> None:
        self.where = "never"
        self.reached = threading.Event()
        self.go = threading.Event()

    def map(self, path: str) -> memoryview:
        self._gate(path)
        return super().map(path)

    def create(self, path: str) -> File:
        self._gate(path)
        return super().create(path)

    def replace(self, source: str, target: str) -> None:
        self._gate(source)
        super().replace(source, target)

    def _gate(self, path: str) -> None:
        if path.endswith(self.where) and threading.current_thread().name == "saros-compact":
            self.where = "never"
            self.reached.set()
            assert self.go.wait(60)

    def gate(self, where: str) -> None:
        self.reached.clear()
        self.go.clear()
        self.where = where


#: Ends of file names that stop a job before it reads, when it begins to write, and when it puts its files in place.
BEGUN, CREATED, WRITTEN = ".tsfile", ".tsfile.tmp", ".resource.tmp"


@contextmanager
def merging(store: Store, disk: GateDisk, where: str) -> Iterator[list[BaseException]]:
    """Run a MERGE that pauses at `where` within the context, and completes afterwards."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            store.merge()
        except StorageError as error:
            errors.append(error)

    disk.gate(where)
    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: disk.reached.is_set() or not thread.is_alive())
    try:
        yield errors
    finally:
        disk.go.set()
        thread.join()


MEANWHILE = st.lists(
    st.one_of(
        tablets().map(lambda t: ("write", t)),
        st.just(("flush",)),
        st.tuples(st.just("delete"), DEVICES, st.sampled_from(["i", "d", "*"]), ranges()),
        st.tuples(st.just("drop"), DEVICES),
    ),
    max_size=6,
)


@pytest.mark.slow
@given(st.lists(st.one_of(*CHANGES), min_size=4, max_size=16), MEANWHILE)
@settings(max_examples=80)
def test_what_happens_while_a_job_runs_is_not_lost(steps: list[tuple], meanwhile: list[tuple]) -> None:
    folder = tempfile.mkdtemp()
    disk = GateDisk()
    store = open_store(folder, ASKED_ONLY, disk)
    model = Model()
    try:
        store.change_schema(creates())
        for start in (0, 5):
            act(store, model, ("write", tablet(PLAIN_DEVICE, range(start, start + 9), i=range(9))))
            act(store, model, ("flush",))
        for step in steps:
            act(store, model, step)
        store.flush()
        with merging(store, disk, BEGUN):
            for step in meanwhile:
                act(store, model, step)
            assert expected(model) == answers(store)
        assert expected(model) == answers(store)
        store.close()
        store = open_store(folder, ASKED_ONLY, disk)
        assert expected(model) == answers(store)
        store.flush()
        store.merge()
        assert expected(model) == answers(store)
        store.merge(full=True)
        assert expected(model) == answers(store)
    finally:
        store.close()
        shutil.rmtree(folder)


# ---------------------------------------------------------------------------------------------- directed


def filled(folder: Path, options: StoreOptions = ASKED_ONLY, disk: QuickDisk | None = None) -> Store:
    """Return a store with three files: two that overlap in both devices, and one with later times."""
    store = open_store(folder, options, disk)
    store.change_schema(creates())
    for start, value in ((0, 1), (5, 2), (50, 3)):
        times = range(start, start + 10)
        rows = {"i": [value] * 10, "d": [value / 2] * 10, "t": [None if t % 3 else str(t) for t in times]}
        store.write([tablet(PLAIN_DEVICE, times, **rows), tablet(ALIGNED_DEVICE, times, **rows)])
        store.flush()
    return store


def test_files_become_one_and_the_others_go(tmp_path: Path) -> None:
    store = filled(tmp_path)
    before = answers(store)
    assert 4 == len(live(tmp_path))
    store.merge(["root.other"])
    assert 4 == len(live(tmp_path))
    store.merge(["root.db"])
    assert before == answers(store)
    (name,) = live(tmp_path)
    assert "/seq/" in name
    assert name.endswith("-3-0-1.tsfile")
    assert [] == litter(tmp_path)
    assert 1 == store.status().files
    store.close()
    store = open_store(tmp_path)
    assert before == answers(store)
    store.close()


def test_a_view_that_is_open_keeps_its_files(tmp_path: Path) -> None:
    store = filled(tmp_path)
    before = points(store, PLAIN_DEVICE, "i")
    view, untouched = store.view(), store.view()
    reader = view.open(ScanRequest(PLAIN_DEVICE, ("i",), (DataType.INT32,), False))
    first = reader.next()
    store.delete([f"{PLAIN_DEVICE}.i"], TimeRange())
    store.merge(full=True)
    assert [] == points(store, PLAIN_DEVICE, "i")
    assert before == _rows(reader, first)
    assert before == _rows(untouched.open(ScanRequest(PLAIN_DEVICE, ("i",), (DataType.INT32,), False)))
    view.close()
    untouched.close()
    store.close()


def _rows(reader: SeriesReader, begun: object = None) -> list[tuple[int, Scalar]]:
    """Return all rows of a reader. If the reader has already returned a block, `begun` is this block."""
    rows: list[tuple[int, Scalar]] = []
    block = reader.next() if begun is None else begun
    while isinstance(block, Block):
        rows += zip(block.times.tolist(), block.columns[0].to_list(), strict=True)
        block = reader.next()
    return rows


def test_files_are_merged_in_the_background_without_being_asked(tmp_path: Path) -> None:
    store = filled(tmp_path, replace(EAGER, compaction_file_bytes=1 << 20))
    wait_until(lambda: len(live(tmp_path)) == 1 and not litter(tmp_path))
    assert 30 == len(points(store, PLAIN_DEVICE, "i")) + 5
    assert store.compaction.jobs > 0
    store.close()


def test_large_chunks_are_copied_without_being_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)
    store.change_schema(creates())
    for start in (0, 100, 200):
        times = range(start, start + 20)
        rows = {"i": list(times), "t": [None if t % 2 else "x" * t for t in times]}
        store.write([tablet(PLAIN_DEVICE, times, **rows), tablet(ALIGNED_DEVICE, times, **rows)])
        if start == 200:  # add a column that the first chunk groups do not have
            store.write([tablet(ALIGNED_DEVICE, times, d=[0.5] * 20)])
        store.flush()
    before = answers(store)
    decoded: list[str] = []
    for name in ("read_points", "read_points_together", "read_times", "read_column"):
        real = getattr(reader_module, name)
        monkeypatch.setattr(reader_module, name, lambda *a, real=real, name=name: decoded.append(name) or real(*a))
    store.merge()
    assert [] == decoded
    assert (60 + 30) * 2 + 20 == store.compaction.points_copied
    assert 0 == store.compaction.points_merged
    assert before == answers(store)
    store.delete([f"{PLAIN_DEVICE}.i"], TimeRange(105, 110))
    store.write([tablet(ALIGNED_DEVICE, [205], i=[-1])])
    store.flush()
    before = answers(store)
    store.merge()
    assert before == answers(store)
    # The merge decoded only the chunk that has deleted points and the chunk group that the late row overlaps.
    assert (15 + 20 + 10 + 20) == store.compaction.points_merged
    store.close()


def test_few_rows_are_gathered_into_larger_chunks(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.change_schema(creates())
    for start in range(0, 50, 2):
        store.write([tablet(PLAIN_DEVICE, [start, start + 1], i=[start, -start])])
        store.flush()
    store.merge()
    (partition,) = store._region.partitions
    (file,) = partition.files
    index = file.access.device(PLAIN_DEVICE)
    assert index is not None
    assert [30, 20] == [c.statistics.count for c in index.series["i"].chunks if c.statistics]
    store.close()


# --- deletions


def test_tombstones_go_with_what_they_hide(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.delete([f"{PLAIN_DEVICE}.i"], TimeRange(3, 8))
    store.delete(["root.db.**"], TimeRange(52, 54))
    store.flush()
    before = answers(store)
    assert 2 == len(manifests(tmp_path)[0].tombstones)
    store.merge()
    assert before == answers(store)
    assert () == manifests(tmp_path)[0].tombstones
    store.close()
    store = open_store(tmp_path)
    assert before == answers(store)
    store.close()


def test_a_tombstone_stays_as_long_as_another_file_may_have_what_it_hides(tmp_path: Path) -> None:
    disk = GateDisk()
    store = filled(tmp_path, disk=disk)
    store.write([tablet(PLAIN_DEVICE, [3], i=[33])])
    store.delete([f"{PLAIN_DEVICE}.*"], TimeRange(0, 4))  # hides points in files, and removes the row in the MemTable
    before = answers(store)
    with merging(store, disk, CREATED):
        store.write([tablet(PLAIN_DEVICE, [2], i=[22])])
        store.delete([f"{PLAIN_DEVICE}.*"], TimeRange(2, 3))
        store.write([tablet(PLAIN_DEVICE, [1], i=[11])])
    after = answers(store)
    assert [(1, 11), *before[PLAIN_DEVICE, "i"]] == after[PLAIN_DEVICE, "i"]
    store.close()
    store = open_store(tmp_path)
    assert after == answers(store)
    store.close()


def test_a_tombstone_that_stays_does_not_reach_newer_rows_that_were_merged_with_older_ones(tmp_path: Path) -> None:
    """The tombstone is kept for the first file, which is too large to be merged. It ranks between the other two."""
    options = StoreOptions(durability="os", page_rows=3, compaction=False, compaction_file_bytes=6_000)
    store = open_store(tmp_path, options)
    store.change_schema(creates())
    times = range(200)
    store.write([tablet(ALIGNED_DEVICE, times, i=list(times), t=[str(t) for t in times])])
    store.flush()
    store.write([tablet(PLAIN_DEVICE, [1, 2, 3], i=[1, 1, 1])])
    store.flush()
    store.delete(["root.db.**"], TimeRange(2, 4))
    store.write([tablet(PLAIN_DEVICE, [3, 4], i=[2, 2])])
    store.flush()
    before = answers(store)
    assert [(1, 1), (3, 2), (4, 2)] == before[PLAIN_DEVICE, "i"]
    store.merge()
    assert 2 == len(live(tmp_path))
    assert 1 == len(manifests(tmp_path)[0].tombstones)
    assert before == answers(store)
    store.close()


def test_a_deletion_while_a_job_runs_hides_what_the_job_writes(tmp_path: Path) -> None:
    for where in (CREATED, WRITTEN):
        folder = tmp_path / where.strip(".")
        disk = GateDisk()
        store = filled(folder, disk=disk)
        with merging(store, disk, where):
            store.delete([f"{PLAIN_DEVICE}.i"], TimeRange(0, 60))
            assert [] == points(store, PLAIN_DEVICE, "i")
        assert 1 == len(live(folder))
        assert [] == points(store, PLAIN_DEVICE, "i")
        store.close()
        store = open_store(folder)
        assert [] == points(store, PLAIN_DEVICE, "i")
        store.flush()
        assert 1 == len(manifests(folder)[0].tombstones)
        store.merge(full=True)
        assert 0 == len(manifests(folder)[0].tombstones)
        assert [] == points(store, PLAIN_DEVICE, "i")
        store.close()


def test_all_is_deleted_and_nothing_is_left(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.delete(["root.db.**"], TimeRange())
    store.merge()
    assert [] == live(tmp_path)
    store.write([tablet(PLAIN_DEVICE, [1], i=[1])])
    store.close()
    store = open_store(tmp_path)
    assert [(1, 1)] == points(store, PLAIN_DEVICE, "i")
    store.flush()
    validate(store)
    store.close()


@pytest.mark.parametrize("device", [PLAIN_DEVICE, ALIGNED_DEVICE])
def test_a_series_that_came_again_with_another_type(tmp_path: Path, device: str) -> None:
    store = filled(tmp_path)
    store.delete_series(f"{device}.i")
    other = SeriesSchema("i", DataType.BOOLEAN, Encoding.PLAIN, Compressor.LZ4)
    store.change_schema([CreateSeries(device, device == ALIGNED_DEVICE, (other,))])
    again = Column.of(DataType.BOOLEAN, [True, False])
    store.write([Tablet(device, ("i",), np.array([3, 53]), (again,), device == ALIGNED_DEVICE)])
    store.flush()
    before = answers(store)
    request = ScanRequest(device, ("i",), (DataType.BOOLEAN,), device == ALIGNED_DEVICE)
    assert [(3, (True,)), (53, (False,))] == read(store, request)
    store.merge()
    assert 1 == len(live(tmp_path))
    assert [(3, (True,)), (53, (False,))] == read(store, request)
    assert before == answers(store)
    store.close()


def test_a_device_that_came_again_aligned(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.delete_series(f"{PLAIN_DEVICE}.**")
    series = SeriesSchema("i", DataType.INT32, Encoding.PLAIN, Compressor.LZ4)
    store.change_schema([CreateSeries(PLAIN_DEVICE, True, (series,))])
    store.write([Tablet(PLAIN_DEVICE, ("i",), np.array([4]), (Column.of(DataType.INT32, [44]),), True)])
    store.flush()
    request = ScanRequest(PLAIN_DEVICE, ("i",), (DataType.INT32,), True)
    assert [(4, (44,))] == read(store, request)
    store.merge()
    assert 1 == len(live(tmp_path))
    assert [(4, (44,))] == read(store, request)
    store.close()


def test_files_that_do_not_go_together_stay_apart(tmp_path: Path) -> None:
    """Only foreign files can cause this conflict of types, so the test removes the tombstone by hand."""
    store = filled(tmp_path)
    store.delete_series(f"{PLAIN_DEVICE}.i")
    other = SeriesSchema("i", DataType.BOOLEAN, Encoding.PLAIN, Compressor.LZ4)
    store.change_schema([CreateSeries(PLAIN_DEVICE, False, (other,))])
    store.write([Tablet(PLAIN_DEVICE, ("i",), np.array([70]), (Column.of(DataType.BOOLEAN, [True]),), False)])
    store.flush()
    (partition,) = store._region.partitions
    partition.tombstones = ()
    partition._snapshot = None
    request = ScanRequest(PLAIN_DEVICE, ("i",), (DataType.BOOLEAN,), False)
    store.merge()
    assert 2 == len(live(tmp_path))
    assert [(70, (True,))] == read(store, request)
    store.close()


# --- interruptions


def test_a_database_that_is_dropped_ends_its_job(tmp_path: Path) -> None:
    for where in (CREATED, WRITTEN):
        folder = tmp_path / where.strip(".")
        disk = GateDisk()
        store = filled(folder, disk=disk)
        dropping = threading.Thread(target=store.delete_database, args=("root.db",))
        with merging(store, disk, where) as errors:
            dropping.start()
            if where == CREATED:  # otherwise the drop waits for the end of the job
                dropping.join()
                store.write([tablet(PLAIN_DEVICE, [7], i=[70])], creates())
                store.flush()
        dropping.join()
        assert [] == errors
        if where == CREATED:
            assert [(7, 70)] == points(store, PLAIN_DEVICE, "i")
        assert [] == litter(folder)
        store.close()
        store = open_store(folder)
        assert ([(7, 70)] if where == CREATED else []) == points(store, PLAIN_DEVICE, "i")
        store.close()


def test_files_that_expire_as_a_whole_end_their_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files expire after the job has opened them and before it creates a file."""
    store = filled(tmp_path)
    verify = Merge.verify

    def verified(self: Merge, checksums: Sequence[int]) -> None:
        verify(self, checksums)
        store.change_schema([SetTtl("root.**", 1)])
        store.expire()

    monkeypatch.setattr(Merge, "verify", verified)
    store.merge()
    assert () == store.status().problems
    assert [] == live(tmp_path)
    assert [] == litter(tmp_path)
    store.close()


def test_closing_ends_a_job_and_leaves_nothing_of_it(tmp_path: Path) -> None:
    disk = GateDisk()
    store = filled(tmp_path, disk=disk)
    before = answers(store)
    with merging(store, disk, CREATED) as errors:
        closing = threading.Thread(target=store.close)
        closing.start()
        wait_until(lambda: store._region.closed)
    closing.join()
    assert [StoreClosed] == [type(error) for error in errors]
    assert [] == litter(tmp_path)
    store = open_store(tmp_path)
    assert before == answers(store)
    store.close()


def test_whoever_asked_may_give_up(tmp_path: Path) -> None:
    disk = GateDisk()
    store = filled(tmp_path, disk=disk)
    disk.gate(CREATED)
    store.merge(stopped=disk.reached.is_set)
    disk.go.set()
    wait_until(lambda: not litter(tmp_path))
    assert 4 == len(live(tmp_path))
    store.merge()
    assert 1 == len(live(tmp_path))
    store.close()


def test_a_slow_job_rests_and_can_be_closed_meanwhile(tmp_path: Path) -> None:
    options = StoreOptions(durability="os", compaction=False, compaction_bytes_per_second=10)
    store = filled(tmp_path, options)
    errors: list[StorageError] = []

    def merge() -> None:
        try:
            store.merge()
        except StoreClosed as error:
            errors.append(error)

    thread = threading.Thread(target=merge)
    thread.start()
    wait_until(lambda: store._compactor._running is not None)
    store.close()
    thread.join(PATIENCE_S)
    assert 1 == len(errors)
    assert [] == litter(tmp_path)


# --- trouble


def test_a_damaged_source_is_set_aside_and_the_others_are_merged(tmp_path: Path) -> None:
    filled(tmp_path).close()
    victim = max(tmp_path.rglob("seq/*.tsfile"), key=lambda path: int(path.name.split("-")[1]))
    raw = bytearray(victim.read_bytes())
    raw[40] ^= 1
    victim.write_bytes(raw)
    store = open_store(tmp_path)
    store.merge()
    assert [(t, 1 if t < 5 else 2) for t in range(15)] == points(store, PLAIN_DEVICE, "i")
    store.flush()
    (problem,) = store.status().problems
    assert victim.name in problem
    assert "checksum" in problem
    assert [victim.name] == [path.name for path in tmp_path.rglob("corrupt/*.tsfile")]
    store.close()


class FailingDisk(QuickDisk):
    """A disk on which the compactor's nth modifying call fails, and every later call too if the disk is `dead`."""

    def __init__(self) -> None:
        self.left = -1
        self.number = errno.EIO
        self.dead = False
        self.free = 1 << 40

    def _step(self) -> None:
        if threading.current_thread().name != "saros-compact":
            return
        if self.left > 0:
            self.left -= 1
        elif self.left == 0:
            if not self.dead:
                self.left = -1
            raise OSError(self.number, "injected")

    def create(self, path: str) -> File:
        self._step()
        return FailingFile(super().create(path), self)

    def replace(self, source: str, target: str) -> None:
        self._step()
        super().replace(source, target)

    def remove(self, path: str) -> None:
        self._step()
        super().remove(path)

    def sync_folder(self, path: str) -> None:
        self._step()
        super().sync_folder(path)

    def free_bytes(self, path: str) -> int:
        return self.free


class FailingFile:
    def __init__(self, file: File, disk: FailingDisk) -> None:
        self._file = file
        self._disk = disk
        self.close = file.close
        self.reserve = file.reserve

    @property
    def size(self) -> int:
        return self._file.size

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        self._disk._step()
        self._file.write(parts)

    def sync(self) -> None:
        self._disk._step()
        self._file.sync()


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("dead", [False, True])
def test_a_failure_at_any_step_leaves_the_old_files_or_the_new_ones(tmp_path: Path, number: int, dead: bool) -> None:
    """A dead disk represents a crash: the next start finds the disk as it was when it died."""
    template = tmp_path / "template"
    store = filled(template)
    store.delete([f"{PLAIN_DEVICE}.i"], TimeRange(3, 8))
    store.flush()
    before = answers(store)
    store.close()
    outcomes = set()
    for step in range(100):
        folder = tmp_path / str(step)
        shutil.copytree(template, folder)
        disk = FailingDisk()
        store = open_store(folder, ASKED_ONLY, disk)
        disk.left, disk.number, disk.dead = step, number, dead
        error: StorageError | None = None
        try:
            store.merge()
        except StorageError as raised:
            error = raised
        failed = error is not None
        assert isinstance(error, DiskFull) == (failed and number == errno.ENOSPC)
        assert before == answers(store)
        outcomes.add((failed, store.status().files))
        disk.left = -1
        if not dead:
            store.merge()
            assert 1 == store.status().files
            assert before == answers(store)
        store.close()
        store = open_store(folder)
        assert before == answers(store)
        assert [] == litter(folder)
        validate(store)
        store.close()
        if not failed:
            break
        shutil.rmtree(folder)
    assert {(True, 4), (False, 1)} <= outcomes


def test_a_job_without_room_is_not_begun(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = filled(tmp_path, disk=disk)
    disk.free = 1 << 20
    with pytest.raises(DiskFull, match="not enough disk space"):
        store.merge()
    assert 4 == len(live(tmp_path))
    disk.free = 1 << 40
    store.merge()
    assert 1 == len(live(tmp_path))
    store.close()


def test_a_merged_file_larger_than_the_limit_is_split_between_devices(tmp_path: Path) -> None:
    options = StoreOptions(durability="os", page_rows=3, compaction=False, compaction_file_bytes=14_000)
    store = filled(tmp_path, options)
    for times in (range(100, 300), (3, 12, 55, 105, 295)):
        rows = {"i": list(times), "d": [t / 2 for t in times], "t": [str(t) for t in times]}
        store.write([tablet(PLAIN_DEVICE, times, **rows), tablet(ALIGNED_DEVICE, times, **rows)])
        store.flush()
    before = answers(store)
    store.merge()
    assert before == answers(store)
    assert 2 == len(live(tmp_path))
    validate(store)
    store.close()
    store = open_store(tmp_path, options)
    assert before == answers(store)
    store.close()


def values_of(rows: list[object]) -> list[tuple[int, Scalar]]:
    return [(t, v) for t, v in rows]  # type: ignore[misc]


@pytest.mark.slow
def test_the_other_reader_reads_a_merged_file(tmp_path: Path) -> None:
    pytest.importorskip("tsfile")
    from storage.test_tsfile_interop import dumped

    store = filled(tmp_path, StoreOptions(durability="os", page_rows=3, compaction=False))
    times = range(200, 220)
    store.write([tablet(d, times, i=list(times), t=[str(t) for t in times]) for d in (PLAIN_DEVICE, ALIGNED_DEVICE)])
    store.delete([f"{PLAIN_DEVICE}.i"], TimeRange(3, 8))
    store.flush()
    store.merge()
    assert store.compaction.points_copied > 0
    found = dumped(tmp_path, os.path.join(tmp_path, live(tmp_path)[0]))
    for device in (PLAIN_DEVICE, ALIGNED_DEVICE):
        for name in TYPES:
            assert [list(row) for row in values_of(points(store, device, name))] == found[device][name]
    store.close()
