"""A model of a Raft group that replaces node 3 by node 4 in an expansion, while leaders change.

    node      term, log, commit; a leader also knows how much of its log each other node has (`match`)
    step      an election, a transfer of the log (conflicting entries are truncated), or a commit; each is atomic

The correct protocol: the members change from {1, 2, 3} to {1, 2, 4}. A node uses the last membership in its log, even
if that entry is not committed. While JOINT is the last membership, decisions need a majority of the old members and a
majority of the new members. After JOINT is committed comes NEW, which needs a majority of the new members only. A
leader changes members only after an entry of its own term is committed, and does not count replicas of earlier terms'
entries.

The argument `wrong` selects a wrong protocol. "thesis" is the method of the thesis: a node that receives PRE adds node
4. Once PRE is done, the meta group appends END, and each node that hears of END removes node 3, regardless of the
node's log. PRE is done when it is committed; in "C2", when more than half of the nodes have it. The other two wrong
protocols omit JOINT, or append NEW before JOINT is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from protocol.explorer import Broken

NODES = (1, 2, 3, 4)
OLD, NEW, BOTH = (1, 2, 3), (1, 2, 4), (1, 2, 3, 4)
#: The entries of a log, as (term, kind).
Log = tuple[tuple[int, str], ...]


class Node(NamedTuple):
    """The state of a node; `match` and `commit` are used while the node is a leader."""

    term: int = 1
    log: Log = ()
    match: tuple[int, ...] = ()
    #: The number of entries that the node, as the leader of its term, knows to be committed.
    commit: int = 0
    #: True if the node knows of the meta group's END.
    ended: bool = False


class State(NamedTuple):
    """The state of all nodes, with the results of all elections and commits."""

    nodes: tuple[Node, ...]
    #: The leader of each term, from term 1 on.
    leaders: tuple[int, ...]
    #: All entries committed by any node.
    committed: Log = ()
    #: True if the meta group has END.
    ended: bool = False

    def of(self, node: int) -> Node:
        return self.nodes[node - 1]

    def put(self, node: int, found: Node) -> State:
        return self._replace(nodes=(*self.nodes[: node - 1], found, *self.nodes[node:]))


class Swap:
    """The model of the protocol that `wrong` selects."""

    def __init__(self, terms: int = 3, writes: int = 1, wrong: str | None = None) -> None:
        self.terms = terms
        self.writes = writes
        self.wrong = wrong
        self._is_thesis = wrong in ("thesis", "C2")

    def start(self) -> State:
        """Return the initial state: node 1 leads term 1."""
        return State((Node(match=(0, 0, 0, 0)), Node(), Node(), Node()), (1,))

    def check(self, state: State) -> None:
        """Do nothing: the steps themselves check the rules."""

    def is_over(self, state: State) -> bool:
        """Return True: only safety is checked, since elections may continue forever."""
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

    # ------------------------------------------------------------------ steps

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield (name, next state) of all possible steps. Raises Broken."""
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
        """Send the whole log at once; conflicting entries are truncated."""
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
