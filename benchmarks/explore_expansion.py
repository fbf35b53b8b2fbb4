"""Check all interleavings of the protocol of growing and shrinking, for a larger configuration than the tests use.

python benchmarks/explore_expansion.py [--writes 2]

The exit code is 1 if a rule is violated; the shortest path to the violation is printed. See docs/protocol/expansion.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from protocol.expansion import Expansion, Scope, State
from protocol.explorer import Explored, explore
from protocol.swap import Swap


def expansion(writes: int) -> Explored:
    model = Expansion(Scope(writes, reads=True, faults=True))
    return explore(State(), model.steps, model.check, model.is_over)


def swap(writes: int) -> Explored:
    model = Swap(terms=2, writes=writes)
    return explore(model.start(), model.steps, model.check, model.is_over)


def main() -> int:
    parser = argparse.ArgumentParser(description="All interleavings of the expansion's protocol.")
    parser.add_argument("--writes", type=int, default=2, help="of the client")
    arguments = parser.parse_args()
    failed = False
    works: dict[str, Callable[[], Explored]] = {
        "slots move": lambda: expansion(arguments.writes),
        "a member is swapped": lambda: swap(min(arguments.writes, 1)),
    }
    for name, work in works.items():
        began = time.monotonic()
        found = work()
        failed = failed or found.broken is not None
        outcome = "no rule is broken" if found.broken is None else found.told()
        sys.stdout.write(f"{name}: {found.states:,} states in {time.monotonic() - began:.0f} s: {outcome}\n")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
