"""Compile all kernels into the cache, for `saros warm-up` and for the process that `loader` starts."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import saros_storage.kernels
from saros_storage.kernels.cache import KernelCache
from saros_storage.kernels.jit import Kernel, declared_kernels

#: Modules that are compiled first, since nearly every statement needs their kernels.
_FIRST = ("windows", "merge", "codecs.points", "codecs.ts2diff", "codecs")


def precompile(cache: KernelCache, report: Callable[[str], object] = lambda _key: None, *, wait: bool = True) -> int:
    """Compile the kernels that the cache lacks; return their number.

    While another process compiles, wait if `wait` is set, and otherwise return 0. Raises OSError or numba's
    RuntimeError (full or read-only disk), ImportError (no numba).
    """
    lock = cache.lock(wait=wait)
    if lock is None:
        return 0
    try:
        missing = [kernel for kernel in all_kernels() if kernel.key not in cache.compiled()]
        for kernel in missing:
            kernel.store()
            cache.add(kernel.key)
            report(kernel.key)
        return len(missing)
    finally:
        os.close(lock)


def all_kernels() -> tuple[Kernel[..., object], ...]:
    """Import all modules with kernels, and return the kernels."""
    for name in sorted(_modules(), key=_order):
        importlib.import_module(name)
    return declared_kernels()


def _modules() -> Iterator[str]:
    prefix = f"{saros_storage.kernels.__name__}."
    return (found.name for found in pkgutil.walk_packages(saros_storage.kernels.__path__, prefix))


def _order(module: str) -> int:
    names = [f"{saros_storage.kernels.__name__}.{name}" for name in _FIRST]
    return next((place for place, name in enumerate(names) if module.startswith(name)), len(names))


def lower_priority() -> None:
    """Let this process run only when the processor is otherwise idle, as far as the system supports it."""
    with suppress(OSError):
        os.nice(19)
    if sys.platform == "linux":
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main() -> None:
    """Run the process that `loader` starts."""
    lower_priority()
    precompile(KernelCache.open(), wait=False)
