"""Print the measurements of `peerbench_adapter.py` and of the peers' adapters as a table of goals: Markdown.

    python benchmarks/peers_table.py [--others CORES] RESULTS.jsonl ...

A goal is a ratio of Saros' figure to the best peer's: a minimum for rates, a maximum for times and bytes. A cell has
the best and the median of the rounds, and the CPU seconds of client and server. With `--others`, rounds are ignored in
which other processes used more than this number of processors. Of Saros' results, those with the durability that the
goal names count; for queries, all results count.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

TSDB = ("influx", "vm")
NETWORKED = (*TSDB, "clickhouse18", "postgres")
LOSSLESS = ("influx", "clickhouse18", "postgres", "duckdb", "tsfile")
ALL = (*NETWORKED, "duckdb", "tsfile")
OURS = ("saros", "saros-embedded")


@dataclass(frozen=True)
class Goal:
    """A required ratio to the best of `peers`. `field` names a result or, in the phase `query`, a query."""

    name: str
    what: str
    profile: str
    phase: str
    field: str
    peers: tuple[str, ...]
    ratio: float
    more_is_better: bool = False
    durability: str = "fsync"


def rate(name, what, phase, field, peers, ratio, durability="fsync"):
    return Goal(name, what, "small", phase, field, peers, ratio, more_is_better=True, durability=durability)


def least(name, what, profile, query, peers, ratio):
    return Goal(name, what, profile, "query", query, peers, ratio)


GOALS = [
    rate("G1", "gateway, 1 client, k points/s", "gateway", "kpts_s", ("postgres",), 1.8),
    rate("G1", "the same", "gateway", "kpts_s", ("influx",), 4.0),
    Goal("G1", "p99 of it, ms", "small", "gateway", "p99_ms", ("postgres",), 1.0),
    rate("G2", "gateway, 4 clients, k points/s", "gateway4", "kpts_s", ("postgres", "postgres-async", "vm"), 4.0, "os"),
    rate("G2", "the same", "gateway4", "kpts_s", ("influx",), 10.0, "os"),
    rate("G3", "bulk, M points/s", "bulk", "mpts_s", ("clickhouse18",), 1.0),
    rate("G3", "the same", "bulk", "mpts_s", ("influx",), 10.0),
    rate("G3", "the same", "bulk", "mpts_s", ("vm",), 7.0),
    rate("G3", "the same", "bulk", "mpts_s", ("postgres",), 4.0),
    rate("G4", "bulk with 10 % late rows, M points/s", "ooo", "mpts_s", ("influx",), 10.0),
    Goal("G5", "bytes a point, without loss", "small", "bulk", "bytes_per_point", LOSSLESS, 0.6),
    Goal("G5", "the same", "small", "bulk", "bytes_per_point", ("tsfile",), 0.55),
    least("G6", "Q1 one point, ms", "small", "Q1", TSDB, 0.6),
    least("G6", "Q7 latest of all series, ms", "small", "Q7", TSDB, 0.1),
    least("G6", "the same", "small", "Q7", ("postgres",), 1.0),
    least("G6", "Q9 ten rows from the end, ms", "small", "Q9", TSDB, 0.4),
    least("G7", "Q2 raw range, ms", "small", "Q2", NETWORKED, 0.4),
    least("G7", "Q10 export of a device, ms", "medium", "Q10", NETWORKED, 0.25),
    least("G7", "the same", "medium", "Q10", ALL, 0.6),
    least("G8", "Q4 aggregate of a range, ms", "medium", "Q4", NETWORKED, 0.2),
    least("G8", "the same", "medium", "Q4", ("tsfile",), 0.35),
    least("G8", "Q5 with value filter, ms", "medium", "Q5", ALL, 0.5),
    least("G9", "Q6b windows of 100 series, ms", "medium", "Q6b", ("vm",), 0.3),
    least("G9", "the same", "medium", "Q6b", ("duckdb",), 0.2),
    least("G10", "Q8 down-sampling of 10 series, ms", "medium", "Q8", NETWORKED, 0.4),
    least("G10", "the same", "medium", "Q8", ALL, 0.55),
]


class Results:
    """The records of the results files, by (peer, profile, phase)."""

    def __init__(self, files, others_max):
        self._found = defaultdict(list)
        for record in (json.loads(line) for file in files for line in Path(file).read_text().splitlines()):
            if "error" not in record["result"] and (record["other_cores"] or 0) <= others_max:
                key = (record["peer"], record["profile"], record["phase"])
                self._found[key].append((record["durability"], record["result"]))

    def values(self, peer, goal):
        """Return best and median over the rounds, and the CPU seconds of client and server; None if not measured."""
        rounds = [
            result
            for durability, result in self._found[peer, goal.profile, goal.phase]
            if peer not in OURS or goal.phase == "query" or durability == goal.durability
        ]
        if goal.phase == "query":
            rounds = [one[goal.field] for one in rounds if one.get(goal.field, {}).get("ok")]
            best, middle = [one["best_ms"] for one in rounds], [one["median_ms"] for one in rounds]
            cpu = [(one["client_cpu_ms"] + one["server_cpu_ms"]) / 1e3 for one in rounds]
        else:
            best = middle = [one[goal.field] for one in rounds]
            cpu = [one["client_cpu"] + one["server_cpu"] for one in rounds]
        if not rounds:
            return None
        return (max if goal.more_is_better else min)(best), statistics.median(middle), statistics.median(cpu)


def best_peer(results, goal):
    """Return (name, values) of the best peer by median; None if no peer was measured."""
    measured = {peer: results.values(peer, goal) for peer in goal.peers}
    measured = {peer: values for peer, values in measured.items() if values is not None}
    if not measured:
        return None
    choose = max if goal.more_is_better else min
    name = choose(measured, key=lambda peer: measured[peer][1])
    return name, measured[name]


def pair(values):
    return f"{values[0]:.3g} / {values[1]:.3g}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--others", type=float, default=math.inf, metavar="CORES")
    parser.add_argument("files", nargs="+", metavar="RESULTS.jsonl")
    given = parser.parse_args()
    results = Results(given.files, given.others)
    heads = ["goal", "what", "asked", "best peer", "its best / median, CPU s", "served", "ratio", "embedded", "ratio"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for goal in GOALS:
        peer = best_peer(results, goal)
        if peer is None:
            continue
        cells = [goal.name, goal.what, f"{'>=' if goal.more_is_better else '<='} {goal.ratio}"]
        cells += [peer[0], f"{pair(peer[1])}, {peer[1][2]:.2g}"]
        for ours in OURS:
            values = results.values(ours, goal)
            cells += (
                ["", ""] if values is None else [f"{pair(values)}, {values[2]:.2g}", f"{values[1] / peer[1][1]:.2f}"]
            )
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
