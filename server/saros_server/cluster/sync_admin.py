"""The sync tool's state in a cluster, for SQL on any node.

    SHOW SENDERS, SYNC     from the meta group's notes; rounds in progress arrive at any node, so all are asked
    SHOW RECEIVERS         a sender runs on the node of its folder, so all are asked

If a node does not answer, it has a row among the receivers that states the reason, and the rounds that it is receiving
are not reported. Thread-safe.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import astuple, replace

from saros_cluster.multiraft.peers import CallHandler
from saros_cluster.placement.ring import NodeId
from saros_engine.statements.sync_statements import ReceiverRow
from saros_server.cluster.peer_requests import Ask, ask_each
from saros_server.sync.sync_admin import NodeSyncAdmin
from saros_storage.io.disk import Disk
from saros_sync.clustered.receiver import ClusterReceiver

_DESK = "sync.desk"


class _NodeReport(msgspec.Struct, frozen=True):
    """One node's report. `rounds_in_progress`: see `Receiver.rounds_in_progress`."""

    rounds_in_progress: Mapping[str, tuple[int, int]]
    receivers: Sequence[ReceiverRow]

    def encode(self) -> bytes:
        return json.dumps([self.rounds_in_progress, [astuple(row) for row in self.receivers]]).encode()

    @staticmethod
    def decode(data: bytes) -> _NodeReport:
        in_hand, receivers = json.loads(data)
        hands = {str(sender): (int(number), int(lacking)) for sender, (number, lacking) in in_hand.items()}
        return _NodeReport(hands, [ReceiverRow(*row) for row in receivers])


class ClusterSyncAdmin(NodeSyncAdmin):
    """An implementation of `sync_statements.SyncAdmin` that asks all nodes of a cluster."""

    def __init__(
        self,
        folder: str,
        disk: Disk,
        receiver: ClusterReceiver,
        others: Callable[[], Sequence[NodeId]],
        ask: Ask,
    ) -> None:
        super().__init__(folder, disk, receiver)
        self._others = others
        self._ask = ask

    def rounds_in_progress(self) -> Mapping[str, tuple[int, int]]:
        """See `Receiver.rounds_in_progress`; return the newest round of each sender on any node."""
        found = dict(super().rounds_in_progress())
        for _, told in self._node_reports():
            if isinstance(told, str):
                continue
            for sender, (number, lacking) in told.rounds_in_progress.items():
                if number > found.get(sender, (0, 0))[0]:
                    found[sender] = number, lacking
        return found

    def receivers(self) -> Sequence[ReceiverRow]:
        """See `SyncAdmin.receivers`. The receivers of other nodes come last; the name of each begins with its node."""
        rows = list(super().receivers())
        for node, told in self._node_reports():
            if isinstance(told, str):
                rows.append(ReceiverRow(f"node {node}", "unknown", 0, 0, 0, 0.0, 0, 0, told))
            else:
                rows += [replace(row, name=f"node {node}: {row.name}") for row in told.receivers]
        return rows

    def _node_reports(self) -> Iterator[tuple[NodeId, _NodeReport | str]]:
        """Yield each other node's report, or the reason why it did not answer."""
        for node, answer in ask_each(self._others(), self._ask, _DESK, b""):
            yield node, answer if isinstance(answer, str) else _NodeReport.decode(answer)

    def handlers(self) -> Mapping[str, CallHandler]:
        """Return the handlers of other nodes' calls, by name."""

        def serve_report(_: NodeId, __: bytes) -> bytes:
            return _NodeReport(NodeSyncAdmin.rounds_in_progress(self), NodeSyncAdmin.receivers(self)).encode()

        return {_DESK: serve_report}
