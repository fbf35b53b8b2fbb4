"""A place in a group's log as values that JSON knows: [index, term, membership]. Pure: any thread."""

from __future__ import annotations

from collections.abc import Sequence

from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import Position


def encode_position(position: Position) -> list[object]:
    """The place's words."""
    return [position.index, position.term, position.membership.encode().decode()]


def decode_position(words: Sequence[object]) -> Position:
    """The inverse. Raises ValueError, TypeError."""
    index, term, members = words
    return Position(int(str(index)), int(str(term)), Membership.decode(str(members).encode()))
