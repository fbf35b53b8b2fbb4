"""Who serves a folder: `<data>/server.json` has the process id and the address, while the server runs.

`saros status`, `saros stop` and others that look at a server find it by this, and load nothing of the database for it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from saros_storage.io.folder_lock import owner_of

_FILE = "server.json"


@dataclass(frozen=True, slots=True)
class Serving:
    """What `server.json` says."""

    pid: int
    address: str
    #: Where this machine reaches it without TLS; empty: at the address.
    local: str = ""
    #: URL of its HTTP service; empty: it has none.
    http: str = ""


def announce(folder: str, serving: Serving) -> None:
    """Say it in the folder."""
    path = Path(folder, _FILE)
    part = path.with_suffix(".tmp")
    part.write_text(json.dumps(asdict(serving)) + "\n")
    part.replace(path)


def withdraw(folder: str) -> None:
    """Nobody serves the folder any more."""
    Path(folder, _FILE).unlink(missing_ok=True)


def serving(folder: str) -> Serving | None:
    """Who serves the folder; None: nobody, whatever a process that was killed has left behind."""
    try:
        words = json.loads(Path(folder, _FILE).read_text())
        found = Serving(
            int(words["pid"]), str(words["address"]), str(words.get("local", "")), str(words.get("http", ""))
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if owner_of(folder) == found.pid else None
