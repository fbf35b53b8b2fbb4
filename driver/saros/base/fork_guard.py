"""A guard against the use of a connection in a forked process, which inherits a copy of its parent's connections.

The copy would give its writes the same numbers as the parent, and a node acknowledges a number that it has already seen
without writing again. Moreover, threads and sockets stay with the parent. For the same reason, connections cannot be
pickled, as multiprocessing would do to pass them to a process that it does not fork.
"""

from __future__ import annotations

import os
from typing import NoReturn

from saros.errors import InterfaceError


class ForkGuard:
    """The process that created an object, which is the only process that may use the object."""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def is_own_process(self) -> bool:
        """True in the process that created the guard."""
        return os.getpid() == self._process

    def check(self) -> None:
        """Raise InterfaceError in any process but this one."""
        if not self.is_own_process:
            raise InterfaceError(
                f"the connection belongs to process {self._process}, which forked: open another one in this process",
                2014,
            )


def refuse_pickling(_: object) -> NoReturn:
    """Raise InterfaceError, as `__reduce__` of objects that only work in the process that opened their connection."""
    raise InterfaceError("a connection cannot be sent to another process: open another one in that process", 2014)
