"""The devices and series for the columns of a file. Not thread-safe.

a device                         root.a.b
a template and the file's name   root.a.{file}
a template and a column          root.a.{device}, with the values of the device column
no template                      the device column has paths of devices; without one, the device stated in the file,
                                 or full paths as column names
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from saros_server.sources.opened_file import COMPRESSED_SUFFIXES
from saros_server.sources.source_layout import SourceBatch, SourceColumn
from saros_server.sources.source_options import SourceError
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, quote_node, split_path, split_series, unquote_node


class Destination:
    """The destination of the columns of a file.

    The device is the template with its fields replaced by their values, which are quoted where necessary. Without a
    template, the device comes from the device column, which has full paths; from `stated`; or from the column names,
    which then are full paths.
    """

    def __init__(self, template: str | None, file: Path, stated: str | None = None) -> None:
        self._template = template
        self._file = file
        self._stated = stated
        #: The path of the device for each value of the device column.
        self._devices: dict[str | None, str] = {}

    def device(self, value: str | None) -> str:
        """Return the path of the device that a value of the device column stands for. Raises SourceError."""
        path = self._devices.get(value)
        if path is None:
            path = self._devices[value] = self._path(value)
        return path

    def _path(self, value: str | None) -> str:
        if self._template is None:
            path = value or ""
        else:
            path = self._template.replace("{file}", quote_node(_stem(self._file)))
            path = path if value is None else path.replace("{device}", quote_node(value))
        try:
            return join_nodes(split_path(path))
        except UserMistake as error:
            raise SourceError(f"{self._file}: {error}") from error

    def series(self, name: str, value: str | None) -> tuple[str, str]:
        """Return the path of the device and the name of the series to which a column is written. Raises SourceError."""
        if self._template is not None:
            return self.device(value), name
        if value is not None:
            return self.device(value), unquote_node(name)
        if self._stated is not None:
            return self._stated, name
        if not name.startswith("root."):
            raise SourceError(
                f"{self._file}: no device for column {name!r}: pass --device root.a.b, or name columns by their "
                f"paths, such as root.a.b.{quote_node(name)}"
            )
        try:
            device, measurement = split_series(name)
        except UserMistake as error:
            raise SourceError(f"{self._file}: {error}") from error
        return device, unquote_node(measurement)


def _stem(file: Path) -> str:
    """Return the name without the suffixes of the format and the compression."""
    return file.with_suffix("").stem if file.suffix.lower() in COMPRESSED_SUFFIXES else file.stem


class Part(msgspec.Struct, frozen=True):
    """One device's share of a batch."""

    times: pa.Array
    columns: list[SourceColumn]


def by_device(batch: SourceBatch, destination: Destination) -> Iterator[tuple[str, Part]]:
    """Split a batch by device. The columns of each part have the names of their series. Raises SourceError."""
    if batch.devices is None:
        yield from _by_name(batch, destination)
        return
    devices = batch.devices.dictionary_encode()
    for code, value in enumerate(devices.dictionary.to_pylist()):
        mask = pc.equal(devices.indices, code)
        filtered = ((c, c.values.filter(mask)) for c in batch.columns)
        columns = [
            replace(column, name=destination.series(column.name, value)[1], values=values)
            for column, values in filtered
            if values.null_count < len(values)  # otherwise, only other devices have values in this column
        ]
        if columns:
            yield destination.device(value), Part(batch.times.filter(mask), columns)


def _by_name(batch: SourceBatch, destination: Destination) -> Iterator[tuple[str, Part]]:
    devices: dict[str, list[SourceColumn]] = {}
    for column in batch.columns:
        device, measurement = destination.series(column.name, None)
        devices.setdefault(device, []).append(replace(column, name=measurement))
    for device, columns in devices.items():
        yield device, Part(batch.times, columns)


def check_device(template: str | None, column: str | None) -> None:
    """Check that each field of a device template gets a value. Raises SourceError."""
    if template is None:
        return
    if not template.startswith("root."):
        raise SourceError(
            f"--device {template} does not begin with root.: root.a.b, root.a.{{file}} or root.a.{{device}}"
        )
    fields = set(re.findall(r"\{[^}]*\}", template))
    unknown = sorted(fields - {"{file}", "{device}"})
    if unknown:
        raise SourceError(f"--device {template}: {unknown[0]} is unknown; use {{file}} and {{device}}")
    if ("{device}" in fields) != (column is not None):
        raise SourceError(
            f"--device {template}: {{device}} in it and --device-column NAME go together: the column holds its values"
        )
