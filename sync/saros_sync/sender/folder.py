"""Where a sender keeps what. Nothing of it is the database's; it may go as a whole, and all is compared anew.

    <data>/sync-sender/uuid.txt                    the sender's id: 32 hexadecimal digits, made once
                       192.168.130.16_6667/        one for each receiver
                           LOCK                    one process sends to a receiver at a time
                           receiver                its address and options
                           last_local_files        what the receiver had after the last round
                           snapshot/               hard links to what the round in hand sends, and the round
                           sync.log                the journal of the round in hand
                           status                  how far it is, and what was: for `saros sync status`

The former sync tool of IoTDB has the lock, the id and the position of the schema below `schema/sync`, since IoTDB may
have several data folders; a Saros has one. The position of the schema is the content that was sent last: what is sent
is the schema as it is, if it is another one. One thread per receiver.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import asdict, dataclass, fields

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


@dataclass(frozen=True, slots=True)
class ReceiverOptions:
    """A receiver, and how it is sent to."""

    #: `saros://[user[:password]@]host:port[?tls=ca.pem]`.
    target: str
    #: Seconds from the end of a round to the next.
    every_s: float = 60.0
    #: How often a question is asked again before the round waits for its next turn.
    retries: int = 5
    #: 0: as many as go through.
    bytes_per_second: int = 0
    chunk_bytes: int = 1 << 20
    #: Where to ask for a FLUSH before a round: a folder or `saros://...`; empty: nowhere.
    flush: str = ""
    #: What the receiver shows as the sender's name.
    name: str = ""


@dataclass(frozen=True, slots=True)
class ReceiverFolder:
    """The paths for one receiver."""

    path: str

    @property
    def receiver(self) -> str:
        """Its options."""
        return os.path.join(self.path, _RECEIVER)

    @property
    def last(self) -> str:
        """What it had after the last round."""
        return os.path.join(self.path, "last_local_files")

    @property
    def snapshot(self) -> str:
        """Links, and the round."""
        return os.path.join(self.path, "snapshot")

    @property
    def journal(self) -> str:
        """What was done in the round in hand."""
        return os.path.join(self.path, "sync.log")

    @property
    def status(self) -> str:
        """For whoever asks."""
        return os.path.join(self.path, "status")


class SenderFolder:
    """See the module."""

    def __init__(self, data: str, disk: Disk) -> None:
        self.data = data
        self._disk = disk
        self._root = os.path.join(data, FOLDER)

    def sender_id(self) -> str:
        """The id, made if need be. Raises CorruptFile, OSError."""
        path = os.path.join(self._root, _ID)
        if not self._disk.exists(path):
            self._disk.make_folder(self._root)
            write_durably(self._disk, path, secrets.token_hex(16).encode() + b"\n")
        text = bytes(self._disk.map(path)).decode("ascii", "replace").strip()
        if not is_sender(text):
            raise CorruptFile(path, 0, "not a sender's id: if it is lost, the receiver must DROP SENDER the old one")
        return text

    def receivers(self) -> list[str]:
        """Names of all receivers, sorted."""
        return [
            name for name in self._disk.list(self._root) if self._disk.exists(os.path.join(self._root, name, _RECEIVER))
        ]

    def of(self, name: str) -> ReceiverFolder:
        """A receiver's folder. Raises UserMistake 2063 if there is none."""
        if name not in self.receivers():
            known = ", ".join(self.receivers()) or "none"
            raise UserMistake(f"{self.data} has no receiver {name!r}; it has {known}", code=_NO_RECEIVER)
        return ReceiverFolder(os.path.join(self._root, name))

    def add(self, address: str, options: ReceiverOptions) -> str:
        """Note a receiver, or give it other options; its name: `host_port`. Raises OSError."""
        name = address.replace(":", "_").replace("[", "").replace("]", "")
        folder = ReceiverFolder(os.path.join(self._root, name))
        self._disk.make_folder(folder.path)
        write_durably(self._disk, folder.receiver, encode_framed(_KIND, asdict(options)))
        return name

    def options(self, name: str) -> ReceiverOptions:
        """A receiver's options. Raises UserMistake 2063, CorruptFile."""
        path = self.of(name).receiver
        words = decode_framed(path, _KIND, bytes(self._disk.map(path)))
        known = {field.name: words[field.name] for field in fields(ReceiverOptions) if field.name in words}
        return ReceiverOptions(**known)  # type: ignore[arg-type]

    def drop(self, name: str) -> None:
        """Forget a receiver; what it has it keeps. Raises UserMistake 2063, OSError."""
        self._disk.remove_tree(self.of(name).path)
        self._disk.sync_folder(self._root)


def load_status(folder: SenderFolder, name: str, disk: Disk) -> Status:
    """What is known of a receiver. Raises UserMistake 2063."""
    path = folder.of(name).status
    try:
        return decode_status(path, bytes(disk.map(path)))
    except (OSError, StorageError):
        return Status()  # nothing was told yet
