"""Random queries compared with a model in plain Python, and random texts resembling SQL, with new seeds.

python benchmarks/campaign_sql.py [--minutes M] [--cases 20000] [--seed 1]

    answers     a random database, stored and queried in several ways; each result must equal the model's
    texts       sentences of the grammar, mutated sentences, statements with one token changed: each gives a result or
                an error with a code, within seconds

The campaign ends after `--minutes` or, if `--cases` is given, after this number of compared results. A violation names
its seed; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from interruptible import run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from engine.model.checking import check
from engine.model.hardly_sql import attack

#: Per round: the steps that fill a database, the layouts in which it is stored, the queries on each layout, and the
#: random texts.
_STEPS, _LAYOUTS, _QUERIES, _TEXTS = 15, 3, 20, 200


def answers(seed: int) -> Counter[str]:
    """Compare the results of random queries on one database with those of the model."""
    return Counter({"answers": check(seed, steps=_STEPS, layouts=_LAYOUTS, queries=_QUERIES)})


def texts(seed: int) -> Counter[str]:
    """Run random texts on one database."""
    return attack(seed, _TEXTS)


def campaign(minutes: float, cases: int, seed: int) -> int:
    """Run the campaign and print its figures; return 1 if there was a violation."""
    deadline = time.monotonic() + minutes * 60
    figures: Counter[str] = Counter()
    rounds: tuple[Callable[[int], Counter[str]], ...] = (answers, answers, texts)
    for number in itertools.count(seed * 1_000_000):
        if time.monotonic() > deadline or (cases and figures["answers"] >= cases):
            break
        round_ = rounds[number % len(rounds)]
        try:
            figures += Counter(rounds=1) + round_(number)
        except Exception:  # noqa: BLE001 (the campaign tells it)
            figures["violations"] += 1
            print(f"VIOLATION in {round_.__name__}({number})\n{traceback.format_exc()}", flush=True)
    for name, count in sorted(figures.items()):
        print(f"{count:>12,}  {name}")
    print("violations" if figures["violations"] else "nothing wrong")
    return 1 if figures["violations"] else 0


def main() -> int:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--cases", type=int, default=0, help="compared answers after which it ends; 0: only by time")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    return campaign(arguments.minutes, arguments.cases, arguments.seed)


if __name__ == "__main__":
    run(main)
