"""How a group swaps a member for another, {1, 2, 3} for {1, 2, 4}, while leaders change: Raft's part of an expansion.

    node      term, log, commit; who leads also knows how much of its log each other node has (`match`)
    step      an election, one entry sent (and what contradicts it cut off), a commit; each at once or not at all

What is right: the membership is what the node's own log says, committed or not; JOINT needs a majority of the old and
of the new members, NEW (once JOINT is committed) of the new ones; a leader changes members only once an entry of its
own term is committed, and counts no entries of earlier terms.

What is wrong, by `wrong`: "thesis" is the method of the thesis. PRE adds node 4 as it is received; once that is done,
the meta group's END takes node 3 away from each node as it hears of it, whatever is in its log. Done is PRE when it is
committed, or, in "C2", when more than half have it. The other two leave JOINT out, or do not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from protocol.explorer import Broken

NODES = (1, 2, 3, 4)
OLD, NEW, BOTH = (1, 2, 3), (1, 2, 4), (1, 2, 3, 4)
#: (term, what it is)
Log = tuple[tuple[int, str], ...]


class Node(NamedTuple):
    """What a node has; `match` and `commit` are of who leads its term."""

    term: int = 1
    log: Log = ()
    match: tuple[int, ...] = ()
    #: How many entries it knows to be committed, as the leader of its term.
    commit: int = 0
    #: Has heard of the meta group's END.
    ended: bool = False


class State(NamedTuple):
    """All nodes, and what was promised."""

    nodes: tuple[Node, ...]
    #: Who was elected in each term, from term 1 on.
    leaders: tuple[int, ...]
    #: What was ever committed, by anybody.
    committed: Log = ()
    #: The meta group has END.
    ended: bool = False

    def of(self, node: int) -> Node:
        return self.nodes[node - 1]

    def put(self, node: int, found: Node) -> State:
        return self._replace(nodes=(*self.nodes[: node - 1], found, *self.nodes[node:]))


class Swap:
    """See the module."""

    def __init__(self, terms: int = 3, writes: int = 1, wrong: str | None = None) -> None:
        self.terms = terms
        self.writes = writes
        self.wrong = wrong
        self._is_thesis = wrong in ("thesis", "C2")

    def start(self) -> State:
        """Node 1 leads term 1."""
        return State((Node(match=(0, 0, 0, 0)), Node(), Node(), Node()), (1,))

    def check(self, state: State) -> None:
        """All is checked as it happens."""

    def is_over(self, state: State) -> bool:
        """Safety only: elections may go on for ever."""
        return True

    # ------------------------------------------------------------------ members

    def _majority(self, node: Node, having: set[int]) -> bool:
        return all(2 * len(having & set(half)) > len(half) for half in self._halves(node))

    def _halves(self, node: Node) -> tuple[tuple[int, ...], ...]:
        kinds = {kind for _, kind in node.log}
        if self._is_thesis:
            return (NEW,) if node.ended else (BOTH,) if "PRE" in kinds else (OLD,)
        if "NEW" in kinds:
            return (NEW,)
        return (OLD, NEW) if "JOINT" in kinds else (OLD,)

    # ------------------------------------------------------------------ what may happen

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """(name, state afterwards). Raises Broken."""
        for number in NODES:
            node = state.of(number)
            yield from self._elect(state, number, node)
            if node.match:
                yield from self._append(state, number, node)
                yield from self._send(state, number, node)
                yield from self._commit(state, number, node)
            if state.ended and not node.ended:
                yield f"node {number} hears of END", state.put(number, node._replace(ended=True))
        if self._is_thesis and not state.ended and self._is_pre_done(state):
            yield "END", state._replace(ended=True)

    def _is_pre_done(self, state: State) -> bool:
        if self.wrong == "C2":
            return sum("PRE" in {kind for _, kind in node.log} for node in state.nodes) > len(OLD) // 2
        return any(kind == "PRE" for _, kind in state.committed)

    def _elect(self, state: State, number: int, node: Node) -> Iterator[tuple[str, State]]:
        term = node.term + 1
        if term > self.terms or not any(number in half for half in self._halves(node)):
            return
        rank = (node.log[-1][0] if node.log else 0, len(node.log))
        voters = {
            other
            for other in NODES
            if (voter := state.of(other)).term < term and rank >= (voter.log[-1][0] if voter.log else 0, len(voter.log))
        }
        for missing in ((), *((other,) for other in sorted(voters - {number}))):
            voting = voters - set(missing)
            if not self._majority(node, voting):
                continue
            if len(state.leaders) >= term and state.leaders[term - 1]:
                raise Broken(f"nodes {state.leaders[term - 1]} and {number} both lead term {term}")
            after = state._replace(leaders=(*state.leaders, *(0,) * (term - len(state.leaders) - 1), number))
            for other in voting:
                after = after.put(other, after.of(other)._replace(term=term, match=(), commit=0))
            match = tuple(len(node.log) if other == number else 0 for other in NODES)
            yield (
                f"node {number} leads term {term}, by {sorted(voting)}",
                after.put(number, after.of(number)._replace(match=match)),
            )

    def _append(self, state: State, number: int, node: Node) -> Iterator[tuple[str, State]]:
        for kind in self._wanted(node):
            log = (*node.log, (node.term, kind))
            match = (*node.match[: number - 1], len(log), *node.match[number:])
            yield f"node {number} appends {kind}", state.put(number, node._replace(log=log, match=match))

    def _wanted(self, node: Node) -> Iterator[str]:
        kinds = [kind for _, kind in node.log]
        committed = node.log[: node.commit]
        has_begun = (node.term, "noop") in committed or node.term == 1
        if node.term > 1 and (node.term, "noop") not in node.log:
            yield "noop"
            return
        if kinds.count("write") < self.writes:
            yield "write"
        if self._is_thesis:
            if "PRE" not in kinds:
                yield "PRE"
            return
        if "NEW" in kinds:
            return
        if self.wrong == "no JOINT":
            if has_begun:
                yield "NEW"
        elif "JOINT" not in kinds:
            if has_begun:
                yield "JOINT"
        elif any(kind == "JOINT" for _, kind in committed) or self.wrong == "NEW before JOINT is committed":
            yield "NEW"

    def _send(self, state: State, number: int, node: Node) -> Iterator[tuple[str, State]]:
        """All of the log at once; what contradicts it goes."""
        for other in NODES:
            found = state.of(other)
            known = node.match[other - 1]
            if other == number or found.term > node.term or known == len(node.log):
                continue
            log = node.log if found.log[: len(node.log)] != node.log else found.log
            match = (*node.match[: other - 1], len(node.log), *node.match[other:])
            after = state.put(other, found._replace(term=node.term, log=log, match=(), commit=0))
            yield f"node {number} sends its log to {other}", after.put(number, node._replace(match=match))

    def _commit(self, state: State, number: int, node: Node) -> Iterator[tuple[str, State]]:
        for last in range(len(node.log), 0, -1):
            having = {other for other in NODES if node.match[other - 1] >= last}
            if node.log[last - 1][0] != node.term:
                return
            if not self._majority(node, having):
                continue
            log = node.log[:last]
            short = min(last, len(state.committed))
            if log[:short] != state.committed[:short]:
                raise Broken(f"node {number} commits {log}; {state.committed} is committed")
            if last > node.commit:
                after = state.put(number, node._replace(commit=last))
                longer = log if last > len(state.committed) else state.committed
                yield f"node {number} commits {last}", after._replace(committed=longer)
            return
