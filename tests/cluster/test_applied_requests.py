"""A group's memory of requests that have taken effect: its duration, and the slots for which requests count."""

from __future__ import annotations

from saros_cluster.data.applied_ranges import AppliedRange, RequestSet
from saros_cluster.data.applied_requests import MEMORY, AppliedRequests
from saros_cluster.data.command import Request

FIRST, SECOND, OTHER = Request(1, 1), Request(1, 2), Request(2, 1)


def came(*slots: int, request: Request = FIRST) -> AppliedRange:
    return AppliedRange(frozenset(slots), RequestSet.of([request]))


def test_a_request_is_remembered_by_the_first_entry_that_applied_it() -> None:
    requests = AppliedRequests()
    assert requests.entry_of(FIRST) is None
    requests.remember(FIRST, 20, 0)
    requests.remember(FIRST, 40, 3)
    assert 20 == requests.entry_of(FIRST)
    assert 20 == AppliedRequests(requests.dump()).entry_of(FIRST)
    assert requests.entry_of(SECOND) is None


def test_a_request_counts_for_slots_that_its_sender_knew_of_at_one_attempt() -> None:
    requests = AppliedRequests()
    requests.remember(FIRST, 20, 0)
    requests.remember(FIRST, 40, 3)
    assert [True, True, False] == [requests.covers(FIRST, 50, slot, since) for slot, since in ((5, 0), (6, 3), (6, 4))]
    assert frozenset({5, 6}) == requests.covered(FIRST, 50, frozenset({5, 6}), 3)
    assert frozenset() == requests.covered(SECOND, 50, frozenset({5, 6}), 0)


def test_requests_came_with_the_slots_of_several_moves() -> None:
    requests = AppliedRequests()
    requests.add_arrived(3, 10, [came(5), came(6, request=SECOND)])
    requests.add_arrived(4, 20, [came(7, request=OTHER)])
    assert [True] * 3 == [requests.is_known(request, 30) for request in (FIRST, SECOND, OTHER)]
    assert not requests.is_known(Request(3, 1), 30)
    assert frozenset({6}) == requests.covered(SECOND, 30, frozenset({5, 6, 7}), 3)
    assert frozenset() == requests.covered(SECOND, 30, frozenset({5, 6, 7}), 4)
    assert frozenset({7}) == requests.covered(OTHER, 30, frozenset({5, 6, 7}), 4)


def test_nothing_is_forgotten_before_its_time() -> None:
    requests = AppliedRequests()
    requests.remember(FIRST, 10, 0)
    requests.remember(OTHER, 11, 0)
    requests.add_arrived(3, 10, [came(5)])
    requests.remember(SECOND, 10 + MEMORY, 0)
    assert [(1, 1, 10, 0), (2, 1, 11, 0), (1, 2, 10 + MEMORY, 0)] == requests.dump()
    assert [3] == [epoch for epoch, _, _ in requests.dump_arrived()]
    requests.remember(Request(1, 3), 11 + MEMORY, 0)
    assert [(2, 1, 11, 0), (1, 2, 10 + MEMORY, 0), (1, 3, 11 + MEMORY, 0)] == requests.dump()
    assert [] == requests.dump_arrived()


def test_a_repeated_request_is_remembered_from_its_last_attempt() -> None:
    requests = AppliedRequests()
    requests.remember(FIRST, 10, 0)
    requests.remember(FIRST, 30, 0)
    requests.remember(SECOND, 20 + MEMORY, 0)
    assert requests.is_known(FIRST, 20 + MEMORY)
    assert not requests.is_known(FIRST, 31 + MEMORY)
