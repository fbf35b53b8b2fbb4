"""`<data>/cluster.json`: the cluster and the node that a folder belongs to.

A folder without this file is a single database.

    {"format": 1, "cluster": "<uuid>", "node": 2, "replicas": 3, "slots": 10000, "meta_voters": 5,
     "nodes": {"1": {"peer": "hostA:6668", "client": "hostA:6667"}, "2": ...},
     "joined": {"peer": "hostD:6668", "client": "hostD:6667", "rack": "b"}        only on a node that joined later
     "administrator": {"name": "root", "hash": "$scrypt$...", "must_change": true}}    if missing, there are no users

The file is written once, when the cluster is created. The file describes the cluster when it was created, and differs
between the first nodes only in `node`. Later changes are in the meta group's state. Every mistake in the file raises an
error that names the file and the key.

A `ClusterFile` is a value and always valid. `load` and `save` may be called from any thread.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import msgspec
from msgspec import structs

from saros_cluster.placement.members import META_VOTERS
from saros_cluster.placement.ring import NodeId
from saros_cluster.users.commands import CreateUser
from saros_cluster.users.users import Users
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.folder.layout import write_durably
from saros_storage.io.disk import Disk

CLUSTER_FILE = "cluster.json"
_FORMAT = 1
#: The limit of slots: 1000 for each of a thousand nodes. A larger number of slots would only slow down the tables.
_SLOTS_MAX = 1_000_000
_ADMINISTRATOR, _JOINED, _META_VOTERS = "administrator", "joined", "meta_voters"
_KEYS = ("format", "cluster", "node", "replicas", "slots", "nodes")
_ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
#: A password hash in PHC format: method, parameters, hash. Any method is accepted here.
_PHC = re.compile(r"\$[a-z0-9-]{1,32}(\$[A-Za-z0-9+/=,.-]+){1,4}")
_ID = re.compile(r"0|[1-9][0-9]{0,8}")
_PORT_MAX = 65_535
_RACK, _RACK_WORDS = re.compile(r"[A-Za-z0-9._-]{1,64}"), "letters, digits and ._- (at most 64), or nothing"


class NodeAddress(msgspec.Struct, frozen=True):
    """A node's addresses (`host:port`) for other nodes and for clients, and the node's rack, if known."""

    peer: str
    client: str
    rack: str = ""


@dataclass(frozen=True, slots=True)
class Administrator:
    """The user that a cluster begins with. If `must_change`, a login with the password may only set a new password."""

    name: str
    hash: str = field(repr=False)
    must_change: bool


class ClusterFile(msgspec.Struct, frozen=True):
    """The content of `cluster.json`.

    The constructor raises UserMistake 2004, which names the key, if a value is invalid.
    """

    #: A UUID, in its usual form: nodes of different clusters refuse to talk to each other.
    cluster: str
    #: The node that the folder belongs to.
    node: NodeId
    #: Number of replicas of each slot.
    replicas: int
    slots: int
    #: The cluster's first nodes.
    nodes: Mapping[NodeId, NodeAddress]
    #: The users when the cluster is created, or None if it has no users.
    administrator: Administrator | None = None
    #: The addresses of this node, if it joined after the cluster was created.
    joined: NodeAddress | None = None
    #: The limit of voters of the meta group. None, in files of older versions, means that all of the first nodes are
    #: voters.
    meta_voters: int | None = None

    def __post_init__(self) -> None:
        _require(is_uuid(self.cluster), "cluster", self.cluster, "a UUID such as 123e4567-e89b-12d3-a456-426614174000")
        _require(len(self.nodes) > 0, "nodes", {}, "at least one node")
        for node, address in self.nodes.items():
            _require(node >= 1, "nodes", node, "ids of at least 1")
            _check_address(address, f"nodes.{node}")
        addresses = [text for address in self.nodes.values() for text in (address.peer, address.client)]
        for text in addresses:
            _require(addresses.count(text) == 1, "nodes", text, "distinct addresses")
        if self.joined is None:
            _require(self.node in self.nodes, "node", self.node, f"one of the nodes {_ids(self.nodes)}")
        else:
            _require(
                self.node not in self.nodes, "node", self.node, f"a node other than the first nodes {_ids(self.nodes)}"
            )
            _check_address(self.joined, _JOINED)
        _require(
            1 <= self.replicas <= len(self.nodes), "replicas", self.replicas, f"from 1 to {len(self.nodes)} (nodes)"
        )
        _require(len(self.nodes) <= self.slots <= _SLOTS_MAX, "slots", self.slots, f"{len(self.nodes)} to {_SLOTS_MAX}")
        known = (None, *META_VOTERS)
        _require(self.meta_voters in known, _META_VOTERS, self.meta_voters, _one_of(META_VOTERS))
        if self.administrator is not None:
            _check_administrator(self.administrator)

    @property
    def users(self) -> Users:
        """The users that the cluster begins with."""
        first = self.administrator
        if first is None:
            return Users()
        return Users().apply(CreateUser(first.name, first.hash, administrator=True, must_change=first.must_change))

    @property
    def address(self) -> NodeAddress:
        """The addresses of the folder's node."""
        return self.nodes[self.node] if self.joined is None else self.joined


def is_address(text: str) -> bool:
    """Return whether a text is host:port. An IPv6 address is in brackets."""
    match = _ADDRESS.fullmatch(text)
    return match is not None and 1 <= int(match["port"]) <= _PORT_MAX


def is_rack(text: str) -> bool:
    """Return whether a text is a valid name of a rack."""
    return _RACK.fullmatch(text) is not None


def load(folder: str, disk: Disk) -> ClusterFile | None:
    """Return the folder's file, or None if the folder has no file and thus belongs to no cluster.

    Raises UserMistake 2004 for a mistake in the file, StorageError 2015 if a newer version wrote it.
    """
    path = os.path.join(folder, CLUSTER_FILE)
    if not disk.exists(path):
        return None
    try:
        return decode(bytes(disk.map(path)))
    except StorageError as error:
        raise type(error)(f"{path}: {error.message}", code=error.code) from error


def save(folder: str, file: ClusterFile, disk: Disk) -> None:
    """Write the folder's file durably. The folder exists and has no such file yet."""
    path = os.path.join(folder, CLUSTER_FILE)
    assert not disk.exists(path)
    write_durably(disk, path, encode(file))


def rewrite(folder: str, file: ClusterFile, disk: Disk) -> None:
    """Replace the folder's file durably. No node is running on the folder."""
    write_durably(disk, os.path.join(folder, CLUSTER_FILE), encode(file))


def encode(file: ClusterFile) -> bytes:
    """Return the file's bytes."""
    words: dict[str, object] = {
        "format": _FORMAT,
        "cluster": file.cluster,
        "node": file.node,
        "replicas": file.replicas,
        "slots": file.slots,
        "nodes": {str(node): _address_to_json(file.nodes[node]) for node in sorted(file.nodes)},
    }
    if file.administrator is not None:
        words[_ADMINISTRATOR] = asdict(file.administrator)
    if file.joined is not None:
        words[_JOINED] = _address_to_json(file.joined)
    if file.meta_voters is not None:
        words[_META_VOTERS] = file.meta_voters
    return json.dumps(words, indent=2).encode() + b"\n"


def _address_to_json(address: NodeAddress) -> dict[str, str]:
    return {key: value for key, value in structs.asdict(address).items() if value}


def decode(data: bytes) -> ClusterFile:
    """Decode the file's bytes. Raises UserMistake 2004, StorageError 2015."""
    try:
        words = json.loads(data)
    except ValueError as error:
        raise UserMistake(f"not JSON: {error}", code=2004) from error
    fields = _fields(words, "", _KEYS, (_ADMINISTRATOR, _JOINED, _META_VOTERS), newer_first=True)
    nodes = _object(fields["nodes"], "nodes")
    return ClusterFile(
        cluster=_text(fields["cluster"], "cluster"),
        node=NodeId(_number(fields["node"], "node")),
        replicas=_number(fields["replicas"], "replicas"),
        slots=_number(fields["slots"], "slots"),
        nodes={_node_id(key): _node_address(words, f"nodes.{key}.") for key, words in nodes.items()},
        administrator=_administrator(fields[_ADMINISTRATOR]) if _ADMINISTRATOR in fields else None,
        joined=_node_address(fields[_JOINED], f"{_JOINED}.") if _JOINED in fields else None,
        meta_voters=_number(fields[_META_VOTERS], _META_VOTERS) if _META_VOTERS in fields else None,
    )


def _fields(
    words: object, prefix: str, keys: tuple[str, ...], more: tuple[str, ...] = (), *, newer_first: bool = False
) -> dict[str, object]:
    """Return `words` as an object that has all of `keys`, and no other keys except those in `more`.

    Raises UserMistake 2004. With `newer_first`, a file of a newer format raises StorageError 2015 before its keys are
    checked.
    """
    found = _object(words, prefix.removesuffix(".") or "the file")
    if newer_first:
        format_ = _number(found.get("format"), "format")
        if format_ > _FORMAT:
            raise StorageError(
                f"format is {format_}: it was written by a newer Saros; open it with that version", code=2015
            )
        _require(format_ == _FORMAT, "format", format_, str(_FORMAT))
    for key in found:
        if key not in (*keys, *more):
            raise UserMistake(f"unknown key {prefix}{key}; known keys are {', '.join((*keys, *more))}", code=2004)
    for key in keys:
        if key not in found:
            raise UserMistake(f"key {prefix}{key} is missing", code=2004)
    return found


def _administrator(words: object) -> Administrator:
    prefix = f"{_ADMINISTRATOR}."
    fields = _fields(words, prefix, ("name", "hash", "must_change"))
    must_change = fields["must_change"]
    if not isinstance(must_change, bool):
        raise _mistake(f"{prefix}must_change", must_change, "true or false")
    return Administrator(_text(fields["name"], prefix + "name"), _text(fields["hash"], prefix + "hash"), must_change)


def _check_address(found: NodeAddress, key: str) -> None:
    _require(is_address(found.peer), f"{key}.peer", found.peer, "host:port")
    _require(is_address(found.client), f"{key}.client", found.client, "host:port")
    _require(not found.rack or is_rack(found.rack), f"{key}.rack", found.rack, _RACK_WORDS)


def _check_administrator(found: Administrator) -> None:
    if _PHC.fullmatch(found.hash) is None:  # the message omits the value, which is a secret
        raise UserMistake("administrator.hash is not a password hash; make one with saros user hash", code=2004)
    try:
        Users().apply(CreateUser(found.name, found.hash))
    except UserMistake as error:
        raise UserMistake(f"administrator.name: {error.message}", code=2004) from error


def _node_address(words: object, prefix: str) -> NodeAddress:
    fields = _fields(words, prefix, ("peer", "client"), ("rack",))
    return NodeAddress(**{name: _text(value, prefix + name) for name, value in fields.items()})


def _node_id(key: str) -> NodeId:
    _require(_ID.fullmatch(key) is not None, "nodes", key, "integers as ids")
    return NodeId(int(key))


def _object(value: object, key: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _mistake(key, value, "an object")
    return value


def _text(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise _mistake(key, value, "a string")
    return value


def _number(value: object, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _mistake(key, value, "an integer")
    return value


def is_uuid(text: str) -> bool:
    """Return whether a text is a UUID in its usual form."""
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _ids(nodes: Mapping[NodeId, NodeAddress]) -> str:
    return ", ".join(str(node) for node in sorted(nodes))


def _one_of(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} or {last}"


def _require(holds: bool, key: str, value: object, expected: str) -> None:
    if not holds:
        raise _mistake(key, value, expected)


def _mistake(key: str, value: object, expected: str) -> UserMistake:
    return UserMistake(f"{key} is {json.dumps(value)}: expected {expected}", code=2004)
