"""Random data frames, written and read through every interface of a database: each value must come back bit for bit.

python benchmarks/campaign_doors.py [--examples N] [--seed 1]

The interfaces are the doors of `tests/shell/doors`: ways to insert, statements, files of four formats, cursors,
exports. Each example is written through one door and read through all doors that can read; half of the examples use an
embedded database, the others a server. A violation names the door and shows the smallest failing frame; the exit code
is then 1.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings
from interruptible import run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from driver.targets import WAYS
from shell.doors.checking import Walk, check, walks
from shell.doors.doors_in import DOORS
from shell.doors.places import Places, open_places

_CHECKS = (HealthCheck.too_slow, HealthCheck.data_too_large)


def examples_of(places: Places, door: str, count: int, first: int) -> int:
    """Send `count` frames through a door; return 1 if a frame does not come back unchanged."""

    @seed(first)
    @settings(max_examples=count, deadline=None, suppress_health_check=_CHECKS, database=None)
    @given(walk=walks())
    def each(walk: Walk) -> None:
        check(places, door, walk)

    try:
        each()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        notes = "\n".join(getattr(error, "__notes__", ()))
        print(f"VIOLATION {door}: {type(error).__name__}: {error}\n{notes}", flush=True)
        return 1
    return 0


def campaign(examples: int, first: int) -> int:
    """Try all doors that can write; return 1 if there was a violation."""
    violations = 0
    with tempfile.TemporaryDirectory() as folder:
        for way in WAYS:
            root = Path(folder) / way
            root.mkdir()
            with open_places(way, root) as places:
                for door in DOORS:
                    begin = time.process_time()
                    count = -(-examples // (len(WAYS) * len(DOORS)))
                    violations += examples_of(places, door, count, first)
                    print(f"{count:>6} {way} {door} {time.process_time() - begin:.1f} s", flush=True)
    print(f"{violations} doors violated" if violations else "nothing wrong")
    return 1 if violations else 0


def main() -> int:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    return campaign(arguments.examples, arguments.seed)


if __name__ == "__main__":
    run(main)
