"""A member's log in memory: limits in bytes, the last position where two logs may agree, and truncation."""

from __future__ import annotations

import pytest

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.entry_log import EntryLog
from saros_cluster.raft.membership import Membership, membership
from saros_cluster.raft.messages import Entry, EntryKind, Position

FOUNDED = membership(1, [1, 2, 3])
#: The size of each entry in these tests.
SIZE = Entry(0, 0, EntryKind.DATA, b"data").size_bytes


def entries(*terms: int, first: int = 11) -> list[Entry]:
    return [Entry(index, term, EntryKind.DATA, b"data") for index, term in enumerate(terms, first)]


def log_of(*terms: int, commit: int = 10) -> EntryLog:
    """Return a log that begins after entry 10 of term 2, and has durable entries of the given terms."""
    log = EntryLog(Position(10, 2, FOUNDED), entries(*terms), 10)
    log.commit = commit
    log.validate()
    return log


def member_entry(index: int, term: int, found: Membership) -> Entry:
    return Entry(index, term, EntryKind.MEMBERSHIP, found.encode())


@pytest.mark.parametrize(
    ("bytes_max", "count"), [(0, 1), (SIZE, 1), (2 * SIZE - 1, 1), (2 * SIZE, 2), (3 * SIZE, 3), (99 * SIZE, 4)]
)
def test_a_limit_in_bytes_selects_the_first_entries_that_fit_and_at_least_one(bytes_max: int, count: int) -> None:
    log = log_of(2, 2, 3, 3, 3)
    assert tuple(entries(2, 2, 3, 3)[:count]) == log.entries(11, 14, bytes_max)
    assert tuple(entries(2, 2, 3, 3)) == log.entries(11, 14)
    assert (4 * SIZE, 0) == (log.bytes_between(11, 14), log.bytes_between(11, 10))


def test_terms_are_known_from_the_base_to_the_last_entry() -> None:
    log = log_of(2, 3)
    assert [None, 2, 2, 3, None] == [log.term_at(index) for index in (9, 10, 11, 12, 13)]
    assert (10, 2) == (EntryLog(Position(10, 2, FOUNDED), (), 10).last_index, log_of().last_term)


@pytest.mark.parametrize(
    ("index", "term", "expected"),
    [
        (14, 9, (14, 5)),
        (99, 9, (14, 5)),
        (14, 5, (14, 5)),
        (14, 4, (12, 3)),
        (13, 3, (12, 3)),
        (12, 2, (10, 2)),
        (14, 1, (10, 2)),
        (7, 9, (7, 0)),
    ],
)
def test_the_last_place_where_two_logs_may_agree(index: int, term: int, expected: tuple[int, int]) -> None:
    assert expected == log_of(3, 3, 5, 5).conflict_hint(index, term)


@pytest.mark.parametrize(("index", "term", "is_current"), [(12, 3, True), (11, 3, False), (99, 2, False), (1, 4, True)])
def test_a_log_is_current_by_its_last_term_and_then_its_length(index: int, term: int, is_current: bool) -> None:
    assert is_current == log_of(3, 3).is_current(index, term)


@pytest.mark.parametrize(
    ("index", "needed", "keep_bytes", "expected"),
    [
        (14, 99, 99 * SIZE, 14),
        (13, 99, 99 * SIZE, 13),
        (14, 11, 99 * SIZE, 10),
        (14, 13, 99 * SIZE, 12),
        (14, 11, 5 * SIZE, 10),
        (14, 11, 5 * SIZE - 1, 11),
        (14, 11, 2 * SIZE, 13),
        (14, 11, 0, 14),
        (14, 13, 4 * SIZE, 12),
    ],
)
def test_what_others_need_is_kept_up_to_a_number_of_bytes(
    index: int, needed: int, keep_bytes: int, expected: int
) -> None:
    assert expected == log_of(2, 2, 2, 2, 2).compactable_index(index, needed, keep_bytes)


def test_entries_of_another_term_replace_those_from_there_on() -> None:
    log = log_of(2, 2, 2, commit=11)
    assert not log.merge(entries(2, 2))
    assert 13 == log.last_index
    assert log.merge(entries(2, 2, 4, 4, 4))
    assert [2, 2, 4, 4, 4] == [entry.term for entry in log.entries(11, 15)]
    log.validate()
    assert (12, 12) == (log.taken, log.durable)
    assert tuple(entries(4, 4, 4, first=13)) == log.take()
    assert () == log.take()
    assert 12 == log.durable
    log.mark_durable()
    assert 15 == log.durable


def test_committed_entries_are_never_replaced() -> None:
    log = log_of(2, 2, 2, commit=12)
    with pytest.raises(ValueError, match="contradicts committed entries"):
        log.merge(entries(4, first=12))
    assert [2, 2, 2] == [entry.term for entry in log.entries(11, 13)]
    assert log.merge(entries(4, first=13))


def test_entries_before_the_base_are_those_that_it_has() -> None:
    log = log_of(2)
    assert not log.merge(entries(1, 2, 2, first=9))
    assert log.merge(entries(1, 2, 2, 2, first=9))
    assert [2, 2] == [entry.term for entry in log.entries(11, 12)]


def test_a_membership_is_in_effect_until_it_is_truncated() -> None:
    log = log_of(2)
    other, third = membership(2, [1, 2]), membership(3, [1, 2, 4])
    log.append(member_entry(12, 2, other))
    log.append(member_entry(13, 2, third))
    assert (third, 13) == (log.membership, log.membership_index)
    found = [log.position(index).membership for index in (10, 11, 12, 13)]
    assert [FOUNDED, FOUNDED, other, third] == found
    assert log.merge(entries(3, first=13))
    assert (other, 12) == (log.membership, log.membership_index)
    assert log.merge([member_entry(12, 3, third)])
    assert (third, 12) == (log.membership, log.membership_index)
    log.validate()


def test_a_voter_that_is_being_removed_may_be_needed_until_that_is_committed() -> None:
    """A new voter may be needed for a majority as soon as the change that adds it is in the log."""
    log = log_of(2)
    log.append(member_entry(12, 2, membership(2, [1, 2, 4])))
    three, four = NodeId(3), NodeId(4)
    assert [True, True, False] == [log.may_need(node) for node in (three, four, NodeId(5))]
    log.commit = 11
    assert log.may_need(three)
    log.commit = 12
    assert [False, True] == [log.may_need(three), log.may_need(four)]


def test_entries_are_applied_once_they_are_committed_and_durable_here() -> None:
    log = log_of(2, 2, 2, commit=12)
    for entry in entries(2, 2, first=14):
        log.append(entry)
    assert tuple(entries(2)) == log.next_committed_entries(SIZE)
    assert SIZE == log.applying_bytes
    assert tuple(entries(2, first=12)) == log.next_committed_entries(99 * SIZE)
    assert () == log.next_committed_entries(99 * SIZE)
    log.mark_applied(11)
    assert (11, SIZE) == (log.applied, log.applying_bytes)
    log.commit = 15
    assert tuple(entries(2, first=13)) == log.next_committed_entries(99 * SIZE)
    log.take()
    log.mark_durable()
    assert tuple(entries(2, 2, first=14)) == log.next_committed_entries(99 * SIZE)
    log.mark_applied(15)
    assert 0 == log.applying_bytes
    log.validate()


def test_a_compacted_log_knows_its_membership_and_its_size() -> None:
    log = log_of(2, 2, commit=12)
    other = membership(2, [1, 2])
    log.append(member_entry(13, 2, other))
    log.append(Entry(14, 2, EntryKind.DATA, b"data"))
    log.take()
    log.mark_durable()
    log.commit = 14
    log.next_committed_entries(99 * SIZE)
    log.mark_applied(14)
    log.compact(12)
    log.validate()
    assert (FOUNDED, other) == (log.position(12).membership, log.membership)
    log.compact(12)
    log.compact(13)
    log.validate()
    assert (13, 13, SIZE) == (log.base_index, log.membership_index, log.size_bytes)
    assert (None, 2) == (log.term_at(12), log.term_at(13))


def test_a_log_begins_anew_after_a_snapshot() -> None:
    log = log_of(2, 2, commit=11)
    log.append(member_entry(13, 2, membership(2, [1, 2])))
    snapshot = Position(20, 5, membership(3, [1, 4]))
    log.restart(snapshot)
    log.validate()
    assert (20, 20, 5) == (log.base_index, log.last_index, log.last_term)
    assert (snapshot.membership, 20) == (log.membership, log.membership_index)
    assert (0, 0, ()) == (log.size_bytes, log.applying_bytes, log.take())
