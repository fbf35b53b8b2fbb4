"""A cluster on this machine: every node is a folder and a process.

    DIR/node1  DIR/node2 ...    each with its cluster.json, and a server of its own while it runs
    DIR/node2.removed           the node has left the cluster: it is never started again, even if its folder exists

    find    an existing cluster     make    new folders with free ports         start, stop    the processes
                        add_admitted_node, note_removed      nodes that join later, or have left

A cluster is created once. Nodes keep their ids and ports. If a node's folder is lost, no new folder is created for the
same id. A node with a new folder would not remember how it has voted in Raft, and a second, different vote could cause
the loss of acknowledged writes. Instead, the node gets an entry in `problems`, and the other nodes run without it.

A process must hold a lock on DIR while it creates or starts nodes, so only one process does this at a time. No lock is
needed to read a cluster or to stop its nodes.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from saros_cluster.node.cluster_file import CLUSTER_FILE, Administrator, ClusterFile, NodeAddress, decode, load, save
from saros_cluster.placement.members import META_VOTERS_DEFAULT
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import SLOTS
from saros_server.process.daemon import is_launched, is_taken, last_log_line, launch
from saros_server.process.server_file import Serving, serving
from saros_storage.base.errors import FolderInUse, StorageError, UserMistake
from saros_storage.folder.layout import TEMPORARY, write_durably
from saros_storage.io.disk import Disk
from saros_storage.io.folder_lock import LOCK_FILE, FolderLock

HOST = "127.0.0.1"
#: A file that exists while an administrator is being added to the cluster (`bootstrap_admin`).
SECURING_FILE = "securing"
#: The maximum number of nodes. If one machine ran more nodes, they would only compete for its resources.
NODES_MAX = 32
_PORT_MAX = 65_535
_POLL_SECONDS = 0.05
_STOP_SECONDS = 60.0
_NODE_FOLDER = re.compile(r"node([1-9][0-9]{0,8})")
_REMOVED_NODE = re.compile(r"node([1-9][0-9]{0,8})\.removed")

#: A function that is called repeatedly while nodes start or stop. Its argument is a text with the names of these nodes.
Say = Callable[[str], None]


class LocalCluster(msgspec.Struct, frozen=True):
    """A local cluster, as described by the files in its directory. Created by `find` and `make`."""

    directory: str
    #: The `cluster.json` of one node. In the files of the other nodes, only `node` and `joined` are different.
    file: ClusterFile
    #: The nodes that cannot be started, each with the reason.
    problems: Mapping[NodeId, str]
    #: The nodes that joined after the cluster was created.
    joined: Mapping[NodeId, NodeAddress] = msgspec.field(default_factory=dict)
    removed: frozenset[NodeId] = frozenset()

    @property
    def nodes(self) -> list[NodeId]:
        """The ids of all nodes that have not been removed, in ascending order."""
        return sorted({*self.file.nodes, *self.joined} - self.removed)

    def folder(self, node: NodeId) -> str:
        """Return the node's data folder."""
        return node_folder(self.directory, node)

    def address(self, node: NodeId) -> str:
        """Return the address (host:port) at which clients connect to the node."""
        return (self.joined.get(node) or self.file.nodes[node]).client

    def running(self, node: NodeId) -> Serving | None:
        """Return the node's server, or None if the node does not serve clients."""
        return serving(self.folder(node))

    def is_started(self, node: NodeId) -> bool:
        """Return whether the node serves clients or a process that was launched for it is alive."""
        return is_launched(self.folder(node)) or self.running(node) is not None

    def is_taken(self, node: NodeId) -> bool:
        """Return whether a process has locked the node's folder, or was launched for the folder."""
        return is_taken(self.folder(node))


def node_folder(directory: str, node: NodeId) -> str:
    """Return the path of the data folder of a node whose cluster is in `directory`."""
    return os.path.join(directory, f"node{node}")


# ---------------------------------------------------------------------------------------------- finding, making


def find(directory: str, disk: Disk) -> LocalCluster | None:
    """Return the cluster in a directory. Return None without a cluster, or after an interrupted creation.

    Raises StorageError if none of the nodes' files can be read and at least one of them is damaged.
    """
    files: dict[NodeId, ClusterFile | StorageError] = {}
    for node in _node_folders(directory, disk):
        try:
            file = load(node_folder(directory, node), disk)
        except StorageError as error:
            files[node] = error
        else:
            if file is not None:
                files[node] = file
    whole = next((file for file in files.values() if isinstance(file, ClusterFile)), None)
    if whole is None:
        unreadable = next((found for found in files.values() if isinstance(found, StorageError)), None)
        if unreadable is not None:
            raise unreadable
        return None
    removed = _removed(directory, disk)
    joined = {
        node: file.joined
        for node, file in files.items()
        if isinstance(file, ClusterFile) and file.joined is not None and file.cluster == whole.cluster
    }
    cluster = LocalCluster(directory, whole, {}, joined, removed)
    cluster = replace(cluster, problems=_problems(cluster, files, disk))
    never_ran = all(_is_unused(cluster.folder(node), disk) for node in whole.nodes)
    complete = files.keys() >= whole.nodes.keys()
    return None if never_ran and not complete else cluster


def _problems(
    cluster: LocalCluster, files: Mapping[NodeId, ClusterFile | StorageError], disk: Disk
) -> dict[NodeId, str]:
    problems = {}
    whole = cluster.file
    is_half_secured = disk.exists(os.path.join(cluster.directory, SECURING_FILE))
    for node in cluster.nodes:
        file = files.get(node)
        if file is None:
            problems[node] = (
                f"its folder has no {CLUSTER_FILE}: a node that lost its folder does not know its votes any more, and"
                " must not return with its old id; if the folder was moved, put it back, otherwise leave the node down"
            )
        elif isinstance(file, StorageError):
            problems[node] = file.message
        elif is_half_secured:
            problems[node] = (
                "saros cluster secure was interrupted, and not all nodes have the administrator: run"
                f" saros cluster secure --dir {cluster.directory} again"
            )
        elif file != replace(whole, node=node, joined=cluster.joined.get(node)):
            problems[node] = f"its {CLUSTER_FILE} does not agree with that of node {whole.node}: restore the right one"
    return problems


def make(
    directory: str,
    nodes: int,
    replicas: int,
    base_port: int,
    disk: Disk,
    administrator: Administrator | None = None,
    meta_voters: int = META_VOTERS_DEFAULT,
) -> LocalCluster:
    """Create a cluster whose nodes have the ids 1 to `nodes`.

    Raises UserMistake 2004 if the number of nodes is wrong, a folder is in use, or too few ports are free.
    """
    if not 1 <= nodes <= NODES_MAX:
        raise UserMistake(f"nodes is {nodes}: expected from 1 to {NODES_MAX}", code=2004)
    for node in _node_folders(directory, disk):
        folder = node_folder(directory, node)
        if not _is_unused(folder, disk):
            raise UserMistake(f"{folder} is not empty, and holds no cluster; choose another directory", code=2004)
        disk.remove_tree(folder)
    for node in _removed(directory, disk):
        disk.remove(_note_path(directory, node))
    ports = _free_ports(base_port, 2 * nodes)
    addresses = {
        NodeId(i + 1): NodeAddress(peer=f"{HOST}:{ports[nodes + i]}", client=f"{HOST}:{ports[i]}") for i in range(nodes)
    }
    file = ClusterFile(str(uuid.uuid4()), NodeId(1), replicas, SLOTS, addresses, administrator, meta_voters=meta_voters)
    for node in addresses:
        folder = node_folder(directory, node)
        disk.make_folder(folder)
        save(folder, replace(file, node=node), disk)
    return LocalCluster(directory, file, {})


def free_addresses(cluster: LocalCluster, base_port: int | None) -> tuple[str, str]:
    """Return two free addresses for a new node, the first for other nodes and the second for clients.

    Raises UserMistake 2004.

    The search begins at `base_port`. If that is None, it begins at the lowest port of the cluster.
    """
    known = [*cluster.file.nodes.values(), *cluster.joined.values()]
    taken = {int(text.rpartition(":")[2]) for address in known for text in (address.peer, address.client)}
    client, peer = _free_ports(base_port or min(taken), 2, taken)
    return f"{HOST}:{peer}", f"{HOST}:{client}"


def add_admitted_node(cluster: LocalCluster, text: str, disk: Disk) -> LocalCluster:
    """Create the folder of a node that was admitted to the cluster. Return the cluster with this node.

    `text` is the node's `cluster.json`. Raises UserMistake 2004 if the folder is not empty.
    """
    file = decode(text.encode())
    assert file.joined is not None
    folder = cluster.folder(file.node)
    if disk.list(folder):
        raise UserMistake(f"{folder} is not empty; move it away and run DISMISS NODE {file.node}", code=2004)
    disk.make_folder(folder)
    save(folder, file, disk)
    return replace(cluster, joined={**cluster.joined, file.node: file.joined})


def note_removed(cluster: LocalCluster, node: NodeId, disk: Disk) -> None:
    """Record durably that a node has left the cluster. It is then never started again."""
    path = _note_path(cluster.directory, node)
    write_durably(disk, path, f"node {node} has left the cluster; its folder may be deleted\n".encode())


def _note_path(directory: str, node: NodeId) -> str:
    return os.path.join(directory, f"node{node}.removed")


def _removed(directory: str, disk: Disk) -> frozenset[NodeId]:
    matches = (_REMOVED_NODE.fullmatch(name) for name in disk.list(directory))
    return frozenset(NodeId(int(match[1])) for match in matches if match is not None)


def _node_folders(directory: str, disk: Disk) -> list[NodeId]:
    matches = (_NODE_FOLDER.fullmatch(name) for name in disk.list(directory))
    return sorted(NodeId(int(match[1])) for match in matches if match is not None)


def _is_unused(folder: str, disk: Disk) -> bool:
    """Return True if no node has ever run in the folder."""
    return set(disk.list(folder)) <= {CLUSTER_FILE, CLUSTER_FILE + TEMPORARY}


def _free_ports(base: int, count: int, taken: Collection[int] = ()) -> list[int]:
    """Return the lowest `count` free ports that are not below `base` and not in `taken`. Raises UserMistake 2004."""
    found: list[int] = []
    for port in range(max(base, 1), _PORT_MAX + 1):
        if len(found) == count:
            break
        if port not in taken and _is_port_free(port):
            found.append(port)
    if len(found) < count:
        raise UserMistake(f"fewer than {count} ports are free from port {base} on; pass a lower --base-port", code=2004)
    return found


def _is_port_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


# ---------------------------------------------------------------------------------------------- starting, stopping


@contextmanager
def exclusive_lock(directory: str, disk: Disk) -> Iterator[None]:
    """Keep other processes from creating or starting a cluster in the directory.

    If the directory is missing, it is created, and removed at the end if it is still empty. Raises UserMistake 2012 if
    another process holds the lock.
    """
    was_there = disk.exists(directory)
    disk.make_folder(directory)
    try:
        lock = FolderLock.acquire(directory)
    except FolderInUse as error:
        message = f"process {error.pid} is changing the cluster in {directory}: wait for it, or stop it"
        raise UserMistake(message, code=2012) from error
    try:
        yield
    finally:
        if not was_there and disk.list(directory) == [LOCK_FILE]:
            disk.remove_tree(directory)
        lock.release()


def start(
    cluster: LocalCluster, nodes: Sequence[NodeId], log_level: str | None, timeout_s: float, say: Say
) -> dict[NodeId, str]:
    """Start those of the nodes that do not run, and wait until they serve. Return the reason for each failure."""
    failures = {node: cluster.problems[node] for node in nodes if node in cluster.problems}
    waiting = [node for node in nodes if node not in failures and cluster.running(node) is None]
    launched: set[NodeId] = set()
    limit = time.monotonic() + timeout_s
    while waiting and time.monotonic() < limit:
        for node in [
            node for node in waiting if not cluster.is_taken(node)
        ]:  # while the folder is locked, a process is starting or stopping
            if node in launched:
                failures[node] = f"it did not come up: {last_log_line(cluster.folder(node))}"
            else:
                _launch(cluster, node, log_level)
                launched.add(node)
        waiting = [node for node in waiting if node not in failures and cluster.running(node) is None]
        if waiting:
            say(f"starting {_named(waiting)}")
            time.sleep(_POLL_SECONDS)
    late = f"it is not ready after {timeout_s:g} s: "
    return {**failures, **{node: late + last_log_line(cluster.folder(node)) for node in waiting}}


def _launch(cluster: LocalCluster, node: NodeId, log_level: str | None) -> None:
    folder, (host, _, port) = cluster.folder(node), cluster.address(node).rpartition(":")
    given = [] if log_level is None else ["--log-level", log_level]
    launch(folder, ["--data", folder, "--host", host, "--port", port, *given])


def stop(cluster: LocalCluster, nodes: Sequence[NodeId], say: Say) -> list[NodeId]:
    """Stop the processes of the nodes, and wait until they have ended. Return the nodes that still run after a timeout.

    If a process is just starting, it gets the signal as soon as it serves clients.
    """
    waiting = [node for node in nodes if cluster.is_started(node)]
    told: set[NodeId] = set()
    limit = time.monotonic() + _STOP_SECONDS
    while waiting and time.monotonic() < limit:
        for node in waiting:
            if node not in told and (found := cluster.running(node)) is not None:
                os.kill(found.pid, signal.SIGTERM)
                told.add(node)
        say(f"stopping {_named(waiting)}")
        time.sleep(_POLL_SECONDS)
        waiting = [node for node in waiting if (cluster.is_taken if node in told else cluster.is_started)(node)]
    return waiting


def _named(nodes: Sequence[NodeId]) -> str:
    return f"node{'s' if len(nodes) > 1 else ''} " + ", ".join(map(str, nodes))
