"""A guard against the use of a connection in a forked process, which inherits a copy of its parent's connections.

The copy would give its writes the same sequence numbers as the parent's connection. If a node has already seen a
number, it acknowledges the write without executing it. Moreover, threads and sockets stay with the parent. For the same
reasons, connections cannot be pickled: multiprocessing would pickle them to pass them to a process that it does not
fork.
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
        """Raise InterfaceError in any process other than the one that created the guard."""
        if not self.is_own_process:
            raise InterfaceError(
                f"the connection belongs to process {self._process}, which forked: open another one in this process",
                2014,
            )


def refuse_pickling(_: object) -> NoReturn:
    """Raise InterfaceError. For use as `__reduce__` of objects that work only in the process that created them."""
    raise InterfaceError("a connection cannot be sent to another process: open another one in that process", 2014)
