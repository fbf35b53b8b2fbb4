"""Kernels that `jit` compiles."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from saros_storage.base.types import Int64Array
from saros_storage.kernels import jit
from saros_storage.kernels.jit import Kernel

numba = pytest.importorskip("numba")


def test_a_kernel_that_makes_an_array_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SAROS_NO_JIT", raising=False)

    def allocate(out: Int64Array) -> None:
        out[:] = np.zeros(len(out), np.int64)

    with pytest.raises(numba.core.errors.NumbaError, match="zeros"):
        Kernel(allocate, "void(i64[])", allocate).compile()


def test_a_kernel_is_not_compiled_on_the_main_thread_where_ctrl_c_could_interrupt_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = []

    def compiled(source: Callable[..., int], _: str) -> Callable[..., int]:
        threads.append(threading.current_thread())
        return source

    monkeypatch.setattr(jit, "_compile", compiled)
    kernel = Kernel(lambda: 1, "i64()", lambda: 2)
    assert 1 == kernel.compile()()
    assert 1 == kernel.compile()()
    assert [False] == [thread is threading.main_thread() for thread in threads]
