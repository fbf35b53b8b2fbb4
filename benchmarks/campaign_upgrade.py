"""A cluster of processes under load is upgraded node by node from a former release: no write may be lost.

python benchmarks/campaign_upgrade.py [--former v0.1.0] [--kills 2] [--seed 1] [--folder F]

    1  install the former release, a tag or commit of this repository, into an environment of its own (build/former/...)
    2  start three nodes of that release, and the clients of `campaign_cluster`, which use the driver of this version
    3  for each node: SIGTERM, wait until every lane of writes continues without the node; start the node with this
       version, and wait until all nodes are ready and every lane continues;
       then kill nodes of any version with SIGKILL, and audit
          an audit compares every point, at each node too, with the clients' ledgers: nothing lost or wrong

The order of the nodes and the kills are drawn from the seed. After a violation, the exit code is 1, and folder, ledgers
and logs are kept. Without `--former`, the newest tag is the former release.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from campaign_cluster import KILLS, OPTIONS, Campaign, CampaignFailed, say, summary
from cluster.campaign_report import LEDGER_SUFFIX
from cluster.history import Violation
from interruptible import run
from system.local_cluster import SAROS, LocalCluster, NodeFailed

import saros

ROOT = Path(__file__).resolve().parents[1]
NODES, REPLICAS = 3, 3
#: All nodes must be ready within this time after one of them was started.
READY_SECONDS_MAX = 120.0


# ---------------------------------------------------------------------------------------------- the former release


def former_release(former: str | None) -> str:
    """Return the commit hash of a tag or commit, by default of the newest tag. Exits if there is no such commit."""
    git = ["git", "-C", str(ROOT)]
    if former is None:
        tags = subprocess.run([*git, "describe", "--tags", "--abbrev=0"], capture_output=True, text=True, check=False)
        if tags.returncode:
            sys.exit("the repository has no tag; pass --former with the commit of the former release")
        former = tags.stdout.strip()
    found = subprocess.run(
        [*git, "rev-parse", "--verify", "--quiet", f"{former}^{{commit}}"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        sys.exit(f"{former} is neither a tag nor a commit of this repository")
    return found.stdout.strip()


def install(commit: str) -> str:
    """Install a commit into its own environment, unless that exists; return the path of its program `saros`."""
    environment = ROOT / "build" / "former" / commit[:12]
    program = environment / "bin" / "saros"
    if not program.exists():
        shutil.rmtree(environment, ignore_errors=True)
        say(f"installing {commit[:12]} into {environment} (once)")
        with tempfile.TemporaryDirectory() as source:
            archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit], check=True, capture_output=True)
            subprocess.run(["tar", "x", "-C", source], input=archive.stdout, check=True)
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
            pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
            subprocess.run([*pip, "--python", str(environment / "bin" / "python"), "install", source], check=True)
    return str(program)


# ---------------------------------------------------------------------------------------------- the campaign


class Upgrading(Campaign):
    """The clients and audits of `Campaign`, with upgrades of the nodes instead of cycles of faults."""

    def _go_through(self) -> None:
        self._audit()
        for number, node in enumerate(self._rng.sample(self._cluster.nodes, NODES), 1):
            self._upgrade(node)
            for kill in range(self._arguments.kills):
                self._cycle(self._arguments.kills * (number - 1) + kill + 1, KILLS)
            self._audit()
            if self.tally.violations:
                return

    def _upgrade(self, node: int) -> None:
        time.sleep(self._rng.uniform(*self._arguments.calm))
        began_ns = time.monotonic_ns()
        self._cluster.kill(node, signal.SIGTERM)
        stopped_ns = time.monotonic_ns()
        resumed_ns = self._wait_for_writes(stopped_ns)
        self._cluster.run_with(node, (SAROS,))
        self._cluster.start([node])
        self._cluster.wait_ready(seconds=READY_SECONDS_MAX)
        ready_ns = time.monotonic_ns()
        self._wait_for_writes(ready_ns)
        self.tally.resumed_s["the stop of a node"].append((resumed_ns - stopped_ns) / 1e9)
        seconds = [(moment_ns - began_ns) / 1e9 for moment_ns in (stopped_ns, resumed_ns, ready_ns)]
        say("node {}: stopped after {:.1f} s, all lanes after {:.1f} s, ready after {:.1f} s".format(node, *seconds))
        say(
            "versions: "
            + ", ".join(f"{row['NodeID']}: {row['Version']}" for row in self._cluster.ask(node, "show cluster"))
        )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A cluster is upgraded node by node, under load.")
    parser.add_argument(
        "--former", metavar="COMMIT", help="tag or commit of the former release (default: the newest tag)"
    )
    parser.add_argument("--kills", type=int, default=2, help="kills after each upgrade")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calm", type=float, nargs=2, default=(1.0, 5.0), metavar="S", help="seconds before each step")
    parser.add_argument("--folder", type=Path, help="where to work (default: a new folder for temporary files)")
    return parser.parse_args(namespace=argparse.Namespace(nodes=NODES, replicas=REPLICAS))


def main() -> int:
    arguments = parse()
    former = (install(former_release(arguments.former)),)
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="saros-upgrade-"))
    folder.mkdir(exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)  # nodes and clients end with this process
    started = time.monotonic()
    campaign = go_through(former, folder, arguments)
    say(summary(campaign, arguments, time.monotonic() - started))
    if campaign.tally.violations:
        say("\n".join(violation.text() for violation in campaign.tally.violations))
        say(campaign.replicas)
        say(f"ledgers: {folder}/*{LEDGER_SUFFIX}; logs: {folder}/node*/server.log")
        return 1
    shutil.rmtree(folder)
    return 0


def go_through(former: Sequence[str], folder: Path, arguments: argparse.Namespace) -> Campaign:
    """Upgrade one cluster, and return the campaign with the violations."""
    with LocalCluster(folder, NODES, REPLICAS, environment=OPTIONS, program=former) as cluster:
        campaign = Upgrading(cluster, folder, arguments)
        try:
            campaign.run()
        except (CampaignFailed, NodeFailed, saros.Error) as error:
            campaign.tally.violations.append(Violation("cannot go on", type(error).__name__, traceback.format_exc()))
        problems = cluster.shut_down()
    campaign.tally.violations += [Violation("does not stop", "a node", problem) for problem in problems]
    return campaign


if __name__ == "__main__":
    run(main)
