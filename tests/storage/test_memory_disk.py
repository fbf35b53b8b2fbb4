"""The disk in memory."""

from __future__ import annotations

import pytest

from saros_storage.io.memory_disk import MemoryDisk


def disk(**files: bytes) -> MemoryDisk:
    return MemoryDisk({f"/data/{name}": memoryview(content) for name, content in files.items()})


def test_written_files_leave_what_was_mapped_as_it_is() -> None:
    memory = disk(a=b"one")
    mapped = memory.map("/data/a")
    memory.link("/data/a", "/data/b")
    file = memory.append("/data/a")
    file.write([b" two", memoryview(b" three")])
    assert (13, b"one two three", b"one") == (file.size, bytes(memory.map("/data/b")), bytes(mapped))
    file.write([b"!"])
    memory.truncate("/data/a", 3)
    assert (b"one", b"ne", 3) == (
        bytes(memory.map("/data/a")),
        memory.read("/data/a", 1, 9),
        memory.size("/data/b"),
    )


def test_names_move_and_go() -> None:
    memory = disk(a=b"1", b=b"2")
    memory.make_folder("/data/c/d")
    memory.create_unread("/data/c/d/e").write([b"3"])
    memory.replace("/data/a", "/data/b")
    memory.replace("/data/c", "/data/f")
    assert ["b", "f"] == memory.list("/data")
    assert (b"1", b"3") == (bytes(memory.map("/data/b")), bytes(memory.map("/data/f/d/e")))
    memory.remove("/data/b")
    memory.remove("/data/b")
    memory.remove_tree("/data/f")
    memory.remove_tree("/data/f")
    assert ([], [], False) == (memory.list("/data"), memory.list("/nowhere"), memory.exists("/data/f"))


def test_errors_are_those_of_a_disk() -> None:
    memory = disk(a=b"1")
    with pytest.raises(FileNotFoundError):
        memory.map("/data/b")
    with pytest.raises(FileNotFoundError):
        memory.create("/data/b/c")
    with pytest.raises(FileNotFoundError):
        memory.replace("/data/b", "/data/c")
    with pytest.raises(NotADirectoryError):
        memory.list("/data/a")
    with pytest.raises(NotADirectoryError):
        memory.make_folder("/data/a/b")
    with pytest.raises(IsADirectoryError):
        memory.map("/data")
    with pytest.raises(FileExistsError):
        memory.link("/data/a", "/data/a")
