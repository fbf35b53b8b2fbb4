"""A node's mode as a file in its folder, so that a read-only node stays read-only after a restart.

The file is empty, and exists only while the node is read-only.
"""

from __future__ import annotations

import os

from saros_engine.base.system_mode import SystemMode
from saros_storage.folder.layout import write_durably
from saros_storage.io.disk import Disk

_READ_ONLY_FILE = "read_only"


def load_mode(folder: str, disk: Disk) -> SystemMode:
    """Return the mode that was last set for the node in `folder`.

    The returned object stores each change of the mode on disk.
    """
    path = os.path.join(folder, _READ_ONLY_FILE)

    def keep(read_only: bool) -> None:
        if read_only:
            write_durably(disk, path, b"")
        elif disk.exists(path):
            disk.remove(path)
            disk.sync_folder(folder)

    return SystemMode(read_only=disk.exists(path), keep=keep)
