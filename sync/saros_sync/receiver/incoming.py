"""Receive the contents of one sender's round, and keep the journal from which the round resumes after a restart.

    load.log                     start (document, user, name) · good (content, bytes) · done (content) ...
    data/<sha256>.part           the first bytes of a content
    data/<sha256>.tsfile ...     complete and checked: size, SHA-256; for a file also tail, pages, times

At a start, a part is truncated to the bytes that the journal records as durable, since a power failure may leave any
bytes after them. A content is checked when it is complete. If its SHA-256 differs from its name, it is removed, and
requested again. Chunks are appended in the order of their offsets. A repeated chunk changes nothing, a chunk ahead of
its turn is buffered in memory within a limit, and the answer contains the number of bytes that are stored.

Files are synced and checked while the next chunks arrive (`checking`); until both are done, a file is a part with all
bytes. Errors are reported by a later request, at the latest by the last chunk of all missing contents. Few files are
open at a time, however many files a sender has begun, and however fast it sends them.

The caller holds the sender's lock.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

import msgspec

from saros_storage.base.errors import CorruptFile, StorageError
from saros_storage.folder.layout import RESOURCE, write_durably
from saros_storage.folder.resource import encode_resource
from saros_storage.io.disk import Disk, File
from saros_sync.errors import BeginAgain, RoundRefused
from saros_sync.journal import Journal, JournalRecord
from saros_sync.receiver.checking import Executor, Found, check_file
from saros_sync.receiver.mirror import MirrorFolder, devices_of_schema
from saros_sync.round import ROUND_BYTES_MAX, Content, Round, decode_round
from saros_sync.transport import CHUNK_BYTES_MAX, FLIGHT_BYTES_MAX, MissingContent

START, GOOD, DONE = "start", "good", "done"
#: The suffix that follows the SHA-256 in the name of a content that is not complete or not checked.
PART = ".part"
#: A part is synced, and its length recorded in the journal, after every `GOOD_BYTES` bytes.
GOOD_BYTES = 8 << 20
#: The limit of a sender's open parts, and of its mapped files that are being checked: a process may have about a
#: thousand open files. A well-behaved sender sends one content after the other.
_OPEN_MAX = 8


class _Part(msgspec.Struct):
    """A content whose bytes are arriving."""

    file: File
    #: The length that the journal records as durable.
    good: int
    digest: hashlib._Hash = msgspec.field(default_factory=hashlib.sha256)
    #: Chunks that arrived ahead of their turn, keyed by offset.
    early: dict[int, bytes | memoryview] = msgspec.field(default_factory=dict)
    #: The length that `synced` makes durable.
    next_good: int = 0
    synced: Future[None] | None = None

    def keep(self, offset: int, data: bytes | memoryview) -> None:
        """Buffer a chunk that arrived ahead of its turn, if there is room."""
        self.early = {at: kept for at, kept in self.early.items() if at > self.file.size}
        if sum(map(len, self.early.values())) + len(data) <= FLIGHT_BYTES_MAX:
            self.early[offset] = data

    def close(self) -> bool:
        """Close the file after a running sync. Return False if the sync failed, which leaves the bytes undefined."""
        well = self.synced is None or self.synced.cancel() or self.synced.exception() is None
        self.file.close()
        return well


class _CompleteFile(msgspec.Struct, frozen=True):
    """A file that has all its bytes, and is being synced and checked."""

    content: Content
    part: _Part
    synced: Future[None]
    found: Future[Found]

    @property
    def is_known(self) -> bool:
        """True if both the sync and the check are done."""
        return self.found.done() and self.synced.done()


def _sync_after(earlier: Future[None] | None, file: File) -> None:
    """Make a file durable. Raises the error of an earlier sync: a failed sync must not be retried."""
    if earlier is not None:
        earlier.result()
    file.sync()


class Incoming:
    """One sender's round in progress: its journal, and its contents as they arrive."""

    def __init__(self, folder: MirrorFolder, disk: Disk, chores: Executor) -> None:
        """Recover the round that an earlier process left. Raises OSError."""
        self._folder = folder
        self._disk = disk
        self._chores = chores
        self._journal = Journal(disk, os.path.join(folder.folder, "load.log"))
        self._parts: dict[str, _Part] = {}
        #: Files that have all their bytes, and are being synced and checked.
        self._inspected: dict[str, _CompleteFile] = {}
        #: Contents that were missing at the last `wants`, and have not arrived since.
        self._lacking: set[str] = set()
        #: Contents whose stored bytes are undefined after a disk error. They are removed before they arrive again.
        self._unknown: set[str] = set()
        #: Bytes that arrived, and bytes of contents that became complete, since the caller last set this to 0.
        self.fresh_bytes = 0
        self._round: Round | None = None
        #: The contents of the round, and the slices to which each file belongs.
        self._contents: dict[str, Content] = {}
        self._places: dict[str, list[int]] = {}
        self._cut_parts()
        if self.number:
            disk.sync_folder(folder.data)  # existing names may not be durable yet
            if self._is_whole(self.document):
                self._take_document()

    # ------------------------------------------------------------------ the round in progress

    @property
    def number(self) -> int:
        """The number of the round in progress, or 0."""
        return self._journal.round

    @property
    def document(self) -> Content:
        """The document of the round in progress."""
        sha256, size, *_ = self._start.words
        return Content(str(sha256), int(size))

    @property
    def user(self) -> str:
        """The name of the user under which the round in progress was begun."""
        return str(self._start.words[2])

    @property
    def name(self) -> str:
        """The name that the sender gives itself."""
        return str(self._start.words[3])

    @property
    def _start(self) -> JournalRecord:
        return next(note for note in self._journal.notes if note.what == START)

    @property
    def round(self) -> Round | None:
        """The round in progress, or None if its document has not arrived."""
        return self._round

    def begin(self, number: int, document: Content, user: str, name: str) -> None:
        """Begin or resume a round. Contents of another round stay if this round needs them. Raises RoundRefused."""
        if document.size > ROUND_BYTES_MAX:
            raise RoundRefused(f"a round of {document.size} bytes exceeds the limit of {ROUND_BYTES_MAX}")
        if self.number == number and self.document == document and self.user == user:
            return
        with suppress(StorageError):  # errors of another round's files do not matter
            self._take_all()
        self._close_parts()
        self._round = None
        if self.number:
            self._journal.end()
        self._disk.make_folder(self._folder.data)  # it may have been removed after the last round
        self._journal.add(JournalRecord(number, START, (document.sha256, document.size, user, name)))
        if self._is_whole(document):
            self._take_document()

    def _take_document(self) -> None:
        path = self._folder.document(self.document)
        self._round = decode_round(bytes(self._disk.map(path)))
        self._contents = self._round.contents()
        self._places = {}
        for partition in self._round.partitions:
            for file in partition.files:
                self._places.setdefault(file.content.sha256, []).append(partition.slice)

    @property
    def lacking(self) -> int:
        """The number of missing bytes of the round, or -1 if the round's document has not arrived."""
        return -1 if self._round is None else sum(want.content.size - want.have for want in self._missing())

    def wants(self) -> tuple[MissingContent, ...]:
        """Wait until all files are checked, then return the missing contents in the order of sending.

        Raises CorruptFile, UserMistake, UnsupportedFile (a file does not match the round, and was removed), OSError.
        """
        self._take_all()
        return self._missing()

    def _missing(self) -> tuple[MissingContent, ...]:
        if self._round is None:
            return (MissingContent(self.document, self._have(self.document)),)
        missing = [c for c in self._contents.values() if not self._is_whole(c)]
        self._lacking = {content.sha256 for content in missing} - self._inspected.keys()
        return tuple(MissingContent(content, self._have(content)) for content in missing)

    def end(self) -> None:
        """End the round, which is committed or abandoned. Raises OSError."""
        with suppress(StorageError):
            self._take_all()
        self._close_parts()
        self._round = None
        if self.number:
            self._journal.end()

    def sweep(self, kept: set[str]) -> None:
        """Remove all contents except those with names in `kept` or of the round in progress. Raises OSError."""
        if self.number:
            kept = kept | {self.document.sha256 + PART, self.document.sha256 + ".round"}
        if self._round is not None:
            kept = kept | self._folder.names(self.document, self._round)
            kept |= {content.sha256 + PART for content in self._contents.values()}
        for name in self._disk.list(self._folder.data):
            if name not in kept:
                self._disk.remove(os.path.join(self._folder.data, name))

    # ------------------------------------------------------------------ bytes

    def chunk(self, sha256: str, offset: int, crc32: int, data: bytes | memoryview) -> int:
        """Store a chunk. Return how many bytes of the content are stored without a gap from its start.

        Raises BeginAgain if the content is not part of the round; CorruptFile, UserMistake, UnsupportedFile for a
        content, perhaps an earlier one, that does not match the round; OSError.
        """
        content = self._contents.get(sha256) if self._round is not None else None
        if self.number and sha256 == self.document.sha256:
            content = self.document
        if content is None:
            raise BeginAgain(f"{sha256} is not part of the current round; start the round again")
        if len(data) > CHUNK_BYTES_MAX or zlib.crc32(data) != crc32:
            return self._have(content)  # damaged in transit
        self._take_inspected()
        if self._is_whole(content) or sha256 in self._inspected:
            return content.size
        self._remove_unknown(content)
        part = self._part(content)
        if offset < part.file.size or offset + len(data) > content.size:
            return part.file.size
        if offset > part.file.size:
            part.keep(offset, data)
            return part.file.size
        try:
            have = self._take(content, part, data)
            while sha256 in self._parts and (early := part.early.pop(have, None)):
                have = self._take(content, part, early)
        except OSError:
            self._unknown.add(sha256)
            raise
        return have

    def _take(self, content: Content, part: _Part, data: bytes | memoryview) -> int:
        part.file.write([data])
        part.digest.update(data)
        self.fresh_bytes += len(data)
        if part.file.size == content.size:
            return self._finish(content, part)
        self._sync_part(content, part)
        return part.file.size

    def _sync_part(self, content: Content, part: _Part) -> None:
        """Sync a part after every `GOOD_BYTES`. A later chunk records the finished sync in the journal."""
        if part.synced is None and part.file.size - part.good >= GOOD_BYTES:
            part.next_good, part.synced = part.file.size, self._chores.begin(part.file.sync)
        if part.synced is not None and part.synced.done():
            synced, part.synced = part.synced, None
            synced.result()
            part.good = part.next_good
            self._journal.add(JournalRecord(self.number, GOOD, (content.sha256, part.good)))

    def _remove_unknown(self, content: Content) -> None:
        if content.sha256 in self._unknown:
            part = self._parts.pop(content.sha256, None)
            if part is not None:
                part.close()
            self._disk.remove(self._part_path(content))
            self._disk.remove(self._path(content))
            self._unknown.discard(content.sha256)

    def _part(self, content: Content) -> _Part:
        part = self._parts.get(content.sha256)
        if part is None:
            if len(self._parts) >= _OPEN_MAX:
                self._close_part(next(iter(self._parts)))
            path = self._part_path(content)
            part = _Part(self._disk.append(path), 0)
            if part.file.size:
                part.digest.update(self._disk.map(path))
                part.good = part.file.size
            self._parts[content.sha256] = part
        return part

    def _finish(self, content: Content, part: _Part) -> int:
        """Check a content that has all its bytes. If its SHA-256 is wrong, remove it and return 0."""
        if part.digest.hexdigest() != content.sha256:
            del self._parts[content.sha256]
            part.close()
            self._disk.remove(self._part_path(content))
            return 0
        if content == self.document or (self._round is not None and content == self._round.schema):
            self._finish_metadata(content, part)
        else:
            self._finish_file(content, part)
        return content.size

    def _finish_metadata(self, content: Content, part: _Part) -> None:
        """Sync and check the document or the schema at once: they are small, and the next requests need them."""
        path = self._part_path(content)
        _sync_after(part.synced, part.file)
        del self._parts[content.sha256]
        part.close()
        self._lacking.discard(content.sha256)
        try:
            self._check(content, path)
        except BaseException:
            self._disk.remove(path)
            raise
        self._name(content)
        if content == self.document:
            self._take_document()

    def _finish_file(self, content: Content, part: _Part) -> None:
        assert self._round is not None
        path, slices = self._part_path(content), self._places[content.sha256]
        look = partial(check_file, path, self._disk.map(path), self._round.interval, slices)
        del self._parts[content.sha256]
        part.synced = self._chores.begin(partial(_sync_after, part.synced, part.file))
        self._inspected[content.sha256] = _CompleteFile(content, part, part.synced, self._chores.begin(look))
        self._lacking.discard(content.sha256)
        if not self._lacking:
            self._take_all()
            return
        self._take_inspected()
        if len(self._inspected) > _OPEN_MAX:
            self._take_file(next(iter(self._inspected.values())))

    def _name(self, content: Content) -> None:
        """Give a checked content its name, and record it in the journal."""
        self._disk.replace(self._part_path(content), self._path(content))
        self._disk.sync_folder(self._folder.data)
        self._journal.add(JournalRecord(self.number, DONE, (content.sha256,)))
        self.fresh_bytes += content.size

    def _check(self, content: Content, path: str) -> None:
        """Raise CorruptFile if a document or schema is malformed, or if the document belongs to another round."""
        data = self._disk.map(path)
        if content == self.document:
            round_ = decode_round(bytes(data))
            if (round_.number, round_.sender) != (self.number, os.path.basename(self._folder.folder)):
                raise CorruptFile(path, 0, f"it is round {round_.number} of sender {round_.sender}")
        else:
            devices_of_schema(bytes(data))

    # ------------------------------------------------------------------ files that are being checked

    def _take_inspected(self) -> None:
        """Finish the files whose sync and check are done. Raises the error of one of them, or OSError."""
        for whole in list(self._inspected.values()):
            if whole.is_known:
                self._take_file(whole)

    def _take_all(self) -> None:
        """Wait for all files, and finish them. Raises the first error."""
        problem: Exception | None = None
        for whole in list(self._inspected.values()):
            try:
                self._take_file(whole)
            except (StorageError, OSError) as error:
                problem = problem or error
        if problem is not None:
            raise problem

    def _take_file(self, whole: _CompleteFile) -> None:
        """Wait until a file is synced and checked. Then give it its name, or remove it. Raises its error, OSError."""
        content = whole.content
        del self._inspected[content.sha256]
        try:
            whole.synced.result()
            devices = whole.found.result()
            write_durably(self._disk, self._folder.tsfile(content) + RESOURCE, encode_resource(devices))
            self._name(content)
        except OSError:
            self._unknown.add(content.sha256)
            raise
        except BaseException:
            self._unknown.add(content.sha256)
            self._remove_unknown(content)
            raise
        finally:
            whole.part.close()

    # ------------------------------------------------------------------ paths, parts

    def _path(self, content: Content) -> str:
        if content == self.document:
            return self._folder.document(content)
        if self._round is not None and content == self._round.schema:
            return self._folder.schema(content)
        return self._folder.tsfile(content)

    def _part_path(self, content: Content) -> str:
        return os.path.join(self._folder.data, content.sha256 + PART)

    def _is_whole(self, content: Content) -> bool:
        return content.sha256 not in self._unknown and self._disk.exists(self._path(content))

    def _have(self, content: Content) -> int:
        if content.sha256 in self._unknown:
            return 0
        part = self._parts.get(content.sha256)
        if part is not None:
            return part.file.size
        path = self._part_path(content)
        return self._disk.size(path) if self._disk.exists(path) else 0

    def _cut_parts(self) -> None:
        """Truncate each part to the bytes that the journal records as durable."""
        good = {str(n.words[0]): int(n.words[1]) for n in self._journal.notes if n.what == GOOD}
        for name in self._disk.list(self._folder.data):
            if not name.endswith(PART):
                continue
            path = os.path.join(self._folder.data, name)
            size = good.get(name.removesuffix(PART), 0)
            if not 0 < size <= self._disk.size(path):
                self._disk.remove(path)
            elif size < self._disk.size(path):
                self._disk.truncate(path, size)

    def _close_part(self, sha256: str) -> None:
        """Close a part. It is opened again when more bytes arrive."""
        if not self._parts.pop(sha256).close():
            self._unknown.add(sha256)

    def _close_parts(self) -> None:
        for sha256 in list(self._parts):
            self._close_part(sha256)

    def close(self) -> None:
        """Close all files. The next start resumes the round."""
        for whole in self._inspected.values():
            whole.part.close()
        self._inspected.clear()
        self._close_parts()
        self._journal.close()
