"""Nodes join and leave a cluster of real processes under load: no acknowledged write may be lost, and writes continue.

python benchmarks/campaign_growth.py [--faults 8] [--only-faults] [--seed 1] [--folder F]

    1  stage one without load: 4 -> 5 nodes                                                    limit 1.5 s
    2  with the clients of `campaign_cluster`: 3 -> 4 -> 5 -> 4 -> 3, then 3 -> 5 in one change
          an audit after each: every point against the clients' ledgers, at each node too      nothing lost or wrong
          the longest call of each writer to each of its devices during a change               p99 at most 1 s
          acknowledged points of any 5 s during a change, relative to those before             at least half
    3  faults while a node joins: drawn from all cases of `growth_matrix` without repetition,  every change ends, and
          each point once before any repeats, in separate clusters, whose nodes check for a    all data is right
          fault before each step

The faults and their moments are drawn from the seed; their effects depend on the machine. The limits assume a quiet
machine: an exceeded limit is reported, but is not a violation. The exit code is 1 only for violations, and then folder,
ledgers and logs are kept.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from campaign_cluster import OPTIONS, Campaign, CampaignFailed, say
from cluster.campaign_report import LEDGER_SUFFIX
from cluster.growth_effect import WINDOW_SECONDS, Effect, effect_of
from cluster.growth_watch import Grown, add, remove
from cluster.history import Violation
from growth_matrix import CASES, POINT_ROLES, PROGRAM, Case, Matrix
from interruptible import run
from system.local_cluster import SAROS, LocalCluster, NodeFailed

import saros

NODES, REPLICAS = 3, 3
#: Limits for a quiet machine: seconds of stage one, seconds of a lane's longest call, fraction of the throughput.
STAGE_ONE_S_MAX, GAP_S_MAX, THROUGHPUT_SHARE_MIN = 1.5, 1.0, 0.5
#: Faults per cluster. Slices of time have few points: after twenty faults, each change would move thousands of slices.
FAULTS_A_CLUSTER = 16
#: Time between an audit and the next change; in this time, the throughput without a change is measured. It is also the
#: wait before the change without load.
CALM_SECONDS = 8.0


# ---------------------------------------------------------------------------------------------- the campaign


@dataclass(slots=True)
class Growth:
    """The figures of the summary."""

    idle: Grown | None = None
    effects: list[Effect] = field(default_factory=list)
    #: Faults that are still to be injected.
    drawn: deque[Case] = field(default_factory=deque)
    #: The cases that were tried, and for each case, whether a node reached its point.
    cases: list[tuple[Case, bool]] = field(default_factory=list)


class Growing(Campaign):
    """The clients and audits of `Campaign`, with changes of the cluster's nodes instead of cycles of faults."""

    def __init__(self, cluster: LocalCluster, folder: Path, arguments: argparse.Namespace, growth: Growth) -> None:
        super().__init__(cluster, folder, arguments)
        self._growth = growth

    def _go_through(self) -> None:
        for joining, leaving in ((1, None), (1, None), (0, 2), (0, 4), (2, None)):
            calm_ns = time.monotonic_ns()
            time.sleep(CALM_SECONDS)
            grown = add(self._cluster, joining) if leaving is None else remove(self._cluster, leaving)
            time.sleep(WINDOW_SECONDS + 1)
            self.evidence.refresh()
            effect = effect_of(grown, self.evidence.batches, (calm_ns, calm_ns + int(CALM_SECONDS * 1e9)))
            self._growth.effects.append(effect)
            say(f"{grown.text()}; longest call {max(effect.gaps_s, default=0):.2f} s")
            self._audit()
            if self.tally.violations:
                return


class Befalling(Growing):
    """A campaign that injects faults into changes instead of measuring the changes. The nodes run `PROGRAM`."""

    def _go_through(self) -> None:
        add(self._cluster)  # so that one node may be lost
        matrix = Matrix(self._cluster, NODES + 1)
        for _ in range(FAULTS_A_CLUSTER):
            if self.tally.violations or not self._growth.drawn:
                return
            self._befall(matrix, self._growth.drawn.popleft())
            self._audit()

    def _befall(self, matrix: Matrix, case: Case) -> None:
        began = time.monotonic()
        say(case.text())
        node = matrix.befall(case)
        self._wait_for_writes(time.monotonic_ns())
        matrix.shrink()
        self._growth.cases.append((case, node is not None))
        self.tally.faults[case.kind] += node is not None
        say(f"{'not reached' if node is None else f'node {node}'}; over after {time.monotonic() - began:.1f} s")


def draw(seed: int, faults: int) -> list[Case]:
    """Draw `faults` different cases of the matrix; each point occurs once before any point occurs again."""
    cases = random.Random(f"{seed} growth").sample(CASES, len(CASES))
    turns: Counter[str] = Counter()
    turn_of = {}
    for case in cases:
        turn_of[case] = turns[case.point]
        turns[case.point] += 1
    return sorted(cases, key=turn_of.__getitem__)[:faults]


def idle_stage_one(folder: Path) -> Grown:
    """Measure how a cluster without load grows from 4 to 5 nodes."""
    with LocalCluster(folder, NODES + 1, REPLICAS, environment=OPTIONS) as cluster:
        cluster.start()
        cluster.wait_ready()
        with saros.connect("saros://" + ",".join(cluster.addresses)) as connection:
            connection.execute("insert into root.idle.d(time, x) values (1, 1.0)")
        time.sleep(CALM_SECONDS)  # four servers that warm up after their start would disturb the measurement
        grown = add(cluster)
    say(grown.text())
    return grown


# ---------------------------------------------------------------------------------------------- the report


def figures(growth: Growth) -> list[str]:
    """Return lines of text with the figures, which say where a figure exceeds its limit."""
    lines = []
    if growth.idle is not None:
        lines.append(f"stage one without load, 4 -> 5 nodes: {_judged(growth.idle.stage_one_s, STAGE_ONE_S_MAX)}")
    gaps = [gap for effect in growth.effects for gap in effect.gaps_s]
    if gaps:
        p50, p99 = np.percentile(gaps, [50, 99])
        lines.append(f"longest call of a lane in a change: p50 {p50:.2f} s, p99 {_judged(float(p99), GAP_S_MAX)}")
    for effect in growth.effects:
        beyond = "" if effect.throughput_share >= THROUGHPUT_SHARE_MIN else f" (limit {THROUGHPUT_SHARE_MIN:.0%})"
        lines.append(f"{effect.grown.text()}; least throughput of 5 s {effect.throughput_share:.0%}{beyond}")
    reached = [case for case, is_reached in growth.cases if is_reached]
    points = len({case.point for case in reached})
    lines.append(
        f"faults while a node joins: {len(reached)} of {len(CASES)}, at {points} of {len(POINT_ROLES)} points;"
        f" {len(growth.cases) - len(reached)} more were drawn, and not reached"
    )
    lines += [f"not reached: {case.text()}" for case, is_reached in growth.cases if not is_reached]
    return lines


def _judged(seconds: float, limit: float) -> str:
    return f"{seconds:.2f} s" + ("" if seconds <= limit else f" (limit {limit:.1f} s)")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Nodes join and leave a cluster of real processes under load.")
    parser.add_argument("--faults", type=int, default=8, help="how many of the matrix's")
    parser.add_argument("--only-faults", action="store_true", help="without 1 and 2")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to work (default: a new folder for temporary files)")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="saros-growth-"))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)  # nodes and clients end with this process
    started = time.monotonic()
    growth = Growth()
    violations: list[Violation] = []
    if not arguments.only_faults:
        growth.idle = idle_stage_one(folder / "idle")
        violations += go_through(Growing, (SAROS,), folder / "loaded", arguments, growth)
    growth.drawn += draw(arguments.seed, arguments.faults)
    while growth.drawn and not violations:
        work = folder / f"befallen{len(growth.cases)}"
        violations += go_through(Befalling, PROGRAM, work, arguments, growth)
    lines = [f"seed {arguments.seed}, {time.monotonic() - started:.0f} s"]
    lines += figures(growth)
    lines += [violation.text() for violation in violations] or ["nothing lost, nothing wrong, all of it ended"]
    say("\n".join(lines))
    if violations:
        say(f"ledgers: {folder}/*/*{LEDGER_SUFFIX}; logs: {folder}/*/node*/server.log")
        return 1
    shutil.rmtree(folder)
    return 0


def go_through(
    kind: type[Growing], program: Sequence[str], work: Path, arguments: argparse.Namespace, growth: Growth
) -> list[Violation]:
    """Run one cluster from start to end, and return the violations."""
    work.mkdir(parents=True)
    with LocalCluster(work, NODES, REPLICAS, environment=OPTIONS, program=program) as cluster:
        campaign = kind(cluster, work, arguments, growth)
        try:
            campaign.run()
        except (CampaignFailed, NodeFailed, saros.Error) as error:
            campaign.tally.violations.append(Violation("cannot go on", type(error).__name__, traceback.format_exc()))
        problems = cluster.shut_down()
    violations = campaign.tally.violations
    violations += [Violation("does not stop", "a node", problem) for problem in problems]
    if violations:
        say(campaign.replicas)
    return violations


if __name__ == "__main__":
    run(main)
