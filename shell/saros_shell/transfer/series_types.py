"""The types of the series that an import writes to: existing ones, those of device templates, and those it makes.

    file, column, device column --`Destination`--> device and measurement --`SeriesTypes`--> type

A device's series are looked up once, with SHOW TIMESERIES; those that the user may not see count as new. Memory grows
with the number of devices of an import. Not thread-safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import saros
from saros_shell.transfer.source_options import SourceError
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, quote_node, split_path, split_series, unquote_node
from saros_storage.base.types import DataType


class Destination:
    """Where the columns of a file go.

    A template with its fields filled in, quoted as needed, is the device; without a template, the column of devices
    holds whole paths, or columns are called by theirs.
    """

    def __init__(self, template: str | None, file: Path) -> None:
        self._template = template
        self._file = file
        #: Devices by the value of the column of devices.
        self._devices: dict[str | None, str] = {}

    def device(self, value: str | None) -> str:
        """The path of the device for a value of the column of devices. Raises SourceError."""
        path = self._devices.get(value)
        if path is None:
            path = self._devices[value] = self._path(value)
        return path

    def _path(self, value: str | None) -> str:
        if self._template is None:
            path = value or ""
        else:
            path = self._template.replace("{file}", quote_node(self._file.stem))
            path = path if value is None else path.replace("{device}", quote_node(value))
        try:
            return join_nodes(split_path(path))
        except UserMistake as error:
            raise SourceError(f"{self._file}: {error}") from error

    def series(self, name: str, value: str | None) -> tuple[str, str]:
        """The device's path, and what the series is called in it. Raises SourceError."""
        if self._template is not None:
            return self.device(value), name
        if value is not None:
            return self.device(value), unquote_node(name)
        if not name.startswith("root."):
            raise SourceError(
                f"{self._file}: nothing says whose {name!r} is: --device root.a.b does; without it columns are named "
                f"by their paths, such as root.a.b.{quote_node(name)}"
            )
        try:
            device, measurement = split_series(name)
        except UserMistake as error:
            raise SourceError(f"{self._file}: {error}") from error
        return device, unquote_node(measurement)


class SeriesTypes:
    """Types by device and measurement (or alias), as the database and this import have made them."""

    def __init__(self, connection: saros.Connection) -> None:
        self._connection = connection
        self._devices: dict[str, dict[str, DataType]] = {}

    def type_of(self, device: str, measurement: str) -> DataType | None:
        """The type of the series; None if it does not exist."""
        known = self._devices.get(device)
        if known is None:
            known = self._devices[device] = self._found(device)
        return known.get(measurement)

    def write(self, device: str, types: Mapping[str, DataType], *, aligned: bool) -> None:
        """Note that the import writes columns of these types, which makes the series.

        Texts make a series of TEXT: one of STRING is created here.
        """
        known = self._devices.setdefault(device, {})
        if known.keys() >= types.keys():
            return
        strings = [name for name, type_ in types.items() if type_ is DataType.STRING and name not in known]
        if strings:
            self._create_strings(device, strings, aligned=aligned)
        known.update({name: type_ for name, type_ in types.items() if name not in known})

    def forget(self, device: str) -> None:
        """Look the types of a device, and the templates, up again when they are next needed."""
        self._devices.pop(device, None)
        self.__dict__.pop("_templates", None)

    def _found(self, device: str) -> dict[str, DataType]:
        types = self._of_template(device)
        for path, alias, _, type_, *_ in self._connection.execute(f"show timeseries {device}.*"):
            _, measurement = split_series(str(path))
            types[unquote_node(measurement)] = DataType[str(type_)]
            if alias is not None:
                types[unquote_node(str(alias))] = DataType[str(type_)]
        return types

    def _of_template(self, device: str) -> dict[str, DataType]:
        """The series that the first write to the device makes of its template."""
        at_or_above = [types for path, types in self._templates if f"{device}.".startswith(f"{path}.")]
        return dict(at_or_above[0]) if at_or_above else {}

    @cached_property
    def _templates(self) -> list[tuple[str, dict[str, DataType]]]:
        """The paths that templates are set on, with the types of their series."""
        found = []
        for (name,) in self._connection.execute("show device templates").fetchall():
            quoted = quote_node(str(name))
            paths = self._connection.execute(f"show paths set device template {quoted}").fetchall()
            nodes = self._connection.execute(f"show nodes in device template {quoted}").fetchall()
            types = {unquote_node(str(node)): DataType[str(type_)] for node, type_, *_ in nodes}
            found += [(str(path), types) for (path,) in paths]
        return found

    def _create_strings(self, device: str, names: Iterable[str], *, aligned: bool) -> None:
        for _, flag, *_ in self._connection.execute(f"show devices {device}"):
            aligned = flag == "true"
        nodes = [quote_node(name) for name in names]
        if aligned:
            listed = ", ".join(f"{node} STRING" for node in nodes)
            self._connection.execute(f"create aligned timeseries {device}({listed})")
        else:
            for node in nodes:
                self._connection.execute(f"create timeseries {device}.{node} STRING")


@dataclass(frozen=True, slots=True)
class FileSeries:
    """The series that the columns of one file go to."""

    destination: Destination
    types: SeriesTypes

    def type_of(self, name: str, device: str | None) -> DataType | None:
        """The type of the series, if it exists."""
        return self.types.type_of(*self.destination.series(name, device))

    def path_of(self, name: str, device: str | None) -> str:
        """The path of the series."""
        path, measurement = self.destination.series(name, device)
        return f"{path}.{quote_node(measurement)}"
