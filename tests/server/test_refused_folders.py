"""If the operating system refuses a folder or an address, the message states only the refused name and the reason."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import saros
from saros_server.config.data_folder import cannot_open
from saros_shell.main import main

NOBODY = 65_534


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the path of a data folder whose parent is open to all users."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        monkeypatch.chdir(made)
        yield Path(made, "data")


def refused(folder: Path, call: Callable[[], object]) -> object:
    """Return the result of `call` when this process has no access to the folder.

    A first call with access loads the modules that `call` needs.
    """
    with saros.connect(folder) as connection:
        connection.execute("show databases")
    with suppress(saros.Error):
        call()
    user = os.geteuid()
    folder.chmod(0o700 if user == 0 else 0)
    if user == 0:
        os.seteuid(NOBODY)
    try:
        return call()
    finally:
        os.seteuid(user)
        folder.chmod(0o700)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("shell {} -e flush", 2),
        ("config {}", 2),
        ("status --data {}", 1),
        ("stop --data {}", 1),
        ("verify {}", 1),
        ("backup --data {} --to backups", 1),
        ("audit verify --data {}", 1),
        ("export -d {} root.** -o out", 1),
    ],
)
def test_a_command_names_the_folder_that_it_may_not_use(
    words: str, code: int, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def call() -> int:
        capsys.readouterr()
        return main(words.format(data).split())

    assert code == refused(data, call)
    told = "".join(capsys.readouterr())
    assert "ermission denied" in told
    assert str(data) in told
    assert "Errno" not in told


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Make a folder read-only while the block runs.

    If this process runs as root, the block runs as another user, which does not own the folder.
    """
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)


def names(folder: Path) -> list[tuple[Path, int]]:
    return sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*"))


@pytest.mark.parametrize("locked", [True, False], ids=["with a lock", "without"])
def test_what_only_reads_works_where_nothing_can_be_written(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, locked: bool
) -> None:
    data.parent.chmod(0o777)
    query = "select count(x), sum(x), last_value(x) from root.a.d"
    with saros.connect(data) as connection:
        connection.execute("insert into root.a.d(time, x) values (1, 1.5), (2, 2.5)")
        connection.execute("flush")
        connection.execute("insert into root.a.d(time, x) values (3, 3.5)")
        expected = connection.execute(query).fetchall()
    for command in (f"verify {data}", f"backup --data {data} --to before"):
        assert 0 == main(command.split())  # this loads the modules and kernels that the call needs
    if "numba" in sys.modules:  # the other user must be able to write the kernels compiled below
        monkeypatch.setattr("numba.config.CACHE_DIR", str(data.parent / "kernels"))
    if not locked:
        (data / "LOCK").unlink()
    before = names(data)
    capsys.readouterr()
    with readable(data):
        for command in (f"verify {data}", f"backup --data {data} --to backups"):
            assert 0 == main(command.split())
            told = "is read-only and could not be locked; the result is valid only if no process writes to it meanwhile"
            assert locked != (told in capsys.readouterr().err)
    assert before == names(data)
    assert 0 == main(["restore", "--from", "backups", "--data", "restored"])
    with saros.connect("restored") as connection:
        assert expected == connection.execute(query).fetchall()


@pytest.mark.slow
def test_what_only_reads_works_for_who_can_keep_no_compiled_code_anywhere(data: Path) -> None:
    with saros.connect(data) as connection:
        connection.execute("insert into root.a.d(time, x) values (1, 1.5), (2, 2.5)")
        connection.execute("flush")
    code = "import sys; from saros_shell.main import main; sys.exit(main(sys.argv[1:]))"
    nowhere = os.environ | {"NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator"}  # works only for code in ZIP files
    words = [sys.executable, "-c", code, "verify", str(data)]
    done = subprocess.run(words, env=nowhere, capture_output=True, text=True, check=False)
    assert (0, f"{data}: all is well") == (done.returncode, done.stdout.splitlines()[-1]), done.stderr


def test_what_only_reads_is_refused_a_folder_that_is_served_by_somebody_else(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data.parent.chmod(0o777)
    with saros.connect(data) as connection:
        connection.execute("insert into root.a.d(time, x) values (1, 1.5)")
        with readable(data):
            assert 1 == main(["verify", str(data)])
            assert 1 == main(f"backup --data {data} --to backups".split())
    assert 2 == capsys.readouterr().err.count(f"is in use by process {os.getpid()}")


def test_a_connection_to_what_belongs_to_somebody_else_is_an_error_of_the_driver(data: Path) -> None:
    with pytest.raises(saros.Error, match=r"data.*ermission denied"):
        refused(data, lambda: saros.connect(data).close())


def test_a_disk_that_is_only_read_is_called_so() -> None:
    error = cannot_open("data", OSError(errno.EROFS, os.strerror(errno.EROFS), "data/LOCK"))
    assert "data/LOCK: Read-only file system; pass --read-only, or read_only=True, to read it" in str(error)


def test_a_folder_that_is_not_there_is_served_by_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 3 == main(["status", "--data", str(tmp_path / "typo")])
    assert f"no server is running for {tmp_path / 'typo'}: the folder does not exist\n" == capsys.readouterr().out


@pytest.mark.slow
def test_an_address_that_is_none_is_named_once_with_the_reason(tmp_path: Path) -> None:
    where = ["--data", str(tmp_path), "--host", "nowhere.invalid", "--port", "0", "--insecure"]
    command = [sys.executable, "-m", "saros_shell", "start", *where]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (1, 1) == (done.returncode, done.stderr.count("saros start: "))
    assert "cannot listen on nowhere.invalid:0: " in done.stderr
    assert "GRPC" not in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("user init --data data --password-file gone", "cannot read a password from gone: No such file or directory"),
        ("pipeline check gone.yaml", "gone.yaml cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_is_not_there_is_named_once(
    words: str, told: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert data.parent == Path.cwd()
    assert main(words.split()) in (1, 2)
    assert capsys.readouterr().err.endswith(f": {told}\n")
