"""A disk whose file system ignores case and Unicode's normal forms, and keeps names as they were made: like macOS."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any

from quick_disk import QuickDisk

from saros_storage.folder.layout import caseless


def real_path(path: str) -> str:
    """Return the path of the file or folder that such a file system finds at `path`."""
    if os.path.lexists(path):
        return path
    parent, name = os.path.split(os.path.abspath(path))
    parent = real_path(parent)
    same = [known for known in os.listdir(parent) if caseless(known) == caseless(name)] if os.path.isdir(parent) else []
    return os.path.join(parent, *same[:1] or [name])


def _finding(operation: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(operation)
    def found(disk: CaselessDisk, *arguments: Any, **options: Any) -> Any:
        return operation(disk, *(real_path(a) if isinstance(a, str) else a for a in arguments), **options)

    return found


class CaselessDisk(QuickDisk):
    """The disk; each path that an operation takes is the one that the file system finds."""

    create = _finding(QuickDisk.create)
    create_unread = _finding(QuickDisk.create_unread)
    append = _finding(QuickDisk.append)
    map = _finding(QuickDisk.map)
    read = _finding(QuickDisk.read)
    truncate = _finding(QuickDisk.truncate)
    replace = _finding(QuickDisk.replace)
    link = _finding(QuickDisk.link)
    remove = _finding(QuickDisk.remove)
    remove_tree = _finding(QuickDisk.remove_tree)
    make_folder = _finding(QuickDisk.make_folder)
    sync_folder = _finding(QuickDisk.sync_folder)
    list = _finding(QuickDisk.list)
    exists = _finding(QuickDisk.exists)
    size = _finding(QuickDisk.size)
    free_bytes = _finding(QuickDisk.free_bytes)

    def sync_all(self, paths: Collection[str]) -> None:
        super().sync_all([real_path(path) for path in paths])
