"""Kernels and their twins: numba compiles kernels for explicit signatures and caches them on disk.

    @kernel("i64(u8r[], i64[])", twin=_decode_numpy)
    def decode(data, out): ...

`@part` marks a function that is compiled into the kernels that call it, most of which are in the same module.
`unaligned` has functions for the kernels of all modules.

Signature letters: i8 i32 i64 u8 u32 u64 f32 f64 b1 are scalars, `x[]` is a contiguous 1-D array, and an `r` before the
brackets means read-only (writable arrays are accepted too). Kernels run without the GIL and create no arrays. They are
compiled without reference counts (`_nrt`), whose atomic operations would take longer than most of the functions marked
`@part`. `cache` describes the folder of compiled code.

Most calls do not wait for the compiler. Until a kernel is loaded, its twin runs and gives the same results:

    first call --> `loader` begins to load all kernels in the background
    each call  --> the twin runs, while the total time of its calls is less than loading or compiling the kernel takes
               --> after that, the caller loads or compiles this kernel itself, since the twin would take longer

`SAROS_JIT` changes this: `eager` compiles each kernel on its first call (as the tests do), `off` runs only the twins.
"""

from __future__ import annotations

import importlib
import os
import pickle
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from saros_storage.kernels.cache import default_cache_folder, use_cache_folder
from saros_storage.kernels.loader import KernelLoader
from saros_storage.kernels.unaligned import register_intrinsics

P = ParamSpec("P")
R = TypeVar("R")

#: This lock is held while a kernel is loaded or compiled. A fork waits for the lock, so that numba is in a consistent
#: state in the child.
_lock = threading.Lock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)

_SCALARS = {
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u32": "uint32",
    "u64": "uint64",
    "f32": "float32",
    "f64": "float64",
    "b1": "boolean",
    "void": "void",
}
#: The exceptions that numba raises when its cache cannot be read or written.
_CACHE_ERRORS = (RuntimeError, OSError, EOFError, pickle.UnpicklingError)

#: Maximum total seconds of all calls of a twin if its kernel can be loaded, and if its kernel must be compiled. The
#: limits are about the time that loading and compiling take.
_LOADING_S, _COMPILING_S = 0.1, 1.0
#: Seconds per array element, assumed for a twin that has not run yet. A NumPy twin takes about a tenth of this, a
#: plain-Python twin ten times as much.
_ELEMENT_S = 2e-7


F = TypeVar("F", bound=Callable[..., Any])
#: Functions marked `@part` that are not yet registered with numba.
_parts: list[Callable[..., Any]] = []
#: All kernels of the imported modules.
_declared: list[Kernel[..., Any]] = []


def part(function: F) -> F:
    """Declare a function to be compiled into the kernels that call it."""
    _parts.append(function)
    return function


class Kernel(Generic[P, R]):
    """A function that runs its compiled code, or its twin until that code is loaded. Tests use `twin` and `source`."""

    def __init__(self, source: Callable[P, R], signature: str, twin: Callable[P, R]) -> None:
        self.source = source
        self.signature = signature
        self.twin = twin
        self.__doc__ = source.__doc__
        self.__name__ = source.__name__
        #: The kernel's name in the cache's list of compiled kernels.
        self.key = f"{source.__module__}.{source.__name__}"
        self._run: Callable[P, R] | None = None
        #: Seconds spent in the twin, and the total number of array elements passed to it.
        self._twin_s = 0.0
        self._elements = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the compiled code, or the twin while it is not loaded."""
        run = self._run
        if run is None:
            return self._run_unloaded(*args, **kwargs)
        return run(*args, **kwargs)

    def _run_unloaded(self, *args: P.args, **kwargs: P.kwargs) -> R:
        elements = sum(len(argument) for argument in args if isinstance(argument, np.ndarray))
        if not self._twin_serves(elements):
            return self.compile()(*args, **kwargs)
        began = time.perf_counter()
        with np.errstate(all="ignore"):  # compiled code does not warn
            result = self.twin(*args, **kwargs)
        self._twin_s += time.perf_counter() - began
        self._elements += elements
        return result

    def _twin_serves(self, elements: int) -> bool:
        """Return whether to run the twin for this number of elements; see the module."""
        if _is_overridden():
            return False
        LOADER.start()
        element_s = self._twin_s / self._elements if self._elements else _ELEMENT_S
        limit_s = _LOADING_S if LOADER.is_cached(self.key) else _COMPILING_S
        return self._twin_s + element_s * elements <= limit_s

    @property
    def is_loaded(self) -> bool:
        """True if calls run the compiled code."""
        return self._run is not None

    def compile(self) -> Callable[P, R]:
        """Compile the kernel now, or load it from the cache; idempotent.

        If called on the main thread, it uses another thread, because Ctrl-C could interrupt the first import of numba,
        which cannot be repeated.
        """
        if threading.current_thread() is threading.main_thread():
            with ThreadPoolExecutor(1, "saros-kernel") as executor:
                return executor.submit(self.compile).result()
        with _lock:
            if self._run is None:
                self._run = _compile(self.source, self.signature) or self.twin
            return self._run

    def store(self) -> None:
        """Compile the kernel into the cache, unless it is there already.

        Raises ImportError, or an error of the cache.
        """
        with _lock:
            self._run = _jit(self.source, self.signature, cache=True)


def kernel(signature: str, *, twin: Callable[P, R]) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Declare a kernel: see the module."""

    def wrap(source: Callable[P, R]) -> Kernel[P, R]:
        declared = Kernel(source, signature, twin)
        _declared.append(declared)
        return declared

    return wrap


def declared_kernels() -> tuple[Kernel[..., Any], ...]:
    """Return the kernels of the modules that this process has imported."""
    return tuple(_declared)


#: The loader of this process's kernels.
LOADER = KernelLoader(declared_kernels)


def load_kernels(stopping: threading.Event) -> None:
    """Load the declared kernels on the calling thread, once they are compiled; return early if `stopping` is set."""
    if not _is_overridden():
        LOADER.run(stopping)
        return
    for declared in declared_kernels():
        if stopping.is_set():
            return
        declared.compile()


def _is_overridden() -> bool:
    return os.environ.get("SAROS_JIT") in ("eager", "off")


def _compile(source: Callable[P, R], signature: str) -> Callable[P, R] | None:
    """Return the compiled function; None without numba."""
    if os.environ.get("SAROS_JIT") == "off":
        return None
    try:
        return _jit(source, signature, cache=True)
    except ImportError:
        return None
    except _CACHE_ERRORS:  # full disk, torn file, or no writable folder: compile for this process only
        return _jit(source, signature, cache=False)


def _jit(source: Callable[P, R], signature: str, *, cache: bool) -> Callable[P, R]:
    use_cache_folder(default_cache_folder())
    numba: Any = importlib.import_module("numba")
    register_intrinsics()
    while _parts:
        importlib.import_module("numba.extending").register_jitable(_parts.pop())
    declared = _numba_signature(numba, signature)
    compiled: Callable[P, R] = numba.njit(declared, nogil=True, _nrt=False, cache=cache)(source)
    return compiled


def _numba_signature(numba: Any, signature: str) -> Any:
    match = re.fullmatch(r"\s*([^(]+)\((.*)\)\s*", signature)
    assert match, f"kernel signature {signature!r}"
    result, arguments = match.groups()
    types = [_numba_type(numba, a.strip()) for a in arguments.split(",") if a.strip()]
    return _numba_type(numba, result.strip())(*types)


def _numba_type(numba: Any, word: str) -> Any:
    if not word.endswith("[]"):
        return getattr(numba.types, _SCALARS[word])
    name = word[:-2]
    read_only = name.endswith("r")
    scalar = getattr(numba.types, _SCALARS[name[:-1] if read_only else name])
    return numba.types.Array(scalar, 1, "C", readonly=read_only)
