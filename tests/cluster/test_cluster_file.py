"""The file cluster.json: round trips, and an error message that names each mistake in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from saros_cluster.node.cluster_file import Administrator, ClusterFile, NodeAddress, decode, encode, load, save
from saros_cluster.placement.ring import NodeId
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.io.disk import LocalDisk

ID = "123e4567-e89b-12d3-a456-426614174000"
FILE = ClusterFile(
    cluster=ID,
    node=NodeId(2),
    replicas=2,
    slots=100,
    nodes={
        NodeId(1): NodeAddress("hostA:6668", "hostA:6667"),
        NodeId(2): NodeAddress("[::1]:6668", "127.0.0.1:6667"),
        NodeId(30): NodeAddress("host-c.example.org:1", "host-c.example.org:65535"),
    },
)
WORDS = json.loads(encode(FILE))


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    assert load(str(tmp_path), LocalDisk()) is None
    save(str(tmp_path), FILE, LocalDisk())
    assert FILE == load(str(tmp_path), LocalDisk())
    assert ["cluster.json"] == [path.name for path in tmp_path.iterdir()]
    assert NodeAddress("[::1]:6668", "127.0.0.1:6667") == FILE.address


def test_the_format_stays_what_it_is() -> None:
    text = (
        '{"format": 1, "cluster": "123e4567-e89b-12d3-a456-426614174000", "node": 7, "replicas": 1, "slots": 10000,'
        ' "nodes": {"7": {"peer": "a:1", "client": "a:2"}}}'
    )
    expected = ClusterFile(ID, NodeId(7), 1, 10_000, {NodeId(7): NodeAddress("a:1", "a:2")})
    assert expected == decode(text.encode())
    assert json.loads(text) == json.loads(encode(expected))


ROOT = {"name": "root", "hash": "$scrypt$ln=15,r=8,p=3$c2FsdA$aGFzaA", "must_change": True}


def test_a_cluster_may_begin_with_an_administrator() -> None:
    assert {} == FILE.users.users
    file = decode(json.dumps({**WORDS, "administrator": ROOT}).encode())
    assert replace(FILE, administrator=Administrator("root", str(ROOT["hash"]), must_change=True)) == file
    assert {**WORDS, "administrator": ROOT} == json.loads(encode(file))
    root = file.users.user("root")
    assert (True, True, ROOT["hash"]) == (root.administrator, root.must_change, root.hash)
    assert str(ROOT["hash"]) not in repr(file)


NODES = WORDS["nodes"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clutser": ID}, "unknown key clutser; known keys are format, cluster, node"),
        ({"cluster": None}, "cluster is null: expected a string"),
        ({"cluster": "mine"}, 'cluster is "mine": expected a UUID'),
        ({"cluster": ID.upper()}, "expected a UUID"),
        ({"node": "2"}, 'node is "2": expected an integer'),
        ({"node": True}, "node is true: expected an integer"),
        ({"node": 4}, "node is 4: expected one of the nodes 1, 2, 30"),
        ({"replicas": 0}, "replicas is 0: expected from 1 to 3"),
        ({"replicas": 4}, "replicas is 4: expected from 1 to 3"),
        ({"slots": 2}, "slots is 2: expected 3 to 1000000"),
        ({"slots": 10**7}, "slots is 10000000"),
        ({"nodes": []}, r"nodes is \[\]: expected an object"),
        ({"nodes": {}}, "nodes is {}: expected at least one node"),
        ({"nodes": {**NODES, "0": {"peer": "x:1", "client": "x:2"}}}, "nodes is 0: expected ids of at least 1"),
        ({"nodes": {**NODES, "04": {"peer": "x:1", "client": "x:2"}}}, 'nodes is "04": expected integers as ids'),
        ({"nodes": {**NODES, "9" * 5_000: {"peer": "x:1", "client": "x:2"}}}, "expected integers as ids"),
        ({"nodes": {**NODES, "x": {"peer": "x:1", "client": "x:2"}}}, 'nodes is "x": expected integers as ids'),
        ({"nodes": {**NODES, "4": "x:1"}}, 'nodes.4 is "x:1": expected an object'),
        ({"nodes": {**NODES, "4": {"peer": "x:1"}}}, "key nodes.4.client is missing"),
        ({"nodes": {**NODES, "4": {"peer": "x:1", "client": "x:2", "x": 1}}}, "unknown key nodes.4.x"),
        ({"nodes": {**NODES, "4": {"peer": "x:1", "client": 2}}}, "nodes.4.client is 2: expected a string"),
        ({"nodes": {**NODES, "4": {"peer": "x", "client": "x:2"}}}, 'nodes.4.peer is "x": expected host:port'),
        ({"nodes": {**NODES, "4": {"peer": "x:0", "client": "x:2"}}}, "nodes.4.peer"),
        ({"nodes": {**NODES, "4": {"peer": "x:1", "client": "x:65536"}}}, "nodes.4.client"),
        ({"nodes": {**NODES, "4": {"peer": "::1:5", "client": "x:2"}}}, "nodes.4.peer"),
        ({"nodes": {**NODES, "4": {"peer": "x:1", "client": "x:1"}}}, 'nodes is "x:1": expected distinct addresses'),
        ({"nodes": {**NODES, "4": {"peer": "hostA:6667", "client": "x:1"}}}, "expected distinct addresses"),
        ({"administrator": None}, "administrator is null: expected an object"),
        ({"administrator": {"name": "root"}}, "key administrator.hash is missing"),
        ({"administrator": {**ROOT, "roles": []}}, "unknown key administrator.roles"),
        ({"administrator": {**ROOT, "must_change": 1}}, "administrator.must_change is 1: expected true or false"),
        ({"administrator": {**ROOT, "name": "a b"}}, "administrator.name: 'a b' is not a valid name for a user"),
        ({"administrator": {**ROOT, "hash": "in the clear"}}, "administrator.hash is not a password hash; make one"),
        ({"format": 0}, "format is 0: expected 1"),
    ],
)
def test_a_mistake_is_named_with_the_file_and_the_key(tmp_path: Path, change: dict[str, object], message: str) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps({**WORDS, **change}))
    with pytest.raises(UserMistake, match=message) as caught:
        load(str(tmp_path), LocalDisk())
    assert 2004 == caught.value.code
    assert str(caught.value).startswith(f"{tmp_path}/cluster.json: ")


@pytest.mark.parametrize("key", WORDS)
def test_no_key_may_be_missing(key: str) -> None:
    with pytest.raises(UserMistake, match=f"{key} is"):
        decode(json.dumps({k: v for k, v in WORDS.items() if k != key}).encode())


def test_a_newer_format_is_told_before_its_keys(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps({"format": 2, "zones": []}))
    with pytest.raises(StorageError, match=r"cluster\.json: format is 2: it was written by a newer Saros") as caught:
        load(str(tmp_path), LocalDisk())
    assert 2015 == caught.value.code


def test_a_file_made_in_the_process_is_checked_too() -> None:
    with pytest.raises(UserMistake, match="replicas is 4"):
        replace(FILE, replicas=4)


@pytest.mark.slow
@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps).map(str.encode)
)
def test_junk_is_a_mistake(data: bytes) -> None:
    with pytest.raises(UserMistake):
        decode(data)


def test_the_voters_of_the_meta_group_may_be_bounded() -> None:
    assert FILE.meta_voters is None
    file = decode(json.dumps({**WORDS, "meta_voters": 5}).encode())
    assert replace(FILE, meta_voters=5) == file
    assert {**WORDS, "meta_voters": 5} == json.loads(encode(file))
    with pytest.raises(UserMistake) as refused:
        decode(json.dumps({**WORDS, "meta_voters": 4}).encode())
    assert "meta_voters is 4: expected 3, 5 or 7" == refused.value.message
