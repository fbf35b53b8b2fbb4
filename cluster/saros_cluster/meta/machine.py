"""The state machine of the meta group: its log becomes a `MetaState`, which is written to a file from time to time.

    entry = a request (as in data groups), then a command          `meta/group-0`: the state as of an entry

The file is written every few hundred entries, and whenever users change, so that a node's knowledge of users outlives
its process. The cluster's initial state is written when a node is first opened, so later edits of `cluster.json` have
no effect. The state is small and fits in memory. After a restart, the log's entries up to the one that the file
reflects are ignored, and the later ones are applied again. `changed` is called after each entry that has an effect, and
after loading. Thread-safe. `state` is read-only.
"""

from __future__ import annotations

import json
import re
import struct
import threading
import zlib
from collections.abc import Callable, Sequence

from saros_cluster.data.applied_requests import AppliedRequests
from saros_cluster.data.command import Request
from saros_cluster.meta.state import MetaCommand, MetaState, decode_meta, encode_meta
from saros_cluster.multiraft.positions import decode_position, encode_position
from saros_cluster.multiraft.state_machine import Outcome
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Entry, EntryKind, Position, Snapshot
from saros_cluster.topology.topology import Topology
from saros_cluster.users.users import Users
from saros_storage.base.errors import CorruptFile, NewerFormat, UserMistake
from saros_storage.folder.layout import confirm, write_durably
from saros_storage.io.disk import FULL_ERRNOS, Disk

#: The number of entries after which the state is written.
_SAVED_EVERY = 500
_HEAD = struct.Struct("<QQ")
_VERSION = 1
_FIRST_LINE = re.compile(rb"saros-meta (\d{1,4}) ([0-9a-f]{8})\n")


def encode_meta_entry(request: Request, command: MetaCommand) -> bytes:
    """Return the data of an entry of the log."""
    return _HEAD.pack(*request) + encode_meta(command)


def decode_meta_entry(data: bytes) -> tuple[Request, MetaCommand]:
    """Parse the data of an entry. Raises CorruptFile."""
    if len(data) < _HEAD.size:
        raise CorruptFile("log", 0, "an entry is too short")
    return Request(*_HEAD.unpack_from(data)), decode_meta(data[_HEAD.size :])


class MetaMachine:
    """The `StateMachine` of the meta group on this node."""

    def __init__(
        self, path: str, disk: Disk, changed: Callable[[MetaState], None], first: Topology, users: Users | None = None
    ) -> None:
        """Load the state at `path`. If there is no file, begin with `first` and `users`. Raises CorruptFile."""
        self._path = path
        self._disk = disk
        self._changed = changed
        self._compact: Callable[[int], None] = lambda _: None
        self.state, self._requests, self._applied = MetaState(first, users), AppliedRequests(), 0
        self._installed: list[object] | None = None
        self._lock = threading.RLock()
        if disk.exists(path):
            confirm(disk, path)
            self._load(bytes(disk.map(path)))
        else:
            write_durably(disk, path, self._dump())
        self._saved, self._saved_users = self._applied, self.state.users
        changed(self.state)

    def start(self, compact: Callable[[int], None]) -> None:
        """Set the function that compacts the log up to an entry."""
        self._compact = compact

    def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        """Apply entries, as `StateMachine.apply` does."""
        with self._lock:
            outcomes = [self._apply(entry) for entry in entries]
        # If the users have changed, write the state at once, since a node that restarts without a connection must not
        # admit users that were dropped.
        if self.state.users is not self._saved_users or self._applied - self._saved >= _SAVED_EVERY:
            self._try_save()
        return outcomes

    def _try_save(self) -> None:
        """Save the state.

        If the disk is full, the log keeps the entries, and the write is tried again after the next entry.
        """
        try:
            self.save()
        except OSError as error:
            if error.errno not in FULL_ERRNOS:
                raise

    def _apply(self, entry: Entry) -> Outcome:
        if entry.index <= self._applied:
            return None
        self._applied = entry.index
        if entry.kind is not EntryKind.DATA:
            return None
        request = Request(*_HEAD.unpack_from(entry.data))
        if self._requests.is_known(request, entry.index):
            return None
        try:
            self.state.apply(decode_meta(entry.data[_HEAD.size :]), entry.index)
        except UserMistake as error:
            return error
        self._requests.remember(request, entry.index)
        self._changed(self.state)
        return None

    def entry_of(self, request: Request) -> int | None:
        """Return the entry with which a request took effect, or None if it had no effect or is no longer remembered."""
        with self._lock:
            return self._requests.entry_of(request)

    def save(self) -> None:
        """Write the state and compact the log."""
        with self._lock:
            if self._applied == self._saved:
                return
            write_durably(self._disk, self._path, self._dump())
            self._saved, self._saved_users = self._applied, self.state.users
            self._compact(self._applied)

    def _dump(self) -> bytes:
        return encode_meta_file(self.state, self._requests, self._applied, self._installed)

    # ------------------------------------------------------------------ snapshots: the token is the whole state

    @property
    def installed(self) -> Position | None:
        """The position of the last snapshot that was installed here."""
        return None if self._installed is None else decode_position(self._installed)

    def take_snapshot(self) -> tuple[int, bytes]:
        """Return the applied index and the whole state as the token."""
        with self._lock:
            return self._applied, self._dump()

    def forget_snapshot(self, token: bytes) -> None:
        """Do nothing, since the token contains the whole snapshot."""

    def stage(self, sender: NodeId, snapshot: Snapshot) -> None:
        """Do nothing, since the token contains the whole snapshot."""

    def install(self, snapshot: Snapshot) -> None:
        """Replace the state by the state in the token, durably."""
        with self._lock:
            self._load(snapshot.token)
            self._installed = encode_position(snapshot.position)
            write_durably(self._disk, self._path, self._dump())
            self._saved, self._saved_users = self._applied, self.state.users
            self._changed(self.state)

    def _load(self, data: bytes) -> None:
        found = decode_meta_file(self._path, data)
        self.state, self._requests, self._applied, self._installed = found


def encode_meta_file(
    state: MetaState, requests: AppliedRequests, applied: int, installed: list[object] | None
) -> bytes:
    """Return the bytes of the state file, for `decode_meta_file`."""
    words = {"applied": applied, "installed": installed, "state": state.dump(), "requests": requests.dump()}
    body = json.dumps(words, ensure_ascii=False).encode()
    return b"saros-meta %d %08x\n" % (_VERSION, zlib.crc32(body)) + body


def begin_with_users(path: str, disk: Disk, users: Users) -> None:
    """Write the first users into a node's state file. The cluster must have no users yet, and the node must not run.

    This does nothing if there is no file. Raises CorruptFile.
    """
    if disk.exists(path):
        state, requests, applied, installed = decode_meta_file(path, bytes(disk.map(path)))
        state.users = users
        write_durably(disk, path, encode_meta_file(state, requests, applied, installed))


def decode_meta_file(path: str, data: bytes) -> tuple[MetaState, AppliedRequests, int, list[object] | None]:
    """Return the state in a file, the remembered requests, the last applied entry, and the last installed position.

    Raises CorruptFile, NewerFormat.
    """
    match = _FIRST_LINE.match(data)
    if match is None:
        raise CorruptFile(path, 0, "not a state of the meta group")
    if int(match.group(1)) > _VERSION:
        raise NewerFormat(path)
    body = data[match.end() :]
    if zlib.crc32(body) != int(match.group(2), 16):
        raise CorruptFile(path, 0, "checksum mismatch in the meta group's state")
    try:
        words = json.loads(body)
        requests = AppliedRequests([[int(n) for n in known] for known in words["requests"]])
        return MetaState.load(words["state"]), requests, int(words["applied"]), words["installed"]
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFile(path, match.end(), f"invalid meta group state: {error}") from error
