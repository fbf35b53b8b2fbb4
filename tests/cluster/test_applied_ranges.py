"""When slots move, the latest applied requests of every client move with them, even if there are many clients."""

from __future__ import annotations

import json
import random

from saros_cluster.data.applied_ranges import CLIENTS_MAX, SEQUENCES_MAX, AppliedRange, RequestSet


def test_what_is_known_is_what_was_put_in_and_so_after_it_was_stored() -> None:
    draw = random.Random(7)
    requests = [(draw.choice((5, 2**64 - 1)), draw.choice((0, 2**63)) + draw.randrange(4_000)) for _ in range(3_000)]
    recent = {client: max(s for c, s in requests if c == client) - SEQUENCES_MAX for client, _ in requests}
    known = {(client, sequence) for client, sequence in requests if sequence > recent[client]}
    first, then = RequestSet.of(requests[:1_000]), RequestSet.of(requests[1_000:])
    for found in (RequestSet.of(requests), first.then(then), then.then(first)):
        stored = RequestSet.from_json(json.loads(json.dumps(found.to_json())))
        for client, sequence in [*requests, *((c, s + 1) for c, s in requests), (6, 1), (5, 2**64 - 1)]:
            expected = (client, sequence) in known
            assert expected == ((client, sequence) in found) == ((client, sequence) in stored)
    assert RequestSet.of(requests) == first.then(then)
    assert not RequestSet.of(())
    assert first


def test_a_clients_last_requests_are_kept_and_the_clients_that_were_seen_last() -> None:
    last = 10 * SEQUENCES_MAX
    found = RequestSet.of([(1, 3), (1, last - SEQUENCES_MAX), (1, last - SEQUENCES_MAX + 1), (1, last)])
    assert [False, False, True, True] == [
        (1, sequence) in found for sequence in (3, last - SEQUENCES_MAX, last - SEQUENCES_MAX + 1, last)
    ]
    many = RequestSet.of([(client, 1) for client in range(CLIENTS_MAX)] + [(0, 2)])
    for more in (many.then(RequestSet.of([(CLIENTS_MAX, 1)])), RequestSet.of([(-1, 1)]).then(many)):
        assert (0, 1) in more
        assert (0, 2) in more
    assert (1, 1) not in many.then(RequestSet.of([(CLIENTS_MAX, 1)]))
    assert (-1, 1) not in RequestSet.of([(-1, 1)]).then(many)


def test_a_hundred_thousand_requests_of_a_few_clients_are_some_kilobytes() -> None:
    draw = random.Random(3)
    requests = [(client, sequence) for sequence in range(50_000) for client in range(7) if draw.random() < 0.3]
    had = AppliedRange(frozenset(range(100)), RequestSet.of(requests))
    assert len(json.dumps(had.to_json())) < 64_000


def test_pairs_as_they_were_stored_before_are_read() -> None:
    assert RequestSet.of([(7, 1), (7, 4), (9, 2)]) == RequestSet.from_json([[7, 1], [7, 4], [9, 2]])
    assert not RequestSet.from_json([])
