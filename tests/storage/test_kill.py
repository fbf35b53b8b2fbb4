"""A few rounds of the kill campaign (`make campaign-kill` runs many)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CAMPAIGN = Path(__file__).resolve().parents[2] / "benchmarks" / "campaign_kill.py"


@pytest.mark.parametrize(("durability", "rounds"), [("fsync", 5), ("os", 2)])
def test_nothing_acknowledged_is_lost_by_kill_9(durability: str, rounds: int) -> None:
    command = [sys.executable, str(CAMPAIGN), "--rounds", str(rounds), "--durability", durability]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "nothing lost, nothing wrong" in done.stdout
