"""Compact records of the requests that were applied to sets of slots.

When slots move, the receiving group gets this record too, so that a repeated request has no effect there either. The
last requests of each client are stored as bits: a client numbers its requests consecutively, and repeats only requests
that it sent seconds ago. A set of a million requests therefore takes about a hundred kilobytes, and the sets that
arrive with moves do not accumulate.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from saros_cluster.topology.change import runs, slots_of_runs

#: Number of requests that are remembered for each client, counted back from its last request. Older requests are
#: forgotten.
SEQUENCES_MAX = 32_768
#: Number of clients whose requests are remembered. Clients that sent no request for the longest time are forgotten.
CLIENTS_MAX = 4_096
_ALL = (1 << SEQUENCES_MAX) - 1


class RequestSet(msgspec.Struct, frozen=True):
    """A bounded set of requests (client, sequence), which keeps only the latest ones."""

    #: For each client, its highest sequence number, and bits: bit n is set if the request with `sequence - n` is in the
    #: set. The client that sent a request most recently comes last.
    _last: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)

    @staticmethod
    def of(requests: Iterable[tuple[int, int]]) -> RequestSet:
        """Return the set of the given requests, which are in order from oldest to newest."""
        found: dict[int, list[int]] = {}
        for client, sequence in requests:
            sequences = found.pop(client, None) or []
            sequences.append(sequence)
            found[client] = sequences
        return RequestSet({client: _bits(found[client]) for client in list(found)[-CLIENTS_MAX:]})

    def __bool__(self) -> bool:
        return bool(self._last)

    def __contains__(self, request: tuple[int, int]) -> bool:
        client, sequence = request
        last, bits = self._last.get(client, (0, 0))
        return sequence <= last and bool(bits >> (last - sequence) & 1)

    def then(self, later: RequestSet) -> RequestSet:
        """Return the union with `later`. The clients in `later` count as more recently active than the others."""
        found = dict(self._last)
        for client, known in later._last.items():
            found[client] = _merged(found.pop(client, (0, 0)), known)
        return RequestSet(dict(list(found.items())[-CLIENTS_MAX:]))

    def to_json(self) -> list[object]:
        """Return the value in a form that JSON can encode."""
        return [[client, last, f"{bits:x}"] for client, (last, bits) in self._last.items()]

    @staticmethod
    def from_json(words: Sequence[Sequence[Any]]) -> RequestSet:
        """Return the set that `to_json` encoded, or that an older version stored as pairs (client, sequence).

        Raises ValueError, TypeError.
        """
        if words and len(words[0]) == len(("client", "sequence")):
            return RequestSet.of((int(client), int(sequence)) for client, sequence in words)
        return RequestSet({int(client): (int(last), int(bits, 16)) for client, last, bits in words})


def _bits(sequences: Sequence[int]) -> tuple[int, int]:
    """Return a client's highest sequence number, and the bit set of all its sequence numbers."""
    last = max(sequences)
    behind = [last - sequence for sequence in sequences if last - sequence < SEQUENCES_MAX]
    flags = np.zeros(max(behind) + 1, np.bool_)
    flags[behind] = True
    return last, int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def _merged(known: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Return the union of two entries (highest sequence, bits) of one client."""
    (lower, older), (last, newer) = sorted((known, other))
    behind = last - lower
    return last, newer if behind >= SEQUENCES_MAX else (older << behind | newer) & _ALL


class AppliedRange(NamedTuple):
    """Requests that were applied to a set of slots."""

    slots: frozenset[int]
    requests: RequestSet

    def to_json(self) -> list[object]:
        """Return the value in a form that JSON can encode."""
        return [runs(sorted(self.slots)), self.requests.to_json()]

    @staticmethod
    def from_json(words: Sequence[Any]) -> AppliedRange:
        """Return the range that `to_json` encoded. Raises ValueError, TypeError."""
        slots, requests = words
        return AppliedRange(frozenset(slots_of_runs(slots)), RequestSet.from_json(requests))
