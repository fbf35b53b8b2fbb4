"""Random sentences of the grammar, and mutations of them.

A sentence is a random walk through the parser's transition network. At a reference to another rule, the walk goes
through that rule recursively. When a sentence gets long, the walk takes the shortest way to the end (`_costs`).
"""

from __future__ import annotations

import functools
from random import Random

from antlr4.atn.Transition import NotSetTransition, RuleTransition

from saros_grammar.generated.Sql import Sql
from saros_grammar.generated.SqlLexer import SqlLexer

#: Sample texts of each token that is not a keyword; some of the names are also names of series.
SAMPLES = {
    "NAME": (
        "g",
        "d0",
        "d1",
        "x",
        "i",
        "t",
        "b",
        "count",
        "sum",
        "abs",
        "avg",
        "now",
        "sin",
        "ignoreNull",
        "keep",
        "DOUBLE",
    ),
    "QUOTED_NAME": ("`x`", "`a.b`", "`a``b`", "`1`"),
    "TARGET_NAME": ("${1}", "a_${2}", "${9}"),
    "STRING": ("'a'", "''", '"x"', "'it''s'", "'%a_'", "'k'", "'1'", "'UTC'", "'('"),
    "BLOB": ("X'00ff'", "X''", "X'0'"),
    "DATETIME": ("2020-01-01", "1970-01-01T00:00:00.100", "2020/1/1 1:2:3", "2020-13-41", "1970-01-01T00:00:00+09:00"),
    "DURATION": ("1ms", "10ms", "1d12h", "1mo", "1y", "9999999999y", "0s", "1ns"),
    "DECIMAL": ("1.5", "0.0", "1e3", "1E400", "3.14159265358979"),
    "INTEGER": ("0", "1", "2", "7", "300", "9223372036854775807", "9223372036854775808", "00012"),
}
#: From this number of tokens on, a sentence takes the shortest way to its end.
_TOKENS = 40
_WORDS = tuple(name for name in SqlLexer.symbolicNames if name.isupper() and name not in SAMPLES)


def _shown(token: int, chance: Random) -> str:
    name = Sql.symbolicNames[token]
    if name in SAMPLES:
        return chance.choice(SAMPLES[name])
    literal = Sql.literalNames[token] if token < len(Sql.literalNames) else "<INVALID>"
    return {"EQUAL": "=", "NOT_EQUAL": "!=", "AMPERSAND": "&", "BAR": "|"}.get(name, literal.strip("'"))


@functools.cache
def _costs() -> dict[int, int]:
    """Return, for each state, the minimum number of tokens from the state to the end of its rule."""
    atn = Sql.atn
    costs = {state.stateNumber: 10**6 for state in atn.states if state is not None}
    costs |= {state.stateNumber: 0 for state in atn.ruleToStopState}
    changed = True
    while changed:
        changed = False
        for state in atn.states:
            for transition in () if state is None else state.transitions:
                cost = _step(transition, costs)
                if cost < costs[state.stateNumber]:
                    costs[state.stateNumber], changed = cost, True
    return costs


def _step(transition: object, costs: dict[int, int]) -> int:
    if isinstance(transition, RuleTransition):
        return costs[transition.target.stateNumber] + costs[transition.followState.stateNumber]
    return costs[transition.target.stateNumber] + (0 if transition.isEpsilon else 1)


def sentence(chance: Random, rule: str = "statement") -> list[str]:
    """Return the tokens of a random sentence of the rule."""
    found: list[str] = []
    _walk(Sql.ruleNames.index(rule), chance, found, 0)
    return found


def _walk(rule: int, chance: Random, found: list[str], depth: int) -> None:
    atn, costs = Sql.atn, _costs()
    state, stop = atn.ruleToStartState[rule], atn.ruleToStopState[rule]
    while state is not stop:
        ways = state.transitions
        if len(found) > _TOKENS or depth > 25:
            transition = min(ways, key=lambda way: _step(way, costs))
        else:
            transition = chance.choice(ways)
        if isinstance(transition, RuleTransition):
            _walk(transition.ruleIndex, chance, found, depth + 1)
            state = transition.followState
            continue
        if isinstance(transition, NotSetTransition):
            found.append(chance.choice(("x", "1", "(", "root", "'a'")))
        elif not transition.isEpsilon:
            tokens = [token for token in transition.label if token > 0]  # without the token for the text's end
            found += [_shown(chance.choice(tokens), chance)] if tokens else []
        state = transition.target


def mutated(tokens: list[str], chance: Random) -> list[str]:
    """Return the tokens with random mistakes: removed, repeated, swapped, replaced or truncated tokens."""
    found = list(tokens)
    for _ in range(chance.randint(1, 3)):
        at, other = chance.randrange(len(found)), chance.randrange(len(found))
        match chance.randrange(6):
            case 0 if len(found) > 1:
                del found[at]
            case 1:
                found.insert(at, found[other])
            case 2:
                found[at], found[other] = found[other], found[at]
            case 3:
                found[at] = chance.choice(_WORDS).lower()
            case 4:
                found[at] = found[at][: len(found[at]) // 2] + chance.choice("'\"`(\\;\0ä€*.,-?%\n")
            case _:
                found[at] = chance.choice(SAMPLES[chance.choice(list(SAMPLES))])
    return found
