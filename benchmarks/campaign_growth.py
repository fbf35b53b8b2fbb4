"""Nodes join and leave a cluster of real processes under load: nothing acknowledged may be lost, and writes go on.

python benchmarks/campaign_growth.py [--faults 8] [--seed 1] [--folder F]

    1  stage one without load: 4 -> 5 nodes                                                    limit 1.5 s
    2  with the clients of `campaign_cluster`: 3 -> 4 -> 5 -> 4 -> 3, then 3 -> 5 in one change
          an audit after each: every point against the clients' ledgers, at each node too      nothing lost or wrong
          calls of writers that were under way in a change, the longest of each lane           p99 at most 1 s
          acknowledged points of any 5 s that touch a change, to those before it               at least half
    3  faults while a node joins: stage x role x kind, drawn without repetition from all 36    all of it ends, and is
          kill       SIGKILL, and a new start after a second                                   right
          lose       SIGKILL; the node is given up if it joins, else replaced by a new one
          pause      SIGSTOP for six seconds: longer than an election takes

The faults and their moments are drawn from the seed; what they meet depends on the machine. The limits of time are
those of a quiet machine: what is beyond them is told, and is no violation. Exit code 1 is for violations only, and then
folder, ledgers and logs stay.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
from campaign_cluster import OPTIONS, Campaign, CampaignFailed, say
from cluster.campaign_verdict import LEDGER_SUFFIX
from cluster.growth_effect import WINDOW_SECONDS, Effect, effect_of
from cluster.growth_watch import CHANGE_SECONDS_MAX, Grown, Watch, add, begin, remove
from cluster.history import Violation
from cluster.local_cluster import LocalCluster, NodeFailed

import saros

NODES, REPLICAS = 3, 3
#: Limits of a quiet machine: seconds, seconds, share.
STAGE_ONE_S_MAX, GAP_S_MAX, THROUGHPUT_SHARE_MIN = 1.5, 1.0, 0.5
#: Between an audit and a change: the throughput before it.
CALM_SECONDS = 8.0
STAGES, ROLES, KINDS = (
    ("preparing", "moving", "loading", "regrouping"),
    ("leader of the meta group", "one that joins", "another one"),
    ("kill", "lose", "pause"),
)
PAUSE_SECONDS, AWAY_SECONDS = 6.0, 1.0
_RETRY_SECONDS = 0.2


# ---------------------------------------------------------------------------------------------- faults


@dataclass(frozen=True, slots=True)
class Case:
    """A fault while a node joins."""

    stage: str
    role: str
    kind: str

    def text(self) -> str:
        return f"{self.kind} {self.role} while {self.stage}"


def victim(cluster: LocalCluster, case: Case, joining: int, rng: random.Random) -> int:
    """The node that is befallen."""
    if case.role == ROLES[1]:
        return joining
    leader = cluster.leaders().get(0)
    if case.role == ROLES[0] and leader is not None:
        return leader
    return rng.choice([node for node in cluster.nodes if node not in (joining, leader)])


@dataclass(slots=True)
class Growth:
    """What the summary tells."""

    idle: Grown | None = None
    effects: list[Effect] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)


class GrowthCampaign(Campaign):
    """The clients and audits of `Campaign`, and changes instead of its cycles."""

    def __init__(self, cluster: LocalCluster, folder: Path, arguments: argparse.Namespace) -> None:
        super().__init__(cluster, folder, arguments)
        self._rng = random.Random(f"{arguments.seed} growth")
        self.growth = Growth()

    def _go_through(self) -> None:
        for joining, leaving in ((1, None), (1, None), (0, 2), (0, 4), (2, None)):
            time.sleep(CALM_SECONDS)
            grown = add(self._cluster, joining) if leaving is None else remove(self._cluster, leaving)
            time.sleep(WINDOW_SECONDS / 2)
            self.evidence.refresh()
            effect = effect_of(grown, self.evidence.batches, CALM_SECONDS / 2)
            self.growth.effects.append(effect)
            say(f"{grown.text()}; longest call {max(effect.gaps_s, default=0):.2f} s")
            self._audit()
            if self.tally.violations:
                return
        self._cluster_of_four()
        cases = self._rng.sample(list(product(STAGES, ROLES, KINDS)), self._arguments.faults)
        for words in cases:
            self._befall(Case(*words))
            self._audit()
            if self.tally.violations:
                return

    def _cluster_of_four(self) -> None:
        """One node may be lost then, and another may join."""
        while len(self._cluster.nodes) > NODES + 1:
            remove(self._cluster, max(self._cluster.nodes))

    def _befall(self, case: Case) -> None:
        began = time.monotonic()
        cluster = self._cluster
        joining = cluster.admit()
        cluster.start([joining])
        cluster.wait_ready([joining])
        watch = begin(cluster, f"add node {joining}")
        met = watch.wait(lambda stage: STAGES.index(stage) >= STAGES.index(case.stage) if stage in STAGES else True)
        node = victim(cluster, case, joining, self._rng)
        self.tally.faults[case.kind] += 1
        if case.kind == "pause":
            cluster.stop(node)
            time.sleep(PAUSE_SECONDS)
            cluster.resume(node)
        else:
            cluster.kill(node)
            if case.kind == "kill":
                time.sleep(AWAY_SECONDS)
                cluster.start([node])
        if case.kind == "lose":
            self._do_without(watch, node, joining)
        else:
            cluster.wait_ready()
            watch.wait()
        watch.grown()
        self._wait_for_writes(time.monotonic_ns())
        self._cluster_of_four()
        self.growth.cases.append(case.text())
        say(f"{case.text()} (met: {met or 'the end'}), node {node}: over after {time.monotonic() - began:.1f} s")

    def _do_without(self, watch: Watch, lost: int, joining: int) -> None:
        """A node will not come back: the change ends without it if it joins, else the node is replaced."""
        cluster = self._cluster
        if lost == joining:
            while watch.poll() is not None and not self._is_given_up(lost):
                time.sleep(_RETRY_SECONDS)
            watch.wait()
            self._tell(f"remove node {lost}", f"dismiss node {lost}")
            watch.wait()
            cluster.forget(lost)
            return
        watch.wait()
        new = cluster.admit()
        cluster.start([new])
        cluster.wait_ready([new])
        self._tell(f"replace node {lost} with {new}")
        watch.wait()
        cluster.forget(lost)

    def _is_given_up(self, node: int) -> bool:
        """Whether the cluster goes on, or back, without a node that joins."""
        try:
            self._tell(f"give up node {node}", "abort change", seconds=0)
        except saros.Error:
            return False
        return True

    def _tell(self, *statements: str, seconds: float = CHANGE_SECONDS_MAX) -> None:
        """The first that the cluster takes. Raises saros.Error: none of them is taken."""
        limit = time.monotonic() + seconds
        while True:
            for statement in statements:
                try:
                    begin(self._cluster, statement)
                except saros.Error as error:
                    last = error
                else:
                    return
            if time.monotonic() >= limit:
                raise last
            time.sleep(_RETRY_SECONDS)


def idle_stage_one(folder: Path) -> Grown:
    """4 -> 5 nodes without load."""
    with LocalCluster(folder, NODES + 1, REPLICAS, environment=OPTIONS) as cluster:
        cluster.start()
        cluster.wait_ready()
        with saros.connect("saros://" + ",".join(cluster.addresses)) as connection:
            connection.execute("insert into root.idle.d(time, x) values (1, 1.0)")
        return add(cluster)


# ---------------------------------------------------------------------------------------------- the report


def figures(growth: Growth) -> list[str]:
    """What was measured, and what is beyond its limit."""
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
    lines.append(f"faults while a node joins: {len(growth.cases)} of {len(STAGES) * len(ROLES) * len(KINDS)}")
    return lines


def _judged(seconds: float, limit: float) -> str:
    return f"{seconds:.2f} s" + ("" if seconds <= limit else f" (limit {limit:.1f} s)")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Nodes join and leave a cluster of real processes under load.")
    parser.add_argument("--faults", type=int, default=8, help="of the 36 combinations of stage, role and kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to work (default: a new folder for temporary files)")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="saros-growth-"))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)  # nodes and clients end with this process
    started = time.monotonic()
    idle = idle_stage_one(folder / "idle")
    say(idle.text())
    work = folder / "loaded"
    work.mkdir(parents=True)
    with LocalCluster(work, NODES, REPLICAS, environment=OPTIONS) as cluster:
        campaign = GrowthCampaign(cluster, work, arguments)
        campaign.growth.idle = idle
        try:
            campaign.run()
        except (CampaignFailed, NodeFailed, saros.Error) as error:
            campaign.tally.violations.append(Violation("cannot go on", type(error).__name__, traceback.format_exc()))
        problems = cluster.shut_down()
        campaign.tally.violations += [Violation("does not stop", "a node", problem) for problem in problems]
    violations = campaign.tally.violations
    lines = [f"seed {arguments.seed}, {campaign.tally.audits} audits, {time.monotonic() - started:.0f} s"]
    lines += figures(campaign.growth)
    lines += [violation.text() for violation in violations] or ["nothing lost, nothing wrong, all of it ended"]
    say("\n".join(lines))
    if violations:
        say(f"{campaign.replicas}\nledgers: {work}/*{LEDGER_SUFFIX}; logs: {work}/node*/server.log")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
