"""The database of a cluster's node that shows, beside the cluster's own data, what senders have sent to any node.

    device      owner      scans read                                           rows of clients, deletions, schema
    root.a      nobody     the groups of its slices                             as ever
    root.b      sender A   A's last round: here, or at a node that has it       refused (2061)

A view asks for owners and rounds once, when it is made: so a query sees of each sender one round, whole. A thread of
its own keeps what this node is to keep (`replica_store`). Thread-safe.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet

from saros_cluster.database.database import ClusterDatabase, Parts
from saros_cluster.database.synced_devices import SENDER
from saros_cluster.multiraft.peers import Answers, CallHandler, StreamHandler, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.routed_view import RoutedView
from saros_cluster.topology.topology import META, NodeState
from saros_storage.base.errors import StorageError
from saros_storage.base.tablet import Tablet
from saros_storage.base.write_request import UNNUMBERED, WriteRequest
from saros_storage.loading.loader import LoadOptions
from saros_storage.read.view import LocalReadView
from saros_storage.scan.read_point import ReadPoint
from saros_storage.scan.reading import ReadView, TimeRange
from saros_storage.schema import AlterSeries, CreateSeries, SchemaChange
from saros_sync.clustered.catalog import ClusterCatalog
from saros_sync.clustered.content_store import Contents
from saros_sync.clustered.receiver import ClusterReceiver
from saros_sync.clustered.replica_sets import Halves, halves, keepers
from saros_sync.clustered.replica_store import ReplicaStore
from saros_sync.errors import SentElsewhere
from saros_sync.receiver.checking import ThreadExecutor
from saros_sync.receiver.mirror import Mirror
from saros_sync.receiver.synced_view import SyncedView
from saros_sync.receiver.write_guard import WriteGuard
from saros_sync.round import Content, is_sender

logger = logging.getLogger(__name__)

_STEP_SECONDS = 1.0


class SyncedCluster(ClusterDatabase):
    """See the module. `start` begins its thread, `stop` ends it."""

    def __init__(self, parts: Parts, folder: str) -> None:
        """See `ClusterDatabase`; `folder`: the node's. Raises CorruptFile, OSError."""
        super().__init__(parts)
        self.ledger = ClusterCatalog(parts.notes)
        contents = Contents(folder, parts.disk)
        self.replica_store = ReplicaStore(
            contents,
            parts.disk,
            parts.clock,
            self.ledger,
            parts.node,
            self._all_nodes,
            self._halves,
            self.ask,
            self._read,
        )
        self.receiver = ClusterReceiver(
            contents, parts.disk, parts.clock, self.ledger, self.replica_store, self, self._halves, ThreadExecutor()
        )
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def _group(self, sender: str) -> GroupId:
        """The group whose members keep what a sender has sent."""
        return self._parts.routes.now.group_at(sender, 0)

    def _halves(self, sender: str) -> Halves:
        return halves(self._parts.routes.now.topology, sender)

    def _all_nodes(self) -> AbstractSet[NodeId]:
        """All that may have something: those of the cluster, and those that join it."""
        topology = self._parts.routes.now.topology
        joining = () if topology.change is None else topology.change.joining
        return {*topology.in_state(NodeState.IN), *joining} - topology.lost

    def have_sender_data(self, group: GroupId, nodes: Collection[NodeId]) -> bool:
        """Whether each of these nodes has what the senders of a group have sent, as far as it can be had."""
        senders = self.ledger.now.catalog.senders.values()
        found = [self.replica_store.is_at(nodes, entry) for entry in senders if self._group(entry.id) == group]
        return all(found)

    def others(self) -> Sequence[NodeId]:
        """All other nodes."""
        return [node for node in self._parts.routes.now.nodes if node != self._parts.node]

    def ask(self, node: NodeId, name: str, request: bytes, seconds: float) -> bytes:
        """Ask another node. Raises Unreachable, RemoteError."""
        if self._parts.is_down(node):
            raise Unreachable(node, "it has not answered lately", sent=False)
        return self._parts.peers.call(node, name, request, seconds)

    def _read(self, node: NodeId, name: str, request: bytes, seconds: float) -> Answers:
        """Ask another node for a stream. Raises Unreachable, RemoteError."""
        if self._parts.is_down(node):
            raise Unreachable(node, "it has not answered lately", sent=False)
        return self._parts.peers.stream(node, name, request, seconds)

    def stream_handlers(self) -> Mapping[str, StreamHandler]:
        """What other nodes read here, by name."""
        return self.replica_store.streams()

    def call_handlers(self) -> Mapping[str, CallHandler]:
        """See `ClusterDatabase.call_handlers`."""
        return {**super().call_handlers(), **self.replica_store.handlers()}

    # ------------------------------------------------------------------ the thread

    def start(self) -> None:
        """Begin to keep what this node is to keep."""
        self._thread = threading.Thread(target=self._run, name="saros-sync-keeper", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.replica_store.wake.wait(_STEP_SECONDS)
            self.replica_store.wake.clear()
            try:
                self.step()
            except (StorageError, OSError) as error:
                logger.warning("what senders sent is kept later", extra={"why": str(error)})
            except Exception:
                logger.exception("keeping what senders sent failed")

    def step(self) -> None:
        """What is done again and again, by one thread."""
        self.replica_store.step()
        self.receiver.remove_finished()
        if self._parts.host.leads(META):
            self.receiver.finish()

    def stop(self) -> None:
        """End the thread, after what is at hand: before the groups end, since it may wait for them."""
        self._stopped.set()
        self.replica_store.wake.set()
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """See `ClusterDatabase.close`."""
        self.stop()
        self.receiver.close()
        super().close()

    # ------------------------------------------------------------------ reading

    def view(self, point: ReadPoint) -> ReadView:
        """See `Database.view`."""
        return self._with_senders(super().view(point))

    def hold(self, point: ReadPoint) -> ReadView:
        """See `Database.hold`: whoever keeps a sender is asked now."""
        view = self._with_senders(super().hold(point))
        if isinstance(view, SyncedView):
            try:
                for sender, mirror in view.all_views().items():
                    if isinstance(mirror, RoutedView):
                        mirror.pin(self._group(sender))
            except BaseException:
                view.close()
                raise
        return view

    def _with_senders(self, own: ReadView) -> ReadView:
        known = self.ledger.now
        if not known.owners:
            return own
        return SyncedView(own, known.owners, lambda owner: self._round(owner, known.catalog.senders[owner].document))

    def _round(self, sender: str, document: Content) -> ReadView:
        """A sender's round: here, or wherever it is."""
        mirror = self.replica_store.mirror(sender, document)
        if mirror is not None:
            return self._mirror_view(mirror)
        kept_by = keepers(self._halves(sender))
        nodes = sorted(self._all_nodes() - {self._parts.node}, key=lambda node: (node not in kept_by, node))
        return self.views.open_named(f"{sender}/{document.sha256}", self._group(sender), nodes)

    def named_view(self, name: str) -> ReadView | None:
        """A sender's round, for a query of another node; None: it is not here."""
        sender, _, sha256 = name.partition("/")
        if not is_sender(sender):
            return None
        mirror = self.replica_store.mirror(sender, Content(sha256, 0))
        return None if mirror is None else self._mirror_view(mirror)

    def _mirror_view(self, mirror: Mirror) -> ReadView:
        replicas = self._parts.replicas
        machine = next(iter(replicas.machines.values()), None)
        expiry = None if machine is None else machine.region.expiry()  # every group has all rules of TTL
        scope = (mirror.round.sender, mirror.document.sha256)
        return LocalReadView(
            mirror.partitions, replicas.cache, lambda: None, expiry, latest=replicas.latest, scope=scope
        )

    # ------------------------------------------------------------------ writing

    def write(
        self, tablets: Sequence[Tablet], creates: Sequence[SchemaChange] = (), *, request: WriteRequest = UNNUMBERED
    ) -> None:
        """See `ClusterDatabase.write`. Raises SentElsewhere for a sender's device."""
        self._guard.refuse(tablet.device for tablet in tablets)
        super().write(tablets, creates, request=request)

    def change_schema(self, changes: Sequence[SchemaChange], *, request: WriteRequest = UNNUMBERED) -> None:
        """See `ClusterDatabase.change_schema`. Raises SentElsewhere for a sender's device, and for its mark."""
        self._guard.refuse_changes(changes)
        for change in changes:
            if isinstance(change, CreateSeries | AlterSeries):
                given = (
                    [change.attributes] if isinstance(change, AlterSeries) else [s.attributes for s in change.series]
                )
                if any(SENDER in attributes for attributes in given):
                    raise SentElsewhere(f"{change.device}: the attribute {SENDER} is given by senders alone")
        super().change_schema(changes, request=request)

    def change_own_schema(self, changes: Sequence[SchemaChange]) -> None:
        """For the receiver: changes of senders' devices."""
        super().change_schema(changes)

    def delete(self, patterns: Sequence[str], time: TimeRange, *, request: WriteRequest = UNNUMBERED) -> None:
        """See `ClusterDatabase.delete`. Raises SentElsewhere if a sender's series matches."""
        self._guard.refuse_patterns(patterns)
        super().delete(patterns, time, request=request)

    def delete_series(self, pattern: str, *, request: WriteRequest = UNNUMBERED) -> int:
        """See `ClusterDatabase.delete_series`. Raises SentElsewhere if a sender's series matches."""
        self._guard.refuse_patterns([pattern])
        return super().delete_series(pattern, request=request)

    def delete_own_series(self, pattern: str) -> None:
        """For the receiver: senders' series."""
        super().delete_series(pattern)

    def delete_database(self, path: str, *, request: WriteRequest = UNNUMBERED) -> None:
        """See `ClusterDatabase.delete_database`. Raises SentElsewhere if a sender's device lies in it."""
        self._guard.refuse_patterns([f"{path}.**"])
        super().delete_database(path, request=request)

    def load(self, path: str, options: LoadOptions, *, request: WriteRequest = UNNUMBERED) -> int:
        """See `ClusterDatabase.load`. Raises SentElsewhere if the file has a sender's device."""
        self._guard.refuse_file(path, self._parts.disk)
        return super().load(path, options, request=request)

    @property
    def _guard(self) -> WriteGuard:
        known = self.ledger.now
        return WriteGuard(known.catalog, known.owners, self.schema)
