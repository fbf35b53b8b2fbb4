"""Sessions on embedded databases: in a folder, or, for the target `:memory:`, in a temporary folder.

A temporary database belongs to one session. Its folder is removed when the session closes, or when the process exits.
If the process is killed, the folder stays until another process opens a temporary database.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from saros.base.fork_guard import ForkGuard
from saros.errors import translated_errors

if TYPE_CHECKING:
    from saros.api.session import Session

#: The target of a temporary database, as in SQLite and DuckDB.
MEMORY = ":memory:"


def open_embedded(
    target: str, *, time_zone: str | None, options: Mapping[str, object] | None, read_only: bool = False
) -> Session:
    """Return a session on the database in a folder, or on a temporary database. Raises as `connect` does."""
    with translated_errors():
        if target == MEMORY:
            return _open_temporary(time_zone, options or {})
        return _open_session(target, time_zone=time_zone, options=dict(options or {}), read_only=read_only)


def _open_temporary(time_zone: str | None, options: Mapping[str, object]) -> Session:
    from saros.base.temporary_folder import TemporaryFolder  # imports the storage, which `connect` loads on demand

    folder, owner = TemporaryFolder.create(), ForkGuard()

    def end() -> None:
        if owner.is_own_process:
            session.close()

    def remove() -> None:
        atexit.unregister(end)
        folder.remove()

    chosen = {"durability": "os", **options}
    try:
        session = _open_session(folder.path, time_zone=time_zone, options=chosen, on_close=remove)
    except BaseException:
        folder.remove()
        raise
    atexit.register(end)
    return session


def _open_session(
    folder: str,
    *,
    time_zone: str | None,
    options: Mapping[str, object],
    on_close: Callable[[], None] = lambda: None,
    read_only: bool = False,
) -> Session:
    """Open a session.

    The first call loads the engine. Loading creates many long-lived objects and little garbage, so garbage is collected
    less often during that time.
    """
    from saros_storage.base.gc_control import reduced_gc

    with reduced_gc():
        from saros_server.api.session import open_session
    return open_session(folder, time_zone=time_zone, options=options, on_close=on_close, read_only=read_only)
