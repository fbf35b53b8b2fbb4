"""The memory that this process may use, and the share of it that queries may use by default.

The memory is limited by the machine and by the process's cgroup and its parents (Linux, version 1 or 2); the smallest
limit applies.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

#: Queries get a quarter. The rest is for MemTables, caches, the process itself, and blocks that are being processed.
_QUERIES_SHARE = 4
#: Queries that sort or join need at least this much.
_QUERIES_BYTES_MIN = 64 << 20


def queries_memory_bytes() -> int:
    """Return the default memory limit of all queries together, in bytes."""
    return max(memory_bytes() // _QUERIES_SHARE, _QUERIES_BYTES_MIN)


def memory_bytes(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process may use; `root` is the folder that contains `proc` and `sys`."""
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    """Yield the limits of the process's cgroup and its parents; a container sees its own cgroup as the root."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mounted, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            mounted, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        group = PurePosixPath(path.lstrip("/"))
        for folder in (group, *group.parents):
            limit = _read(mounted / folder / name).strip()
            if limit.isdecimal():  # version 2 has "max" for no limit
                yield int(limit)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
