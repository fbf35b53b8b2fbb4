"""Rows of queries that do not fit in memory and are spilled to unnamed files in the data folder.

    QuerySpill        the spill space of one query, with its limit
     └─ SpillFile     one operator's file:  write(block) -> Spilled (its place)     read(Spilled) -> block

The files have no name (O_TMPFILE, or unlinked right after creation), so no file remains, however the process ends. A
block is written as its arrays, one after another; the types and lengths of the arrays stay in memory.

`QuerySpill` is thread-safe; a file is used only by the thread of its operator.
"""

from __future__ import annotations

import os
import tempfile
import threading

import msgspec
import numpy as np

from saros_engine.base.errors import MemoryExceeded
from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.types import NUMPY_DTYPE, DataType
from saros_storage.io.disk import FULL_ERRNOS

_Array = np.ndarray[tuple[int], np.dtype[np.generic]]


class QuerySpill:
    """The spill space of one query, shared by its operators. Thread-safe."""

    def __init__(self, folder: str, bytes_max: int) -> None:
        self._folder = folder
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._bytes = 0
        self._peak = 0

    @property
    def bytes(self) -> int:
        """Bytes currently in files."""
        return self._bytes

    @property
    def peak(self) -> int:
        """The peak number of bytes in files."""
        return self._peak

    def open(self) -> SpillFile:
        """Return a new, empty file."""
        return SpillFile(self, self._folder)

    def reserve(self, count: int) -> None:
        """Reserve `count` bytes of the limit. Raises MemoryExceeded if fewer bytes are left."""
        with self._lock:
            wanted = self._bytes + count
            if wanted > self._bytes_max:
                raise MemoryExceeded(
                    f"the query's rows exceed its memory and {self._bytes_max} bytes of files: narrow"
                    " it, or raise query_memory_bytes or query_spill_bytes"
                )
            self._bytes = wanted
            self._peak = max(self._peak, wanted)

    def release(self, count: int) -> None:
        """Give back `count` reserved bytes."""
        with self._lock:
            assert count <= self._bytes
            self._bytes -= count


class Spilled(msgspec.Struct, frozen=True):
    """The place of a block in the file, and its layout.

    `arrays` has the type and length of each array. `columns` has the type of each column, and whether it has a mask.
    """

    offset: int
    rows: int
    timed: bool
    arrays: tuple[tuple[np.dtype[np.generic], int], ...]
    columns: tuple[tuple[DataType, bool], ...]

    @property
    def nbytes(self) -> int:
        """The size of the block, in the file and in memory."""
        return sum(dtype.itemsize * count for dtype, count in self.arrays)


class SpillFile:
    """One operator's unnamed file. Not thread-safe."""

    def __init__(self, owner: QuerySpill, folder: str) -> None:
        self._owner = owner
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (closed by `close`)
        self._size = 0

    def write(self, block: Block) -> Spilled:
        """Append a block. Raises MemoryExceeded if the query's limit would be exceeded or the disk is full."""
        arrays = _arrays_of(block)
        kinds = tuple((column.type, column.valid is not None) for column in block.columns)
        shapes = tuple((array.dtype, len(array)) for array in arrays)
        spilled = Spilled(self._size, block.rows, block.time is not None, shapes, kinds)
        self._owner.reserve(spilled.nbytes)
        self._size += spilled.nbytes
        try:
            for array in arrays:
                _write_all(self._file.fileno(), np.ascontiguousarray(array).view(np.uint8).data)
        except OSError as error:
            if error.errno in FULL_ERRNOS:
                raise MemoryExceeded(
                    "the disk has no space for rows that exceed the memory: free space, or narrow the query"
                ) from error
            raise
        return spilled

    def read(self, spilled: Spilled) -> Block:
        """Read back a block."""
        raw = os.pread(self._file.fileno(), spilled.nbytes, spilled.offset)
        while len(raw) < spilled.nbytes:  # one system call reads at most 2 GiB
            raw += os.pread(self._file.fileno(), spilled.nbytes - len(raw), spilled.offset + len(raw))
        arrays, at = [], 0
        for dtype, count in spilled.arrays:
            arrays.append(np.frombuffer(raw, dtype, count, at))
            at += dtype.itemsize * count
        return _block_of(spilled, arrays)

    def close(self) -> None:
        """Delete the file. Idempotent."""
        self._file.close()
        self._owner.release(self._size)
        self._size = 0


def _write_all(fd: int, rest: memoryview) -> None:
    while rest:
        rest = rest[os.write(fd, rest) :]


def _arrays_of(block: Block) -> list[_Array]:
    """Return the arrays of a block: its times, and then the values and the mask of each column.

    The values of a text column are two arrays: offsets and bytes.
    """
    found: list[_Array] = [] if block.time is None else [block.time]
    for column in block.columns:
        if isinstance(column.values, TextArray):
            offsets = column.values.offsets
            found += [offsets - offsets[0], column.values.data[offsets[0] : offsets[-1]]]
        else:
            found.append(column.values)
        if column.valid is not None:
            found.append(column.valid)
    return found


def _block_of(spilled: Spilled, arrays: list[_Array]) -> Block:
    rest = iter(arrays)
    time = next(rest).view(np.int64) if spilled.timed else None
    columns = []
    for type_, masked in spilled.columns:
        values: TextArray | _Array
        values = TextArray(next(rest).view(np.int32), next(rest).view(np.uint8)) if type_.is_text else next(rest)
        mask = next(rest).view(np.bool_) if masked else None
        columns.append(
            Column(type_, values if isinstance(values, TextArray) else values.view(NUMPY_DTYPE[type_]), mask)
        )
    return Block(time, tuple(columns), spilled.rows)
