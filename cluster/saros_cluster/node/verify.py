"""Checks a cluster node's folder, except for schema, log records and partitions (see `folder_check` in storage).

    cluster.json  meta/users      readable; the users' checksum
    log/                          each group's records are consistent, as `log_records` reads them
    meta/group-<id>               its checksum; it reflects all entries that the log no longer has
    groups/<id>/<generation>/     no partition reflects entries that the log does not have yet

Nothing is changed. The caller holds the folder's lock. Single-threaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec

from saros_cluster.data.state_file import load_state
from saros_cluster.meta.machine import decode_meta_file
from saros_cluster.multiraft.log_records import Drop, LogContents, Replay, decode_change
from saros_cluster.node.cluster_file import load
from saros_cluster.node.groups import is_founding
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.topology import META
from saros_cluster.users.directory import FileDirectory
from saros_storage.base.errors import CorruptFile, StorageError
from saros_storage.folder.layout import MANIFEST
from saros_storage.folder.manifest import decode_manifest
from saros_storage.folder_check import sound_segments
from saros_storage.io.disk import Disk
from saros_storage.log import Record

_META = "meta"
_GROUPS = "groups"
_STATE_PREFIX = "group-"


class NodeResult(msgspec.Struct):
    """The number of checked items, and the problems found. If there are no groups, the folder belongs to no cluster."""

    groups: int = 0
    #: Number of the groups' entries in the log.
    entries: int = 0
    problems: list[StorageError] = msgspec.field(default_factory=list)


def check_node(folder: str, disk: Disk) -> NodeResult:
    """Check a node's folder. If the folder belongs to no cluster, only the users are checked."""
    return _NodeCheck(folder, disk).run()


class _NodeCheck:
    """The check of one folder."""

    def __init__(self, folder: str, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk
        self._result = NodeResult()

    def run(self) -> NodeResult:
        """Check everything."""
        self._try(self._folder, lambda: FileDirectory(self._folder, self._disk))
        self._try(self._folder, self._check_groups)
        return self._result

    def _try(self, path: str, part: Callable[[], object]) -> None:
        try:
            part()
        except StorageError as error:
            self._result.problems.append(error)
        except OSError as error:
            self._result.problems.append(CorruptFile(path, 0, f"cannot be read: {error}"))

    def _check_groups(self) -> None:
        if load(self._folder, self._disk) is None:
            return
        try:
            segments = list(sound_segments(self._folder, self._disk))
        except CorruptFile:
            return  # `folder_check` reports this; without a log, the entries are unknown
        replays = _Replays()
        for path, records in segments:
            for record in records:
                self._try(path, partial(replays.take, path, record))
        known = {group for group in replays.paths if group not in replays.bad}
        for group in sorted(known | self._with_state() - replays.bad):
            self._try(self._state_path(group), partial(self._check_group, group, replays))

    def _state_path(self, group: GroupId) -> str:
        return os.path.join(self._folder, _META, f"{_STATE_PREFIX}{group}")

    def _with_state(self) -> set[GroupId]:
        """Return the groups for which the folder has a state file."""
        names = [name.removeprefix(_STATE_PREFIX) for name in self._disk.list(os.path.join(self._folder, _META))]
        return {GroupId(int(name)) for name in names if name.isdecimal()}

    def _check_group(self, group: GroupId, replays: _Replays) -> None:
        path = self._state_path(group)
        if group == META:
            held = reached = self._applied()
        else:
            state = load_state(self._disk, path)
            state.tree()
            held, reached = state.released, state.index
        contents = replays.contents(group)
        if contents is None and not held:
            return  # the node crashed before the group's log began; the next start begins the log again
        if contents is None:
            raise CorruptFile(path, 0, f"it has entries up to {held}, but the log has no records of group {group}")
        self._result.groups += 1
        self._result.entries += len(contents.entries)
        base = contents.base.index
        if base > held and not is_founding(contents.base):
            raise CorruptFile(path, 0, f"it has entries up to {held}, but the log only has entries after {base}")
        if group != META:
            self._check_partitions(group, state.generation, max(reached, base + len(contents.entries)))

    def _applied(self) -> int:
        """Return the last entry in the meta group's state."""
        path = self._state_path(META)
        return decode_meta_file(path, bytes(self._disk.map(path)))[2] if self._disk.exists(path) else 0

    def _check_partitions(self, group: GroupId, generation: int, last: int) -> None:
        region = os.path.join(self._folder, _GROUPS, str(group), str(generation))
        for database in self._disk.list(region):
            for number in self._disk.list(os.path.join(region, database)):
                path = os.path.join(region, database, number, MANIFEST)
                if not self._disk.exists(path):
                    continue
                with suppress(StorageError):  # reported by `folder_check`
                    flushed = decode_manifest(path, bytes(self._disk.map(path))).flushed
                    if flushed > last:
                        reason = f"it has entries up to {flushed}, but the log of group {group} ends at entry {last}"
                        self._result.problems.append(CorruptFile(path, 0, reason))


class _Replays:
    """The content of the log for each group."""

    def __init__(self) -> None:
        self._replays: dict[GroupId, Replay] = {}
        #: For each group, the segment that has its newest record.
        self.paths: dict[GroupId, str] = {}
        #: Groups with an inconsistent record. The later records of such a group are not checked.
        self.bad: set[GroupId] = set()

    def take(self, path: str, record: Record) -> None:
        """Apply the next record. Raises CorruptFile, StorageError 2015."""
        group = GroupId(record.group)
        if group in self.bad:
            return
        self.paths[group] = path
        try:
            change = decode_change(record.kind, record.payload)
            if isinstance(change, Drop):
                self._replays.pop(group, None)
                del self.paths[group]
            else:
                self._replays.setdefault(group, Replay()).apply(change)
        except ValueError as error:
            self.bad.add(group)
            raise CorruptFile(path, 0, f"record {record.index} of group {group}: {error}") from error
        except StorageError:
            self.bad.add(group)
            raise

    def contents(self, group: GroupId) -> LogContents | None:
        """Return the group's content, or None if the group is not in the log. Raises CorruptFile."""
        replay = self._replays.get(group)
        try:
            return None if replay is None else replay.contents()
        except ValueError as error:
            raise CorruptFile(self.paths[group], 0, f"group {group}: {error}") from error
