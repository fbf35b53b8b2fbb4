"""What a process has open once and shares, by key; one that was forked begins with none of it.

What its parent has open is kept there, unused: it could not be closed, since threads and sockets stay with the parent.
"""

from __future__ import annotations

import os
import threading
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class ForkLocal(dict[_K, _V]):
    """See the module. Not collected before the process ends. Use it with its `lock` held."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self._inherited: list[_V] = []
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self.lock = threading.Lock()  # a thread of the parent's may have held it
        self._inherited.extend(self.values())
        self.clear()
