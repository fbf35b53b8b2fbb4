"""Contents of one sender's round as they arrive, and the journal by which a start goes on.

    load.log                     start (document, user, name) · good (content, bytes) · done (content) ...
    data/<sha256>.part           bytes from the start of a content on
    data/<sha256>.tsfile ...     whole and checked: size, SHA-256; of a file also its tail, every page, its times

A part is cut back to what the journal says is good, since a power cut may leave anything behind it. A content is
checked when it is whole; one that is another than its name says goes, and is wanted again. Offsets must meet: what
comes twice or too early changes nothing, and the answer says what is there.

Whoever calls holds the sender's lock.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from dataclasses import dataclass, field

from saros_storage.disk import Disk, File
from saros_storage.errors import CorruptFile
from saros_storage.layout import RESOURCE, write_durably
from saros_storage.loading.content import content_of as content_of_tsfile
from saros_storage.resource import devices_of_file, encode_resource
from saros_storage.tsfile.checking import check_tsfile
from saros_storage.tsfile.reader import TsFileReader
from saros_sync.errors import BeginAgain, RoundRefused
from saros_sync.journal import Journal, Note
from saros_sync.receiver.mirror import MirrorFolder, devices_of_schema
from saros_sync.round import ROUND_BYTES_MAX, Content, Round, decode_round
from saros_sync.transport import CHUNK_BYTES_MAX, Want

START, GOOD, DONE = "start", "good", "done"
_PART = ".part"
#: A part is made durable, and the journal told, each time so much came.
_GOOD_BYTES = 8 << 20


@dataclass(slots=True)
class _Part:
    """A content in the making."""

    file: File
    good: int
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)


class Incoming:
    """See the module."""

    def __init__(self, folder: MirrorFolder, disk: Disk) -> None:
        """Look at what an earlier process left. Raises OSError."""
        self._folder = folder
        self._disk = disk
        disk.make_folder(folder.data)
        self._journal = Journal(disk, os.path.join(folder.folder, "load.log"))
        self._parts: dict[str, _Part] = {}
        #: Contents of which a failing disk has left nobody knows what: that goes before they come again.
        self._unknown: set[str] = set()
        self._round: Round | None = None
        #: The contents of the round, and the partitions that each file is of.
        self._contents: dict[str, Content] = {}
        self._places: dict[str, list[int]] = {}
        self._cut_parts()
        if self.number:
            disk.sync_folder(folder.data)  # names that are seen here may not be durable yet
            if self._is_whole(self.document):
                self._take_document()

    # ------------------------------------------------------------------ the round in hand

    @property
    def number(self) -> int:
        """Of the round in hand; 0: none is."""
        return self._journal.round

    @property
    def document(self) -> Content:
        """Of the round in hand."""
        sha256, size, *_ = self._start.words
        return Content(str(sha256), int(size))

    @property
    def user(self) -> str:
        """Who began the round in hand."""
        return str(self._start.words[2])

    @property
    def name(self) -> str:
        """What the sender calls itself."""
        return str(self._start.words[3])

    @property
    def _start(self) -> Note:
        return next(note for note in self._journal.notes if note.what == START)

    @property
    def round(self) -> Round | None:
        """The round in hand; None: its document is not here yet."""
        return self._round

    def begin(self, number: int, document: Content, user: str, name: str) -> None:
        """Take a round in hand; what there is of another one stays if this one wants it. Raises RoundRefused."""
        if document.size > ROUND_BYTES_MAX:
            raise RoundRefused(f"a round of {document.size} bytes is longer than {ROUND_BYTES_MAX}")
        if self.number == number and self.document == document and self.user == user:
            return
        self._close_parts()
        self._round = None
        if self.number:
            self._journal.end()
        self._journal.add(Note(number, START, (document.sha256, document.size, user, name)))
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
        """How many bytes of the round are not here; -1: that is not known yet."""
        return -1 if self._round is None else sum(want.content.size - want.have for want in self.wants())

    def wants(self) -> tuple[Want, ...]:
        """What is lacking of the round in hand, in the order in which it is to be sent."""
        if self._round is None:
            return (Want(self.document, self._have(self.document)),)
        missing = [c for c in self._contents.values() if not self._is_whole(c)]
        return tuple(Want(content, self._have(content)) for content in missing)

    def end(self) -> None:
        """The round is committed, or given up. Raises OSError."""
        self._close_parts()
        self._round = None
        if self.number:
            self._journal.end()

    def sweep(self, kept: set[str]) -> None:
        """Remove all contents but those with these names, and those of the round in hand. Raises OSError."""
        if self.number:
            kept = kept | {self.document.sha256 + _PART, self.document.sha256 + ".round"}
        if self._round is not None:
            kept = kept | self._folder.names(self.document, self._round)
            kept |= {content.sha256 + _PART for content in self._contents.values()}
        for name in self._disk.list(self._folder.data):
            if name not in kept:
                self._disk.remove(os.path.join(self._folder.data, name))

    # ------------------------------------------------------------------ bytes

    def chunk(self, sha256: str, offset: int, crc32: int, data: bytes) -> int:
        """Take bytes in; how many of the content are there then. Raises BeginAgain, CorruptFile, OSError."""
        content = self._contents.get(sha256) if self._round is not None else None
        if self.number and sha256 == self.document.sha256:
            content = self.document
        if content is None:
            raise BeginAgain(f"{sha256} is no content of the round in hand: begin again")
        if len(data) > CHUNK_BYTES_MAX or zlib.crc32(data) != crc32:
            return self._have(content)  # damaged on its way
        if self._is_whole(content):
            return content.size
        self._remove_unknown(content)
        part = self._part(content)
        if offset != part.file.size or offset + len(data) > content.size:
            return part.file.size
        try:
            return self._take(content, part, data)
        except OSError:
            self._unknown.add(sha256)
            raise

    def _take(self, content: Content, part: _Part, data: bytes) -> int:
        part.file.write([data])
        part.digest.update(data)
        if part.file.size == content.size:
            return self._finish(content, part)
        if part.file.size - part.good >= _GOOD_BYTES:
            part.file.sync()
            part.good = part.file.size
            self._journal.add(Note(self.number, GOOD, (content.sha256, part.good)))
        return part.file.size

    def _remove_unknown(self, content: Content) -> None:
        if content.sha256 in self._unknown:
            part = self._parts.pop(content.sha256, None)
            if part is not None:
                part.file.close()
            self._disk.remove(self._part_path(content))
            self._disk.remove(self._path(content))
            self._unknown.discard(content.sha256)

    def _part(self, content: Content) -> _Part:
        part = self._parts.get(content.sha256)
        if part is None:
            path = self._part_path(content)
            part = _Part(self._disk.append(path), 0)
            if part.file.size:
                part.digest.update(self._disk.map(path))
                part.good = part.file.size
            self._parts[content.sha256] = part
        return part

    def _finish(self, content: Content, part: _Part) -> int:
        """All bytes are there: check them. 0: they are others than the content's, and go."""
        path = self._part_path(content)
        part.file.sync()
        part.file.close()
        del self._parts[content.sha256]
        if part.digest.hexdigest() != content.sha256:
            self._disk.remove(path)
            return 0
        try:
            self._check(content, path)
        except BaseException:
            self._disk.remove(path)
            raise
        self._disk.replace(path, self._path(content))
        self._disk.sync_folder(self._folder.data)
        self._journal.add(Note(self.number, DONE, (content.sha256,)))
        if content == self.document:
            self._take_document()
        return content.size

    def _check(self, content: Content, path: str) -> None:
        """Raise CorruptFile, UserMistake, UnsupportedFile for what is not what the round says."""
        data = self._disk.map(path)
        if content == self.document:
            round_ = decode_round(bytes(data))
            if (round_.number, round_.sender) != (self.number, os.path.basename(self._folder.folder)):
                raise CorruptFile(path, 0, f"it is round {round_.number} of sender {round_.sender}")
            return
        assert self._round is not None
        if content == self._round.schema:
            devices_of_schema(bytes(data))
            return
        problems = check_tsfile(path, data).problems
        if problems:
            raise problems[0]
        reader = TsFileReader(path, data)
        content_of_tsfile(reader)
        devices = devices_of_file(reader)
        interval = self._round.interval
        for number in self._places[content.sha256]:
            for device, span in devices.items():
                if span.start < number * interval or span.end >= (number + 1) * interval:
                    raise CorruptFile(path, 0, f"{device} has points outside of slice {number}, where it is to be")
        write_durably(self._disk, self._folder.tsfile(content) + RESOURCE, encode_resource(devices))

    # ------------------------------------------------------------------ paths, leftovers

    def _path(self, content: Content) -> str:
        if content == self.document:
            return self._folder.document(content)
        if self._round is not None and content == self._round.schema:
            return self._folder.schema(content)
        return self._folder.tsfile(content)

    def _part_path(self, content: Content) -> str:
        return os.path.join(self._folder.data, content.sha256 + _PART)

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
        """Keep of each part what the journal says is good."""
        good = {str(n.words[0]): int(n.words[1]) for n in self._journal.notes if n.what == GOOD}
        for name in self._disk.list(self._folder.data):
            if not name.endswith(_PART):
                continue
            path = os.path.join(self._folder.data, name)
            size = good.get(name.removesuffix(_PART), 0)
            if not 0 < size <= self._disk.size(path):
                self._disk.remove(path)
            elif size < self._disk.size(path):
                self._disk.truncate(path, size)

    def _close_parts(self) -> None:
        for part in self._parts.values():
            part.file.close()
        self._parts.clear()

    def close(self) -> None:
        """Close all files; the round goes on at the next start."""
        self._close_parts()
        self._journal.close()
