"""The server of a folder ends when the process that started it ends, in any way."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import saros
from saros_server.process.server_file import serving as found_server

EXAMPLE = Path(__file__).parents[2] / "examples" / "skab.yaml"
#: A program that waits in short steps: if a signal arrived just before a long wait, Python would handle it only after
#: the wait. The program restores the handling of SIGINT, which background processes of a shell ignore.
WANTS = """
import select, signal, sys, saros_spark
signal.signal(signal.SIGINT, signal.default_int_handler)
with saros_spark.serving(sys.argv[1]) as url:
    print(url, flush=True)
    while not select.select([sys.stdin], [], [], 0.1)[0]:
        pass
"""
COLUMNS = ("Accelerometer1RMS", "Current", "Pressure", "Temperature", "Volume Flow RateRMS", "anomaly")
ROWS = 600
#: JVM options for a short run: only the fast compiler, and one thread for garbage collection.
QUICK = 'spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"'
#: A time limit that only a failing test reaches.
PATIENCE_S = 120


def await_end(process: int) -> None:
    """Wait until a process that is not a child of this process has ended."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], PATIENCE_S)[0], f"process {process} lives on"
    finally:
        os.close(handle)


def server_of(folder: Path) -> int:
    found = found_server(str(folder))
    assert found is not None
    return found.pid


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_the_server_of_a_job_that_is_killed_ends(number: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    job = subprocess.Popen(
        [sys.executable, "-c", WANTS, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with job:
        assert job.stdout is not None
        target = job.stdout.readline().decode().strip()
        server = server_of(folder)
        with saros.connect(target) as connection:
            connection.execute("insert into root.a.d(time, x) values (1, 1.5)")
        job.send_signal(number)
        assert -number == job.wait(PATIENCE_S)
    await_end(server)
    with saros.connect(str(folder), timestamps="epoch") as connection:
        assert [(1, 1.5)] == connection.execute("select x from root.a.d").fetchall()


@pytest.mark.slow
def test_a_pipeline_that_was_killed_is_run_again_to_its_end(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not here")
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    file = tmp_path / EXAMPLE.name
    master = '{master: "local[2]"'
    assert master in EXAMPLE.read_text()
    file.write_text(EXAMPLE.read_text().replace(master, master + f", conf: {{{QUICK}}}"))
    (tmp_path / "skab").mkdir()
    lines = [f"2020-03-09 10:{n // 60:02}:{n % 60:02};" + ";".join([str(n)] * len(COLUMNS)) for n in range(ROWS)]
    good = [line for n, line in enumerate(lines) if n <= 150]  # the example requires a temperature of at most 150
    text = "\n".join([";".join(("datetime", *COLUMNS)), *good, lines[-1]])
    (tmp_path / "skab" / "valve.csv").write_text(text)
    command = [sys.executable, "-m", "saros_shell", "pipeline", "run", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        assert run.stdout is not None
        assert run.stdout.readline().startswith(b"import   151 rows, 0 duplicates, 1 rejected")
        server = server_of(tmp_path / "skab-out" / "data")
        run.kill()
    await_end(server)
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == again.returncode, again.stderr
    assert ["import", "rollup", "export", "report"] == [line.split()[0] for line in again.stdout.splitlines()]
    with saros.connect(str(tmp_path / "skab-out" / "data")) as connection:
        count = "select count(Temperature), count(`Volume Flow RateRMS`) from root.skab.valve"
        assert [(151, 151)] == connection.execute(count).fetchall()
        minutes = connection.execute("select Temperature_avg, Pressure_count from root.skab_1m.valve").fetchall()
    assert [(29.5, 60), (89.5, 60), (135.0, 31)] == [row[1:] for row in minutes]
    assert "root.skab.valve" in (tmp_path / "skab-out" / "report.html").read_text()
