from __future__ import annotations

import zlib

import pytest
from storage.crash_disk import CrashDisk

from saros_storage.base.errors import CorruptFile, StorageError
from saros_storage.folder.schema_file import load_schema, save_schema
from saros_storage.schema import CreateDatabase, SchemaTree


def saved(index: int) -> bytes:
    tree = SchemaTree()
    tree.apply(CreateDatabase("root.a"))
    disk = CrashDisk()
    save_schema(disk, "schema", tree.dump(), index)
    return disk.files["schema"]


def load(data: bytes) -> tuple[list[str], int]:
    tree, index = load_schema(CrashDisk.of({"schema": data}), "schema")
    return tree.databases(), index


def test_the_tree_and_where_it_stands_are_read_again() -> None:
    assert (["root.a"], 17) == load(saved(17))


def test_where_it_stands_is_checked_too() -> None:
    with pytest.raises(CorruptFile, match="checksum"):
        load(saved(17).replace(b" 17\n", b" 71\n"))


def test_version_1_is_read() -> None:
    _, dump = saved(17).split(b"\n", 1)
    assert (["root.a"], 9) == load(b"saros-schema 1 %08x %d 9\n" % (zlib.crc32(dump), len(dump)) + dump)


def test_a_newer_version_is_named_and_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(StorageError, match="newer") as caught:
        load(saved(17).replace(b"saros-schema 2", b"saros-schema 3"))
    assert 2015 == caught.value.code
    with pytest.raises(CorruptFile):
        load(saved(17).replace(b" 17\n", b" " + b"9" * 5_000 + b"\n"))
