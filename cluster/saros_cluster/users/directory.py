"""Stores users: defines the `Directory` that engine and server use, and implements it for a single folder.

    meta/users      saros-users 1 <crc32>     then `Users.dump` as JSON; replaced as a whole, durably

A folder without the file has no users. A file that cannot be read is an error, never "no users": otherwise damage would
open the database to everybody. Thread-safe.
"""

from __future__ import annotations

import json
import os
import re
import threading
import zlib
from typing import Protocol

from saros_cluster.users.commands import Command
from saros_cluster.users.users import Users
from saros_storage.base.errors import CorruptFile, NewerFormat
from saros_storage.folder.layout import confirm, write_durably
from saros_storage.io.disk import Disk

USERS_FILE = os.path.join("meta", "users")
_VERSION = 1
_FIRST_LINE = re.compile(rb"saros-users (\d+) ([0-9a-f]{8})\n")


class Directory(Protocol):
    """A store of users that can be read and changed. Implementations are thread-safe."""

    def users(self) -> Users:
        """Return the state that this node knows. The same object is returned until the state changes."""
        ...

    def newest(self) -> Users:
        """Return a state with all acknowledged changes if quickly available, otherwise the state known to this node."""
        ...

    def change(self, command: Command, deadline_ns: int | None = None) -> None:
        """Apply a change.

        When this returns, the change is durable, and `users` shows it. Raises UserMistake, StorageError.

        `deadline_ns`: see `WriteRequest`.
        """
        ...


class FileDirectory:
    """A `Directory` in a file of one folder."""

    def __init__(self, folder: str, disk: Disk) -> None:
        """Load the file, if there is one. Raises CorruptFile, NewerFormat."""
        self._path = os.path.join(folder, USERS_FILE)
        self._disk = disk
        self._lock = threading.Lock()
        self._users = self._load() if disk.exists(self._path) else Users()

    def users(self) -> Users:
        """Return the current state."""
        return self._users

    def newest(self) -> Users:
        """Return the current state."""
        return self._users

    def change(self, command: Command, deadline_ns: int | None = None) -> None:  # noqa: ARG002 (nothing is waited for)
        """Apply a change and replace the file, as `Directory.change` does."""
        with self._lock:
            after = self._users.apply(command)
            if after is self._users:
                return
            body = json.dumps(after.dump(), ensure_ascii=False, indent=1).encode()
            self._disk.make_folder(os.path.dirname(self._path))
            write_durably(self._disk, self._path, b"saros-users %d %08x\n" % (_VERSION, zlib.crc32(body)) + body)
            self._users = after

    def _load(self) -> Users:
        confirm(self._disk, self._path)
        data = bytes(self._disk.map(self._path))
        match = _FIRST_LINE.match(data)
        if match is None:
            raise CorruptFile(self._path, 0, "not a users file")
        if int(match.group(1)) > _VERSION:
            raise NewerFormat(self._path)
        body = data[match.end() :]
        if zlib.crc32(body) != int(match.group(2), 16):
            raise CorruptFile(self._path, match.end(), "checksum mismatch in the users")
        try:
            return Users.load(json.loads(body))
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptFile(self._path, match.end(), f"invalid users: {error}") from error
