"""Files that are sent to a group in pieces through its log, and stored until an entry loads them.

    entry 50   Piece  a3-1  from byte 0        .staged/a3-1-50/1.tsfile  begins
          51   Piece  a3-1  from 1 MiB                                   grows
          52   Piece  a3-1  from 1 MiB         a repeat: no effect
          57   a mutation that loads a3-1/1.tsfile, with its size and checksum
                 complete   loaded like any staged file (`saros_storage.loading`), in the log's order
                 otherwise  refused (LOST): the sender begins again, under another name
          58   Piece  a3-1  from byte 0        a late repeat: begins another file, the loaded one is not touched
          59   Abandon a3-1                    that file is removed: the sender will not continue it

A file's content depends on the log alone, so a member that lags, restarts or receives a snapshot reaches the same
state. Pieces are durable only in the log. The log therefore retains everything from a file's first piece on until a
manifest lists the file (`first_needed`), and a replay finds the pieces again. If a replay begins in the middle of a
file, that file is no longer needed, and its remaining pieces are ignored.

The methods are called by the thread that applies entries. Any thread that holds the region's lock may call
`first_needed` and `stale`.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from saros_storage.base.errors import CorruptFile, UserMistake
from saros_storage.io.disk import FULL_ERRNOS, Disk
from saros_storage.loading.staging import Staging
from saros_storage.mutation.staged import StagedFile

#: Error code of a load whose file is not complete here: the client must send the file again.
LOST = 2027
#: Size limit of a piece: far below the size limit of an entry, so that a long transfer does not delay other entries.
PIECE_BYTES = 1 << 20
_NAME = re.compile(r"[0-9a-f]{1,16}-[0-9a-f]{1,16}")


class Piece(msgspec.Struct, frozen=True):
    """The bytes of file `name` from `offset` on."""

    name: str
    offset: int
    data: bytes | memoryview


class Abandon(msgspec.Struct, frozen=True):
    """Notice that file `name` is no longer needed, because it was loaded or will not be loaded."""

    name: str


Shipping = Piece | Abandon


def shipment_name(client: int, sequence: int) -> str:
    """Return the name of the file that a request sends. The name is unique because the request's number is unique."""
    return f"{client:x}-{sequence:x}"


def staged_name(name: str) -> str:
    """Return the name by which an entry loads a shipped file."""
    return f"{name}/1.tsfile"


def _place(name: str, first: int) -> str:
    """Return the path, within the staging folder, of a file whose first piece was in entry `first`.

    No other file has this path.
    """
    return f"{name}-{first}/1.tsfile"


def check_name(name: str) -> None:
    """Raise CorruptFile unless `shipment_name` can return `name`. No other text may become part of a path."""
    if _NAME.fullmatch(name) is None:
        raise CorruptFile("log", 0, f"invalid shipment name: {name!r}")


def shipping_to_json(shipping: Shipping) -> list[object]:
    """Return all fields except the data in a form that JSON can encode."""
    return [shipping.name, shipping.offset] if isinstance(shipping, Piece) else [shipping.name]


def shipping_from_json(words: Sequence[Any], data: memoryview) -> Shipping:
    """Return the piece or notice that `shipping_to_json` encoded, with its data. Raises CorruptFile."""
    match words:
        case [str(name), int(offset)] if offset >= 0 and 0 < len(data) <= PIECE_BYTES:
            check_name(name)
            return Piece(name, offset, data)
        case [str(name)] if not data:
            check_name(name)
            return Abandon(name)
    raise CorruptFile("log", 0, "invalid piece of a file")


class _ShippedFile(msgspec.Struct):
    """The state of a file in transfer. `first` is the entry that began it."""

    first: int
    touched_ns: int
    size: int = 0
    crc32: int = 0


class ShippedFiles:
    """Files that arrive in pieces through a group's log, from their first piece until they are loaded."""

    def __init__(self, staging: Staging, disk: Disk) -> None:
        """Start with no files, for a region that was just opened and has applied nothing.

        Remove staged files: the log contains their pieces.
        """
        self._staging = staging
        self._disk = disk
        #: Files in transfer, keyed by name.
        self._known: dict[str, _ShippedFile] = {}
        #: For each loaded file that no manifest lists yet, the entry with the file's first piece. The keys are the
        #: names of the files in the region.
        self._loading: dict[str, int] = {}
        staging.sweep(())

    def fits(self, piece: Piece) -> bool:
        """Return whether the piece continues its file, or repeats a part of it."""
        known = self._known.get(piece.name)
        return piece.offset <= (0 if known is None else known.size)

    def write(self, index: int, piece: Piece, wait: Callable[[], bool]) -> None:
        """Write the bytes of entry `index` if they are the next piece of a file. The caller holds no lock.

        While the disk is full, `wait` blocks and returns whether to try again. Raises OSError.
        """
        known = self._known.get(piece.name)
        if piece.offset != (0 if known is None else known.size):
            return
        place = _place(piece.name, index if known is None else known.first)
        while True:
            try:
                self._append(place, piece)
            except OSError as error:
                if error.errno not in FULL_ERRNOS or not wait():
                    raise
            else:
                return

    def _append(self, place: str, piece: Piece) -> None:
        path = self._staging.path(place)
        if piece.offset == 0:
            self._disk.make_folder(os.path.dirname(path))
            file = self._disk.create(path)
        else:
            if self._disk.size(path) > piece.offset:  # an earlier attempt wrote only a part
                self._disk.truncate(path, piece.offset)
            file = self._disk.append(path)
        try:
            file.write([piece.data])
        finally:
            file.close()

    def record(self, index: int, piece: Piece, now_ns: int) -> None:
        """Record that `write` wrote the piece, which came with entry `index`. Under the region's lock."""
        known = self._known.get(piece.name)
        if known is None and piece.offset == 0:
            known = self._known[piece.name] = _ShippedFile(index, now_ns)
        if known is not None and piece.offset == known.size:
            known.size += len(piece.data)
            known.crc32 = zlib.crc32(piece.data, known.crc32)
            known.touched_ns = now_ns

    def complete(self, wanted: StagedFile) -> StagedFile:
        """Return the file under the name by which the region loads it.

        Raises UserMistake if the file is missing, incomplete or invalid.
        """
        known = self._known.get(_name_of(wanted))
        if known is None or (known.size, known.crc32) != (wanted.size, wanted.crc32):
            raise UserMistake("the file is incomplete; send it again", code=LOST)
        try:
            return self._staging.complete(replace(wanted, name=_place(_name_of(wanted), known.first)))
        except CorruptFile as error:
            raise UserMistake(f"the file is not a valid TsFile: {error}", code=error.code) from error

    def load(self, staged: StagedFile) -> None:
        """Hand the file over to the region. The caller holds the region's lock."""
        self._loading[staged.name] = self._known.pop(_name_of(staged)).first

    def drop(self, name: str) -> None:
        """Remove a file that is no longer needed. The caller holds the region's lock. Raises OSError."""
        known = self._known.pop(name, None)
        if known is not None:
            self._staging.discard([_place(name, known.first)])

    def drop_of(self, staged: StagedFile) -> None:
        """Remove a file that will not be loaded. See `drop`."""
        self.drop(_name_of(staged))

    def first_needed(self, waiting: Collection[str]) -> int | None:
        """Return the first entry that a restart must replay, if any.

        `waiting` has the loaded files that no manifest lists.
        """
        self._loading = {name: first for name, first in self._loading.items() if name in waiting}
        return min((*(s.first for s in self._known.values()), *self._loading.values()), default=None)

    def stale(self, before_ns: int) -> list[str]:
        """Return the names of files that have received nothing since `before_ns` of the monotonic clock."""
        return [name for name, shipment in self._known.items() if shipment.touched_ns < before_ns]


def _name_of(staged: StagedFile) -> str:
    """Return the shipment's name, given the file's name in an entry or its path in the staging folder."""
    return "-".join(staged.name.partition("/")[0].split("-")[:2])
