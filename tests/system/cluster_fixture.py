"""Cluster nodes in this process, with real folders, threads and loopback ports."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from free_ports import free_addresses
from manual_clock import ManualClock
from msgspec.structs import replace
from server.secured import ANN, CHEAP, ROOT, Secured
from waiting import wait_until

from saros_cluster.database.database import ClusterDatabase
from saros_cluster.node.cluster_file import Administrator, ClusterFile, NodeAddress, decode, encode, save
from saros_cluster.placement.ring import NodeId
from saros_cluster.transport.grpc_peers import GrpcPeers
from saros_cluster.users.commands import CreateUser
from saros_engine.base.session_context import SessionContext
from saros_server.auth.passwords import hash_password
from saros_server.cluster import background
from saros_server.config.configuration import Loaded, load
from saros_server.node.node import Node
from saros_server.server import Server
from saros_storage.base.errors import StorageError
from saros_storage.base.write_request import UNNUMBERED, WriteRequest
from saros_storage.io.disk import LocalDisk
from saros_storage.scan.read_point import EVERYTHING


def make_folders(folder: Path, nodes: int, replicas: int, slots: int = 16) -> list[Path]:
    """Make a folder with a `cluster.json` for each node, and return the folders."""
    addresses = free_addresses(2 * nodes)
    ids = [NodeId(n) for n in range(1, nodes + 1)]
    known = {id_: NodeAddress(addresses[2 * i], addresses[2 * i + 1]) for i, id_ in enumerate(ids)}
    cluster = str(uuid.uuid4())
    folders = [folder / f"node{id_}" for id_ in ids]
    for id_, path in zip(ids, folders, strict=True):
        path.mkdir(parents=True)
        save(str(path), ClusterFile(cluster, id_, replicas, slots, known), LocalDisk())
    return folders


@contextmanager
def running_servers(folder: Path, nodes: int, replicas: int) -> Iterator[list[Server]]:
    """Run one server for each node of a new cluster within this context, and yield the servers."""
    servers = [Server(str(own), "127.0.0.1", 0) for own in make_folders(folder, nodes, replicas)]
    for server in servers:
        server.start()
    try:
        yield servers
    finally:
        for server in servers:
            server.stop()


def with_root(folders: list[Path], password: str = ROOT, *, must_change: bool = False) -> list[Path]:
    """Change the folders of a cluster so that it starts with an administrator, and return them."""
    root = Administrator("root", hash_password(password, CHEAP), must_change)
    for folder in folders:
        path = folder / "cluster.json"
        path.write_bytes(encode(replace(decode(path.read_bytes()), administrator=root)))
        (folder / "saros.toml").write_text('password_cost = 10\ndurability = "os"\nworker_threads = 1\n')
    return folders


class SecuredNode(Secured):
    """A `Secured` server that is the only node of a cluster."""

    def __init__(self, folder: Path) -> None:
        (self.folder,) = with_root(make_folders(folder, 1, 1))
        self.clock = ManualClock()
        self.server = Server(str(self.folder), "", 0, clock=self.clock)
        self.server.start()
        node = self.server.api.node
        wait_until(lambda: answers_strongly(node))
        self.directory = node.directory
        self.directory.change(CreateUser("ann", hash_password(ANN, CHEAP)))


class Nodes:
    """A cluster whose nodes can be stopped and started. Call `close` after use."""

    def __init__(self, folder: Path, nodes: int, replicas: int, **options: object) -> None:
        self.folders = make_folders(folder, nodes, replicas)
        self.configuration: Loaded = load(file=None, overrides={"durability": "os", "worker_threads": 1, **options})
        self.nodes: list[Node | None] = [None] * nodes
        for number in range(nodes):
            self.start(number)
        wait_until(self._elects)
        self.wait_ready()

    def _elects(self) -> bool:
        """Let the first replica of each leaderless group start an election; return whether all groups have a leader."""
        hosts = [self.database(number)._parts.host for number in range(len(self.nodes))]
        waiting = [group for host in hosts for group, status in host.statuses().items() if status.leader is None]
        for group in set(waiting):
            hosts[max(group, 1) - 1].campaign(group)
        return not waiting

    def start(self, number: int) -> Node:
        node = self.nodes[number] = Node.open(str(self.folders[number]), self.configuration)
        return node

    def stop(self, number: int) -> None:
        node, self.nodes[number] = self.nodes[number], None
        assert node is not None
        node.close()

    def restart_all(self) -> None:
        """Stop all nodes, start them again, and wait until they answer."""
        for number in range(len(self.nodes)):
            self.stop(number)
        for number in range(len(self.nodes)):
            self.start(number)
        self.wait_ready()

    def lose_messages(self, number: int, *, to: int) -> None:
        """Drop the messages that node `number` has queued for node `to`."""
        peers = self.database(number)._parts.peers
        assert isinstance(peers, GrpcPeers)
        lane = peers._lanes.pop(NodeId(to + 1), None)
        if lane is not None:
            lane.close()

    def wait_ready(self, *numbers: int) -> None:
        """Wait until the given nodes, by default all running nodes, answer a strong read."""
        for number, node in enumerate(self.nodes):
            if node is not None and (not numbers or number in numbers):
                wait_until(lambda n=node: answers_strongly(n))

    def node(self, number: int) -> Node:
        node = self.nodes[number]
        assert node is not None
        return node

    def database(self, number: int = 0) -> ClusterDatabase:
        """Return the database on which a node's engine runs statements."""
        store = self.node(number).store
        assert isinstance(store, ClusterDatabase)
        return store

    def run(
        self, number: int, text: str, consistency: str = "strong", request: WriteRequest = UNNUMBERED
    ) -> list[tuple[object, ...]]:
        """Run a statement at a node, and return its rows; the first element of each row is the time."""
        return run(self.node(number), text, consistency, request)

    def close(self) -> None:
        with mock.patch.object(background, "_HAND_OVER_NS", 0):  # no other node is left that could become the leader
            for number, node in enumerate(self.nodes):
                if node is not None:
                    self.stop(number)


def run(
    node: Node, text: str, consistency: str = "strong", request: WriteRequest = UNNUMBERED
) -> list[tuple[object, ...]]:
    result = node.engine.execute(text, SessionContext(consistency=consistency), request=request)
    rows: list[tuple[object, ...]] = []
    while (block := result.next_block()) is not None:
        columns: list[Sequence[object]] = [column.to_list() for column in block.columns]
        if result.timed:
            columns.insert(0, block.times.tolist())
        rows += zip(*columns, strict=True)
    result.close()
    return rows


def answers_strongly(node: Node) -> bool:
    try:
        node.store.catch_up(node.store.read_point("strong"), EVERYTHING)
    except StorageError:
        return False
    return True
