"""The two ways to open a database, for tests that hold for both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from saros_server.server import Server

WAYS = ("embedded", "served")


@contextmanager
def target_of(way: str, folder: Path) -> Iterator[str]:
    """The target of a database in a folder: the folder, or a server that serves it meanwhile."""
    if way == "embedded":
        yield str(folder)
        return
    server = Server(str(folder), "127.0.0.1", 0)
    server.start()
    try:
        yield f"saros://{server.address}"
    finally:
        server.stop()
