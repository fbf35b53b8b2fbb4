"""A cluster that receives rounds in one thread.

Each node has its own disk; all nodes share one schema and one log of notes (records of committed rounds).

    nodes      replica store, receiver and catalog as in production, on crash disks; nodes call each other through
               `Places.ask`
    agreed     notes and schema, which groups keep in production: they are never lost here, but a node may not know them
               yet
    change     other nodes become replicas of a sender: at once (`move`), or when a leader has checked that each of them
               has all available data (`end_change`)
    time       advances when a task waits; then all replicas take a step, and a test may act (`Places.meanwhile`); a
               node that learns of a complete file elsewhere fetches it at once

All runs, even with crashes and failing disks, are therefore reproducible, and need no sleep.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from manual_clock import CountingClock
from storage.crash_disk import CrashDisk
from storage.store_model import State, read_store
from storage.store_opening import FOLDER, NOW_MS, OPTIONS, Wrong
from sync.sync_world import check_kept

from saros_cluster.meta.metadata_kv import Notes, PutNotes
from saros_cluster.multiraft.peers import RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_storage.base.errors import StorageError
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.folder.layout import RESOURCE
from saros_storage.folder.store_options import StoreOptions
from saros_storage.read.view import LocalReadView
from saros_storage.scan.reading import ReadView
from saros_storage.schema import DeleteSeries, SchemaChange, SchemaTree
from saros_sync.clustered.catalog import ClusterCatalog
from saros_sync.clustered.content_store import ARRIVING, Contents
from saros_sync.clustered.receiver import ClusterReceiver
from saros_sync.clustered.replica_sets import ReplicaSets, has_quorum
from saros_sync.clustered.replica_store import AHEAD, ReplicaStore
from saros_sync.receiver.catalog import Catalog, SenderEntry
from saros_sync.receiver.checking import Executor, InlineExecutor
from saros_sync.receiver.mirror import FOLDER as SYNC
from saros_sync.receiver.request_checks import Requester
from saros_sync.receiver.synced_view import SyncedView
from saros_sync.round import Content
from saros_sync.transport import Answer, BeginReply

#: The number of seconds after which nodes have deleted every old round, even if a reader still held it.
_LONG_SECONDS = 1_000.0


class Place:
    """A node. It implements `clustered.receiver.Cluster`, the interface that its receiver needs."""

    def __init__(self, places: Places, node: NodeId, disk: CrashDisk, notes: Notes) -> None:
        self.places = places
        self.disk = disk
        self.notes = notes
        disk.make_folder(FOLDER)
        self.ledger = ClusterCatalog(lambda: self.notes)
        contents = Contents(FOLDER, disk)
        self.replica_store = ReplicaStore(
            contents,
            disk,
            places.clock,
            self.ledger,
            node,
            lambda: places.nodes,
            places.replica_sets,
            partial(places.ask, node),
            partial(places.read, node),
        )
        self.receiver = ClusterReceiver(
            contents,
            disk,
            places.clock,
            self.ledger,
            self.replica_store,
            self,
            places.replica_sets,
            places.chores,
            places.wait,
            places.ahead_bytes,
        )

    # ------------------------------------------------------------------ agreed notes and schema

    @property
    def schema(self) -> SchemaTree:
        return self.places.schema

    @property
    def options(self) -> StoreOptions:
        return OPTIONS

    def wait_all_visible(self) -> None:
        self.wait_notes_visible()

    def wait_notes_visible(self) -> Notes:
        self.notes = self.places.notes
        return self.notes

    def put_notes(self, version: int, texts: Mapping[str, str]) -> None:
        self.places.notes = self.notes = self.places.notes.put(PutNotes(version, texts), self.places.notes.version + 1)
        self.places.meanwhile("put")

    def change_schema_unguarded(self, changes: Sequence[SchemaChange]) -> None:
        self.schema.dry_run(changes)
        for change in changes:
            self.schema.apply(change)
        self.places.meanwhile("schema")

    def delete_series_unguarded(self, pattern: str) -> None:
        self.schema.apply(DeleteSeries(pattern))
        self.places.meanwhile("schema")

    # ------------------------------------------------------------------ steps, reading

    def step(self) -> None:
        with suppress(StorageError, OSError):  # the next step retries
            self.replica_store.step()
            self.receiver.remove_finished()

    def view(self) -> ReadView:
        known, cache = self.ledger.now, ChunkCache(1 << 20)

        def round_of(owner: str) -> ReadView:
            document = known.catalog.senders[owner].document
            for place in (self, *self.places.running.values()):
                mirror = place.replica_store.mirror(owner, document)
                if mirror is not None:
                    return LocalReadView(mirror.partitions, cache, lambda: None)
            raise Wrong(f"nobody that runs has the last round of {owner}")

        return SyncedView(LocalReadView({}, cache, lambda: None), known.owners, round_of)

    def state(self) -> State:
        """Return the state that a strong read shows."""
        self.wait_notes_visible()
        return replace(read_store(self), databases=frozenset())  # type: ignore[arg-type]


class Places:
    """All nodes of the cluster."""

    def __init__(
        self,
        count: int = 3,
        copies: int | None = None,
        *,
        disks: Mapping[NodeId, CrashDisk] | None = None,
        notes: Notes | None = None,
        schema: SchemaTree | None = None,
        chores: Executor | None = None,
        ahead_bytes: int = 1,
    ) -> None:
        """Make a new cluster, or continue a cluster that had these `disks`, `notes` and `schema`."""
        self.ahead_bytes = ahead_bytes
        self.clock = CountingClock(NOW_MS * 1_000_000)
        self.chores = chores or InlineExecutor()
        self.notes = notes or Notes()
        self._ledger = ClusterCatalog(lambda: self.notes)
        self.schema = schema or SchemaTree()
        self.nodes = [NodeId(number + 1) for number in range(count)]
        self.copies = copies or count
        #: The nodes with each sender's data; if a sender has no entry here, its data is on the first nodes.
        self.kept_by: dict[str, list[NodeId]] = {}
        #: The future nodes of each sender whose data is being moved.
        self.next: dict[str, list[NodeId]] = {}
        self.running: dict[NodeId, Place] = {}
        #: The nodes that are down, as they were when they stopped.
        self.stopped: dict[NodeId, Place] = {}
        #: A function that is called during each step of these kinds: "ask", "wait", "put", "schema"; the kind is its
        #: argument. The function may raise errors as if the called node had raised them.
        self.meanwhile: Callable[[str], None] = lambda _: None
        for node in self.nodes:
            self.start(node, CrashDisk() if disks is None else disks[node])

    def start(self, node: NodeId, disk: CrashDisk, notes: Notes | None = None) -> None:
        """Start a node, which at first knows only `notes`, by default all notes."""
        self.stopped.pop(node, None)
        self.running[node] = Place(self, node, disk, self.notes if notes is None else notes)

    def stop(self, node: NodeId) -> None:
        place = self.stopped[node] = self.running.pop(node)
        place.receiver.close()

    def close(self) -> None:
        for node in list(self.running):
            self.stop(node)

    def members(self, sender: str) -> Sequence[NodeId]:
        return self.kept_by.get(sender, self.nodes[: self.copies])

    def replica_sets(self, sender: str) -> ReplicaSets:
        half, after = tuple(self.members(sender)), self.next.get(sender)
        return (half,) if after is None else (half, tuple(after))

    def change(self, sender: str, nodes: list[NodeId]) -> None:
        """Begin to move a sender to other replicas."""
        self.next[sender] = nodes
        self.notes = self.notes.as_of(self.notes.version + 1)

    def move(self, sender: str) -> None:
        """Complete the move at once, whether or not the new replicas have all available data."""
        self.kept_by[sender] = self.next.pop(sender)
        self.notes = self.notes.as_of(self.notes.version + 1)

    def end_change(self, sender: str, leader: NodeId) -> bool:
        """Complete the move if `leader` finds all data on each new replica; return whether it did so. Raises Wrong."""
        place, after = self.running[leader], self.next[sender]
        place.wait_notes_visible()
        entry = place.ledger.now.catalog.senders.get(sender)
        if entry is not None and not place.replica_store.is_at(after, entry):
            return False
        self.move(sender)
        if entry is not None:
            self.check_moved(entry)
        return True

    def check_moved(self, entry: SenderEntry) -> None:
        """Check that each new replica durably has every file of the sender's round that exists on any node."""
        places = {**self.running, **self.stopped}
        for node in self.members(entry.id):
            lacking = self._lacks(places[node].disk, entry)
            for other, place in places.items():
                if found := Contents(FOLDER, place.disk).has(entry.id, lacking):
                    raise Wrong(
                        f"node {node} is to keep what {entry.id} sent, and lacks {found}, which node {other} has"
                    )

    def _lacks(self, disk: CrashDisk, entry: SenderEntry) -> list[str]:
        return Contents(FOLDER, disk.after_power_cut()).missing(entry.id, entry.document)

    def ask(self, asker: NodeId, node: NodeId, name: str, request: bytes, seconds: float) -> bytes:
        place = self._reached(asker, node)
        self.meanwhile("ask")
        try:
            answer = place.replica_store.handlers()[name](asker, request)
            if name == AHEAD:  # in production, a thread does this at some later time
                place.step()
            return answer
        except (StorageError, OSError) as error:
            raise RemoteError(node, 2000, str(error)) from error

    def read(self, asker: NodeId, node: NodeId, name: str, request: bytes, _: float) -> Generator[bytes, None, None]:
        """Yield the parts of a stream, which may break off after any part."""
        place = self._reached(asker, node)
        self.meanwhile("ask")
        try:
            for answer in place.replica_store.streams()[name](asker, request):
                yield answer
                self._reached(asker, node)
                self.meanwhile("ask")
        except (StorageError, OSError) as error:
            raise RemoteError(node, 2000, str(error)) from error

    def _reached(self, asker: NodeId, node: NodeId) -> Place:
        place = self.running.get(node)
        if place is None or asker not in self.running:
            raise Unreachable(node, "it is down", sent=False)
        return place

    def wait(self, seconds: float) -> None:
        """Let time pass, and let all nodes do their background work."""
        self.clock.advance(seconds)
        self.meanwhile("wait")
        for place in list(self.running.values()):
            place.wait_notes_visible()
            place.step()

    def settle(self) -> None:
        """Let time pass until all pending work is done."""
        for _ in range(3):
            self.wait(_LONG_SECONDS)
            self.finish()

    def check_durable(self, sender: str) -> None:
        """Check that a majority of a sender's replicas durably have the sender's last round."""
        entry, replica_sets = self.catalog.senders[sender], self.replica_sets(sender)
        places = {**self.running, **self.stopped}
        holding = [node for node, place in places.items() if not self._lacks(place.disk, entry)]
        if not has_quorum(replica_sets, holding):
            raise Wrong(f"{holding} of nodes {replica_sets} have the last round of {sender} on their disks")

    def finish(self) -> None:
        """Run the periodic work of the meta leader."""
        self.running[min(self.running)].receiver.finish()

    def check_nothing_left(self, context: str) -> None:
        """Check that each node has exactly the files that it must have, with the right content. Raises Wrong."""
        for node, place in self.running.items():
            root, senders = f"{FOLDER}/{SYNC}", place.ledger.now.catalog.senders
            kept = {sender for sender in senders if node in self.members(sender)}
            found = set(place.disk.list(root)) - {ARRIVING}
            if found != kept:
                raise Wrong(f"{context}: node {node} keeps {found}, not {kept}")
            for sender in kept:
                # A power cut may lose a resource's name; its content is then read from the file.
                context_ = f"{context}, node {node}"
                check_kept(context_, place.disk, f"{root}/{sender}", senders[sender].document, RESOURCE)
            for sender in place.disk.list(f"{root}/{ARRIVING}"):
                left = place.disk.list(f"{root}/{ARRIVING}/{sender}/data")
                if left or place.disk.exists(f"{root}/{ARRIVING}/{sender}/load.log"):
                    raise Wrong(f"{context}: {left} of {sender} is left where it arrived at node {node}")
            if place.receiver.rounds_in_progress():
                raise Wrong(f"{context}: {place.receiver.rounds_in_progress()} in hand at node {node}")

    @property
    def catalog(self) -> Catalog:
        """The catalog of senders as of all agreed notes."""
        return self._ledger.now.catalog

    def states(self) -> list[State]:
        """Return the state that each node shows, or an empty list if a node is down."""
        return [place.state() for place in self.running.values()] if len(self.running) == len(self.nodes) else []

    def line(self, node: NodeId | None = None) -> Line:
        return Line(self, self.nodes[0] if node is None else node)


class Line:
    """A link to the nodes, which switches to another node if one is down. Implements `Transport`."""

    def __init__(self, places: Places, node: NodeId) -> None:
        self.places = places
        self.node = node

    @property
    def _receiver(self) -> ClusterReceiver:
        if self.node not in self.places.running:
            self.node = next(iter(self.places.running))
        return self.places.running[self.node].receiver

    def begin(self, sender: str, name: str, number: int, document: Content) -> BeginReply:
        return self._receiver.begin(Requester(), sender, name, number, document)

    def chunk(self, sender: str, number: int, sha256: str, offset: int, crc32: int, data: memoryview) -> Answer:
        have = self._receiver.chunk(Requester(), sender, number, sha256, offset, crc32, bytes(data))
        return lambda: have

    def commit(self, sender: str, number: int) -> BeginReply:
        return self._receiver.commit(Requester(), sender, number)

    def close(self) -> None:
        return
