"""The two ways to open a database, for tests that run with each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from saros_server.server import Server

WAYS = ("embedded", "served")


@contextmanager
def target_of(way: str, folder: Path) -> Iterator[str]:
    """Yield a target for a database in a folder: the folder itself, or a server that serves it."""
    if way == "embedded":
        yield str(folder)
        return
    server = Server(str(folder), "127.0.0.1", 0)
    server.start()
    try:
        yield f"saros://{server.address}"
    finally:
        server.stop()
