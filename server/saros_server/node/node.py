"""A node: the composition root. `Node` builds the parts of one database in order, and closes them in reverse order.

    folder + Configuration -> Store (files, log, schema)        -> DriverScheduler (worker threads) -> QueryEngine
             cluster.json  -> ClusterNode (groups, log, peers)  ->

No other module builds these parts. `Node.open` either returns a complete node or releases everything that it has
opened. `close` ends running queries, flushes nothing (the log has all writes), and unlocks the folder. Thread-safe
after `open`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from saros_cluster.node.cluster_file import load as load_cluster_file
from saros_cluster.users.directory import Directory, FileDirectory
from saros_engine.base.database import Database
from saros_engine.base.system_mode import SystemMode
from saros_engine.catalog.continuous_runner import ContinuousRunner
from saros_engine.coordinator import QueryEngine
from saros_engine.memory.options import EngineOptions
from saros_engine.statements.user_statements import Secret, UserStatements
from saros_engine.writes.automatic_schema import AutomaticSchema
from saros_scheduler import DriverScheduler, SchedulerOptions
from saros_server.auth.passwords import Cost, check_password, hash_password
from saros_server.auth.tokens import digest_of, new_secret
from saros_server.config.configuration import Configuration, Loaded
from saros_server.config.memory_limits import queries_memory_bytes
from saros_server.config.settings import Settings
from saros_server.node.persisted_mode import load_mode
from saros_server.node.pinned_snapshots import PinnedSnapshots
from saros_server.node.request_dedup_runner import Requests
from saros_server.node.uploads import Uploads
from saros_server.sync.sync_admin import NodeSyncAdmin
from saros_storage.base.allocator import keep_freed_memory
from saros_storage.base.clock import Clock, SystemClock
from saros_storage.base.types import TIME_UNITS, DataType
from saros_storage.folder.folder_snapshot import take_snapshot
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import Disk, LocalDisk
from saros_storage.io.memory_disk import MemoryDisk
from saros_storage.kernels.cache import use_cache_folder
from saros_storage.store import Store
from saros_sync.receiver.mirror import FOLDER as SYNCED_FOLDER
from saros_sync.receiver.synced_store import open_receiver

if TYPE_CHECKING:
    from saros_server.cluster.node import ClusterNode
    from saros_server.pki.certificate_files import WatchedFiles
    from saros_sync.clustered.receiver import ClusterReceiver
    from saros_sync.receiver.receiver import Receiver


class Node:
    """One open database. Created by `Node.open`."""

    def __init__(
        self,
        settings: Settings,
        ground: _Storage,
        scheduler: DriverScheduler,
        engine: QueryEngine,
        clock: Clock,
        sync: NodeSyncAdmin,
        uploads: Uploads,
        closing: ExitStack,
    ) -> None:
        #: Receives the rounds of `saros sync`.
        self.receiver = ground.receiver
        #: The sync tool's state on this node.
        self.sync = sync
        self.settings = settings
        #: Closes the scheduler and all parts that were opened before it.
        self._closing = closing
        #: This node's part of its cluster; None without a cluster.
        self.cluster = ground.cluster
        self.store = ground.database
        self.scheduler = scheduler
        self.engine = engine
        #: The users and their tokens.
        self.directory = ground.directory
        #: Ensures that each numbered write of a client takes effect only once.
        self.requests = Requests()
        #: Files that clients send for LOAD.
        self.uploads = uploads
        #: The certificates for connections to other nodes; the server adds the certificates for clients.
        self.certificates = ground.certificates
        self._clock = clock
        #: Read points that clients hold for later statements.
        self.read_points = PinnedSnapshots(self.store, clock, self.requests.memory)
        mode = engine.mode
        in_charge = (lambda: not mode.is_fixed) if self.cluster is None else self.cluster.chores.leads_meta
        self._continuous = ContinuousRunner(self.store, clock, engine.run_continuous, in_charge)
        self._continuous.start()

    @property
    def configuration(self) -> Configuration:
        """The options in force."""
        return self.settings.current

    @staticmethod
    def open(folder: str, loaded: Loaded, *, clock: Clock | None = None, read_only: bool = False) -> Node:
        """Open or create the database in `folder`.

        If `read_only`, open a snapshot of the database as it is now, even if another process has it open; write
        nothing. Raises StorageError (in use, newer format, corrupt log), ConfigurationError (it cannot listen for other
        nodes).
        """
        keep_freed_memory()
        use_cache_folder(fallback=None if read_only else os.path.join(folder, "kernels"))
        clock = clock or SystemClock()
        disk: Disk = take_snapshot(LocalDisk(), folder, [SYNCED_FOLDER]) if read_only else LocalDisk()
        opened = ExitStack()
        configuration, settings = loaded.values, Settings(folder, loaded, disk)
        try:
            ground = _open(folder, configuration, disk, clock, opened)
            threads = SchedulerOptions(worker_threads=configuration.worker_threads)
            scheduler = DriverScheduler(threads, clock.monotonic_ns)
            opened.callback(scheduler.close)
            cluster = ground.cluster
            mode = SystemMode(read_only=True, is_fixed=True) if read_only else load_mode(folder, disk)
            here = NodeSyncAdmin(folder, disk, ground.receiver)
            spill_folder = tempfile.gettempdir() if read_only else folder
            engine = QueryEngine(
                ground.database,
                scheduler,
                clock,
                engine_options(configuration, spill_folder),
                None if cluster is None else cluster.services,
                UserStatements(ground.directory, partial(_hash_new, configuration), _new_secret),
                here if cluster is None else cluster.sync,
                mode,
                settings,
            )
            settings.subscribe(lambda changed: engine.set_options(engine_options(changed, spill_folder)))
            settings.subscribe(ground.set_options)
            if cluster is not None:
                cluster.status.set_mode(mode)
                cluster.others.answer_with(engine.every_node.answer)
            uploads = Uploads(folder, disk, clock)
            return Node(settings, ground, scheduler, engine, clock, here, uploads, opened)
        except BaseException:
            opened.close()
            raise

    def blocked_by(self) -> str | None:
        """Return the reason why the node accepts no writes at the moment, or None."""
        if self.engine.mode.read_only:
            return "it is read-only: run SET SYSTEM TO RUNNING to allow writes again"
        return self.store.blocked_by() or (None if self.cluster is None else self.cluster.status.blocked_by())

    def leader_elsewhere(self, device: str) -> str:
        """Return the host:port of the leader that executed a device's last write; empty if it is this node."""
        return "" if self.cluster is None else self.cluster.leader_elsewhere(device)

    def problems(self) -> tuple[str, ...]:
        """Return descriptions of current problems for operators."""
        now = datetime.fromtimestamp(self._clock.now_ns() / 1e9, UTC)
        expiring = (problem for files in self.certificates for problem in files.problems(now))
        of_cluster = () if self.cluster is None else self.cluster.status.problems()
        found = [*self.store.status().problems, self.store.blocked_by(), self.blocked_by(), *of_cluster, *expiring]
        return tuple(dict.fromkeys(problem for problem in found if problem))

    def close(self) -> None:
        """End running queries and unlock the folder. Idempotent."""
        self._continuous.stop()
        self.engine.close()
        self.read_points.close()
        self._continuous.join()
        self._closing.close()


class _Storage(msgspec.Struct, frozen=True):
    """The layer below the engine: a store, or a node's part of a cluster."""

    database: Database
    directory: Directory
    receiver: Receiver | ClusterReceiver
    #: Applies options that can change while the node runs.
    set_options: Callable[[Configuration], None]
    certificates: list[WatchedFiles] = msgspec.field(default_factory=list)
    cluster: ClusterNode | None = None


def _open(folder: str, configuration: Configuration, disk: Disk, clock: Clock, closing: ExitStack) -> _Storage:
    """Open a folder with a `cluster.json` as a node of that cluster, and any other folder as a single store."""
    options = store_options(configuration)
    file = load_cluster_file(folder, disk)
    if file is None:
        if isinstance(disk, MemoryDisk):
            store = Store.open_snapshot(folder, replace(options, compaction=False, log_archive_bytes=0), disk, clock)
        else:
            store = Store.open(folder, options, disk, clock)
        closing.callback(store.close)
        receiver = open_receiver(store, folder, disk, clock)
        closing.callback(receiver.close)

        def set_options(changed: Configuration) -> None:
            store.set_options(store_options(changed))

        return _Storage(store, FileDirectory(folder, disk), receiver, set_options)
    from saros_server.node.cluster_member import balance_options, open_member

    node, certificates = open_member(folder, file, configuration, options, disk, clock)
    closing.callback(node.close)

    def set_limits(changed: Configuration) -> None:
        node.limits.set_options(store_options(changed), balance_options(changed))

    return _Storage(node.database, node.directory, node.synced.receiver, set_limits, certificates, node)


def _hash_new(configuration: Configuration, user: str, password: str) -> str:
    """Return the hash of a new password. Raises UserMistake 2041 if the password is too weak."""
    check_password(user, password)
    return hash_password(password, Cost(configuration.password_cost))


def _new_secret() -> Secret:
    secret = new_secret()
    return Secret(secret, digest_of(secret))


def store_options(configuration: Configuration) -> StoreOptions:
    """Return the options of the store from the configuration."""
    unit = TIME_UNITS[configuration.time_unit]
    return StoreOptions(
        time_unit=unit,
        time_partition_interval=configuration.time_partition_interval_ms * unit.value // 1_000,
        durability=configuration.durability,
        memtable_bytes_max=configuration.memtable_bytes,
        memtables_total_bytes_max=configuration.memtables_total_bytes,
        log_archive_bytes=configuration.log_archive_bytes,
        cache_bytes=configuration.chunk_cache_bytes,
        latest_cache_bytes=configuration.latest_cache_bytes,
        compaction=configuration.compaction == "on",
        compaction_bytes_per_second=configuration.compaction_bytes_per_second,
        compaction_file_bytes=configuration.compaction_file_bytes,
        migration_bytes_per_second=configuration.migration_bytes_per_second,
        migration_cpu_percent=configuration.migration_cpu_percent,
    )


def engine_options(configuration: Configuration, folder: str) -> EngineOptions:
    """Return the options of the engine from the configuration; `folder` is for spilled rows."""
    return EngineOptions(
        parallelism=configuration.worker_threads,
        query_memory_bytes_max=configuration.query_memory_bytes,
        queries_memory_bytes_max=configuration.queries_memory_bytes or queries_memory_bytes(),
        spill_folder=folder,
        query_spill_bytes_max=configuration.query_spill_bytes,
        query_timeout_ms=configuration.query_timeout_ms,
        slow_query_ms=configuration.slow_query_ms,
        automatic_schema=AutomaticSchema(
            is_on=configuration.auto_create_schema == "on",
            database_level=configuration.default_database_level,
            integers=DataType[configuration.integer_literal_type],
            decimals=DataType[configuration.decimal_literal_type],
        ),
    )
