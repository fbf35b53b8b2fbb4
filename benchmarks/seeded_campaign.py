"""Shared code of the campaigns that send mutated messages: their options, their seeds, and their report."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of `--minutes` and `--seed`."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--minutes", type=float, default=10.0)
    made.add_argument("--seed", type=int, default=1)
    return made


def seeds(options: argparse.Namespace) -> Iterator[int]:
    """Yield seeds until the time is up."""
    deadline = time.monotonic() + options.minutes * 60
    return itertools.takewhile(lambda _: time.monotonic() < deadline, itertools.count(options.seed * 1_000_000))


def report(figures: Mapping[str, int], violations: Sequence[str]) -> int:
    """Print the figures and the violations; return the exit code, 1 if there are violations."""
    for name, count in sorted(figures.items()):
        print(f"{count:>12,} {name}")
    for violation in violations:
        print(f"VIOLATION {violation}", flush=True)
    return 1 if violations else 0
