"""The schema as this node knows it: all databases, and the series of all groups, in one tree (R-3.3).

    meta group       which databases there are, which drops are under way
    group, here      each change as its entry is applied
    group, elsewhere what its members tell, from the last change known here on

Series lie in the group that owns their database's first slice; so two groups never speak of the same device, and the
order in which changes of different groups arrive does not matter. A change that is known already is passed by.

Thread-safe; `tree` may be looked at without a lock (see `SchemaTree`), and what `drops` says shows in the tree that is
looked at afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress

from saros_cluster.data.drops import Drop
from saros_cluster.data.schema_news import SchemaNews
from saros_cluster.raft.messages import GroupId
from saros_storage.errors import UserMistake
from saros_storage.schema import (
    CreateDatabase,
    CreateSeries,
    DeleteDatabase,
    SchemaChange,
    SchemaTree,
    decode_change,
)


class ClusterSchema:
    """See the module."""

    def __init__(self) -> None:
        self.tree = SchemaTree()
        self._lock = threading.Lock()
        #: As the meta group had them last; a group may know of a database earlier, or of an earlier one's end later.
        self._agreed: frozenset[str] = frozenset()
        #: By database: the group that owns its series, since it told of them, and the move that brought them there.
        self._told_by: dict[str, tuple[GroupId, int]] = {}
        #: By group: the entry up to which it has told.
        self._known: dict[GroupId, int] = {}
        #: The entry of the meta group as of which it is known here.
        self.version = 0
        #: Drops that are begun and not ended, by rising number. Never changed in place.
        self.pending: Mapping[int, Drop] = {}
        #: By data group: the newest drop that shows here; 0 is left out. Never changed in place.
        self.drops: Mapping[GroupId, int] = {}

    def agree(self, databases: Iterable[str], pending: Mapping[int, Drop], version: int) -> None:
        """The databases and drops as the meta group has them as of entry `version`."""
        with self._lock:
            self.pending, self.version = pending, version
            before, self._agreed = self._agreed, frozenset(databases)
            for path in sorted(before - self._agreed):
                if not self._is_made_anew(path):
                    self._apply(DeleteDatabase(path))
            for path in sorted(self._agreed):
                if not self.tree.is_database(path):
                    self._apply(CreateDatabase(path))

    def _is_made_anew(self, path: str) -> bool:
        """Whether a dropped database is not the one that its group tells of: the meta group's log may be behind.

        Of a drop whose number nobody says here any more, the group will tell.
        """
        group, _ = self._told_by.get(path, (None, 0))
        numbers = [number for number, drop in self.pending.items() if drop == DeleteDatabase(path)]
        return group is not None and self.drops.get(group, 0) >= max(numbers, default=0)

    def learn_news(self, group: GroupId, news: SchemaNews) -> None:
        """What a group tells, in its order: a replica that is only coming to be knows less than others have told."""
        with self._lock:
            if news.index < self._known.get(group, 0):
                return
            self._known[group] = news.index
            if news.whole:
                self.tree = self._rebuilt(group, news)
            else:
                for change in news.changes:
                    self._learn(group, change, news.since)
            if news.drop > self.drops.get(group, 0):
                self.drops = {**self.drops, group: news.drop}

    def _learn(self, group: GroupId, change: SchemaChange, since: Mapping[str, int]) -> None:
        if isinstance(change, CreateSeries):
            self._add_series(change)
            return
        self._apply(change)
        if isinstance(change, CreateDatabase):
            self._told_by[change.path] = group, since.get(change.path, 0)
        elif isinstance(change, DeleteDatabase):
            self._told_by.pop(change.path, None)
            if change.path in self._agreed:
                self._apply(CreateDatabase(change.path))

    def _rebuilt(self, group: GroupId, news: SchemaNews) -> SchemaTree:
        """A new tree, whose readers never see half of it: this one, with some databases as the news make them.

        A group that series have left may tell of them until it lets go of them: the one that has them now knows more.
        """
        changes = news.changes
        made = {change.path: news.since.get(change.path, 0) for change in changes if isinstance(change, CreateDatabase)}
        told = {path: (group, at) for path, at in made.items() if at >= self._told_by.get(path, (group, 0))[1]}
        gone = {path for path, (by, _) in self._told_by.items() if by == group} - told.keys()
        self._told_by = {path: by for path, by in self._told_by.items() if by[0] != group} | told
        left = SchemaTree()
        for path in made.keys() - told.keys():
            left.apply(CreateDatabase(path))
        tree = SchemaTree()
        for line in self.tree.dump().splitlines():
            change = decode_change(line)
            if isinstance(change, CreateDatabase):
                if change.path not in gone or change.path in self._agreed:
                    tree.apply(change)
            elif not isinstance(change, CreateSeries) or self.tree.database_of(change.device) not in told.keys() | gone:
                tree.apply(change)
        for change in changes:
            # A database may be new to this node; one that overlaps others is older than what the meta group says.
            with suppress(UserMistake):
                if isinstance(change, CreateSeries) and left.database_of(change.device) is not None:
                    continue
                if not (isinstance(change, CreateDatabase) and tree.is_database(change.path)):
                    tree.check(change)
                    tree.apply(change)
        tree.version += self.tree.version + 1
        return tree

    def _add_series(self, change: CreateSeries) -> None:
        known = self.tree.device(change.device)
        new = tuple(s for s in change.series if known is None or s.measurement not in known.series)
        if new:
            self._apply(CreateSeries(change.device, change.aligned, new))

    def _apply(self, change: SchemaChange) -> None:
        with suppress(UserMistake):  # known already, or of something that is gone
            self.tree.check(change)
            self.tree.apply(change)
