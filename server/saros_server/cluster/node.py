"""The part of a cluster's node below the engine: its groups, their log, and the port for other nodes.

    cluster.json -> partition table -> the groups that this node is a member of, and the meta group
    log/         -> one log for all of them          groups/<id>/ -> regions          meta/group-<id> -> their states

        ClusterDatabase ── Proposer ── GroupHost ── RaftLog
             │                │           ├──────── RegionMachine, MetaMachine
             └── RoutedView ──┴── GrpcPeers ══ other nodes

This module creates and connects all parts of a cluster's node. `open` returns a node that participates in the cluster,
or releases everything that it has opened; `close` stops the node. Data that is not flushed stays in the log.
Thread-safe after `open`.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import msgspec
from msgspec.structs import replace

from saros_cluster.data import snapshots
from saros_cluster.database.cluster_directory import ClusterDirectory
from saros_cluster.database.database import ClusterDatabase, Parts
from saros_cluster.meta.machine import MetaMachine
from saros_cluster.meta.state import MetaState
from saros_cluster.multiraft.host import GroupHost
from saros_cluster.multiraft.host_threads import HostThreads
from saros_cluster.multiraft.peers import BadRequest, CallHandler, Unreachable
from saros_cluster.multiraft.raft_log import LogContents, RaftLog
from saros_cluster.node.cluster_file import CLUSTER_FILE, ClusterFile
from saros_cluster.node.groups import GroupResources, Groups
from saros_cluster.node.receive_throttle import ReceiveThrottle
from saros_cluster.node.slot_load import LoadMeter
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import GroupId, HardState, Message, Position
from saros_cluster.raft.ready import RaftOptions, Restored
from saros_cluster.reconfiguration.reconciler import Reconciler
from saros_cluster.remote.migration_sources import MigrationSources
from saros_cluster.remote.reader_open import opener
from saros_cluster.remote.reader_service import ReaderService
from saros_cluster.routing.merges import MERGE, Merges, Stopped, encode_request, merge_everywhere
from saros_cluster.routing.proposer import Proposer
from saros_cluster.routing.replicas import Replicas
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.topology import META, Node, Topology
from saros_cluster.transport.grpc_peers import GrpcPeers
from saros_cluster.transport.handshake import CredentialSource, Identity
from saros_engine.cluster import Cluster
from saros_engine.show.cluster_requests import TELL
from saros_server.cluster.admin import Administration
from saros_server.cluster.background import BackgroundTasks
from saros_server.cluster.background_limits import BackgroundLimits
from saros_server.cluster.extension_check import INSTALLED, ExtensionCheck, serve_installed
from saros_server.cluster.leader_eviction import LeaderEviction
from saros_server.cluster.peer_requests import OtherNodes
from saros_server.cluster.rebalancing import BalanceOptions, Balancing
from saros_server.cluster.reconfiguration_thread import ReconfigurationThread
from saros_server.cluster.status import ClusterStatus
from saros_server.cluster.sync_admin import ClusterSyncAdmin
from saros_storage.base.clock import Clock
from saros_storage.base.errors import CorruptFile, UserMistake
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.compaction.compactor import Compactor
from saros_storage.flush.pacer import Pacer
from saros_storage.folder.layout import LOG_FOLDER, SNAPSHOTS_FOLDER, confirm, write_durably
from saros_storage.folder.node_file import check_node_file
from saros_storage.folder.store_options import StoreOptions, parse_durability
from saros_storage.io.disk import Disk
from saros_storage.io.folder_lock import FolderLock
from saros_storage.loading.staging import Staging
from saros_storage.log import Durability, LogOptions, LogSyncer
from saros_storage.read.latest_cache import LatestCache
from saros_sync.clustered.cluster_sync import ClusterSync
from saros_wire.addresses import host_and_port

logger = logging.getLogger(__name__)

_FLUSH = "flush"
#: The folder of files that this node is receiving.
_ARRIVING = "arriving"
#: A file whose presence marks a node that was removed from the cluster.
_REMOVED = "removed"
_FLUSH_SECONDS = 60.0
#: This time is long enough, since a node reports its progress at least once a second.
_MERGE_SECONDS = 10.0
RAFT_OPTIONS = RaftOptions()
META_VOTER_TIMEOUT_MS = 60_000
AddressOf = Callable[[NodeId], str | None]


class Environment(msgspec.Struct, frozen=True):
    """The environment of a node, apart from its disk and its clock.

    The simulator substitutes its own implementation.
    """

    #: Creates the connections to the other nodes. No connection is used before `start`.
    peers: Callable[[Identity, AddressOf, CredentialSource | None, Clock], GrpcPeers] = GrpcPeers
    #: Locks the folder for this process, and returns the function that unlocks it. Raises FolderInUse.
    own: Callable[[str], Callable[[], None]] = lambda folder: FolderLock.acquire(folder).release
    randomness: random.Random = msgspec.field(default_factory=random.SystemRandom)
    #: Processor time of the calling thread.
    thread_time_ns: Callable[[], int] = time.thread_time_ns


class ClusterNode:
    """An open node of a cluster. Created by `open`."""

    def __init__(
        self,
        database: ClusterDatabase,
        synced: ClusterSync,
        directory: ClusterDirectory,
        status: ClusterStatus,
        chores: BackgroundTasks,
        admin: Administration,
        installations: ExtensionCheck,
        others: OtherNodes,
        sync: ClusterSyncAdmin,
        peers: GrpcPeers,
        limits: BackgroundLimits,
        closing: ExitStack,
    ) -> None:
        #: The limits of background work.
        self.limits = limits
        #: The connections to the cluster's other nodes.
        self.peers = peers
        self.database = database
        #: The data that sync senders have sent to the cluster.
        self.synced = synced
        #: The cluster's services for the engine.
        self.services = Cluster(status, admin, installations, others)
        self.others = others
        self.directory = directory
        self.status = status
        self.chores = chores
        #: The sync tool's state in the cluster.
        self.sync = sync
        self._closing = closing

    def leader_elsewhere(self, device: str) -> str:
        """Return the host:port of the node that led the last write to a device's database; empty for this node."""
        return self.status.client_address_elsewhere(self.database.last_leader(device))

    def close(self) -> None:
        """Stop the node. Idempotent."""
        self._closing.close()

    @staticmethod
    def open(
        folder: str,
        file: ClusterFile,
        options: StoreOptions,
        disk: Disk,
        clock: Clock,
        raft: RaftOptions | None = None,
        outside: Environment | None = None,
        credentials: CredentialSource | None = None,
        balance: BalanceOptions | None = None,
        meta_voter_timeout_ms: int = META_VOTER_TIMEOUT_MS,
    ) -> ClusterNode:
        """Open the node and join the other nodes of its cluster.

        Without `credentials`, all nodes must be on this machine. `meta_voter_timeout_ms`: see `MetaVoters`.
        Raises StorageError (in use, corrupt), UserMistake (the administrator in the file was changed), CannotListen.
        """
        outside = outside or Environment()
        disk.make_folder(folder)
        opened = ExitStack()
        try:
            opened.callback(outside.own(folder))
            voter_silence_ns = meta_voter_timeout_ms * 1_000_000
            opening = _Opening(
                folder, file, options, disk, clock, raft or RAFT_OPTIONS, outside, voter_silence_ns, opened
            )
            return opening.open(credentials, balance or BalanceOptions())
        except BaseException:
            opened.close()
            raise


class _Opening:
    """The steps of `open`, in order; `closing` closes the parts in reverse order."""

    def __init__(
        self,
        folder: str,
        file: ClusterFile,
        options: StoreOptions,
        disk: Disk,
        clock: Clock,
        raft: RaftOptions,
        outside: Environment,
        voter_silence_ns: int,
        closing: ExitStack,
    ) -> None:
        self._raft = raft
        self._voter_silence_ns = voter_silence_ns
        self._outside = outside
        self._folder = folder
        self._file = file
        self._disk = disk
        self._clock = clock
        self._closing = closing
        check_node_file(folder, options, disk)
        first = Topology.first(
            {node: Node(at.peer, at.client, rack=at.rack) for node, at in file.nodes.items()},
            file.replicas,
            file.slots,
            file.meta_voters,
        )
        disk.make_folder(os.path.join(folder, "meta"))
        self._first = first
        self._routes = Routes(first, options.time_partition_interval)
        self._removed_path = os.path.join(folder, _REMOVED)
        if disk.exists(self._removed_path):
            confirm(disk, self._removed_path)
            self._routes.is_removed = True
        self._schema = ClusterSchema()
        self._meta = MetaMachine(self._state_path(META), disk, self._agree, first, file.users)
        _check_administrator(file, self._meta)
        # The groups of a node share its memory for MemTables. A node belongs to as many groups as a group has replicas.
        share = options.memtables_total_bytes_max // file.replicas
        self._options = replace(
            options,
            memtables_total_bytes_max=share,
            memtable_bytes_max=min(options.memtable_bytes_max, max(share // 4, 1)),
        )
        self._cache = ChunkCache(options.cache_bytes)
        self._latest = LatestCache(options.latest_cache_bytes)
        self._compactor = Compactor(self._options, clock)
        self._pacer = Pacer(options.migration_cpu_percent, outside.thread_time_ns)
        self._inflow = ReceiveThrottle(options.migration_bytes_per_second, clock)

    def _agree(self, state: MetaState) -> None:
        """Update the routes, `_notes` and the schema to a new state of the meta group."""
        self._routes.learn(state.topology)
        self._notes = state.notes  # after the topology, so that the topology is never older than the notes
        self._schema.agree(state.databases, state.drops, state.version, state.partitions)

    def open(self, credentials: CredentialSource | None, balance: BalanceOptions) -> ClusterNode:
        """See `ClusterNode.open`."""
        disk, file, meta = self._disk, self._file, self._meta
        log, contents = self._open_log()
        identity = Identity(file.cluster, file.node, file.address.peer)
        peers = self._outside.peers(identity, self._address_of, credentials, self._clock)
        self._closing.callback(peers.close)
        host = GroupHost(file.node, log, peers, self._clock, self._outside.randomness)
        meta.start(partial(host.compact, META))
        self._closing.callback(self._compactor.stop)
        shelf = CheckpointRegistry(os.path.join(self._folder, SNAPSHOTS_FOLDER), disk, self._clock)
        replicas = Replicas(self._cache, self._latest)
        life = self._outside.randomness.getrandbits(63)
        groups = self._groups(log, contents, host, peers, shelf, replicas, life)
        host.add(META, _restored(contents[META], meta.installed), meta, self._raft)
        groups.open(self._routes.own_topology)
        status = ClusterStatus(identity, self._routes, host, replicas, peers, self._schema, self._inflow, self._clock)
        proposer = Proposer(file.node, host, peers, self._clock, self._routes.members, time.sleep, status.is_down)
        database, synced, merges = self._database(life, host, peers, proposer, replicas, status.is_down, shelf)
        readers = ReaderService(opener(host, replicas, self._clock, synced.named_view), self._clock)
        self._closing.callback(readers.close)
        threads = HostThreads(host, self._clock)
        desk = ClusterSyncAdmin(self._folder, disk, synced.receiver, database.others, database.ask)
        others = OtherNodes(database.others, database.ask)
        meter = LoadMeter(lambda: replicas.machines, file.slots, self._clock)
        balancing = Balancing(meter, self._routes, database.others, database.ask, database.grow, self._clock, balance)
        worker = self._worker(groups, replicas, host, peers, proposer, database, synced, shelf)
        peers.start(
            *host_and_port(file.address.peer),
            receive=partial(self._receive, host),
            calls={
                **database.call_handlers(),
                **synced.call_handlers(),
                **readers.call_handlers(),
                **status.call_handlers(),
                INSTALLED: serve_installed,
                TELL: others.answer,
                **snapshots.call_handlers(shelf),
                **worker.handlers(),
                **desk.handlers(),
                **meter.handlers(),
                _FLUSH: _flush_handler(replicas),
                MERGE: merges.handler(),
            },
            streams={**synced.stream_handlers(), **readers.stream_handlers()},
        )
        threads.start()
        self._closing.callback(threads.stop)
        synced.start()
        self._closing.callback(synced.stop)
        chores = BackgroundTasks(
            self._clock, log, host, meta, replicas, readers, database, status, shelf, self._options, meter, balancing
        )
        chores.start()
        self._closing.callback(chores.stop)
        eviction = LeaderEviction(host, status)
        eviction.start()
        self._closing.callback(eviction.stop)
        self._closing.callback(ReconfigurationThread(worker).stop)
        directory = ClusterDirectory(database, lambda: meta.state.users)
        admin = Administration(file, database, self._routes, worker.rescue, balancing, status.answers)
        installed = ExtensionCheck(file.node, self._routes, peers)
        limits = BackgroundLimits(self._compactor, self._pacer, self._inflow, balancing)
        return ClusterNode(
            database, synced, directory, status, chores, admin, installed, others, desk, peers, limits, self._closing
        )

    def _database(
        self,
        life: int,
        host: GroupHost,
        peers: GrpcPeers,
        proposer: Proposer,
        replicas: Replicas,
        is_down: Callable[[NodeId], bool],
        shelf: CheckpointRegistry,
    ) -> tuple[ClusterDatabase, ClusterSync, Merges]:
        parts = Parts(
            self._file.node,
            life,
            self._routes,
            host,
            peers,
            proposer,
            replicas,
            self._schema,
            self._options,
            self._clock,
            is_down,
            lambda databases: self._flush_all(replicas, peers, databases),
            lambda databases, full, stopped: self._merge_all(merges, peers, databases, stopped, full=full),
            self._compactor,
            shelf,
            self._disk,
            self._staging(),
            lambda: self._notes,
            self._meta.entry_of,
        )
        database = ClusterDatabase(parts)
        self._closing.callback(database.close)
        synced = ClusterSync(database, parts, self._folder)
        self._closing.callback(synced.close)
        merges = Merges(replicas.merge, self._clock)
        self._closing.callback(merges.close)
        return database, synced, merges

    def _receive(self, host: GroupHost, sender: NodeId, messages: Sequence[Message]) -> None:
        """Receive messages. If a node was given up as lost but still runs, its messages are ignored."""
        if sender not in self._routes.now.topology.lost:
            host.receive(sender, messages)

    def _groups(
        self,
        log: RaftLog,
        contents: dict[GroupId, LogContents],
        host: GroupHost,
        peers: GrpcPeers,
        shelf: CheckpointRegistry,
        replicas: Replicas,
        life: int,
    ) -> Groups:
        migration_sources = MigrationSources(
            self._file.node, replicas, peers, self._options.time_partition_interval, life
        )
        ground = GroupResources(
            self._file.node,
            self._folder,
            self._options,
            self._disk,
            self._clock,
            self._cache,
            self._schema,
            shelf,
            self._compactor,
            self._pacer,
            self._raft,
            log,
            host,
            peers,
            self._first,
            migration_sources.source_of,
            self._inflow,
        )
        groups = Groups(ground, replicas, contents)
        self._closing.callback(groups.close)
        return groups

    def _worker(
        self,
        groups: Groups,
        replicas: Replicas,
        host: GroupHost,
        peers: GrpcPeers,
        proposer: Proposer,
        database: ClusterDatabase,
        synced: ClusterSync,
        shelf: CheckpointRegistry,
    ) -> Reconciler:
        return Reconciler(
            self._file.node,
            os.path.join(self._folder, _ARRIVING),
            self._disk,
            self._clock,
            self._routes,
            groups,
            replicas,
            host,
            peers,
            proposer,
            database.entries.own_request,
            self._meta.save,
            partial(write_durably, self._disk, self._removed_path, b"this node was removed from the cluster\n"),
            self._schema,
            shelf,
            self._inflow,
            synced.replica_store.has_arrived,
            synced.have_sender_data,
            self._voter_silence_ns,
        )

    def _staging(self) -> Staging:
        staging = Staging(self._folder, self._disk, _report)
        staging.sweep(())
        return staging

    def _state_path(self, group: GroupId) -> str:
        return os.path.join(self._folder, "meta", f"group-{group}")

    def _address_of(self, node: NodeId) -> str | None:
        found = self._routes.now.topology.nodes.get(node)
        return None if found is None else found.peer

    def _open_log(self) -> tuple[RaftLog, dict[GroupId, LogContents]]:
        """Open the log, and create the meta group in it if it is missing."""
        mode, interval_ms = parse_durability(self._options.durability)
        path = os.path.join(self._folder, LOG_FOLDER)
        log, contents = RaftLog.open(path, self._disk, LogOptions(mode, self._options.segment_bytes))
        self._closing.callback(log.close)
        if mode is Durability.INTERVAL:
            self._closing.callback(LogSyncer(log.sync_due, interval_ms).stop)
        if META not in contents:
            is_first = self._file.node in self._first.nodes
            base = Position(0, 0, self._first.wanted[META] if is_first else Membership(0, ()))
            log.wait(log.create(META, base))
            contents[META] = LogContents(base, HardState(), ())
        return log, contents

    def _flush_all(self, replicas: Replicas, peers: GrpcPeers, databases: Sequence[str] | None) -> None:
        replicas.flush(databases)
        request = "\n".join(databases or ()).encode()
        for node in self._routes.now.nodes:
            if node != self._file.node:
                try:
                    peers.call(node, _FLUSH, request, _FLUSH_SECONDS)
                except Unreachable as error:
                    logger.info("a node was not asked to flush", extra={"node": node, "why": str(error)})

    def _merge_all(
        self, merges: Merges, peers: GrpcPeers, databases: Sequence[str] | None, stopped: Stopped, *, full: bool
    ) -> None:
        request = encode_request(f"{self._outside.randomness.getrandbits(64):016x}", databases, full=full)

        def ask(node: NodeId, request: bytes) -> bytes:
            if node == self._file.node:
                return merges.answer(request)
            return peers.call(node, MERGE, request, _MERGE_SECONDS)

        merge_everywhere(request, self._routes.now.nodes, ask, stopped)


def _report(path: str, error: CorruptFile) -> None:
    logger.warning("a file to load is damaged", extra={"file": path, "why": str(error)})


def _restored(contents: LogContents, installed: Position | None) -> Restored:
    return Restored(contents.base, contents.hard_state, contents.entries, installed)


def _check_administrator(file: ClusterFile, meta: MetaMachine) -> None:
    """Raise UserMistake if only one of the file and the cluster has an administrator.

    Otherwise a file that was edited later could suggest that the node requires passwords although it does not.
    """
    began_with = bool(meta.state.users.users)
    if began_with != (file.administrator is not None):
        raise UserMistake(
            f"{CLUSTER_FILE} names {'no' if began_with else 'an'} administrator, but the cluster was created"
            f" {'with' if began_with else 'without'} one: restore the original file",
            code=2004,
        )


def _flush_handler(replicas: Replicas) -> CallHandler:
    def flush(_: NodeId, request: bytes) -> bytes:
        try:
            databases = request.decode().split("\n") if request else None
        except UnicodeDecodeError as error:
            raise BadRequest(_FLUSH, error) from error
        replicas.flush(databases)
        return b""

    return flush
