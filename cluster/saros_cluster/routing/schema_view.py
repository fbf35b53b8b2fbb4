"""The schema as this node knows it: all databases, and the series of all groups, in one tree.

    meta group       announces the databases, and the pending drops
    local group      announces each change when its entry is applied
    remote group     its members are asked for the changes after the last one known here

Series belong to the group that owns their database's first slice. While slots move, two groups announce the same series
for a while, and the announcements arrive in any order. The announcement that belongs to the later move is used. If a
group releases a database, the series of the new owner remain. A change that is already known is ignored.

Thread-safe. `tree` may be read without a lock (see `SchemaTree`), and drops that `drops` reports are visible in a tree
that is read afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType

from msgspec.structs import replace

from saros_cluster.data.drops import Drop
from saros_cluster.data.schema_delta import SchemaDelta
from saros_cluster.meta.state import Partitions
from saros_cluster.raft.messages import GroupId
from saros_storage.base.errors import UserMistake
from saros_storage.schema import (
    OF_ONE_DEVICE,
    AlterSeries,
    AlterStorage,
    AlterType,
    CreateDatabase,
    CreateSeries,
    DeleteDatabase,
    DeleteSeries,
    SchemaChange,
    SchemaTree,
    decode_change,
)


class ClusterSchema:
    """The schema of the cluster as known to this node, and the authority for each database's series."""

    def __init__(self) -> None:
        self.tree = SchemaTree()
        self._lock = threading.Lock()
        #: The databases of the meta group's last known state. This node may learn of a new database from a data group
        #: earlier, and of the end of an old database later.
        self._agreed: frozenset[str] = frozenset()
        #: For each dropped database, the number of its drop. Groups that have not applied the drop may still announce
        #: the database as it was before.
        self._dropped: dict[str, int] = {}
        #: For each database, the group that announced its series last, and the move that brought the series to that
        #: group. The group is None after it has released the series, until another group announces them.
        self._authorities: dict[str, tuple[GroupId | None, int]] = {}
        #: The databases whose authority is None. Never changed in place.
        self.orphans: frozenset[str] = frozenset()
        #: For each group, the entry up to which its announcements are known.
        self._known: dict[GroupId, int] = {}
        #: The entry of the meta group up to which its state is known.
        self.version = 0
        #: Pending drops, in ascending order of their numbers. Never changed in place.
        self.pending: Mapping[int, Drop] = {}
        #: For each data group, the newest drop that the tree reflects, unless it is 0. Never changed in place.
        self.drops: Mapping[GroupId, int] = {}
        #: For each database, the slices that may have points. Never changed in place.
        self.partitions: Partitions = {}

    def agree(
        self,
        databases: Iterable[str],
        pending: Mapping[int, Drop],
        version: int,
        partitions: Partitions = MappingProxyType({}),
    ) -> None:
        """Apply the meta group's state as of entry `version`: databases, pending drops and partitions."""
        with self._lock:
            self.pending, self.version, self.partitions = pending, version, partitions
            before, self._agreed = self._agreed, frozenset(databases)
            for path in sorted(before - self._agreed):
                self._note_drop(path)
                if not self._is_recreated(path):
                    _apply(self.tree, DeleteDatabase(path))
            for path in self._dropped.keys() & self._agreed:
                del self._dropped[path]
            for path in sorted(self._agreed):
                if not self.tree.is_database(path):
                    _apply(self.tree, CreateDatabase(path))

    def _note_drop(self, path: str) -> None:
        """Remember the drop of a database, and forget the drops that all known groups have announced."""
        everywhere = min((self.drops.get(group, 0) for group in self._known), default=0)
        self._dropped = {known: number for known, number in self._dropped.items() if number > everywhere}
        numbers = [number for number, drop in self.pending.items() if drop == DeleteDatabase(path)]
        if numbers:  # otherwise the meta group's state is a snapshot from after the end of the drop
            self._dropped[path] = max(numbers)

    def _is_recreated(self, path: str) -> bool:
        """Return whether a database that the meta group has dropped was recreated, according to its data group.

        This node's state of the meta group may be older than the data group's announcement. When a drop is no longer
        pending, its effect is announced by the data group itself.
        """
        group, _ = self._authorities.get(path, _NOBODY)
        numbers = [number for number, drop in self.pending.items() if drop == DeleteDatabase(path)]
        return group is not None and self.drops.get(group, 0) >= max(numbers, default=0)

    @property
    def visible_drops(self) -> Mapping[GroupId, int]:
        """For each group, the newest drop that a write prepared with the tree has seen, at most this node's `version`.

        A drop newer than that may follow moves that this node does not know of: series that it removed may belong to
        another group by then, and still be in the tree.
        """
        return {group: min(number, self.version) for group, number in self.drops.items()}

    def applied_index(self, group: GroupId) -> int:
        """Return the entry up to which a group's announcements are known, or 0 if none are known."""
        return self._known.get(group, 0)

    def apply_delta(self, group: GroupId, news: SchemaDelta, behind: int | None = None) -> bool:
        """Apply a group's announcement, unless a newer one is known: a joining member may send old announcements.

        If a member was asked for the announcement, the last argument is the entry that was known here when it was
        asked. If another entry is known by now, apply nothing and return False.
        """
        with self._lock:
            known = self.applied_index(group)
            if behind is not None and behind != known:
                return False
            if news.index >= known:
                self._known[group] = news.index
                self._learn(group, news)
                self.orphans = frozenset(path for path, (by, _) in self._authorities.items() if by is None)
                if news.drop > self.drops.get(group, 0):
                    self.drops = {**self.drops, group: news.drop}
            return True

    def forget(self, orphans: Collection[str]) -> None:
        """Remove the series of databases that are still orphans after all groups were asked: no group has them."""
        with self._lock:
            gone = self.orphans.intersection(orphans)
            if gone:
                for path in gone:
                    del self._authorities[path]
                self.orphans -= gone
                self.tree = self._without(gone)

    def _learn(self, group: GroupId, news: SchemaDelta) -> None:
        made = {c.path: news.since.get(c.path, 0) for c in news.changes if isinstance(c, CreateDatabase)}
        # The group is about to apply the drop. A group that has the database because it was recreated has already
        # applied the drop.
        applied = max(news.drop, self.drops.get(group, 0))
        outdated = {path for path in made if self._dropped.get(path, 0) > applied}
        told = {
            path: (group, at)
            for path, at in made.items()
            if path not in outdated and at >= self._authorities.get(path, _NOBODY)[1]
        }
        if news.whole:
            replaced = told.keys() | self._silent(group, told, news.left)
        else:
            replaced = {path for path in told if self._authorities.get(path, (group, 0))[0] != group}
        tree = self._without(replaced) if replaced else self.tree
        self._authorities |= told
        passed_by = made.keys() - told.keys()
        for change in news.changes:
            if isinstance(change, CreateDatabase):
                if change.path in outdated:
                    continue
                _apply(tree, change)
                if not tree.is_database(change.path):  # it overlaps another one: the meta group's state decides later
                    passed_by.add(change.path)
                elif change.path in told:  # the same delta may have dropped the database before
                    self._authorities[change.path] = told[change.path]
            elif isinstance(change, DeleteDatabase):
                self._end(tree, group, change)
            elif not isinstance(change, _OF_SERIES) or self._is_authoritative(group, _path(change), tree, passed_by):
                _apply(tree, _new_in(tree, change) if isinstance(change, CreateSeries) else change)
        self.tree = tree

    def _silent(self, group: GroupId, told: Collection[str], left: int) -> set[str]:
        """Return the databases that a group no longer announces.

        Databases that left the group by a move become orphans instead: their series remain, without an authority.
        """
        gone = set()
        for path, (by, at) in list(self._authorities.items()):
            if by == group and path not in told:
                if left > at and path in self._agreed:
                    self._authorities[path] = None, at
                else:
                    del self._authorities[path]
                    gone.add(path)
        return gone

    def _is_authoritative(self, group: GroupId, path: str, tree: SchemaTree, passed_by: Collection[str]) -> bool:
        """Return whether the group is the authority for a series or device, which may have moved to another group."""
        if any(path == other or path.startswith(f"{other}.") for other in passed_by):
            return False
        database = tree.database_of(path)
        return database is None or self._authorities.get(database, (group, 0))[0] == group

    def _end(self, tree: SchemaTree, group: GroupId, change: DeleteDatabase) -> None:
        if self._authorities.get(change.path, _NOBODY)[0] in (group, None):
            self._authorities.pop(change.path, None)
            _apply(tree, change)
            if change.path in self._agreed:
                _apply(tree, CreateDatabase(change.path))

    def _without(self, databases: Collection[str]) -> SchemaTree:
        """Return a copy of the tree without the series of some databases. Readers see the old tree or the new one.

        The databases themselves remain if the meta group has them.
        """
        tree = SchemaTree()
        for line in self.tree.dump().splitlines():
            change = decode_change(line)
            if isinstance(change, CreateDatabase):
                stays = change.path not in databases or change.path in self._agreed
            else:
                stays = not isinstance(change, CreateSeries) or self.tree.database_of(change.device) not in databases
            if stays:
                tree.apply(change)
        tree.version += self.tree.version + 1
        return tree


_NOBODY = None, 0
_OF_SERIES = (*OF_ONE_DEVICE, DeleteSeries)


def _path(change: CreateSeries | AlterSeries | AlterType | AlterStorage | DeleteSeries) -> str:
    """Return the device of a change, or the series that the change deletes: announced deletions name single series."""
    return change.pattern if isinstance(change, DeleteSeries) else change.device


def _new_in(tree: SchemaTree, change: CreateSeries) -> CreateSeries:
    known = tree.device(change.device)
    return replace(change, series=tuple(s for s in change.series if known is None or s.measurement not in known.series))


def _apply(tree: SchemaTree, change: SchemaChange) -> None:
    with suppress(UserMistake):  # the change was already applied, or its target no longer exists
        tree.check(change)
        tree.apply(change)
