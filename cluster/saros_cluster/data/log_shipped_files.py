"""Files that come to a group through its log, in pieces, until an entry loads them.

    entry 50   Piece  a3-1  from byte 0        .staged/a3-1-50/1.tsfile  begins
          51   Piece  a3-1  from 1 MiB                                   grows
          52   Piece  a3-1  from 1 MiB         once more: it is there, no effect
          57   a mutation that loads a3-1/1.tsfile, of so many bytes with that checksum
                 whole      a LOAD's staged file like any other (`saros_storage.loading`), in the log's order
                 else       refused (LOST): whoever sent it begins again, under another name
          58   Piece  a3-1  from byte 0        so late that it begins another file, and leaves that one alone
          59   Abandon a3-1                    what is left of it goes: nobody will continue it

So a file's content follows from the log alone: a member that lags, restarts or gets a snapshot reaches the same state.
Pieces are durable only in the log, which therefore keeps everything from a file's first piece on until a manifest lists
the file (`first_needed`); a replay finds the pieces again. If a replay begins in the middle of a file, that file is no
longer needed, and is ignored.

Called by the thread that applies entries; `first_needed` and `stale` from any thread under the region's lock.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from saros_storage.base.errors import CorruptFile, UserMistake
from saros_storage.io.disk import FULL_ERRNOS, Disk
from saros_storage.loading.staging import Staging
from saros_storage.mutation.staged import StagedFile

#: Code of the refusal: send the file again.
LOST = 2027
#: Bytes of a piece at most: far below what an entry may have, so that other entries find their way between them.
PIECE_BYTES = 1 << 20
_NAME = re.compile(r"[0-9a-f]{1,16}-[0-9a-f]{1,16}")


@dataclass(frozen=True, slots=True)
class Piece:
    """The bytes of file `name` from `offset` on."""

    name: str
    offset: int
    data: bytes | memoryview = field(repr=False)


@dataclass(frozen=True, slots=True)
class Abandon:
    """File `name` will not be loaded, or was."""

    name: str


Shipping = Piece | Abandon


def shipment_name(client: int, sequence: int) -> str:
    """The name of what a request sends; never given twice."""
    return f"{client:x}-{sequence:x}"


def staged_name(name: str) -> str:
    """What the entry that loads a shipment calls it."""
    return f"{name}/1.tsfile"


def _place(name: str, first: int) -> str:
    """Where a shipment that entry `first` began lies within the staging folder: no other one ever does."""
    return f"{name}-{first}/1.tsfile"


def check_name(name: str) -> None:
    """Raise CorruptFile unless it is a shipment's name: no other may become a path."""
    if _NAME.fullmatch(name) is None:
        raise CorruptFile("log", 0, f"no name of a shipment: {name!r}")


def shipping_to_json(shipping: Shipping) -> list[object]:
    """As values that JSON knows, but for the data."""
    return [shipping.name, shipping.offset] if isinstance(shipping, Piece) else [shipping.name]


def shipping_from_json(words: Sequence[Any], data: memoryview) -> Shipping:
    """The inverse. Raises CorruptFile."""
    match words:
        case [str(name), int(offset)] if offset >= 0 and 0 < len(data) <= PIECE_BYTES:
            check_name(name)
            return Piece(name, offset, data)
        case [str(name)] if not data:
            check_name(name)
            return Abandon(name)
    raise CorruptFile("log", 0, "not a piece of a file")


@dataclass(slots=True)
class _ShippedFile:
    """`first`: the entry that began it."""

    first: int
    touched_ns: int
    size: int = 0
    crc32: int = 0


class ShippedFiles:
    """See the module."""

    def __init__(self, staging: Staging, disk: Disk) -> None:
        """Of a region that has just been opened, and has applied nothing: what is staged there comes again."""
        self._staging = staging
        self._disk = disk
        #: What is under way.
        self._known: dict[str, _ShippedFile] = {}
        #: First pieces of files that wait for their places in manifests, by names as the region knows them.
        self._loading: dict[str, int] = {}
        staging.sweep(())

    def fits(self, piece: Piece) -> bool:
        """Whether the piece continues what is here, or was here before."""
        known = self._known.get(piece.name)
        return piece.offset <= (0 if known is None else known.size)

    def write(self, index: int, piece: Piece, wait: Callable[[], bool]) -> None:
        """Put down the bytes of entry `index`, a piece that is the next one, without a lock. Any other has no effect.

        A full disk is waited for: `wait` does, and says whether to go on. Raises OSError.
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
            if self._disk.size(path) > piece.offset:  # there was room for some of it only
                self._disk.truncate(path, piece.offset)
            file = self._disk.append(path)
        try:
            file.write([piece.data])
        finally:
            file.close()

    def record(self, index: int, piece: Piece, now_ns: int) -> None:
        """What `write` put down is there as of entry `index`. Under the region's lock."""
        known = self._known.get(piece.name)
        if known is None and piece.offset == 0:
            known = self._known[piece.name] = _ShippedFile(index, now_ns)
        if known is not None and piece.offset == known.size:
            known.size += len(piece.data)
            known.crc32 = zlib.crc32(piece.data, known.crc32)
            known.touched_ns = now_ns

    def complete(self, wanted: StagedFile) -> StagedFile:
        """A file that is to be loaded, as a region takes it. Raises UserMistake if it is not here, whole and sound."""
        known = self._known.get(_name_of(wanted))
        if known is None or (known.size, known.crc32) != (wanted.size, wanted.crc32):
            raise UserMistake("the file has not come as a whole: send it again", code=LOST)
        try:
            return self._staging.complete(replace(wanted, name=_place(_name_of(wanted), known.first)))
        except CorruptFile as error:
            raise UserMistake(f"what was sent is no TsFile: {error}", code=error.code) from error

    def load(self, staged: StagedFile) -> None:
        """The region takes the file over now; under its lock."""
        self._loading[staged.name] = self._known.pop(_name_of(staged)).first

    def drop(self, name: str) -> None:
        """Nobody needs a shipment any more; under the region's lock. Raises OSError."""
        known = self._known.pop(name, None)
        if known is not None:
            self._staging.discard([_place(name, known.first)])

    def drop_of(self, staged: StagedFile) -> None:
        """The same of a file that is not to be loaded."""
        self.drop(_name_of(staged))

    def first_needed(self, waiting: Collection[str]) -> int | None:
        """The first entry that must come again after a start, if any; `waiting`: loaded files that no manifest has."""
        self._loading = {name: first for name, first in self._loading.items() if name in waiting}
        return min((*(s.first for s in self._known.values()), *self._loading.values()), default=None)

    def stale(self, before_ns: int) -> list[str]:
        """What nobody has continued since that time of the clock."""
        return [name for name, shipment in self._known.items() if shipment.touched_ns < before_ns]


def _name_of(staged: StagedFile) -> str:
    """The shipment's name, of what an entry calls it or where it lies."""
    return "-".join(staged.name.partition("/")[0].split("-")[:2])
