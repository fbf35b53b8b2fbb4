"""How a kernel is compiled: numba, explicit signature, no GIL, cached on disk; or its twin where numba is absent.

    @kernel("i64(u8r[], i64[])", twin=_decode_numpy)
    def decode(data, out): ...

`@part` marks a function that kernels call, mostly those of its own module; `unaligned` has such functions for all
modules.

Signature letters: i8 i32 i64 u8 u32 u64 f32 f64 b1 are scalars, `x[]` is a contiguous 1-D array, a trailing `r` before
the brackets means read-only (it accepts writable arrays too). Nothing is imported or compiled before the first call, so
`import saros` stays fast; compiled code is kept in the folder of `use_cache_folder` (default: the user's cache).

`SAROS_NO_JIT=1` forces the twins: how the tests run both.
"""

from __future__ import annotations

import importlib
import os
import re
import threading
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from saros_storage.kernels.unaligned import register_intrinsics

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.Lock()
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


def use_cache_folder(fallback: str) -> None:
    """Keep compiled code in the user's cache, or in `fallback` where that cannot be written.

    To be called before the first kernel runs; later calls change nothing.
    """
    folder = default_cache_folder()
    try:
        os.makedirs(folder, exist_ok=True)
        usable = os.access(folder, os.W_OK)
    except OSError:
        usable = False
    os.environ.setdefault("NUMBA_CACHE_DIR", folder if usable else fallback)


def default_cache_folder() -> str:
    """The user's cache folder for compiled kernels."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "saros", "kernels")


F = TypeVar("F", bound=Callable[..., Any])
#: Parts of kernels that no kernel was compiled with yet.
_parts: list[Callable[..., Any]] = []


def part(function: F) -> F:
    """Declare what kernels may call: compiled with them.

    Compiled code is kept until its kernel's module changes: a change of a part of another one asks for an empty cache.
    """
    _parts.append(function)
    return function


class Kernel(Generic[P, R]):
    """A function that compiles itself on its first call. `twin` and `source` stay reachable for tests."""

    def __init__(self, source: Callable[P, R], signature: str, twin: Callable[P, R]) -> None:
        self.source = source
        self.signature = signature
        self.twin = twin
        self.__doc__ = source.__doc__
        self.__name__ = source.__name__
        self._run: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run, compiled on the first call."""
        run = self._run
        if run is None:
            run = self.compile()
        return run(*args, **kwargs)

    def compile(self) -> Callable[P, R]:
        """Compile (or load from the cache) now; idempotent."""
        with _lock:
            if self._run is None:
                self._run = _compile(self.source, self.signature) or self.twin
            return self._run


def kernel(signature: str, *, twin: Callable[P, R]) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Declare a kernel: see the module."""

    def wrap(source: Callable[P, R]) -> Kernel[P, R]:
        return Kernel(source, signature, twin)

    return wrap


def _compile(source: Callable[P, R], signature: str) -> Callable[P, R] | None:
    if os.environ.get("SAROS_NO_JIT"):
        return None
    use_cache_folder(default_cache_folder())
    try:
        numba: Any = importlib.import_module("numba")
    except ImportError:
        return None
    register_intrinsics()
    while _parts:
        importlib.import_module("numba.extending").register_jitable(_parts.pop())
    compiled: Callable[P, R]
    declared = _numba_signature(numba, signature)
    try:
        compiled = numba.njit(declared, nogil=True, cache=True)(source)
    except RuntimeError:  # nothing can be written anywhere: compiled by each process anew
        compiled = numba.njit(declared, nogil=True)(source)
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
