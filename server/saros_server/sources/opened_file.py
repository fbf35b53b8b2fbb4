"""A file to import: its format, detected from the content and not from the name, and its decompressed bytes.

    gzip, zstd, bzip2, lz4    decompressed while reading
    Parquet, TsFile           detected by their first bytes
    text that begins with {   JSON lines
    other text                CSV
    anything else             refused, with the name of the format if it is known

A compressed file may expand a thousandfold. So no file is read as a whole, and the length of a line is limited. Not
thread-safe.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import AnyStr, BinaryIO

import msgspec
import pyarrow as pa

from saros_server.sources.source_options import SourceError

FORMATS = ("csv", "json", "parquet", "tsfile")
#: Arrow's name of each compression, by the first bytes of a file that is compressed with it.
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\x04\x22\x4d\x18": "lz4"}
#: The suffixes that the names of compressed files usually have.
COMPRESSED_SUFFIXES = (".gz", ".zst", ".bz2", ".lz4")
PARQUET_MAGIC = b"PAR1"
_TSFILE = b"TsFile"
_TYPED = {PARQUET_MAGIC: "parquet", _TSFILE: "tsfile"}
#: A description of each unsupported format, by the first bytes of its files.
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
#: Limit on the length of a line. The blocks in which Arrow parses CSV have as many bytes.
LINE_CHARACTERS_MAX = 4 << 20
#: Limit on the columns of a file; each column takes several kilobytes of memory.
COLUMNS_MAX = 100_000
#: Number of bytes that are read at a time to skip the bytes before a part.
_SKIPPED_BYTES = 1 << 20
#: Bytes that do not occur in a text in UTF-8 or in a single-byte encoding.
_NO_TEXT = frozenset(range(0x09)) | frozenset(range(0x0E, 0x1B))
#: A file that can be decoded may be a text with control characters, if fewer than one byte in this number is zero. If
#: UTF-16 is mistaken for UTF-8, about every second byte is zero.
_NULS_MIN = 4
#: Byte order marks of encodings with two or four bytes per character.
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")


class InputFile(msgspec.Struct, frozen=True):
    """A file of a known format, or a part of its decompressed bytes."""

    path: Path
    #: The name in messages.
    name: str
    format: str
    #: Arrow's name of the compression, or None.
    compression: str | None
    #: The range of decompressed bytes to read. If `stop` is None, the range extends to the end of the file.
    start: int = 0
    stop: int | None = None

    @property
    def size(self) -> int:
        """The size of the file on disk, in bytes."""
        return self.path.stat().st_size

    @contextmanager
    def opened(self) -> Iterator[OpenedFile]:
        """Open the file for reading decompressed bytes."""
        with pa.OSFile(str(self.path)) as raw:
            stream = raw if self.compression is None else pa.CompressedInputStream(raw, self.compression)
            if self.start or self.stop is not None:
                stream = pa.PythonFile(_Part(stream, self.start, self.stop), mode="r")
            yield OpenedFile(stream, raw)

    @contextmanager
    def lines(self, encoding: str, errors: str = "strict") -> Iterator[Iterator[str]]:
        """Open the file for reading lines, with line ends but without a byte order mark.

        The iterator raises SourceError for a line that is too long.
        """
        marked = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
        with self.opened() as file:
            stream = io.TextIOWrapper(file.stream, encoding=marked, errors=errors, newline="")
            yield self.checked(iter(partial(stream.readline, LINE_CHARACTERS_MAX + 1), ""))

    def checked(self, lines: Iterator[AnyStr]) -> Iterator[AnyStr]:
        """Yield the lines. Raises SourceError for a line that is too long."""
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_CHARACTERS_MAX:
                raise SourceError(f"{self.name}, line {number}, has more than {LINE_CHARACTERS_MAX} characters")
            yield line

    def check_columns(self, count: int) -> None:
        """Check the number of columns. Raises SourceError."""
        if count > COLUMNS_MAX:
            raise SourceError(f"{self.name} has more than {COLUMNS_MAX} columns: import it in parts")


class OpenedFile(msgspec.Struct, frozen=True):
    """An open file: the stream of its decompressed bytes, and the stream of the file on disk."""

    stream: BinaryIO
    raw: BinaryIO

    @property
    def position(self) -> int:
        """The number of bytes read from the file on disk."""
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
    """Return whether the file begins with the first bytes of a TsFile. Raises OSError."""
    with path.open("rb") as stream:
        return stream.read(len(_TSFILE)) == _TSFILE


def input_file(path: Path, name: str, format_: str | None, encoding: str) -> InputFile:
    """Detect the format and the compression of a file. An option may state its format in `format_`.

    Raises SourceError if the file cannot be imported, and OSError.
    """
    with path.open("rb") as stream:
        packed = stream.read(_HEAD_BYTES)
    compression = next((way for mark, way in _COMPRESSIONS.items() if packed.startswith(mark)), None)
    unpacked = InputFile(path, name, "", compression)
    with unpacked.opened() as file:
        head = file.stream.read(_HEAD_BYTES)
    found = _format_of(head, name, encoding, said=format_)
    if compression is not None and found in _TYPED.values():
        raise SourceError(f"{name} is compressed ({compression}): decompress a file of this format first")
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
            f"{name} is neither text, Parquet nor TsFile; for text in another encoding, pass --encoding, such as utf-16"
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
    """Return whether a file that begins with these bytes may be a text."""
    wide = encoding.lower().startswith(("utf-16", "utf-32", "utf16", "utf32")) or head.startswith(_WIDE_MARKS)
    if wide or _NO_TEXT.isdisjoint(head):
        return True
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    return _NULS_MIN * head.count(0) < len(head)
