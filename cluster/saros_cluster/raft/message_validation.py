"""Validation of messages: everything that a peer controls is checked here, and never asserted.

This module checks each message by itself. Contradictions between a message and this node's own state are found where
the message is handled.

Pure; any thread.
"""

from __future__ import annotations

from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import (
    Append,
    AppendResponse,
    EntryKind,
    Heartbeat,
    HeartbeatResponse,
    Message,
    Position,
    PreVote,
    ReadIndex,
    ReadIndexResponse,
    SnapshotOffer,
    SnapshotResponse,
    Vote,
)

#: The limit of terms, indices and similar numbers: values that count up from the limit still fit into 64 bits.
NUMBER_END = 1 << 62


def is_possible(message: Message) -> bool:
    """Return whether a correct node could have sent the message."""
    if not 0 <= message.term < NUMBER_END:
        return False
    match message:
        case Append():
            return _is_append_possible(message)
        case AppendResponse():
            return _are_numbers(message.index, message.hint_index, message.hint_term)
        case Heartbeat():
            return _are_numbers(message.commit, message.round)
        case HeartbeatResponse():
            return _are_numbers(message.round)
        case PreVote() | Vote():
            # When a node starts a term, its log has only entries of earlier terms.
            return _are_numbers(message.last_index, message.last_term) and message.last_term < message.term
        case SnapshotOffer():
            return _is_position_possible(message.snapshot.position, message.term)
        case SnapshotResponse():
            return _are_numbers(message.index)
        case ReadIndex():
            return _are_numbers(message.read)
        case ReadIndexResponse():
            return _are_numbers(message.read, message.index or 0)
    return True


def _are_numbers(*values: int) -> bool:
    return all(0 <= value < NUMBER_END for value in values)


def _is_append_possible(message: Append) -> bool:
    """Check that entries follow (prev_index, prev_term), terms never decrease, and memberships are readable."""
    index, term = message.prev_index, message.prev_term
    if not _are_numbers(index, term, message.commit):
        return False
    for entry in message.entries:
        index += 1
        if entry.index != index or entry.term < term:
            return False
        term = entry.term
        if entry.kind is EntryKind.MEMBERSHIP and not _is_membership(entry.data):
            return False
    return term <= message.term and index < NUMBER_END


def _is_position_possible(position: Position, term: int) -> bool:
    return 0 < position.index < NUMBER_END and 0 < position.term <= term and bool(position.membership.voters)


def _is_membership(data: bytes) -> bool:
    try:
        return bool(Membership.decode(data).voters)
    except ValueError:
        return False
