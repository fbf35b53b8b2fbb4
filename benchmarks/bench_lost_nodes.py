"""How much a lost, frozen or slow node slows down the strong SELECTs and the inserts of its cluster.

python benchmarks/bench_lost_nodes.py [SCENARIO ...] [--seconds 6]

    lost-1        3 nodes, 1 replica, 6 databases; one node killed
    lost-2        5 nodes, 3 replicas, 10 databases; two nodes killed
    frozen        3 nodes, 3 replicas; one node stopped by SIGSTOP: the longest call through the others
    slow          3 nodes, 3 replicas; each fsync of a node that leads a group takes one second more
    restart       3 nodes, 3 replicas; one node killed and started: time until it answers reads and writes
    groups        20 nodes, 1 replica: point queries, where a read needs one group of 20

One client per database makes three kinds of calls: a strong SELECT with a time range, a strong SELECT without a time
range, and an insert of ten rows. For a database whose groups keep their majorities, the cost of the lost nodes is the
factor by which the median and the 99th percentile rise. For the other databases, errors are counted by code, and the
longest call is printed. A call tries other nodes for at most 2 s.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from system.local_cluster import SLOTS, LocalCluster

import saros
from saros_cluster.placement.ring import NodeId
from saros_cluster.routing.routing import Routing
from saros_cluster.topology.topology import Node, Topology

FAILOVER_S = 2
#: Seconds after which each node has loaded its kernels and cached the plans.
_WARM_UP_SECONDS = 6
FAULTED = (sys.executable, str(Path(__file__).resolve().parents[1] / "tests" / "cluster" / "faulted_node.py"))
OPTIONS = {"SAROS_DURABILITY": "os", "SAROS_WORKER_THREADS": "1"}


@dataclass(slots=True)
class Calls:
    """The calls to one database: their durations in seconds by kind of call, and the number of errors by code."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0

    def take(self, kind: str, call: Callable[[], object]) -> None:
        """Time a call."""
        began = time.perf_counter()
        try:
            call()
        except saros.Error as error:
            self.errors[f"{kind} {getattr(error, 'code', error)}"] += 1
            taken = time.perf_counter() - began
        else:
            taken = time.perf_counter() - began
            self.seconds[kind].append(taken)
        self.longest_s = max(self.longest_s, taken)


def routing_of(nodes: int, replicas: int) -> Routing:
    """Return the initial routing of a cluster with `nodes` nodes, and with `replicas` replicas of each group."""
    return Routing(Topology.first({NodeId(n): Node("", "") for n in range(1, nodes + 1)}, replicas, SLOTS), 1 << 62)


def databases_of(routing: Routing, per_group: int) -> dict[str, int]:
    """Return `per_group` databases for each group, as {path: group}; all data of such a database is in the group."""
    wanted = {int(group): per_group for group in routing.groups}
    found: dict[str, int] = {}
    number = 0
    while any(wanted.values()):
        path, number = f"root.d{number}", number + 1
        group = int(routing.schema_group(path))
        if wanted[group]:
            wanted[group] -= 1
            found[path] = group
    return found


@contextmanager
def cluster_of(nodes: int, replicas: int, program: tuple[str, ...] | None = None) -> Iterator[LocalCluster]:
    """Run a cluster within this context; yield it as soon as it answers."""
    options = OPTIONS if program is None else {**OPTIONS, "SAROS_DURABILITY": "fsync"}
    with tempfile.TemporaryDirectory() as folder:
        given = {} if program is None else {"program": program}
        with LocalCluster(Path(folder), nodes, replicas, environment=options, **given) as cluster:
            cluster.start()
            cluster.wait_ready()
            yield cluster


def fill(cluster: LocalCluster, databases: dict[str, int]) -> None:
    """Write a device with a thousand rows into each database."""
    with saros.connect(f"saros://{','.join(cluster.addresses)}", failover_s=30) as connection:
        for path in databases:
            connection.insert(f"{path}.d", list(range(1000)), {"x": [float(n) for n in range(1000)]})


def ask(target: str, databases: dict[str, int], seconds: float) -> dict[str, Calls]:
    """Run one client per database for some seconds; return their calls by database."""
    found = {path: Calls() for path in databases}

    def run(path: str, calls: Calls) -> None:
        with saros.connect(target, failover_s=FAILOVER_S) as connection:
            until, row = time.perf_counter() + seconds, 1000
            while time.perf_counter() < until:
                calls.take("bounded", lambda: connection.execute(f"select x from {path}.d where time = 500").fetchall())
                calls.take("whole", lambda: connection.execute(f"select count(x) from {path}.d").fetchall())
                times = list(range(row, row + 10))
                calls.take("insert", lambda times=times: connection.insert(f"{path}.d", times, {"x": [1.0] * 10}))
                row += 10
                time.sleep(0.02)

    threads = [threading.Thread(target=run, args=item) for item in found.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def usual(target: str, databases: dict[str, int], seconds: float) -> dict[str, Calls]:
    """Return the calls to a warm cluster in which all nodes run."""
    ask(target, databases, _WARM_UP_SECONDS)
    return ask(target, databases, seconds)


def percentile(values: list[float], share: float) -> float:
    """Return a percentile of the values, in seconds."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def compare(before: dict[str, Calls], during: dict[str, Calls], lost: set[str]) -> None:
    """Print how much slower calls to databases that keep their groups are, and the errors of the lost databases."""
    healthy = [path for path in before if path not in lost]
    for kind in ("bounded", "whole", "insert"):
        then = [s for path in healthy for s in before[path].seconds[kind]]
        now = [s for path in healthy for s in during[path].seconds[kind]]
        if then and now:
            p50, p99 = (percentile(now, share) / percentile(then, share) for share in (0.5, 0.99))
            say(
                f"  {kind:8} p50 {percentile(now, 0.5) * 1e3:6.1f} ms (ratio {p50:.2f}),"
                f" p99 {percentile(now, 0.99) * 1e3:6.1f} ms (ratio {p99:.2f}), {len(now)} calls"
            )
    errors = sum((during[path].errors for path in healthy), Counter[str]())
    say(f"  errors of databases that keep their groups: {dict(errors) or 'none'}")
    for path in sorted(lost):
        say(f"  lost {path}: {dict(during[path].errors)}, longest call {during[path].longest_s:.1f} s")


def lost(nodes: int, replicas: int, per_group: int, killed: tuple[int, ...], seconds: float) -> None:
    """Measure calls after nodes were killed."""
    routing = routing_of(nodes, replicas)
    databases = databases_of(routing, per_group)
    with cluster_of(nodes, replicas) as cluster:
        fill(cluster, databases)
        target = f"saros://{cluster.address(1)}"
        before = usual(target, databases, seconds)
        for node in killed:
            cluster.kill(node)
        time.sleep(3)  # groups that keep a majority elect new leaders
        gone = {int(g) for g in routing.groups if 2 * len({*routing.members(g)} & {*killed}) >= len(routing.members(g))}
        compare(before, ask(target, databases, seconds), {path for path, group in databases.items() if group in gone})


def frozen(seconds: float) -> None:
    """Measure calls after a node was frozen (SIGSTOP)."""
    databases = databases_of(routing_of(3, 3), 2)
    with cluster_of(3, 3) as cluster:
        fill(cluster, databases)
        target = f"saros://{cluster.address(1)},{cluster.address(2)}"
        before = usual(target, databases, seconds)
        cluster.stop(3)
        during = ask(target, databases, seconds + 4)
        compare(before, during, set())
        say(f"  longest call {max(calls.longest_s for calls in during.values()):.1f} s")


def slow(seconds: float) -> None:
    """Measure calls after the disk of a leader became slow."""
    databases = databases_of(routing_of(3, 3), 2)
    with cluster_of(3, 3, FAULTED) as cluster:
        fill(cluster, databases)
        target = f"saros://{cluster.address(1)}"
        before = usual(target, databases, seconds)
        (cluster.folder_of(2) / "slow").write_text("1")
        ask(target, databases, 10)
        compare(before, ask(target, databases, seconds), set())


def connected(target: str) -> saros.Connection:
    """Return a connection to a node that is starting."""
    while True:
        try:
            return saros.connect(target, failover_s=30)
        except saros.OperationalError:
            time.sleep(0.05)


def restart(_: float) -> None:
    """Kill a node, start it again, and measure the time until it answers reads and writes."""
    databases = databases_of(routing_of(3, 3), 2)
    with cluster_of(3, 3) as cluster:
        fill(cluster, databases)
        for _turn in range(3):
            cluster.kill(2)
            began = time.perf_counter()
            cluster.start([2])
            with connected(f"saros://{cluster.address(2)}") as connection:
                path = next(iter(databases))
                connection.execute(f"select count(x) from {path}.d").fetchall()
                read = time.perf_counter() - began
                connection.insert(f"{path}.d", [1], {"x": [1.0]})
            say(f"  reads after {read:.1f} s, writes after {time.perf_counter() - began:.1f} s")
            time.sleep(3)


def groups(seconds: float) -> None:
    """Measure point queries that need only a few of many groups."""
    databases = databases_of(routing_of(20, 1), 1)
    with cluster_of(20, 1) as cluster:
        fill(cluster, databases)
        with saros.connect(f"saros://{cluster.address(1)}", failover_s=30) as connection:
            taken: list[float] = []
            until = time.perf_counter() + seconds
            while time.perf_counter() < until:
                for path in databases:
                    began = time.perf_counter()
                    connection.execute(f"select x from {path}.d where time = 500").fetchall()
                    taken.append(time.perf_counter() - began)
        say(f"  p50 {statistics.median(taken) * 1e3:.2f} ms, p99 {percentile(taken, 0.99) * 1e3:.2f} ms")


SCENARIOS: dict[str, Callable[[float], None]] = {
    "lost-1": lambda seconds: lost(3, 1, 2, (3,), seconds),
    "lost-2": lambda seconds: lost(5, 3, 2, (4, 5), seconds),
    "frozen": frozen,
    "slow": slow,
    "restart": restart,
    "groups": groups,
}


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the given scenarios."""
    parser = argparse.ArgumentParser(description="What lost, frozen and slow nodes cost others.")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", choices=[*SCENARIOS, []], help=", ".join(SCENARIOS))
    parser.add_argument("--seconds", type=float, default=6)
    given = parser.parse_args()
    for name in given.scenarios or SCENARIOS:
        say(name)
        SCENARIOS[name](given.seconds)


if __name__ == "__main__":
    main()
