"""The schema tree of databases, devices and series.

    root ─ plant ◆ ─ hall ─ pump1 {temperature, pressure}          ◆ database   {} device
                   └ line2 ─ pump7 {temperature}

A change is first checked as a whole (if `check` raises an exception, nothing has changed), then logged by the store,
then applied. Databases do not nest. A series is a leaf: it has no children. The names and aliases of a device's series
are unique, except that an alias may equal the name of the same series.

Only one thread at a time changes the tree (under the store's lock). Readers need no lock: looking up a device is one
dictionary access that returns an immutable value, and a walk copies the children of each node that it visits. `version`
grows with every change; plan caches and sessions compare it to detect changes.

Series below a tree node named `_saros` are internal. Their devices are found only by path: no pattern matches them, so
that statements neither show, read nor count these series, and only deleting the database removes them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from saros_storage.base.errors import UserMistake
from saros_storage.base.identity_cache import cached_by_identity
from saros_storage.base.paths import (
    PATH_CHARACTERS_MAX,
    PathPattern,
    check_path,
    join_nodes,
    parent_of,
    parse_pattern,
    split_path,
)
from saros_storage.base.types import DataType, Encoding
from saros_storage.scan.type_conversion import check_change
from saros_storage.schema.catalogue import Catalogue, Entry
from saros_storage.schema.changes import (
    OF_ONE_DEVICE,
    AlterSeries,
    AlterStorage,
    AlterType,
    CreateDatabase,
    CreateSeries,
    DeleteDatabase,
    DeleteSeries,
    SchemaChange,
    SetEntry,
    SetTtl,
    UnsetTtl,
    decode_change,
    encode_change,
)
from saros_storage.schema.model import LEGAL_ENCODINGS, DeviceSchema, SeriesSchema, check_deadband, retyped
from saros_storage.schema.ttl_rules import TtlRule, TtlRules

State = frozenset[int]
#: The name of the tree nodes below which all series are internal.
INTERNAL_NODE = "_saros"
#: Maximum number of cached sets of series. Devices of one kind often have equal sets; a cached set is checked and
#: indexed only once.
_SERIES_SETS_MAX = 4_096


_NO_CHILDREN: Mapping[str, _Node] = MappingProxyType({})


class _Node:
    """A node of the tree, which may be a database or a device (if `device` is not None)."""

    __slots__ = ("children", "database", "device")

    def __init__(self) -> None:
        #: A shared empty mapping until `make_child` replaces it with a dictionary, since most nodes have no children.
        self.children: Mapping[str, _Node] = _NO_CHILDREN
        self.database = False
        self.device: DeviceSchema | None = None

    def make_child(self, name: str) -> _Node:
        """Return the child with this name; create it if it is missing."""
        child = self.children.get(name)
        if child is None:
            child = _Node()
            if isinstance(self.children, dict):
                self.children[name] = child
            else:
                self.children = {name: child}
        return child

    def remove_child(self, name: str) -> None:
        """Remove a child."""
        assert isinstance(self.children, dict)
        del self.children[name]

    @property
    def empty(self) -> bool:
        return not (self.children or self.database or self.device)


#: The parent node of new devices, and the path of the database that contains this node (None: there is no database).
_Parent = tuple[_Node, str | None]


def _matches(pattern: PathPattern, state: State, series: SeriesSchema) -> bool:
    """Return whether the pattern, in the state after the series' device, accepts its name or alias."""
    if pattern.accepts_after(state, series.measurement):
        return True
    return series.alias is not None and pattern.accepts_after(state, series.alias)


class _Place(msgspec.Struct, frozen=True):
    """The facts about a node that decide which new devices may be created directly below it."""

    database: str | None
    #: Paths of the node and of its ancestors, except root.
    paths: frozenset[str]
    #: The names of the node's children and of its series, which a new device cannot have.
    children: Container[str]
    series: Container[str]

    def is_free(self, name: str) -> bool:
        """Return whether the node has no child or series of this name."""
        return name not in self.children and name not in self.series


class SchemaTree:
    """A schema: databases, devices and series, TTL rules, and the catalogue."""

    def __init__(self) -> None:
        self.version = 0
        #: The TTL rules; an immutable value, replaced as a whole.
        self.ttl = TtlRules()
        #: The catalogue of templates and similar entries; an immutable value, replaced as a whole.
        self.catalogue = Catalogue()
        self._root = _Node()
        self._devices: dict[str, DeviceSchema] = {}
        #: Paths of internal devices.
        self._internal: set[str] = set()
        self._databases: dict[str, None] = {}

    # ------------------------------------------------------------------ look-up

    def databases(self) -> list[str]:
        """Return all databases, sorted."""
        return sorted(self._databases)

    def is_database(self, path: str) -> bool:
        """Return whether the path is a database."""
        return path in self._databases

    def database_of(self, path: str) -> str | None:
        """Return the database at or above the path, or None."""
        nodes = split_path(path)
        for count in range(2, len(nodes) + 1):
            prefix = join_nodes(nodes[:count])
            if prefix in self._databases:
                return prefix
        return None

    @property
    def device_count(self) -> int:
        """The number of devices, without internal ones."""
        return len(self._devices) - len(self._internal)

    def device(self, path: str) -> DeviceSchema | None:
        """Return the device with this canonical path, or None."""
        return self._devices.get(path)

    def match_databases(self, pattern: PathPattern) -> list[str]:
        """Return the databases that the pattern matches, in path order."""
        return [p for p in self.databases() if pattern.matches(split_path(p))]

    def match_devices(self, pattern: PathPattern) -> list[DeviceSchema]:
        """Return the devices that the pattern matches, in path order."""
        return [*self.walk_devices(pattern)]

    def walk_devices(self, pattern: PathPattern) -> Iterator[DeviceSchema]:
        """Yield the devices that the pattern matches, in path order."""
        return (n.device for _, n, state in self._walk(pattern) if n.device is not None and pattern.accepts(state))

    def match_series(self, pattern: PathPattern) -> list[tuple[DeviceSchema, SeriesSchema]]:
        """Return the series whose path (by name or alias) the pattern matches, in path order."""
        return [(device, device.series[name]) for device, names in self.walk_series(pattern) for name in names]

    def walk_series(self, pattern: PathPattern) -> Iterator[tuple[DeviceSchema, list[str]]]:
        """Yield the devices with series that the pattern matches (by name or alias), in path order.

        Each comes with the sorted names of these series.
        """
        for _, node, state in self._walk(pattern):
            device = node.device
            if device is None:
                continue
            names = sorted(device.series)
            if not pattern.accepts_below(state):
                names = [name for name in names if _matches(pattern, state, device.series[name])]
            if names:
                yield device, names

    def child_paths(self, pattern: PathPattern) -> list[str]:
        """Return the paths of all children and series of the nodes that the pattern matches, sorted."""
        return sorted({join_nodes((*nodes, child)) for nodes, child in self._children(pattern)})

    def child_nodes(self, pattern: PathPattern) -> list[str]:
        """Return the distinct last nodes of the paths that `child_paths` returns, sorted."""
        return sorted({child for _, child in self._children(pattern)})

    def nodes_at_level(self, pattern: PathPattern, level: int) -> list[str]:
        """Return the distinct prefixes of `level` + 1 nodes of all paths that match the pattern, sorted."""
        found = set()
        for nodes, node, state in self._walk(pattern):
            if len(nodes) > level and pattern.accepts(state):
                found.add(join_nodes(nodes[: level + 1]))
                continue  # the series of a device have the same prefix
            leaves = [*nodes_of_device(nodes, node.device)]
            for path, reached in [(nodes, state), *((p, pattern.advance(state, p[-1])) for p in leaves)]:
                if pattern.accepts(reached) and len(path) > level:
                    found.add(join_nodes(path[: level + 1]))
        return sorted(found)

    def _children(self, pattern: PathPattern) -> Iterator[tuple[tuple[str, ...], str]]:
        for nodes, node, state in self._walk(pattern):
            if pattern.accepts(state):
                for child in (*node.children, *(node.device.series if node.device is not None else ())):
                    if child != INTERNAL_NODE:
                        yield nodes, child

    def _walk(self, pattern: PathPattern) -> Iterator[tuple[tuple[str, ...], _Node, State]]:
        """Yield the nodes, except internal ones, that match or may be above a match, in path order."""
        stack: list[tuple[tuple[str, ...], _Node, State]] = [
            (("root",), self._root, pattern.advance(pattern.start(), "root"))
        ]
        while stack:
            nodes, node, state = stack.pop()
            if not state:
                continue
            yield nodes, node, state
            for name in sorted(node.children, reverse=True):
                child = node.children.get(name)
                if child is not None and name != INTERNAL_NODE:
                    stack.append(((*nodes, name), child, pattern.advance(state, name)))

    # ------------------------------------------------------------------ changes

    def check(self, change: SchemaChange) -> None:
        """Raise UserMistake if the change cannot be applied."""
        if isinstance(change, CreateDatabase):
            self._check_database(change.path)
        elif isinstance(change, DeleteDatabase):
            if change.path not in self._databases:
                raise UserMistake(f"database {change.path} does not exist", code=504)
        elif isinstance(change, CreateSeries):
            self._check_series(change)
        elif isinstance(change, AlterSeries):
            self._check_alter(change)
        elif isinstance(change, AlterType):
            self._check_type(change)
        elif isinstance(change, AlterStorage):
            self._check_storage(change)
        elif isinstance(change, SetTtl):
            self.ttl.check(change.pattern)
        elif isinstance(change, SetEntry):
            self.catalogue.check(change.kind, change.key, change.text)
        else:
            parse_pattern(change.pattern)

    def dry_run(self, changes: Iterable[SchemaChange], devices: Iterable[str] = ()) -> SchemaTree:
        """Return the tree after the changes, reduced to the changed devices and `devices`. Raises like `check`.

        Use the result to look up databases and devices, not to match patterns. This tree does not change, and the cost
        of a dry run does not grow with the number of devices in this tree.
        """
        changes, devices = list(changes), list(devices)
        trial = SchemaTree()
        trial._begin_trial(self)
        if trial._create_new_devices(self, changes):
            known = [(path, found) for path in devices if (found := self.device(path)) is not None]
            trial._devices = {**dict(known), **trial._devices}
            return trial
        trial = SchemaTree()
        trial._begin_trial(self)
        changed = [change.device for change in changes if isinstance(change, OF_ONE_DEVICE)]
        for device in dict.fromkeys([*devices, *changed]):
            trial._copy_around(self, device)
        for change in changes:
            trial.check(change)
            trial.apply(change)
        return trial

    def _begin_trial(self, source: SchemaTree) -> None:
        """Copy the databases, TTL rules and catalogue of `source` to this empty tree."""
        self._databases = dict(source._databases)
        self.ttl = source.ttl
        self.catalogue = source.catalogue

    def _create_new_devices(self, source: SchemaTree, changes: Sequence[SchemaChange]) -> bool:
        """Check and apply changes that create databases and new devices with plain series, at a low cost per device.

        Returns False if there are changes of another kind, if the path of a device is in use in `source`, if one new
        device is above another, or if a device or its series need more checks. Some changes may already be applied
        then.
        """
        places: dict[str, _Place] = {}
        inner: set[str] = set()
        for change in changes:
            if isinstance(change, CreateDatabase):
                self._check_database(change.path)
                self._databases[change.path] = None
                places.clear()
                continue
            if not isinstance(change, CreateSeries):
                return False
            device = change.device
            above = parent_of(device)
            place = places.get(above)
            if place is None:
                place = places[above] = self._place_below(source, above)
                inner.update(place.paths)
                if not place.paths.isdisjoint(self._devices):
                    return False
            longest = _longest_name(change.series)
            is_free = place.is_free(device[len(above) + 1 :])
            if place.database is None or not is_free or device in self._devices or device in inner:
                return False
            if longest is None or len(device) + 1 + longest > PATH_CHARACTERS_MAX:
                return False
            self._devices[device] = DeviceSchema(device, place.database, change.aligned, _by_measurement(change.series))
        return True

    def _place_below(self, source: SchemaTree, path: str) -> _Place:
        """Return the place below node `path` of `source`; its database is None if a series is at or above the node."""
        nodes = split_path(path)
        database = self.database_of(path) if source._series_above(path) is None else None
        node, device = source._find(path), source.device(path)
        paths = frozenset(join_nodes(nodes[:count]) for count in range(2, len(nodes) + 1))
        children = _NO_CHILDREN if node is None else node.children
        return _Place(database, paths, children, () if device is None else device.series)

    def _copy_around(self, source: SchemaTree, path: str) -> None:
        """Copy from `source` a device, the devices above it, and the names of the nodes directly below it."""
        nodes = split_path(path)
        for count in range(2, len(nodes) + 1):
            above = join_nodes(nodes[:count])
            known = source.device(above)
            if known is not None and above not in self._devices:
                self._place(known)
        found = source._find(path)
        for name in [] if found is None else found.children:
            self._node(f"{path}.{name}")

    def apply(self, change: SchemaChange) -> None:
        """Apply a change that has passed `check`."""
        if isinstance(change, CreateDatabase):
            self._node(change.path).database = True
            self._databases[change.path] = None
        elif isinstance(change, DeleteDatabase):
            self._delete_database(change.path)
        elif isinstance(change, CreateSeries):
            self._create_series(change, {})
        elif isinstance(change, DeleteSeries):
            self._delete_series(change.pattern)
        elif isinstance(change, SetTtl):
            self.ttl = self.ttl.with_rule(change.pattern, TtlRule(change.number, change.milliseconds))
        elif isinstance(change, UnsetTtl):
            self.ttl = self.ttl.with_rule(change.pattern, TtlRule(change.number, unset=True))
        elif isinstance(change, SetEntry):
            self.catalogue = self.catalogue.with_entry(change.kind, change.key, Entry(change.number, change.text))
        elif isinstance(change, AlterType):
            self._retype(change)
        elif isinstance(change, AlterStorage):
            self._store_otherwise(change)
        else:
            self._alter(change)
        self.version += 1

    def apply_all(self, changes: Iterable[SchemaChange]) -> None:
        """Apply changes in order. Each change must pass `check` once the changes before it are applied."""
        parents: dict[str, _Parent] = {}
        for change in changes:
            if isinstance(change, CreateSeries):
                self._create_series(change, parents)
                self.version += 1
            else:
                parents.clear()  # the change may have removed nodes or created a database
                self.apply(change)

    def numbered(self, changes: Iterable[SchemaChange]) -> list[SchemaChange]:
        """Return the changes; TTL rules and catalogue entries get the number after their current number in the tree."""
        return [self._numbered(change) for change in changes]

    def _numbered(self, change: SchemaChange) -> SchemaChange:
        if isinstance(change, SetTtl | UnsetTtl):
            return replace(change, number=self.ttl.number(change.pattern) + 1)
        if isinstance(change, SetEntry):
            return replace(change, number=self.catalogue.number(change.kind, change.key) + 1)
        return change

    def dump(self) -> bytes:
        """Encode the tree as the changes that create it, one change per line."""
        changes: list[SchemaChange] = [CreateDatabase(path) for path in self.databases()]
        for path in sorted(self._devices):
            device = self._devices[path]
            changes.append(CreateSeries(path, device.aligned, tuple(device.series.values())))
        for pattern, rule in sorted(self.ttl.by_pattern.items()):
            unset = UnsetTtl(pattern, rule.number)
            changes.append(unset if rule.unset else SetTtl(pattern, rule.milliseconds, rule.number))
        for (kind, key), entry in sorted(self.catalogue.by_key.items(), key=itemgetter(0)):
            changes.append(SetEntry(kind, key, entry.text, entry.number))
        return b"".join(encode_change(change) + b"\n" for change in changes)

    @staticmethod
    def load(data: bytes) -> SchemaTree:
        """Load a tree from the result of `dump`. Raises CorruptFile."""
        tree = SchemaTree()
        tree.apply_all(map(decode_change, data.splitlines()))
        return tree

    # ------------------------------------------------------------------ rules

    def _check_database(self, path: str) -> None:
        nodes = split_path(path)
        if len(nodes) < 2:
            raise UserMistake(f"{path} cannot be a database: it needs a node below root", code=509)
        around = self.database_of(path)
        if around is not None:
            raise UserMistake(f"{around} has already been created as database", code=501)
        if any(other.startswith(path + ".") for other in self._databases):
            raise UserMistake(f"some children of {path} have already been created as database", code=529)

    def _check_series(self, change: CreateSeries) -> None:
        if self.database_of(change.device) is None:
            raise UserMistake(f"no database holds {change.device}", code=504)
        device = self._devices.get(change.device)
        if device is not None and device.aligned != change.aligned:
            kind = "aligned" if device.aligned else "not aligned"
            raise UserMistake(f"device {change.device} is {kind}; this cannot be changed", code=511)
        self._check_not_below_a_series(change.device, code=507 if change.if_missing else 506)
        node = self._find(change.device)
        longest = _longest_name(change.series) if device is None and (node is None or not node.children) else None
        if longest is not None and len(change.device) + 1 + longest <= PATH_CHARACTERS_MAX:
            return
        taken = dict.fromkeys(_names(device)) if device is not None else {}
        for series in change.series:
            path = f"{change.device}.{series.measurement}"
            check_path(path)
            if series.measurement in taken:
                raise UserMistake(f"Path [{path}] already exist", code=503)
            if node is not None and series.measurement in node.children:
                raise UserMistake(f"Path [{path}] already exist", code=506)
            taken[series.measurement] = None
            if series.alias not in (None, series.measurement):
                check_path(f"{change.device}.{series.alias}")
                if series.alias in taken:
                    raise UserMistake(f"Alias [{series.alias}] for Path [{path}] already exist", code=505)
                taken[series.alias] = None
            _check_properties(series)
            _check_encoding(series.type, series.encoding)
            check_deadband(path, series, aligned=change.aligned)

    def _check_not_below_a_series(self, device: str, *, code: int) -> None:
        path = self._series_above(device)
        if path is not None:
            raise UserMistake(f"Path [{path}] already exist", code=code)

    def _series_above(self, device: str) -> str | None:
        """Return the path of a series at or above a device's path, or None."""
        nodes = split_path(device)
        for count in range(3, len(nodes) + 1):
            above = self._devices.get(join_nodes(nodes[: count - 1]))
            if above is not None and nodes[count - 1] in above.series:
                return join_nodes(nodes[:count])
        return None

    def _check_type(self, change: AlterType) -> None:
        _, series, path = self._altered(change.device, change.measurement)
        check_change(path, series.type, series.earlier, change.type)
        _check_encoding(change.type, change.encoding)

    def _check_storage(self, change: AlterStorage) -> None:
        for measurement in change.measurements:
            _, series, _ = self._altered(change.device, measurement)
            if change.encoding is not None:
                _check_encoding(series.type, change.encoding)

    def _altered(self, path: str, measurement: str) -> tuple[DeviceSchema, SeriesSchema, str]:
        """Return the device and the series to be altered, and the path of the series. Raises UserMistake 508."""
        device = self._devices.get(path)
        series = device.series.get(measurement) if device is not None else None
        path = f"{path}.{measurement}"
        if device is None or series is None:
            raise UserMistake(f"Path [{path}] does not exist", code=508)
        return device, series, path

    def _check_alter(self, change: AlterSeries) -> None:
        device, series, path = self._altered(change.device, change.measurement)
        known = (None, series.alias, series.measurement)
        check_path(f"{change.device}.{change.alias}")
        if change.alias not in known and change.alias in set(_names(device)):
            raise UserMistake(f"Alias [{change.alias}] for Path [{path}] already exist", code=507)
        _check_properties(replace(series, tags=change.tags, attributes=change.attributes))

    # ------------------------------------------------------------------ effects

    def _create_series(self, change: CreateSeries, parents: dict[str, _Parent]) -> None:
        """Create series, and their device if it is new. `parents` caches the parents of new devices by parent path."""
        path = change.device
        device = self._devices.get(path)
        if device is not None:
            added = {s.measurement: s for s in change.series}
            self._place(replace(device, series={**device.series, **added}))
            return
        above = parent_of(path)
        parent = parents.get(above)
        if parent is None:
            parent = parents[above] = self._node(above), self.database_of(above)
        node, database = parent[0], parent[1] or self.database_of(path)
        assert database is not None
        device = DeviceSchema(path, database, change.aligned, _by_measurement(change.series))
        node.make_child(path[len(above) + 1 :]).device = device
        self._devices[path] = device
        if is_internal(path):
            self._internal.add(path)

    def _alter(self, change: AlterSeries) -> None:
        device = self._devices[change.device]
        series = replace(
            device.series[change.measurement], alias=change.alias, tags=change.tags, attributes=change.attributes
        )
        self._place(replace(device, series={**device.series, change.measurement: series}))

    def _retype(self, change: AlterType) -> None:
        device = self._devices[change.device]
        series = device.series[change.measurement]
        if series.type is not change.type:
            changed = retyped(series, change.type, change.encoding)
            self._place(replace(device, series={**device.series, change.measurement: changed}))

    def _store_otherwise(self, change: AlterStorage) -> None:
        device = self._devices[change.device]
        changed = {}
        for name in change.measurements:
            known = device.series[name]
            encoding = known.encoding if change.encoding is None else change.encoding
            compressor = known.compressor if change.compressor is None else change.compressor
            changed[name] = replace(known, encoding=encoding, compressor=compressor)
        self._place(replace(device, series={**device.series, **changed}))

    def _delete_series(self, pattern: str) -> None:
        gone: dict[str, set[str]] = {}
        for device, series in self.match_series(parse_pattern(pattern)):
            gone.setdefault(device.path, set()).add(series.measurement)
        for path, names in gone.items():
            device = self._devices[path]
            left = {n: s for n, s in device.series.items() if n not in names}
            if left:
                self._place(replace(device, series=left))
            else:
                self._remove_device(path)

    def _delete_database(self, path: str) -> None:
        for device in [d.path for d in self._devices.values() if d.database == path]:
            self._remove_device(device)
        self._node(path).database = False
        del self._databases[path]
        self._prune(split_path(path))

    def _place(self, device: DeviceSchema) -> None:
        self._node(device.path).device = device
        self._devices[device.path] = device
        if is_internal(device.path):
            self._internal.add(device.path)

    def _remove_device(self, path: str) -> None:
        self._node(path).device = None
        del self._devices[path]
        self._internal.discard(path)
        self._prune(split_path(path))

    def _prune(self, nodes: tuple[str, ...]) -> None:
        """Remove the empty nodes at the end of a path, beginning with the last node."""
        chain = [self._root]
        for name in nodes[1:]:
            chain.append(chain[-1].children[name])
        for parent, name, node in reversed(list(zip(chain, nodes[1:], chain[1:], strict=False))):
            if not node.empty:
                break
            parent.remove_child(name)

    def _node(self, path: str) -> _Node:
        node = self._root
        for name in split_path(path)[1:]:
            node = node.make_child(name)
        return node

    def _find(self, path: str) -> _Node | None:
        node: _Node | None = self._root
        for name in split_path(path)[1:]:
            if node is None:
                break
            node = node.children.get(name)
        return node


def is_internal(path: str) -> bool:
    """Return whether a canonical path has a node named `_saros`, so that its series are internal."""
    return INTERNAL_NODE in path and f".{INTERNAL_NODE}." in f"{path}."


def nodes_of_device(nodes: tuple[str, ...], device: DeviceSchema | None) -> Iterator[tuple[str, ...]]:
    """Yield the paths of a device's series, as nodes."""
    if device is not None:
        yield from ((*nodes, name) for name in device.series)


def _names(device: DeviceSchema) -> Iterator[str]:
    """Yield the names and the aliases of all series of a device."""
    for name, series in device.series.items():
        yield name
        if series.alias is not None:
            yield series.alias


@cached_by_identity(_SERIES_SETS_MAX)
def _by_measurement(series: tuple[SeriesSchema, ...]) -> Mapping[str, SeriesSchema]:
    """Return the series of a new device by measurement; devices created with the same series share the mapping."""
    return {s.measurement: s for s in series}


@cached_by_identity(_SERIES_SETS_MAX)
def _longest_name(series: tuple[SeriesSchema, ...]) -> int | None:
    """Return the length of the longest measurement name, or None if the series must be checked one by one.

    If the result is not None, the names, properties and encodings of these series are legal for any new device.
    """
    names = {s.measurement for s in series}
    if len(names) < len(series) or any(s.alias is not None or s.deadband is not None for s in series):
        return None
    if any(s.tags or s.attributes or s.encoding not in LEGAL_ENCODINGS[s.type] for s in series):
        return None
    if any("\0" in name for name in names):
        return None
    return max(map(len, names), default=0)


def _check_properties(series: SeriesSchema) -> None:
    if series.tags.keys() & series.attributes.keys():
        raise UserMistake("Tag and attribute shouldn't have the same property key", code=507)


def _check_encoding(type_: DataType, encoding: Encoding) -> None:
    if encoding not in LEGAL_ENCODINGS[type_]:
        raise UserMistake(f"encoding {encoding.name} does not support {type_.name}", code=507)
