"""Which process owns a connection: a forked process has a copy of its parent's, and must not use it.

The numbers of writes would be those of the parent's (a node answers a number that it knows without writing again), and
threads and sockets stay with the parent.
"""

from __future__ import annotations

import os

from saros.errors import InterfaceError


class ForkGuard:
    """The process in which it was made."""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def is_own_process(self) -> bool:
        """Return whether this is the process that made the guard."""
        return os.getpid() == self._process

    def check(self) -> None:
        """Raise InterfaceError elsewhere."""
        if not self.is_own_process:
            raise InterfaceError(
                f"the connection is that of process {self._process}, which forked: connect anew in this process", 2014
            )
