"""Ctrl-C in a process with an embedded engine."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE_S

import saros
from saros_server.process import interrupts
from saros_server.process.interrupts import UninterruptibleSection


@pytest.fixture(autouse=True)
def pythons_own_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_a_call_is_whole_and_then_interrupted() -> None:
    steps = []

    def call() -> None:
        for step in ("one", "two"):
            signal.raise_signal(signal.SIGINT)
            steps.append(step)

    with pytest.raises(KeyboardInterrupt), UninterruptibleSection():
        call()
    assert ["one", "two"] == steps


def test_what_is_waited_for_is_cancelled_from_another_thread() -> None:
    ended = threading.Event()
    cancelled_by: list[int] = []

    def cancel() -> None:
        cancelled_by.append(threading.get_ident())
        ended.set()

    def call() -> None:
        signal.raise_signal(signal.SIGINT)
        assert ended.wait(PATIENCE_S)

    with pytest.raises(KeyboardInterrupt), UninterruptibleSection(cancel):
        call()
    assert [threading.get_ident()] != cancelled_by


def test_a_call_that_does_not_end_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_PATIENCE_SECONDS", 0.05)

    def call() -> None:
        signal.raise_signal(signal.SIGINT)
        threading.Event().wait()

    with pytest.raises(KeyboardInterrupt), UninterruptibleSection():
        call()


def test_a_call_without_ctrl_c_is_as_it_is() -> None:
    with UninterruptibleSection():
        pass
    with pytest.raises(ValueError, match="its own"), UninterruptibleSection():
        raise ValueError("its own")


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_a_handler_of_others_is_left_alone(handler: Callable[..., None]) -> None:
    signal.signal(signal.SIGINT, handler)
    with UninterruptibleSection():
        assert signal.getsignal(signal.SIGINT) is handler
    assert signal.getsignal(signal.SIGINT) is handler
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_query_ends_and_the_connection_goes_on(tmp_path: Path) -> None:
    with saros.connect(tmp_path, timestamps="epoch") as connection:
        connection.insert("root.a.d", range(5_000), {"s": [float(i) for i in range(5_000)]})
        main = threading.main_thread().ident
        assert main is not None
        threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT)).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):  # without the interrupt, the query would take minutes
            connection.execute("select dtw(s, s), dtw(s + 1, s), dtw(s + 2, s) from root.a.d").fetchall()
        assert time.monotonic() - began < 20
        assert [(5_000,)] == connection.execute("select count(s) from root.a.d").fetchall()


_CHILD = """
import signal, sys, saros
signal.signal(signal.SIGINT, signal.SIG_IGN)
connection = saros.connect(sys.argv[1], timestamps="epoch")
written = []

class Enough(Exception):
    pass

def report(ignored):  # Python's own callbacks of weak references are interrupted too, and raise nothing
    if ignored.exc_type is not KeyboardInterrupt or getattr(ignored.object, "__module__", "saros").startswith("saros"):
        sys.__unraisablehook__(ignored)

sys.unraisablehook = report

def work():
    while not open(sys.argv[2]).read():
        n = len(written)
        connection.insert("root.a.d", [n], {"s": [n]})
        written.append(n)
        assert [(n, n)] == connection.execute(f"select s from root.a.d where time = {n}").fetchall()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise Enough

def again_and_again(depth):
    while True:
        try:
            again_and_again(depth - 1) if depth else work()
        except KeyboardInterrupt:
            pass

print("ready", flush=True)
try:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    again_and_again(20)
except Enough:
    pass
connection.insert("root.a.d", [1_000_000], {"s": [0]})
written.append(1_000_000)
found = {n for n, _ in connection.execute("select s from root.a.d").fetchall()}
connection.close()
print("lost", len(set(written) - found), flush=True)
"""


@pytest.mark.slow
def test_ctrl_c_again_and_again_breaks_nothing(tmp_path: Path) -> None:
    told = tmp_path / "stop"
    told.write_text("")
    command = [sys.executable, "-c", _CHILD, str(tmp_path / "data"), str(told)]
    chance = random.Random(1)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(150):
            time.sleep(chance.uniform(0.001, 0.03))
            os.kill(process.pid, signal.SIGINT)
        told.write_text("enough")
        try:
            output, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert errors == ""
    assert output == "lost 0\n"


def test_a_call_that_is_over_is_not_cancelled() -> None:
    """The thread that cancels a call may start late, when this call has ended and the next call is running."""
    cancelled = []
    section = UninterruptibleSection(lambda: cancelled.append("cancelled"))
    section._over = True
    section._end(threading.Lock())
    assert [] == cancelled
