"""The slots that a group owns during moves: accepted and refused writes, slots that readers see, and the JSON form."""

from __future__ import annotations

import json

import numpy as np
import pytest

from saros_cluster.data.applied_ranges import AppliedRange, RequestSet
from saros_cluster.data.ownership import (
    LEFT,
    NEVER,
    Arrival,
    Complete,
    Fence,
    Open,
    Ownership,
    Prepare,
    Release,
    transfer_from_json,
    transfer_to_json,
)
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import slot_of
from saros_cluster.raft.messages import GroupId
from saros_storage.base.errors import CorruptFile, UserMistake

REQUESTS = AppliedRange(frozenset((6, 7)), RequestSet.of([(1, 2), (1, 5)]))


def arrival(epoch: int, *slots: int, partitions: tuple[tuple[str, int], ...] = ()) -> Arrival:
    return Arrival(epoch, 3, 1, GroupId(2), 70, (NodeId(1), NodeId(4)), slots, partitions, 90)


def moved() -> Ownership:
    """Return the ownership of a group after three moves.

    Of eight slots, the group first had 0 to 3; move 4 took 1 and 2, move 5 brought 6, and move 7 took 3.
    """
    found = Ownership(np.arange(8) < 4)
    found.fence(Fence(4, (1, 2)), 50)
    assert found.open(arrival(5, 6, partitions=(("root.a", 1), ("root.b", 2))))
    found.fence(Fence(7, (3,)), 80)
    return found


def again(ownership: Ownership) -> Ownership:
    return Ownership.from_json(json.loads(json.dumps(ownership.to_json())))


@pytest.mark.parametrize("find", [moved, lambda: again(moved())], ids=["as it is", "of JSON"])
def test_slots_are_accepted_and_kept(find) -> None:
    found = find()
    assert [0, 6] == [slot for slot in range(8) if found.owns(slot)]
    assert [0, 1, 2, 3, 6] == [slot for slot in range(8) if found.has(slot)]
    assert {0: {0}, 5: {6}} == found.owned()
    assert ({0: {1, 2}}, {0: {3}}, {}) == (found.leaving(4), found.leaving(7), found.leaving(5))
    assert (0, 5) == (found.since(0), found.since(6))
    assert [True, False, True] == [found.has_left(epoch) for epoch in (4, 5, 7)]
    assert found.has_moved


def test_slots_have_moved_when_some_came_or_some_left() -> None:
    whole, none = Ownership(np.ones(8, np.bool_)), Ownership(np.zeros(8, np.bool_))
    assert not whole.has_moved
    whole.fence(Fence(1, (0,)), 9)
    none.open(arrival(1, 1))
    assert whole.has_moved
    assert none.has_moved
    assert [[1, NEVER, NEVER], [1, 1, NEVER], [6, NEVER, NEVER]] == none.to_json()["slots"]


def test_a_slot_that_the_first_move_brought_beside_one_of_the_start_comes_back_from_json() -> None:
    found = Ownership(np.arange(8) == 0)
    found.open(arrival(1, 1))
    assert {0: {0}, 1: {1}} == again(found).owned()


def test_the_series_of_a_database_are_kept_where_its_first_slice_is() -> None:
    slot = slot_of("root.a", 0, 64)
    assert slot_of("root.a", 1, 64) != slot
    found = Ownership(np.arange(64) == slot)
    assert slot == found.slot("root.a", 0)
    assert found.owns_schema("root.a")
    assert found.has_schema("root.a")
    assert not Ownership(np.arange(64) != slot).owns_schema("root.a")
    found.fence(Fence(1, (slot,)), 9)
    assert not found.owns_schema("root.a")
    assert found.has_schema("root.a")
    found.leave(1)
    assert not found.has_schema("root.a")


@pytest.mark.parametrize(
    ("slot", "epochs"), [(0, range(10)), (1, range(4)), (3, range(7)), (6, range(5, 10)), (7, range(0))]
)
def test_a_reader_finds_the_slots_of_its_table(slot: int, epochs: range) -> None:
    assert list(epochs) == [epoch for epoch in range(10) if moved().shows(slot, epoch, 0)]


def test_who_receives_slots_finds_those_that_left_with_its_move() -> None:
    assert [1, 2] == [slot for slot in range(8) if moved().shows(slot, 4, LEFT)]
    assert [] == [slot for slot in range(8) if moved().shows(slot, 6, LEFT)]


def test_an_entry_is_refused_unless_its_coordinator_knows_the_slots() -> None:
    found = moved()
    found.check([], 0)
    found.check([0], 0)
    found.check([0, 6], 5)
    found.check([0, 6], 6)
    for slots in ([1], [0, 7], [3]):
        with pytest.raises(UserMistake, match="belongs to another group"):
            found.check(slots, 9)
    with pytest.raises(UserMistake, match="moved here after"):
        found.check([0, 6], 4)


@pytest.mark.parametrize(
    ("epoch", "inbound", "refused"), [(7, 5, False), (8, 4, False), (6, 5, True), (7, 6, True), (9, 5, False)]
)
def test_an_entry_for_all_groups_needs_the_moves_that_are_applied(epoch: int, inbound: int, refused: bool) -> None:
    if refused:
        with pytest.raises(UserMistake, match="slots have moved"):
            moved().check_epoch(epoch, inbound)
    else:
        moved().check_epoch(epoch, inbound)


@pytest.mark.parametrize(
    ("epoch", "inbound", "refused"),
    [(4, 5, False), (3, 5, True), (9, 5, False), (9, 6, True), (7, LEFT, False), (4, LEFT, True), (5, LEFT, True)],
)
def test_a_view_needs_what_is_opened_and_not_released(epoch: int, inbound: int, refused: bool) -> None:
    found = moved()
    found.leave(4)
    if refused:
        with pytest.raises(UserMistake, match="slots have moved"):
            found.check_view(epoch, inbound)
    else:
        found.check_view(epoch, inbound)


def test_nothing_of_a_fenced_slot_changes_after_its_fence() -> None:
    found = moved()
    assert [False, True] == [found.is_fenced_at(1, index) for index in (50, 51)]
    assert [False, True] == [found.is_fenced_at(3, index) for index in (80, 81)]
    assert not found.is_fenced_at(0, 1_000)
    assert not found.is_fenced_at(6, 1_000)


def test_released_slots_are_gone_and_a_repeated_release_has_no_effect() -> None:
    found = moved()
    assert [1, 2] == found.leave(4).tolist()
    assert [0, 3, 6] == [slot for slot in range(8) if found.has(slot)]
    assert (4, {7: 80}) == (found.released, found.fences)
    assert [] == found.leave(4).tolist()
    assert [] == found.leave(2).tolist()
    assert 4 == found.released
    assert not found.is_fenced_at(1, 1_000)


def test_repeated_moves_have_no_effect() -> None:
    found = moved()
    before = found.to_json()
    assert not found.open(arrival(5, 6, 7))
    assert not found.open(arrival(3, 7))
    found.fence(Fence(7, (0, 3)), 99)
    found.fence(Fence(4, (0,)), 99)
    assert before == found.to_json()


def test_slots_that_come_back_before_they_were_removed_stay() -> None:
    found = moved()
    assert found.open(arrival(8, 1, 2))
    assert {0: {0}, 5: {6}, 8: {1, 2}} == found.owned()
    assert [] == found.leave(4).tolist()
    assert found.owns(1)


def test_a_dropped_database_does_not_arrive() -> None:
    found = moved()
    found.forget("root.a")
    assert (("root.b", 2),) == found.arrivals[5].partitions
    found.complete(5)
    found.complete(5)
    assert {} == found.arrivals


def test_the_json_is_as_long_as_the_runs_of_slots() -> None:
    assert {
        "slots": [[1, 0, NEVER], [2, 0, 4], [1, 0, 7], [2, NEVER, NEVER], [1, 5, NEVER], [1, NEVER, NEVER]],
        "fenced": 7,
        "opened": 5,
        "let_go": 0,
        "fences": [(4, 50), (7, 80)],
        "arrivals": [[5, 3, 1, [2, 70, (1, 4)], [[6, 1]], (("root.a", 1), ("root.b", 2)), 90]],
    } == moved().to_json()
    found = again(moved())
    assert (moved().fences, moved().arrivals) == (found.fences, found.arrivals)
    assert json.dumps(moved().to_json()) == json.dumps(found.to_json())
    whole = Ownership(np.ones(8, np.bool_))
    assert [[8, 0, NEVER]] == whole.to_json()["slots"]
    whole.fence(Fence(1, (0,)), 9)
    assert [[1, 0, 1], [7, 0, NEVER]] == whole.to_json()["slots"]


@pytest.mark.parametrize(
    "transfer",
    [
        Fence(4, (1, 2, 7)),
        Prepare(5),
        Open(arrival(5, 6, 7, partitions=(("root.a", -1),)), (REQUESTS,), ("drop",)),
        Release(6),
        Complete(7),
    ],
    ids=lambda transfer: type(transfer).__name__,
)
def test_transfers_come_back_from_the_log(transfer) -> None:
    assert transfer == transfer_from_json(json.loads(json.dumps(transfer_to_json(transfer))))


@pytest.mark.parametrize("words", [["fence", "x", []], ["settle", None], ["open", [], [], []]])
def test_a_transfer_with_other_values_is_damage(words: list[object]) -> None:
    with pytest.raises(CorruptFile, match="invalid slot transfer: "):
        transfer_from_json(words)


@pytest.mark.parametrize("words", [[], ["fence"], ["other", 1]])
def test_another_transfer_is_damage(words: list[object]) -> None:
    with pytest.raises(CorruptFile, match=r"invalid slot transfer$"):
        transfer_from_json(words)
