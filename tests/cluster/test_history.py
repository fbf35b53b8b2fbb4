"""The checkers of histories: a comparison with a trial of every order, planted faults in long histories, and speed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise

import pytest
from cluster.history import (
    OPERATIONS_MAX,
    Kind,
    Observation,
    Operation,
    Outcome,
    Undecided,
    linearizable,
    linearizable_small,
    linearizable_unique,
    never_goes_back,
    set_full,
    weak_reads_invent_nothing,
)

READ, WRITE, DELETE = Kind.READ, Kind.WRITE, Kind.DELETE
OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN
HERE = ("root.r.d.v", 5)


def operation(
    kind: Kind,
    value: int | None,
    begin: int,
    end: int | None,
    outcome: Outcome = OK,
    *,
    process: int = 0,
    session: str = "s",
    sequence: int = 0,
    consistency: str = "strong",
    stale: bool = False,
) -> Operation:
    return Operation(process, session, sequence, begin, end, kind, HERE, value, consistency, outcome, stale)


# ---------------------------------------------------------------------------------------------- trial of every order


def has_an_order(operations: Iterable[Operation]) -> bool:
    """Return whether some order of the operations explains the values that were read.

    The function tries all orders, and abandons an order as soon as a read contradicts it.
    """
    left = [o for o in operations if o.outcome is OK or (o.outcome is UNKNOWN and o.kind is not READ)]
    return _continues(left, None)


def _continues(left: list[Operation], holds: int | None) -> bool:
    if all(o.outcome is UNKNOWN for o in left):
        return True
    for o in left:
        if any(other.ended_ns < o.invoked_ns for other in left):
            continue
        if o.kind is READ and o.value != holds:
            continue
        rest = [other for other in left if other is not o]
        if _continues(rest, o.value if o.kind is not READ else holds):
            return True
    return False


def random_history(rng: random.Random, *, deletes: bool, honest: bool) -> list[Operation]:
    """Return two to eight operations, many of which begin or end at the same time.

    If `honest` is False, reads return random values.
    """
    count = rng.randint(2, 8)
    kinds = [rng.choice([READ, READ, WRITE, WRITE, DELETE] if deletes else [READ, WRITE]) for _ in range(count)]
    spans = [sorted(rng.choices(range(14), k=2)) for _ in range(count)]
    effects = sorted(range(count), key=lambda i: rng.uniform(*spans[i]))
    drawn: dict[int, Operation] = {}
    holds = None
    for i in effects:
        kind, (begin, end) = kinds[i], spans[i]
        outcome = rng.choices([OK, UNKNOWN, FAIL], [7, 2, 1])[0]
        value = {READ: holds, WRITE: i, DELETE: None}[kind]
        if kind is READ and not honest:
            value = rng.choice([None, *range(count)])
        happens = outcome is OK or (outcome is UNKNOWN and rng.random() < 0.5)
        if kind is not READ and happens:
            holds = value
        drawn[i] = operation(kind, value, begin, None if outcome is UNKNOWN else end, outcome, process=i, sequence=i)
    return [drawn[i] for i in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "deletes"), [(linearizable_unique, False), (linearizable_small, False), (linearizable_small, True)]
)
def test_checkers_agree_with_trying_every_order(check: Callable, deletes: bool) -> None:
    rng = random.Random(7)
    answers = {True: 0, False: 0}
    for number in range(4_000):
        history = random_history(rng, deletes=deletes, honest=number % 3 == 0)
        expected = has_an_order(history)
        violations = check(history)
        assert expected == (not violations), history
        answers[expected] += 1
        for violation in violations:
            assert set(violation.operations) <= set(history)
            assert not has_an_order(_with_what_failed_left_out(violation.operations)), violation.text()
    assert min(answers.values()) > 400, answers


def _with_what_failed_left_out(slice_: Iterable[Operation]) -> list[Operation]:
    return [o for o in slice_ if o.outcome is not FAIL]


def test_operations_that_touch_may_have_had_any_order() -> None:
    touching = [operation(WRITE, 1, 0, 5), operation(READ, None, 5, 9)]
    assert [] == linearizable_unique(touching) == linearizable_small(touching)
    apart = [operation(WRITE, 1, 0, 5), operation(READ, None, 6, 9)]
    assert 1 == len(linearizable_unique(apart)) == len(linearizable_small(apart))


def test_an_unconfirmed_write_may_appear_late_and_then_stays() -> None:
    late = [operation(WRITE, 1, 0, None, UNKNOWN), operation(READ, None, 10, 20), operation(READ, 1, 90, 99)]
    assert [] == linearizable_unique(late) == linearizable_small(late)
    gone = [*late, operation(READ, None, 100, 101)]
    assert "not linearizable" == linearizable_unique(gone)[0].rule == linearizable_small(gone)[0].rule


def test_a_text_shows_the_operations_that_prove_it() -> None:
    history = [
        operation(WRITE, 1, 1_000_000, 2_000_000, process=1),
        operation(WRITE, 2, 3_000_000, 4_000_000, process=1, sequence=1),
        operation(READ, 1, 5_000_000, 6_000_000, process=2),
        operation(READ, 2, 7_000_000, 8_000_000, process=2, sequence=1),
        operation(WRITE, 3, 9_000_000, 9_500_000, process=1, sequence=2),
    ]
    (violation,) = linearizable_unique(history)
    assert set(history[:3]) == set(violation.operations)
    lines = violation.text().splitlines()
    assert "not linearizable: root.r.d.v at 5: 1 was there before 2, and after it" == lines[0]
    assert "4.000 .. 5.000 ms read 1 ok strong process 2 session s #0" == " ".join(lines[3].split())
    (violation,) = linearizable_small(history)
    assert set(history[:3]) == set(violation.operations)


def test_what_was_flagged_or_asked_weakly_may_be_old() -> None:
    history = [operation(WRITE, 1, 0, 1), operation(WRITE, 2, 2, 3)]
    for read in (
        operation(READ, 1, 5, 6, consistency="weak"),
        operation(READ, 1, 5, 6, consistency="mid", stale=True),
    ):
        assert [] == linearizable([*history, read])
    assert 1 == len(linearizable([*history, operation(READ, 1, 5, 6, consistency="mid")]))


def test_registers_do_not_touch_each_other_and_each_has_its_method() -> None:
    other = ("root.r.d.v", 6)
    deletes = [operation(WRITE, 1, 0, 1), operation(DELETE, None, 2, 3), operation(READ, None, 4, 5)]
    writes = [replace(operation(WRITE, 1, 0, 1), register=other), replace(operation(READ, 1, 9, 10), register=other)]
    assert [] == linearizable(deletes + writes)
    (violation,) = linearizable([*deletes, *writes, replace(operation(READ, None, 11, 12), register=other)])
    assert "root.r.d.v at 6" == violation.where


def test_wrong_use_is_refused() -> None:
    with pytest.raises(ValueError, match="written twice"):
        linearizable_unique([operation(WRITE, 1, 0, 1), operation(WRITE, 1, 2, 3)])
    with pytest.raises(ValueError, match="deletions"):
        linearizable_unique([operation(DELETE, None, 0, 1)])
    with pytest.raises(Undecided, match="more than 200"):
        linearizable_small([operation(WRITE, i, i, i, sequence=i) for i in range(OPERATIONS_MAX + 1)])


# ---------------------------------------------------------------------------------------------- long histories


def recorded(rng: random.Random, count: int, registers: int, clients: int = 8, *, deletes: bool) -> list[Operation]:
    """Return a history of a correct database: each operation takes effect between its call and its result."""
    free = [0] * clients
    spans = []
    for _ in range(count):
        client = rng.randrange(clients)
        begin = free[client] + rng.randint(1, 1_000)
        free[client] = begin + rng.randint(1, 20_000)
        spans.append((rng.uniform(begin, free[client]), client, begin, free[client]))
    holds: dict[int, int | None] = {}
    history = []
    for sequence, (_, client, begin, end) in enumerate(sorted(spans)):
        where = rng.randrange(registers)
        kind = rng.choices([READ, WRITE, DELETE], [45, 45, 10 if deletes else 0])[0]
        outcome = OK if kind is READ or rng.random() < 0.99 else UNKNOWN
        value = {READ: holds.get(where), WRITE: client << 40 | sequence, DELETE: None}[kind]
        if kind is not READ and (outcome is OK or rng.random() < 0.5):
            holds[where] = value
        made = operation(
            kind, value, begin, None if outcome is UNKNOWN else end, outcome, process=client, session=f"c{client}"
        )
        history.append(replace(made, register=("root.r.d.v", where), sequence=sequence))
    return history


@pytest.mark.parametrize("deletes", [False, True])
def test_honest_records_pass(deletes: bool) -> None:
    history = recorded(random.Random(3), 8_000, 80, deletes=deletes)
    assert [] == linearizable(history)
    assert [] == never_goes_back(history)
    assert [] == weak_reads_invent_nothing(history)


def _is_settled(history: list[Operation], number: int) -> bool:
    """Return whether an operation is a confirmed write, overlaps no operation on its register, and precedes a read."""
    it = history[number]
    near = [o for o in history if o.register == it.register and o is not it]
    overlaps = any(o.invoked_ns <= it.ended_ns and it.invoked_ns <= o.ended_ns for o in near if o.outcome is OK)
    after = [o for o in near if o.invoked_ns > it.ended_ns]
    following = min(after, key=lambda o: o.invoked_ns, default=None)
    return it.kind is WRITE and it.outcome is OK and not overlaps and following is not None and following.kind is READ


def _plant(history: list[Operation], change: Callable[[list[Operation], int], None]) -> list[Operation]:
    """Return the history with a fault added at a settled write in its middle."""
    register = [o for o in history if o.register[1] == 1]
    number = next(i for i in range(len(register) // 3, len(register)) if _is_settled(register, i))
    change(register, number)
    return [o for o in history if o.register[1] != 1] + register


def dropped_write(register: list[Operation], number: int) -> None:
    """Lose an acknowledged write: until the next write, every later read returns the previous value."""
    before = next((o.value for o in reversed(register[:number]) if o.kind is not READ and o.outcome is OK), None)
    for i, o in enumerate(register):
        if o.kind is READ and o.value == register[number].value:
            register[i] = replace(o, value=before)


def stale_read(register: list[Operation], number: int) -> None:
    """Let one read return the previous value."""
    before = next(o.value for o in reversed(register[:number]) if o.kind is WRITE and o.outcome is OK)
    at = next(i for i, o in enumerate(register) if o.kind is READ and o.value == register[number].value)
    register[at] = replace(register[at], value=before)


def write_applied_twice(register: list[Operation], number: int) -> None:
    """Let the retry of a write also take effect, after the values of two later writes have been read."""
    later = [i for i in range(number + 1, len(register)) if _is_settled(register, i)][1]
    for i in range(later + 1, len(register)):
        if register[i].kind is READ and register[i].value == register[later].value:
            register[i] = replace(register[i], value=register[number].value)


@pytest.mark.slow
@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("change", [dropped_write, stale_read, write_applied_twice])
def test_planted_faults_are_found_and_shown(change: Callable, deletes: bool) -> None:
    for seed in range(5):
        honest = recorded(random.Random(seed), 6_000, 60, clients=4, deletes=deletes)
        assert [] == linearizable(honest)
        violations = linearizable(_plant(honest, change))
        assert {"root.r.d.v at 1"} == {violation.where for violation in violations}
        assert all(2 <= len(violation.operations) <= 10 for violation in violations)


@pytest.mark.slow
def test_a_hundred_thousand_operations_take_about_a_second() -> None:
    history = recorded(random.Random(1), 100_000, 100, deletes=False)
    started = time.process_time()
    assert [] == linearizable_unique(history)
    assert time.process_time() - started < 4  # a measured run took 0.2 s


def test_the_longest_register_with_deletions_is_decided() -> None:
    for seed in range(10):
        history = recorded(random.Random(seed), OPERATIONS_MAX, 1, deletes=True)
        assert [] == linearizable_small(history)


# ---------------------------------------------------------------------------------------------- sessions, inventions


def weakly(value: int | None, moment: int, session: str) -> Operation:
    return operation(READ, value, moment, moment + 1, session=session, sequence=moment, consistency="weak")


def test_a_session_that_goes_back_is_found() -> None:
    writes = [operation(WRITE, i, i * 10, i * 10 + 5, sequence=i) for i in range(4)]
    assert [] == never_goes_back([*writes, weakly(1, 100, "a"), weakly(0, 110, "b"), weakly(3, 120, "a")])
    (violation,) = never_goes_back([*writes, weakly(2, 100, "a"), weakly(1, 110, "a"), weakly(3, 120, "a")])
    assert "a session read 2, and then 1, which is older" == violation.why
    (violation,) = never_goes_back([*writes, weakly(2, 100, "a"), weakly(None, 110, "a")])
    assert "session went back" == violation.rule
    assert [] == never_goes_back([*writes, weakly(2, 100, "a"), replace(weakly(1, 110, "a"), stale=True)])


def test_values_that_were_written_at_once_have_no_order_until_a_strong_read() -> None:
    both = [operation(WRITE, 1, 0, 50), operation(WRITE, 2, 0, 80, sequence=1)]
    back = [weakly(2, 100, "a"), weakly(1, 110, "a")]
    assert [] == never_goes_back(both + back)
    assert 1 == len(never_goes_back([*both, operation(READ, 1, 60, 61), operation(READ, 2, 90, 91), *back]))


def test_going_back_is_found_behind_a_repeated_value() -> None:
    writes = [operation(WRITE, i, i * 10, i * 10 + 5, sequence=i) for i in range(3)]
    reads = [weakly(1, 100, "a"), weakly(2, 110, "a"), weakly(2, 120, "a"), weakly(1, 130, "a")]
    assert 1 == len(never_goes_back(writes + reads))


def test_nothing_found_is_no_step_back_where_something_is_deleted() -> None:
    writes = [operation(WRITE, 1, 0, 5), operation(DELETE, None, 10, 15, sequence=1)]
    assert [] == never_goes_back([*writes, weakly(1, 100, "a"), weakly(None, 110, "a"), weakly(1, 120, "a")])


def test_inventions_are_found() -> None:
    writes = [operation(WRITE, 1, 0, 5), operation(WRITE, 2, 10, 15, FAIL), operation(WRITE, 3, 20, None, UNKNOWN)]
    assert [] == weak_reads_invent_nothing([*writes, weakly(1, 50, "a"), weakly(3, 60, "a"), weakly(None, 70, "a")])
    for read in (weakly(2, 50, "a"), weakly(9, 50, "a"), weakly(3, 15, "a")):
        (violation,) = weak_reads_invent_nothing([*writes, read])
        assert read in violation.operations


# ---------------------------------------------------------------------------------------------- sets


def observations(*elements: set[int]) -> list[Observation]:
    return [Observation(i * 10, i * 10 + 5, found, "node 1") for i, found in enumerate(elements)]


def test_a_set_that_only_grows_passes() -> None:
    assert [] == set_full({1: 3, 2: 12, 3: 99}, observations({1}, {1, 2}, {1, 2}))
    assert [] == set_full({}, observations({1}, {1}))
    assert [] == set_full({1: 3}, [])


@pytest.mark.parametrize(
    ("acknowledged", "reads", "rule"),
    [
        ({1: 3}, [set(), set()], "never seen"),
        ({1: 3}, [{1}, {1}, set()], "lost"),
        ({1: 3}, [set(), set(), {1}], "stale"),
        ({}, [{7}, set(), set()], "lost"),
    ],
)
def test_what_a_set_misses_has_a_name(acknowledged: dict, reads: list[set[int]], rule: str) -> None:
    (violation,) = set_full(acknowledged, observations(*reads))
    assert (rule, "node 1") == (violation.rule, violation.where)


def test_some_staleness_can_be_allowed() -> None:
    reads = observations(set(), set(), set(), {1})
    assert [] == set_full({1: 3}, reads, stale_ns_max=17)
    assert 1 == len(set_full({1: 3}, reads, stale_ns_max=16))


def test_a_read_that_began_before_the_acknowledgement_may_miss_it() -> None:
    assert [] == set_full({1: 3}, [Observation(2, 50, set()), Observation(4, 9, {1})])


def test_a_record_of_clients_is_sequential() -> None:
    by_client: dict[int, list[Operation]] = {}
    for o in recorded(random.Random(1), 500, 5, deletes=True):
        by_client.setdefault(o.process, []).append(o)
    for operations in by_client.values():
        spans = sorted((o.invoked_ns, o.returned_ns or o.invoked_ns) for o in operations)
        assert all(first[1] <= second[0] for first, second in pairwise(spans))
