"""Folders of databases: no two share one on any file system, and folders with names of earlier versions still work."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from caseless_disk import CaselessDisk, real_path
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock
from msgspec.structs import replace
from quick_disk import QuickDisk
from storage.crash_disk import CrashDisk
from storage.store_opening import FOLDER
from storage.store_opening import open_store as open_on

import saros
from saros_storage.backup.making import BackupRun
from saros_storage.backup.repository import Repository
from saros_storage.backup.restoring import Restore
from saros_storage.backup.source import LocalSource
from saros_storage.base.block import Column
from saros_storage.base.errors import CorruptFile
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.checkpoint.checkpoint import Checkpoint
from saros_storage.checkpoint.fetch import pull_partitions
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.folder.layout import GROUP_FOLDER, caseless, database_folder_name
from saros_storage.folder.store_options import StoreOptions
from saros_storage.folder_check import check_folder
from saros_storage.io.disk import Disk
from saros_storage.scan.reading import ScanRequest
from saros_storage.scan.snapshot import everything
from saros_storage.schema import CreateDatabase, CreateSeries, SeriesSchema
from saros_storage.store import Store

SLICE = 100
OPTIONS = StoreOptions(time_partition_interval=SLICE, durability="os", compaction=False)
#: Databases whose names are equal for some file system, which ignores case, normalizes Unicode, or does both.
ALIKE = ("root.a", "root.A", "root.Ä", "root.ä", "root.`A\u0308`", "root.`a\u0308`", "root.`%41`", "root.`%c3%84`")
Points = dict[str, dict[int, int]]


# ------------------------------------------------------------------------------------------------ names

_NAMES = st.text("abkABKäÄß\u017fé\u0301\u0308%.~`14cC \u212a", max_size=12) | st.text(st.characters(codec="utf-8"))


@st.composite
def alike(draw: st.DrawFn) -> tuple[str, str]:
    """Draw two names, which often differ only in case and normal form."""
    name = draw(_NAMES)
    forms = [name, name.lower(), name.upper(), name.swapcase(), name.casefold(), draw(_NAMES)]
    normal = [unicodedata.normalize(form, text) for form in ("NFC", "NFD") for text in forms]
    return name, draw(st.sampled_from(forms + normal))


@given(alike())
def test_names_of_different_databases_differ_in_more_than_case_and_normal_form(names: tuple[str, str]) -> None:
    one, other = names
    assert (one == other) == (caseless(database_folder_name(one)) == caseless(database_folder_name(other)))


@given(_NAMES)
def test_names_without_capitals_are_those_of_earlier_versions(name: str) -> None:
    if not any("A" <= letter <= "Z" for letter in name):
        assert quote(name, safe="") == database_folder_name(name)


def test_capitals_are_escaped() -> None:
    expected = {
        "root.plant1": "root.plant1",
        "root.A": "root.%41",
        "root.Ä": "root.%C3%84",
        "root.`%41`": "root.%60%2541%60",
    }
    assert expected == {name: database_folder_name(name) for name in expected}


def test_long_names_are_short_enough_and_different() -> None:
    long = "root." + "Plant" * 100
    names = [long, long + "1", long.lower(), long.upper(), "root." + "P" * 60, "root." + "p" * 60, "root." + "p" * 400]
    names += [database_folder_name(name) for name in names if len(name) > 200]  # names that look shortened
    folders = [database_folder_name(name) for name in names]
    assert len(names) == len({caseless(folder) for folder in folders})
    assert max(map(len, folders)) <= 200


# ------------------------------------------------------------------------------------------------ stores


def open_store(folder: Path, disk: Disk) -> Store:
    return Store.open(str(folder), OPTIONS, disk, ManualClock())


def create(store: Store, databases: Iterable[str] = ALIKE) -> None:
    series = (SeriesSchema("x", DataType.INT64, Encoding.PLAIN, Compressor.UNCOMPRESSED),)
    for database in databases:
        store.change_schema([CreateDatabase(database), CreateSeries(f"{database}.d", False, series)])


def write(store: Store, times: Iterable[int], databases: Iterable[str] = ALIKE) -> Points:
    """Write a row at each of the times to each database, and return the rows; the databases have different values."""
    at = np.array(list(times), np.int64)
    written = {}
    for database in databases:
        values = at + 1_000 * (1 + ALIKE.index(database))
        store.write([Tablet(f"{database}.d", ("x",), at, (Column(DataType.INT64, values),), False)])
        written[database] = dict(zip(at.tolist(), values.tolist(), strict=True))
    return written


def points(store: Store) -> Points:
    found: Points = {}
    view = store.view()
    for database in store.schema.databases():
        reader = view.open(ScanRequest(f"{database}.d", ("x",), (DataType.INT64,), False))
        found[database] = {}
        while (block := reader.next()) is not None:
            found[database].update(zip(block.times.tolist(), block.columns[0].to_list(), strict=True))
        reader.close()
    view.close()
    return found


def close(store: Store, folder: Path, disk: Disk) -> None:
    """Close a store, which must have no problems, and check its files."""
    assert [] == list(store.status().problems)
    store.close()
    assert [] == check_folder(str(folder), disk, lambda _: None).problems


@pytest.mark.slow
@pytest.mark.parametrize("disk", [QuickDisk(), CaselessDisk()], ids=["all", "caseless"])
def test_alike_databases_keep_their_own_points(disk: Disk, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    store = open_store(folder, disk)
    create(store)
    rows = write(store, [1, 150])
    store.flush()
    close(store, folder, disk)
    store = open_store(folder, disk)
    assert rows == points(store)
    later = write(store, [2, 151, 350])
    rows = {database: rows[database] | later[database] for database in ALIKE}
    store.flush()
    store.merge(full=True)
    store.delete_database("root.A")
    del rows["root.A"]
    close(store, folder, disk)
    store = open_store(folder, disk)
    assert rows == points(store)
    close(store, folder, disk)


@pytest.mark.parametrize("disk", [QuickDisk(), CaselessDisk()], ids=["all", "caseless"])
def test_alike_databases_are_restored_each_with_its_points(disk: Disk, tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", disk)
    create(store)
    rows = write(store, [1, 150])
    repository = Repository(str(tmp_path / "backups"), disk)
    BackupRun(repository, LocalSource(store), ManualClock(), incremental=False).run()
    store.close()
    Restore(repository, str(tmp_path / "restored"), disk).run()
    restored = open_store(tmp_path / "restored", disk)
    assert rows == points(restored)
    close(restored, tmp_path / "restored", disk)


def test_alike_databases_are_fetched_each_to_its_folder(tmp_path: Path) -> None:
    disk, clock = CaselessDisk(), ManualClock()
    store = open_store(tmp_path / "data", disk)
    create(store)
    write(store, [1, 150])
    store.flush()
    registry = CheckpointRegistry(str(tmp_path / "shelf"), disk, clock)
    region = store._region
    with region.flusher.folders, region.lock:
        capture = region.capture(everything)
    id_ = registry.put(capture)
    pulled: Checkpoint = registry.capture(id_)
    pull_partitions(lambda n, offset, count: registry.read(id_, n, offset, count), pulled, str(tmp_path / "new"), disk)
    store.close()
    found = {path.parent for path in (tmp_path / "new").rglob("MANIFEST")}
    assert 2 * len(ALIKE) == len(found)
    for partition in pulled.partitions:
        made = tmp_path / "new" / database_folder_name(partition.manifest.database) / str(partition.slice)
        sizes = {path.stat().st_size for path in made.glob("seq/*.tsfile")}
        assert {entry.size for entry in partition.manifest.files} == sizes


# ------------------------------------------------------------------------------------------------ earlier versions


def make_old_folder(folder: Path, *, shared: bool = False) -> Points:
    """Create a folder as earlier versions did; with `shared`, on a file system that ignores case."""
    disk = CaselessDisk() if shared else QuickDisk()
    store = open_store(folder, disk)
    databases = ("root.A", "root.a")
    create(store, databases)
    rows = write(store, [1, 150], ["root.A"]) | write(store, [250, 350], ["root.a"])
    store.flush()
    late = write(store, [2], ["root.A"])
    store.close()
    groups = folder / GROUP_FOLDER
    (groups / "root.%41").rename(groups / "root.A")
    if shared:
        for partition in list((groups / "root.a").iterdir()):
            partition.rename(groups / "root.A" / partition.name)
        (groups / "root.a").rmdir()
    return rows | {"root.A": rows["root.A"] | late["root.A"]}


def folders(folder: Path) -> list[str]:
    groups = folder / GROUP_FOLDER
    return sorted(str(path.parent.relative_to(groups)) for path in groups.rglob("MANIFEST"))


def test_folders_of_earlier_versions_are_renamed(tmp_path: Path) -> None:
    rows = make_old_folder(tmp_path)
    store = open_store(tmp_path, QuickDisk())
    assert rows == points(store)
    assert ["root.%41/0", "root.%41/1", "root.a/2", "root.a/3"] == folders(tmp_path)
    assert {"root.%41", "root.a"} == {path.name for path in (tmp_path / GROUP_FOLDER).iterdir()}
    store.delete_database("root.A")
    close(store, tmp_path, QuickDisk())
    store = open_store(tmp_path, QuickDisk())
    assert {"root.a": rows["root.a"]} == points(store)
    close(store, tmp_path, QuickDisk())


def test_databases_that_shared_a_folder_part(tmp_path: Path) -> None:
    disk = CaselessDisk()
    rows = make_old_folder(tmp_path, shared=True)
    assert ["root.A/0", "root.A/1", "root.A/2", "root.A/3"] == folders(tmp_path)
    store = open_store(tmp_path, disk)
    assert rows == points(store)
    assert ["root.%41/0", "root.%41/1", "root.A/2", "root.A/3"] == folders(tmp_path)
    later = write(store, [3, 151, 251, 351], ["root.A", "root.a"])
    store.flush()
    store.merge(full=True)
    close(store, tmp_path, disk)
    store = open_store(tmp_path, disk)
    assert {database: rows[database] | later[database] for database in rows} == points(store)
    close(store, tmp_path, disk)


def test_a_shared_folder_is_read_where_case_counts(tmp_path: Path) -> None:
    rows = make_old_folder(tmp_path, shared=True)
    store = open_store(tmp_path, QuickDisk())
    later = write(store, [3, 151, 251, 351], ["root.A", "root.a"])
    store.flush()
    close(store, tmp_path, QuickDisk())
    store = open_store(tmp_path, QuickDisk())
    assert {database: rows[database] | later[database] for database in rows} == points(store)
    close(store, tmp_path, QuickDisk())


def test_files_of_an_unfinished_flush_do_not_hold_up_a_renaming(tmp_path: Path) -> None:
    rows = make_old_folder(tmp_path)
    left = tmp_path / GROUP_FOLDER / "root.%41" / "0" / "seq"
    left.mkdir(parents=True)
    (left / "9-9-0-0.tsfile").write_bytes(b"unfinished")
    store = open_store(tmp_path, QuickDisk())
    assert rows == points(store)
    close(store, tmp_path, QuickDisk())
    assert not (left / "9-9-0-0.tsfile").exists()


def test_a_partition_in_two_folders_is_refused(tmp_path: Path) -> None:
    make_old_folder(tmp_path)
    groups = tmp_path / GROUP_FOLDER
    double = groups / "root.%41" / "0"
    double.mkdir(parents=True)
    manifest = groups / "root.A" / "0" / "MANIFEST"
    (double / "MANIFEST").write_bytes(manifest.read_bytes())
    with pytest.raises(CorruptFile, match=r"root\.A/0 .*root\.%41/0 holds the same partition"):
        open_store(tmp_path, QuickDisk())
    assert manifest.exists()


@pytest.mark.slow
def test_a_read_only_connection_renames_nothing(tmp_path: Path) -> None:
    rows = make_old_folder(tmp_path)
    before = folders(tmp_path)
    with saros.connect(tmp_path, read_only=True, timestamps="epoch") as db:
        assert rows["root.A"] == dict(db.execute("select x from root.A.d").fetchall())
    assert before == folders(tmp_path)


@pytest.mark.slow
def test_no_crash_while_folders_are_renamed_takes_points() -> None:
    databases = ("root.A", "root.a")
    options = replace(OPTIONS, segment_bytes=100)
    disk = CrashDisk()
    store = open_on(disk, options)
    create(store, databases)
    rows = write(store, [1, 150, 250], databases)
    store.flush()
    store.change_schema([CreateDatabase("root.filling")])
    store.change_schema([CreateDatabase("root.other")])
    store.release(store._region.flusher.first_needed())
    store.close()
    groups = f"{FOLDER}/{GROUP_FOLDER}"
    disk.rename(f"{groups}/root.%41", f"{groups}/root.A")
    disk.sync_folder(groups)
    old = disk.after_power_cut()
    assert not any(b"root.A.d" in data for path, data in old.files.items() if "/log/" in path)
    old.keeps_pictures = True
    open_on(old, options).close()
    crashes = 0
    for picture in old.pictures:
        for _, found in picture.crashes():
            crashes += 1
            for left in (found, found.after_power_cut()):
                again = open_on(left, options)
                assert rows | {"root.filling": {}, "root.other": {}} == points(again)
                again.close()
    assert crashes > 20


def test_the_caseless_disk_ignores_case_and_normal_form(tmp_path: Path) -> None:
    disk = CaselessDisk()
    disk.make_folder(str(tmp_path / "Ä"))
    disk.create(str(tmp_path / "a\u0308" / "MANIFEST")).close()
    assert ["MANIFEST"] == disk.list(str(tmp_path / "ä"))
    assert str(tmp_path / "Ä" / "manifesto") == real_path(str(tmp_path / "ä" / "manifesto"))
