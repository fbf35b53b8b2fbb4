"""SET SYSTEM TO READONLY, RUNNING: whether this node takes statements that change data or schema.

    RUNNING --set(read_only=True)--> READONLY --set(read_only=False)--> RUNNING      what is set is kept, then in effect

It is about what clients of this node ask for, and what runs by itself in their place (continuous queries, rounds of
senders). What other nodes have agreed on takes effect here as ever, so no replica falls behind. Users, nodes that
come and go, FLUSH and MERGE are no such changes. A database that was opened for reading has a mode that stays: it takes
statements that read, and settings of the session. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from saros_storage.base.errors import StorageError


class SystemReadOnly(StorageError):
    """The node only reads; what was put off may be sent again when it runs."""

    code = 600

    def __init__(self, message: str = "the system only reads: SET SYSTEM TO RUNNING lets it write again") -> None:
        super().__init__(message)


class OpenedReadOnly(SystemReadOnly):
    """The database was opened for reading."""

    def __init__(self) -> None:
        super().__init__("the database was opened read-only: open it without read_only, or connect to its server")


class SystemMode:
    """See the module."""

    def __init__(
        self, *, read_only: bool = False, keep: Callable[[bool], None] | None = None, is_fixed: bool = False
    ) -> None:
        """`keep` remembers a mode durably; None: it is forgotten with the process. `is_fixed`: it cannot be set."""
        self._read_only = read_only
        self._keep = keep
        #: Whether the database was opened so.
        self.is_fixed = is_fixed
        self._setting = threading.Lock()

    @property
    def read_only(self) -> bool:
        """Whether nothing is changed."""
        return self._read_only

    def set(self, *, read_only: bool) -> None:
        """Change the mode. Raises OSError, OpenedReadOnly, and then nothing has changed."""
        if self.is_fixed:
            raise OpenedReadOnly
        with self._setting:
            if self._keep is not None:
                self._keep(read_only)
            self._read_only = read_only

    def require_running(self) -> None:
        """Raise SystemReadOnly."""
        if self._read_only:
            raise OpenedReadOnly if self.is_fixed else SystemReadOnly
