"""Temporary databases: `:memory:`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

import pytest
import sqlalchemy as sa

import saros
from saros.base.temporary_folder import TemporaryFolder
from saros_shell.main import main


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, which is used for temporary files. Make another empty folder the working directory."""
    folder, working = tmp_path / "temporary", tmp_path / "working"
    folder.mkdir()
    working.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(working)
    return folder


def folders(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.iterdir() if path.name.startswith("saros-memory-"))


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)


def test_a_temporary_database_goes_with_its_connection(temporary: Path) -> None:
    with saros.connect(":memory:") as connection:
        connection.insert("root.a.d", [1, 2], {"x": [0.5, 1.5]})
        assert [(2,)] == connection.execute("select count(x) from root.a.d").fetchall()
        assert 1 == len(folders(temporary))
    assert [] == folders(temporary)
    assert [] == os.listdir()


def test_each_connection_has_a_database_of_its_own(temporary: Path) -> None:
    with saros.connect(":memory:") as one, saros.connect(":memory:", time_zone="Asia/Tokyo") as other:
        one.insert("root.a.d", [1], {"x": [0.5]})
        assert [] == other.execute("show timeseries").fetchall()
        assert 2 == len(folders(temporary))


def test_options_apply_and_wrong_ones_leave_no_folder(temporary: Path) -> None:
    with saros.connect(":memory:", timestamps="epoch", options={"time_unit": "ns"}) as connection:
        connection.execute("insert into root.a.d(time, x) values (1970-01-01T00:00:01, 1)")
        assert [(10**9, 1.0)] == connection.execute("select x from root.a.d").fetchall()
    with pytest.raises(saros.ProgrammingError, match="durabilty"):
        saros.connect(":memory:", options={"durabilty": "os"})
    with pytest.raises(saros.InterfaceError, match="open a folder without them"):
        saros.connect(":memory:", user="root", password="x")
    assert [] == folders(temporary)


def test_asyncio_has_temporary_databases(temporary: Path) -> None:
    async def count() -> object:
        async with await saros.aio.connect(":memory:") as connection:
            await connection.insert("root.a.d", [1], {"x": [0.5]})
            return await (await connection.execute("select count(x) from root.a.d")).fetchall()

    assert [(1,)] == asyncio.run(count())
    assert [] == folders(temporary)


def test_connections_of_an_engine_share_a_temporary_database(temporary: Path) -> None:
    engine = sa.create_engine("saros+embedded:///:memory:")
    with engine.connect() as one, engine.connect() as other:
        one.exec_driver_sql("insert into root.a.d(time, x) values (1, 0.5)")
        assert [(1,)] == other.exec_driver_sql("select count(x) from root.a.d").all()
    engine.dispose()
    assert [] == folders(temporary)


@pytest.mark.slow
def test_a_temporary_database_goes_with_its_process(temporary: Path) -> None:
    done = run("import saros; saros.connect(':memory:').insert('root.a.d', [1], {'x': [0.5]})")
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    assert [] == folders(temporary)


@pytest.mark.slow
def test_the_folder_of_a_killed_process_is_removed_by_the_next(temporary: Path) -> None:
    program = "import os, saros; kept = saros.connect(':memory:'); os.kill(os.getpid(), 9)"
    assert -9 == run(program).returncode
    (left,) = folders(temporary)
    with saros.connect(":memory:"):
        (own,) = folders(temporary)
        assert left != own


@pytest.mark.slow
def test_a_forked_process_leaves_the_database_of_its_parent() -> None:
    program = """
import os, warnings, saros
warnings.simplefilter("ignore", DeprecationWarning)
connection = saros.connect(":memory:")
connection.insert("root.a.d", [1], {"x": [0.5]})
child = os.fork()
if child == 0:
    connection.close()
    raise SystemExit
os.waitpid(child, 0)
connection.execute("flush")
print(connection.execute("select count(x) from root.a.d").fetchall())
"""
    done = run(program)
    assert ("[(1,)]\n", "") == (done.stdout, done.stderr)


def test_folders_in_use_and_other_files_stay(temporary: Path) -> None:
    (temporary / "saros-memory-file").touch()
    (temporary / "saros-memory-left").mkdir()
    (temporary / "other").mkdir()
    (temporary / "saros-memory-link").symlink_to(temporary / "other")
    first, second = TemporaryFolder.create(), TemporaryFolder.create()
    assert Path(first.path).is_dir()
    assert (temporary / "other").is_dir()
    first.remove()
    first.remove()
    assert sorted([os.path.basename(second.path), "saros-memory-file", "saros-memory-link"]) == folders(temporary)
    second.remove()


@pytest.mark.slow
def test_the_shell_opens_a_temporary_database(temporary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statements = ["-e", "insert into root.a.d(time, x) values (1, 0.5)", "-e", "select count(x) from root.a.d"]
    assert 0 == main(["shell", ":memory:", "--format", "csv", *statements])
    assert "1" == capsys.readouterr().out.splitlines()[-1]
    assert [] == folders(temporary)
    assert [] == os.listdir()


@pytest.mark.parametrize(
    "command",
    [
        "start --data :memory:",
        "start --foreground --auth --data :memory:",
        "console :memory:",
        "user init --data :memory:",
    ],
)
def test_commands_that_keep_data_refuse_it(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("a long password of root\n"))
    assert 1 == main(command.split())
    assert ":memory: is a temporary database of one connection: name a folder" in capsys.readouterr().err
    assert [] == os.listdir()
