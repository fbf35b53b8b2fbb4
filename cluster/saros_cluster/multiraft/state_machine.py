"""The interface between Raft's host and the state that a group replicates.

    entry (committed, durable here) --apply--> outcome          the same on every member, from the same log

`apply` never raises because of an entry's content. If a command cannot be executed, its outcome is an exception, which
is the same on every member. If `apply` does raise an exception, this node has failed, and the group is stopped on this
node.

A member receives a snapshot if it lacks entries that are no longer in any log:

    at the leader    take_snapshot -> (index, token)   ==offer==>   stage(sender, snapshot)   next to the live state
                                                                    install(snapshot)         in its place, durably
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Entry, Snapshot

#: The result of a proposal: a value of the machine, or the exception that says why the command had no effect.
Outcome = object


class StateMachine(Protocol):
    """The state of one group on this node. `apply` and `install` never run at the same time."""

    def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        """Apply entries in order and return their outcomes. Entries that are not DATA have the outcome None."""
        ...

    def take_snapshot(self) -> tuple[int, bytes]:
        """Return an applied index, and a token with which another node fetches the state as of that index.

        May block.
        """
        ...

    def forget_snapshot(self, token: bytes) -> None:
        """Release a snapshot that is no longer offered to any node."""
        ...

    def stage(self, sender: NodeId, snapshot: Snapshot) -> None:
        """Fetch a snapshot and store it next to the live state.

        May block. Raises an exception if the snapshot cannot be fetched.
        """
        ...

    def install(self, snapshot: Snapshot) -> None:
        """Replace the state with the staged snapshot. The new state is durable on return."""
        ...


class ProposalLost(Exception):
    """The command was not committed and never will be: another leader's entry took its place."""

    code = 2017

    def __init__(self) -> None:
        super().__init__("another leader took over before the command was replicated")


class ReplacedBySnapshot(Exception):
    """A snapshot replaced the entry, so this node knows neither whether the command was committed nor its outcome."""

    def __init__(self) -> None:
        super().__init__("a snapshot replaced the entry before this node applied it")
