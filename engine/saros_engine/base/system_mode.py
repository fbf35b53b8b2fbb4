"""The system mode (SET SYSTEM TO READONLY or RUNNING) decides whether this node accepts changes of data or schema.

    RUNNING --set(read_only=True)--> READONLY --set(read_only=False)--> RUNNING      saved before it takes effect

The mode applies to requests of this node's clients and to jobs that act for them (continuous queries, sync senders).
Changes agreed on by the cluster are applied as usual, so no replica lags. Changes of users, membership changes, FLUSH
and MERGE are still accepted. A database opened read-only has a fixed mode: it accepts only statements that read, and
statements that change settings of the session. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from saros_storage.base.errors import StorageError


class SystemReadOnly(StorageError):
    """The node is read-only. The refused request may be repeated after the mode has been set to RUNNING."""

    code = 600

    def __init__(
        self, message: str = "the system is read-only: run SET SYSTEM TO RUNNING to allow writes again"
    ) -> None:
        super().__init__(message)


class OpenedReadOnly(SystemReadOnly):
    """The database was opened read-only."""

    def __init__(self) -> None:
        super().__init__("the database was opened read-only: open it without read_only, or connect to its server")


class SystemMode:
    """The mode of this node."""

    def __init__(
        self, *, read_only: bool = False, keep: Callable[[bool], None] | None = None, is_fixed: bool = False
    ) -> None:
        """`keep` saves a mode durably. Without `keep` (None), the mode is lost when the process ends.

        If `is_fixed`, `set` raises OpenedReadOnly.
        """
        self._read_only = read_only
        self._keep = keep
        #: True if the database was opened read-only.
        self.is_fixed = is_fixed
        self._setting = threading.Lock()

    @property
    def read_only(self) -> bool:
        """True if changes are refused."""
        return self._read_only

    def set(self, *, read_only: bool) -> None:
        """Change the mode. If OSError or OpenedReadOnly is raised, the mode is unchanged."""
        if self.is_fixed:
            raise OpenedReadOnly
        with self._setting:
            if self._keep is not None:
                self._keep(read_only)
            self._read_only = read_only

    def require_running(self) -> None:
        """Raise SystemReadOnly if the node is read-only."""
        if self._read_only:
            raise OpenedReadOnly if self.is_fixed else SystemReadOnly
