"""What the meta group agrees on: databases, the drops that the data groups are to carry out, users, and the topology.

    CreateDatabase(path)       checked here, in the log's order: two coordinators cannot both make overlapping ones
    AddPartitions(numbers)     slices of databases that get their first rows (`partitions`)
    BeginDeletion()            of points: its entry says which partitions have any
    BeginDrop(path)            the database takes no more writes; its name stays taken
    BeginDropSeries(pattern)   the series that match go
    EndDrop(number)            all data groups have carried it out: a database's name is free
    ChangeUsers(change)        users, roles, privileges (`users.users`)
    Grow(step)                 nodes, groups, who owns which slots (`topology`)
    PutNotes(as of, texts)     of those who stand on the cluster (`metadata_kv`)

The entry that begins a drop numbers it (`data.drops` says what for). A command is checked when it is applied, so its
outcome is the same on every node; nothing makes the first user, so a node that lacks it stops. A repeated one changes
nothing: a database that is being dropped may be told so again, and a drop that is over may be ended again.

Drops and moves of slots exclude each other: none is begun from when a change is prepared until all slots are open
(2026), and no change goes (`Proceed`) while one is not ended. So each drop finds all that it takes in groups that take
entries, and a move brings along what drops have left.

A time partition (slice) of a database is registered here before its first row is written, so that a read without
bounds of time asks the groups of these only. A database that an earlier version created has no such register: any of
its slices may have points.

Pure; one thread. `version` is the entry that changed it last.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from saros_cluster.data.drops import OVERTAKEN, Drop
from saros_cluster.meta.metadata_kv import Notes, PutNotes
from saros_cluster.placement.slots import MOVED
from saros_cluster.topology import transitions
from saros_cluster.topology.commands import GrowthCommand, Proceed, decode_growth, encode_growth
from saros_cluster.topology.topology import Topology
from saros_cluster.users import commands as changes_of_users
from saros_cluster.users.users import Users
from saros_storage.base.errors import CorruptFile, StorageError, UserMistake
from saros_storage.base.paths import parse_pattern
from saros_storage.schema import CreateDatabase as MakeDatabase
from saros_storage.schema import DeleteDatabase, DeleteSeries, SchemaTree, decode_change, encode_change

#: By database: the slices that may have points, each with the entry that registered it; None: any slice may.
Partitions = Mapping[str, Mapping[int, int] | None]


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """Make a database, with its first partitions. `None` creates one whose partitions are not registered."""

    path: str
    partitions: tuple[int, ...] | None = ()


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Register slices of databases, by path, before rows are written to them. Raises UserMistake 2021."""

    numbers: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class BeginDeletion:
    """Number a deletion of points: it takes those of partitions that are registered before.

    However often and wherever the request is sent again, it concerns the same partitions: otherwise a late attempt
    would take points that were written after the deletion was acknowledged.
    """


@dataclass(frozen=True, slots=True)
class BeginDrop:
    """Begin to drop a database."""

    path: str


@dataclass(frozen=True, slots=True)
class BeginDropSeries:
    """Begin to drop series."""

    pattern: str


@dataclass(frozen=True, slots=True)
class EndDrop:
    """What drop `number` takes is gone everywhere."""

    number: int


@dataclass(frozen=True, slots=True)
class ChangeUsers:
    """Change users, roles or privileges."""

    change: changes_of_users.Command


@dataclass(frozen=True, slots=True)
class Grow:
    """A step of growing or shrinking."""

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
    """The command's bytes."""
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
    """The inverse. Raises CorruptFile."""
    try:
        name, word = json.loads(data)
        return _MAKERS[name](str(word))
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFile("log", 0, f"not a command of the meta group: {error}") from error


def _created(words: list[Any]) -> CreateDatabase:
    path, partitions = words
    return CreateDatabase(str(path), tuple(int(number) for number in partitions))


def _notes_of(words: object) -> PutNotes:
    notes = Notes.from_json(words)
    return PutNotes(notes.version, notes.texts)


class MetaState:
    """See the module."""

    def __init__(self, topology: Topology, users: Users | None = None) -> None:
        """How the cluster begins."""
        self.version = 0
        self.topology = topology
        self.users = users or Users()
        #: Replaced as a whole: any thread may look.
        self.notes = Notes()
        self._tree = SchemaTree()
        #: Replaced as a whole: any thread may look.
        self.partitions: Partitions = {}
        #: Begun and not ended, by number.
        self._drops: dict[int, Drop] = {}

    @property
    def drops(self) -> Mapping[int, Drop]:
        """What is begun and not ended, by rising number."""
        return dict(self._drops)

    @property
    def databases(self) -> list[str]:
        """All that can be used, sorted."""
        return [path for path in self._tree.databases() if not self._is_dropped(path)]

    def _is_dropped(self, path: str) -> bool:
        return DeleteDatabase(path) in self._drops.values()

    def apply(self, command: MetaCommand, index: int) -> None:
        """Carry out a command of entry `index`. Raises UserMistake; then nothing changed.

        Of a `BeginDeletion`, only the index counts.
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
                        "the cluster began with an administrator, and this node without: its cluster.json is not that"
                        " of the others",
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
                raise UserMistake(f"database {path} was dropped meanwhile", code=OVERTAKEN)
        added = {
            path: {**dict.fromkeys(new, index), **known}
            for path, new in numbers.items()
            if (known := self.partitions[path]) is not None
        }
        self.partitions = {**self.partitions, **added}

    def _check_no_moves(self) -> None:
        change = self.topology.change
        if change is not None and change.blocks_drops:
            raise UserMistake("slots are moving: nothing is dropped until they have moved", code=MOVED)

    def dump(self) -> dict[str, object]:
        """As values that JSON knows."""
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
        """The inverse. Raises ValueError, TypeError, KeyError."""
        databases, drops, users, topology = (words[key] for key in ("databases", "drops", "users", "topology"))
        if not isinstance(databases, list) or not isinstance(drops, list):
            raise TypeError("lists of databases and drops are expected")
        if not isinstance(users, dict) or not isinstance(topology, dict):
            raise TypeError("users and a topology are expected")
        state = MetaState(Topology.from_json(topology), Users.load(users))
        for path in databases:
            state._tree.apply(MakeDatabase(str(path)))
        registered = words.get("partitions", {})  # databases of earlier versions have none
        if not isinstance(registered, dict):
            raise TypeError("partitions by database are expected")
        state.partitions = {str(path): _of_runs(registered.get(path)) for path in databases}
        for number, text in drops:
            drop = decode_change(str(text).encode())
            if not isinstance(drop, DeleteDatabase | DeleteSeries):
                raise TypeError(f"no drop: {text}")
            state._drops[int(number)] = drop
        state.version = int(str(words["version"]))
        if "notes" in words:  # a state of before there were any has none
            state.notes = Notes.from_json(words["notes"])
        return state


def _runs(registered: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """Runs of successive slices of one entry: the first, the last, the entry."""
    runs: list[tuple[int, int, int]] = []
    for number, index in sorted(registered.items()):
        if runs and runs[-1][1:] == (number - 1, index):
            runs[-1] = runs[-1][0], number, index
        else:
            runs.append((number, number, index))
    return runs


def _of_runs(runs: Sequence[Sequence[int]] | None) -> Mapping[int, int] | None:
    return None if runs is None else {n: index for first, last, index in runs for n in range(first, last + 1)}
