"""The requests that slots have had applied, in any group: slots take them along, so that repeats stay harmless there.

The last requests of each client are kept as bits: a client numbers its requests consecutively, and repeats what
it sent seconds ago. So a set of a million takes some hundred kilobytes, and what moves bring does not accumulate.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from saros_cluster.topology.change import runs, slots_of_runs

#: Of a client, those before its last one that are so far behind it are not known any more.
SEQUENCES_MAX = 32_768
#: Only of the clients that were seen last.
CLIENTS_MAX = 4_096
_ALL = (1 << SEQUENCES_MAX) - 1


@dataclass(frozen=True, slots=True)
class RequestSet:
    """Requests (client, sequence), the last of those that it was made of."""

    #: By client, those seen last at the end: its highest sequence, and bit n for the one that is n below.
    _last: dict[int, tuple[int, int]] = field(default_factory=dict)

    @staticmethod
    def of(requests: Iterable[tuple[int, int]]) -> RequestSet:
        """These, oldest first."""
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
        """These and later ones."""
        found = dict(self._last)
        for client, known in later._last.items():
            found[client] = _merged(found.pop(client, (0, 0)), known)
        return RequestSet(dict(list(found.items())[-CLIENTS_MAX:]))

    def to_json(self) -> list[object]:
        """As values that JSON knows."""
        return [[client, last, f"{bits:x}"] for client, (last, bits) in self._last.items()]

    @staticmethod
    def from_json(words: Sequence[Sequence[Any]]) -> RequestSet:
        """The inverse; also of pairs (client, sequence), as they were stored before. Raises ValueError, TypeError."""
        if words and len(words[0]) == len(("client", "sequence")):
            return RequestSet.of((int(client), int(sequence)) for client, sequence in words)
        return RequestSet({int(client): (int(last), int(bits, 16)) for client, last, bits in words})


def _bits(sequences: Sequence[int]) -> tuple[int, int]:
    """The highest of a client's, and their bits."""
    last = max(sequences)
    behind = [last - sequence for sequence in sequences if last - sequence < SEQUENCES_MAX]
    flags = np.zeros(max(behind) + 1, np.bool_)
    flags[behind] = True
    return last, int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def _merged(known: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Both of one client."""
    (lower, older), (last, newer) = sorted((known, other))
    behind = last - lower
    return last, newer if behind >= SEQUENCES_MAX else (older << behind | newer) & _ALL


class AppliedRange(NamedTuple):
    """Requests that had their effect on slots."""

    slots: frozenset[int]
    requests: RequestSet

    def to_json(self) -> list[object]:
        """As values that JSON knows."""
        return [runs(sorted(self.slots)), self.requests.to_json()]

    @staticmethod
    def from_json(words: Sequence[Any]) -> AppliedRange:
        """The inverse. Raises ValueError, TypeError."""
        slots, requests = words
        return AppliedRange(frozenset(slots_of_runs(slots)), RequestSet.from_json(requests))
