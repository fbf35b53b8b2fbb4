"""The types of an import's series: of those that exist, that a device template defines, or that the import creates.

    file, column, device column --`Destination`--> device and measurement --`SeriesTypes`--> type

The series of each device are looked up once, with SHOW TIMESERIES. A series that the user may not see counts as new.
The memory used grows with the number of devices in an import. Not thread-safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import msgspec

from saros_server.sources.destination import Destination
from saros_storage.base.paths import quote_node, split_series, sql_node, unquote_node
from saros_storage.base.types import DataType


class Statements(Protocol):
    """The database that an import writes to."""

    def execute(self, statement: str, /) -> Iterable[Sequence[object]]:
        """Execute a statement, and return its rows."""
        ...


class SeriesTypes:
    """Knows the types of series in the database and in this import.

    A series is found by its device, together with its measurement or its alias.
    """

    def __init__(self, database: Statements) -> None:
        self._database = database
        self._devices: dict[str, dict[str, DataType]] = {}

    def type_of(self, device: str, measurement: str) -> DataType | None:
        """Return the type of a series, or None if it does not exist."""
        known = self._devices.get(device)
        if known is None:
            known = self._devices[device] = self._found(device)
        return known.get(measurement)

    def has(self, device: str) -> bool:
        """Return whether the device has series."""
        self.type_of(device, "")
        return bool(self._devices[device])

    def write(self, device: str, types: Mapping[str, DataType], *, aligned: bool) -> None:
        """Record that the import is about to write columns of these types, and so to create the missing series.

        A write of texts creates series of type TEXT. Series of type STRING are therefore created here, before the
        write.
        """
        known = self._devices.setdefault(device, {})
        if known.keys() >= types.keys():
            return
        strings = [name for name, type_ in types.items() if type_ is DataType.STRING and name not in known]
        if strings:
            self._create_strings(device, strings, aligned=aligned)
        known.update({name: type_ for name, type_ in types.items() if name not in known})

    def forget(self, device: str) -> None:
        """Forget the types of a device's series, and the device templates. They are looked up again when needed."""
        self._devices.pop(device, None)
        self.__dict__.pop("_templates", None)

    def _found(self, device: str) -> dict[str, DataType]:
        types = self._of_template(device)
        for path, alias, _, type_, *_ in self._database.execute(f"show timeseries {device}.*"):
            _, measurement = split_series(str(path))
            types[unquote_node(measurement)] = DataType[str(type_)]
            if alias is not None:
                types[unquote_node(str(alias))] = DataType[str(type_)]
        return types

    def _of_template(self, device: str) -> dict[str, DataType]:
        """Return the types of the series that the first write to the device creates from its device template."""
        at_or_above = [types for path, types in self._templates if f"{device}.".startswith(f"{path}.")]
        return dict(at_or_above[0]) if at_or_above else {}

    @cached_property
    def _templates(self) -> list[tuple[str, dict[str, DataType]]]:
        """Each path for which a device template is set, with the types of the series in the template."""
        found = []
        for (name,) in self._database.execute("show device templates"):
            quoted = quote_node(str(name))
            paths = self._database.execute(f"show paths set device template {quoted}")
            nodes = self._database.execute(f"show nodes in device template {quoted}")
            types = {unquote_node(str(node)): DataType[str(type_)] for node, type_, *_ in nodes}
            found += [(str(path), types) for (path,) in paths]
        return found

    def _create_strings(self, device: str, names: Iterable[str], *, aligned: bool) -> None:
        for _, flag, *_ in self._database.execute(f"show devices {device}"):
            aligned = flag == "true"
        nodes = [sql_node(quote_node(name)) for name in names]
        if aligned:
            listed = ", ".join(f"{node} STRING" for node in nodes)
            self._database.execute(f"create aligned timeseries {device}({listed})")
        else:
            for node in nodes:
                self._database.execute(f"create timeseries {device}.{node} STRING")


class FileSeries(msgspec.Struct, frozen=True):
    """The series to which the columns of one file are written. Implements `source_layout.Series`."""

    destination: Destination
    types: SeriesTypes

    def type_of(self, name: str, device: str | None) -> DataType | None:
        """Return the type of the series, or None if it does not exist."""
        return self.types.type_of(*self.destination.series(name, device))

    def path_of(self, name: str, device: str | None) -> str:
        """Return the path of the series."""
        path, measurement = self.destination.series(name, device)
        return f"{path}.{quote_node(measurement)}"
