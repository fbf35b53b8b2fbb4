"""The choice of the node for a call.

    read, consistency weak     all nodes in turn
    write of a device          the leader of its last write, if it is known (`led`)
    all others                 the home node, until it fails

After a failure, a node is skipped for a while (0.05 s, doubling up to 2 s, with a jitter of one half), and is no longer
remembered as a leader. If all nodes are skipped, the caller waits for the node whose pause ends first.

Pure: the caller passes `now` (seconds) and `chance` ([0, 1)), and holds a lock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

_PAUSE_S, _PAUSE_MAX_S = 0.05, 2.0
#: Limit on the devices whose leader is remembered.
LEADERS_MAX = 16_384
#: Limit on the known addresses, which exceeds the number of nodes of a cluster.
ADDRESSES_MAX = 1_024


class _NodeFailures(msgspec.Struct):
    """The failures of a node: the number of consecutive failures, and the time until which the node is skipped."""

    times: int
    until: float


class NodeSelector:
    """The known nodes of a database, their failures, and the leaders of devices."""

    def __init__(self, addresses: Iterable[str], *, start: int, spread: bool) -> None:
        """Create a selector.

        start   index of the first home address, modulo their number
        spread  send reads to all nodes in turn
        """
        given = list(dict.fromkeys(addresses))
        assert given
        start %= len(given)
        #: Known addresses, at least one. The first is the home node.
        self._known = given[start:] + given[:start]
        self._spread = spread
        self._turn = 0
        self._trouble: dict[str, _NodeFailures] = {}
        self._leaders: OrderedDict[str, str] = OrderedDict()

    @property
    def addresses(self) -> tuple[str, ...]:
        """All known addresses, the home node first."""
        return tuple(self._known)

    def choose(self, now: float, *, read: bool = False, device: str | None = None) -> tuple[str, float]:
        """Return the address for the next attempt, and the seconds to wait before it."""
        if device is not None:
            leader = self._leaders.get(device)
            if leader is not None and self._is_available(leader, now):
                self._leaders.move_to_end(device)
                return leader, 0.0
        first = 0
        if read and self._spread:
            first = self._turn = self._turn + 1
        for offset in range(len(self._known)):
            address = self._known[(first + offset) % len(self._known)]
            if self._is_available(address, now):
                return address, 0.0
        address = min(self._known, key=lambda known: self._trouble[known].until)
        return address, self._trouble[address].until - now

    def _is_available(self, address: str, now: float) -> bool:
        trouble = self._trouble.get(address)
        return trouble is None or trouble.until <= now

    def answered(self, address: str) -> None:
        """Record that a node answered."""
        self._trouble.pop(address, None)

    def failed(self, address: str, now: float, chance: float) -> None:
        """Record that a node did not answer, or could not serve the call. Concurrent failures count once."""
        if not self._is_available(address, now):
            return
        times = 1 + (self._trouble[address].times if address in self._trouble else 0)
        pause = min(_PAUSE_S * 2 ** min(times - 1, 10), _PAUSE_MAX_S)
        self._trouble[address] = _NodeFailures(times, now + pause * (0.5 + chance / 2))
        for device in [device for device, leader in self._leaders.items() if leader == address]:
            del self._leaders[device]
        if address == self._known[0]:
            self._known.append(self._known.pop(0))

    def learn(self, addresses: Iterable[str]) -> None:
        """Add the addresses of the cluster that a node has listed."""
        known = set(self._known)
        new = [address for address in dict.fromkeys(addresses) if address not in known]
        self._known += new[: ADDRESSES_MAX - len(self._known)]

    def led(self, device: str, address: str) -> None:
        """Record that the node at `address` was the leader for the last write to a device."""
        self._leaders[device] = address
        self._leaders.move_to_end(device)
        if len(self._leaders) > LEADERS_MAX:
            self._leaders.popitem(last=False)
