from __future__ import annotations

import pytest

from saros_scheduler.deadline_queue import DeadlineQueue, DeadlineQueueFull


def test_due_items_come_earliest_first_and_once() -> None:
    queue: DeadlineQueue[str] = DeadlineQueue(10)
    for name, deadline in [("c", 30), ("a", 10), ("b", 20), ("z", 99)]:
        queue.add(name, deadline)
    assert 10 == queue.next_deadline_ns()
    assert [] == queue.pop_due(9)
    assert ["a", "b", "c"] == queue.pop_due(30)
    assert [] == queue.pop_due(30)
    assert 99 == queue.next_deadline_ns()


def test_a_discarded_item_never_comes_due() -> None:
    queue: DeadlineQueue[str] = DeadlineQueue(10)
    queue.add("a", 10)
    queue.discard("a")
    queue.discard("a")
    assert None is queue.next_deadline_ns()
    queue.add("a", 50)
    assert [] == queue.pop_due(10)
    assert ["a"] == queue.pop_due(50)


def test_the_queue_is_bounded_and_room_comes_back() -> None:
    queue: DeadlineQueue[int] = DeadlineQueue(2)
    for number in range(100):
        queue.add(number, number)
        if number % 2:
            with pytest.raises(DeadlineQueueFull, match="2 queries are already running"):
                queue.add(-1, 0)
            queue.discard(number)
            queue.discard(number - 1)
    assert 0 == len(queue)
