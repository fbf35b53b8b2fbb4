"""A dictionary of a process's shared resources, such as connection pools, that is empty in forked processes.

A forked process keeps references to the parent's resources but does not use them. It could not close these resources,
because their threads and sockets belong to the parent.
"""

from __future__ import annotations

import os
import threading
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class ForkLocal(dict[_K, _V]):
    """A dictionary that a fork empties in the child. Use it with its `lock` held. It exists until the process ends."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self._inherited: list[_V] = []
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self.lock = threading.Lock()  # a thread of the parent may have held the old lock
        self._inherited.extend(self.values())
        self.clear()
