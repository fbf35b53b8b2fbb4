"""The policy of the multilevel queue: a scripted example (testdata/multilevel.txt) and property tests."""

from __future__ import annotations

import copy
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from saros_scheduler.multilevel_queue import (
    CHARGE_NS_MAX,
    LEVEL_STARTS_NS,
    LEVELS,
    SECOND_NS,
    MultilevelPriorityQueue,
    level_of,
    weight_of,
)

STORY = Path(__file__).parent / "testdata" / "multilevel.txt"


def run_command(queue: MultilevelPriorityQueue[str], line: str) -> str | None:
    verb, *words = line.split()
    if verb == "offer":
        queue.offer(words[0], int(float(words[1]) * SECOND_NS))
    elif verb == "charge":
        queue.charge(int(words[0]), int(float(words[1]) * SECOND_NS))
    elif verb == "poll":
        return queue.poll() or "none"
    elif verb == "only":
        return str(queue.poll_only(words[0])).lower()
    elif verb == "remove":
        return str(queue.remove(words[0])).lower()
    else:
        assert verb == "times"
        return " ".join(str(t // SECOND_NS) for t in queue.level_times_ns())
    return None


def test_the_story() -> None:
    queue: MultilevelPriorityQueue[str] = MultilevelPriorityQueue()
    got: list[str] = []
    expected: list[str] = []
    in_output = False
    for line in [*STORY.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("#"):
            continue
        if line == "----":
            in_output = True
        elif not line:
            if in_output:
                assert expected == got
                got, expected, in_output = [], [], False
        elif in_output:
            expected.append(line)
        else:
            answer = run_command(queue, line)
            queue.validate()
            if answer is not None:
                got.append(answer)


def test_levels_begin_where_they_should() -> None:
    assert [0, 1, 2, 3, 4] == [level_of(start) for start in LEVEL_STARTS_NS]
    assert [0, 0, 1, 2, 3] == [level_of(max(start - 1, 0)) for start in LEVEL_STARTS_NS]
    assert [16, 8, 4, 2, 1] == [weight_of(level) for level in range(LEVELS)]


def test_busy_levels_get_shares_of_two_to_one() -> None:
    queue: MultilevelPriorityQueue[int] = MultilevelPriorityQueue()
    for level, start in enumerate(LEVEL_STARTS_NS):
        queue.offer(level, start)
    turns = [0] * LEVELS
    for _ in range(3_100):
        level = queue.poll()
        assert level is not None
        turns[level] += 1
        queue.charge(level, 100_000_000)
        queue.offer(level, LEVEL_STARTS_NS[level])
    for level in range(LEVELS - 1):
        assert 1.9 < turns[level] / turns[level + 1] < 2.1


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("offer"), st.integers(0, 400)),
            st.tuples(st.just("poll"), st.just(0)),
            st.tuples(st.just("only"), st.integers(0, 60)),
            st.tuples(st.just("remove"), st.integers(0, 60)),
            st.tuples(st.just("charge"), st.integers(0, 400)),
        ),
        max_size=60,
    )
)
@settings(max_examples=50)
def test_nothing_is_lost_and_nothing_comes_twice(commands: list[tuple[str, int]]) -> None:
    queue: MultilevelPriorityQueue[int] = MultilevelPriorityQueue()
    inside: set[int] = set()
    for number, (verb, value) in enumerate(commands):
        before = queue.level_times_ns()
        if verb == "offer":
            queue.offer(number, value * SECOND_NS)
            inside.add(number)
        elif verb == "poll":
            item = queue.poll()
            assert (item in inside) if inside else item is None
            inside.discard(-1 if item is None else item)
        elif verb == "only":
            next_one = copy.deepcopy(queue).poll()
            assert (next_one == value) == queue.poll_only(value)
            inside.discard(value if next_one == value else -1)
        elif verb == "remove":
            assert (value in inside) == queue.remove(value)
            inside.discard(value)
        else:
            queue.charge(value % LEVELS, value * SECOND_NS)
            assert sum(queue.level_times_ns()) - sum(before) <= CHARGE_NS_MAX
        queue.validate()
        assert all(b <= a for b, a in zip(before, queue.level_times_ns(), strict=True))
    assert len(inside) == len(queue)
