"""What the sync tool does in a cluster, as SQL asks any node for it.

    SHOW SENDERS, SYNC     from the meta group's notes; what is on its way arrives at some node: all are asked
    SHOW RECEIVERS         a folder's sender is beside its node: all are asked

A node that does not answer is left out. Implements `sync_statements.SyncDesk`. Thread-safe.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace

from saros_cluster.peers import CallHandler, RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_engine.sync_statements import ReceiverRow
from saros_server.sync_desk import NodeSyncDesk
from saros_storage.disk import Disk
from saros_sync.clustered.receiver import ClusterReceiver

_DESK = "sync.desk"
_ASK_SECONDS = 5.0


class ClusterSyncDesk(NodeSyncDesk):
    """See the module."""

    def __init__(
        self,
        folder: str,
        disk: Disk,
        receiver: ClusterReceiver,
        others: Callable[[], Sequence[NodeId]],
        ask: Callable[[NodeId, str, bytes, float], bytes],
    ) -> None:
        super().__init__(folder, disk, receiver)
        self._others = others
        self._ask = ask

    def in_hand(self) -> Mapping[str, tuple[int, int]]:
        """See `Receiver.in_hand`, of all nodes: the newest round of each sender."""
        found = dict(super().in_hand())
        for _, told, _ in self._told():
            for sender, (number, lacking) in told.items():
                if number > found.get(sender, (0, 0))[0]:
                    found[sender] = number, lacking
        return found

    def receivers(self) -> Sequence[ReceiverRow]:
        """See `SyncDesk.receivers`: of all nodes; those of others are called by their node, too."""
        rows = list(super().receivers())
        for node, _, told in self._told():
            rows += [replace(row, name=f"node {node}: {row.name}") for row in told]
        return rows

    def _told(self) -> Iterator[tuple[NodeId, dict[str, tuple[int, int]], list[ReceiverRow]]]:
        for node in self._others():
            try:
                in_hand, receivers = json.loads(self._ask(node, _DESK, b"", _ASK_SECONDS))
            except (Unreachable, RemoteError):
                continue
            hands = {str(sender): (int(number), int(lacking)) for sender, (number, lacking) in in_hand.items()}
            yield node, hands, [ReceiverRow(*row) for row in receivers]

    def handlers(self) -> Mapping[str, CallHandler]:
        """What other nodes ask, by name."""

        def tell(_: NodeId, __: bytes) -> bytes:
            receivers = [astuple(row) for row in NodeSyncDesk.receivers(self)]
            return json.dumps([NodeSyncDesk.in_hand(self), receivers]).encode()

        return {_DESK: tell}
