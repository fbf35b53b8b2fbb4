"""Growing and shrinking in the meta group's state: any order of commands, some repeated, leads to the desired state."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from saros_cluster.node.groups import counted, with_term_of
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import membership
from saros_cluster.raft.messages import GroupId, HardState
from saros_cluster.topology.change import Stage
from saros_cluster.topology.commands import (
    Abort,
    Admit,
    Begin,
    Dropped,
    Fenced,
    ForceSingleMember,
    GiveUp,
    GrowthCommand,
    Loaded,
    Opened,
    Proceed,
    Ready,
    RecreateGroup,
    Regrouped,
    RevokeAdmission,
    decode_growth,
    encode_growth,
)
from saros_cluster.topology.topology import META, Node, NodeState, Topology
from saros_cluster.topology.transitions import apply
from saros_storage.base.errors import CorruptFile, UserMistake

SLOTS = 60
#: The term of every group after a change of its members.
TERM = 7


def node(number: int) -> Node:
    return Node(f"host{number}:6668", f"host{number}:6667")


def cluster(nodes: int = 3, replicas: int = 2, meta_voters: int | None = None) -> Topology:
    return Topology.first({NodeId(n): node(n) for n in range(1, nodes + 1)}, replicas, SLOTS, meta_voters)


class Log:
    """The meta group's log: each command is encoded as an entry, and the state after it is encoded and decoded."""

    def __init__(self, topology: Topology) -> None:
        self.now = topology
        self.index = 10
        self.sent: list[GrowthCommand] = []

    def send(self, command: GrowthCommand) -> None:
        self.index += 1
        self.sent.append(command)
        before = self.now
        self.now = apply(before, decode_growth(encode_growth(command)), self.index)
        check(before, self.now, self.index)
        again = Topology.from_json(json.loads(json.dumps(self.now.to_json())))
        assert self.now.to_json() == again.to_json()
        assert self.now.change == again.change

    def admit(self, *numbers: int) -> None:
        for number in numbers:
            self.send(Admit(f"host{number}:6668", f"host{number}:6667", f"token{number}"))


def check(before: Topology, now: Topology, index: int) -> None:
    """Assert the properties that hold after each entry."""
    assert now.table.version in (before.table.version, index)
    assert now.table.epoch in (before.table.epoch, before.table.epoch + 1)
    assert set(now.table.owners.tolist()) <= set(now.table.groups)
    assert set(now.table.previous.values()) <= set(now.table.groups)
    assert {META, *now.table.groups} == set(now.wanted)
    for group, wanted in now.wanted.items():
        known = before.wanted.get(group)
        assert known is None or known == wanted or (known.version < wanted.version == index)
        if group != META and known is not None:
            # Voters are replaced only after all slots have moved, or when most of the voters are lost.
            is_rescued = known != wanted and before.is_broken(group)
            moving = now.change is not None and now.change.stage in (Stage.PREPARING, Stage.MOVING, Stage.LOADING)
            assert not moving or is_rescued or known.voters == wanted.voters
    gone = {n for n, found in before.nodes.items() if found.state is NodeState.GONE}
    assert gone <= {n for n, found in now.nodes.items() if found.state is NodeState.GONE}
    assert all(node not in group.members for group in now.table.groups.values() for node in gone)
    changed = [slot for slot in range(SLOTS) if before.table.owners[slot] != now.table.owners[slot]]
    if changed:
        assert now.change is not None
        assert now.change.going
        assert set(changed) <= now.table.previous.keys()
    for move in () if now.change is None else now.change.moves:
        assert not move.arrived or now.needed(move) <= move.loaded
        assert not move.dropped or move.arrived


def steps(topology: Topology) -> Iterator[GrowthCommand]:
    """Yield the commands that the driver of the change may send next."""
    change = topology.change
    if change is None:
        return
    for group, ready in change.new_groups.items():
        if not ready:
            yield Ready(change.id, group)
    if change.stage is Stage.PREPARING and change.is_prepared:
        yield Proceed(change.id)
    for number, move in enumerate(change.moves):
        if change.going and change.is_quiescent and move.epoch == topology.table.epoch + 1:
            yield Fenced(change.id, number, 1_000 + number)
        elif move.fence is not None and not move.opened:
            yield Opened(change.id, number, topology.wanted[move.target].version)
        elif move.opened and not move.arrived:
            for member in topology.needed(move) - move.loaded:
                yield Loaded(change.id, number, member)
        elif move.arrived and not move.dropped:
            yield Dropped(change.id, number)
    if change.stage in (Stage.REGROUPING, Stage.ABORTING):
        for group, regroup in change.regroups.items():
            if not regroup.done:
                yield Regrouped(change.id, group, topology.wanted[group].version, TERM)


def go_on(log: Log, random: Random, count: int) -> None:
    """Take `count` steps in random order, or fewer steps if the change ends earlier."""
    for _ in range(count):
        following = list(steps(log.now))
        if following:
            log.send(random.choice(following))


def drive(log: Log, random: Random) -> None:
    """Drive the change to its end in random order, and sometimes repeat an earlier command."""
    for _ in range(500):
        if log.now.change is None:
            return
        if random.random() < 0.3 and log.sent:
            again = random.choice(log.sent)
            if not isinstance(again, Begin | Abort | GiveUp | RevokeAdmission):
                log.send(again)
            continue
        log.send(random.choice(list(steps(log.now))))
    raise AssertionError(f"no end: {log.now.change}")


def assert_settled(topology: Topology, replicas: int) -> None:
    nodes = topology.in_state(NodeState.IN)
    assert topology.change is None
    assert set(nodes) == set(topology.table.groups)
    places = Counter(nodes)
    for head, group in topology.table.groups.items():
        assert head == group.head
        assert min(replicas, len(nodes)) == len(set(group.members)) == len(group.members)
        places.update(group.members)
    assert max(places.values()) - min(places.values()) <= 1
    for head, group in topology.table.groups.items():
        assert tuple(sorted(group.members)) == topology.wanted[GroupId(head)].voters
        assert () == topology.wanted[GroupId(head)].learners
    meta, bound = topology.wanted[META], topology.meta_voters or len(nodes)
    assert min(bound, len(nodes)) == len(meta.voters)
    assert {*nodes} <= {*meta.nodes}
    assert topology.meta_voters is None or {*nodes, *topology.in_state(NodeState.WAITING)} == {*meta.nodes}
    counts = Counter(topology.table.owners.tolist())
    assert max(counts.values()) - min(counts.values()) <= 1
    assert not topology.table.previous


@pytest.mark.slow
@given(
    st.integers(2, 5),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=4),
    st.sampled_from((None, 3, 5)),
    st.integers(0, 1 << 30),
)
@settings(max_examples=60)
def test_changes_end_with_everything_in_its_place(
    nodes: int, replicas: int, changes: list[tuple[int, int]], meta_voters: int | None, seed: int
) -> None:
    random, log = Random(seed), Log(cluster(nodes, min(replicas, nodes), meta_voters))
    number = nodes
    for joining, leaving in changes:
        before = log.now
        log.admit(*range(number + 1, number + 1 + joining))
        number += joining
        members = before.in_state(NodeState.IN)
        waiting = tuple(log.now.in_state(NodeState.WAITING))
        begin = Begin(waiting, tuple(random.sample(members, min(leaving, len(members)))))
        if len(members) + len(begin.joining) - len(begin.leaving) < before.table.replicas:
            with pytest.raises(UserMistake) as refused:
                log.send(begin)
            assert 2024 == refused.value.code
            continue
        log.send(begin)
        if random.random() < 0.3:
            if log.now.change is not None and not log.now.change.going:
                log.send(Abort(log.now.change.id))
            drive(log, random)
            assert before.table.owners.tolist() == log.now.table.owners.tolist()
        else:
            drive(log, random)
        assert_settled(log.now, before.table.replicas)


def test_a_node_that_never_comes_is_not_waited_for_and_another_change_removes_it() -> None:
    log = Log(cluster(3, 3))
    log.admit(4)
    log.send(Begin((NodeId(4),)))
    change = log.now.change
    assert change is not None
    for node, code in ((NodeId(4), 2025), (NodeId(9), 2023)):
        with pytest.raises(UserMistake) as early:
            log.send(GiveUp((node,)))
        assert code == early.value.code
    log.send(Ready(change.id, GroupId(4)))
    log.send(Proceed(change.id))
    for number in range(len(change.moves)):
        log.send(Fenced(change.id, number, 7))
        log.send(Opened(change.id, number, log.now.wanted[change.moves[number].target].version))
    log.send(GiveUp((NodeId(4),)))
    for command in (c for _ in range(40) for c in list(steps(log.now))[:1]):
        assert not isinstance(command, Loaded) or command.node != 4
        log.send(command)
    assert log.now.change is None
    assert 4 not in log.now.wanted[META].voters
    # Node 4 is down, but stays a member of its own group; it never joined other groups.
    assert [4] == [head for head, group in log.now.table.groups.items() if 4 in group.members]
    log.send(Begin((), (NodeId(4),)))
    drive(log, Random(1))
    assert_settled(log.now, 3)


def test_a_joiner_that_dies_after_go_does_not_close_its_slots_with_two_copies() -> None:
    """The other member of the joiner's group continues alone, since both members have every acknowledged entry."""
    log = Log(cluster(3, 2))
    log.admit(4)
    log.send(Begin((NodeId(4),)))
    change = log.now.change
    assert change is not None
    log.send(Ready(change.id, GroupId(4)))
    log.send(Proceed(change.id))
    log.send(Fenced(change.id, 0, 7))
    log.send(GiveUp((NodeId(4),)))
    (other,) = log.now.members_of(GroupId(4)) - {4}
    assert log.now.is_broken(GroupId(4))
    version = log.now.wanted[GroupId(4)].version
    for wrong in (ForceSingleMember(GroupId(4), NodeId(4), version), ForceSingleMember(GroupId(4), other, version - 1)):
        before = log.now
        log.send(wrong)
        assert before.to_json() == log.now.to_json()
    log.send(ForceSingleMember(GroupId(4), other, version))
    log.send(ForceSingleMember(GroupId(4), other, version))
    assert log.now.is_forced_single(GroupId(4))
    assert (other,) == log.now.wanted[GroupId(4)].voters
    drive(log, Random(2))
    log.send(Begin((), (NodeId(4),)))
    drive(log, Random(1))
    assert_settled(log.now, 2)


@pytest.mark.parametrize("loaded", [0, 2])
def test_a_joiner_that_dies_after_go_does_not_close_its_slots_with_one_copy(loaded: int) -> None:
    """The joiner's group starts on another node without data.

    Data that the previous holders have not dropped moves to that node; dropped data is lost.
    """
    log = Log(cluster(3, 1))
    log.admit(4)
    log.send(Begin((NodeId(4),)))
    change = log.now.change
    assert change is not None
    log.send(Ready(change.id, GroupId(4)))
    log.send(Proceed(change.id))
    early = log.now.wanted[GroupId(4)].version
    for number in range(len(change.moves)):
        log.send(Fenced(change.id, number, 7))
        log.send(Opened(change.id, number, early))
    for number in range(loaded):
        log.send(Loaded(change.id, number, NodeId(4)))
    log.send(GiveUp((NodeId(4),)))
    log.send(RecreateGroup(change.id, GroupId(4), NodeId(2), early))
    now = log.now.change
    assert now is not None
    assert Stage.MOVING is now.stage
    assert [number < loaded for number in range(len(now.moves))] == [move.lost for move in now.moves]
    log.send(Opened(change.id, 0, early))  # this comes from the group that no longer exists
    assert log.now.change == now
    drive(log, Random(3))
    assert (NodeId(4), NodeId(2)) == log.now.table.groups[NodeId(4)].members
    log.send(Begin((), (NodeId(4),)))
    drive(log, Random(4))
    assert_settled(log.now, 1)


@pytest.mark.parametrize(("nodes", "replicas", "lost"), [(3, 1, (2,)), (4, 2, (2,)), (5, 3, (2, 3)), (4, 3, (1,))])
def test_nodes_that_are_lost_leave_whatever_is_lost_with_them(nodes: int, replicas: int, lost: tuple[int, ...]) -> None:
    log = Log(cluster(nodes, replicas))
    gone = tuple(map(NodeId, lost))
    log.send(GiveUp(gone))
    for group, wanted in sorted(log.now.wanted.items()):
        left = sorted(set(wanted.voters) - set(gone))
        if group != META and left and log.now.is_broken(group):
            log.send(ForceSingleMember(group, left[-1], wanted.version))
    log.send(Begin((), gone))
    change = log.now.change
    assert change is not None
    assert [move.lost for move in change.moves] == [replicas == 1] * len(change.moves)
    drive(log, Random(5))
    assert_settled(log.now, replicas)
    with pytest.raises(UserMistake) as again:
        log.send(GiveUp(gone))
    assert 2023 == again.value.code


@pytest.mark.parametrize("when", range(0, 40, 3))
def test_a_member_that_is_lost_in_the_midst_of_a_change_does_not_keep_it_from_its_end(when: int) -> None:
    log, random = Log(cluster(5, 3)), Random(when)
    log.admit(6)
    log.send(Begin((NodeId(6),), (NodeId(1),)))
    go_on(log, random, when)
    log.send(GiveUp((NodeId(3),)))
    drive(log, random)
    log.send(Begin((), (NodeId(3),)))
    drive(log, random)
    assert_settled(log.now, 3)


@pytest.mark.slow
@given(st.integers(0, 60), st.integers(0, 1 << 30))
@settings(max_examples=60)
def test_who_was_to_leave_a_group_stays_for_a_lost_joiner_only_with_all_that_has_arrived(when: int, seed: int) -> None:
    """The source of moved data may have dropped the data already (see `check`)."""
    log, random = Log(cluster(4, 3)), Random(seed)
    log.send(Begin((), (), {NodeId(1): tuple(range(SLOTS))}))
    drive(log, random)
    log.admit(5)
    log.send(Begin((NodeId(5),)))  # slots also move to groups in which node 5 replaces another member
    change = log.now.change
    assert change is not None
    log.send(Ready(change.id, GroupId(5)))
    log.send(Proceed(change.id))
    go_on(log, random, when)
    log.send(GiveUp((NodeId(5),)))
    drive(log, random)
    log.send(Begin((), (NodeId(5),)))
    drive(log, random)
    assert_settled(log.now, 3)


def test_one_change_at_a_time_and_no_way_back_once_it_goes() -> None:
    log = Log(cluster())
    log.admit(4, 5)
    log.send(Begin((NodeId(4),)))
    change = log.now.change
    assert change is not None
    for command, code in (
        (Begin((NodeId(5),)), 2022),
        (RevokeAdmission(NodeId(4)), 2022),
        (RevokeAdmission(NodeId(2)), 2023),
    ):
        with pytest.raises(UserMistake) as caught:
            log.send(command)
        assert code == caught.value.code
    log.send(Ready(change.id, GroupId(4)))
    log.send(Proceed(change.id))
    with pytest.raises(UserMistake) as late:
        log.send(Abort(change.id))
    assert 2025 == late.value.code


def test_nothing_is_fenced_before_the_change_goes() -> None:
    log = Log(cluster())
    log.admit(4)
    log.send(Begin((NodeId(4),)))
    change = log.now.change
    assert change is not None
    before = log.now
    for command in (
        Proceed(change.id),
        Fenced(change.id, 0, 9),
        Opened(change.id, 0, 11),
        Loaded(change.id, 0, NodeId(4)),
    ):
        log.send(command)
        assert before.to_json() == log.now.to_json()


def test_steps_of_a_change_that_is_over_do_nothing() -> None:
    log = Log(cluster())
    log.admit(4)
    log.send(Begin((NodeId(4),)))
    drive(log, Random(3))
    late, before = [c for c in log.sent if not isinstance(c, Begin)], log.now
    for command in late:
        log.send(command)
    assert before.to_json() == log.now.to_json()


def test_asking_again_gives_the_same_id_and_ids_are_never_used_again() -> None:
    log = Log(cluster())
    log.admit(4)
    log.admit(4)
    assert [1, 2, 3, 4] == sorted(log.now.nodes)
    assert 4 == log.now.node_of("token4")
    assert (NodeId(4),) == log.now.wanted[META].learners
    with pytest.raises(UserMistake, match="host4:6667 is already the address of node 4"):
        log.send(Admit("host9:1", "host4:6667", "other"))
    log.send(RevokeAdmission(NodeId(4)))
    assert () == log.now.wanted[META].learners
    log.send(Admit("host4:6668", "host4:6667", "again"))
    assert 5 == log.now.node_of("again")


def test_a_group_counts_its_terms_and_entries_from_its_own_beginning() -> None:
    began = 5 << 24
    assert [(1, 0), (3, 17)] == [
        (counted(began + n, began + n), counted(began + n, began + m)) for n, m in ((1, 0), (3, 17))
    ]
    assert (4, 200) == (counted(4, 4), counted(4, 200))  # node 4 is one of the cluster's first nodes
    assert 0 == counted(began + 1, 0)  # node `began + 1` is joining and has no entries yet


def test_slots_can_be_placed_by_hand() -> None:
    log = Log(cluster())
    wanted = tuple(log.now.table.slots_of(NodeId(1))[:5])
    log.send(Begin(owners={NodeId(2): wanted}))
    drive(log, Random(5))
    assert {2} == {int(log.now.table.owners[slot]) for slot in wanted}
    for owners in ({NodeId(9): (1,)}, {NodeId(1): (SLOTS,)}, {NodeId(1): (1,), NodeId(2): (1,)}):
        with pytest.raises(UserMistake):
            log.send(Begin(owners=owners))
    log.send(Begin())
    drive(log, Random(6))
    assert_settled(log.now, 2)


def test_a_group_that_begins_anew_does_so_at_a_node_that_stays() -> None:
    log = Log(cluster(3, 1))
    log.admit(4)
    joiner, group = NodeId(4), GroupId(4)
    log.send(Begin((joiner,), (NodeId(1),)))
    assert log.now.change is not None
    id_ = log.now.change.id
    log.send(Ready(id_, group))
    log.send(Proceed(id_))
    log.send(GiveUp((joiner,)))
    wanted = log.now.wanted[group]
    log.send(RecreateGroup(id_, group, NodeId(1), wanted.version))
    assert wanted == log.now.wanted[group]
    log.send(RecreateGroup(id_, group, NodeId(2), wanted.version))
    assert (NodeId(2),) == log.now.wanted[group].voters
    drive(log, Random(10))
    assert all(NodeId(1) not in found.voters for found in log.now.wanted.values())


def test_members_can_be_chosen_by_hand_and_stay_when_a_node_joins() -> None:
    log = Log(cluster(4, 2))
    head = NodeId(1)
    (other,) = set(log.now.table.groups[head].members) - {head}
    instead = next(node for node in log.now.in_state(NodeState.IN) if node not in (head, other))
    owners = log.now.table.owners.tolist()
    log.send(Begin(members={head: (head, instead)}))
    drive(log, Random(7))
    assert (head, instead) == log.now.table.groups[head].members
    assert owners == log.now.table.owners.tolist()
    for members, message in (
        ({NodeId(9): (NodeId(1),)}, "group 9 does not exist"),
        ({head: (other, instead)}, "node 1 cannot leave group 1"),
        ({head: (head,)}, "2 distinct members"),
        ({head: (head, head)}, "distinct members"),
        ({head: (head, NodeId(7))}, "node 7 is not in the cluster"),
    ):
        with pytest.raises(UserMistake, match=message):
            log.send(Begin(members=members))
    log.admit(5)
    log.send(Begin((NodeId(5),)))
    drive(log, Random(8))
    assert {instead, NodeId(5)} & set(log.now.table.groups[head].members)
    assert other not in log.now.table.groups[head].members


def test_the_term_in_which_members_left_is_known_for_as_long_as_there_is_the_group() -> None:
    """A leader of an earlier term does not admit a returning member, because it may rely on entries that were lost.

    The member lost these entries when it left.
    """
    log = Log(cluster(4, 2))
    head = NodeId(1)
    (other,) = set(log.now.table.groups[head].members) - {head}
    instead = next(node for node in log.now.in_state(NodeState.IN) if node not in (head, other))
    log.send(Begin(members={head: (head, instead)}))
    drive(log, Random(7))
    assert {GroupId(1): TERM} == log.now.terms
    log.send(Begin(members={head: (head, other)}))
    while log.now.change is not None and log.now.change.stage is not Stage.REGROUPING:
        go_on(log, Random(8), 1)
    assert log.now.change is not None
    change, version = log.now.change.id, log.now.wanted[GroupId(1)].version
    log.send(Regrouped(change, GroupId(1), version, TERM + 1))
    assert {GroupId(1): TERM + 1} == log.now.terms
    drive(log, Random(9))
    log.send(Begin((), (head,)))
    drive(log, Random(10))
    assert GroupId(1) not in log.now.terms


def test_a_vote_is_kept_in_the_term_with_which_a_group_begins() -> None:
    voted = HardState(TERM, NodeId(2))
    assert voted == with_term_of(voted, TERM)
    assert voted == with_term_of(voted, TERM - 1)
    assert HardState(TERM + 1) == with_term_of(voted, TERM + 1)


def test_a_step_of_before_terms_were_told_is_read() -> None:
    assert Regrouped(3, GroupId(1), 5, 0) == decode_growth('["regrouped",3,1,5]')


def test_copies_of_one_thing_are_in_different_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    log = Log(Topology.first({NodeId(n): replace(node(n), rack=rack) for n, rack in racks.items()}, 2, SLOTS))
    log.send(Admit("host5:6668", "host5:6667", "token5", "b"))
    log.send(Admit("host6:6668", "host6:6667", "token6", "a"))
    log.send(Begin((NodeId(5), NodeId(6)), (NodeId(1),)))
    drive(log, Random(9))
    assert {2, 3, 4, 5, 6} == set(log.now.table.groups)
    for group in log.now.table.groups.values():
        assert {"a", "b"} == {log.now.racks[member] for member in group.members}


@pytest.mark.parametrize("text", ["", "[]", "[1]", '["go"]', '["go",true]', '["go","1"]', '["begin",1,2,3]'])
def test_junk_is_no_step(text: str) -> None:
    with pytest.raises(CorruptFile):
        decode_growth(text)


def unchanged(log: Log, *commands: GrowthCommand) -> None:
    before = log.now.to_json()
    for command in commands:
        log.send(command)
        assert before == log.now.to_json(), command


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (Begin(leaving=(NodeId(9),)), "node 9 is not in the cluster"),
        (Begin(leaving=(NodeId(4),)), "node 4 is not in the cluster"),
        (Begin(leaving=(NodeId(1), NodeId(2))), "1 node would be left for 2 replicas; add a node first"),
        (Begin((NodeId(4),), owners={NodeId(1): (1,)}), "cannot be chosen while nodes join or leave"),
        (Begin((NodeId(4),), members={NodeId(1): (NodeId(1), NodeId(2))}), "cannot be chosen while nodes join"),
        (Begin(leaving=(NodeId(3),), owners={NodeId(1): (1,)}), "cannot be chosen while nodes join or leave"),
        (Begin(owners={NodeId(1): (1, SLOTS)}), "a slot is listed twice or does not exist"),
        (Begin(owners={NodeId(1): (1, 1)}), "a slot is listed twice or does not exist"),
        (GiveUp((NodeId(1), NodeId(2), NodeId(3))), "no node would be left"),
        (Abort(11), "change 11 of the cluster has already ended"),
    ],
)
def test_a_mistake_changes_nothing_and_is_told(command: GrowthCommand, message: str) -> None:
    log = Log(cluster())
    log.admit(4)
    before = log.now
    with pytest.raises(UserMistake, match=message):
        log.send(command)
    assert before is log.now


def test_a_step_out_of_its_turn_does_nothing() -> None:
    log = Log(cluster())
    log.admit(4)
    log.send(Begin((NodeId(4),)))
    change = log.now.change
    assert change is not None
    log.send(Ready(change.id, GroupId(4)))
    log.send(Proceed(change.id))
    version = log.now.wanted[GroupId(4)].version
    unchanged(
        log,
        Fenced(change.id, len(change.moves), 9),
        Fenced(change.id, 1, 9),
        Opened(change.id, 0, version),
        Loaded(change.id, 0, NodeId(4)),
        Dropped(change.id, 0),
        Regrouped(change.id, GroupId(1), log.now.wanted[GroupId(1)].version),
        Regrouped(change.id, GroupId(9), 1),
        Ready(change.id, GroupId(1)),
        RecreateGroup(change.id, GroupId(1), NodeId(2), log.now.wanted[GroupId(1)].version),
        RecreateGroup(change.id, GroupId(4), NodeId(2), version),
        ForceSingleMember(GroupId(1), NodeId(1), log.now.wanted[GroupId(1)].version),
    )
    log.send(Fenced(change.id, 0, 9))
    unchanged(log, Fenced(change.id, 1, 9), Opened(change.id, 0, version - 1), Loaded(change.id, 0, NodeId(4)))


def test_a_node_has_replicas_of_the_groups_that_it_is_in_or_will_be() -> None:
    log = Log(cluster(5))
    log.admit(6)
    log.send(Begin((NodeId(6),), (NodeId(2),)))
    seen = set()
    random = Random(2)
    while (change := log.now.change) is not None:
        seen.add(change.stage)
        for node in log.now.nodes:
            expected = {group for group, wanted in log.now.wanted.items() if node in wanted.nodes}
            for group, regroup in change.regroups.items():
                if not regroup.done and node in {*regroup.before, *regroup.after}:
                    expected.add(group)
            assert sorted(expected) == log.now.groups_of(node)
        for group, wanted in log.now.wanted.items():
            halves = change.regroups.get(group)
            known = {*wanted.nodes} | (set() if halves is None else {*halves.before, *halves.after})
            known |= {*log.now.table.groups[NodeId(group)].members} if group != META else set()
            assert known == log.now.members_of(group)
        go_on(log, random, 1)
    assert {Stage.PREPARING, Stage.MOVING, Stage.LOADING, Stage.REGROUPING} == seen
    assert [] == log.now.groups_of(NodeId(2))


def test_a_newer_membership_in_a_nodes_own_log_counts_and_no_other() -> None:
    known = cluster()
    (other,) = [g for g in known.wanted if NodeId(1) not in known.wanted[g].nodes]
    version = known.wanted[other].version
    groups = known.groups_of(NodeId(1))
    assert other not in groups
    assert sorted([*groups, other]) == known.groups_of(NodeId(1), {other: membership(version + 1, (NodeId(1),))})
    for logs in (
        {other: membership(version, (NodeId(1),))},
        {other: membership(version + 1, (NodeId(2),))},
        {GroupId(9): membership(version + 1, (NodeId(1),))},
    ):
        assert groups == known.groups_of(NodeId(1), logs)


def test_a_group_is_broken_without_a_majority_of_what_it_is_or_of_what_it_becomes() -> None:
    three = cluster(4, replicas=3)
    group = GroupId(1)
    first, second, _ = three.wanted[group].voters
    assert not three.is_broken(group)
    assert not replace(three, lost=frozenset({first})).is_broken(group)
    assert replace(three, lost=frozenset({first, second})).is_broken(group)
    log = Log(cluster())
    log.admit(4)
    log.send(Begin((NodeId(4),)))
    change = log.now.change
    assert change is not None
    becomes = next(g for g, r in change.regroups.items() if NodeId(4) in r.after and g != META)
    without = replace(log.now, lost=frozenset({NodeId(4)}))
    assert without.is_broken(becomes)
    done = change.with_regroup(becomes, replace(change.regroups[becomes], done=True))
    assert not without.with_change(done).is_broken(becomes)


@pytest.mark.parametrize("seed", range(3))
def test_nodes_vote_in_the_meta_group_from_the_end_of_joining_to_the_end_of_leaving(seed: int) -> None:
    log = Log(cluster(5, meta_voters=3))
    log.admit(6)
    log.send(Begin((NodeId(6),), (NodeId(1),)))
    random = Random(seed)
    while (change := log.now.change) is not None:
        ends = change.stage is Stage.REGROUPING
        assert ends == (NodeId(6) in log.now.may_vote())
        assert NodeId(6) in log.now.wanted[META].nodes
        assert NodeId(1) in log.now.may_vote()
        assert ends == (NodeId(1) not in log.now.wanted[META].nodes)
        go_on(log, random, 1)
    assert {2, 3, 4, 5, 6} == {*log.now.wanted[META].nodes} == log.now.may_vote()


def test_lost_nodes_hold_nothing_and_only_lost_joiners_are_given_up() -> None:
    log = Log(cluster(4, replicas=2))
    log.admit(5)
    log.send(Begin((NodeId(5),)))
    change = log.now.change
    assert change is not None
    for command in (Ready(change.id, GroupId(5)), Proceed(change.id), GiveUp((NodeId(5),))):
        log.send(command)
    assert log.now.change is not None
    assert frozenset({5}) == log.now.change.given_up
    log.send(GiveUp((NodeId(1),)))
    found = log.now.change
    assert found is not None
    assert frozenset({5}) == found.given_up
    assert [tuple(n for n in move.holders if n != 1) for move in change.moves] == [m.holders for m in found.moves]
    assert [False] * len(found.moves) == [move.lost for move in found.moves]
    assert {1, 5} == log.now.lost
    before = {group: r.before for group, r in found.regroups.items() if group == META}
    assert {META: tuple(n for n in change.regroups[META].before if n != 1)} == before


def test_a_group_goes_on_with_one_member_only_if_another_one_is_lost() -> None:
    log = Log(cluster(4, replicas=2))
    group = GroupId(1)
    first, second = log.now.wanted[group].voters
    others = [n for n in log.now.nodes if n not in (first, second)]
    unchanged(log, ForceSingleMember(group, first, log.now.wanted[group].version))
    log.send(GiveUp((second,)))
    version = log.now.wanted[group].version
    unchanged(
        log,
        ForceSingleMember(group, others[0], version),
        ForceSingleMember(group, second, version),
        ForceSingleMember(group, first, version + 1),
    )
    assert not log.now.is_forced_single(group)
    log.send(ForceSingleMember(group, first, version))
    assert ((first,), True) == (log.now.wanted[group].voters, log.now.is_forced_single(group))
