"""The contents of all senders in this node's folder. A content's name is its SHA-256, so copies are interchangeable.

    <data>/sync-receiver/<sender>/data/<sha256>.round .schema .tsfile    contents that this node stores for the cluster
                         arriving/<sender>/                              rounds that arrive here (`receiver.incoming`)

A content gets its name only when it is durable and its SHA-256 is verified, so a file with such a name is always
intact. A content that is being fetched is a `.pull` file, which a restart discards. The sender's id and the SHA-256 are
the only strings from other nodes that become part of a path. One thread writes below senders' folders. Any thread may
read.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

import msgspec

from saros_storage.base.errors import CorruptFile
from saros_storage.folder.layout import RESOURCE, write_synced
from saros_storage.folder.resource import devices_of_file, encode_resource
from saros_storage.io.disk import Disk, File
from saros_storage.tsfile.reader import TsFileReader
from saros_sync.receiver.incoming import PART
from saros_sync.receiver.mirror import FOLDER, MirrorFolder, load_document
from saros_sync.round import Content, Round, is_sender

ARRIVING = "arriving"
_NAME = re.compile(r"[0-9a-f]{64}\.(tsfile|schema|round)")
_PULLED = ".pull"
#: Maximum number of a content's bytes in one message. For a longer buffer, each allocation would need a system call.
PIECE_BYTES = 1 << 20
#: Up to this many contents are fetched while they are still arriving elsewhere: each has an open file and a buffer.
#: Further contents are fetched when they are complete.
_PULLS_MAX = 8


class _Pull(msgspec.Struct):
    """A content that is being fetched from another node."""

    file: File
    digest: hashlib._Hash = msgspec.field(default_factory=hashlib.sha256)

    def add(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self.file.write([piece])
            self.digest.update(piece)


class Contents:
    """The contents of all senders in this node's folder."""

    def __init__(self, data: str, disk: Disk) -> None:
        self._root = os.path.join(data, FOLDER)
        self._disk = disk
        #: Contents that are fetched while they are still arriving elsewhere, keyed by path. Only the writing thread
        #: uses this.
        self._pulls: dict[str, _Pull] = {}

    @property
    def root(self) -> str:
        """The folder of all contents."""
        return self._root

    def folder(self, sender: str) -> MirrorFolder:
        """Return the folder of a sender's stored contents."""
        assert is_sender(sender)
        return MirrorFolder(os.path.join(self._root, sender))

    def arriving(self, sender: str) -> MirrorFolder:
        """Return the folder where a sender's round arrives."""
        assert is_sender(sender)
        return MirrorFolder(os.path.join(self._root, ARRIVING, sender))

    def senders(self) -> list[str]:
        """Return the senders with stored contents."""
        return [name for name in self._disk.list(self._root) if is_sender(name)]

    def senders_arriving(self) -> list[str]:
        """Return the senders whose rounds are arriving, or have arrived, at this node."""
        return [name for name in self._disk.list(os.path.join(self._root, ARRIVING)) if is_sender(name)]

    # ------------------------------------------------------------------ reading

    def has(self, sender: str, names: Collection[str]) -> set[str]:
        """Return the names of complete contents that are stored or have arrived here."""
        if not is_sender(sender):
            return set()
        # A content is stored before its arrived copy is removed, so listing in this order cannot miss it.
        here = {*self._disk.list(self.arriving(sender).data), *self._disk.list(self.folder(sender).data)}
        return {name for name in names if name in here and _NAME.fullmatch(name)}

    def path(self, sender: str, name: str) -> str | None:
        """Return the path of a content, or None if it is not here."""
        if not is_sender(sender) or _NAME.fullmatch(name) is None:
            return None
        for folder in (self.folder(sender), self.arriving(sender)):
            path = os.path.join(folder.data, name)
            if self._disk.exists(path):
                return path
        return None

    def pieces(self, sender: str, name: str, offset: int = 0) -> Iterator[bytes]:
        """Yield the bytes of a content from an offset on. Yield nothing if the content is not here."""
        path = self.path(sender, name)
        try:
            data = memoryview(b"") if path is None else self._disk.map(path)
        except FileNotFoundError:  # another thread has just removed the content
            return
        for start in range(offset, len(data), PIECE_BYTES):
            yield bytes(data[start : start + PIECE_BYTES])

    def parts(self, sender: str) -> list[str]:
        """Return the SHA-256 of each incomplete content that is arriving here."""
        if not is_sender(sender):
            return []
        names = self._disk.list(self.arriving(sender).data)
        return [name.removesuffix(PART) for name in names if name.endswith(PART)]

    def part_pieces(self, sender: str, sha256: str, offset: int) -> Iterator[bytes]:
        """Yield the bytes, from an offset on, of a content that is arriving here."""
        if not is_sender(sender) or _NAME.fullmatch(f"{sha256}.tsfile") is None:
            return
        path = os.path.join(self.arriving(sender).data, sha256 + PART)
        with suppress(FileNotFoundError):  # the content is complete now, or it was removed
            while piece := self._disk.read(path, offset, PIECE_BYTES):
                offset += len(piece)
                yield piece

    def documents(self, sender: str) -> dict[str, Round]:
        """Return the rounds whose documents are stored here, keyed by the document's SHA-256.

        Raises CorruptFile, OSError.
        """
        folder, found = self.folder(sender), {}
        for name in self._disk.list(folder.data):
            if name.endswith(".round"):
                content = Content(name.removesuffix(".round"), 0)
                found[content.sha256] = load_document(self._disk, folder, content)
        return found

    def missing(self, sender: str, document: Content) -> list[str]:
        """Return the names of a round's contents that are missing here; if the document is missing, only its name."""
        folder = self.folder(sender)
        here = set(self._disk.list(folder.data))
        name = os.path.basename(folder.document(document))
        if name not in here:
            return [name]
        wanted = names_of(document, load_document(self._disk, folder, document))
        return [name for name in wanted if name not in here]

    # ------------------------------------------------------------------ writing

    def fetched(self, target: MirrorFolder, name: str) -> int:
        """Return the number of bytes that `fetch` has stored of a content."""
        pull = self._pulls.get(os.path.join(target.data, name) + _PULLED)
        return 0 if pull is None else pull.file.size

    def fetch(self, target: MirrorFolder, name: str, pieces: Iterable[bytes]) -> None:
        """Append pieces to a content that is still incomplete at all nodes. Do nothing if too many are being fetched.

        Raises OSError, and the errors of `pieces`.
        """
        path = os.path.join(target.data, name) + _PULLED
        if path not in self._pulls:
            if len(self._pulls) >= _PULLS_MAX:
                return
            self._disk.make_folder(target.data)
            self._pulls[path] = self._begin(path)
        try:
            self._pulls[path].add(pieces)
        except OSError:  # the stored bytes are undefined
            self._abandon(path)
            raise

    def take(self, target: MirrorFolder, name: str, pieces: Iterable[bytes], source: str | None = None) -> None:
        """Store a content in a folder: link `source` on this disk, or append the pieces to the `fetched` bytes.

        Raises CorruptFile if the SHA-256 differs from the name, OSError, and the errors of `pieces`.
        """
        self._disk.make_folder(target.data)
        path = os.path.join(target.data, name)
        pulled = path + _PULLED
        if source is not None:
            self._abandon(pulled)
            self._disk.link(source, pulled)
        else:
            self._pull(pulled, pieces)
        if name.endswith(".tsfile"):
            self._take_resource(pulled, path + RESOURCE, source)
        self._disk.replace(pulled, path)

    def _take_resource(self, pulled: str, path: str, source: str | None) -> None:
        if source is not None and self._disk.exists(source + RESOURCE):
            self._disk.remove(path)
            self._disk.link(source + RESOURCE, path)
        else:
            write_synced(self._disk, path, self._resource(pulled))

    def _pull(self, path: str, pieces: Iterable[bytes]) -> None:
        pull = self._pulls.pop(path, None) or self._begin(path)
        try:
            pull.add(pieces)
            pull.file.sync()
        finally:
            pull.file.close()
        if not os.path.basename(path).startswith(pull.digest.hexdigest()):
            self._disk.remove(path)
            raise CorruptFile(path, 0, "a node sent different content than requested")

    def _begin(self, path: str) -> _Pull:
        self._disk.remove(path)  # it may be a link
        return _Pull(self._disk.create_unread(path))

    def _abandon(self, path: str) -> None:
        pull = self._pulls.pop(path, None)
        if pull is not None:
            pull.file.close()
        self._disk.remove(path)

    def _resource(self, path: str) -> bytes:
        return encode_resource(devices_of_file(TsFileReader(path, self._disk.map(path))))

    def make_durable(self, target: MirrorFolder) -> None:
        """Make the names of a folder's contents durable. Raises OSError."""
        self._disk.sync_folder(target.data)
        self._disk.sync_folder(target.folder)

    def sweep(self, sender: str, kept: Collection[str]) -> list[str]:
        """Remove all stored contents of a sender except those named in `kept`. Return the removed names."""
        folder = self.folder(sender)
        pulls = {os.path.basename(path) for path in self._pulls if os.path.dirname(path) == folder.data}
        kept = {*kept, *(name + RESOURCE for name in kept), *(pulls & {name + _PULLED for name in kept})}
        gone = [name for name in self._disk.list(folder.data) if name not in kept]
        for name in gone:
            self._abandon(os.path.join(folder.data, name))
        if not kept:
            self._disk.remove_tree(folder.folder)
        return gone


def names_of(document: Content, round_: Round) -> list[str]:
    """Return the names of all contents of a round. The round's document comes first."""
    names = MirrorFolder("").names(document, round_)
    contents = sorted(name for name in names if _NAME.fullmatch(name))
    return sorted(contents, key=lambda name: not name.endswith(".round"))
