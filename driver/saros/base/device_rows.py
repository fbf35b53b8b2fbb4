"""Rows of several devices, grouped by device and divided into calls. Pure.

a device for each row, times, columns --rows_by_device--> DeviceRows --parts_of--> DeviceRows for one message each
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import pyarrow as pa

from saros.errors import InterfaceError, database_error
from saros_wire import protocol
from saros_wire.client_values import arrow_array
from saros_wire.device_rows import DeviceRows

#: Limit on the devices of one call. Other writes wait for the call, which takes well under a second with this limit.
DEVICES_MAX = 1_000


def rows_by_device(devices: object, batch: pa.RecordBatch, aligned: bool | None) -> DeviceRows:
    """Group the rows of a batch (times, then columns) by device. `devices` has the path of the device of each row.

    The rows of a device keep their order. Raises InterfaceError (not strings), ProgrammingError 2003 (lengths, nulls).
    """
    if not hasattr(devices, "__len__"):
        raise InterfaceError(f"the device must be a path, or a path for each row, not {devices!r}")
    texts = arrow_array(devices, "devices")
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)) and len(texts):
        raise InterfaceError(f"devices must be texts, one for each row, not values of type {texts.type}")
    if len(texts) != batch.num_rows:
        raise database_error(f"there are {len(texts)} devices for {batch.num_rows} times: give one for each row", 2003)
    if texts.null_count:
        raise database_error("a device is null: each row needs the path of its device", 2003)
    encoded = texts.dictionary_encode()
    codes = encoded.indices.to_numpy()
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, batch = codes[order], batch.take(pa.array(order))
    counts = np.bincount(codes, minlength=len(encoded.dictionary)).tolist()
    columns = dict(zip(batch.schema.names[1:], batch.columns[1:], strict=True))
    return DeviceRows(encoded.dictionary.to_pylist(), counts, batch.column(0), columns, aligned)


def parts_of(rows: DeviceRows) -> Iterator[DeviceRows]:
    """Divide rows into calls of at most `DEVICES_MAX` devices and about `protocol.INSERT_BYTES`, in order."""
    arrays = [cast("pa.Array", array) for array in (rows.times, *rows.columns.values())]
    total = len(arrays[0])
    rows_max = max(total * protocol.INSERT_BYTES // max(sum(array.nbytes for array in arrays), 1), 1)
    devices, counts, start, stop = list[str](), list[int](), 0, 0
    for device, count in zip(rows.devices, rows.counts, strict=True):
        end = stop + count
        while stop < end:
            taken = min(end - stop, rows_max - (stop - start))
            devices.append(device)
            counts.append(taken)
            stop += taken
            if stop - start == rows_max or len(devices) == DEVICES_MAX:
                yield _slice(rows, devices, counts, start, stop)
                devices, counts, start = [], [], stop
    if devices:
        yield _slice(rows, devices, counts, start, stop)


def rows_of(rows: DeviceRows, number: int) -> DeviceRows:
    """Return the rows of the device at index `number`."""
    start = sum(rows.counts[:number])
    return _slice(rows, [rows.devices[number]], [rows.counts[number]], start, start + rows.counts[number])


def _slice(rows: DeviceRows, devices: list[str], counts: list[int], start: int, stop: int) -> DeviceRows:
    def part(values: object) -> pa.Array:
        return cast("pa.Array", values).slice(start, stop - start)

    columns = {name: part(values) for name, values in rows.columns.items()}
    return DeviceRows(devices, counts, part(rows.times), columns, rows.aligned)
