"""The meta group: its decisions, and the schema that a node derives from them and from its groups."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from saros_cluster.data.command import NO_REQUEST, Request
from saros_cluster.data.drops import OVERTAKEN
from saros_cluster.data.schema_delta import SchemaDelta
from saros_cluster.meta.machine import MetaMachine, encode_meta_entry
from saros_cluster.meta.state import (
    AddPartitions,
    BeginDeletion,
    BeginDrop,
    BeginDropSeries,
    ChangeUsers,
    CreateDatabase,
    EndDrop,
    Grow,
    MetaCommand,
    MetaState,
    decode_meta,
    encode_meta,
)
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.membership import membership
from saros_cluster.raft.messages import Entry, EntryKind, GroupId, Position, Snapshot
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.commands import Abort, Admit, Begin, Fenced, Opened, Proceed, Ready
from saros_cluster.topology.topology import Node, Topology
from saros_cluster.users.commands import Command, CreateRole, CreateUser, DropUser, GrantRole
from saros_cluster.users.users import Users
from saros_storage import schema as changes
from saros_storage.base.errors import CorruptFile, NewerFormat, StorageError, UserMistake
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.io.disk import LocalDisk

#: The initial topology of the cluster.
FIRST = Topology.first({NodeId(n): Node(f"host{n}:1", f"host{n}:2") for n in (1, 2, 3)}, 3, 12)


def series(name: str = "x") -> tuple[changes.SeriesSchema, ...]:
    return (changes.SeriesSchema(name, DataType.INT64, Encoding.PLAIN, Compressor.UNCOMPRESSED),)


def entries(*commands: MetaCommand, first: int = 1, request: Request = NO_REQUEST) -> list[Entry]:
    return [
        Entry(index, 1, EntryKind.DATA, encode_meta_entry(request, command))
        for index, command in enumerate(commands, first)
    ]


def machine(folder: Path) -> MetaMachine:
    return MetaMachine(str(folder / "group-0"), LocalDisk(), lambda state: None, FIRST)


def test_databases_do_not_overlap_whoever_asks() -> None:
    state = MetaState(FIRST)
    state.apply(CreateDatabase("root.a"), 1)
    for path, code in (("root.a", 501), ("root.a.b", 501), ("root", 509)):
        with pytest.raises(UserMistake) as caught:
            state.apply(CreateDatabase(path), 2)
        assert code == caught.value.code
    assert (["root.a"], 1) == (state.databases, state.version)


def test_partitions_are_registered_as_long_as_their_database_lasts() -> None:
    state = MetaState(FIRST)
    state.apply(CreateDatabase("root.a", (7,)), 1)
    state.apply(CreateDatabase("root.old", None), 2)  # earlier versions of Saros send this: any slice may have points
    state.apply(AddPartitions({"root.a": (8, 2), "root.old": (5,)}), 3)
    registered = {"root.a": {7: 1, 2: 3, 8: 3}, "root.old": None}
    assert registered == state.partitions
    state.apply(AddPartitions({"root.a": (7,)}), 4)
    assert registered == state.partitions  # slice 7 keeps the entry that registered it first
    restored = MetaState.load(json.loads(json.dumps(state.dump())))
    assert registered == restored.partitions
    state.apply(BeginDrop("root.a"), 5)
    for path in ("root.a", "root.b"):
        with pytest.raises(UserMistake) as caught:
            state.apply(AddPartitions({path: (9,)}), 6)
        assert OVERTAKEN == caught.value.code
    state.apply(EndDrop(5), 7)
    state.apply(CreateDatabase("root.a"), 8)
    assert {"root.a": {}, "root.old": None} == state.partitions


def test_a_state_of_an_earlier_version_knows_of_no_partitions() -> None:
    state = MetaState(FIRST)
    state.apply(CreateDatabase("root.a", (7,)), 1)
    words = state.dump()
    del words["partitions"]
    assert {"root.a": None} == MetaState.load(words).partitions
    assert CreateDatabase("root.b", None) == decode_meta(b'["create database", "root.b"]')


@pytest.mark.parametrize(
    "command",
    [CreateDatabase("root.a"), CreateDatabase("root.a", (1, -2)), AddPartitions({"root.a": (1, 2)}), BeginDeletion()],
)
def test_commands_of_partitions_come_back_from_the_log(command: MetaCommand) -> None:
    assert command == decode_meta(encode_meta(command))


def test_a_name_is_taken_until_the_drop_is_done() -> None:
    state = MetaState(FIRST)
    state.apply(CreateDatabase("root.a"), 1)
    state.apply(BeginDrop("root.a"), 2)
    state.apply(BeginDrop("root.a"), 3)
    assert ([], {2: changes.DeleteDatabase("root.a")}) == (state.databases, state.drops)
    with pytest.raises(UserMistake):
        state.apply(CreateDatabase("root.a"), 4)
    state.apply(EndDrop(2), 5)
    state.apply(EndDrop(2), 6)
    state.apply(CreateDatabase("root.a"), 7)
    state.apply(EndDrop(2), 8)
    assert ["root.a"] == state.databases
    with pytest.raises(UserMistake):
        state.apply(BeginDrop("root.b"), 9)


def test_drops_and_moves_of_slots_wait_for_each_other() -> None:
    """If a series were dropped while a slot moves, the old or the new group would keep the slot's data."""
    state = MetaState(FIRST)
    steps = itertools.count(1)

    def send(command: MetaCommand) -> int:
        index = next(steps)
        state.apply(command, index)
        return index

    def refused(command: MetaCommand) -> bool:
        index = next(steps)
        try:
            state.apply(command, index)
        except UserMistake as error:
            return error.code == MOVED
        return False

    send(CreateDatabase("root.a"))
    drop = send(BeginDrop("root.a"))
    send(Grow(Admit("host4:1", "host4:2", "token")))
    change = send(Grow(Begin((NodeId(4),))))
    early = send(BeginDropSeries("root.b.**"))  # the new group has no leader yet, so no slot can move
    send(Grow(Ready(change, GroupId(4))))
    assert refused(BeginDropSeries("root.b.**"))
    send(BeginDrop("root.a"))  # accepted, since this drop has already begun
    for number in (drop, early):
        send(Grow(Proceed(change)))
        assert state.topology.change is not None
        assert not state.topology.change.going
        send(EndDrop(number))
    send(CreateDatabase("root.a"))
    send(Grow(Proceed(change)))
    assert state.topology.change.going
    moves = state.topology.change.moves
    for number in range(len(moves)):
        assert refused(BeginDrop("root.a"))
        send(Grow(Fenced(change, number, 7)))
        assert refused(BeginDropSeries("root.**"))
        send(Grow(Opened(change, number, state.topology.wanted[moves[number].target].version)))
    assert not refused(BeginDrop("root.a"))


def test_a_change_that_is_aborted_lets_drops_through() -> None:
    state = MetaState(FIRST)
    state.apply(Grow(Begin((), (), {NodeId(1): (11,)})), 1)
    with pytest.raises(UserMistake):
        state.apply(BeginDropSeries("root.**"), 2)
    state.apply(Grow(Abort(1)), 3)
    state.apply(BeginDropSeries("root.**"), 4)
    assert [4] == list(state.drops)


def test_a_group_that_a_databases_series_have_left_does_not_speak_of_them_any_more() -> None:
    """Until the old group drops the series, nodes may ask the old group for them.

    The old group does not know of series that were created since the move.
    """
    schema = ClusterSchema()
    schema.agree(["root.a"], {}, 1)
    create = changes.CreateDatabase("root.a")
    old, new = (changes.CreateSeries("root.a.d", False, series(name)) for name in ("x", "y"))
    before = SchemaDelta(9, True, (create, old), 0, {"root.a": 0})
    schema.apply_delta(GroupId(1), before)
    schema.apply_delta(GroupId(2), SchemaDelta(5, False, (create, old), 0, {"root.a": 3}))
    schema.apply_delta(GroupId(2), SchemaDelta(6, False, (new,)))
    schema.apply_delta(GroupId(1), SchemaDelta.from_json(json.loads(json.dumps(before.to_json()))))
    device = schema.tree.device("root.a.d")
    assert device is not None
    assert {"x", "y"} == set(device.series)
    schema.apply_delta(GroupId(1), SchemaDelta(12, True, ()))
    assert schema.tree.device("root.a.d") is not None


def test_the_state_survives_and_entries_come_once(tmp_path: Path) -> None:
    log = entries(CreateDatabase("root.a"), CreateDatabase("root.a"), CreateDatabase("root.b"), BeginDrop("root.a"))
    first = machine(tmp_path)
    freed: list[int] = []
    first.start(freed.append)
    outcomes = first.apply(log[:3])
    assert [None, 501, None] == [getattr(outcome, "code", outcome) for outcome in outcomes]
    first.save()
    assert [3] == freed
    second = machine(tmp_path)
    second.apply(log)
    assert (["root.b"], {4: changes.DeleteDatabase("root.a")}) == (second.state.databases, second.state.drops)


def test_a_repeated_command_is_answered_as_done(tmp_path: Path) -> None:
    found = machine(tmp_path)
    command, request = CreateDatabase("root.a"), Request(5, 1)
    assert [None] == found.apply(entries(command, request=request))
    assert [None] == found.apply(entries(command, first=2, request=request))


def test_a_damaged_state_is_not_started_from(tmp_path: Path) -> None:
    found = machine(tmp_path)
    found.apply(entries(CreateDatabase("root.a")))
    found.save()
    path = tmp_path / "group-0"
    data = path.read_bytes()
    path.write_bytes(data.replace(b"root.a", b"root.b"))
    with pytest.raises(CorruptFile):
        machine(tmp_path)
    path.write_bytes(data.replace(b"saros-meta 1 ", b"saros-meta 2 "))
    with pytest.raises(NewerFormat, match="group-0 was written by a newer Saros"):
        machine(tmp_path)


@pytest.mark.parametrize(
    "command", [["rename database", "root.a"], ["change users", '["rename user", "a"]'], ["grow", '["split", 1]']]
)
def test_an_unknown_command_is_of_a_newer_version_and_not_damage(command: list[str]) -> None:
    with pytest.raises(NewerFormat, match="the log of the meta group was written by a newer Saros"):
        decode_meta(json.dumps(command).encode())


ROOT = Users().apply(CreateUser("root", "$x$secret-hash", administrator=True, must_change=True))
CHANGES: list[Command] = [CreateUser("ann", "$x$y"), CreateRole("r"), GrantRole("r", "ann")]


def test_users_change_in_the_order_of_the_log_and_a_mistake_changes_nothing(tmp_path: Path) -> None:
    found = MetaMachine(str(tmp_path / "group-0"), LocalDisk(), lambda state: None, FIRST, ROOT)
    mistakes: list[Command] = [CreateUser("root", "$x$z"), DropUser("root"), GrantRole("r", "nobody")]
    outcomes = found.apply(entries(*(ChangeUsers(change) for change in (*CHANGES, *mistakes))))
    assert [None, None, None, 805, 701, 804] == [getattr(outcome, "code", outcome) for outcome in outcomes]
    expected = ROOT
    for change in CHANGES:
        expected = expected.apply(change)
    assert (expected, 3) == (found.state.users, found.state.version)


def test_users_are_in_the_file_and_in_a_snapshot(tmp_path: Path) -> None:
    found = MetaMachine(str(tmp_path / "group-0"), LocalDisk(), lambda state: None, FIRST, ROOT)
    found.apply(entries(*map(ChangeUsers, CHANGES)))
    index, token = found.take_snapshot()
    (tmp_path / "other").mkdir()
    other = machine(tmp_path / "other")
    other.install(Snapshot(Position(index, 1, membership(1, (NodeId(1),))), token))
    assert found.state.users == other.state.users == machine(tmp_path / "other").state.users


def test_what_is_known_of_users_outlives_the_process(tmp_path: Path) -> None:
    found = MetaMachine(str(tmp_path / "group-0"), LocalDisk(), lambda state: None, FIRST, ROOT)
    for index, change in enumerate(CHANGES, 1):
        found.apply(entries(ChangeUsers(change), first=index))
        assert found.state.users == machine(tmp_path).state.users


def test_a_group_begins_with_its_first_users_once(tmp_path: Path) -> None:
    path = str(tmp_path / "group-0")
    log = entries(ChangeUsers(CHANGES[0]))
    MetaMachine(path, LocalDisk(), lambda state: None, FIRST, ROOT)
    assert ROOT == machine(tmp_path).state.users
    (tmp_path / "other").mkdir()
    other = machine(tmp_path / "other")
    with pytest.raises(StorageError, match="but this node was not"):
        other.apply(log)


def test_a_command_about_users_is_what_it_was_and_shows_no_hash() -> None:
    for change in CHANGES:
        assert ChangeUsers(change) == decode_meta(encode_meta(ChangeUsers(change)))
    assert "$x$y" not in repr(ChangeUsers(CHANGES[0]))
    for junk in (b'["change users", "junk"]', b'["change users", "[\\"create user\\", 1]"]'):
        with pytest.raises(CorruptFile):
            decode_meta(junk)


def told(created: list[changes.SchemaChange], drop: int = 0) -> SchemaDelta:
    return SchemaDelta(1, False, tuple(created), drop)


def test_the_schema_takes_databases_from_the_meta_group_and_series_from_groups_in_any_order() -> None:
    created: list[changes.SchemaChange] = [changes.CreateDatabase("root.a")]
    created.append(changes.CreateSeries("root.a.d", False, series()))
    early, late = ClusterSchema(), ClusterSchema()
    early.apply_delta(GroupId(1), told(created))
    early.agree(["root.a"], {}, 1)
    late.agree(["root.a"], {}, 1)
    late.apply_delta(GroupId(1), told(created))
    late.apply_delta(GroupId(1), told(created))
    assert early.tree.dump() == late.tree.dump()
    early.agree([], {2: changes.DeleteDatabase("root.a")}, 2)
    assert b"" == early.tree.dump()


def test_an_old_end_of_a_database_does_not_take_the_new_one() -> None:
    schema = ClusterSchema()
    schema.agree(["root.a"], {}, 1)
    schema.agree([], {}, 1)
    schema.agree(["root.a"], {}, 1)
    schema.apply_delta(GroupId(1), told([changes.DeleteDatabase("root.a")]))
    assert ["root.a"] == schema.tree.databases()


@pytest.mark.parametrize("whole", [False, True])
def test_what_a_group_announces_late_does_not_bring_back_a_dropped_database(whole: bool) -> None:
    """A database that came back would stay: a strong SHOW does not ask the group of a dropped database."""
    created = (changes.CreateDatabase("root.a"), changes.CreateSeries("root.a.d", False, series()))
    drop = changes.DeleteDatabase("root.a")
    schema = ClusterSchema()
    schema.agree(["root.a"], {}, 1)
    schema.agree([], {2: drop}, 2)
    schema.agree([], {}, 3)
    schema.apply_delta(GroupId(1), SchemaDelta(5, whole, created))
    assert b"" == schema.tree.dump()
    again = (*created, changes.CreateSeries("root.a.d2", False, series("y")))
    schema.apply_delta(GroupId(1), SchemaDelta(9, False, (drop, *again), 2, {"root.a": 0}))
    schema.agree(["root.a"], {}, 4)
    device = schema.tree.device("root.a.d2")
    assert device is not None
    assert ["y"] == list(device.series)


def test_a_meta_group_that_is_behind_does_not_take_what_was_made_anew() -> None:
    """After a restart, the meta group's log is applied again, and data groups may first report later changes."""
    created = [changes.CreateDatabase("root.a"), changes.CreateSeries("root.a.d", False, series())]
    drop = {5: changes.DeleteDatabase("root.a")}
    both_lives = [*created, drop[5], *created]
    for news in (told(created, drop=5), told(both_lives, drop=5), SchemaDelta(9, True, tuple(created), 5)):
        schema = ClusterSchema()
        schema.agree(["root.a"], {}, 1)
        schema.apply_delta(GroupId(1), news)
        schema.agree([], drop, 5)
        schema.agree([], {}, 6)
        schema.agree(["root.a"], {}, 7)
        assert schema.tree.device("root.a.d") is not None
        schema.agree([], {8: changes.DeleteDatabase("root.a")}, 8)
        assert schema.tree.device("root.a.d") is None


def test_a_drop_that_the_meta_group_has_not_told_of_is_not_seen() -> None:
    """A group whose series have moved away applies the drop, but does not report dropped series."""
    schema = ClusterSchema()
    schema.agree(["root.a"], {}, 3)
    schema.apply_delta(GroupId(1), told([changes.CreateDatabase("root.a")], drop=5))
    schema.apply_delta(GroupId(2), told([], drop=2))
    assert ({1: 5, 2: 2}, {1: 3, 2: 2}) == (schema.drops, schema.visible_drops)
    schema.agree(["root.a"], {}, 6)
    assert {1: 5, 2: 2} == schema.visible_drops


def test_what_a_group_does_not_tell_any_more_is_gone() -> None:
    schema = ClusterSchema()
    schema.agree(["root.a", "root.b"], {}, 1)
    for group, name in ((1, "root.a"), (2, "root.b")):
        created = [changes.CreateDatabase(name), changes.CreateSeries(f"{name}.d", False, series())]
        schema.apply_delta(GroupId(group), told(created))
    schema.apply_delta(GroupId(1), SchemaDelta(9, True, ()))
    assert ["root.a", "root.b"] == schema.tree.databases()
    assert schema.tree.device("root.a.d") is None
    assert schema.tree.device("root.b.d") is not None


def test_news_as_a_whole_replace_what_was_known_of_those_databases() -> None:
    schema = ClusterSchema()
    for name in ("root.a", "root.b"):
        created = [changes.CreateDatabase(name), changes.CreateSeries(f"{name}.d", False, series())]
        schema.apply_delta(GroupId(1 if name == "root.a" else 2), told(created))
    version = schema.tree.version
    whole = (changes.CreateDatabase("root.a"), changes.CreateSeries("root.a.e", True, series("y")))
    schema.apply_delta(GroupId(1), SchemaDelta(9, True, whole))
    assert schema.tree.version > version
    assert (None, True, True) == (
        schema.tree.device("root.a.d"),
        schema.tree.device("root.a.e") is not None,
        schema.tree.device("root.b.d") is not None,
    )


def news_of(index: int, since: int, *measurements: str, whole: bool = False, left: int = 0) -> SchemaDelta:
    created = (
        changes.CreateDatabase("root.a"),
        changes.CreateSeries("root.a.d", False, tuple(s for name in measurements for s in series(name))),
    )
    return SchemaDelta(index, whole, created, since={"root.a": since}, left=left)


def measurements(schema: ClusterSchema) -> set[str]:
    device = schema.tree.device("root.a.d")
    return set() if device is None else set(device.series)


@pytest.mark.parametrize("whole", [False, True])
def test_who_had_a_database_before_a_move_speaks_no_more_of_it(whole: bool) -> None:
    """The announcements of the old and the new group may arrive in any order."""
    schema = ClusterSchema()
    schema.agree(["root.a"], {}, 1)
    schema.apply_delta(GroupId(4), news_of(3, 1, "x"))
    schema.apply_delta(GroupId(1), news_of(9, 0, "x", "y", whole=whole))
    assert {"x"} == measurements(schema)
    late = changes.DeleteSeries("root.a.d.x"), changes.DeleteDatabase("root.a")
    schema.apply_delta(GroupId(1), SchemaDelta(10, False, late))
    schema.apply_delta(GroupId(1), SchemaDelta(11, True, (), left=1))
    assert {"x"} == measurements(schema)


def test_series_that_went_with_a_move_are_known_until_their_next_group_tells() -> None:
    schema = ClusterSchema()
    schema.agree(["root.a"], {}, 1)
    schema.apply_delta(GroupId(1), news_of(5, 0, "x", "y"))
    schema.apply_delta(GroupId(1), SchemaDelta(9, True, (), left=1))
    assert {"x", "y"} == measurements(schema)
    assert {"root.a"} == schema.orphans
    schema.apply_delta(GroupId(4), news_of(3, 1, "y", "z"))  # x was dropped earlier
    assert {"y", "z"} == measurements(schema)
    assert not schema.orphans


def test_series_that_no_group_tells_of_after_a_move_are_gone() -> None:
    for drops in (False, True):
        schema = ClusterSchema()
        schema.agree(["root.a"], {}, 1)
        schema.apply_delta(GroupId(1), news_of(5, 0, "x"))
        schema.apply_delta(GroupId(1), SchemaDelta(9, True, (), left=1))
        if drops:
            schema.agree([], {}, 2)
        else:
            schema.forget(schema.orphans)
            assert not schema.orphans
        assert set() == measurements(schema)


def test_news_are_learned_once_though_two_ask_at_a_time() -> None:
    schema = ClusterSchema()
    assert schema.apply_delta(GroupId(1), news_of(5, 0, "x"), 0)
    assert not schema.apply_delta(GroupId(1), news_of(6, 0, "x", "y"), 0)
    assert {"x"} == measurements(schema)
    assert 5 == schema.applied_index(GroupId(1))


def test_news_as_a_whole_may_come_before_the_meta_group_says_so() -> None:
    schema = ClusterSchema()
    schema.apply_delta(
        GroupId(1),
        SchemaDelta(9, True, (changes.CreateDatabase("root.a"), changes.CreateSeries("root.a.d", False, series()))),
    )
    schema.agree(["root.a"], {}, 1)
    assert schema.tree.device("root.a.d") is not None
