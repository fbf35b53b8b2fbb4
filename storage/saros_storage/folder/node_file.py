"""`node.json`: the format and the fixed settings of a data folder. The folder is never opened with other settings.

    {"format": 2, "time_unit": "ms", "time_partition_interval": 604800000}

The format is the version of the entire folder; time unit and partition interval are fixed when the folder is created.
In format 2, log segments have salts. A folder of format 1 gets format 2 when it is opened; from then on, earlier
versions of Saros refuse to open it.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from saros_storage.base.errors import CorruptFile, StorageError
from saros_storage.folder.layout import GROUP_FOLDER, LOG_FOLDER, NODE_FILE, SCHEMA_FILE, write_durably
from saros_storage.io.disk import Disk

if TYPE_CHECKING:
    from saros_storage.folder.store_options import StoreOptions

FOLDER_FORMAT = 2
_MISMATCH = 2004
_NEWER = 2015


def made_with(folder: str) -> tuple[str, int] | None:
    """Return the time unit and partition interval of a data folder; None if it has no readable node file."""
    try:
        with open(os.path.join(folder, NODE_FILE), "rb") as file:
            found = json.load(file)
        return str(found["time_unit"]), int(found["time_partition_interval"])
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def read_node_file(folder: str, disk: Disk) -> dict[str, object]:
    """Return the content of a folder's node file. Raises StorageError 2015 (a newer format), CorruptFile."""
    path = os.path.join(folder, NODE_FILE)
    try:
        words: dict[str, object] = json.loads(bytes(disk.map(path)))
        version = int(str(words["format"]))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise CorruptFile(path, 0, f"not a node file: {error}") from error
    if version > FOLDER_FORMAT:
        message = f"data folder {folder} has format {version}; this Saros reads up to {FOLDER_FORMAT}"
        raise StorageError(message, code=_NEWER)
    return words


def check_node_file(folder: str, options: StoreOptions, disk: Disk) -> None:
    """Compare the node file with the options; create it in a new folder, or update its format in an old folder.

    The node file is the first file that is created in a folder. A folder that has data but no node file is refused,
    since the unit of its times could differ from the unit in the options. Raises StorageError 2015 (a newer format) or
    2004 (different time unit or interval), CorruptFile.
    """
    path = os.path.join(folder, NODE_FILE)
    ours = {
        "format": FOLDER_FORMAT,
        "time_unit": options.time_unit.suffix,
        "time_partition_interval": options.time_partition_interval,
    }
    if not disk.exists(path):
        if _has_data(folder, disk):
            wanted = f"restore the original file, such as {json.dumps(ours)}"
            raise CorruptFile(path, 0, f"missing, but the folder has data; {wanted}")
        write_durably(disk, path, json.dumps(ours).encode() + b"\n")
        return
    theirs = read_node_file(folder, disk)
    for key in ("time_unit", "time_partition_interval"):
        if theirs.get(key) != ours[key]:
            message = f"data folder {folder} was made with {key} = {theirs.get(key)}, not {ours[key]}"
            raise StorageError(f"{message}; this cannot be changed, so omit the option", code=_MISMATCH)
    if theirs["format"] != FOLDER_FORMAT:
        write_durably(disk, path, json.dumps(theirs | {"format": FOLDER_FORMAT}).encode() + b"\n")


def _has_data(folder: str, disk: Disk) -> bool:
    has_schema = disk.exists(os.path.join(folder, SCHEMA_FILE))
    return has_schema or any(disk.list(os.path.join(folder, name)) for name in (LOG_FOLDER, GROUP_FOLDER))
