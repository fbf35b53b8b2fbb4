"""The state that the meta group agrees on: databases, drops that the data groups must apply, users, the topology.

    CreateDatabase(path)       checked in the log's order: two coordinators cannot create overlapping databases
    AddPartitions(numbers)     slices of databases that get their first rows (`partitions`)
    BeginDeletion()            of points: its entry determines which partitions are affected
    BeginDrop(path)            the database takes no more writes; its name stays taken
    BeginDropSeries(pattern)   the matching series are dropped
    EndDrop(number)            all data groups have applied the drop: a dropped database's name is free again
    ChangeUsers(change)        users, roles, privileges (`users.users`)
    Grow(step)                 nodes, groups, owners of slots (`topology`)
    PutNotes(as of, texts)     notes of clients built on the cluster (`metadata_kv`)

The number of a drop is the index of the entry that begins the drop (`data.drops` says how the number is used). A
command is checked when it is applied, so its outcome is the same on every node. No command creates the first user, so a
node that finds no users stops at the first command that changes users. Repeated commands have no effect, since several
nodes may begin the same drop of a database, or end the same drop.

Drops and moves of slots exclude each other: no drop begins (2026) from the time a change is prepared until all its
slots are open, and no change proceeds (`Proceed`) before all drops have ended. So each drop finds all of its data in
groups that accept entries, and a move transfers only data that no drop removes.

A time partition (slice) of a database is registered here before its first row is written, so that a read without a time
range asks only the groups of registered partitions. For a database that was created by an earlier version of Saros, no
slices are registered: any slice may have points.

Pure; one thread. `version` is the entry that last changed the value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from saros_cluster.data.drops import OVERTAKEN, Drop
from saros_cluster.meta.metadata_kv import Notes, PutNotes
from saros_cluster.placement.slots import MOVED
from saros_cluster.topology import transitions
from saros_cluster.topology.commands import GrowthCommand, Proceed, decode_growth, encode_growth
from saros_cluster.topology.topology import Topology
from saros_cluster.users import commands as changes_of_users
from saros_cluster.users.users import Users
from saros_storage.base.errors import CorruptFile, NewerFormat, StorageError, UserMistake
from saros_storage.base.paths import parse_pattern
from saros_storage.schema import CreateDatabase as MakeDatabase
from saros_storage.schema import DeleteDatabase, DeleteSeries, SchemaTree, decode_change, encode_change

#: For each database, the slices that may have points, each with the entry that registered it. None means any slice.
Partitions = Mapping[str, Mapping[int, int] | None]


class CreateDatabase(msgspec.Struct, frozen=True):
    """Create a database with its first partitions.

    If `partitions` is None, the partitions of the database are not registered.
    """

    path: str
    partitions: tuple[int, ...] | None = ()


class AddPartitions(msgspec.Struct, frozen=True):
    """Register slices of the databases at these paths before rows are written to them. Raises UserMistake 2021."""

    numbers: Mapping[str, tuple[int, ...]]


class BeginDeletion(msgspec.Struct, frozen=True):
    """Give a number to a deletion of points, which applies to the partitions that were registered before.

    All attempts of a deletion, wherever and whenever they are sent, apply to the same partitions: otherwise a late
    attempt would delete points that were written after the deletion was acknowledged.
    """


class BeginDrop(msgspec.Struct, frozen=True):
    """Begin to drop a database."""

    path: str


class BeginDropSeries(msgspec.Struct, frozen=True):
    """Begin to drop series."""

    pattern: str


class EndDrop(msgspec.Struct, frozen=True):
    """End drop `number`: every group has removed its data."""

    number: int


class ChangeUsers(msgspec.Struct, frozen=True):
    """Change users, roles or privileges."""

    change: changes_of_users.Command


class Grow(msgspec.Struct, frozen=True):
    """Apply a step of growing or shrinking the cluster."""

    step: GrowthCommand


MetaCommand = (
    CreateDatabase
    | AddPartitions
    | BeginDeletion
    | BeginDrop
    | BeginDropSeries
    | EndDrop
    | ChangeUsers
    | Grow
    | PutNotes
)
_MAKERS: dict[str, Callable[[str], MetaCommand]] = {
    "create database": lambda path: CreateDatabase(path, None),
    "create partitioned database": lambda text: _created(json.loads(text)),
    "add partitions": lambda text: AddPartitions({p: tuple(numbers) for p, numbers in json.loads(text).items()}),
    "begin deletion": lambda _: BeginDeletion(),
    "begin drop": BeginDrop,
    "begin drop series": BeginDropSeries,
    "end drop": lambda number: EndDrop(int(number)),
    "change users": lambda text: ChangeUsers(changes_of_users.decode_command(text.encode())),
    "grow": lambda text: Grow(decode_growth(text)),
    "put notes": lambda text: _notes_of(json.loads(text)),
}


def encode_meta(command: MetaCommand) -> bytes:
    """Return the bytes of a command."""
    match command:
        case CreateDatabase(path, None):
            words = ["create database", path]
        case CreateDatabase(path, partitions):
            words = ["create partitioned database", json.dumps([path, partitions], ensure_ascii=False)]
        case AddPartitions(numbers):
            words = ["add partitions", json.dumps(dict(numbers), ensure_ascii=False)]
        case BeginDeletion():
            words = ["begin deletion", ""]
        case BeginDrop(path):
            words = ["begin drop", path]
        case BeginDropSeries(pattern):
            words = ["begin drop series", pattern]
        case EndDrop(number):
            words = ["end drop", str(number)]
        case ChangeUsers(change):
            words = ["change users", changes_of_users.encode_command(change).decode()]
        case Grow(step):
            words = ["grow", encode_growth(step)]
        case PutNotes(version, texts):
            words = ["put notes", json.dumps([version, dict(texts)], ensure_ascii=False)]
    return json.dumps(words, ensure_ascii=False).encode()


def decode_meta(data: bytes) -> MetaCommand:
    """Parse the bytes of a command. Raises CorruptFile; NewerFormat for an unknown command."""
    try:
        name, word = json.loads(data)
        if isinstance(name, str) and name not in _MAKERS:
            raise NewerFormat("the log of the meta group", f"command {name!r}")
        return _MAKERS[name](str(word))
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFile("log", 0, f"invalid meta group command: {error}") from error


def _created(words: list[Any]) -> CreateDatabase:
    path, partitions = words
    return CreateDatabase(str(path), tuple(int(number) for number in partitions))


def _notes_of(words: object) -> PutNotes:
    notes = Notes.from_json(words)
    return PutNotes(notes.version, notes.texts)


class MetaState:
    """The databases, drops, users, notes and topology as of one entry of the meta group's log."""

    def __init__(self, topology: Topology, users: Users | None = None) -> None:
        """Start with the state of a new cluster."""
        self.version = 0
        self.topology = topology
        self.users = users or Users()
        #: The value is never changed in place, so any thread may read it.
        self.notes = Notes()
        self._tree = SchemaTree()
        #: The value is never changed in place, so any thread may read it.
        self.partitions: Partitions = {}
        #: The drops that have begun and not ended, keyed by number.
        self._drops: dict[int, Drop] = {}

    @property
    def drops(self) -> Mapping[int, Drop]:
        """The drops that have begun and not ended, in ascending order of their numbers."""
        return dict(self._drops)

    @property
    def databases(self) -> list[str]:
        """The databases that are not being dropped, sorted."""
        return [path for path in self._tree.databases() if not self._is_dropped(path)]

    def _is_dropped(self, path: str) -> bool:
        return DeleteDatabase(path) in self._drops.values()

    def apply(self, command: MetaCommand, index: int) -> None:
        """Apply the command of entry `index`. If it raises UserMistake, nothing has changed.

        A `BeginDeletion` only needs the index.
        """
        match command:
            case CreateDatabase(path, partitions):
                self._create_database(path, partitions, index)
            case AddPartitions(numbers):
                self._add_partitions(numbers, index)
            case BeginDrop(path):
                if not self._tree.is_database(path):
                    raise UserMistake(f"database {path} does not exist", code=504)
                if not self._is_dropped(path):
                    self._check_no_moves()
                    self._drops[index] = DeleteDatabase(path)
            case BeginDropSeries(pattern):
                parse_pattern(pattern)
                self._check_no_moves()
                self._drops[index] = DeleteSeries(pattern)
            case EndDrop(number):
                drop = self._drops.pop(number, None)
                if isinstance(drop, DeleteDatabase):
                    self._tree.apply(drop)
                    self.partitions = {path: known for path, known in self.partitions.items() if path != drop.path}
            case ChangeUsers(users_change):
                if not self.users.users:
                    raise StorageError(
                        "the cluster was created with an administrator, but this node was not; copy the"
                        " cluster.json of another node",
                        code=2004,
                    )
                self.users = self.users.apply(users_change)
            case PutNotes():
                self.notes = self.notes.put(command, index)
            case Grow(Proceed()) if self._drops:
                pass
            case Grow(step):
                before, self.topology = self.topology, transitions.apply(self.topology, step, index)
                if self.topology is not before:
                    self.notes = self.notes.as_of(index)
        self.version = index

    def _create_database(self, path: str, partitions: tuple[int, ...] | None, index: int) -> None:
        change = MakeDatabase(path)
        self._tree.check(change)
        self._tree.apply(change)
        registered = None if partitions is None else dict.fromkeys(partitions, index)
        self.partitions = {**self.partitions, path: registered}

    def _add_partitions(self, numbers: Mapping[str, tuple[int, ...]], index: int) -> None:
        for path in numbers:
            if path not in self.partitions or self._is_dropped(path):
                raise UserMistake(f"database {path} was dropped concurrently", code=OVERTAKEN)
        added = {
            path: {**dict.fromkeys(new, index), **known}
            for path, new in numbers.items()
            if (known := self.partitions[path]) is not None
        }
        self.partitions = {**self.partitions, **added}

    def _check_no_moves(self) -> None:
        change = self.topology.change
        if change is not None and change.blocks_drops:
            raise UserMistake("slots are moving; retry the drop after the move", code=MOVED)

    def dump(self) -> dict[str, object]:
        """Return JSON values."""
        drops = [[number, encode_change(drop).decode()] for number, drop in self._drops.items()]
        databases = self._tree.databases()
        return {
            "version": self.version,
            "databases": databases,
            "partitions": {path: _runs(known) for path, known in self.partitions.items() if known is not None},
            "drops": drops,
            "users": self.users.dump(),
            "topology": self.topology.to_json(),
            "notes": self.notes.to_json(),
        }

    @staticmethod
    def load(words: dict[str, object]) -> MetaState:
        """Parse the values of `dump`. Raises ValueError, TypeError, KeyError."""
        databases, drops, users, topology = (words[key] for key in ("databases", "drops", "users", "topology"))
        if not isinstance(databases, list) or not isinstance(drops, list):
            raise TypeError("expected lists of databases and drops")
        if not isinstance(users, dict) or not isinstance(topology, dict):
            raise TypeError("expected users and a topology")
        state = MetaState(Topology.from_json(topology), Users.load(users))
        for path in databases:
            state._tree.apply(MakeDatabase(str(path)))
        registered = words.get("partitions", {})  # missing in files of earlier versions
        if not isinstance(registered, dict):
            raise TypeError("expected partitions by database")
        state.partitions = {str(path): _of_runs(registered.get(path)) for path in databases}
        for number, text in drops:
            drop = decode_change(str(text).encode())
            if not isinstance(drop, DeleteDatabase | DeleteSeries):
                raise TypeError(f"not a drop: {text}")
            state._drops[int(number)] = drop
        state.version = int(str(words["version"]))
        if "notes" in words:  # missing in files of earlier versions
            state.notes = Notes.from_json(words["notes"])
        return state


def _runs(registered: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """Return the runs of successive slices that the same entry registered, each as (first slice, last slice, entry)."""
    runs: list[tuple[int, int, int]] = []
    for number, index in sorted(registered.items()):
        if runs and runs[-1][1:] == (number - 1, index):
            runs[-1] = runs[-1][0], number, index
        else:
            runs.append((number, number, index))
    return runs


def _of_runs(runs: Sequence[Sequence[int]] | None) -> Mapping[int, int] | None:
    return None if runs is None else {n: index for first, last, index in runs for n in range(first, last + 1)}
