"""A few rounds of the power-cut campaign (`make campaign-power` runs many), and its model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from storage.power_lanes import Model, carry_out, read

import saros

CAMPAIGN = Path(__file__).resolve().parents[2] / "benchmarks" / "campaign_power.py"


def campaign(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the campaign, which keeps its files in `folder`."""
    command, environment = [sys.executable, str(CAMPAIGN), *options], {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.stdout.startswith("skipped: "):
        pytest.skip(done.stdout.removeprefix("skipped: ").strip())
    return done


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_power_cuts_of_ext4(tmp_path: Path) -> None:
    done = campaign(tmp_path, "--cuts", "3")
    assert (0, True) == (done.returncode, done.stdout.endswith("nothing lost, nothing wrong\n")), done


@pytest.mark.slow
def test_the_campaign_finds_that_durability_os_does_not_survive_power_cuts(tmp_path: Path) -> None:
    done = campaign(tmp_path, "--cuts", "20", "--seed", "3", "--durability", "os")
    assert (1, True) == (done.returncode, " points lost " in done.stdout), done


def test_the_model_has_what_the_operations_leave(tmp_path: Path) -> None:
    model = Model(1)
    with saros.connect(str(tmp_path / "data"), options={"durability": "os"}) as connection:
        while model.next < 330:
            carry_out(connection, model.lane, model.next)
            model.advance()
        assert read(connection, model.lane).difference(model.content()) is None


def test_the_model_finds_a_lost_single_row(tmp_path: Path) -> None:
    model = Model(0)
    with saros.connect(str(tmp_path / "data"), options={"durability": "os"}) as connection:
        for number in range(4):
            carry_out(connection, 0, number)
            model.advance()
        model.advance()
        assert "root.l0.d0: 1 points lost [400], 0 too many []" == read(connection, 0).difference(model.content())
