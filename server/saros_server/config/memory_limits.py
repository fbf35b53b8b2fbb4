"""How much memory this process may have: what queries get of it where nobody says otherwise.

The machine's, or what the process's cgroup (Linux, version 1 or 2) or one above it is limited to, if that is less.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

#: The rest is for MemTables, caches, the process itself, and what blocks take while they are worked at.
_QUERIES_SHARE = 4
#: Less does for no query that sorts or joins.
_QUERIES_BYTES_MIN = 64 << 20


def queries_memory_bytes() -> int:
    """What all queries may hold together."""
    return max(memory_bytes() // _QUERIES_SHARE, _QUERIES_BYTES_MIN)


def memory_bytes(root: Path = Path("/")) -> int:
    """Bytes of memory. `root`: where `proc` and `sys` are."""
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    """Limits of the process's cgroup and those above it; a container sees its own as the topmost."""
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
            if limit.isdecimal():  # version 2 says "max" where there is none
                yield int(limit)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
