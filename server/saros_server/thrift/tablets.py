"""Tablets of IoTDB's session protocol: rows of one device, column by column.

    timestamps   int64 ...
    values       column | column | ... [flag of the first column | its bitmap if the flag is set | flag ...]
                 plain numbers, length-prefixed texts; a bitmap has a bit for each row, 1 for null, lowest bit first

A message with extra bytes is invalid. Nothing loops over points. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import msgspec
import numpy as np

from saros_server.api.errors import BadMessage
from saros_server.api.insert_checks import check_days, measurements_of
from saros_server.api.insert_request import InsertRequest
from saros_server.thrift.values import SIZES, mask_of, numbers, texts, type_of
from saros_storage.base.block import Column, TextArray, Values
from saros_storage.base.types import BoolArray, ByteArray, DataType, Int64Array
from saros_storage.kernels.prefixed import prefixed_offsets


class TabletMessage(msgspec.Struct, frozen=True):
    """A tablet as it was sent."""

    device: str
    aligned: bool | None
    measurements: Sequence[str]
    types: Sequence[int]
    rows: int
    timestamps: bytes | memoryview
    values: bytes | memoryview


def insert_of(tablet: TabletMessage) -> InsertRequest:
    """Return the insert of a tablet. Raises BadMessage, and UserMistake for names (509, 701) and dates (2008)."""
    rows, names = tablet.rows, tablet.measurements
    if len(tablet.types) != len(names):
        raise BadMessage(f"a tablet has {len(names)} measurements, and types of {len(tablet.types)}")
    if rows < 0 or len(tablet.timestamps) != 8 * rows:
        raise BadMessage(
            f"a tablet of {rows} rows has {len(tablet.timestamps)} bytes of timestamps: 8 a row are needed"
        )
    canonical = measurements_of(tuple(names))
    types = [type_of(code) for code in tablet.types]
    reader = _ColumnReader(np.frombuffer(tablet.values, np.uint8), rows)
    values: list[Values] = []
    for type_, same in groupby(types):
        values += reader.columns(type_, len(list(same)))
    columns = [Column(t, v, valid) for t, v, valid in zip(types, values, reader.masks(len(types)), strict=True)]
    for name, column in zip(canonical, columns, strict=True):
        if column.type is DataType.DATE:
            check_days(name, column)
    return InsertRequest(tablet.device, tablet.aligned, 0, _times(tablet), dict(zip(canonical, columns, strict=True)))


def _times(tablet: TabletMessage) -> Int64Array:
    return np.frombuffer(tablet.timestamps, ">i8").astype(np.int64)


class _ColumnReader:
    """Reads a message: first the columns, one after the other, then the columns' bitmaps."""

    def __init__(self, data: ByteArray, rows: int) -> None:
        self._data = data
        self._rows = rows
        #: The offset of the next column, flag or bitmap.
        self._at = 0

    def columns(self, type_: DataType, count: int) -> list[Values]:
        """Read `count` columns of one type. Raises BadMessage."""
        if type_.is_text:
            return [self._texts() for _ in range(count)]
        raw = self._take(count * self._rows * SIZES[type_])
        return list(numbers(type_, raw.reshape(count, self._rows, SIZES[type_])))

    def masks(self, count: int) -> list[BoolArray | None]:
        """Read the bitmaps of all columns, which end the message. Raises BadMessage."""
        if self._at == len(self._data):
            return [None] * count
        masks = [self._mask() for _ in range(count)]
        if self._at != len(self._data):
            raise BadMessage(
                f"{len(self._data) - self._at} bytes are left after the columns of a tablet and their bitmaps"
            )
        return masks

    def _mask(self) -> BoolArray | None:
        (has_nulls,) = self._take(1)
        return mask_of(self._take(self._rows // 8 + 1), self._rows) if has_nulls else None

    def _texts(self) -> TextArray:
        offsets = np.empty(self._rows + 1, np.int32)
        end = prefixed_offsets(self._data, self._at, offsets)
        if end < 0:
            raise BadMessage("a text of a tablet is longer than its column, or has a negative length")
        starts = offsets[:-1] + np.arange(self._at + 4, self._at + 4 * self._rows + 4, 4)
        self._at = end
        return texts(self._data, starts, offsets)

    def _take(self, count: int) -> ByteArray:
        """Return the next bytes. Raises BadMessage if there are fewer."""
        end = self._at + count
        if end > len(self._data):
            raise BadMessage(
                f"the values of a tablet end after {len(self._data)} bytes; its {self._rows} rows need at least {end}"
            )
        taken = self._data[self._at : end]
        self._at = end
        return taken
