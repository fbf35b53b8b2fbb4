"""The folder of compiled kernels: numba's files, a list of the kernels in them, and the lock of the compiling process.

The list shows which kernels are compiled, without an import of numba, which takes longer than many statements run.
numba reuses compiled code until the kernel's own module changes, although the code also depends on other modules and
compiler options. Therefore the names of the folder and the list contain a digest of everything that compiled code
depends on, such as this installation and processor.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib.util import find_spec

from saros_storage.io.platform import lock

_LOCK = "compiling.lock"
#: Number of bytes at the start of /proc/cpuinfo that are enough to describe the first processor.
_PROCESSOR_BYTES = 4096


def use_cache_folder(fallback: str | None) -> None:
    """Keep compiled code in the user's cache, or in `fallback` if that is not writable.

    With `fallback` None, compiled code is stored in a private folder until the process ends. This function must be
    called before the first kernel runs; later calls have no effect.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    folder = default_cache_folder()
    try:
        os.makedirs(folder, exist_ok=True)
        usable = os.access(folder, os.W_OK)
    except OSError:
        usable = False
    base = folder if usable else fallback or _private_folder()
    os.environ["NUMBA_CACHE_DIR"] = os.path.join(base, _fingerprint())


def _private_folder() -> str:
    folder = tempfile.mkdtemp(prefix="saros-kernels-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def default_cache_folder() -> str:
    """Return the user's cache folder for compiled kernels."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "saros", "kernels")


class KernelCache:
    """The compiled kernels of one folder; any number of threads and processes may use it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._list = os.path.join(folder, f"compiled-{_fingerprint()}")

    @staticmethod
    def open() -> KernelCache:
        """Open the folder that `use_cache_folder` chose."""
        use_cache_folder(default_cache_folder())
        return KernelCache(os.environ["NUMBA_CACHE_DIR"])

    def compiled(self) -> frozenset[str]:
        """Return the keys of the kernels that can be loaded."""
        try:
            with open(self._list, encoding="utf-8") as file:
                return frozenset(file.read().splitlines())
        except OSError:
            return frozenset()

    def add(self, key: str) -> None:
        """Add a kernel that numba has stored to the list. Raises OSError."""
        with open(self._list, "a", encoding="utf-8") as file:
            file.write(f"{key}\n")

    def lock(self, *, wait: bool) -> int | None:
        """Take the lock that only one compiling process can hold; return None if another process holds it.

        The result is a file descriptor that the caller closes. Raises OSError (no such folder, disk full).
        """
        os.makedirs(self.folder, exist_ok=True)
        file = os.open(os.path.join(self.folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            lock(file, wait=wait)
        except BlockingIOError:
            os.close(file)
            return None
        return file


@cache
def _fingerprint() -> str:
    """Return a digest of Python, numba, the sources of the kernels, and the processor."""
    digest = hashlib.sha256(repr((sys.implementation.cache_tag, sorted(_numba_settings()), _processor())).encode())
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (here, os.path.join(here, "codecs")):
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if entry.name.endswith(".py"):
                digest.update(repr((entry.path, entry.stat().st_mtime_ns, entry.stat().st_size)).encode())
    for package in ("numba", "llvmlite"):
        found = find_spec(package)
        if found is not None and found.origin is not None:
            state = os.stat(found.origin)
            digest.update(repr((found.origin, state.st_mtime_ns, state.st_size)).encode())
    return digest.hexdigest()[:16]


def _numba_settings() -> list[tuple[str, str]]:
    return [(name, value) for name, value in os.environ.items() if name.startswith("NUMBA_CPU")]


def _processor() -> bytes:
    """Return the first processor's model and features, as far as the system reports them."""
    with suppress(OSError), open("/proc/cpuinfo", "rb") as file:
        lines = file.read(_PROCESSOR_BYTES).splitlines()
        return b"\n".join(
            line for line in lines if line.startswith((b"model name", b"flags", b"Features", b"CPU part"))
        )
    return repr(os.uname()[3:]).encode()
