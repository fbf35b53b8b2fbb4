"""The positions at which the log of a group may begin, and logs that have lost their first entries."""

from __future__ import annotations

import pytest

from saros_cluster.node.groups import is_founding
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import TERMS_OF_A_GROUP, Position


@pytest.mark.parametrize(
    ("index", "term", "expected"),
    [
        (1, 0, True),  # a group of the initial cluster
        (3 * TERMS_OF_A_GROUP, 3 * TERMS_OF_A_GROUP, True),  # a group that a change created
        (3 * TERMS_OF_A_GROUP + 7, 3 * TERMS_OF_A_GROUP + 7, False),
        (TERMS_OF_A_GROUP, 12, False),  # a log that was compacted after many entries
        (2, 1, False),
    ],
)
def test_a_log_begins_at_a_founding_position_or_was_compacted(index: int, term: int, expected: bool) -> None:
    assert expected == is_founding(Position(index, term, Membership(0, ())))
