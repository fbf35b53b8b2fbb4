"""A cluster of real processes on this machine that can be killed, stopped, isolated and restarted.

    LocalCluster(folder, nodes=3, replicas=3)        folder/node1 ... each served by `saros start --foreground`
        kill(2)  stop(2) resume(2)  restart()        SIGKILL; SIGSTOP, SIGCONT; bring all up again
        run_with(2, program)                         run another version from the node's next start on
        isolate(2) heal()                            with `proxies`: every link between two nodes goes through a proxy
        admit() forget(4)                            without proxies: add a node that may join, remove one that has left

All connections between nodes pass through the proxy: in node A's `cluster.json`, the port of node B is
the port of the proxy's link "A->B". A single node has no `cluster.json`: it is a plain server.

Signals are sent only to processes that a `LocalCluster` has started. Only one thread at a time may use it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from free_ports import free_ports
from system.tcp_proxy import FAIR, HOST, Mode, TcpProxy, Weather

import saros

SAROS = str(Path(sys.executable).with_name("saros"))
SLOTS = 10_000
LOSE = Weather(Mode.LOSE)
#: The modules that a server needs to support `cluster.json`.
_CLUSTER_MODULES = ("saros_server.cluster.node", "saros_cluster.multiraft.raft_log", "saros_cluster.raft.node")
_READY_SECONDS = 60.0
_END_SECONDS = 30.0
_POLL_SECONDS = 0.02


def missing_module() -> str | None:
    """Return the name of a module that a cluster node needs and that is missing; None if none is missing."""
    return next((name for name in _CLUSTER_MODULES if importlib.util.find_spec(name) is None), None)


class NodeFailed(Exception):
    """A node ended, or did not become ready; the message contains the end of the node's log."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a node."""

    peer: int
    client: int


def processor_s_of(process: int) -> float | None:
    """Return the processor seconds that a process has used; None if there is no such process."""
    try:
        words = _stat(process)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _stat(process: int) -> list[str]:
    """Return the fields of /proc/PID/stat for a process, beginning with its state."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


class LocalCluster:
    """A cluster with the nodes 1 to `nodes`. Use it as a context manager, or call `close`."""

    def __init__(
        self,
        folder: Path,
        nodes: int,
        replicas: int,
        *,
        proxies: bool = False,
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = (SAROS,),
    ) -> None:
        """Make the folders, without starting processes.

        The mapping `environment` has options of the nodes, such as SAROS_DURABILITY. A node's process is `program`,
        called with the argument `start` and some more.
        """
        self.folder = folder
        self.nodes = list(range(1, nodes + 1))
        self._program = program
        #: The programs of those nodes that do not run `_program`.
        self._programs: dict[int, Sequence[str]] = {}
        #: Whether every group still has its majority after the loss of one node.
        self.survives_one = replicas >= 3
        # An aborted node writes the stacks of its threads to its log.
        self._environment = {**os.environ, "PYTHONFAULTHANDLER": "1", **(environment or {})}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._stopped: set[int] = set()
        free = iter(free_ports(2 * nodes))
        self._ports = {node: Ports(next(free), next(free)) for node in self.nodes}
        self.proxy = TcpProxy() if proxies and nodes > 1 else None
        for node in self.nodes:
            self.folder_of(node).mkdir(parents=True)
        if nodes > 1:
            self._write_cluster_files(replicas)

    def _write_cluster_files(self, replicas: int) -> None:
        cluster = str(uuid.uuid4())
        for node in self.nodes:
            words = {
                "format": 1,
                "cluster": cluster,
                "node": node,
                "replicas": replicas,
                "slots": SLOTS,
                "nodes": {
                    str(other): {"peer": f"{HOST}:{self._peer_port(node, other)}", "client": self.address(other)}
                    for other in self.nodes
                },
            }
            (self.folder_of(node) / "cluster.json").write_text(json.dumps(words))

    def _peer_port(self, node: int, other: int) -> int:
        """Return the port at which `node` reaches `other`; if both are the same node, the port at which it listens."""
        port = self._ports[other].peer
        if self.proxy is None or node == other:
            return port
        return self.proxy.add_link(f"{node}->{other}", HOST, port)

    # ------------------------------------------------------------------ folders and addresses

    def folder_of(self, node: int) -> Path:
        """Return a node's data folder."""
        return self.folder / f"node{node}"

    def log_of(self, node: int) -> Path:
        """Return the file with the output of all processes of a node since the cluster was made."""
        return self.folder_of(node) / "server.log"

    def address(self, node: int) -> str:
        """Return host:port for clients."""
        return f"{HOST}:{self._ports[node].client}"

    @property
    def addresses(self) -> list[str]:
        """The addresses of all nodes."""
        return [self.address(node) for node in self.nodes]

    def is_running(self, node: int) -> bool:
        """Return whether the node has a process (which may be stopped)."""
        process = self._processes.get(node)
        return process is not None and process.poll() is None

    def processor_s(self, node: int) -> float:
        """Return the processor seconds that a node's process has used."""
        seconds = processor_s_of(self._processes[node].pid)
        assert seconds is not None
        return seconds

    @property
    def processes(self) -> dict[str, int]:
        """Return the ids of the nodes' processes, by name."""
        return {f"node {node}": process.pid for node, process in list(self._processes.items())}

    @property
    def up(self) -> list[int]:
        """Return the nodes whose process runs and is not stopped."""
        return [node for node in self.nodes if self.is_running(node) and node not in self._stopped]

    def ask(self, node: int, statement: str, *, patience_s: float = 60) -> list[dict[str, object]]:
        """Return the rows of a statement from one node; the statement is retried while groups elect leaders.

        Raises saros.Error.
        """
        target = f"saros://{self.address(node)}"
        with saros.connect(target, failover_s=patience_s, timeout=max(5, patience_s)) as connection:
            cursor = connection.execute(statement)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def regions(self, node: int) -> list[dict[str, object]]:
        """Return the rows of SHOW REGIONS from one node. Raises saros.Error."""
        return self.ask(node, "show regions", patience_s=0)

    def leaders(self) -> dict[int, int]:
        """Return the leader of each region, except for regions whose leader the answering node does not know."""
        for node in self.up:
            try:
                rows = self.regions(node)
            except saros.Error:
                continue  # another node may answer
            return {int(str(row["RegionId"])): int(str(row["DataNodeId"])) for row in rows if row["Role"] == "Leader"}
        return {}

    def replicas_text(self) -> str:
        """Return a text with each node's report of its own replicas."""
        lines = []
        for node in self.up:
            try:
                rows = [row for row in self.regions(node) if row["DataNodeId"] == node]
            except saros.Error as error:
                lines.append(f"node {node}: {error}")
                continue
            for row in rows:
                words = [f"{name.lower()} {row[name]}" for name in ("RegionId", "Role", "Term", "Applied", "Lag")]
                lines.append(f"node {node}: " + ", ".join(words))
        return "\n".join(lines)

    # ------------------------------------------------------------------ membership

    def admit(self) -> int:
        """Admit one more node, which may then be started and added; return its id. Raises saros.Error."""
        assert self.proxy is None
        ports = Ports(*free_ports(2))
        statement = f"admit node '{HOST}:{ports.peer}' client '{HOST}:{ports.client}'"
        target = "saros://" + ",".join(self.address(node) for node in self.up)
        with saros.connect(target, timeout=_READY_SECONDS) as connection:
            ((node, text),) = connection.execute(statement).fetchall()
        self._ports[node] = ports
        self.folder_of(node).mkdir()
        (self.folder_of(node) / "cluster.json").write_text(text)
        self.nodes.append(node)
        return int(node)

    def forget(self, node: int) -> None:
        """Kill the process and delete the folder of a node that has left, or is permanently lost."""
        if self.is_running(node):
            self.kill(node)
        self._processes.pop(node, None)
        self.nodes.remove(node)
        shutil.rmtree(self.folder_of(node))

    # ------------------------------------------------------------------ processes

    def start(self, nodes: Iterable[int] | None = None) -> None:
        """Start processes for nodes that have none. This does not wait until the nodes are ready."""
        for node in self.nodes if nodes is None else nodes:
            if not self.is_running(node):
                self._processes[node] = self._launch(node)

    def run_with(self, node: int, program: Sequence[str]) -> None:
        """Run this program as the node, from the node's next start on."""
        self._programs[node] = program

    def _launch(self, node: int) -> subprocess.Popen[bytes]:
        words = ["--foreground", "--data", str(self.folder_of(node))]
        port = str(self._ports[node].client)
        with self.log_of(node).open("ab") as log:
            return subprocess.Popen(
                [*self._programs.get(node, self._program), "start", *words, "--host", HOST, "--port", port],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,  # otherwise Ctrl-C would reach the node
            )

    def wait_ready(self, nodes: Iterable[int] | None = None, seconds: float = _READY_SECONDS) -> None:
        """Wait until clients can open sessions at the nodes. Raises NodeFailed."""
        limit = time.monotonic() + seconds
        for node in self.nodes if nodes is None else nodes:
            while not self._answers(node):
                if not self.is_running(node):
                    raise NodeFailed(f"node {node} ended: {self.last_log_line(node)}")
                if time.monotonic() > limit:
                    raise NodeFailed(f"node {node} is not ready after {seconds:.0f} s: {self.last_log_line(node)}")
                time.sleep(_POLL_SECONDS)

    def _answers(self, node: int) -> bool:
        try:
            saros.connect(f"saros://{self.address(node)}", failover_s=0).close()
        except saros.Error:
            return False
        return True

    def kill(self, node: int, number: int = signal.SIGKILL) -> None:
        """End a node's process with a signal, and wait for its end. Raises NodeFailed if it does not end."""
        process = self._processes[node]
        process.send_signal(number)
        self.resume(node)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise NodeFailed(f"node {node} goes on after signal {number}") from error

    def stop(self, node: int) -> None:
        """Stop a process with SIGSTOP, which keeps its connections, and wait until it has stopped."""
        self._processes[node].send_signal(signal.SIGSTOP)
        self.await_stopped(node)

    def await_stopped(self, node: int) -> None:
        """Wait until a process has stopped, since a SIGCONT that came earlier would be lost. Raises NodeFailed."""
        limit = time.monotonic() + _END_SECONDS
        while _stat(self._processes[node].pid)[0] != "T":
            if time.monotonic() > limit:
                raise NodeFailed(f"node {node} goes on where it was to stop")
            time.sleep(_POLL_SECONDS)
        self._stopped.add(node)

    def resume(self, node: int) -> None:
        """Continue a stopped process with SIGCONT."""
        if node in self._stopped:
            self._stopped.discard(node)
            self._processes[node].send_signal(signal.SIGCONT)

    def bring_back(self) -> None:
        """End all faults: start nodes that are down, continue stopped nodes, heal the links.

        Does not wait for the nodes.
        """
        self.heal()
        for node in self.nodes:
            self.resume(node)
        self.start()

    def restart(self) -> None:
        """End all faults, and wait until all nodes are ready. Raises NodeFailed."""
        self.bring_back()
        self.wait_ready()

    def last_log_line(self, node: int) -> str:
        """Return the last line of a node's log, with its path."""
        log = self.log_of(node)
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return f"{' / '.join(lines[-3:])}; see {log}"

    # ------------------------------------------------------------------ links

    def set_links(self, node: int, *, outward: Weather = FAIR, inward: Weather = FAIR) -> None:
        """Set the weather (the faults) of all links between a node and other nodes, separately for each direction."""
        assert self.proxy is not None
        for other in self.nodes:
            if other != node:
                self.proxy.set_weather(f"{node}->{other}", forth=outward, back=inward)
                self.proxy.set_weather(f"{other}->{node}", forth=inward, back=outward)

    def isolate(self, node: int) -> None:
        """Cut a node off from all others; clients still reach it."""
        self.set_links(node, outward=LOSE, inward=LOSE)

    def heal(self) -> None:
        """End the faults of all links."""
        for node in self.nodes if self.proxy is not None else ():
            self.set_links(node)

    # ------------------------------------------------------------------ the end

    def shut_down(self) -> list[str]:
        """Send SIGTERM to all nodes.

        Abort nodes that do not end, so that they write the stacks of their threads to their logs. Return a message for
        each of these nodes.
        """
        for node, process in self._processes.items():
            if process.poll() is None:
                process.terminate()
                self.resume(node)
        problems = []
        for node, process in self._processes.items():
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self.abort(node)
                problems.append(
                    f"node {node} goes on {_END_SECONDS:.0f} s after SIGTERM: stacks in {self.log_of(node)}"
                )
        return problems

    def abort(self, node: int) -> None:
        """Abort a node's process; the stacks of its threads are written to its log."""
        process = self._processes[node]
        process.send_signal(signal.SIGABRT)
        self.resume(node)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def close(self) -> None:
        """End all processes started here, and the proxy. Idempotent."""
        self.shut_down()
        if self.proxy is not None:
            self.proxy.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
