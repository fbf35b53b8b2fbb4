"""System calls that differ between operating systems; the only module that checks the operating system.

              durable contents     locks of folders     no page cache           Unix sockets, files in memory
    Linux     fdatasync, fsync     flock                O_DIRECT                abstract, memfd
    macOS     F_FULLFSYNC          flock                -                       in the temporary folder
    Windows   -                    -                    -                       -

On macOS, fsync leaves the data in the drive's cache; F_FULLFSYNC does not. On a system without locks, no data folder
can be opened (`require_local_folders`), so Saros can only connect to servers there. Any thread.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from saros_storage.base.errors import UserMistake

_SYSTEM = os.uname().sysname if hasattr(os, "uname") else "Windows"
#: The first Linux version whose `syncfs` reports lost writes.
_SYNCFS_REPORTS = (5, 8)
#: macOS allows a process at most this many open files, although its hard limit may say "unlimited".
_DESCRIPTORS_MAX = 10_240
_NO_FOLDERS = 2051


def _optional(name: str) -> Any:
    """Import a standard library module that not all systems have; return None if it is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


_fcntl, _pwd, _resource = _optional("fcntl"), _optional("pwd"), _optional("resource")
#: True if the names of Unix sockets can be outside the file system.
HAS_ABSTRACT_SOCKETS = _SYSTEM == "Linux"
_O_DIRECT: int = getattr(os, "O_DIRECT", 0)


def require_local_folders() -> None:
    """Raise UserMistake 2051 on a system where no data folder can be opened."""
    if _fcntl is None:
        raise UserMistake(
            f"Saros cannot open a data folder on {_SYSTEM}: it needs Linux or macOS; connect to a server instead, as"
            " saros://host:port",
            code=_NO_FOLDERS,
        )


def _full_sync(command: int) -> Callable[[int], None]:
    def sync(descriptor: int) -> None:
        try:
            _fcntl.fcntl(descriptor, command)
        except OSError:  # a network file system may not support this command
            os.fsync(descriptor)

    return sync


_F_FULLFSYNC: int | None = getattr(_fcntl, "F_FULLFSYNC", None)
#: `sync_contents` makes a file's contents and size durable, `sync_file` also all its metadata. Both raise OSError.
sync_file: Callable[[int], None] = os.fsync if _F_FULLFSYNC is None else _full_sync(_F_FULLFSYNC)
sync_contents: Callable[[int], None] = getattr(os, "fdatasync", sync_file) if _F_FULLFSYNC is None else sync_file


def _find_sync_file_system() -> Callable[[str], None] | None:
    """Return a function that syncs a path's whole file system; None if it could lose writes without an error."""
    if _SYSTEM != "Linux" or tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < _SYNCFS_REPORTS:
        return None
    found = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if found is None:
        return None

    def sync(path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if found(fd):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), path)
        finally:
            os.close(fd)

    return sync


sync_file_system = _find_sync_file_system()


def set_direct_io(descriptor: int, *, direct: bool) -> bool:
    """Turn direct I/O on or off; return whether this changed its state.

    Raises OSError if the file system does not support direct I/O.
    """
    if not _O_DIRECT:
        return False
    flags = _fcntl.fcntl(descriptor, _fcntl.F_GETFL)
    wanted = _O_DIRECT if direct else 0
    _fcntl.fcntl(descriptor, _fcntl.F_SETFL, flags & ~_O_DIRECT | wanted)
    return bool(flags & _O_DIRECT != wanted)


def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> None:
    """Lock an open file for as long as it is open.

    If another process holds a conflicting lock, wait for it if `wait` is set; otherwise raise BlockingIOError.
    """
    require_local_folders()
    mode = _fcntl.LOCK_SH if shared else _fcntl.LOCK_EX
    _fcntl.flock(descriptor, mode if wait else mode | _fcntl.LOCK_NB)


@contextmanager
def memory_file(content: bytes) -> Iterator[str]:
    """Yield the path of a file in memory that has the given content.

    On systems without memfd, the file is a private temporary file on disk.
    """
    import tempfile

    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile(prefix="saros-") as file:
            file.write(content)
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("saros", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as memory:
            memory.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def user_name(user: int) -> str:
    """Return the name of the machine's user with this number, or "user <number>" if there is no such name."""
    try:
        return str(_pwd.getpwuid(user).pw_name)
    except (AttributeError, KeyError):
        return f"user {user}"


def raise_descriptors_limit() -> None:
    """Raise this process's limit of open files to the maximum that the system allows."""
    if _resource is None:
        return
    soft, hard = _resource.getrlimit(_resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS_MAX if _SYSTEM == "Darwin" and not 0 <= hard <= _DESCRIPTORS_MAX else hard
    if soft != hard and soft != wanted:
        _resource.setrlimit(_resource.RLIMIT_NOFILE, (wanted, hard))
