"""Read-only access to folders, with or without another process that has the folder open."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from waiting import wait_until

import saros
import saros.aio
from saros_shell.main import main

#: A program that writes rows 0, 1, 2, ..., prints the number of each acknowledged row, and sometimes flushes, deletes
#: and merges. A deletion removes the oldest rows, so that after n writes, the rows from some m up to n - 1 remain.
OWNER = """
import itertools, sys
import saros
connection = saros.connect(sys.argv[1], options={"durability": "os", "time_partition_interval_ms": "1s"})
for n in itertools.count():
    connection.insert("root.a.d", [n], {"x": [n], "y": [float(n)]})
    print(n, flush=True)
    if n % 20 == 9:
        connection.execute("flush")
    if n % 100 == 49:
        connection.execute("delete from root.a.d.* where time < ?", [n - 40])
    if n % 100 == 69:
        connection.execute("merge")
    if n % 100 == 89:
        connection.insert("root.b.d", [n], {"x": [n]})
        connection.execute("flush")
        connection.execute("drop database root.b")
"""


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in found}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a database with rows in files and in the log."""
    with saros.connect(tmp_path / "data") as connection:
        connection.insert("root.a.d", [1, 2], {"x": [1, 2]})
        connection.execute("flush")
        connection.insert("root.a.d", [2, 3], {"x": [20, 30]})
    return tmp_path / "data"


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a folder to which a process writes, and the file to which it prints the acknowledged rows."""
    told = tmp_path / "told"
    with told.open("w") as output:
        command = [sys.executable, "-c", OWNER, str(tmp_path / "data")]
        process = subprocess.Popen(command, stdout=output)
        try:
            wait_until(lambda: last_told(told) >= 0)
            yield tmp_path / "data", told
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()


def last_told(told: Path) -> int:
    """Return the last acknowledged row, or -1."""
    lines = told.read_text().rpartition("\n")[0].splitlines()
    return int(lines[-1]) if lines else -1


def deleted_before(last: int) -> int:
    """Return the first row that remains after the row `last` was written, unless a deletion follows this row."""
    return max((n - 40 for n in range(49, last, 100)), default=0)


@pytest.mark.slow
def test_a_folder_in_use_shows_a_prefix_that_has_all_that_was_acknowledged(owner: tuple[Path, Path]) -> None:
    folder, told = owner
    last = 0
    while last < 400:
        acknowledged = last_told(told)
        with saros.connect(folder, read_only=True, timestamps="epoch") as connection:
            rows = connection.execute("select x, y from root.a.d").fetchall()
            first, last = rows[0][0], rows[-1][0]
            assert [(n, n, float(n)) for n in range(first, last + 1)] == rows
            assert acknowledged <= last
            # The owner may or may not have executed the deletion that follows its last row.
            assert first in ({last - 40} if last % 100 == 49 else set()) | {deleted_before(last)}
            if last % 100 != 89:
                assert [] == connection.execute("show timeseries root.b.**").fetchall()
            assert rows == connection.execute("select x, y from root.a.d").fetchall()


def test_a_closed_folder_is_read_and_left_as_it_is(folder: Path) -> None:
    before = files_of(folder)
    with saros.connect(folder, read_only=True, timestamps="epoch") as connection:
        assert [(1, 1), (2, 20), (3, 30)] == connection.execute("select x from root.a.d").fetchall()
        connection.execute("set time zone 'Asia/Tokyo'")
    assert before == files_of(folder)


def test_a_folder_that_may_not_be_written_to_is_read(folder: Path) -> None:
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    try:
        for path in folders:
            path.chmod(0o500)
        with saros.connect(folder, read_only=True) as connection:
            assert [(3,)] == connection.execute("select count(x) from root.a.d").fetchall()
    finally:
        for path in folders:
            path.chmod(0o700)


def test_later_writes_show_when_it_is_opened_again(folder: Path) -> None:
    with saros.connect(folder) as writer, saros.connect(folder, read_only=True) as reader:
        writer.insert("root.a.d", [9], {"x": [9]})
        assert [(3,)] == reader.execute("select count(x) from root.a.d").fetchall()
        with saros.connect(folder, read_only=True) as again:
            assert [(4,)] == again.execute("select count(x) from root.a.d").fetchall()
        writer.execute("drop database root.a")
        assert [(3,)] == reader.execute("select count(x) from root.a.d").fetchall()


@pytest.mark.parametrize(
    "statement",
    [
        "insert into root.a.d(time, x) values (4, 4)",
        "delete from root.a.d.x",
        "drop database root.a",
        "create database root.b",
        "set ttl to root.a 1000",
        "select x into root.a.e(x) from root.a.d",
        "load '/tmp/file.tsfile'",
        "flush",
        "merge",
        "create user nora 'a-long-password-1'",
        "set system to running",
    ],
)
def test_writes_are_refused(folder: Path, statement: str) -> None:
    before = files_of(folder)
    with saros.connect(folder, read_only=True) as connection:
        with pytest.raises(saros.OperationalError, match="the database was opened read-only") as refused:
            connection.execute(statement)
        assert 600 == refused.value.code
        assert [(3,)] == connection.execute("select count(x) from root.a.d").fetchall()
    assert before == files_of(folder)


def test_inserts_of_columns_are_refused(folder: Path) -> None:
    with (
        saros.connect(folder, read_only=True) as connection,
        pytest.raises(saros.OperationalError, match="the database was opened read-only"),
    ):
        connection.insert("root.a.d", [4], {"x": [4]})


def test_what_has_no_database_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(saros.ProgrammingError, match="missing does not exist: nothing can be read there") as refused:
        saros.connect(tmp_path / "missing", read_only=True)
    assert 2051 == refused.value.code
    with pytest.raises(saros.ProgrammingError, match="is not a data folder: nothing can be read there"):
        saros.connect(tmp_path, read_only=True)
    assert [] == os.listdir(tmp_path)


def test_the_folder_of_a_clusters_node_is_refused(folder: Path) -> None:
    (folder / "cluster.json").write_text("{}")
    with pytest.raises(saros.ProgrammingError, match="belongs to a node of a cluster"):
        saros.connect(folder, read_only=True)


@pytest.mark.parametrize("target", [":memory:", "saros://localhost"])
def test_it_is_for_folders(target: str) -> None:
    with pytest.raises(saros.InterfaceError, match="read_only is for folders only"):
        saros.connect(target, read_only=True)


def test_tasks_read_it(folder: Path) -> None:
    async def run() -> list[tuple[object, ...]]:
        async with await saros.aio.connect(folder, read_only=True) as connection:
            cursor = await connection.execute("select count(x) from root.a.d")
            return await cursor.fetchall()

    with saros.connect(folder):
        assert [(3,)] == asyncio.run(run())


def test_the_shell_reads_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = StringIO()
    monkeypatch.setattr(sys, "stdout", output)
    with saros.connect(folder):
        assert 0 == main(
            ["shell", str(folder), "--read-only", "--format", "csv", "-e", "select count(x) from root.a.d"]
        )
    assert "3" == output.getvalue().splitlines()[-1]
