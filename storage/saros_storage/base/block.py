"""Columns and blocks: the batches of rows that flow from the files through the operators to the client.

A `Column` is a NumPy array (or a `TextArray`) plus an optional byte mask; a `Block` is columns of equal length and,
where rows carry a time, one int64 time array. Text has Arrow's layout (int32 offsets, UTF-8 or raw bytes), so that a
block becomes Arrow without a copy.

    time     0   10   20          int64[n], or None: rows without time (SHOW, an aggregate without window)
    values   1.0 ?    3.0         the dtype of the type; slots that are not valid contain arbitrary bits
    valid    T   F    T           bool[n], or None: all valid

Invariants: every column has `rows` values; `valid` is None if the producer can cheaply tell that all values are
present, but consumers must accept an all-True mask too. Arrays never change once a block has been passed on: they may
be views of a MemTable or of the chunk cache.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from saros_storage.base.types import (
    NUMPY_DTYPE,
    BoolArray,
    ByteArray,
    DataType,
    Int32Array,
    Int64Array,
    NumericArray,
    Scalar,
)


class TextArray(msgspec.Struct, frozen=True, eq=False):
    """Variable-length bytes in Arrow's layout: value i is `data[offsets[i]:offsets[i + 1]]`.

    `offsets` is int32[n + 1], non-decreasing; it need not start at 0 (a slice shares `data`).
    """

    offsets: Int32Array
    data: ByteArray

    @staticmethod
    def of(values: Iterable[str | bytes | None]) -> TextArray:
        """Build from Python values. None becomes the empty value, so the caller must keep a mask."""
        parts = [b"" if v is None else v.encode() if isinstance(v, str) else bytes(v) for v in values]
        offsets = np.zeros(len(parts) + 1, np.int32)
        np.cumsum([len(p) for p in parts], out=offsets[1:])
        return TextArray(offsets, np.frombuffer(b"".join(parts), np.uint8))

    @staticmethod
    def concat(parts: Sequence[TextArray]) -> TextArray:
        """Concatenate the parts."""
        lengths = [np.diff(p.offsets) for p in parts]
        offsets = np.zeros(sum(len(p) for p in parts) + 1, np.int32)
        if lengths:
            np.cumsum(np.concatenate(lengths), out=offsets[1:])
        data = [p.data[p.offsets[0] : p.offsets[-1]] for p in parts]
        return TextArray(offsets, np.concatenate(data) if data else np.empty(0, np.uint8))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Size in bytes of the offsets, and of the data between the first and the last offset."""
        return self.offsets.nbytes + int(self.offsets[-1] - self.offsets[0])

    @property
    def sound(self) -> bool:
        """True if the offsets never decrease and stay within the data; data from other programs may violate this."""
        ends = int(self.offsets[0]) >= 0 and int(self.offsets[-1]) <= len(self.data)
        return ends and bool((self.offsets[1:] >= self.offsets[:-1]).all())

    def slice(self, start: int, stop: int) -> TextArray:
        """Return values [start, stop), sharing the data."""
        return TextArray(self.offsets[start : stop + 1], self.data)

    def take(self, indices: Int64Array) -> TextArray:
        """Return the values at `indices`, in that order."""
        starts = self.offsets[:-1][indices]
        lengths = self.offsets[1:][indices] - starts
        offsets = np.zeros(len(indices) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        source = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1], dtype=np.int32)
        return TextArray(offsets, self.data[source])

    def value(self, index: int) -> bytes:
        """Return value `index` as bytes."""
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()

    def to_bytes(self) -> list[bytes]:
        """Return all values as Python bytes."""
        raw = self.data.tobytes()
        bounds = self.offsets.tolist()
        return [raw[a:b] for a, b in pairwise(bounds)]


Values = NumericArray | TextArray


class Column(msgspec.Struct, frozen=True, eq=False):
    """Values of one type; `valid` is None (all present) or a bool mask of the same length."""

    type: DataType
    values: Values
    valid: BoolArray | None = None

    @staticmethod
    def of(type_: DataType, values: Sequence[Scalar]) -> Column:
        """Build from Python values; None means null. This is slow, so it is only for few values and for tests."""
        valid = np.array([v is not None for v in values], np.bool_)
        mask = None if valid.all() else valid
        if type_.is_text:
            return Column(type_, TextArray.of(v if isinstance(v, (str, bytes)) else None for v in values), mask)
        filled = [0 if v is None else v for v in values]
        return Column(type_, np.array(filled, NUMPY_DTYPE[type_]), mask)

    @staticmethod
    def nulls(type_: DataType, count: int) -> Column:
        """Return a column of `count` nulls."""
        valid = np.zeros(count, np.bool_)
        if type_.is_text:
            return Column(type_, TextArray(np.zeros(count + 1, np.int32), np.empty(0, np.uint8)), valid)
        return Column(type_, np.zeros(count, NUMPY_DTYPE[type_]), valid)

    def scattered(self, rows: Int64Array, count: int) -> Column:
        """Return a column of `count` rows: this column's values at `rows`, which ascend, and nulls elsewhere."""
        assert self.valid is None
        if len(rows) == count:
            return self
        valid = np.zeros(count, np.bool_)
        valid[rows] = True
        if isinstance(self.values, TextArray):
            places = np.zeros(count + 1, np.int64)
            np.cumsum(valid, out=places[1:])
            return Column(self.type, TextArray(self.values.offsets[places], self.values.data), valid)
        values = np.zeros(count, self.values.dtype)
        values[rows] = self.values
        return Column(self.type, values, valid)

    @staticmethod
    def concat(parts: Sequence[Column]) -> Column:
        """Concatenate the parts (at least one, all of one type)."""
        if len(parts) == 1:
            return parts[0]
        valid: BoolArray | None = None
        if any(p.valid is not None for p in parts):
            valid = np.concatenate([np.ones(len(p), np.bool_) if p.valid is None else p.valid for p in parts])
        values: Values
        if parts[0].type.is_text:
            values = TextArray.concat([p.text for p in parts])
        else:
            values = np.concatenate([p.numbers for p in parts])
        return Column(parts[0].type, values, valid)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def numbers(self) -> NumericArray:
        """The values of a column that is not text-like."""
        assert isinstance(self.values, np.ndarray)
        return self.values

    @property
    def text(self) -> TextArray:
        """The values of a text-like column."""
        assert isinstance(self.values, TextArray)
        return self.values

    @property
    def nbytes(self) -> int:
        """Size in bytes, for memory accounting."""
        return int(self.values.nbytes) + (0 if self.valid is None else self.valid.nbytes)

    @property
    def present(self) -> BoolArray:
        """The mask; created if all values are present."""
        return np.ones(len(self), np.bool_) if self.valid is None else self.valid

    @property
    def present_count(self) -> int:
        """The number of values that are not null."""
        return len(self.values) if self.valid is None else int(np.count_nonzero(self.valid))

    def slice(self, start: int, stop: int) -> Column:
        """Return rows [start, stop), without a copy."""
        valid = None if self.valid is None else self.valid[start:stop]
        if isinstance(self.values, TextArray):
            return Column(self.type, self.values.slice(start, stop), valid)
        return Column(self.type, self.values[start:stop], valid)

    def take(self, indices: Int64Array) -> Column:
        """Return the rows at `indices`, in that order."""
        valid = None if self.valid is None else self.valid[indices]
        if isinstance(self.values, TextArray):
            return Column(self.type, self.values.take(indices), valid)
        return Column(self.type, self.values[indices], valid)

    def compress(self, mask: BoolArray) -> Column:
        """Return the rows where `mask` is true."""
        return self.take(np.flatnonzero(mask))

    def to_list(self) -> list[Scalar]:
        """Return Python values: None for null, str for TEXT and STRING, bytes for BLOB. This is slow."""
        plain: list[Scalar]
        if isinstance(self.values, TextArray):
            raw = self.values.to_bytes()
            plain = list(raw) if self.type is DataType.BLOB else [v.decode("utf-8", "replace") for v in raw]
        else:
            plain = self.values.tolist()
        if self.valid is None:
            return plain
        return [v if ok else None for v, ok in zip(plain, self.valid.tolist(), strict=True)]


class Block(msgspec.Struct, frozen=True, eq=False):
    """Rows in columns: `time` is int64[rows] or None, and every column has `rows` values."""

    time: Int64Array | None
    columns: tuple[Column, ...]
    rows: int
    #: The size in bytes. It is cached, since every operator that a block passes through asks for it.
    _nbytes: int | None = None

    @staticmethod
    def timed(time: Int64Array, columns: Iterable[Column]) -> Block:
        """Build a block whose rows carry times."""
        return Block(time, tuple(columns), len(time))

    @staticmethod
    def untimed(columns: Sequence[Column], rows: int | None = None) -> Block:
        """Build a block without times; `rows` is needed only if there is no column."""
        return Block(None, tuple(columns), len(columns[0]) if rows is None else rows)

    @property
    def times(self) -> Int64Array:
        """The time array of a block with times."""
        assert self.time is not None
        return self.time

    @property
    def nbytes(self) -> int:
        """Size in bytes, for memory accounting."""
        found = self._nbytes
        if found is None:
            found = (0 if self.time is None else self.time.nbytes) + sum([c.nbytes for c in self.columns])
            force_setattr(self, "_nbytes", found)
        return found

    def slice(self, start: int, stop: int) -> Block:
        """Return rows [start, stop), without a copy."""
        stop = min(stop, self.rows)
        start = min(start, stop)
        time = None if self.time is None else self.time[start:stop]
        return Block(time, tuple([c.slice(start, stop) for c in self.columns]), stop - start)

    def take(self, indices: Int64Array) -> Block:
        """Return the rows at `indices`, in that order."""
        time = None if self.time is None else self.time[indices]
        return Block(time, tuple(c.take(indices) for c in self.columns), len(indices))

    def reversed(self) -> Block:
        """Return the rows in reverse order."""
        return self.take(np.arange(self.rows - 1, -1, -1))

    def compress(self, mask: BoolArray) -> Block:
        """Return the rows where `mask` is true."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def without_empty_rows(self) -> Block:
        """Return the rows that have a value in at least one column."""
        masks = [column.valid for column in self.columns if column.valid is not None]
        if not masks or len(masks) < len(self.columns):
            return self
        present = masks[0].copy()
        for mask in masks[1:]:
            present |= mask
        return self.compress(present)

    @staticmethod
    def concat(parts: Sequence[Block]) -> Block:
        """Concatenate at least one block; all must have the same column types, and either all or none have times."""
        if len(parts) == 1:
            return parts[0]
        time = None if parts[0].time is None else np.concatenate([p.times for p in parts])
        columns = tuple(Column.concat(c) for c in zip(*(p.columns for p in parts), strict=True))
        return Block(time, columns, sum(p.rows for p in parts))
