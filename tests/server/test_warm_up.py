from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import pytest

from saros_server.process import warm_up
from saros_server.process.warm_up import WarmUp
from saros_storage.kernels.codecs.gorilla import gorilla_decode
from saros_storage.kernels.codecs.lz4 import lz4_decode
from saros_storage.kernels.codecs.points import plain_decode
from saros_storage.kernels.codecs.ts2diff import ts2diff_decode
from saros_storage.kernels.codecs.varint import text_decode
from saros_storage.kernels.jit import Kernel
from saros_storage.kernels.windows import window_sums


@pytest.fixture(autouse=True)
def frozen_is_let_go() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.slow
def test_the_steps_parse_and_compile() -> None:
    WarmUp().run()
    kernels = (window_sums, gorilla_decode, ts2diff_decode, text_decode, lz4_decode, plain_decode)
    assert [] == [kernel.__name__ for kernel in kernels if kernel._run is None]


@pytest.mark.slow
def test_what_is_loaded_is_not_looked_at_for_garbage_again() -> None:
    WarmUp().run()
    assert all(found is not WarmUp for found in gc.get_objects())


def test_what_is_stopped_takes_no_further_step(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    warming = WarmUp()

    def compile_one(kernel: Kernel) -> None:
        compiled.append(kernel.__name__)
        warming._stopping.set()

    monkeypatch.setattr(Kernel, "compile", compile_one)
    warming.start()
    warming._thread.join()
    assert len(compiled) == 1
    warming.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_a_gentle_one_lowers_the_priority_of_its_own_thread_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, found = os.nice(0), []
    monkeypatch.setattr(warm_up, "_steps", lambda _stopping: iter([lambda: found.append(os.nice(0))]))
    warming = WarmUp(gently=True)
    warming.start()
    warming._thread.join()
    assert ([min(usual + 10, 19)], usual) == (found, os.nice(0))


def test_what_never_began_can_be_stopped() -> None:
    WarmUp().stop()


def test_a_failure_is_logged_and_nothing_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise OSError("no cache")

    monkeypatch.setattr(warm_up, "warm", broken)
    WarmUp().run()
    assert ["warming up failed"] == [record.getMessage() for record in caplog.records]
