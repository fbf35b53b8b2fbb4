"""Mutated requests on every route of HTTP against a server, for longer and with new seeds.

python benchmarks/campaign_http.py [--minutes M] [--seed 1]

Method, path, query, headers, cookies, body, compression, chunks, incomplete requests; with and without login. The
server must live, answer nothing with 500, log no error of its own, keep its memory, and serve other clients all the
time. A violation names its seed; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from interruptible import run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from server.http.http_campaign import campaign


def seeds(first: int, minutes: float) -> Iterator[int]:
    """Yield seeds until the time is over."""
    deadline = time.monotonic() + minutes * 60
    return itertools.takewhile(lambda _: time.monotonic() < deadline, itertools.count(first * 1_000_000))


def main() -> int:
    """Run the campaign, and print its figures; 1 if something was violated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures, violations = campaign(Path(folder), seeds(options.seed, options.minutes))
    for name, count in sorted(figures.items()):
        print(f"{count:>12,} {name}")
    for violation in violations:
        print(f"VIOLATION {violation}", flush=True)
    return 1 if violations else 0


if __name__ == "__main__":
    run(main)
