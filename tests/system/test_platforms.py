"""Simulated macOS and Windows: a `sitecustomize` removes the features that they lack from all processes of a test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from free_ports import free_ports
from self_signed import self_signed

#: macOS has neither fdatasync nor epoll nor abstract sockets. Its F_FULLFSYNC is simulated, and lists synced files.
MACOS = """
import fcntl, os, select, socket
for module, names in (
    (os, "fdatasync O_DIRECT O_TMPFILE sched_getaffinity eventfd eventfd_read eventfd_write memfd_create"),
    (select, "epoll EPOLLIN EPOLLRDHUP EPOLLONESHOT EPOLLET EPOLLHUP EPOLLERR POLLRDHUP"),
    (socket, "TCP_KEEPIDLE"),
):
    for name in names.split():
        delattr(module, name)
socket.TCP_KEEPALIVE = 4
real_uname, real_fcntl = os.uname, fcntl.fcntl
os.uname = lambda: os.uname_result(("Darwin", *real_uname()[1:]))
fcntl.F_FULLFSYNC = 51

def replaced(descriptor, command, *more):
    if command != fcntl.F_FULLFSYNC:
        return real_fcntl(descriptor, command, *more)
    with open(os.environ["FULL_SYNCS"], "a") as stream:
        stream.write(os.readlink(f"/proc/self/fd/{descriptor}") + "\\n")
    os.fsync(descriptor)

fcntl.fcntl = replaced
real_bind = socket.socket.bind

class Socket(socket.socket):
    def bind(self, address):
        assert not (isinstance(address, str) and address.startswith(chr(0)))
        real_bind(self, address)

socket.socket = Socket
"""

#: Windows lacks the POSIX modules, and all calls that exist only on Unix.
WINDOWS = """
import os, select, socket, sys, getpass, pathlib, shutil, subprocess, tempfile
import pyarrow  # libraries have their own wheels for Windows
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[name] = None
for module, names in (
    (os, "uname fdatasync pread pwrite writev sysconf statvfs O_CLOEXEC O_DIRECT geteuid link memfd_create eventfd"),
    (select, "poll epoll"),
    (socket, "AF_UNIX"),
):
    for name in names.split():
        delattr(module, name)

class Socket(socket.socket):
    def __getattribute__(self, name):
        if name in ("sendmsg", "recvmsg"):
            raise AttributeError(name)
        return super().__getattribute__(name)

socket.socket = Socket
"""


def run(tmp_path: Path, system: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    site = tmp_path / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(system)
    environment = dict(os.environ, PYTHONPATH=str(site), FULL_SYNCS=str(tmp_path / "synced"))
    command = [sys.executable, *words]
    return subprocess.run(command, check=False, env=environment, text=True, capture_output=True, cwd=tmp_path)


EMBEDDED = """
import saros
with saros.connect("data") as db:
    db.execute("insert into root.a.d(time, x) values (1, 1.5), (2, 2.5)")
    db.execute("flush")
    db.execute("insert into root.a.d(time, x) values (2, 3.5), (3, 4.5)")
    db.execute("flush")
    db.execute("merge")
    print(db.execute("select count(x), sum(x) from root.a.d").fetchall())
"""


@pytest.mark.slow
def test_macos_writes_merges_reads_and_backs_up(tmp_path: Path) -> None:
    done = run(tmp_path, MACOS, ["-c", EMBEDDED])
    assert (0, "[(3, 9.5)]\n") == (done.returncode, done.stdout), done.stderr
    synced = (tmp_path / "synced").read_text().splitlines()
    assert any("/log/" in path for path in synced)
    assert any(path.rstrip("/").endswith(("/seq", "/unseq")) for path in synced)
    backup = ["-m", "saros_shell", "backup", "--data", "data", "--to", "backups"]
    assert 0 == run(tmp_path, MACOS, backup).returncode
    restore = ["-m", "saros_shell", "restore", "--from", "backups", "--data", "restored"]
    assert 0 == run(tmp_path, MACOS, restore).returncode


@pytest.mark.slow
def test_macos_serves_clients_with_and_without_tls(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    key, certificate = self_signed(tmp_path)
    tls = ["--tls-certificate", str(certificate), "--tls-key", str(key)]
    address = f"saros://127.0.0.1:{port}"
    for options, target in (([], address), (tls, f"{address}/?tls={certificate}")):
        command = ["-m", "saros_shell", "start", "--data", "data", "--port", str(port), "--http-port", "0", *options]
        started = run(tmp_path, MACOS, command)
        try:
            assert 0 == started.returncode, started.stderr
            statements = "insert into root.a.d(time, x) values (1, 1.5); select count(x) from root.a.d;"
            told = run(tmp_path, MACOS, ["-m", "saros_shell", "shell", target, "--format", "csv", "-e", statements])
            assert (0, ["1"]) == (told.returncode, told.stdout.splitlines()[-1:]), told.stderr
            assert 0 == run(tmp_path, MACOS, ["-m", "saros_shell", "status", "--data", "data"]).returncode
        finally:
            assert 0 == run(tmp_path, MACOS, ["-m", "saros_shell", "stop", "--data", "data"]).returncode


@pytest.mark.slow
def test_windows_has_a_remote_shell_and_a_sentence_for_folders(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    saros = [sys.executable, "-m", "saros_shell"]
    data = str(tmp_path / "data")
    subprocess.run([*saros, "start", "--data", data, "--port", str(port), "--http-port", "0"], check=True)
    try:
        statements = "insert into root.a.d(time, x) values (1, 1.5); select count(x) from root.a.d;"
        target = f"saros://127.0.0.1:{port}"
        told = run(tmp_path, WINDOWS, ["-m", "saros_shell", "shell", target, "--format", "csv", "-e", statements])
        assert (0, ["1"]) == (told.returncode, told.stdout.splitlines()[-1:]), told.stderr
    finally:
        subprocess.run([*saros, "stop", "--data", data], check=True)
    sentence = "Saros cannot open a data folder on Windows: it needs Linux or macOS; connect to a server instead"
    for words in (["shell", "here", "-e", "show databases"], ["start", "--data", "here"]):
        refused = run(tmp_path, WINDOWS, ["-m", "saros_shell", *words])
        assert refused.returncode in (1, 2)
        assert sentence in refused.stderr
        assert "Traceback" not in refused.stderr
    assert not (tmp_path / "here").exists()
