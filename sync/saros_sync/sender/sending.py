"""Send rounds to one receiver. A round mirrors this instance's sealed data, and survives crashes of either side.

    no journal                 take a snapshot, then journal `start`
    start ... sent, sent       ask which contents the receiver lacks; send them, the schema first, then files; commit
    ... committed              write the receiver's files (`last_local_files`), remove the snapshot, then the journal

A restart after a crash resumes from the last record of the journal: with the existing snapshot, or with the last step
if the receiver has committed the round. The receiver reports which contents it has. The journal's `sent` records are
only for people. A snapshot without a journal belongs to a round that was never begun.

The receiver removes old contents only after the contents that replace them are complete, so the commit shows the round
atomically.

A `Sending` belongs to one thread. The caller holds the receiver's lock.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from saros_storage.base.errors import StorageError
from saros_storage.folder.layout import write_durably
from saros_storage.io.disk import Disk
from saros_storage.io.rate_limit import RateLimit
from saros_sync.errors import BeginAgain, RoundRefused, Unreachable
from saros_sync.framing import decode_framed, encode_framed
from saros_sync.journal import Journal, JournalRecord
from saros_sync.round import Content, Round, content_of, encode_round
from saros_sync.sender.folder import ReceiverFolder, ReceiverOptions
from saros_sync.sender.live import LiveFolder, ReadAt, SchemaFollower, read_at
from saros_sync.sender.snapshot import FileKey, Snapshot, SnapshotFolder, keys_of
from saros_sync.sender.window import Window
from saros_sync.transport import Answer, BeginReply, Conflict, RoundStatus, Transport

T = TypeVar("T")
_KIND = "last_local_files"
#: The delay after the first failure. It doubles with each further failure, up to the maximum.
_FIRST_DELAY_S, _DELAY_MAX_S = 0.5, 60.0
START, SENT, COMMITTED = "start", "sent", "committed"
#: Waits for a number of seconds. Returns False if the sender must stop.
Sleep = Callable[[float], bool]
#: Receives the error of a failed request, and the seconds until the request is retried.
Retrying = Callable[[Unreachable, float], None]


class Stopped(StorageError):
    """The sender was requested to stop. The next start resumes the round."""


class Progress(msgspec.Struct):
    """The progress of a round. Sizes are in bytes."""

    round: int = 0
    files: int = 0
    files_done: int = 0
    size: int = 0
    size_done: int = 0
    failures: int = 0


class Last(msgspec.Struct, frozen=True):
    """The receiver's state after the last round: its files, and a digest of the round."""

    number: int = 0
    digest: str = ""
    keys: Mapping[FileKey, Content] = msgspec.field(default_factory=dict)


class RoundResult(msgspec.Struct, frozen=True):
    """The result of a committed round. `files` and `size` (bytes) count the contents that were sent."""

    number: int
    #: False if the round equals the previous round.
    is_new: bool
    files: int
    size: int
    conflicts: tuple[Conflict, ...]
    #: True if the round was begun by an earlier call, and shows the data that was sealed at that time.
    is_resumed: bool = False


class _ContentTransfer(msgspec.Struct):
    """A content that is being sent."""

    content: Content
    data: memoryview
    #: The number of bytes that the receiver has, counted from the content's start.
    have: int
    #: The chunks in flight, oldest first, each as (end offset, time of sending, answer).
    waiting: deque[tuple[int, int, Answer]] = msgspec.field(default_factory=deque)


class Sending:
    """Sends rounds to one receiver."""

    def __init__(
        self,
        live: LiveFolder,
        folder: ReceiverFolder,
        options: ReceiverOptions,
        sender: str,
        transport: Transport,
        disk: Disk,
        sleep: Sleep,
        on_progress: Callable[[Progress], None] = lambda _: None,
        read: ReadAt = read_at,
        retrying: Retrying = lambda *_: None,
    ) -> None:
        self._live = live
        self._folder = folder
        self._options = options
        self._sender = sender
        self._transport = transport
        self._disk = disk
        self._sleep = sleep
        self._on_progress = on_progress
        self._retrying = retrying
        self._pace = RateLimit(options.bytes_per_second)
        self._window = Window(options.chunk_bytes, grows=not options.bytes_per_second)
        self._schema = SchemaFollower(live.folder, disk, read)
        self._snapshot = SnapshotFolder(folder.snapshot, disk)
        self._journal = Journal(disk, folder.journal)
        self._document = b""
        self.progress = Progress()

    # ------------------------------------------------------------------ a round

    def run_round(self) -> RoundResult:
        """Resume the interrupted round, or begin a new one, and complete it.

        If the receiver asks to begin again, the round is begun again at once, at most as often as a request is retried.

        Raises Unreachable (all retries failed), Stopped, StorageError (of the receiver, or of this instance), OSError.
        The next call resumes the round.
        """
        self.progress = Progress()
        if any(note.what == COMMITTED for note in self._journal.notes):
            self._end(self._snapshot.load())
        found = self._interrupted_round()
        is_resumed, failures = found is not None, 0
        while True:
            try:
                return self._run_to_commit(found or self._taken(self.last()), is_resumed)
            except BeginAgain:
                failures += 1
                self.progress.failures += 1
                if failures > self._options.retries:
                    raise
                found = self._interrupted_round()

    def _run_to_commit(self, snapshot: Snapshot, is_resumed: bool) -> RoundResult:
        begun = self._begin(snapshot.round)
        if begun.status is RoundStatus.OLD:
            snapshot = self._renumbered(snapshot, begun.last + 1)
            begun = self._begin(snapshot.round)
        while begun.status is RoundStatus.WANTED:
            begun = self._send(snapshot, begun)
        if begun.status is RoundStatus.OLD:
            raise RoundRefused(
                f"the receiver already has round {begun.last} of sender {self._sender}: another folder has the same"
                " sender id, perhaps a copy of this one; stop its sender"
            )
        self._journal.add(JournalRecord(snapshot.round.number, COMMITTED))
        is_new = _digest(snapshot.round) != self.last().digest
        self._end(snapshot)
        done = self.progress
        return RoundResult(snapshot.round.number, is_new, done.files_done, done.size_done, begun.conflicts, is_resumed)

    def last(self) -> Last:
        """Return the receiver's state after the last round. Raises CorruptFile."""
        path = self._folder.last
        if not self._disk.exists(path):
            return Last()
        words = decode_framed(path, _KIND, bytes(self._disk.map(path)))
        number, digest = words["number"], words["digest"]
        assert isinstance(number, int)
        return Last(number, str(digest), keys_of(words["files"]))

    def _interrupted_round(self) -> Snapshot | None:
        """Return the round that a crash or a lost connection interrupted, or None."""
        if not self._journal.notes:
            return None
        snapshot = self._snapshot.load()
        if snapshot is not None and snapshot.round.number == self._journal.round:
            return snapshot
        self._journal.end()
        return None

    def _taken(self, last: Last) -> Snapshot:
        """Take a snapshot for a new round. It gets the number of the last round if nothing has changed since then."""
        snapshot = self._snapshot.take(self._live, self._schema.dump, self._sender, last.number + 1, last.keys)
        if _digest(snapshot.round) == last.digest:
            snapshot = replace(snapshot, round=replace(snapshot.round, number=last.number))
            self._snapshot.save(snapshot)
        self._journal.add(JournalRecord(snapshot.round.number, START, (_digest(snapshot.round),)))
        return snapshot

    def _renumbered(self, snapshot: Snapshot, number: int) -> Snapshot:
        """Return the snapshot with a number that the receiver has not seen.

        This is needed if the folder's record of the last round was lost or is outdated.
        """
        renumbered = replace(snapshot, round=replace(snapshot.round, number=number))
        self._snapshot.save(renumbered)
        self._journal.add(JournalRecord(number, START, (_digest(renumbered.round),)))
        return renumbered

    def _end(self, snapshot: Snapshot | None) -> None:
        """Complete a round that the receiver has committed. May be repeated."""
        if snapshot is not None:
            files = [[*key, content.sha256] for key, content in snapshot.keys.items()]
            words = {"number": snapshot.round.number, "digest": _digest(snapshot.round), "files": files}
            write_durably(self._disk, self._folder.last, encode_framed(_KIND, words))
        self._snapshot.remove()
        self._journal.end()

    # ------------------------------------------------------------------ requests

    def _begin(self, round_: Round) -> BeginReply:
        self._document = encode_round(round_)
        document = content_of(self._document)
        self.progress.round = round_.number
        return self._ask(lambda: self._transport.begin(self._sender, self._options.name, round_.number, document))

    def _send(self, snapshot: Snapshot, begun: BeginReply) -> BeginReply:
        """Send the contents that the receiver lacks, then commit.

        If the receiver lacked the document, it did not know which other contents it lacked. In that case, begin again
        instead of committing.
        """
        self.progress.files = self.progress.files_done + len(begun.wants)
        self.progress.size = self.progress.size_done + sum(want.content.size - want.have for want in begun.wants)
        document = content_of(self._document)
        for want in begun.wants:
            if want.content == document:
                data = memoryview(self._document)
            elif want.content == snapshot.round.schema:
                data = self._disk.map(self._snapshot.schema_path)
            else:
                data = self._content(snapshot, want.content)
            self._send_content(snapshot.round.number, want.content, data, want.have)
            self._journal.add(JournalRecord(snapshot.round.number, SENT, (want.content.sha256,)))
            self.progress.files_done += 1
            self._on_progress(self.progress)
        if any(want.content == document for want in begun.wants):
            return self._begin(snapshot.round)
        return self._ask(lambda: self._transport.commit(self._sender, snapshot.round.number))

    def _content(self, snapshot: Snapshot, content: Content) -> memoryview:
        """Return a file's bytes.

        Raises BeginAgain if the receiver has lost the file and it no longer exists here: the next round starts from a
        new snapshot.
        """
        if not self._snapshot.relink(self._live, snapshot, content):
            self._disk.remove(self._folder.last)
            self._journal.end()
            raise BeginAgain("the receiver lost a file that it had; the next round sends all missing files")
        return self._disk.map(self._snapshot.path(content.sha256))

    def _send_content(self, number: int, content: Content, data: memoryview, have: int) -> None:
        flight = _ContentTransfer(content, data, have)
        # The numbers of consecutive requests without an answer, of consecutive attempts without progress, and of losses
        # of bytes at the receiver.
        failures = stuck = losses = 0
        while True:
            before = flight.have
            try:
                self._send_chunks(number, flight)
            except Unreachable as error:
                self._window.failed()
                failures = 1 if flight.have > before else failures + 1
                self._pause(error, failures)
                continue
            if flight.have == content.size and (flight.have > before or not content.size):
                return
            failures = 0
            stuck = stuck + 1 if flight.have == before else 0
            losses += flight.have < before
            if max(stuck, losses) > self._options.retries:
                raise Unreachable(
                    f"the receiver still has only {flight.have} of {content.size} bytes of {content.sha256}"
                )

    def _send_chunks(self, number: int, flight: _ContentTransfer) -> None:
        """Send chunks until the receiver has the whole content, or reports a gap. Raises Unreachable, Stopped."""
        flight.waiting.clear()
        at, found = flight.have, -1
        is_first = True
        while True:
            while found < 0 and len(flight.waiting) < self._window.size and (is_first or at < flight.content.size):
                at, is_first = self._send_chunk(number, flight, at), False
            if not flight.waiting:
                break
            end, sent_ns, answer = flight.waiting.popleft()
            have = answer()
            self._window.answered(time.monotonic_ns() - sent_ns)
            if have >= end:
                self._arrived(flight, have)
                at = max(at, have)
            elif end > flight.have:  # the chunk was damaged, or the receiver lost bytes
                found = max(found, have)
        if found >= 0:
            self._arrived(flight, found)

    def _send_chunk(self, number: int, flight: _ContentTransfer, offset: int) -> int:
        """Send a chunk. Return the offset of its end."""
        piece = flight.data[offset : offset + self._window.chunk_bytes]
        self._wait(self._pace.wait_s(time.monotonic_ns(), len(piece)))
        sent_ns, sha256 = time.monotonic_ns(), flight.content.sha256
        answer = self._transport.chunk(self._sender, number, sha256, offset, zlib.crc32(piece), piece)
        flight.waiting.append((offset + len(piece), sent_ns, answer))
        return offset + len(piece)

    def _arrived(self, flight: _ContentTransfer, have: int) -> None:
        self.progress.size_done += max(have - flight.have, 0)
        flight.have = have
        self._on_progress(self.progress)

    def _ask(self, question: Callable[[], T]) -> T:
        """Return the answer to a request. Retry as often as the options allow. Raises Unreachable, Stopped."""
        failures = 0
        while True:
            try:
                return question()
            except Unreachable as error:
                failures += 1
                self._pause(error, failures)

    def _pause(self, error: Unreachable, failures: int) -> None:
        """Wait before the next attempt. Raises the error if no retry is left, and Stopped."""
        self.progress.failures += 1
        if failures > self._options.retries:
            raise error
        self._on_progress(self.progress)
        self._retrying(error, retry_delay_s(failures))
        self._wait(retry_delay_s(failures))

    def _wait(self, seconds: float) -> None:
        if seconds and not self._sleep(seconds):
            raise Stopped("the sender is stopping; its round continues after the next start")


def retry_delay_s(failures: int) -> float:
    """Return the delay before the next attempt, after this number of consecutive failures (1 or more)."""
    return min(_FIRST_DELAY_S * 2.0 ** min(failures - 1, 32), _DELAY_MAX_S)


def _digest(round_: Round) -> str:
    """Return a digest of everything but the round's number: rounds with the same digest show the same data."""
    return hashlib.sha256(encode_round(replace(round_, number=1))).hexdigest()
