"""What a group replicates: the border between Raft's host and a group's state.

    entry (committed, durable here) --apply--> outcome          the same on every member, from the same log

`apply` never raises because of an entry's content: a command that cannot be carried out has an exception as outcome,
the same on every member. An exception that `apply` raises is a failure of this node, and stops the group here.

A member that lacks entries which no log holds any more gets a snapshot:

    at the leader    take_snapshot -> (index, token)       ==offer==>      stage(who, snapshot)    beside the live state
                                                                           install(snapshot)       in its place, durably
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Entry, Snapshot

#: What a proposer gets: a value of the machine's, or why the command had no effect.
Outcome = object


class StateMachine(Protocol):
    """One group's state here. `apply` and `install` never run at the same time."""

    def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        """Carry out entries in order; entries that are not DATA have the outcome None."""
        ...

    def take_snapshot(self) -> tuple[int, bytes]:
        """The state as of an entry that was applied, and a token by which another node gets it. May wait long."""
        ...

    def forget_snapshot(self, token: bytes) -> None:
        """A snapshot that was taken is offered to nobody any more."""
        ...

    def stage(self, sender: NodeId, snapshot: Snapshot) -> None:
        """Fetch a snapshot and put it beside the live state. May wait long. Raises if it cannot be had."""
        ...

    def install(self, snapshot: Snapshot) -> None:
        """Put the snapshot that was staged in the place of the state; durable when this returns."""
        ...


class ProposalLost(Exception):
    """The command was not committed and never will be: another leader's entry took its place."""

    code = 2017

    def __init__(self) -> None:
        super().__init__("another leader took over before the command was replicated")


class ReplacedBySnapshot(Exception):
    """A snapshot came in place of the entry: nobody here knows whether the command was committed, nor its outcome."""

    def __init__(self) -> None:
        super().__init__("a snapshot came before the command was applied here")
