"""Ctrl-C in long-running commands: their threads and processes end, with one line of output and exit code 130."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_until

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CAMPAIGN = """
import multiprocessing, sys, threading, time
sys.path.insert(0, sys.argv[1])
from interruptible import run, uninterrupted

def main():
    threading.Thread(target=time.sleep, args=(600,)).start()
    with uninterrupted():
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,)).start()
    print("begun", flush=True)
    time.sleep(600)

run(main)
"""


def interrupted(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Send Ctrl-C to all processes of the terminal, as a user does. Return the exit code and the messages."""
    with process:
        subprocess.run(["kill", "-INT", "--", f"-{process.pid}"], check=True)
        _, told = process.communicate(timeout=60)
        return process.returncode, told


@pytest.mark.slow
def test_a_benchmark(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "saros_shell", "bench", "-d", str(tmp_path / "data"), "--clients", "3"]
    process = subprocess.Popen(
        [*command, "--points", "1000000000"], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    # Wait until the clients are writing.
    wait_until(lambda: sum(path.stat().st_size for path in (tmp_path / "data").glob("log/*")) > 1 << 20)
    assert (130, "saros bench: interrupted\n") == interrupted(process)


def test_a_status_that_is_watched(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "saros_shell", "status", "--data", str(tmp_path), "--watch", "0.1"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(4)]
    assert [f"no server is running for {tmp_path}\n", "\n"] * 2 == told
    assert (130, "") == interrupted(process)


def test_a_campaign() -> None:
    command = [sys.executable, "-c", CAMPAIGN, str(BENCHMARKS)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert "begun\n" == process.stdout.readline()
    assert (130, "interrupted\n") == interrupted(process)
