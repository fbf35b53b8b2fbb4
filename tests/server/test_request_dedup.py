"""A numbered write takes effect only once, even if it arrives several times."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from waiting import PATIENCE_S

from saros_server.node import request_dedup as module
from saros_server.node.request_dedup import NO_REQUEST, RequestTable, State
from saros_server.node.request_dedup_runner import OutcomeForgotten, Requests
from saros_wire.protocol import SEQUENCES_KEPT


def test_a_request_is_new_then_running_then_answered() -> None:
    known = RequestTable()
    assert State.NEW is known.begin((1, 1))
    assert State.RUNNING is known.begin((1, 1))
    known.finish((1, 1), 0)
    assert [0, 0] == [known.begin((1, 1)), known.begin((1, 1))]
    assert State.NEW is known.begin((2, 1))  # another client's request


def test_a_request_that_failed_may_come_again() -> None:
    known = RequestTable()
    known.begin((1, 1))
    known.give_up((1, 1))
    assert State.NEW is known.begin((1, 1))


def test_numbers_may_come_in_any_order_within_the_memory() -> None:
    known = RequestTable()
    first, last = 1_000, 1_000 + SEQUENCES_KEPT - 1
    for number in (last, first, first + 7):
        assert State.NEW is known.begin((1, number))
        known.finish((1, number), number)
    assert [first, first + 7, last] == [known.begin((1, n)) for n in (first, first + 7, last)]
    assert State.NEW is known.begin((1, first + 1))


def test_what_is_too_old_is_forgotten_and_not_new() -> None:
    known = RequestTable()
    known.begin((1, 5))
    known.finish((1, 5), 50)
    assert State.NEW is known.begin((1, 5 + SEQUENCES_KEPT - 1))
    assert 50 == known.begin((1, 5))
    assert State.NEW is known.begin((1, 5 + SEQUENCES_KEPT))
    assert State.FORGOTTEN is known.begin((1, 5))
    assert State.NEW is known.begin((1, 5 + 100 * SEQUENCES_KEPT))
    known.finish((1, 6), 60)  # if a request ends very late, this evicts no other request
    assert State.NEW is known.begin((1, 6 + 100 * SEQUENCES_KEPT))


def test_a_request_that_ends_when_it_is_just_forgotten_takes_nobodys_place() -> None:
    known = RequestTable()
    known.begin((1, 5))
    assert State.NEW is known.begin((1, 5 + SEQUENCES_KEPT))
    known.finish((1, 5), 50)
    assert State.RUNNING is known.begin((1, 5 + SEQUENCES_KEPT))


def test_clients_are_bounded_the_one_that_wrote_longest_ago_goes(monkeypatch) -> None:
    monkeypatch.setattr(module, "CLIENTS_MAX", 2)
    known = RequestTable()
    for client in (1, 2):
        known.begin((client, 1))
        known.finish((client, 1), client)
    assert 1 == known.begin((1, 1))
    known.begin((3, 1))
    assert [1, State.NEW] == [known.begin((1, 1)), known.begin((2, 1))]
    known.finish((3, 1), 0)  # the client has been evicted


def test_repetitions_wait_for_the_first_and_get_its_answer() -> None:
    requests = Requests()
    started, go = threading.Event(), threading.Event()
    calls = []

    def write() -> int:
        calls.append(1)
        started.set()
        assert go.wait(PATIENCE_S)
        return 42

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(requests.run_once, (9, 3), write) for _ in range(4)]
        assert started.wait(PATIENCE_S)
        go.set()
        assert [42] * 4 == [answer.result(PATIENCE_S) for answer in answers]
    assert [1] == calls


def test_after_a_failure_the_next_one_carries_it_out() -> None:
    requests = Requests()
    with pytest.raises(ZeroDivisionError):
        requests.run_once((1, 1), lambda: 1 // 0)
    assert -1 == requests.run_once((1, 1), lambda: -1)  # -1: the answer has rows, which are not remembered
    assert 5 == requests.run_once((1, 1), lambda: 5)
    assert 5 == requests.run_once((1, 1), lambda: 6)
    assert [7, 8] == [requests.run_once(NO_REQUEST, lambda: 7), requests.run_once(NO_REQUEST, lambda: 8)]


def test_a_forgotten_request_is_refused() -> None:
    requests = Requests()
    requests.run_once((1, 1 + SEQUENCES_KEPT), lambda: 1)
    with pytest.raises(OutcomeForgotten) as caught:
        requests.run_once((1, 1), lambda: 1)
    assert 2018 == caught.value.code
    assert requests.memory != Requests().memory
