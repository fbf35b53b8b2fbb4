"""The expansion's protocol in all interleavings of a small configuration: it is safe, and needs each of its rules.

`make explore` checks larger configurations.
"""

from __future__ import annotations

import pytest
from protocol.expansion import Expansion, Scope, State
from protocol.explorer import Explored, explore
from protocol.swap import Swap

#: Mistakes in the protocol, each with a scope that reveals it and the invariant that it breaks.
MISTAKES = (
    ("M-A", Scope(), "I8"),
    ("M-B", Scope(), "I2"),
    ("M-C", Scope(2, reads=True), "I7"),
    ("M-D", Scope(2), "I8"),
    ("M-E", Scope(), "I5"),
    ("M-F", Scope(reads=True), "I7"),
    ("M-G", Scope(2, reads=True), "I7"),
    ("M-K", Scope(faults=True), "I8"),
    ("F-1", Scope(reads=True), "I7"),
    ("F-3", Scope(reads=True), "I7"),
    ("Q-1", Scope(2, reads=True), "I7"),
    ("no ABORT", Scope(faults=True), "I9"),
    ("ABORT after GO", Scope(), "I9"),
    ("FENCE before GO", Scope(), "I9"),
    ("no GIVE_UP", Scope(faults=True), "I9"),
    ("who is given up has it", Scope(faults=True), "I5"),
    ("LOADED of any slot", Scope(), "I5"),
    ("LOADED before it is durable", Scope(), "I5"),
    ("no pins", Scope(reads=True), "I7"),
    ("leases do not end", Scope(faults=True), "I8"),
)
#: Mistakes that the exploration takes more than a second to find.
SLOW = {"M-C", "M-G"}


def expand(scope: Scope, wrong: str | None = None) -> Explored[State]:
    model = Expansion(scope, wrong)
    return explore(State(), model.steps, model.check, model.is_over)


@pytest.mark.slow
@pytest.mark.parametrize("scope", [Scope(1, reads=True, faults=True), Scope(2, reads=True)], ids=str)
def test_slots_move_and_no_rule_is_broken(scope: Scope) -> None:
    """Every change ends, and clients read the same values as with a single group."""
    found = expand(scope)
    assert found.broken is None, found.told()
    taken = dict(found.taken)
    assert {"FENCE", "OPEN", "DONE(a)", "node 1: DROP(a)", "CHANGE_DONE", "ABORT"} <= taken.keys()


@pytest.mark.parametrize(
    ("wrong", "scope", "rule"),
    [pytest.param(*case, id=case[0], marks=[pytest.mark.slow] * (case[0] in SLOW)) for case in MISTAKES],
)
def test_a_rule_that_is_left_out_is_missed(wrong: str, scope: Scope, rule: str) -> None:
    found = expand(scope, wrong)
    assert found.broken is not None
    assert found.broken.startswith(rule), found.told()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "writes", "why"),
    [
        (None, 0, None),
        ("thesis", 1, "commits"),
        ("C2", 0, "both lead term 2"),
        ("no JOINT", 0, "both lead term 2"),
        ("NEW before JOINT is committed", 0, "both lead term 2"),
    ],
)
def test_a_member_is_swapped_under_leaders_that_change(wrong: str | None, writes: int, why: str | None) -> None:
    """The thesis's method loses committed entries (C1), or allows two leaders in a term (C2); JOINT prevents both."""
    model = Swap(2, writes, wrong)
    found = explore(model.start(), model.steps, model.check, model.is_over)
    assert (found.broken is None) == (why is None), found.told()
    assert why is None or why in (found.broken or "")


def test_a_way_that_leads_nowhere_is_shown() -> None:
    """If a protocol can get stuck, the shortest path to such a state is reported."""

    def steps(state: int) -> list[tuple[str, int]]:
        return [("on", state + 1)] * (0 <= state < 3) + [("astray", -1)] * (state == 1)

    found = explore(0, steps, lambda state: None, lambda state: state == 3)
    assert ("I9: the change does not end", ("on", "astray")) == (found.broken, found.way)
