"""What of all senders lies in this node's folder. Any node's copy of a content is as good as another's: it is its name.

    <data>/sync-receiver/<sender>/data/<sha256>.round .schema .tsfile    what this node keeps for the cluster
                         arriving/<sender>/                              what comes to this node (`receiver.incoming`)

A content gets its name when it is durable and has the SHA-256 that the name says: so a name is a proof, here as there.
What is not whole yet where it arrives is a `.pull` here, which a start forgets. Nothing that another node says becomes
a path but such a name. Whoever writes below a sender's folder is one thread; looking is for any.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

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
#: Bytes of a content that are read at once, and go in one message. Longer ones would be new memory each time.
PIECE_BYTES = 1 << 20
#: So many are fetched while they arrive: each has a file open, and a buffer. Others are when they are whole.
_PULLS_MAX = 8


@dataclass(slots=True)
class _Pull:
    """A content that comes from another node."""

    file: File
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self.file.write([piece])
            self.digest.update(piece)


class Contents:
    """See the module."""

    def __init__(self, data: str, disk: Disk) -> None:
        self._root = os.path.join(data, FOLDER)
        self._disk = disk
        #: By path: what is fetched while it arrives elsewhere. Of the thread that writes below senders' folders.
        self._pulls: dict[str, _Pull] = {}

    @property
    def root(self) -> str:
        """Where all of it lies."""
        return self._root

    def folder(self, sender: str) -> MirrorFolder:
        """What is kept of a sender."""
        assert is_sender(sender)
        return MirrorFolder(os.path.join(self._root, sender))

    def arriving(self, sender: str) -> MirrorFolder:
        """Where a sender's round arrives."""
        assert is_sender(sender)
        return MirrorFolder(os.path.join(self._root, ARRIVING, sender))

    def senders(self) -> list[str]:
        """Those of whom something is kept here."""
        return [name for name in self._disk.list(self._root) if is_sender(name)]

    def senders_arriving(self) -> list[str]:
        """Those of whom something arrives here, or did."""
        return [name for name in self._disk.list(os.path.join(self._root, ARRIVING)) if is_sender(name)]

    # ------------------------------------------------------------------ looking

    def has(self, sender: str, names: Collection[str]) -> set[str]:
        """Those that are here, kept or arriving."""
        if not is_sender(sender):
            return set()
        # What has arrived is kept before it goes from there: looked for in this order it is not missed on the way.
        here = {*self._disk.list(self.arriving(sender).data), *self._disk.list(self.folder(sender).data)}
        return {name for name in names if name in here and _NAME.fullmatch(name)}

    def path(self, sender: str, name: str) -> str | None:
        """Where a content lies; None: it is not here."""
        if not is_sender(sender) or _NAME.fullmatch(name) is None:
            return None
        for folder in (self.folder(sender), self.arriving(sender)):
            path = os.path.join(folder.data, name)
            if self._disk.exists(path):
                return path
        return None

    def pieces(self, sender: str, name: str, offset: int = 0) -> Iterator[bytes]:
        """A content from an offset to its end; nothing: it is not here."""
        path = self.path(sender, name)
        try:
            data = memoryview(b"") if path is None else self._disk.map(path)
        except FileNotFoundError:  # it has just gone
            return
        for start in range(offset, len(data), PIECE_BYTES):
            yield bytes(data[start : start + PIECE_BYTES])

    def parts(self, sender: str) -> list[str]:
        """The SHA-256 of what arrives here and is not whole."""
        if not is_sender(sender):
            return []
        names = self._disk.list(self.arriving(sender).data)
        return [name.removesuffix(PART) for name in names if name.endswith(PART)]

    def part_pieces(self, sender: str, sha256: str, offset: int) -> Iterator[bytes]:
        """Of a content that arrives here: what there is of it from an offset on."""
        if not is_sender(sender) or _NAME.fullmatch(f"{sha256}.tsfile") is None:
            return
        path = os.path.join(self.arriving(sender).data, sha256 + PART)
        with suppress(FileNotFoundError):  # it has become whole, or gone
            while piece := self._disk.read(path, offset, PIECE_BYTES):
                offset += len(piece)
                yield piece

    def documents(self, sender: str) -> dict[str, Round]:
        """Rounds of which the document is kept here, by its SHA-256."""
        folder, found = self.folder(sender), {}
        for name in self._disk.list(folder.data):
            if name.endswith(".round"):
                content = Content(name.removesuffix(".round"), 0)
                found[content.sha256] = load_document(self._disk, folder, content)
        return found

    def missing(self, sender: str, document: Content) -> list[str]:
        """What is not kept here of a round; only its document, if that is not."""
        folder = self.folder(sender)
        here = set(self._disk.list(folder.data))
        name = os.path.basename(folder.document(document))
        if name not in here:
            return [name]
        wanted = names_of(document, load_document(self._disk, folder, document))
        return [name for name in wanted if name not in here]

    # ------------------------------------------------------------------ changing

    def fetched(self, target: MirrorFolder, name: str) -> int:
        """How many bytes are here already of a content that `fetch` began with."""
        pull = self._pulls.get(os.path.join(target.data, name) + _PULLED)
        return 0 if pull is None else pull.file.size

    def fetch(self, target: MirrorFolder, name: str, pieces: Iterable[bytes]) -> None:
        """Go on with a content that is whole nowhere, or leave it for later. Raises OSError, what `pieces` raises."""
        path = os.path.join(target.data, name) + _PULLED
        if path not in self._pulls:
            if len(self._pulls) >= _PULLS_MAX:
                return
            self._disk.make_folder(target.data)
            self._pulls[path] = self._begin(path)
        try:
            self._pulls[path].add(pieces)
        except OSError:  # who knows what is there
            self._abandon(path)
            raise

    def take(self, target: MirrorFolder, name: str, pieces: Iterable[bytes], source: str | None = None) -> None:
        """Put a content into a folder: a link to `source` on this disk, or what is `fetched` and then these pieces.

        Raises CorruptFile if it is another content, OSError, what `pieces` raises.
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
            raise CorruptFile(path, 0, "another node sent another content than was asked for")

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
        """Make durable what was taken into a folder."""
        self._disk.sync_folder(target.data)
        self._disk.sync_folder(target.folder)

    def sweep(self, sender: str, kept: Collection[str]) -> list[str]:
        """Remove what is kept of a sender, but for these names; what was removed."""
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
    """The names of all contents of a round, its document first."""
    names = MirrorFolder("").names(document, round_)
    contents = sorted(name for name in names if _NAME.fullmatch(name))
    return sorted(contents, key=lambda name: not name.endswith(".round"))
