"""Targets of a session: folders and servers. Pure, except that it looks for files; any thread."""

from __future__ import annotations

import os

from saros.base.target import SCHEME
from saros_storage.folder.layout import NODE_FILE

#: A note for a folder that did not exist, since its name may be mistyped.
NEW_DATABASE = ", a new database"


def is_new_database(target: str) -> bool:
    """Return whether connecting to the target creates a database, because it names a folder without one."""
    return not target.startswith(SCHEME) and not os.path.exists(os.path.join(target, NODE_FILE))
