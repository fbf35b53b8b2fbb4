"""Which node a call goes to.

    read, consistency weak     the next of all nodes, in turn
    write of a device          the node that led its last write, if one is known (`led`)
    all others                 home: one node, until it fails

A node that failed is left alone for a while, longer each time (0.05 s doubling to 2 s, half of it by chance), and the
devices that it led are forgotten. If all nodes are left alone, the answer is the first to be free, and a wait.

Pure: the caller passes `now` (seconds) and `chance` ([0, 1)), and holds a lock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

_PAUSE_S, _PAUSE_MAX_S = 0.05, 2.0
#: Devices whose leader is known.
LEADERS_MAX = 16_384
#: Addresses that are known: more than a cluster has nodes.
ADDRESSES_MAX = 1_024


@dataclass(slots=True)
class _NodeFailures:
    """Of a node that failed: how often in a row, and until when it is left alone."""

    times: int
    until: float


class NodeSelector:
    """See the module."""

    def __init__(self, addresses: Iterable[str], *, start: int, spread: bool) -> None:
        """`start`: which address is home at first (modulo their number). `spread`: reads go to all nodes in turn."""
        given = list(dict.fromkeys(addresses))
        assert given
        start %= len(given)
        #: Never empty; the first is home.
        self._known = given[start:] + given[:start]
        self._spread = spread
        self._turn = 0
        self._trouble: dict[str, _NodeFailures] = {}
        self._leaders: OrderedDict[str, str] = OrderedDict()

    @property
    def addresses(self) -> tuple[str, ...]:
        """All known addresses, home first."""
        return tuple(self._known)

    def choose(self, now: float, *, read: bool = False, device: str | None = None) -> tuple[str, float]:
        """An address, and how many seconds to wait before it is asked."""
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
        """The node is well."""
        self._trouble.pop(address, None)

    def failed(self, address: str, now: float, chance: float) -> None:
        """The node did not answer, or could not do what a node should. Calls that failed together count once."""
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
        """A node named the addresses of the cluster."""
        known = set(self._known)
        new = [address for address in dict.fromkeys(addresses) if address not in known]
        self._known += new[: ADDRESSES_MAX - len(self._known)]

    def led(self, device: str, address: str) -> None:
        """The device's last write was led by the node at `address`."""
        self._leaders[device] = address
        self._leaders.move_to_end(device)
        if len(self._leaders) > LEADERS_MAX:
            self._leaders.popitem(last=False)
