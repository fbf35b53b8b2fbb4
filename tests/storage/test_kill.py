"""A few rounds of the kill campaign (`make campaign-kill` runs many)."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from server.stock_clients import artefacts

CAMPAIGN = Path(__file__).resolve().parents[2] / "benchmarks" / "campaign_kill.py"


def kill(*options: str) -> None:
    done = subprocess.run([sys.executable, str(CAMPAIGN), *options], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "nothing lost, nothing wrong" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("durability", "rounds"), [("fsync", 5), ("os", 2)])
def test_nothing_acknowledged_is_lost_by_kill_9(durability: str, rounds: int) -> None:
    kill("--rounds", str(rounds), "--durability", durability)


@pytest.mark.slow
def test_nothing_acknowledged_to_a_stock_client_is_lost_by_kill_9_of_its_server() -> None:
    try:
        artefacts.python_packages("2.0.11")
    except artefacts.Unavailable as error:
        pytest.skip(str(error))
    kill("--rounds", "3", "--client", "iotdb")


def test_a_lost_single_row_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(CAMPAIGN.parent)
    campaign = importlib.import_module(CAMPAIGN.stem)
    model, client = campaign.Model(), campaign.EmbeddedClient(str(tmp_path / "data"), "os")
    for number in range(4):
        campaign.carry_out(client, number)
        model.apply(number)
    assert campaign.matches(client._connection, model) is None
    model.apply(4)
    assert "d0: 101 points expected, 100 found, lost [400]" == campaign.matches(client._connection, model)
    client._connection.close()
