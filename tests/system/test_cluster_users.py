"""Users of a cluster: every node knows them and requires a login; nodes prove their identities to each other."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from google.protobuf.message import Message
from log_cutting import cut_log
from msgspec.structs import replace
from server.frame_client import Refused
from server.secured import ANN, CHEAP, ROOT, Secured, raw_call
from system.cluster_fixture import Nodes, SecuredNode, answers_strongly, make_folders, with_root
from waiting import wait_until

import saros
from saros_cluster.database.database import ClusterDatabase
from saros_cluster.multiraft.peers import RemoteError, Unreachable
from saros_cluster.node.cluster_file import decode
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.ready import RaftOptions
from saros_cluster.transport.handshake import Identity
from saros_cluster.users.commands import CreateUser
from saros_server.auth.passwords import is_outdated
from saros_server.cluster import node as cluster_node
from saros_server.config.configuration import ConfigurationError, load
from saros_server.node.node import Node
from saros_server.pki.certificate_making import make_certificates
from saros_server.pki.peer_certificates import PeerFiles, peer_credentials
from saros_server.server import Server
from saros_shell.commands import user as user_command
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import StorageError, UserMistake
from saros_wire.frames import Call
from saros_wire.generated import client_pb2

WEEK = 604_800_000


class Cluster:
    """Servers in this process for the nodes of a cluster that has the user root."""

    def __init__(self, folder: Path, nodes: int, replicas: int) -> None:
        self.folders = with_root(make_folders(folder, nodes, replicas))
        self.servers: list[Server | None] = [None] * nodes
        for number in range(nodes):
            self.start(number)
        self.wait_ready()

    def start(self, number: int) -> None:
        server = self.servers[number] = Server(str(self.folders[number]), "", 0)
        server.start()

    def stop(self, number: int) -> None:
        server, self.servers[number] = self.servers[number], None
        assert server is not None
        server.stop()

    def node(self, number: int) -> Node:
        server = self.servers[number]
        assert server is not None
        return server.api.node

    def connect(self, number: int, user: str, password: str) -> saros.Connection:
        server = self.servers[number]
        assert server is not None
        target = f"saros://{server.address}"
        return saros.connect(target, user=user, password=password, timestamps="epoch", failover_s=5.0)

    def wait_ready(self) -> None:
        for number, server in enumerate(self.servers):
            if server is not None:
                wait_until(lambda n=number: answers_strongly(self.node(n)))

    def visible(self, number: int) -> None:
        """Wait until this node shows all changes that any node has acknowledged."""
        self.node(number).directory.newest()

    def close(self) -> None:
        for number, server in enumerate(self.servers):
            if server is not None:
                self.stop(number)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster of three nodes, each with a third of the data."""
    made = Cluster(tmp_path_factory.mktemp("cluster"), 3, 1)
    yield made
    made.close()


@pytest.mark.slow
def test_a_user_made_at_one_node_logs_in_at_all(cluster: Cluster) -> None:
    with cluster.connect(0, "root", ROOT) as root:
        for turn in range(5):
            root.execute(f"create user made{turn} '{ANN}'")
            for number in range(3):
                cluster.connect(number, f"made{turn}", ANN).close()
            root.execute(f"drop user made{turn}")
            for number in range(3):
                with pytest.raises(saros.OperationalError) as caught:
                    cluster.connect(number, f"made{turn}", ANN)
                assert 801 == caught.value.code
    with pytest.raises(saros.OperationalError):
        cluster.connect(1, "", "")


def test_a_token_made_at_one_node_logs_in_at_all_until_it_is_dropped(cluster: Cluster) -> None:
    with cluster.connect(0, "root", ROOT) as root:
        root.execute(f"create user tom '{ANN}'")
        ((_, _, secret, _),) = root.execute("create token gateway for user tom expires in 1d").fetchall()
        sessions = [cluster.connect(number, "tom", secret) for number in range(3)]
        for session in sessions:
            assert [("tom",)] == session.execute("show current_user").fetchall()
        cluster.stop(1)  # when the node starts again, it reads the token from its file
        cluster.start(1)
        cluster.wait_ready()
        cluster.connect(1, "tom", secret).close()
        root.execute("drop token gateway of user tom")
        for number, session in enumerate(sessions):
            cluster.visible(number)
            with pytest.raises(saros.Error):
                session.execute("show current_user")
            session.close()
            with pytest.raises(saros.OperationalError) as caught:
                cluster.connect(number, "tom", secret)
            assert 801 == caught.value.code
        root.execute("drop user tom")


def test_privileges_count_at_any_coordinator_for_data_of_any_node(cluster: Cluster) -> None:
    with cluster.connect(0, "root", ROOT) as root:
        weeks = list(range(12))  # so that every node has some data
        root.insert("root.p.d", [w * WEEK for w in weeks], {"seen": weeks, "hidden": weeks})
        root.execute(f"create user ann '{ANN}'")
    with cluster.connect(1, "root", ROOT) as root, cluster.connect(2, "ann", ANN) as ann:
        query = "select * from root.p.**"
        assert [] == ann.execute(query).fetchall()
        root.execute("grant read_data on root.p.d.seen to user ann")
        cluster.visible(2)
        assert [(w * WEEK, w) for w in weeks] == ann.execute(query).fetchall()
        assert [(12,)] == ann.execute("select count(*) from root.p.**").fetchall()
        for denied in (
            "select hidden from root.p.d",
            "insert into root.p.d(time, seen) values (1, 1)",
            "delete from root.p.d.seen",
            "flush",
        ):
            with pytest.raises(saros.ProgrammingError) as caught:
                ann.execute(denied)
            assert 803 == caught.value.code
        root.execute("create role all_of_it")
        root.execute("grant read_data on root.p.** to role all_of_it")
        root.execute("grant role all_of_it to ann")
        cluster.visible(2)
        assert [(w * WEEK, w, w) for w in weeks] == ann.execute(query).fetchall()
        root.execute("revoke role all_of_it from ann")
        root.execute("revoke read_data on root.p.d.seen from user ann")
        cluster.visible(2)
        assert [] == ann.execute(query).fetchall()
        assert [("ann",)] == ann.execute("list user").fetchall()
        assert ("ann",) in root.execute("list user").fetchall()


@pytest.mark.parametrize("statement", ["drop user gone", f"alter user gone set password '{ROOT}'"])
def test_the_sessions_of_who_is_gone_end_everywhere(cluster: Cluster, statement: str) -> None:
    with cluster.connect(0, "root", ROOT) as root:
        with suppress(saros.Error):
            root.execute("drop user gone")
        root.execute(f"create user gone '{ANN}'")
        sessions = [open_at(cluster, number, "gone") for number in range(3)]
        root.execute(statement)
    for number, token in enumerate(sessions):
        cluster.visible(number)
        with pytest.raises(Refused, match="no such session"):
            call_at(cluster, number, Call.CLOSE, None, token)


def open_at(cluster: Cluster, number: int, user: str) -> bytes:
    request = client_pb2.OpenRequest(user=user, password=ANN)
    return client_pb2.OpenReply.FromString(call_at(cluster, number, Call.OPEN, request, None)).session


def call_at(cluster: Cluster, number: int, call: Call, message: Message | None, token: bytes | None) -> bytes:
    server = cluster.servers[number]
    assert server is not None
    return raw_call(server.address, call, message, token)


# ---------------------------------------------------------------------------------------------- restarts and losses


@pytest.mark.slow
def test_users_survive_a_restart_of_all_and_a_snapshot_of_the_meta_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users change while node 0 is down, node 0 gets them in a snapshot, and all nodes restart from their files."""
    monkeypatch.setattr(cluster_node, "RAFT_OPTIONS", RaftOptions(retained_bytes=1))
    cluster = Cluster(tmp_path, 3, 3)
    try:
        cluster.stop(0)
        cluster.wait_ready()
        with cluster.connect(1, "root", ROOT) as root:
            root.execute(f"create user ann '{ANN}'")
            for number in range(30):
                root.execute(f"create role r{number}")
            root.execute("grant read_data on root.a.** to role r7")
            root.execute("grant role r7 to ann")
            expected = cluster.node(1).directory.newest()
        for number in (1, 2):
            cluster.visible(number)
            opened = cluster.node(number).cluster
            assert opened is not None
            cut_log(opened)
        lanes_lost(cluster)
        cluster.start(0)
        cluster.wait_ready()
        assert expected == cluster.node(0).directory.newest()
        opened = cluster.node(0).cluster
        assert opened is not None
        assert opened.chores._meta.installed is not None, "the node was not given a snapshot"
        for number in range(3):
            cluster.stop(number)
        for number in range(3):
            cluster.start(number)
        cluster.wait_ready()
        for number in range(3):
            assert expected == cluster.node(number).directory.newest()
            with cluster.connect(number, "ann", ANN) as ann:
                assert [("r7", "root.a.**", "READ_DATA", False)] == ann.execute(
                    "list privileges of user ann"
                ).fetchall()
    finally:
        cluster.close()


def lanes_lost(cluster: Cluster) -> None:
    """Drop the messages that nodes 1 and 2 have queued for node 0."""
    for number in (1, 2):
        opened = cluster.node(number).cluster
        assert opened is not None
        lane = opened.database._parts.peers._lanes.pop(NodeId(1), None)  # type: ignore[attr-defined]
        if lane is not None:
            lane.close()


def test_who_was_known_logs_in_without_a_leader_and_nothing_can_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stored hash is weaker than configured. A login tries to replace the hash, which fails without a leader."""
    nodes = with_root(make_folders(tmp_path, 3, 3))
    for folder in nodes:
        (folder / "saros.toml").write_text('password_cost = 11\ndurability = "os"\n')
    alone = Server(str(nodes[0]), "", 0)
    alone.start()
    try:
        directory = alone.api.node.directory
        before = directory.users()
        saros.connect(f"saros://{alone.address}", user="root", password=ROOT).close()
        with pytest.raises(saros.OperationalError):
            saros.connect(f"saros://{alone.address}", user="root", password=ANN)
        assert before is directory.users()
        assert is_outdated(before.user("root").hash, replace(CHEAP, ln=11))
        monkeypatch.setattr("saros_cluster.database.cluster_directory.DEADLINE_SECONDS", 0.2)
        with pytest.raises(StorageError) as caught:
            directory.change(CreateUser("ann", before.user("root").hash))
        assert caught.value.code in (2017, 2018)
        assert before is directory.users()
    finally:
        alone.stop()


def test_an_older_hash_is_made_anew_at_login(tmp_path: Path) -> None:
    (folder,) = with_root(make_folders(tmp_path, 1, 1))
    (folder / "saros.toml").write_text('password_cost = 11\ndurability = "os"\n')
    server = Server(str(folder), "", 0)
    server.start()
    try:
        wait_until(lambda: answers_strongly(server.api.node))
        saros.connect(f"saros://{server.address}", user="root", password=ROOT).close()
        assert not is_outdated(server.api.node.directory.users().user("root").hash, replace(CHEAP, ln=11))
        saros.connect(f"saros://{server.address}", user="root", password=ROOT).close()
    finally:
        server.stop()


# ---------------------------------------------------------------------------------------------- first administrator


def test_a_one_time_password_sets_another_one_for_all_nodes(tmp_path: Path) -> None:
    cluster = Cluster.__new__(Cluster)
    cluster.folders = with_root(make_folders(tmp_path, 2, 2), must_change=True)
    cluster.servers = [None, None]
    try:
        for number in range(2):
            cluster.start(number)
        cluster.wait_ready()
        with cluster.connect(0, "root", ROOT) as root:
            with pytest.raises(saros.ProgrammingError) as caught:
                root.execute("show databases")
            assert 2040 == caught.value.code
            root.execute("alter user root set password 'a-lasting-secret'")
        cluster.connect(1, "root", "a-lasting-secret").execute("show databases").fetchall()
        with pytest.raises(saros.OperationalError):
            cluster.connect(1, "root", ROOT)
    finally:
        cluster.close()


@pytest.mark.slow
def test_a_cluster_without_an_administrator_keeps_no_users(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, 1, 1)
    try:
        with pytest.raises(UserMistake, match="this cluster has no users: it was created without an administrator"):
            nodes.run(0, f"create user ann '{ANN}'")
        assert [] == nodes.run(0, "list user")
    finally:
        nodes.close()


@pytest.mark.parametrize("began_with", [True, False])
def test_an_administrator_is_not_written_in_later_nor_taken_away(tmp_path: Path, began_with: bool) -> None:
    """Otherwise a node might seem to require passwords although it does not, or might suddenly stop requiring them."""
    (folder,) = make_folders(tmp_path, 1, 1)
    without = (folder / "cluster.json").read_bytes()
    with_root([folder])
    with_one = (folder / "cluster.json").read_bytes()
    first, second = (with_one, without) if began_with else (without, with_one)
    (folder / "cluster.json").write_bytes(first)
    Server(str(folder), "", 0).stop()
    (folder / "cluster.json").write_bytes(second)
    with pytest.raises(UserMistake, match="restore the original file") as caught:
        Server(str(folder), "", 0)
    assert 2004 == caught.value.code


def test_a_node_is_told_how_its_cluster_gets_an_administrator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder,) = make_folders(tmp_path, 1, 1)
    (tmp_path / "password").write_text(ROOT + "\n")
    assert 1 == user_command.main(["init", "--data", str(folder), "--password-file", str(tmp_path / "password")])
    assert "saros cluster init --administrator-hash" in capsys.readouterr().err
    assert not (folder / "meta").exists()
    path = folder / "cluster.json"
    root = {"name": "root", "hash": "$md5$abc", "must_change": False}
    path.write_text(json.dumps({**json.loads(path.read_text()), "administrator": root}))
    with pytest.raises(ConfigurationError, match="saros user hash"):
        Server(str(folder), "", 0)


# ---------------------------------------------------------------------------------------------- calls of users


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    made = SecuredNode(tmp_path)
    yield made
    made.server.stop()


@pytest.mark.parametrize("call", [Call.EXECUTE, Call.INSERT])
def test_the_same_call_with_a_good_session_needs_the_right(secured: Secured, call: Call) -> None:
    with pytest.raises(Refused, match="803: No permission"):
        secured.try_call(call, secured.open("ann", ANN))
    assert [] == secured.server.api.node.store.schema.databases()
    secured.try_call(call, secured.open("root", ROOT))
    assert ["root.proof"] == secured.server.api.node.store.schema.databases()


# ---------------------------------------------------------------------------------------------- certificates


def certificates(folder: Path, cluster: str, nodes: int) -> list[dict[str, object]]:
    """Create certificates as the command does, and return the options of each node, which name its certificate."""
    make_certificates(str(folder), cluster, {NodeId(n): "127.0.0.1" for n in range(1, nodes + 1)})
    return [
        {
            "peer_ca": f"{folder}/ca.pem",
            "peer_certificate": f"{folder}/node{n}.pem",
            "peer_key": f"{folder}/node{n}.key",
        }
        for n in range(1, nodes + 1)
    ]


def opened(folder: Path, options: dict[str, object]) -> Node:
    return Node.open(str(folder), load(overrides={"durability": "os", "worker_threads": 1, **options}))


@pytest.mark.slow
def test_nodes_with_certificates_take_in_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes 1 and 2 are a majority. Node 3 tries several wrong settings in turn, and finally the right setting."""
    folders = make_folders(tmp_path / "data", 3, 3)
    cluster = decode((folders[0] / "cluster.json").read_bytes()).cluster
    good = certificates(tmp_path / "good", cluster, 3)
    forged = certificates(tmp_path / "forged", cluster, 3)
    (tmp_path / "other").mkdir()
    for name in ("ca.pem", "ca.key"):
        shutil.copy(tmp_path / "good" / name, tmp_path / "other" / name)
    other = certificates(tmp_path / "other", "00000000-0000-4000-8000-000000000000", 3)
    wrong = [{}, {**forged[2], "peer_ca": good[2]["peer_ca"]}, good[0], other[2]]
    nodes = [opened(folders[n], good[n]) for n in range(2)]
    try:
        for node in nodes:
            wait_until(lambda n=node: answers_strongly(n))
        # The stranger skips the check of its own certificate.
        monkeypatch.setattr("saros_server.pki.certificate_files.has_uri", lambda *_: True)
        for options in wrong:
            stranger = opened(folders[2], options)
            try:
                for asking, asked in ((stranger, 1), (nodes[0], 3)):
                    with pytest.raises((Unreachable, RemoteError)):
                        ask(asking, asked)
            finally:
                stranger.close()
        nodes.append(opened(folders[2], good[2]))
        wait_until(lambda: answers_strongly(nodes[2]))
        for asking, asked in ((nodes[2], 1), (nodes[0], 3)):
            wait_until(lambda n=asking, k=asked: answers(n, k))
    finally:
        for node in nodes:
            node.close()


def ask(node: Node, number: int) -> bytes:
    """Return the answer of another node. Raises Unreachable."""
    assert isinstance(node.store, ClusterDatabase)
    return node.store._parts.peers.call(NodeId(number), "status", b"", 2.0)


def answers(node: Node, number: int) -> bool:
    with suppress(Unreachable):  # after a refusal, calls fail for a while
        return b"version" in ask(node, number)
    return False


def test_keys_are_nobody_elses_and_certificates_are_made_once(tmp_path: Path) -> None:
    cluster, hosts = "123e4567-e89b-12d3-a456-426614174000", {NodeId(1): "hostA", NodeId(2): "192.0.2.7"}
    assert ["ca.pem", "node1.pem", "node2.pem"] == make_certificates(str(tmp_path / "out"), cluster, hosts)
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").iterdir()}
    assert [] == make_certificates(str(tmp_path / "out"), cluster, hosts)
    before = (tmp_path / "out" / "ca.pem").read_bytes()
    (tmp_path / "out" / "node2.pem").unlink()
    assert ["node2.pem"] == make_certificates(str(tmp_path / "out"), cluster, hosts)
    assert before == (tmp_path / "out" / "ca.pem").read_bytes()
    made = x509.load_pem_x509_certificate((tmp_path / "out" / "node2.pem").read_bytes())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [f"saros://{cluster}/node/2"] == names.get_values_for_type(x509.UniformResourceIdentifier)
    assert [f"node-2.{cluster}.saros"] == names.get_values_for_type(x509.DNSName)
    assert [ip_address("192.0.2.7")] == names.get_values_for_type(x509.IPAddress)
    with pytest.raises(UserMistake, match="not a host name or an IP address"):
        make_certificates(str(tmp_path / "out"), cluster, {NodeId(3): "a,DNS:b"})
    (tmp_path / "out" / "ca.key").write_bytes((tmp_path / "out" / "node1.key").read_bytes())
    with pytest.raises(UserMistake, match=r"ca\.key is not the key of .*ca\.pem"):
        make_certificates(str(tmp_path / "out"), cluster, {NodeId(3): "a"})
    (tmp_path / "out" / "ca.key").write_bytes(b"no key")
    with pytest.raises(UserMistake, match=f"the authority in {tmp_path}/out cannot be read"):
        make_certificates(str(tmp_path / "out"), cluster, {NodeId(3): "a"})


def test_the_three_files_go_together_and_the_key_is_nobody_elses(tmp_path: Path) -> None:
    file, second = (decode((folder / "cluster.json").read_bytes()) for folder in make_folders(tmp_path, 2, 2))
    out = tmp_path / "out"
    names = {"peer_ca": "ca.pem", "peer_certificate": "node1.pem", "peer_key": "node1.key"}
    options = {key: str(out / name) for key, name in names.items()}
    assert peer_credentials(load().values, SystemClock(), file) is None
    for missing in options:
        with pytest.raises(ConfigurationError, match="peer_ca, peer_certificate, peer_key go together"):
            peer_credentials(load(overrides={**options, missing: ""}).values, SystemClock(), file)
    with pytest.raises(ConfigurationError, match="cannot read"):
        peer_credentials(load(overrides=options).values, SystemClock(), file)
    make_certificates(str(out), file.cluster, {NodeId(1): "a"})
    (out / "node1.key").chmod(0o640)
    with pytest.raises(ConfigurationError, match="other users can read the key"):
        peer_credentials(load(overrides=options).values, SystemClock(), file)
    (out / "node1.key").chmod(0o600)
    files = peer_credentials(load(overrides=options).values, SystemClock(), file)
    assert files is not None
    found = files.now()
    assert [Path(path).read_bytes() for path in options.values()] == [found.ca, found.certificate, found.key]
    with pytest.raises(ConfigurationError, match="another node's certificate"):
        peer_credentials(load(overrides=options).values, SystemClock(), second)


def test_a_certificate_is_taken_when_it_fits_its_key(tmp_path: Path) -> None:
    cluster = "123e4567-e89b-12d3-a456-426614174000"
    out, new = tmp_path / "out", tmp_path / "new"
    make_certificates(str(out), cluster, {NodeId(1): "a"})
    make_certificates(str(new), cluster, {NodeId(1): "a"})
    clock = HandClock()
    paths = [str(out / name) for name in ("ca.pem", "node1.pem", "node1.key")]
    files = PeerFiles(paths, clock, Identity(cluster, NodeId(1)))
    first = files.now()
    (new / "node1.pem").replace(out / "node1.pem")
    clock.monotonic_s += 2
    assert first is files.now()
    (new / "node1.key").replace(out / "node1.key")
    assert first is files.now()  # the files are checked once a second
    clock.monotonic_s += 2
    second = files.now()
    assert ((out / "node1.pem").read_bytes(), (out / "node1.key").read_bytes()) == (second.certificate, second.key)
    assert first != second
    assert second is files.now()


class HandClock(SystemClock):
    """A clock whose monotonic time a test sets."""

    monotonic_s = 100

    def monotonic_ns(self) -> int:
        return self.monotonic_s * 1_000_000_000


@pytest.mark.slow
def test_other_machines_reach_no_node_without_certificates(tmp_path: Path) -> None:
    (folder,) = make_folders(tmp_path, 1, 1)
    path = folder / "cluster.json"
    path.write_bytes(path.read_bytes().replace(b"127.0.0.1", b"0.0.0.0", 1))
    assert "0.0.0.0" == decode(path.read_bytes()).address.peer.rpartition(":")[0]
    with pytest.raises(ConfigurationError, match="can be reached from other machines, so nodes need certificates"):
        Server(str(folder), "", 0)
