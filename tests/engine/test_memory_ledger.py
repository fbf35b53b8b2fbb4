"""The rules for the memory that queries share: it is bounded, every wait ends, and the largest holder must end."""

from __future__ import annotations

from random import Random

import pytest

from saros_engine.memory.ledger import Answer, HolderId, MemoryLedger

WAIT_NS = 5_000
GIVEN, OWED, REFUSED = Answer.GIVEN, Answer.OWED, Answer.REFUSED
A, B, C, D = (HolderId(number) for number in range(4))


def ledger_of(**held: int) -> MemoryLedger:
    """Return a ledger of 800 bytes with its border at 700 bytes; the arguments are the bytes that each holder has."""
    ledger = MemoryLedger(800, WAIT_NS)
    for name, count in held.items():
        assert GIVEN is ledger.ask(HolderId("abcd".index(name)), count, 0)
    return ledger


def test_what_fits_below_the_border_is_given_what_does_not_is_owed_and_beyond_all_it_is_refused() -> None:
    ledger = ledger_of(a=600)
    assert GIVEN is ledger.ask(B, 100, 0)
    assert not ledger.short
    assert OWED is ledger.ask(B, 60, 0)
    assert ledger.short
    assert REFUSED is ledger.ask(C, 41, 0)
    assert OWED is ledger.ask(C, 40, 0)
    assert (800, 160, 40) == (ledger.used, ledger.held(B), ledger.held(C))
    ledger.validate()


def test_a_wait_ends_when_what_is_owed_fits() -> None:
    ledger = ledger_of(a=600, b=100)
    assert OWED is ledger.ask(B, 50, 0)
    assert [] == ledger.give_back(A, 49)
    assert [B] == ledger.give_back(A, 1)
    assert (None, 700) == (ledger.next_check_ns(), ledger.used)
    ledger.validate()


def test_who_gives_back_what_it_owes_waits_no_more() -> None:
    ledger = ledger_of(a=600, b=100)
    assert OWED is ledger.ask(B, 50, 0)
    assert [B] == ledger.give_back(B, 150)
    ledger.validate()


def test_of_two_that_hold_half_each_and_wait_for_more_one_ends_at_once_and_the_other_goes_on() -> None:
    ledger = ledger_of(a=350, b=350)
    assert OWED is ledger.ask(B, 10, 0)
    assert ledger.to_end(0) is None
    assert OWED is ledger.ask(A, 10, 1)
    assert B == ledger.to_end(1), "of equals the youngest"
    assert ledger.to_end(1) is None, "it is told once, and what it holds will come back"
    assert [A] == ledger.give_back(B, 360)
    assert ledger.next_check_ns() is None
    ledger.validate()


def test_who_holds_most_ends_whoever_asked_first() -> None:
    ledger = ledger_of(a=400, b=290)
    assert OWED is ledger.ask(A, 20, 0)
    assert OWED is ledger.ask(B, 20, 1)
    assert A == ledger.to_end(1)


def test_while_somebody_who_does_not_wait_may_give_back_a_wait_lasts_its_time() -> None:
    """The query that holds the most memory is ended, not the waiting query, which holds little."""
    ledger = ledger_of(a=690, b=5)
    assert OWED is ledger.ask(B, 10, 100)
    assert ledger.to_end(100 + WAIT_NS - 1) is None
    assert 100 + WAIT_NS == ledger.next_check_ns()
    assert A == ledger.to_end(100 + WAIT_NS)
    assert [B] == ledger.give_back(A, 690)


def test_a_query_alone_that_needs_more_than_all_ends_at_once() -> None:
    ledger = ledger_of(a=700)
    assert OWED is ledger.ask(A, 1, 0)
    assert A == ledger.to_end(0)
    assert REFUSED is ledger.ask(A, 1, 0), "it gets nothing any more"


def test_the_next_one_ends_when_the_one_before_is_gone_or_takes_too_long_for_it() -> None:
    def three() -> MemoryLedger:
        ledger = ledger_of(a=300, b=200, c=200)
        assert [OWED] * 2 == [ledger.ask(holder, 50, 0) for holder in (B, C)]
        assert A == ledger.to_end(WAIT_NS)
        return ledger

    slow = three()
    assert slow.to_end(2 * WAIT_NS - 1) is None
    assert C == slow.to_end(2 * WAIT_NS)
    gone = three()
    assert [B, C] == gone.give_back(A, 300)
    assert gone.to_end(9 * WAIT_NS) is None


def test_who_holds_least_goes_on_first_and_who_is_too_large_holds_nobody_up() -> None:
    ledger = ledger_of(a=400, b=200, c=60, d=40)
    assert [OWED] * 3 == [ledger.ask(B, 50, 0), ledger.ask(D, 25, 1), ledger.ask(C, 20, 2)]
    assert [D] == ledger.give_back(A, 25)
    assert [C] == ledger.give_back(A, 20)
    assert [] == ledger.give_back(A, 40)
    assert GIVEN is ledger.ask(D, 10, 3)
    ledger.validate()


def test_rows_on_their_way_are_owed_too_but_nobody_is_taken_to_wait_for_them() -> None:
    ledger = ledger_of(a=400, b=300)
    assert [OWED] * 2 == [ledger.ask(A, 10, 0), ledger.ask(B, 10, 7, waits=False)]
    assert ledger.to_end(WAIT_NS - 1) is None, "the reader of the rows may come at any moment"
    assert [B] == ledger.give_back(B, 10)
    assert OWED is ledger.ask(B, 10, 8, waits=False)
    assert A == ledger.to_end(WAIT_NS)
    assert [B] == ledger.give_back(A, 410)


class Crowd:
    """Holders that take memory, return it and end at random, together with the expected state of the ledger."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.ledger = MemoryLedger(self.chance.choice((80, 800, 8_000)), WAIT_NS)
        self.now = 0
        self.held: dict[HolderId, int] = {}
        self.waits: set[HolderId] = set()
        #: The holders that were told to end and still hold memory.
        self.ended: set[HolderId] = set()

    def step(self) -> None:
        self.now += self.chance.randrange(WAIT_NS)
        holder = HolderId(self.chance.randrange(12))
        count = self.chance.randrange(1, self.ledger.bytes_max // 4)
        match self.chance.randrange(4):
            case 0 if holder not in self.waits:
                self.take(holder, count, self.ledger.ask(holder, count, self.now))
            case 1:
                self.take(holder, count, self.ledger.ask(holder, count, self.now, waits=False))
            case 2 if self.held.get(holder):
                self.give_back(holder, self.chance.randrange(1, self.held[holder] + 1))
            case 3:
                self.end_one()
        for ended in [holder for holder in sorted(self.ended) if self.chance.random() < 0.3]:
            self.give_back(ended, self.held[ended])

    def take(self, holder: HolderId, count: int, answer: Answer) -> None:
        assert answer is REFUSED or holder not in self.ended
        self.held[holder] = self.held.get(holder, 0) + (0 if answer is REFUSED else count)
        if answer is OWED:
            self.waits.add(holder)

    def give_back(self, holder: HolderId, count: int) -> None:
        over = self.ledger.give_back(holder, count)
        assert set(over) <= self.waits
        self.waits.difference_update(over)
        self.held[holder] -= count
        if not self.held[holder]:
            self.ended.discard(holder)

    def end_one(self) -> None:
        holder = self.ledger.to_end(self.now)
        if holder is not None:
            assert self.waits
            assert self.held[holder] == max(held for other, held in self.held.items() if other not in self.ended)
            self.ended.add(holder)
            self.waits.discard(holder)

    def validate(self) -> None:
        self.ledger.validate()
        assert self.held == {holder: self.ledger.held(holder) for holder in self.held}
        assert (self.ledger.next_check_ns() is None) == (not self.waits)


@pytest.mark.parametrize("seed", range(300))
def test_whatever_happens_the_rules_hold_and_every_wait_ends(seed: int) -> None:
    crowd = Crowd(seed)
    for _ in range(200):
        crowd.step()
        crowd.validate()
    while (again := crowd.ledger.next_check_ns()) is not None:  # only holders that were told to end return memory
        before = len(crowd.waits), len(crowd.ended)
        crowd.now = max(crowd.now, again)
        crowd.end_one()
        for ended in sorted(crowd.ended):
            crowd.give_back(ended, crowd.held[ended])
        crowd.validate()
        assert (len(crowd.waits), len(crowd.ended)) < before
    assert set() == crowd.waits
