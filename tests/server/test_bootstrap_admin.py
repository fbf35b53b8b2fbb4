"""The command `saros cluster secure` creates a cluster's first administrator, or explains why it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from shell.test_cluster_command import DISK, ONE, TWO, base_port, call, cluster_in, file_of, run

import saros
from saros_cluster.meta.machine import decode_meta_file
from saros_cluster.node.cluster_file import Administrator
from saros_server.auth.passwords import Cost, hash_password, verify_password
from saros_server.local import bootstrap_admin, local_cluster
from saros_server.local.local_cluster import make, start
from saros_storage.base.errors import FolderInUse
from saros_storage.io.folder_lock import FolderLock

PASSWORD = "a-lasting-secret"


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    return path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return the folder of a cluster whose two nodes have never been started."""
    make(str(tmp_path / "cluster"), 2, 2, base_port(), DISK)
    return tmp_path / "cluster"


def administrator(password: str) -> Administrator:
    return Administrator("root", hash_password(password, Cost(10)), must_change=False)


@pytest.mark.slow
def test_a_running_cluster_gets_an_administrator_and_keeps_its_data(tmp_path: Path, password: Path) -> None:
    directory = tmp_path / "cluster"
    try:
        done = run("up", "--nodes", "1", "--dir", str(directory), "--base-port", str(base_port()))
        assert 0 == done.returncode, done.stderr
        target = f"saros://{cluster_in(directory).address(ONE)}"
        with saros.connect(target) as anybody:
            anybody.execute("insert into root.a.d(time, x) values (1, 1.5)")
            done = run("secure", "--dir", str(directory), "--init-admin-password-file", str(password))
            assert 0 == done.returncode, done.stderr
            assert f"clients must log in from now on: saros shell saros://root:PASSWORD@{target[8:]}" in done.stdout
            with pytest.raises(saros.Error) as caught:
                anybody.execute("select x from root.a.d").fetchall()
            assert 801 == caught.value.code
        for user, wrong in (("", ""), ("ann", PASSWORD)):  # not root: it would have to wait after a failure
            with pytest.raises(saros.OperationalError) as caught:
                saros.connect(target, user=user, password=wrong)
            assert 801 == caught.value.code
        with saros.connect(target, user="root", password=PASSWORD) as root:
            assert [(1.5,)] == [row[1:] for row in root.execute("select x from root.a.d").fetchall()]
            root.execute("create user ann 'another-long-secret'")
        saros.connect(target, user="ann", password="another-long-secret").close()
        done = call("secure", "--dir", str(directory))
        assert 2 == done.returncode
        assert "already has users: log in as root" in done.stderr
    finally:
        call("down", "--dir", str(directory))
    (directory / "node1" / "meta" / "group-0").rename(tmp_path / "state")
    state, *_ = decode_meta_file("state", (tmp_path / "state").read_bytes())
    assert {"root", "ann"} == state.users.users.keys()


@pytest.mark.slow
def test_a_one_time_password_is_shown_and_kept_nowhere(directory: Path) -> None:
    done = call("secure", "--dir", str(directory))
    assert 0 == done.returncode, done.stderr
    shown = done.stdout.partition("SET PASSWORD '...'): ")[2].split()[0]
    found = [file_of(directory, node).administrator for node in (ONE, TWO)]
    assert [found[0]] * 2 == found
    assert found[0].must_change
    assert verify_password(shown, found[0].hash)
    assert [] == [path for path in directory.rglob("*") if path.is_file() and shown.encode() in path.read_bytes()]
    assert 0 == (directory / "node1" / "cluster.json").stat().st_mode & 0o077
    assert "no node was running, and none was started; start them with saros cluster up" in done.stdout


@pytest.mark.parametrize("written", range(3))
def test_what_was_interrupted_starts_nothing_and_goes_on(directory: Path, written: int, monkeypatch) -> None:
    rewrite, calls = bootstrap_admin.rewrite, []

    def interrupted(*given: object) -> None:
        calls.append(given)
        if len(calls) > written:
            raise OSError("interrupted")
        rewrite(*given)

    first = administrator("the-first-secret")
    with monkeypatch.context() as patched:
        patched.setattr(bootstrap_admin, "rewrite", interrupted)
        if written < 2:
            with pytest.raises(OSError, match="interrupted"):
                bootstrap_admin.secure(cluster_in(directory), first, DISK)
        else:
            patched.setattr(DISK, "remove", interrupted)
            with pytest.raises(OSError, match="interrupted"):
                bootstrap_admin.secure(cluster_in(directory), first, DISK)
    failures = start(cluster_in(directory), [ONE, TWO], "INFO", 1.0, lambda _: None)
    assert [ONE, TWO] == sorted(failures)
    assert all("saros cluster secure was interrupted" in why for why in failures.values())
    assert first == bootstrap_admin.interrupted_administrator(cluster_in(directory), DISK)
    bootstrap_admin.secure(cluster_in(directory), first, DISK)
    assert [first, first] == [file_of(directory, node).administrator for node in (ONE, TWO)]
    assert not cluster_in(directory).problems
    assert bootstrap_admin.interrupted_administrator(cluster_in(directory), DISK) is None


@pytest.mark.slow
def test_a_call_that_goes_on_keeps_the_administrator_that_it_began_with(directory: Path) -> None:
    first = administrator("the-first-secret")
    (directory / local_cluster.SECURING_FILE).write_bytes(bootstrap_admin.encode(first))
    try:
        done = run("secure", "--dir", str(directory))
    finally:
        call("down", "--dir", str(directory))
    assert 0 == done.returncode, done.stderr
    assert "resuming an interrupted call: the administrator and password are those of that call" in done.stderr
    assert [first, first] == [file_of(directory, node).administrator for node in (ONE, TWO)]


def test_nothing_is_changed_while_a_node_has_its_folder(directory: Path) -> None:
    owner = FolderLock.acquire(str(directory / "node2"))
    try:
        with pytest.raises(FolderInUse):
            bootstrap_admin.secure(cluster_in(directory), administrator(PASSWORD), DISK)
    finally:
        owner.release()
    assert [None, None] == [file_of(directory, node).administrator for node in (ONE, TWO)]
    assert not cluster_in(directory).problems


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: os.truncate(path / "node2" / "cluster.json", 9), "node 2: "),
        (lambda path: (path / "securing").write_text("[]"), "is not as saros cluster secure wrote it"),
        (lambda path: path.rename(path.parent / "moved"), "there is no cluster in"),
    ],
)
def test_a_cluster_that_is_not_in_order_is_left_as_it_is(directory: Path, spoil, message: str) -> None:
    spoil(directory)
    done = call("secure", "--dir", str(directory))
    assert 2 == done.returncode
    assert message in done.stderr
    assert "created administrator" not in done.stdout


def test_a_weak_password_secures_nothing(directory: Path, password: Path) -> None:
    password.write_text("short\n")
    done = call("secure", "--dir", str(directory), "--init-admin-password-file", str(password))
    assert (2, True) == (done.returncode, "too short" in done.stderr)
    assert file_of(directory, ONE).administrator is None


def test_auth_for_an_open_cluster_names_the_way(directory: Path) -> None:
    done = call("up", "--auth", "--dir", str(directory))
    assert 2 == done.returncode
    assert f"saros cluster secure --dir {directory}" in done.stderr
