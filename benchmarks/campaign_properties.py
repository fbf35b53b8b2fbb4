"""All property tests, with new random examples in each round, until the time is over.

python benchmarks/campaign_properties.py [--minutes 10] [--seed 1]

The test suite draws the same examples in each run. If it drew new examples, a change could be rejected because of an
older fault. In this campaign, each round has its own seed. After a failure, which pytest shows, the exit code is 1. The
seed of the failed round reproduces the failure:

    .venv/bin/python -m pytest --hypothesis-profile=search --hypothesis-seed=SEED FILE
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import seeded_campaign
from interruptible import run

_ROOT = Path(__file__).resolve().parents[1]
_PYTEST = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis and not speed", "-n", "2", "--dist", "loadfile"]


def main() -> int:
    """Run rounds until one fails or the time is over."""
    assert __doc__ is not None
    for seed in seeded_campaign.seeds(seeded_campaign.parser(__doc__).parse_args()):
        print(f"seed {seed}", flush=True)
        options = ["--hypothesis-profile=search", f"--hypothesis-seed={seed}"]
        if subprocess.run([*_PYTEST, *options], cwd=_ROOT, check=False).returncode:
            print(f"VIOLATION seed {seed}")
            return 1
    return 0


if __name__ == "__main__":
    run(main)
