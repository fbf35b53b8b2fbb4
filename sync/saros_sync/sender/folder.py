"""The sender's own files. The database does not use them. If they are lost, the next round compares everything again.

    <data>/sync-sender/uuid.txt                    the sender's id: 32 hexadecimal digits, created once
                       192.168.130.16_6667/        one for each receiver
                           LOCK                    held by the process that sends to the receiver
                           receiver                its address and options
                           last_local_files        the receiver's files after the last round
                           snapshot/               hard links to the files of the current round, and the round
                           sync.log                the journal of the current round
                           status                  progress and history, for `saros sync status`

The former sync tool of IoTDB keeps the lock, the id and the position in the schema log below `schema/sync`, since IoTDB
may have several data folders; Saros has one. No position in the schema is stored: each round names the whole schema by
its content, which is sent if it has changed. Each receiver's folder is used by one thread.
"""

from __future__ import annotations

import os
import secrets

import msgspec
from msgspec.structs import asdict

from saros_storage.base.errors import CorruptFile, StorageError, UserMistake
from saros_storage.folder.layout import write_durably
from saros_storage.io.disk import Disk
from saros_sync.framing import decode_framed, encode_framed
from saros_sync.round import is_sender
from saros_sync.sender.status import Status, decode_status

FOLDER = "sync-sender"
_ID, _RECEIVER = "uuid.txt", "receiver"
_KIND = "receiver"
_NO_RECEIVER = 2063


class ReceiverOptions(msgspec.Struct, frozen=True):
    """A receiver's address, and the options of its rounds."""

    #: `saros://[user[:password]@]host:port[?tls=ca.pem]`.
    target: str
    #: Seconds from the end of a round to the start of the next round.
    every_s: float = 60.0
    #: Retries of a request, after which the round waits for the next interval.
    retries: int = 5
    #: The limit of the transfer rate, or 0 for no limit.
    bytes_per_second: int = 0
    chunk_bytes: int = 1 << 20
    #: The instance to FLUSH before a round: a folder, `saros://...`, or "" for no FLUSH.
    flush: str = ""
    #: The name under which the receiver shows the sender.
    name: str = ""


class ReceiverFolder(msgspec.Struct, frozen=True):
    """The paths of one receiver's files."""

    path: str

    @property
    def receiver(self) -> str:
        """The receiver's options."""
        return os.path.join(self.path, _RECEIVER)

    @property
    def last(self) -> str:
        """The receiver's files after the last round."""
        return os.path.join(self.path, "last_local_files")

    @property
    def snapshot(self) -> str:
        """The folder of hard links, and the round."""
        return os.path.join(self.path, "snapshot")

    @property
    def journal(self) -> str:
        """The journal of the current round."""
        return os.path.join(self.path, "sync.log")

    @property
    def status(self) -> str:
        """Progress and history, for `saros sync status`."""
        return os.path.join(self.path, "status")


class SenderFolder:
    """The folder of a sender's own files, below the instance's data folder."""

    def __init__(self, data: str, disk: Disk) -> None:
        self.data = data
        self._disk = disk
        self._root = os.path.join(data, FOLDER)

    def sender_id(self) -> str:
        """Return the sender's id. Create it at the first call. Raises CorruptFile, OSError."""
        path = os.path.join(self._root, _ID)
        if not self._disk.exists(path):
            self._disk.make_folder(self._root)
            write_durably(self._disk, path, secrets.token_hex(16).encode() + b"\n")
        text = bytes(self._disk.map(path)).decode("ascii", "replace").strip()
        if not is_sender(text):
            raise CorruptFile(path, 0, "not a sender's id: if it is lost, the receiver must DROP SENDER the old one")
        return text

    def receivers(self) -> list[str]:
        """Return the names of all receivers, sorted."""
        return [
            name for name in self._disk.list(self._root) if self._disk.exists(os.path.join(self._root, name, _RECEIVER))
        ]

    def of(self, name: str) -> ReceiverFolder:
        """Return a receiver's folder. Raises UserMistake 2063 if there is no such receiver."""
        if name not in self.receivers():
            known = ", ".join(self.receivers()) or "none"
            raise UserMistake(f"{self.data} has no receiver {name!r}; it has {known}", code=_NO_RECEIVER)
        return ReceiverFolder(os.path.join(self._root, name))

    def add(self, address: str, options: ReceiverOptions) -> str:
        """Add a receiver, or replace its options. Return its name, `host_port`. Raises OSError."""
        name = address.replace(":", "_").replace("[", "").replace("]", "")
        folder = ReceiverFolder(os.path.join(self._root, name))
        self._disk.make_folder(folder.path)
        write_durably(self._disk, folder.receiver, encode_framed(_KIND, asdict(options)))
        return name

    def options(self, name: str) -> ReceiverOptions:
        """Return a receiver's options. Raises UserMistake 2063, CorruptFile."""
        path = self.of(name).receiver
        words = decode_framed(path, _KIND, bytes(self._disk.map(path)))
        known = {name: words[name] for name in ReceiverOptions.__struct_fields__ if name in words}
        return ReceiverOptions(**known)  # type: ignore[arg-type]

    def drop(self, name: str) -> None:
        """Remove a receiver from this sender. The receiver keeps its data. Raises UserMistake 2063, OSError."""
        self._disk.remove_tree(self.of(name).path)
        self._disk.sync_folder(self._root)


def load_status(folder: SenderFolder, name: str, disk: Disk) -> Status:
    """Return a receiver's status. Raises UserMistake 2063."""
    path = folder.of(name).status
    try:
        return decode_status(path, bytes(disk.map(path)))
    except (OSError, StorageError):
        return Status()  # the file was not written yet, or is damaged
