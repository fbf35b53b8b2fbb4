"""Make a node of a cluster a receiver. The node's database shows senders' data in addition to the cluster's own.

    device      owner      scans read                                           rows of clients, deletions, schema
    root.a      none       the groups of its slices                             as usual
    root.b      sender A   A's last round, here or at a node that has it        refused (2061)

A view reads the catalog once, when it is opened, so a query sees exactly one complete round of each sender. A
background thread maintains this node's replica (`replica_store`). Thread-safe.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext

from saros_cluster.database.database import ClusterDatabase, Parts
from saros_cluster.database.synced_devices import SENDER
from saros_cluster.multiraft.peers import Answers, CallHandler, StreamHandler, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.routed_view import RoutedView
from saros_cluster.topology.topology import META, NodeState
from saros_storage.base.errors import StorageError
from saros_storage.read.view import LocalReadView
from saros_storage.scan.reading import ReadView
from saros_storage.schema import AlterSeries, CreateSeries, SchemaChange
from saros_sync.clustered.catalog import ClusterCatalog
from saros_sync.clustered.content_store import Contents
from saros_sync.clustered.receiver import ClusterReceiver
from saros_sync.clustered.replica_sets import ReplicaSets, all_replicas, replica_sets
from saros_sync.clustered.replica_store import ReplicaStore
from saros_sync.errors import SentElsewhere
from saros_sync.receiver.checking import ThreadExecutor
from saros_sync.receiver.mirror import Mirror
from saros_sync.receiver.synced_view import SyncedView
from saros_sync.receiver.write_guard import SenderGuard, Senders
from saros_sync.round import Content, is_sender

logger = logging.getLogger(__name__)

_STEP_SECONDS = 1.0


class MarkGuard:
    """Reserves the attribute that marks senders' series. Implements storage's `WriteGuard`."""

    #: See `WriteGuard.change_lock`.
    change_lock: AbstractContextManager[object] = nullcontext()

    def check_rows(self, devices: Iterable[str]) -> None:
        """See `WriteGuard`: rows cannot contain marks."""

    def check_changes(self, changes: Iterable[SchemaChange]) -> None:
        """See `WriteGuard`. Raises SentElsewhere if a client marks a series as a sender's."""
        for change in changes:
            match change:
                case AlterSeries():
                    given: list[Mapping[str, str]] = [change.attributes]
                case CreateSeries():
                    given = [series.attributes for series in change.series]
                case _:
                    continue
            if any(SENDER in attributes for attributes in given):
                raise SentElsewhere(f"{change.device}: only senders can set the attribute {SENDER}")

    def check_deletion(self, patterns: Sequence[str]) -> None:
        """See `WriteGuard`: deletions cannot contain marks."""

    def check_file(self, path: str) -> None:
        """See `WriteGuard`: files cannot contain marks."""


class ClusterSync:
    """The parts of the sync tool in a cluster's node: receiver, replica, view layer. Implements storage's `ViewLayer`.

    `start` begins the background thread, `stop` ends it.
    """

    def __init__(self, database: ClusterDatabase, parts: Parts, folder: str) -> None:
        """Add senders' data to the database. `folder` is the node's data folder. Raises CorruptFile, OSError."""
        self._database = database
        self._parts = parts
        self.ledger = ClusterCatalog(parts.notes)
        contents = Contents(folder, parts.disk)
        self.replica_store = ReplicaStore(
            contents,
            parts.disk,
            parts.clock,
            self.ledger,
            parts.node,
            self._all_nodes,
            self._replica_sets,
            database.ask,
            self._read,
        )
        self.receiver = ClusterReceiver(
            contents,
            parts.disk,
            parts.clock,
            self.ledger,
            self.replica_store,
            database,
            self._replica_sets,
            ThreadExecutor(),
        )
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        database.write_guards = (SenderGuard(self._senders, lambda: database.schema, parts.disk), MarkGuard())
        database.view_layers = (self,)

    def _senders(self) -> Senders:
        known = self.ledger.now
        return Senders(known.catalog, known.owners)

    def _group(self, sender: str) -> GroupId:
        """Return the group whose members store a sender's rounds."""
        return self._parts.routes.now.group_at(sender, 0)

    def _replica_sets(self, sender: str) -> ReplicaSets:
        return replica_sets(self._parts.routes.now.topology, sender)

    def _all_nodes(self) -> AbstractSet[NodeId]:
        """Return the nodes that may have contents: all members of the cluster, and all nodes that are joining it."""
        topology = self._parts.routes.now.topology
        joining = () if topology.change is None else topology.change.joining
        return {*topology.in_state(NodeState.IN), *joining} - topology.lost

    def have_sender_data(self, group: GroupId, nodes: Collection[NodeId]) -> bool:
        """Return whether each node has all contents of the group's senders' last rounds that any node can supply."""
        senders = self.ledger.now.catalog.senders.values()
        found = [self.replica_store.is_at(nodes, entry) for entry in senders if self._group(entry.id) == group]
        return all(found)

    def _read(self, node: NodeId, name: str, request: bytes, seconds: float) -> Answers:
        """Open a stream from another node. Raises Unreachable, RemoteError."""
        if self._parts.is_down(node):
            raise Unreachable(node, "it has not responded recently", sent=False)
        return self._parts.peers.stream(node, name, request, seconds)

    def stream_handlers(self) -> Mapping[str, StreamHandler]:
        """Return the handlers of the streams that other nodes read, keyed by name."""
        return self.replica_store.streams()

    def call_handlers(self) -> Mapping[str, CallHandler]:
        """Return the handlers of other nodes' calls, keyed by name."""
        return self.replica_store.handlers()

    # ------------------------------------------------------------------ the thread

    def start(self) -> None:
        """Start the background thread."""
        self._thread = threading.Thread(target=self._run, name="saros-sync-keeper", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.replica_store.wake.wait(_STEP_SECONDS)
            self.replica_store.wake.clear()
            try:
                self.step()
            except (StorageError, OSError) as error:
                logger.warning("storing data from senders is postponed", extra={"why": str(error)})
            except Exception:
                logger.exception("storing data from senders failed")

    def step(self) -> None:
        """Do one iteration of the background thread's work."""
        self.replica_store.step()
        self.receiver.remove_finished()
        if self._parts.host.leads(META):
            self.receiver.finish()

    def stop(self) -> None:
        """End the thread after its current step. Call this before the groups end, as the thread may wait for them."""
        self._stopped.set()
        self.replica_store.wake.set()
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """End the thread and the receiver. Call this before the database is closed."""
        self.stop()
        self.receiver.close()

    # ------------------------------------------------------------------ reading

    def view(self, below: Callable[[], ReadView]) -> ReadView:
        """See `ViewLayer.view`."""
        return self._with_senders(below())

    def hold(self, below: Callable[[], ReadView]) -> ReadView:
        """See `ViewLayer.hold`. The view pins senders' rounds at the nodes that store them."""
        view = self._with_senders(below())
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
        """Return the view of a sender's round, here or at a node that has it."""
        mirror = self.replica_store.mirror(sender, document)
        if mirror is not None:
            return self._mirror_view(mirror)
        kept_by = all_replicas(self._replica_sets(sender))
        nodes = sorted(self._all_nodes() - {self._parts.node}, key=lambda node: (node not in kept_by, node))
        return self._database.views.open_named(f"{sender}/{document.sha256}", self._group(sender), nodes)

    def named_view(self, name: str) -> ReadView | None:
        """Return the view of a sender's round for another node's query, or None if the round is not here."""
        sender, _, sha256 = name.partition("/")
        if not is_sender(sender):
            return None
        mirror = self.replica_store.mirror(sender, Content(sha256, 0))
        return None if mirror is None else self._mirror_view(mirror)

    def _mirror_view(self, mirror: Mirror) -> ReadView:
        replicas = self._parts.replicas
        machine = next(iter(replicas.machines.values()), None)
        expiry = None if machine is None else machine.region.expiry()  # every group has all TTLs
        scope = (mirror.round.sender, mirror.document.sha256)
        return LocalReadView(
            mirror.partitions, replicas.cache, lambda: None, expiry, latest=replicas.latest, scope=scope
        )

    def problems(self) -> tuple[str, ...]:
        """See `ViewLayer.problems`. The result is empty, since damaged data is fetched again from other nodes."""
        return ()
