"""Kernels as `jit` compiles them."""

from __future__ import annotations

import numpy as np
import pytest

from saros_storage.base.types import Int64Array
from saros_storage.kernels.jit import Kernel

numba = pytest.importorskip("numba")


def test_a_kernel_that_makes_an_array_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SAROS_NO_JIT", raising=False)

    def allocate(out: Int64Array) -> None:
        out[:] = np.zeros(len(out), np.int64)

    with pytest.raises(numba.core.errors.NumbaError, match="zeros"):
        Kernel(allocate, "void(i64[])", allocate).compile()
