"""A node's mode as a file in its folder: a node that only reads does so when it is started again, too.

The file is there as long as the node only reads, and empty.
"""

from __future__ import annotations

import os

from saros_engine.base.system_mode import SystemMode
from saros_storage.folder.layout import write_durably
from saros_storage.io.disk import Disk

_READ_ONLY_FILE = "read_only"


def load_mode(folder: str, disk: Disk) -> SystemMode:
    """The mode of the node in `folder`, as it was set last."""
    path = os.path.join(folder, _READ_ONLY_FILE)

    def keep(read_only: bool) -> None:
        if read_only:
            write_durably(disk, path, b"")
        elif disk.exists(path):
            disk.remove(path)
            disk.sync_folder(folder)

    return SystemMode(read_only=disk.exists(path), keep=keep)
