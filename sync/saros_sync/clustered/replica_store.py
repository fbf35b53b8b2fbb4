"""This node's replica of senders' rounds. `replica_sets` decides which nodes are a sender's replicas.

The states of a round on a node:

    ahead   it is arriving at some node: the replicas fetch its files as they arrive; a file gets its final name at a
            replica only after the other node has checked the file and given it this name
    held    it is about to be committed: the replicas fetch it, and report when all of it is durable
    kept    it is the last committed round: replicas keep it; other nodes keep it until all replicas have it
    old     another round has replaced it: kept for a minute, for queries that began with it
    lost    some of its contents are on no node: every node that is not permanently lost was asked, and answered

All other rounds are removed.

A replica that has reported a round as durable keeps it until a change of the topology ends the replica's membership.
Contents are identified by their SHA-256, so any node may supply any other node: a replica that was down, or was added
by a change of the topology, fetches from any node. If a round was held or fetched ahead but is not committed, it is
kept for ten minutes, which is longer than the committing node waits for the meta group. A partial copy of a round that
was fetched ahead does not count towards a quorum, and its missing contents do not count as lost. If a copy is found to
be damaged, it is fetched again.

One thread calls `step` repeatedly. Any thread may call the other methods.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress

import msgspec

from saros_cluster.multiraft.peers import Answers, BadRequest, CallHandler, RemoteError, StreamHandler
from saros_cluster.multiraft.peers import Unreachable as NodeUnreachable
from saros_cluster.placement.ring import NodeId
from saros_storage.base.clock import Clock
from saros_storage.base.errors import CorruptFile, StorageError
from saros_storage.io.disk import Disk
from saros_sync.clustered.catalog import ClusterCatalog
from saros_sync.clustered.content_store import Contents, names_of
from saros_sync.clustered.replica_sets import ReplicaSets, all_replicas
from saros_sync.errors import Unreachable
from saros_sync.receiver.catalog import SenderEntry
from saros_sync.receiver.mirror import Mirror, MirrorFolder, load_document, open_mirror, set_aside
from saros_sync.round import Content, is_sender

logger = logging.getLogger(__name__)

HAS, READ, AHEAD, HOLD = "sync.has", "sync.read", "sync.ahead", "sync.hold"
#: The names of the requests for contents that are still arriving at a node.
PARTS, READ_PART = "sync.parts", "sync.read_part"
#: The time for which a node keeps a round that was held or fetched ahead but not committed.
_HELD_NS = 600_000_000_000
#: The time for which a node keeps a replaced round, for queries that began to read it.
_OLD_NS = 60_000_000_000
_ASK_SECONDS = 10.0
#: The time limit of an announcement. A replica that the announcement does not reach in time fetches the contents later,
#: when the round is held.
_TELL_SECONDS = 1.0
#: The maximum number of names in one request.
_NAMES_MAX = 10_000
#: Errors after which a request is sent to another node, or later to the same node.
_TROUBLE = (NodeUnreachable, RemoteError, StorageError, OSError)

#: The answers to `HOLD`: the whole round is durable here, every part of the round that any node has is durable here, or
#: neither is true yet.
_WHOLE, _REST, _NOT_YET = b"y", b"r", b"n"

#: Asks another node: (node, name, request, seconds).
Ask = Callable[[NodeId, str, bytes, float], bytes]
#: Asks another node for a stream: (node, name, request, seconds until each answer).
Read = Callable[[NodeId, str, bytes, float], Answers]


class _Round(msgspec.Struct):
    """A round that this node has, or fetches."""

    document: Content
    number: int
    #: The time at which the round was last held or announced, or was found when this node started.
    held_ns: int
    #: The time at which another round replaced it, or None if it is the last round or not committed yet.
    old_ns: int | None = None
    #: True if the whole round is durable here.
    whole: bool = False
    #: True while the round is arriving at some node and was not held yet.
    is_ahead: bool = False
    #: True if more of the round has arrived at the node `told_by` since the last fetch.
    is_told: bool = False
    #: The node where the round is arriving.
    told_by: NodeId | None = None


class ReplicaStore:
    """This node's replica of senders' rounds: fetches, serves and removes their contents."""

    def __init__(
        self,
        contents: Contents,
        disk: Disk,
        clock: Clock,
        ledger: ClusterCatalog,
        node: NodeId,
        nodes: Callable[[], Collection[NodeId]],
        replica_sets: Callable[[str], ReplicaSets],
        ask: Ask,
        read: Read,
    ) -> None:
        """Load the documents of the stored rounds.

        `nodes` returns all nodes that may have contents, and `replica_sets` returns a sender's replica sets. Raises
        CorruptFile, OSError.
        """
        self._contents = contents
        self._disk = disk
        self._clock = clock
        self._ledger = ledger
        self._node = node
        self._nodes = nodes
        self._replica_sets = replica_sets
        self._ask = ask
        self._read = read
        self._lock = threading.Lock()
        #: The rounds of each sender, keyed by the SHA-256 of the round's document.
        self._rounds: dict[str, dict[str, _Round]] = {}
        self._mirrors: dict[tuple[str, str], Mirror] = {}
        #: Rounds of which some contents are on no node. The sender is asked for these contents.
        self._lost: set[tuple[str, str]] = set()
        #: For each sender, the rounds that the last sweep of the folder kept.
        self._swept: dict[str, set[str]] = {}
        self.wake = threading.Event()
        now = clock.monotonic_ns()
        for sender in contents.senders():
            for sha256, round_ in contents.documents(sender).items():
                self._rounds.setdefault(sender, {})[sha256] = _Round(Content(sha256, 0), round_.number, now)

    # ------------------------------------------------------------------ this node's rounds

    def mirror(self, sender: str, document: Content) -> Mirror | None:
        """Return a round opened for reading, or None if it is not complete here. Raises CorruptFile, OSError."""
        with self._lock:
            known = self._mirrors.get((sender, document.sha256))
            if known is not None:
                return known
            if self._contents.missing(sender, document):
                return None
            folder = self._contents.folder(sender)
            last = next((m for (owner, _), m in reversed(self._mirrors.items()) if owner == sender), None)
            round_ = load_document(self._disk, folder, document)
            mirror = open_mirror(self._disk, folder, document, round_, last, self.report_corrupt)
            if not mirror.damaged:
                self._mirrors[sender, document.sha256] = mirror
                return mirror
        for sha256, why in mirror.damaged.items():
            path = folder.tsfile(Content(sha256, 0))
            self.report_corrupt(path, CorruptFile(path, 0, why))
        return None

    def report_corrupt(self, path: str, error: CorruptFile) -> None:
        """Replace a damaged copy by fetching it from another node. A current reader gets the error."""
        logger.warning("a copy of a sender's file is damaged", extra={"file": path, "why": str(error)})
        set_aside(self._disk, path)
        with self._lock:
            mirrors = self._mirrors.items()
            self._mirrors = {key: mirror for key, mirror in mirrors if all(file.path != path for file in mirror.files)}
            for rounds in self._rounds.values():
                for round_ in rounds.values():
                    round_.whole = False
        self.wake.set()

    def hold(self, sender: str, document: Content, number: int) -> bool:
        """Keep a round that is about to be committed. Return whether all of it is durable here."""
        return self._hold(sender, document, number) == _WHOLE

    def _hold(self, sender: str, document: Content, number: int) -> bytes:
        with self._lock:
            rounds = self._rounds.setdefault(sender, {})
            round_ = rounds.setdefault(document.sha256, _Round(document, number, 0))
            round_.held_ns, round_.number, round_.is_ahead = self._clock.monotonic_ns(), number, False
            if round_.whole:
                return _WHOLE
        self.wake.set()
        return _REST if (sender, document.sha256) in self._lost else _NOT_YET

    def _fetch_ahead(self, sender: str, document: Content, number: int, node: NodeId) -> None:
        """Begin to fetch a round that is arriving at another node. Each sender has at most one such round."""
        now = self._clock.monotonic_ns()
        with self._lock:
            rounds = self._rounds.setdefault(sender, {})
            for other in rounds.values():
                if other.is_ahead and other.document != document:
                    other.held_ns = now - _HELD_NS
            round_ = rounds.setdefault(document.sha256, _Round(document, number, now, is_ahead=True))
            if round_.is_ahead:
                round_.held_ns, round_.number, round_.is_told, round_.told_by = now, number, True, node
        self.wake.set()

    def has_arrived(self) -> bool:
        """Return whether this node has everything that it must keep and that any node can supply."""
        with self._lock:
            for sender, entry in self._ledger.now.catalog.senders.items():
                round_ = self._rounds.get(sender, {}).get(entry.document.sha256)
                is_here = round_ is not None and round_.whole
                is_lost = (sender, entry.document.sha256) in self._lost
                if self._keeps(sender) and not is_here and not is_lost:
                    return False
        return True

    # ------------------------------------------------------------------ requests to other nodes

    def is_at(self, nodes: Iterable[NodeId], entry: SenderEntry) -> bool:
        """Return whether each node has everything of a sender's last round that any node can supply.

        The nodes begin to fetch the contents that they lack.
        """
        found = [self._held(node, entry.id, entry.document, entry.number) for node in nodes]
        return _NOT_YET not in found

    def held(self, node: NodeId, sender: str, document: Content, number: int) -> bool:
        """Call `hold` at any node. Also return False if the node does not answer."""
        return self._held(node, sender, document, number) == _WHOLE

    def _held(self, node: NodeId, sender: str, document: Content, number: int) -> bytes:
        if node == self._node:
            return self._hold(sender, document, number)
        try:
            return self._ask(node, HOLD, _question(sender, document, number), _ASK_SECONDS)
        except (NodeUnreachable, RemoteError):
            return _NOT_YET

    def announce_partial(self, sender: str, document: Content, number: int) -> None:
        """Announce to the sender's replicas that more of a round has arrived here, so that they fetch it ahead."""
        question = json.dumps([sender, document.sha256, document.size, number, self._node]).encode()
        for node in all_replicas(self._replica_sets(sender)):
            if node == self._node:
                self._fetch_ahead(sender, document, number, node)
                continue
            with suppress(NodeUnreachable, RemoteError):  # that node fetches the contents when the round is held
                self._ask(node, AHEAD, question, _TELL_SECONDS)

    def missing(self, sender: str, names: Iterable[str]) -> list[str]:
        """Return the contents that no answering node has."""
        left = list(names)
        for node in self._query_order(sender):
            if left:
                has = self._has(node, sender, left)
                left = [name for name in left if name not in has]
        return left

    def bytes_of(self, sender: str, name: str) -> bytes:
        """Return a content from any node. Raises Unreachable if no answering node has it."""
        for node in self._query_order(sender):
            with suppress(NodeUnreachable, RemoteError):
                if self._names_at(node, sender, [name]):
                    with closing(self._pieces(node, sender, name)) as pieces:
                        found = b"".join(pieces)
                    if hashlib.sha256(found).hexdigest() == name.partition(".")[0]:
                        return found
        raise Unreachable(f"no node that responds has {name} of sender {sender}")

    def fetch(self, sender: str, name: str, target: MirrorFolder) -> bool:
        """Copy a content from any node into a folder of this node. Return False if no answering node has it."""
        return self._fetch(sender, [name], target) == []

    def _keeps(self, sender: str) -> bool:
        return self._node in all_replicas(self._replica_sets(sender))

    def _query_order(self, sender: str) -> list[NodeId]:
        """Return all nodes in the order of queries for a sender's files: this node, the replicas, the other nodes."""
        kept_by = all_replicas(self._replica_sets(sender))
        return sorted({*self._nodes(), self._node}, key=lambda n: (n != self._node, n not in kept_by, n))

    def _has(self, node: NodeId, sender: str, names: Sequence[str]) -> set[str]:
        """Return the names that a node has, or no names if it does not answer."""
        with suppress(NodeUnreachable, RemoteError):
            return self._names_at(node, sender, names)
        return set()

    def _names_at(self, node: NodeId, sender: str, names: Sequence[str]) -> set[str]:
        """Return the names that a node has. Raises Unreachable, RemoteError."""
        if node == self._node:
            return self._contents.has(sender, names)
        found: set[str] = set()
        for start in range(0, len(names), _NAMES_MAX):
            question = json.dumps([sender, names[start : start + _NAMES_MAX]]).encode()
            found.update(json.loads(self._ask(node, HAS, question, _ASK_SECONDS)))
        return found

    def _pieces(self, node: NodeId, sender: str, name: str, offset: int = 0) -> Generator[bytes, None, None]:
        """Yield a node's content from an offset on, or nothing if it is missing. Raises Unreachable, RemoteError."""
        if node == self._node:
            yield from self._contents.pieces(sender, name, offset)
            return
        question = json.dumps([sender, name, offset]).encode()
        with closing(self._read(node, READ, question, _ASK_SECONDS)) as answers:
            yield from answers

    def streams(self) -> Mapping[str, StreamHandler]:
        """Return the handlers of the streams that other nodes read, keyed by name."""
        answers: dict[str, Callable[..., Iterator[bytes]]] = {
            READ: self._contents.pieces,
            READ_PART: self._contents.part_pieces,
        }
        return {name: _stream_handler(name, answer) for name, answer in answers.items()}

    def handlers(self) -> Mapping[str, CallHandler]:
        """Return the handlers of other nodes' calls, keyed by name."""
        answers: dict[str, Callable[..., bytes]] = {
            HAS: self._serve_has,
            PARTS: self._serve_parts,
            AHEAD: self._fetches_ahead,
            HOLD: self._holds,
        }
        return {name: _handler(name, answer) for name, answer in answers.items()}

    def _serve_has(self, sender: str, names: list[str]) -> bytes:
        return json.dumps(sorted(self._contents.has(sender, names))).encode()

    def _serve_parts(self, sender: str) -> bytes:
        return json.dumps(self._contents.parts(sender)).encode()

    def _fetches_ahead(self, sender: str, sha256: str, size: int, number: int, node: int) -> bytes:
        self._fetch_ahead(*_named(sender, sha256, size), number, NodeId(node))
        return b""

    def _holds(self, sender: str, sha256: str, size: int, number: int) -> bytes:
        return self._hold(*_named(sender, sha256, size), number)

    # ------------------------------------------------------------------ fetching

    def step(self) -> None:
        """Fetch the contents that this node must have, and remove the contents that it need not keep."""
        now, known = self._clock.monotonic_ns(), self._ledger.now
        for sender, entry in known.catalog.senders.items():
            if self._keeps(sender):
                with self._lock:
                    rounds = self._rounds.setdefault(sender, {})
                    round_ = rounds.setdefault(entry.document.sha256, _Round(entry.document, entry.number, now))
                    round_.is_ahead = False
        with self._lock:
            all_rounds = {sender: list(rounds.values()) for sender, rounds in self._rounds.items()}
        for sender, found in all_rounds.items():
            last = known.catalog.senders.get(sender)
            for round_ in found:
                is_last = last is not None and last.document.sha256 == round_.document.sha256
                self._age(round_, last is not None and last.number >= round_.number and not is_last, now)
                if not round_.whole and round_.old_ns is None and (round_.is_told or not round_.is_ahead):
                    self._complete(sender, round_)
            self._remove_unneeded(sender, found, None if last is None else last.document, now)

    def _age(self, round_: _Round, is_old: bool, now: int) -> None:
        if not is_old:
            round_.old_ns = None
        elif round_.old_ns is None:
            round_.old_ns = now

    def _complete(self, sender: str, round_: _Round) -> None:
        """Fetch the missing contents of a round."""
        folder, key = self._contents.folder(sender), (sender, round_.document.sha256)
        is_ahead, round_.is_told = round_.is_ahead, False
        try:
            if is_ahead:
                self._fetch_parts(sender, round_, folder)
            lost = self._fetch_all(sender, round_, folder)
            # Only a complete copy is ever reported as durable: a partial copy that was fetched ahead need not be
            # durable.
            is_promised = not is_ahead or not self._contents.missing(sender, round_.document)
            if is_promised and self._disk.exists(folder.data):
                self._contents.make_durable(folder)
        except _TROUBLE as error:
            logger.info("fetching a sender's data again", extra={"sender": sender, "why": str(error)})
            return
        with self._lock:
            (self._lost.add if lost and not is_ahead else self._lost.discard)(key)
            # `report_corrupt` renames a damaged copy, and then resets `whole`. If it ran during this step, the copy is
            # missing here. If it runs after this step, it resets `whole` again.
            round_.whole = is_promised and not self._contents.missing(sender, round_.document)

    def _fetch_parts(self, sender: str, round_: _Round, folder: MirrorFolder) -> None:
        """Fetch the first bytes of files that are still arriving at another node. Raises the errors in `_TROUBLE`."""
        node = round_.told_by
        lacking = [name for name in self._contents.missing(sender, round_.document) if name.endswith(".tsfile")]
        if node is None or node == self._node or not lacking:
            return
        parts = set(json.loads(self._ask(node, PARTS, json.dumps([sender]).encode(), _ASK_SECONDS)))
        for name in lacking:
            sha256 = name.removesuffix(".tsfile")
            if sha256 in parts:
                question = json.dumps([sender, sha256, self._contents.fetched(folder, name)]).encode()
                with closing(self._read(node, READ_PART, question, _ASK_SECONDS)) as pieces:
                    self._contents.fetch(folder, name, pieces)

    def _fetch_all(self, sender: str, round_: _Round, folder: MirrorFolder) -> bool:
        """Fetch all missing contents. Return True if some of them are on no node.

        Raises Unreachable if a node that may have them does not answer.
        """
        lost: set[str] = set()
        while lacking := [name for name in self._contents.missing(sender, round_.document) if name not in lost]:
            left = self._fetch(sender, lacking[:_NAMES_MAX], folder)
            if left is None:
                raise Unreachable("a node that may have the file does not answer")
            lost.update(left)
        return bool(lost)

    def _fetch(self, sender: str, names: Sequence[str], target: MirrorFolder) -> list[str] | None:
        """Copy contents into a folder. Return the names that no node has, or None if a node that may have them failed.

        A node that is not a replica removes a round once all replicas have it. So during the search, a content may
        move from such a node to a replica that was asked before. Therefore the replicas are asked again at the end.
        """
        nodes, kept_by = self._query_order(sender), all_replicas(self._replica_sets(sender))
        left, is_sure = list(names), True
        for node in (*nodes, *(node for node in nodes if node in kept_by)):
            if not left:
                break
            try:
                has = self._names_at(node, sender, left)
                for name in [name for name in left if name in has]:
                    self._take(node, sender, name, target)
                    left.remove(name)
            except (NodeUnreachable, RemoteError, CorruptFile, FileNotFoundError) as error:
                logger.info("a node did not return the content", extra={"node": node, "why": str(error)})
                is_sure = False
        return left if is_sure or not left else None

    def _take(self, node: NodeId, sender: str, name: str, target: MirrorFolder) -> None:
        source = self._contents.path(sender, name) if node == self._node else None
        with closing(self._pieces(node, sender, name, self._contents.fetched(target, name))) as pieces:
            self._contents.take(target, name, pieces, source)

    # ------------------------------------------------------------------ removal

    def _remove_unneeded(self, sender: str, rounds: Sequence[_Round], last: Content | None, now: int) -> None:
        """Remove the contents that belong to no needed round."""
        seen = {round_.document.sha256 for round_ in rounds}
        kept = {r.document.sha256 for r in rounds if self._is_needed(sender, r, last, now)}
        if self._swept.get(sender) == kept:
            return
        found = self._contents.documents(sender)
        names = [name for sha in kept if sha in found for name in names_of(Content(sha, 0), found[sha])]
        with self._lock:
            if self._rounds[sender].keys() - seen or any(round_.held_ns > now for round_ in rounds):
                return  # another thread has just held a round, so leave the removal to the next step
            for key in [key for key in self._mirrors if key[0] == sender and key[1] not in kept]:
                self._mirrors.pop(key).keep_open()
            self._rounds[sender] = {sha: self._rounds[sender][sha] for sha in kept}
            self._lost -= {(sender, sha) for sha in seen - kept}
            self._contents.sweep(sender, names)
            self._swept[sender] = kept
            if not kept:
                del self._rounds[sender], self._swept[sender]

    def _is_needed(self, sender: str, round_: _Round, last: Content | None, now: int) -> bool:
        if round_.old_ns is not None:
            return now - round_.old_ns < _OLD_NS
        if last is None or last.sha256 != round_.document.sha256:
            return now - round_.held_ns < _HELD_NS
        kept_by = all_replicas(self._replica_sets(sender))
        if self._node in kept_by:
            return True
        return not all(self.held(node, sender, last, round_.number) for node in kept_by)


def _question(sender: str, document: Content, number: int) -> bytes:
    return json.dumps([sender, document.sha256, document.size, number]).encode()


def _named(sender: str, sha256: str, size: int) -> tuple[str, Content]:
    """Return the sender and document of another node's request. Raises ValueError if they are malformed."""
    if not is_sender(sender) or len(sha256) != 64 or set(sha256) - set("0123456789abcdef"):
        raise ValueError("invalid sender or document")
    return sender, Content(sha256, size)


def _handler(name: str, answer: Callable[..., bytes]) -> CallHandler:
    def handle(_: NodeId, request: bytes) -> bytes:
        try:
            return answer(*json.loads(request))
        except (ValueError, TypeError) as error:
            raise BadRequest(name, error) from error

    return handle


def _stream_handler(name: str, answer: Callable[..., Iterator[bytes]]) -> StreamHandler:
    def handle(_: NodeId, request: bytes) -> Iterator[bytes]:
        try:
            sender, content, offset = json.loads(request)
            return answer(str(sender), str(content), max(int(offset), 0))
        except (ValueError, TypeError) as error:
            raise BadRequest(name, error) from error

    return handle
