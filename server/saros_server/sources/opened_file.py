"""A file to import: what it holds, told by its content and not by its name, and its bytes, unpacked.

    gzip, zstd, bzip2, lz4    unpacked while they are read
    Parquet, TsFile           by their first bytes
    { in front                JSON lines
    other text                CSV
    anything else             refused by what it is

A compressed file may hold a thousand times its size, so nothing here is read as a whole: lines have a limit.

Pure but for reading the file. Not thread-safe.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import AnyStr, BinaryIO

import pyarrow as pa

from saros_server.sources.source_options import SourceError

FORMATS = ("csv", "json", "parquet", "tsfile")
#: The compressions that are unpacked, as Arrow calls them, by what files of them begin with.
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\x04\x22\x4d\x18": "lz4"}
#: Endings of names of such files.
COMPRESSED_SUFFIXES = (".gz", ".zst", ".bz2", ".lz4")
PARQUET_MAGIC = b"PAR1"
_TSFILE = b"TsFile"
_TYPED = {PARQUET_MAGIC: "parquet", _TSFILE: "tsfile"}
#: Files that are refused.
_REFUSED = {
    b"PK\x03\x04": "a zip archive, as spreadsheets are: unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet or document of Microsoft Office: save the sheet as CSV",
    b"\xfd7zXZ": "compressed (xz): unpack it first",
    b"7z\xbc\xaf": "compressed (7-Zip): unpack it first",
    b"ARROW1": "an Arrow file: write it as Parquet",
    b"ORC": "an ORC file: write it as Parquet",
    b"Obj\x01": "an Avro file: write it as Parquet",
    b"SQLite format 3": "an SQLite database: export its tables as CSV",
    b"\x89HDF": "an HDF5 file: write its tables as Parquet",
    b"%PDF": "a PDF document",
}
_HEAD_BYTES = 4_096
#: Characters of a line; Arrow parses a CSV in pieces of as many bytes.
LINE_CHARACTERS_MAX = 4 << 20
#: Columns of a file; each takes some kilobytes.
COLUMNS_MAX = 100_000
#: Bytes in front of a part that are read at once.
_SKIPPED_BYTES = 1 << 20
#: Bytes that no text of one byte or more per character has.
_NO_TEXT = frozenset(range(0x09)) | frozenset(range(0x0E, 0x1B))
#: A text may have control characters if it decodes. In UTF-16 taken for UTF-8 every second byte is zero; fewer than one
#: in four are allowed.
_NULS_MIN = 4
#: How a text of two or four bytes per character may begin.
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of one format, or a part of its unpacked bytes."""

    path: Path
    #: The name in messages.
    name: str
    format: str
    #: Arrow's name of it.
    compression: str | None
    #: The part that is read; None: to the end.
    start: int = 0
    stop: int | None = None

    @property
    def size(self) -> int:
        """Bytes of the file as it is."""
        return self.path.stat().st_size

    @contextmanager
    def opened(self) -> Iterator[OpenedFile]:
        """Open the bytes, unpacked."""
        with pa.OSFile(str(self.path)) as raw:
            stream = raw if self.compression is None else pa.CompressedInputStream(raw, self.compression)
            if self.start or self.stop is not None:
                stream = pa.PythonFile(_Part(stream, self.start, self.stop), mode="r")
            yield OpenedFile(stream, raw)

    @contextmanager
    def lines(self, encoding: str, errors: str = "strict") -> Iterator[Iterator[str]]:
        """Open the lines with their ends, without a byte order mark. They raise SourceError if one is too long."""
        marked = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
        with self.opened() as file:
            stream = io.TextIOWrapper(file.stream, encoding=marked, errors=errors, newline="")
            yield self.checked(iter(partial(stream.readline, LINE_CHARACTERS_MAX + 1), ""))

    def checked(self, lines: Iterator[AnyStr]) -> Iterator[AnyStr]:
        """Yield the lines. Raises SourceError for one that is too long."""
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_CHARACTERS_MAX:
                raise SourceError(f"{self.name}, line {number}, has more than {LINE_CHARACTERS_MAX} characters")
            yield line

    def check_columns(self, count: int) -> None:
        """Raise SourceError if these are too many columns."""
        if count > COLUMNS_MAX:
            raise SourceError(f"{self.name} has more than {COLUMNS_MAX} columns: import it in parts")


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """The bytes of a file, and how many of the file as it is were read."""

    stream: BinaryIO
    raw: BinaryIO

    @property
    def position(self) -> int:
        """Bytes of the file that were read."""
        return self.raw.tell()


class _Part(io.RawIOBase):
    """The bytes of a stream from `start` to `stop`."""

    def __init__(self, stream: BinaryIO, start: int, stop: int | None) -> None:
        self._stream = stream
        self._left = None if stop is None else stop - start
        while start and (skipped := len(stream.read(min(start, _SKIPPED_BYTES)))):
            start -= skipped

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes."""
        wanted = -1 if size is None else size
        if self._left is not None:
            wanted = self._left if wanted < 0 else min(wanted, self._left)
        found = self._stream.read() if wanted < 0 else self._stream.read(wanted)
        if self._left is not None:
            self._left -= len(found)
        return found


def is_tsfile(path: Path) -> bool:
    """Whether the file begins as a TsFile does. Raises OSError."""
    with path.open("rb") as stream:
        return stream.read(len(_TSFILE)) == _TSFILE


def input_file(path: Path, name: str, format_: str | None, encoding: str) -> InputFile:
    """Look at the file; `format_`: what it is said to be. Raises SourceError for what cannot be imported, OSError."""
    with path.open("rb") as stream:
        packed = stream.read(_HEAD_BYTES)
    compression = next((way for mark, way in _COMPRESSIONS.items() if packed.startswith(mark)), None)
    unpacked = InputFile(path, name, "", compression)
    with unpacked.opened() as file:
        head = file.stream.read(_HEAD_BYTES)
    found = _format_of(head, name, encoding, said=format_)
    if compression is not None and found in _TYPED.values():
        raise SourceError(f"{name} is compressed ({compression}): a file of this format is unpacked first")
    return InputFile(path, name, found, compression)


def _format_of(head: bytes, name: str, encoding: str, *, said: str | None) -> str:
    typed = next((format_ for mark, format_ in _TYPED.items() if head.startswith(mark)), None)
    if typed is not None or said in _TYPED.values():
        return typed or str(said)
    refused = next((what for mark, what in _REFUSED.items() if head.startswith(mark)), None)
    if refused is not None:
        raise SourceError(f"{name} is {refused}")
    if not _is_text(head, encoding):
        raise SourceError(
            f"{name} is no text, and neither Parquet nor TsFile; of a text, --encoding says how it is written, such as "
            "utf-16"
        )
    if said is not None:
        return said
    begin = head.decode(encoding, errors="replace").lstrip("\ufeff \t\r\n")[:1]
    if begin == "[":
        raise SourceError(f"{name} is a JSON array: write one object per line, such as with jq -c '.[]'")
    if begin == "<":
        raise SourceError(f"{name} is XML or HTML: import reads CSV, JSON lines, Parquet and TsFiles")
    return "json" if begin == "{" else "csv"


def _is_text(head: bytes, encoding: str) -> bool:
    """Return whether a file with these first bytes can be a text."""
    wide = encoding.lower().startswith(("utf-16", "utf-32", "utf16", "utf32")) or head.startswith(_WIDE_MARKS)
    if wide or _NO_TEXT.isdisjoint(head):
        return True
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    return _NULS_MIN * head.count(0) < len(head)
