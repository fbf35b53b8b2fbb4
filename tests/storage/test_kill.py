"""A few rounds of the kill campaign (`make campaign-kill` runs many)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from server.stock_clients import artefacts

pytestmark = pytest.mark.slow

CAMPAIGN = Path(__file__).resolve().parents[2] / "benchmarks" / "campaign_kill.py"


def kill(*options: str) -> None:
    done = subprocess.run([sys.executable, str(CAMPAIGN), *options], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "nothing lost, nothing wrong" in done.stdout


@pytest.mark.parametrize(("durability", "rounds"), [("fsync", 5), ("os", 2)])
def test_nothing_acknowledged_is_lost_by_kill_9(durability: str, rounds: int) -> None:
    kill("--rounds", str(rounds), "--durability", durability)


def test_nothing_acknowledged_to_a_stock_client_is_lost_by_kill_9_of_its_server() -> None:
    try:
        artefacts.python_packages("2.0.11")
    except artefacts.Unavailable as error:
        pytest.skip(str(error))
    kill("--rounds", "3", "--client", "iotdb")
