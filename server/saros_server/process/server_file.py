"""The file `<data>/server.json`: the process id and the addresses of a server, while the server runs.

`saros status`, `saros stop` and other commands read this file to find the server, without importing the database.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from msgspec.structs import asdict

from saros_storage.io.folder_lock import owner_of

_FILE = "server.json"


class Serving(msgspec.Struct, frozen=True):
    """A running server: the content of `server.json`."""

    pid: int
    address: str
    #: An address without TLS, for clients on this machine. Empty if `address` itself has no TLS.
    local: str = ""
    #: The URL of the server's HTTP service. Empty if the server has no HTTP service.
    http: str = ""


def announce(folder: str, serving: Serving) -> None:
    """Write the file, atomically."""
    path = Path(folder, _FILE)
    part = path.with_suffix(".tmp")
    part.write_text(json.dumps(asdict(serving)) + "\n")
    part.replace(path)


def withdraw(folder: str) -> None:
    """Remove the file."""
    Path(folder, _FILE).unlink(missing_ok=True)


def serving(folder: str) -> Serving | None:
    """Return the folder's running server, or None. A file that a killed process has left is ignored."""
    try:
        words = json.loads(Path(folder, _FILE).read_text())
        found = Serving(
            int(words["pid"]), str(words["address"]), str(words.get("local", "")), str(words.get("http", ""))
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if owner_of(folder) == found.pid else None
