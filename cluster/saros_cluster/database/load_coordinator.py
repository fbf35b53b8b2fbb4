"""LOAD on a cluster: sends a file that one node can read to the groups that own its slices.

    file ─copy, check─▶ staged here ─split─▶ one file for each (database, slice), or several of some 64 MiB
    schema             missing series are created, as for a write; if one does not fit, the whole LOAD is refused
    each staged file   ─pieces─▶ the log of the group that owns the slice ─▶ one entry loads it   (`log_shipped_files`)

Pieces and loads are entries of the log, so all replicas reach the same state even if leaders change or members lag, and
a staged file becomes visible all at once. The entry that loads a staged file carries a request derived from the
client's request and the file's identity, so a repeated LOAD has no second effect. A staged file is sent again if the
group has lost pieces of it, or if its slice has a new owner. If a LOAD fails halfway, the error says how many of its
parts are loaded.

The statement LOAD runs on the caller's thread, which may be any thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

import msgspec

from saros_cluster.data.command import Request, encode_command, encode_shipping
from saros_cluster.data.drops import OVERTAKEN
from saros_cluster.data.log_shipped_files import LOST, PIECE_BYTES, Abandon, Piece, shipment_name, staged_name
from saros_cluster.database.drop_coordinator import DropCoordinator
from saros_cluster.database.synced_devices import refuse_synced
from saros_cluster.database.write_coordinator import WriteCoordinator
from saros_cluster.multiraft.peers import Unreachable
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader, OutcomeUnknown
from saros_cluster.routing.proposer import Proposer
from saros_cluster.routing.routing import Routing
from saros_storage.base.clock import Clock
from saros_storage.base.errors import DiskFull, StorageError, UserMistake
from saros_storage.base.write_request import WriteRequest
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import FULL_ERRNOS, Disk
from saros_storage.loading.loader import FileLoad, LoadOptions
from saros_storage.loading.staging import Staging
from saros_storage.mutation.mutation import Mutation
from saros_storage.mutation.staged import StagedFile
from saros_storage.schema import SchemaChange, SchemaTree

#: The size limit of a staged file. Until a file is loaded, each replica has its pieces in the log, which is in memory.
FILE_BYTES = 64 << 20
#: The number of times that a staged file is sent before the LOAD fails.
_ATTEMPTS_MAX = 100
#: Timeout for telling a group to abandon a file.
_ABANDON_SECONDS = 2.0
_EXISTS, _SERIES_EXISTS = 501, 503


class LoadedInPart(StorageError):
    """Some parts of the file of a LOAD are loaded, and others are not."""

    code = 2020

    def __init__(self, path: str, done: int, count: int, failed: StagedFile, why: StorageError) -> None:
        where = f"slice {failed.slice} of {failed.database}"
        super().__init__(f"{path} is partially loaded ({done} of {count} parts); loading {where} failed: {why.message}")


class Cluster(Protocol):
    """The part of the cluster's database that a LOAD needs."""

    @property
    def schema(self) -> SchemaTree:
        """The schema as this node knows it."""
        ...

    def visible_drops(self) -> Mapping[GroupId, int]:
        """Return the newest drop of each group that the schema reflects."""
        ...

    @property
    def routing(self) -> Routing:
        """The current routing. Each access may return a newer routing than the one before."""
        ...

    def change_schema(self, changes: Sequence[SchemaChange], *, request: WriteRequest) -> None:
        """Create missing databases and series."""
        ...

    def register_partitions(self, partitions: Mapping[str, Collection[int]], request: WriteRequest) -> None:
        """Register slices before points are written to them, so that reads look for points there."""
        ...


class LocalServices(msgspec.Struct, frozen=True):
    """The services of this node that a LOAD uses."""

    staging: Staging
    disk: Disk
    clock: Clock
    options: StoreOptions
    proposer: Proposer
    entries: WriteCoordinator
    drop_coordinator: DropCoordinator


def load_file(path: str, options: LoadOptions, request: WriteRequest, cluster: Cluster, here: LocalServices) -> int:
    """Load a file. Return the number of files into which the file was split.

    Raises UserMistake with code 2051 for the file itself or 507, 509, 511, 2007 for its content, CorruptFile,
    UnsupportedFile, DiskFull, LoadedInPart, NoLeader, OutcomeUnknown.
    """
    try:
        load = FileLoad(path, options, here.staging, here.disk, here.options, here.clock.now_ns(), FILE_BYTES)
        try:
            return _Load(path, load, request, cluster, here).run()
        finally:
            load.cancel()
    except OSError as error:
        if error.errno in FULL_ERRNOS:
            raise DiskFull(f"no space left to load {path}") from error
        raise StorageError(f"{path} cannot be loaded: {error}") from error


class _Load:
    """The LOAD of one file."""

    def __init__(self, path: str, load: FileLoad, request: WriteRequest, cluster: Cluster, here: LocalServices) -> None:
        self._path = path
        self._load = load
        self._request = request
        self._cluster = cluster
        self._local = here

    def run(self) -> int:
        """Stage, split and send the file, as the module's docstring describes."""
        self._load.stage(self._cluster.schema)
        seen = self._make_schema()
        for done, staged in enumerate(self._load.staged):
            try:
                seen = self._place(staged, seen)
            except StorageError as error:
                if not done:
                    raise
                raise LoadedInPart(self._path, done, len(self._load.staged), staged, error) from error
        return len(self._load.staged)

    def _make_schema(self) -> Mapping[GroupId, int]:
        """Create the series that the file needs. Return the newest drop of each group that the schema then reflects."""
        for _ in range(_ATTEMPTS_MAX):
            seen = self._cluster.visible_drops()  # read before the tree, so that the tree reflects these drops
            schema = self._cluster.schema
            if not self._load.fits(schema):
                raise UserMistake("databases were created or dropped during the LOAD: try again", code=OVERTAKEN)
            for staged in self._load.staged:
                refuse_synced(schema, staged.known.devices if staged.known is not None else ())
            changes = self._load.changes(schema)
            if not changes:
                return seen
            try:
                self._cluster.change_schema(changes, request=self._local.entries.renumbered(self._request))
            except UserMistake as error:
                if error.code not in (_EXISTS, _SERIES_EXISTS):
                    raise  # otherwise another client has just created them
        raise UserMistake(f"the series of {self._path} are dropped repeatedly; try again later", code=OVERTAKEN)

    def _place(self, staged: StagedFile, seen: Mapping[GroupId, int]) -> Mapping[GroupId, int]:
        """Load a staged file into the group of its slice.

        Return, for each group, the newest drop that the schema then reflects.
        """
        part = part_of(self._request, self._path, staged)
        for _ in range(_ATTEMPTS_MAX):
            routing = self._cluster.routing
            try:
                self._ship(staged, part, seen)
            except UserMistake as error:
                refused = error
                if error.code != LOST:
                    assert staged.known is not None
                    self._local.drop_coordinator.prepare_retry(
                        error, list(staged.known.devices), routing, self._request.deadline_ns
                    )
                    seen = self._make_schema()
            else:
                return seen
        raise refused

    def _ship(self, staged: StagedFile, part: Request, seen: Mapping[GroupId, int]) -> None:
        """Send a staged file to the group that owns its slice.

        Raises UserMistake if the group has lost or refused the file.
        """
        self._cluster.register_partitions({staged.database: [staged.slice]}, self._request)
        routing = self._cluster.routing
        group = routing.group_at(staged.database, staged.slice)
        name = shipment_name(*self._local.entries.own_request())
        data = self._local.disk.map(self._local.staging.path(staged.name))
        sent = StagedFile(staged.database, staged.slice, staged_name(name), staged.size, staged.crc32, 0)
        drop = seen.get(routing.schema_group(staged.database), 0)
        propose = partial(self._local.proposer.propose, deadline_ns=self._request.deadline_ns)
        try:
            for offset in range(0, len(data), PIECE_BYTES):
                propose(group, encode_shipping(Piece(name, offset, data[offset : offset + PIECE_BYTES])))
            propose(group, encode_command(part, Mutation(loads=[sent]), drop, routing.table_version(group)))
        except BaseException:
            abandon(self._local.proposer, group, name)
            raise


def part_of(request: WriteRequest, path: str, staged: StagedFile) -> Request:
    """Return the request of one staged file, which is the same whenever the client's request loads the same file."""
    words = [*request.key, path, staged.database, staged.slice, staged.size, staged.crc32]
    digest = hashlib.blake2b(repr(words).encode(), digest_size=8).digest()
    return Request(int.from_bytes(digest, "little") >> 1 | 1, request.sequence)


def abandon(proposer: Proposer, group: GroupId, name: str) -> None:
    """Tell a group to remove an unfinished file. If the call fails, the group's leader abandons the file later."""
    with suppress(NoLeader, OutcomeUnknown, UserMistake, Unreachable):
        proposer.propose(group, encode_shipping(Abandon(name)), _ABANDON_SECONDS)
