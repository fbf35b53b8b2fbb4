"""`saros cluster`: a cluster of three processes, damaged or foreign folders, and the messages about them."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace
from waiting import wait_until

import saros
from saros_cluster.node.cluster_file import Administrator, ClusterFile, NodeAddress, load, rewrite
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import SLOTS
from saros_server.auth.passwords import verify_password
from saros_server.local import local_cluster
from saros_server.local.local_cluster import LocalCluster, exclusive_lock, find, make
from saros_server.pki.certificate_making import make_certificates
from saros_shell.cluster import command as cluster_command
from saros_shell.cluster import hosts
from saros_shell.commands import user as user_command
from saros_storage.base.errors import UserMistake
from saros_storage.io.disk import LocalDisk
from saros_storage.io.folder_lock import is_free

SAROS = [sys.executable, "-m", "saros_shell", "cluster"]
DISK = LocalDisk()
ID = "123e4567-e89b-12d3-a456-426614174000"
ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)


def base_port() -> int:
    """Return the first of a range of ports that are probably free. Concurrent test processes get different ranges."""
    return 20_000 + os.getpid() % 1_000 * 10


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process, so that the servers that it starts are not children of this process."""
    return subprocess.run([*SAROS, *words], capture_output=True, text=True, check=False)


def call(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, which is faster. Only for commands that start no server."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = cluster_command.main(words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def cluster_in(directory: Path) -> LocalCluster:
    found = find(str(directory), DISK)
    assert found is not None
    return found


def pids(directory: Path) -> dict[NodeId, int | None]:
    cluster = cluster_in(directory)
    return {node: None if (found := cluster.running(node)) is None else found.pid for node in cluster.nodes}


def file_of(directory: Path, node: NodeId) -> ClusterFile:
    file = load(str(directory / f"node{node}"), DISK)
    assert file is not None
    return file


def well(directory: Path) -> subprocess.CompletedProcess[str]:
    """Return the result of `status` once it succeeds. On a busy machine, a group may briefly have no leader."""
    said = []

    def is_well() -> bool:
        said.append(call("status", "--dir", str(directory)))
        return 0 == said[-1].returncode

    wait_until(is_well)
    assert "" == said[-1].stderr
    return said[-1]


# ---------------------------------------------------------------------------------------------- processes


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the directory of a running cluster of three nodes. Finally, end all nodes, even if the start failed."""
    made = tmp_path_factory.mktemp("cluster")
    try:
        done = run("up", "--nodes", "3", "--dir", str(made), "--base-port", str(base_port()))
        assert 0 == done.returncode, done.stderr
        targets = ",".join(cluster_in(made).address(node) for node in (ONE, TWO, THREE))
        assert f"connect with: saros shell saros://{targets}" in done.stdout
        yield made
    finally:
        done = call("down", "--dir", str(made))
    assert 0 == done.returncode


@pytest.mark.slow
def test_every_node_of_a_new_cluster_answers(directory: Path) -> None:
    one = file_of(directory, ONE)
    assert (3, [1, 2, 3]) == (one.replicas, sorted(one.nodes))
    for node in (ONE, TWO, THREE):
        assert replace(one, node=node) == file_of(directory, node)
        with saros.connect(f"saros://{one.nodes[node].client}") as connection:
            assert "Leader" in connection.execute("show regions").fetch_arrow()["Role"].to_pylist()


@pytest.mark.slow
def test_status_shows_nodes_and_groups(directory: Path) -> None:
    done = well(directory)
    for node, pid in pids(directory).items():
        assert re.search(rf"^ *{node} \| 127.0.0.1:\d+ \| {pid} *\| up ", done.stdout, re.MULTILINE)
    assert re.search(r"^group +\| members +\| leader +\| term ", done.stdout, re.MULTILINE)
    assert "none" not in done.stdout


@pytest.mark.slow
def test_up_again_changes_nothing(directory: Path) -> None:
    before = pids(directory), file_of(directory, ONE)
    done = run("up", "--nodes", "3", "--replicas", "3", "--dir", str(directory))
    assert 0 == done.returncode, done.stderr
    assert before == (pids(directory), file_of(directory, ONE))


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--nodes", "--replicas"])
def test_a_cluster_stays_as_it_was_made(directory: Path, option: str) -> None:
    done = call("up", option, "2", "--dir", str(directory))
    assert 2 == done.returncode
    assert f"was created with {option} 3, which cannot be changed to 2; omit {option}" in done.stderr


@pytest.mark.slow
def test_one_node_goes_down_and_comes_back(directory: Path) -> None:
    before = pids(directory)
    done = call("down", "--node", "2", "--dir", str(directory))
    assert (0, "stopped: 2\n") == (done.returncode, done.stdout)
    assert {**before, TWO: None} == pids(directory)
    done = call("status", "--dir", str(directory))
    assert 1 == done.returncode
    assert re.search(r"^ *2 \| 127.0.0.1:\d+ \| - +\| down ", done.stdout, re.MULTILINE)
    done = run("start", "--node", "2", "--dir", str(directory))
    assert 0 == done.returncode, done.stderr
    assert f"saros://{cluster_in(directory).address(TWO)}" in done.stdout
    after = pids(directory)
    assert {**before, TWO: after[TWO]} == after
    assert after[TWO] not in (None, before[TWO])


@pytest.mark.slow
def test_a_killed_node_is_down_until_up_starts_it(directory: Path) -> None:
    before = pids(directory)
    assert before[THREE] is not None
    os.kill(before[THREE], signal.SIGKILL)
    wait_until(lambda: pids(directory)[THREE] is None)
    done = run("up", "--dir", str(directory))
    assert 0 == done.returncode, done.stderr
    after = pids(directory)
    assert before == {**after, THREE: before[THREE]}
    assert after[THREE] not in (None, before[THREE])


@pytest.mark.slow
def test_data_and_identity_outlive_a_stop_of_all(directory: Path) -> None:
    cluster = cluster_in(directory)
    with saros.connect(f"saros://{cluster.address(ONE)}") as connection:
        connection.execute("insert into root.a.d(time, x) values (1, 1.5)")
    assert "stopped: 1, 2, 3\n" == call("down", "--dir", str(directory)).stdout
    assert 3 == call("status", "--dir", str(directory)).returncode
    done = call("down", "--dir", str(directory))
    assert (0, "no node was running\n") == (done.returncode, done.stdout)
    done = run("up", "--dir", str(directory))
    assert 0 == done.returncode, done.stderr
    assert cluster == cluster_in(directory)
    with saros.connect(f"saros://{cluster.address(ONE)}", timestamps="epoch") as connection:
        assert [(1, 1.5)] == connection.execute("select x from root.a.d").fetchall()


@pytest.mark.slow
def test_a_node_joins_and_leaves(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = ["--dir", str(directory)]
    monkeypatch.setenv("SAROS_LOG_LEVEL", "DEBUG")
    with saros.connect(f"saros://{cluster_in(directory).address(ONE)}") as connection:
        connection.execute("insert into root.grown.d(time, x) values (1, 1.0)")
        done = run("add-node", *base, "--base-port", str(base_port()))
        assert 0 == done.returncode, done.stderr
        assert "adding node 4: " in done.stderr
        assert re.search(r"\n +4 .* up ", done.stdout)
        # A node joins a change only after its warm-up has ended or timed out.
        events = [json.loads(line)["event"] for line in (directory / "node4" / "server.log").read_text().splitlines()]
        before = events[: events.index("serving")]
        assert {"warm", "serving before the warm-up has ended"} & set(before)
        connection.execute("insert into root.grown.d(time, x) values (2, 2.0)")
        with saros.connect(f"saros://{cluster_in(directory).address(NodeId(4))}") as fourth:
            assert [(2,)] == fourth.execute("select count(x) from root.grown.d").fetchall()
        assert {ONE, TWO, THREE, 4} == pids(directory).keys()
        lost = pids(directory)[NodeId(4)]
        assert lost is not None
        os.kill(lost, signal.SIGKILL)
        done = run("replace-node", *base, "--node", "4")
        assert 0 == done.returncode, done.stderr
        assert "node 4 has left the cluster" in done.stdout
        assert [ONE, TWO, THREE, 5] == cluster_in(directory).nodes
        done = run("remove-node", *base, "--node", "5")
        assert 0 == done.returncode, done.stderr
        assert (directory / "node5" / "cluster.json").exists()
        assert [ONE, TWO, THREE] == cluster_in(directory).nodes
        assert is_free(str(directory / "node5"))
        connection.execute("insert into root.grown.d(time, x) values (3, 3.0)")
        assert [(3,)] == connection.execute("select count(x) from root.grown.d").fetchall()
    done = run("up", *base)
    assert (0, False) == (done.returncode, "node 4" in done.stderr), done.stderr
    assert "there is no node 4" in call("start", *base, "--node", "4").stderr


def join(directory: Path, folder: Path, peer: str, client: str, *more: str) -> subprocess.CompletedProcess[str]:
    to = f"saros://{cluster_in(directory).address(ONE)}"
    return run("join", "--data", str(folder), "--to", to, "--peer", peer, "--client", client, *more)


@pytest.mark.slow
def test_a_folder_elsewhere_joins(directory: Path, tmp_path: Path) -> None:
    """A second `join` of a folder changes nothing. After the node is lost, a node in another folder replaces it."""
    second = tmp_path.with_name(f"{tmp_path.name}-second")
    peer, client = (f"127.0.0.1:{base_port() + 1_000 + number}" for number in range(2))
    with saros.connect(f"saros://{cluster_in(directory).address(ONE)}") as connection:
        try:
            done = join(directory, tmp_path, peer, client)
            assert 0 == done.returncode, done.stderr
            file = load(str(tmp_path), DISK)
            assert file is not None
            assert (NodeAddress(peer, client), f"node {file.node} is in the cluster\n") == (file.joined, done.stdout)
            again = join(directory, tmp_path, peer, client)
            assert (0, done.stdout) == (again.returncode, again.stdout)
            done = join(directory, tmp_path, peer, "127.0.0.1:1")
            assert (2, True) == (done.returncode, f"belongs to node {file.node} at {peer}, {client}" in done.stderr)
            for pid in servers_of(tmp_path):
                os.kill(pid, signal.SIGKILL)
            peer, client = (f"127.0.0.1:{base_port() + 1_100 + number}" for number in range(2))
            done = join(directory, second, peer, client, "--replace", "99")
            assert (2, True) == (done.returncode, "there is no node 99; the nodes are 1, 2, 3" in done.stderr)
            lost = str(file.node)
            for _ in range(2):
                done = join(directory, second, peer, client, "--replace", lost)
                assert 0 == done.returncode, done.stderr
                assert f"is in the cluster, in place of node {lost}; stop that node" in done.stdout
            taken = load(str(second), DISK)
            assert taken is not None
            wait_until(lambda: 0 == run("status", "--to", f"saros://{client}").returncode)  # it may be warming up
            done = run("status", "--to", f"saros://{client}")
            assert re.search(rf"\n +{taken.node} \| {client} +\| - +\| up ", done.stdout)
            assert f"\n   {lost} |" not in done.stdout
            connection.execute(f"remove node {taken.node}")
            wait_until(lambda: not connection.execute("show cluster change").fetchall())
            assert 3 == len(connection.execute("show cluster").fetchall())
        finally:
            for pid in servers_of(tmp_path) + servers_of(second):
                os.kill(pid, signal.SIGTERM)


@pytest.mark.slow
def test_a_node_on_another_machine_needs_a_certificate_before_it_starts(directory: Path, tmp_path: Path) -> None:
    told = []
    for _ in range(2):
        done = join(directory, tmp_path, "192.0.2.1:6668", "192.0.2.1:6667")
        assert 1 == done.returncode, done.stderr
        told.append(done.stdout)
    file = load(str(tmp_path), DISK)
    assert file is not None
    assert f"--cluster {file.cluster} --nodes {file.node}=192.0.2.1" in told[0]
    assert told[0] == told[1]
    assert [] == servers_of(tmp_path)
    with saros.connect(f"saros://{cluster_in(directory).address(ONE)}") as connection:
        connection.execute(f"dismiss node {file.node}")
    done = join(directory, tmp_path / "other", "here", "there:1")
    assert (1, True) == (done.returncode, "'here' is not an address" in done.stderr), done.stderr


@pytest.mark.slow
def test_a_node_that_is_needed_does_not_leave(directory: Path) -> None:
    done = run("remove-node", "--dir", str(directory), "--node", "3")
    assert 0 != done.returncode
    assert "2 nodes would be left for 3 replicas; add a node first" in done.stderr
    done = run("remove-node", "--dir", str(directory), "--node", "2", "3")
    assert (2, True) == (done.returncode, "1 node would be left for 3 replicas; add nodes first" in done.stderr)
    assert THREE in cluster_in(directory).nodes


@pytest.mark.slow
def test_a_node_whose_port_is_taken_says_so(tmp_path: Path) -> None:
    cluster = make(str(tmp_path), 1, 1, base_port() + 6, DISK)
    with listening(int(cluster.address(ONE).rpartition(":")[2])):
        done = run("start", "--node", "1", "--dir", str(tmp_path))
    assert 1 == done.returncode
    assert f"it did not come up: cannot listen on {cluster.address(ONE)}: another process uses the port" in done.stderr
    assert f"{tmp_path}/node1/server.log" in done.stderr


def interrupted_up(directory: Path, port: int) -> str:
    """Interrupt `up` as soon as it has launched a server, and return its messages from then on."""
    up = [*SAROS, "up", "--nodes", "1", "--dir", str(directory), "--base-port", str(port)]
    # If the process that runs the tests ignores the signal, a child process would ignore it, too.
    words = ["env", "--default-signal=INT", *up]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        assert "starting node 1\n" == started.stderr.readline()
        started.send_signal(signal.SIGINT)
        told = started.stderr.read()
    assert 130 == started.returncode
    return told


@pytest.mark.slow
def test_interrupted_while_it_waits(tmp_path: Path) -> None:
    """The next `up` waits for the server that the interrupted `up` has launched, and does not start a second server."""
    told = interrupted_up(tmp_path, base_port() + 8)
    assert "saros cluster up: interrupted; started nodes keep running" in told
    assert "Traceback" not in told
    try:
        done = run("up", "--dir", str(tmp_path))
        assert 0 == done.returncode, done.stderr
        assert 1 == len(servers_of(tmp_path))
    finally:
        ended = call("down", "--dir", str(tmp_path))
    assert "stopped: 1\n" == ended.stdout
    assert [] == servers_of(tmp_path)


@pytest.mark.slow
def test_down_ends_also_what_is_just_coming_up(tmp_path: Path) -> None:
    interrupted_up(tmp_path, base_port() + 8)
    assert 1 == len(servers_of(tmp_path))
    assert "stopped: 1\n" == call("down", "--dir", str(tmp_path)).stdout
    assert [] == servers_of(tmp_path)
    assert "no node was running\n" == call("down", "--dir", str(tmp_path)).stdout


def servers_of(directory: Path) -> list[int]:
    """Return the processes that serve, or are about to serve, the directory or a folder in it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # the process has ended
            continue
        if b"--foreground" in words and any(word.startswith(bytes(directory)) for word in words):
            found.append(int(path.parent.name))
    return found


# ---------------------------------------------------------------------------------------------- users


@pytest.mark.slow
def test_a_cluster_with_users_shows_its_groups_to_who_logs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`up` prints a one-time password only once. Without a login, `status` shows processes, but not groups."""
    monkeypatch.setenv("SAROS_PASSWORD_COST", "10")
    monkeypatch.delenv("SAROS_PASSWORD", raising=False)
    up = ("up", "--nodes", "1", "--dir", str(tmp_path), "--base-port", str(base_port() - 5_000), "--auth")
    status = ("status", "--dir", str(tmp_path))
    try:
        done = run(*up)
        assert 0 == done.returncode, done.stderr
        found = re.search(r"SET PASSWORD '...'\): (\S+)\n", done.stdout)
        assert found is not None
        address = cluster_in(tmp_path).address(ONE)
        assert f"connect with: saros shell saros://root:PASSWORD@{address}" in done.stdout
        with saros.connect(f"saros://{address}", user="root", password=found[1]) as connection:
            connection.execute("alter user root set password 'a-lasting-secret'")
        assert found[1] not in run(*up).stdout
        done = call(*status)
        assert (0, "") == (done.returncode, done.stderr)
        assert f"1 | {address} | {pids(tmp_path)[ONE]}" in done.stdout
        assert "to see the groups, log in" in done.stdout
        (tmp_path / "password").write_text("a-lasting-secret\n")
        done = call(*status, "--user", "root", "--password-file", str(tmp_path / "password"))
        assert (0, True) == (done.returncode, "leads meta, 1" in done.stdout)
        done = call(*status, "--user", "root")
        assert (2, True) == (done.returncode, "--user needs a password: in SAROS_PASSWORD" in done.stderr)
        monkeypatch.setenv("SAROS_PASSWORD", found[1])
        done = run(*up, "--user", "root")
        assert (2, 1) == (done.returncode, done.stderr.count("wrong user or password"))
    finally:
        ended = call("down", "--dir", str(tmp_path))
    assert "stopped: 1\n" == ended.stdout
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and found[1].encode() in path.read_bytes()]
    assert [] == kept
    assert 0 == (tmp_path / "node1" / "cluster.json").stat().st_mode & 0o077


def test_a_cluster_that_was_made_without_users_gets_none(tmp_path: Path) -> None:
    make(str(tmp_path), 1, 1, base_port(), DISK)
    done = call("up", "--auth", "--dir", str(tmp_path))
    assert 2 == done.returncode
    assert "was created without --auth and has no users" in done.stderr


def test_a_weak_password_makes_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("short\n")
    done = call("up", "--dir", str(tmp_path), "--init-admin-password-file", str(tmp_path / "password"))
    assert (2, True) == (done.returncode, "too short" in done.stderr)
    assert find(str(tmp_path), DISK) is None


# ---------------------------------------------------------------------------------------------- folders


def listening(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


def test_ports_that_are_taken_are_passed_over(tmp_path: Path) -> None:
    base = base_port() - 10_000  # far from the ports of the other tests' cluster
    with listening(base + 1):
        file = make(str(tmp_path), 2, 2, base, DISK).file
    ports = [int(text.rpartition(":")[2]) for address in file.nodes.values() for text in (address.client, address.peer)]
    assert base + 1 not in ports
    assert min(ports) == base
    with pytest.raises(UserMistake, match="fewer than 4 ports are free"):
        make(str(tmp_path / "other"), 2, 2, 65_534, DISK)


@pytest.mark.parametrize(
    ("nodes", "replicas", "message"), [(0, 1, "nodes is 0"), (33, 3, "nodes is 33"), (2, 3, "replicas is 3")]
)
def test_numbers_are_checked(tmp_path: Path, nodes: int, replicas: int, message: str) -> None:
    with pytest.raises(UserMistake, match=message):
        make(str(tmp_path), nodes, replicas, base_port(), DISK)
    assert [] == list(tmp_path.iterdir())


def test_a_cluster_that_was_not_made_leaves_no_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = tmp_path / "there"
    there.mkdir()
    for directory in (there, tmp_path / "new"):
        assert 2 == cluster_command.main(["up", "--nodes", "3", "--replicas", "5", "--dir", str(directory)])
        assert "replicas is 5: expected from 1 to 3" in capsys.readouterr().err
    assert [there] == list(tmp_path.iterdir())


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    saros.connect(str(tmp_path / "node2")).close()
    assert find(str(tmp_path), DISK) is None
    with pytest.raises(UserMistake, match="node2 is not empty, and holds no cluster"):
        make(str(tmp_path), 3, 3, base_port(), DISK)
    assert ["node2"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize("lost", [ONE, THREE])
def test_a_making_that_was_interrupted_is_begun_anew(tmp_path: Path, lost: NodeId) -> None:
    first = make(str(tmp_path), 3, 3, base_port(), DISK)
    (tmp_path / f"node{lost}" / "cluster.json").unlink()
    assert find(str(tmp_path), DISK) is None
    second = make(str(tmp_path), 2, 2, base_port(), DISK)
    assert second == cluster_in(tmp_path)
    assert first.file.cluster != second.file.cluster
    assert ["node1", "node2"] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize("lost", [ONE, TWO])
def test_a_node_that_lost_its_folder_does_not_come_back(tmp_path: Path, lost: NodeId) -> None:
    """The node no longer knows for which node it voted, and could vote twice in a term."""
    made = make(str(tmp_path), 2, 2, base_port(), DISK)
    ran = TWO if lost == ONE else ONE
    (tmp_path / f"node{ran}" / "node.json").touch()
    (tmp_path / f"node{lost}" / "cluster.json").unlink()
    cluster = cluster_in(tmp_path)
    assert made.file.cluster == cluster.file.cluster
    assert [lost] == list(cluster.problems)
    failures = local_cluster.start(cluster, [lost], "INFO", 1.0, lambda _: None)
    assert "does not know its votes any more" in failures[lost]
    assert [] == list((tmp_path / f"node{lost}").iterdir())


def test_a_node_of_another_cluster_is_not_started(tmp_path: Path) -> None:
    make(str(tmp_path), 2, 2, base_port(), DISK)
    path = tmp_path / "node2" / "cluster.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "cluster": ID}))
    assert "does not agree with that of node 1" in cluster_in(tmp_path).problems[TWO]
    path.write_text("{}")
    assert "cluster.json: format is null" in cluster_in(tmp_path).problems[TWO]
    (tmp_path / "node1" / "cluster.json").write_text("{}")
    with pytest.raises(UserMistake, match=r"node1/cluster.json: format is null"):
        find(str(tmp_path), DISK)


def test_one_process_at_a_time_makes_and_starts(tmp_path: Path) -> None:
    with exclusive_lock(str(tmp_path), DISK):
        done = call("up", "--dir", str(tmp_path))
    assert 2 == done.returncode
    assert f"process {os.getpid()} is changing the cluster in {tmp_path}: wait" in done.stderr
    assert ["LOCK"] == [path.name for path in tmp_path.iterdir()]


def test_a_file_that_a_dead_process_left_behind_is_no_process(tmp_path: Path) -> None:
    """After a restart of the machine, the recorded process id may belong to any other process."""
    cluster = make(str(tmp_path), 1, 1, base_port(), DISK)
    (tmp_path / "node1" / "server.json").write_text(json.dumps({"pid": os.getpid(), "address": "127.0.0.1:1"}))
    assert cluster.running(ONE) is None


@pytest.mark.parametrize("command", ["status", "down", "start"])
def test_without_a_cluster_it_says_how_to_make_one(tmp_path: Path, command: str) -> None:
    more = ["--node", "1"] if command == "start" else []
    done = call(command, "--dir", str(tmp_path / "nothing"), *more)
    assert 2 == done.returncode
    assert f"create one with saros cluster up --dir {tmp_path}/nothing" in done.stderr
    assert [] == list(tmp_path.iterdir())


def test_a_node_that_is_not_there(tmp_path: Path) -> None:
    make(str(tmp_path), 2, 2, base_port(), DISK)
    done = call("down", "--dir", str(tmp_path), "--node", "3")
    assert 2 == done.returncode
    assert "there is no node 3; the nodes are 1, 2" in done.stderr


# ---------------------------------------------------------------------------------------------- init

NODES = "1=hostA:6668/hostA:6667,2=[::1]:6668/hostB:6667"


def init(folder: Path, **changes: str | None) -> subprocess.CompletedProcess[str]:
    options = {"data": str(folder), "node": "2", "cluster": ID, "replicas": "2", "nodes": NODES, **changes}
    return call("init", *(word for name, value in options.items() if value for word in (f"--{name}", value)))


def test_init_writes_one_nodes_file_once(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    done = init(folder)
    assert (0, f"node 2 of cluster {ID}: saros start --data {folder}\n") == (done.returncode, done.stdout)
    assert "to listen on hostB:6667, a node needs an administrator" in done.stderr
    file = load(str(folder), DISK)
    assert file is not None
    assert (ID, 2, 2, 10_000) == (file.cluster, file.node, file.replicas, file.slots)
    assert ("[::1]:6668", "hostB:6667", "hostA:6668") == (file.address.peer, file.address.client, file.nodes[ONE].peer)
    assert 0 == init(folder).returncode
    done = init(folder, node="1")
    assert 2 == done.returncode
    assert "cluster.json already exists with other content" in done.stderr
    assert file == load(str(folder), DISK)


def test_new_clusters_have_a_bound_of_voters(tmp_path: Path) -> None:
    """A cluster file without a bound, from an earlier version, is unchanged when `init` runs again."""
    assert 5 == make(str(tmp_path / "cluster"), 2, 2, base_port(), DISK).file.meta_voters
    bounds = []
    for words in ({}, {"meta-voters": "3"}):
        folder = tmp_path / f"data{len(bounds)}"
        assert 0 == init(folder, **words).returncode
        file = load(str(folder), DISK)
        assert file is not None
        bounds.append(file.meta_voters)
    assert [5, 3] == bounds
    before = replace(file, meta_voters=None)
    rewrite(str(folder), before, DISK)
    assert 0 == init(folder).returncode
    assert before == load(str(folder), DISK)
    done = call("up", "--dir", str(tmp_path / "cluster"), "--meta-voters", "7")
    assert 2 == done.returncode
    assert "was created with --meta-voters 5, which cannot be changed to 7" in done.stderr


@pytest.mark.slow
def test_init_takes_the_hash_of_an_administrator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "password").write_text("a-lasting-secret\n")
    assert 0 == user_command.main(["hash", "--password-file", str(tmp_path / "password")])
    phc = capsys.readouterr().out.strip()
    (tmp_path / "hash").write_text(phc + "\n")
    assert 0 == init(tmp_path / "one", **{"administrator-hash": phc}).returncode
    assert 0 == init(tmp_path / "two", **{"administrator-hash-file": str(tmp_path / "hash")}).returncode
    files = [load(str(tmp_path / name), DISK) for name in ("one", "two")]
    assert files[0] == files[1]
    assert files[0] is not None
    assert Administrator("root", phc, must_change=False) == files[0].administrator
    assert verify_password("a-lasting-secret", phc)
    done = init(tmp_path / "three", **{"administrator-hash": "a-lasting-secret"})
    assert (2, True) == (done.returncode, "not a password hash: make one with saros user hash" in done.stderr)


def test_certificates_are_made_for_all_nodes(tmp_path: Path) -> None:
    words = ("certificates", "--dir", str(tmp_path / "out"), "--cluster", ID, "--nodes")
    done = call(*words, "1=hostA,2=192.0.2.1")
    assert (0, True) == (done.returncode, "created ca.pem, node1.pem, node2.pem\n" in done.stdout)
    assert "all certificates exist already" in call(*words, "1=hostA,2=192.0.2.1").stdout
    for nodes in ("1", "0=a", "1=a,1=b", "1=a b"):
        assert 2 == call(*words, nodes).returncode
    assert 2 == call("certificates", "--dir", str(tmp_path / "out"), "--cluster", "mine", "--nodes", "1=a").returncode


def _tls_port(folder: Path, *, tls: bool) -> tuple[socket.socket, int]:
    """Listen for connections of nodes, with or without TLS. Return the socket and its port."""
    listening = socket.create_server(("127.0.0.1", 0))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if tls:
        context.load_cert_chain(str(folder / "node1.pem"), str(folder / "node1.key"))

    def answer() -> None:
        with suppress(OSError):
            while True:
                line, _ = listening.accept()
                with suppress(OSError):
                    if tls:
                        context.wrap_socket(line, server_side=True).close()
                    line.close()

    threading.Thread(target=answer, daemon=True).start()
    return listening, listening.getsockname()[1]


def test_who_joins_is_told_at_once_that_certificates_do_not_go_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There are four cases: the other nodes have certificates or not, and the new node has a certificate or not."""
    make_certificates(str(tmp_path), ID, {NodeId(1): "127.0.0.1", NodeId(2): "127.0.0.1"})
    (tmp_path / "bare").mkdir()
    (tmp_path / "given").mkdir()
    keys = {"peer_ca": "ca.pem", "peer_certificate": "node2.pem", "peer_key": "node2.key"}
    (tmp_path / "given" / "saros.toml").write_text("".join(f'{k} = "{tmp_path / v}"\n' for k, v in keys.items()))

    def may_start(folder: str, port: int) -> bool:
        nodes = {NodeId(1): NodeAddress(f"127.0.0.1:{port}", "127.0.0.1:1")}
        joined = NodeAddress("127.0.0.1:2", "127.0.0.1:3")
        file = ClusterFile(ID, NodeId(2), 1, SLOTS, nodes, joined=joined)
        return hosts._may_start(str(tmp_path / folder), file)

    secure, port = _tls_port(tmp_path, tls=True)
    with secure:
        assert not may_start("bare", port)
        assert "node 2 is admitted, but needs a certificate before it starts" in capsys.readouterr().out
        assert may_start("given", port)
    plain, port = _tls_port(tmp_path, tls=False)
    with plain:
        assert may_start("bare", port)
        with pytest.raises(UserMistake, match="the other nodes of the cluster use no certificates"):
            may_start("given", port)


def test_a_database_of_its_own_does_not_become_a_node(tmp_path: Path) -> None:
    saros.connect(str(tmp_path)).close()
    done = init(tmp_path)
    assert 2 == done.returncode
    assert "is not empty, and has no cluster.json; choose another folder" in done.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cluster": None}, "for a new cluster, pass --cluster "),
        ({"cluster": "mine"}, 'cluster is "mine": expected a UUID'),
        ({"node": "3"}, "node is 3: expected one of the nodes 1, 2"),
        ({"replicas": "3"}, "replicas is 3: expected from 1 to 2"),
        ({"nodes": "1=a:1/a:2,2=b:1"}, "'2=b:1' is not of the form 1=host:6668/host:6667"),
        ({"nodes": "1=a:1/a:2,b:1/b:2"}, "'b:1/b:2' is not of the form"),
        ({"nodes": "1=a:1/a:2,1=b:1/b:2"}, "node 1 is given twice"),
        ({"nodes": "1=a:1/a:2,2=a:1/b:2"}, 'nodes is "a:1": expected distinct addresses'),
    ],
)
def test_init_names_what_is_wrong(tmp_path: Path, changes: dict[str, str | None], message: str) -> None:
    done = init(tmp_path / "data", **changes)
    assert 2 == done.returncode
    assert message in done.stderr
    assert not (tmp_path / "data").exists()
