"""Faults in a cluster of real processes under load: no acknowledged write may be lost, no strong read may be stale.

python benchmarks/campaign_cluster.py [--cycles 50 | --minutes M] [--nodes 3] [--replicas 3] [--seed 1] [--faults kill]

    writers (processes)      batches of new points on lanes, one device for each lane ┐ each call and its result in a
    registers (processes)    points that all clients overwrite, delete and read       ├ ledger: see tests/cluster
    replica readers          the same points, weakly, at each node                    ┘
    this process             begins a fault, ends it, waits until every lane of writes continues; sometimes audits

An audit halts the clients, reads all points strongly and at each node weakly, and compares them with the ledgers: no
point may be lost or wrong, there may be no other points except those of writes with an unknown outcome, and all
replicas must be equal. The history of the registers must be linearizable, and reads within a session at one replica
must be monotonic. With `--nodes 1`, the node is a plain server. With `--histories FOLDER`, the registers' history is
also written to a file in this folder and judged by porcupine, an independent checker.

The faults are drawn from the seed; the interleaving with the clients depends on the machine. On a violation the exit
code is 1, and folder, ledgers and the nodes' logs are kept.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import SynchronizedArray
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
from interruptible import run, uninterrupted

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from cluster.campaign_clients import (
    SCHEMA,
    SLICE,
    Client,
    RegisterClient,
    ReplicaReader,
    Writer,
    to_cluster,
    to_replica,
)
from cluster.campaign_report import LEDGER_SUFFIX, Evidence, Found, Points, Whole, check_registers, compare, diverged
from cluster.exported_history import SUFFIX, export, verdict
from cluster.history import Outcome, Violation
from cluster.ledger import Ledger
from system.local_cluster import LOSE, LocalCluster, NodeFailed
from system.tcp_proxy import Weather

import saros
from saros_wire.status import status_of

WRITERS, LANES = 2, 4
#: Clients of each register process: (consistency, seconds of fail-over). A short fail-over leaves outcomes unknown.
REGISTER_CLIENTS = ((("strong", 15.0), ("strong", 1.0)), (("strong", 5.0), ("mid", 5.0)))
WRITER_FAILOVER_S = 10.0
#: Pause between two calls of a client, because the nodes need the machine's two cores, too.
PAUSE_S = 0.01
#: Pause after a failed call.
FAILED_PAUSE_S = 0.2
AUDIT_EVERY = 10
RESUME_SECONDS_MAX = 60.0
READ_SECONDS_MAX = 60.0
#: Replicas that agree only after this time count as slow, which is a violation.
CONVERGE_SECONDS_MAX = 10.0
#: Replicas that still disagree after this time count as diverged.
DIVERGED_SECONDS = 30.0
HALT_SECONDS_MAX = 60.0
POLL_SECONDS = 0.005
#: The maximum number of violations that are printed; the summary counts the remaining ones.
VIOLATIONS_TOLD = 20
#: Options small enough to cause constant flushes.
OPTIONS = {
    "SAROS_TIME_PARTITION_INTERVAL_MS": str(SLICE),
    "SAROS_MEMTABLE_BYTES": "256KiB",
    "SAROS_MEMTABLES_TOTAL_BYTES": "4MiB",
}
SLOW = Weather(delay_s=0.1)


# ---------------------------------------------------------------------------------------------- client processes


@dataclass(frozen=True, slots=True)
class Setting:
    """The configuration of a client process."""

    folder: Path
    addresses: tuple[str, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Signals:
    """The state shared by the processes."""

    stop: Event
    halt: Event
    #: 1 for each client that has halted.
    halted: SynchronizedArray[int]
    #: For each lane of each writer, the time at which its last acknowledged batch was sent.
    wrote_ns: SynchronizedArray[int]


def write(setting: Setting, signals: Signals, number: int) -> None:
    """Run a process with one writer."""
    ledger = Ledger(setting.folder / f"writer{number}{LEDGER_SUFFIX}")
    connect = to_cluster(setting.addresses, "strong", WRITER_FAILOVER_S)

    def wrote(lane: int, invoked_ns: int) -> None:
        signals.wrote_ns[number * LANES + lane] = invoked_ns

    rng = random.Random(f"{setting.seed} writer {number}")
    writer = Writer(number, connect, ledger, time.monotonic_ns, rng, LANES, wrote)
    go_on(setting, signals, {number: writer})


def use_registers(setting: Setting, signals: Signals, number: int) -> None:
    """Run a process with register clients and a reader of the replicas, each on its own thread."""
    ledger = Ledger(setting.folder / f"registers{number}{LEDGER_SUFFIX}")
    first = WRITERS + sum(len(clients) + 1 for clients in REGISTER_CLIENTS[:number])
    everyone = sum(len(clients) for clients in REGISTER_CLIENTS)
    clients: dict[int, Client] = {}
    for place, (consistency, failover_s) in enumerate(REGISTER_CLIENTS[number], first):
        connect = to_cluster(setting.addresses, consistency, failover_s)
        rng = random.Random(f"{setting.seed} registers {place}")
        clients[place] = RegisterClient(
            place, connect, ledger, time.monotonic_ns, rng, consistency=consistency, clients=everyone
        )
    place = first + len(REGISTER_CLIENTS[number])
    replicas = [to_replica(address) for address in setting.addresses]
    rng = random.Random(f"{setting.seed} replicas {place}")
    clients[place] = ReplicaReader(place, replicas, ledger, time.monotonic_ns, rng)
    go_on(setting, signals, clients)


def go_on(setting: Setting, signals: Signals, clients: dict[int, Client]) -> None:
    """Let each client make one call after another until the end; `clients` is keyed by the index in `halted`."""
    threads = [
        threading.Thread(target=go_on_alone, args=(setting, signals, place, client))
        for place, client in clients.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def go_on_alone(setting: Setting, signals: Signals, place: int, client: Client) -> None:
    try:
        while not signals.stop.is_set():
            signals.halted[place] = 0
            while signals.halt.is_set() and not signals.stop.is_set():
                signals.halted[place] = 1
                time.sleep(POLL_SECONDS)
            if not signals.halt.is_set():
                outcome = client.step()
                time.sleep(PAUSE_S if outcome is Outcome.OK else FAILED_PAUSE_S)
    except Exception:  # noqa: BLE001 (the top of a thread: the campaign reports it)
        (setting.folder / f"client{place}.failed").write_text(traceback.format_exc())
    finally:
        signals.halted[place] = 1


class Clients:
    """The client processes."""

    def __init__(self, folder: Path, addresses: Sequence[str], seed: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._folder = folder
        count = WRITERS + sum(len(clients) + 1 for clients in REGISTER_CLIENTS)
        self._signals = Signals(
            context.Event(), context.Event(), context.Array("b", count), context.Array("q", WRITERS * LANES)
        )
        setting = Setting(folder, tuple(addresses), seed)
        targets = [(write, n) for n in range(WRITERS)] + [(use_registers, n) for n in range(len(REGISTER_CLIENTS))]
        self._processes = [
            context.Process(target=target, args=(setting, self._signals, n), daemon=True) for target, n in targets
        ]

    def start(self) -> None:
        """Start the clients."""
        with uninterrupted():
            for process in self._processes:
                process.start()

    def wrote_since(self, moment_ns: int) -> bool:
        """Return whether every lane has an acknowledged batch that was sent after `moment_ns`."""
        return min(self._signals.wrote_ns) > moment_ns

    def halt(self) -> None:
        """Halt all clients, and wait until no call is in progress."""
        self._signals.halt.set()
        limit = time.monotonic() + HALT_SECONDS_MAX
        while not all(self._signals.halted):
            if time.monotonic() > limit:
                raise CampaignFailed(f"clients have not ended their calls after {HALT_SECONDS_MAX:.0f} s")
            time.sleep(POLL_SECONDS)

    def go_on(self) -> None:
        """Let the clients continue after `halt`."""
        self._signals.halt.clear()

    def failures(self) -> list[Violation]:
        """Return a violation for each client that ended unexpectedly."""
        return [
            Violation("client failed", path.stem, path.read_text()) for path in sorted(self._folder.glob("*.failed"))
        ]

    def close(self) -> None:
        """End the processes."""
        self._signals.stop.set()
        for process in self._processes:
            if process.pid is not None:
                process.join(HALT_SECONDS_MAX)
                process.kill()
                process.join()


class CampaignFailed(Exception):
    """The campaign cannot continue."""


# ---------------------------------------------------------------------------------------------- faults


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in progress, and how long it may last."""

    name: str
    nodes: tuple[int, ...]
    #: The longest duration of the fault; the absence of a killed node ends as soon as every lane has written again.
    hold_s: float
    kills: bool = False

    @property
    def after(self) -> str:
        """The name under which the summary reports the times until writes continued after such a fault."""
        if not self.kills:
            return "another fault"
        return "the kill of one node" if len(self.nodes) == 1 else "the kill of all"


def kill_one(cluster: LocalCluster, rng: random.Random) -> Fault:
    node = rng.choice(cluster.nodes)
    cluster.kill(node)
    return Fault("kill a node", (node,), _absence_s(cluster, rng), kills=True)


def kill_leader(cluster: LocalCluster, rng: random.Random) -> Fault:
    node = _leader(cluster, rng)
    cluster.kill(node)
    return Fault("kill a leader", (node,), _absence_s(cluster, rng), kills=True)


def _absence_s(cluster: LocalCluster, rng: random.Random) -> float:
    """Return how long a killed node is absent: up to 20 s if the other nodes can continue without it."""
    return rng.choice((0.0, 1.0, 20.0)) if cluster.survives_one else rng.uniform(0, 1)


def kill_all(cluster: LocalCluster, rng: random.Random) -> Fault:
    for node in rng.sample(cluster.nodes, len(cluster.nodes)):
        cluster.kill(node)
    return Fault("kill all", tuple(cluster.nodes), rng.uniform(0, 1), kills=True)


def stop_one(cluster: LocalCluster, rng: random.Random) -> Fault:
    node = rng.choice((rng.choice(cluster.nodes), _leader(cluster, rng)))
    cluster.stop(node)
    return Fault("stop a node", (node,), rng.uniform(3, 15))


def isolate_one(cluster: LocalCluster, rng: random.Random) -> Fault:
    node = rng.choice((rng.choice(cluster.nodes), _leader(cluster, rng)))
    cluster.isolate(node)
    return Fault("isolate a node", (node,), rng.uniform(2, 10))


def cut_one_way(cluster: LocalCluster, rng: random.Random) -> Fault:
    node = rng.choice((rng.choice(cluster.nodes), _leader(cluster, rng)))
    if rng.random() < 0.5:
        cluster.set_links(node, outward=LOSE)
        return Fault("mute a node", (node,), rng.uniform(2, 10))
    cluster.set_links(node, inward=LOSE)
    return Fault("deafen a node", (node,), rng.uniform(2, 10))


def slow_links(cluster: LocalCluster, rng: random.Random) -> Fault:
    node = rng.choice(cluster.nodes)
    cluster.set_links(node, outward=SLOW, inward=SLOW)
    return Fault("slow links", (node,), rng.uniform(2, 6))


def _leader(cluster: LocalCluster, rng: random.Random) -> int:
    """Return a node that leads some group, or any node if no leader is known."""
    leaders = cluster.leaders()
    return rng.choice([leaders[region] for region in sorted(leaders)] or list(cluster.nodes))


Inject = Callable[[LocalCluster, random.Random], Fault]
KILLS: dict[Inject, int] = {kill_one: 30, kill_leader: 25, kill_all: 10}
STOPS: dict[Inject, int] = {stop_one: 15}
LINKS: dict[Inject, int] = {isolate_one: 10, cut_one_way: 7, slow_links: 3}


def faults_for(words: str, nodes: int) -> dict[Inject, int]:
    """Return faults with their weights, for words such as kill,stop,link."""
    chosen: dict[Inject, int] = {}
    for word in words.split(","):
        chosen |= {"kill": KILLS, "stop": STOPS, "link": LINKS}[word]
    return chosen if nodes > 1 else {inject: n for inject, n in chosen.items() if inject in (kill_one, stop_one)}


# ---------------------------------------------------------------------------------------------- the campaign


@dataclass(slots=True)
class Tally:
    """The figures of the summary."""

    faults: Counter[str] = field(default_factory=Counter)
    #: For each kind of fault: the seconds from each fault until every lane had an acknowledged batch that was sent
    #: after the fault.
    resumed_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    audits: int = 0
    violations: list[Violation] = field(default_factory=list)


class Campaign:
    """One run, which ends after `cycles` or `minutes`."""

    def __init__(self, cluster: LocalCluster, folder: Path, arguments: argparse.Namespace) -> None:
        self._cluster = cluster
        self._arguments = arguments
        self._rng = random.Random(f"{arguments.seed} faults")
        self._clients = Clients(folder, cluster.addresses, arguments.seed)
        self._ledger = Ledger(folder / f"auditor{LEDGER_SUFFIX}")
        self._auditor = RegisterClient(
            1_000,
            to_cluster(cluster.addresses, "strong", READ_SECONDS_MAX),
            self._ledger,
            time.monotonic_ns,
            random.Random(0),
            consistency="strong",
            clients=1,
        )
        self._whole = Whole()
        self._told: set[str] = set()
        self.evidence = Evidence(folder)
        self.tally = Tally()
        #: The state of the replicas, as the nodes reported it at the end.
        self.replicas = ""

    def run(self) -> None:
        """Run all cycles and audits. Raises CampaignFailed, NodeFailed."""
        try:
            self._begin()
            self._go_through()
        finally:
            self.replicas = self._cluster.replicas_text()
            self._clients.close()
            self._ledger.close()
            self.evidence.refresh()
            self._add(self._clients.failures() + self.evidence.bugs())

    def _go_through(self) -> None:
        started = time.monotonic()
        faults = faults_for(self._arguments.faults, self._arguments.nodes)
        cycle = 0
        while not self._is_over(cycle, started):
            cycle += 1
            self._cycle(cycle, faults)
            if cycle % AUDIT_EVERY == 0 and not self._is_over(cycle, started):
                self._audit()
            if self.tally.violations:
                return
        self._audit()

    def _is_over(self, cycle: int, started: float) -> bool:
        minutes = self._arguments.minutes
        if minutes is not None:
            return time.monotonic() - started >= minutes * 60
        return cycle >= self._arguments.cycles

    def _begin(self) -> None:
        self._cluster.start()
        self._cluster.wait_ready()
        connection = to_cluster(self._cluster.addresses, "strong", READ_SECONDS_MAX)()
        for statement in SCHEMA:
            connection.execute(statement)
        connection.close()
        began_ns = time.monotonic_ns()
        self._clients.start()
        self._wait_for_writes(began_ns)

    def _cycle(self, number: int, faults: dict[Inject, int]) -> None:
        time.sleep(self._rng.uniform(*self._arguments.calm))
        began_ns = time.monotonic_ns()
        inject = self._rng.choices(list(faults), list(faults.values()))[0]
        fault = inject(self._cluster, self._rng)
        self.tally.faults[fault.name] += 1
        resumed_ns = self._hold(fault, began_ns)
        self._check_processes(fault.nodes if fault.kills else ())
        ended_ns = time.monotonic_ns()
        self._cluster.bring_back()
        resumed_ns = resumed_ns or self._wait_for_writes(began_ns)
        self._wait_for_writes(ended_ns)
        self._cluster.wait_ready()
        seconds = (resumed_ns - began_ns) / 1e9
        self.tally.resumed_s[fault.after].append(seconds)
        nodes = ", ".join(map(str, fault.nodes))
        say(
            f"cycle {number}: {fault.name} ({nodes}) for {(ended_ns - began_ns) / 1e9:.1f} s;"
            f" all lanes after {seconds:.1f} s"
        )

    def _hold(self, fault: Fault, began_ns: int) -> int | None:
        """Let a fault last; return the time at which every lane had written since `began_ns`, or None."""
        limit = time.monotonic() + fault.hold_s
        resumed_ns = None
        while time.monotonic() < limit and not (fault.kills and resumed_ns):
            if resumed_ns is None and self._clients.wrote_since(began_ns):
                resumed_ns = time.monotonic_ns()
            time.sleep(POLL_SECONDS)
        return resumed_ns

    def _check_processes(self, killed: Sequence[int]) -> None:
        for node in self._cluster.nodes:
            if node not in killed and not self._cluster.is_running(node):
                raise NodeFailed(f"node {node} ended by itself: {self._cluster.last_log_line(node)}")

    def _wait_for_writes(self, since_ns: int) -> int:
        """Wait until every lane has an acknowledged batch that was sent after `since_ns`; return the time."""
        limit = time.monotonic() + RESUME_SECONDS_MAX
        while not self._clients.wrote_since(since_ns):
            failures = self._clients.failures()
            if failures:
                raise CampaignFailed("\n".join(violation.text() for violation in failures))
            if time.monotonic() > limit:
                raise CampaignFailed(f"not every lane of writes has gone on after {RESUME_SECONDS_MAX:.0f} s")
            time.sleep(POLL_SECONDS)
        return time.monotonic_ns()

    # ------------------------------------------------------------------ audits

    def _audit(self) -> None:
        started = time.monotonic()
        self._check_processes(())
        self._clients.halt()
        self.evidence.refresh()
        points = self.evidence.points()
        began_ns = time.monotonic_ns()
        strong = self._read_all(list(points), to_cluster(self._cluster.addresses, "strong", READ_SECONDS_MAX))
        self._whole.observe(points, strong, began_ns, time.monotonic_ns())
        for series, asked in points.items():
            self._add(compare(series, asked, strong[series], "a strong read"))
        self._add(self._whole.check(self.evidence.batches))
        self._add(self._compare_replicas(points, strong))
        if not self._auditor.read_all():
            self._add([Violation("unreadable", "registers", "a strong read fails although nothing is wrong")])
        self._clients.go_on()
        self.evidence.refresh()
        self._add(check_registers(self.evidence.operations))
        self.tally.audits += 1
        count = sum(len(asked.times) for asked in points.values())
        say(f"audit {self.tally.audits}: {count:,} points, {time.monotonic() - started:.1f} s")

    def _add(self, violations: Sequence[Violation]) -> None:
        """Add to the tally the violations that were not found before."""
        for violation in violations:
            if (text := violation.text()) not in self._told:
                self._told.add(text)
                self.tally.violations.append(violation)

    def _read_all(self, series: Sequence[str], connect: Callable[[], saros.Connection]) -> dict[str, Found]:
        connection = connect()
        try:
            return {name: read_series(connection, name) for name in series}
        finally:
            connection.close()

    def _compare_replicas(self, points: dict[str, Points], strong: dict[str, Found]) -> list[Violation]:
        """Read each node's replicas weakly until they are equal or the time limit is exceeded; return violations."""
        began = time.monotonic()
        last: list[Violation] = []
        while True:
            violations = self._compare_replicas_now(points, strong)
            seconds = time.monotonic() - began
            if not violations and seconds > CONVERGE_SECONDS_MAX:
                elements = tuple(violation.text() for violation in last)
                return [Violation("slow replica", "all", f"right only after {seconds:.0f} s", elements=elements)]
            if not violations or seconds > DIVERGED_SECONDS:
                return violations
            last = violations
            time.sleep(POLL_SECONDS)

    def _compare_replicas_now(self, points: dict[str, Points], strong: dict[str, Found]) -> list[Violation]:
        found = {"a strong read": strong}
        violations = []
        for node in self._cluster.nodes:
            who = f"node {node}"
            found[who] = self._read_all(list(points), to_replica(self._cluster.address(node)))
            for series, asked in points.items():
                violations += compare(series, asked, found[who][series], who)
        return violations + diverged(found)


def read_series(connection: saros.Connection, series: str) -> Found:
    """Return all points of a series."""
    path, _, measurement = series.rpartition(".")
    table = connection.execute(f"select {measurement} from {path}").fetch_arrow()
    if table.num_columns == 1:
        return Found(np.empty(0, np.int64), np.empty(0, np.int64))
    return Found(table.column(0).cast("int64").to_numpy(), table.column(1).to_numpy())


# ---------------------------------------------------------------------------------------------- the report


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def summary(campaign: Campaign, arguments: argparse.Namespace, seconds: float) -> str:
    """Return the summary as a few lines of text."""
    tally, evidence = campaign.tally, campaign.evidence
    batches = Counter(batch.outcome.value for batch in evidence.batches)
    operations = Counter(operation.consistency for operation in evidence.operations)
    registers = len({operation.register for operation in evidence.operations})
    refusals = ", ".join(f"{status_of(code).name} {n}" for code, n in sorted(evidence.refusals.items())) or "none"
    faults = ", ".join(f"{name} {n}" for name, n in sorted(tally.faults.items()))
    lines = [f"seed {arguments.seed}, {arguments.nodes} nodes, {arguments.replicas} replicas, {seconds:.0f} s"]
    lines.append(f"{tally.audits} audits; faults: {faults or 'none'}")
    words = [f"{batches['ok']:,} acknowledged", f"{batches['unknown']:,} unknown", f"{batches['fail']:,} failed"]
    lines.append("batches of points: " + ", ".join(words))
    words = [f"{operations[consistency]:,} {consistency}" for consistency in ("strong", "mid", "weak")]
    lines.append(f"operations on {registers:,} registers: " + ", ".join(words))
    lines.append(f"errors that clients saw: {refusals}")
    for after, found_s in sorted(tally.resumed_s.items()):
        p50, p99 = np.percentile(found_s, [50, 99])
        times = f"p50 {p50:.2f} s, p99 {p99:.2f} s, max {max(found_s):.2f} s"
        lines.append(f"every lane of writes goes on after {after}: {times} ({len(found_s)} times)")
    rules = Counter(violation.rule for violation in tally.violations)
    found = ", ".join(f"{rule} {n}" for rule, n in sorted(rules.items()))
    lines.append(f"violations: {found}" if rules else "nothing lost, nothing wrong, no strong read was old")
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Faults in a cluster of real processes under load.")
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--minutes", type=float, help="go on for so long, instead of a number of cycles")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--replicas", type=int, help="default: as many as nodes, at most 3")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", default="kill,stop,link", help="of kill, stop, link")
    parser.add_argument("--calm", type=float, nargs=2, default=(1.0, 5.0), metavar="S", help="seconds between faults")
    parser.add_argument("--folder", type=Path, help="where to work (default: a new folder for temporary files)")
    parser.add_argument(
        "--histories", type=Path, metavar="FOLDER", help="keep clients' histories; porcupine judges them"
    )
    arguments = parser.parse_args()
    arguments.replicas = arguments.replicas or min(arguments.nodes, 3)
    return arguments


def main() -> int:
    arguments = parse()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="saros-campaign-"))
    folder.mkdir(exist_ok=True)
    started = time.monotonic()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)  # nodes and clients end with this process
    proxies = "link" in arguments.faults
    with LocalCluster(folder, arguments.nodes, arguments.replicas, proxies=proxies, environment=OPTIONS) as cluster:
        campaign = Campaign(cluster, folder, arguments)
        try:
            campaign.run()
        except (CampaignFailed, NodeFailed, saros.Error) as error:
            campaign.tally.violations.append(Violation("cannot go on", type(error).__name__, str(error)))
        problems = cluster.shut_down()
        campaign.tally.violations += [Violation("does not stop", "a node", problem) for problem in problems]
        logs = [str(cluster.log_of(node)) for node in cluster.nodes]
    if arguments.histories is not None:
        arguments.histories.mkdir(parents=True, exist_ok=True)
        export(campaign.evidence.operations, arguments.histories / f"processes-{arguments.seed}{SUFFIX}")
        text, is_right = verdict(arguments.histories)
        say(text)
        if not is_right:
            campaign.tally.violations.append(
                Violation("not linearizable", str(arguments.histories), "as porcupine says")
            )
    say(summary(campaign, arguments, time.monotonic() - started))
    if campaign.tally.violations:
        for violation in campaign.tally.violations[:VIOLATIONS_TOLD]:
            say(violation.text())
        say(campaign.replicas)
        say("logs: " + " ".join(logs))
        say(f"ledgers: {folder}{os.sep}*{LEDGER_SUFFIX}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    run(main)
