"""A position in a group's log as JSON values: [index, term, membership]. Pure: any thread."""

from __future__ import annotations

from collections.abc import Sequence

from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import Position


def encode_position(position: Position) -> list[object]:
    """Return the JSON values of a position."""
    return [position.index, position.term, position.membership.encode().decode()]


def decode_position(words: Sequence[object]) -> Position:
    """Parse the values of `encode_position`. Raises ValueError, TypeError."""
    index, term, members = words
    return Position(int(str(index)), int(str(term)), Membership.decode(str(members).encode()))
