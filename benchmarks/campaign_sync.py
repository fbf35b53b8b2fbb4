"""The sync tool for MINUTES: random stories over bad lines, and crashes of either side at any operation on its disk.

    python benchmarks/campaign_sync.py --minutes 20 [--seed N]

Prints a line for each kind of trial every minute or so; exit code 1, with the seed, for the first thing that is wrong.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from storage.store_drawing import drawn
from storage.store_model import Operation, flush
from storage.store_opening import Wrong
from sync.sync_crashes import centre_crashes, sender_crashes
from sync.sync_stories import tell_story
from sync.sync_world import Centre, Edge, devices_of

#: Of all states after a crash so many are tried; of crashes in a recovery, of each of both.
_SHARE, _SHARE_DEEP = 0.2, 0.02
_TOLD_SECONDS = 60.0


def drawn_rounds(chance: Random) -> list[list[Operation]]:
    """Rounds of a few operations each, as they can be carried out one after the other."""
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    end = time.monotonic() + options.minutes * 60
    told, seed = time.monotonic(), options.seed
    counts = {"stories": 0, "rounds": 0, "crashes of receivers": 0, "of senders": 0, "in recoveries": 0}
    while time.monotonic() < end:
        seed += 1
        chance = Random(seed)
        try:
            counts["rounds"] += tell_story(seed, edges=1 + seed % 4, steps=20 + seed % 60)
            counts["stories"] += 1
            rounds = drawn_rounds(chance)
            match seed % 3:
                case 0:
                    counts["crashes of receivers"] += centre_crashes(rounds, chance, _SHARE)
                case 1:
                    counts["of senders"] += sender_crashes(rounds, chance, _SHARE)
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
    sys.exit(main())
