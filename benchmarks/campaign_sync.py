"""The sync tool with new seeds: random stories over unreliable links; crashes and failing disks on both sides.

    python benchmarks/campaign_sync.py --minutes 20 [--seed N]
    python benchmarks/campaign_sync.py --mutants [--only name]

A story is a sequence of operations and rounds of sync; its receiver is a server or a cluster. Crashes and failures
occur at any disk operation of a sender, a server or a node. A failure occurs once, or repeatedly until there is space
again. A line is printed about once a minute; the first violation is printed with its seed, and the exit code is 1.
`--mutants` instead plants mistakes one at a time: each mistake must be found.
"""

from __future__ import annotations

import argparse
import errno
import logging
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from interruptible import run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from storage.planting import hunt
from storage.store_drawing import drawn
from storage.store_model import Operation, flush
from storage.store_opening import Wrong
from sync.cluster_crashes import KEEPS, TAKES, cluster_crashes, cluster_failures
from sync.sync_crashes import centre_crashes, centre_failures, sender_crashes, sender_failures
from sync.sync_mutants import MUTANTS
from sync.sync_stories import tell_story
from sync.sync_world import Centre, Edge, devices_of

#: The fraction of the states after a crash that are tried: after crashes of a sender or server, after crashes of a
#: node, and after crashes during a recovery.
_SHARE, _SHARE_OF_NODES, _SHARE_DEEP = 0.2, 0.05, 0.02
#: One in this many disk operations is made to fail.
_STEP = 5
_FAILURES = ((errno.EIO, 1), (errno.EIO, 3), (errno.ENOSPC, 1), (errno.ENOSPC, 1_000_000))
_TOLD_SECONDS = 60.0


def drawn_rounds(chance: Random) -> list[list[Operation]]:
    """Draw three rounds of four operations and a flush each, all valid in this order."""
    edge = Edge(Centre().line())
    rounds: list[list[Operation]] = []
    mark = 0
    for _ in range(3):
        operations: list[Operation] = []
        while len(operations) < 4:
            mark += 1
            operation = drawn(chance, devices_of(edge.store), mark)
            if not operation.may_be_refused and not operation.name.startswith("keep"):
                edge.tell(operation)
                operations.append(operation)
        rounds.append([*operations, flush()])
    edge.store.close()
    return rounds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--mutants", action="store_true")
    parser.add_argument("--only", default="", help="mutants whose name holds this")
    options = parser.parse_args()
    if options.mutants:
        return hunt(MUTANTS, options.only)
    logging.disable(logging.CRITICAL)
    end = time.monotonic() + options.minutes * 60
    told, seed = time.monotonic(), options.seed
    counts: Counter[str] = Counter()
    while time.monotonic() < end:
        seed += 1
        chance = Random(seed)
        try:
            for cluster in (False, True):
                counts["rounds"] += tell_story(seed, edges=1 + seed % 4, steps=20 + seed % 60, cluster=cluster)
                counts["stories"] += 1
            rounds = drawn_rounds(chance)
            node, (number, failing) = chance.choice((TAKES, KEEPS)), chance.choice(_FAILURES)
            match seed % 7:
                case 0:
                    counts["crashes of receivers"] += centre_crashes(rounds, chance, _SHARE)
                case 1:
                    counts["of senders"] += sender_crashes(rounds, chance, _SHARE)
                case 2:
                    counts["of nodes"] += cluster_crashes(rounds, chance, node, _SHARE_OF_NODES)
                case 3:
                    counts["failures of receivers"] += centre_failures(rounds, number, failing, _STEP)
                case 4:
                    counts["failures of senders"] += sender_failures(rounds, number, failing, _STEP)
                case 5:
                    counts["failures of nodes"] += cluster_failures(rounds, node, number, failing, _STEP)
                case _:
                    counts["in recoveries"] += centre_crashes(rounds[:2], chance, _SHARE_DEEP, depth=2)
        except Wrong as error:
            print(f"seed {seed}: {error}")
            return 1
        if time.monotonic() - told > _TOLD_SECONDS:
            told = time.monotonic()
            print(", ".join(f"{count} {name}" for name, count in counts.items()), flush=True)
    print(f"all is well, seeds {options.seed + 1} to {seed}: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    return 0


if __name__ == "__main__":
    run(main)
