"""Devices of series: paths that consist of the database, the measurement and the tags.

    template   root.{db}.{measurement}              cpu,host=h1,region=eu     root.plant.cpu.h1.eu
               root.{db}.{host}.{measurement}                                 root.plant.h1.cpu.eu

Tags that the template (`device_template`) does not name come last, in the order in which their keys first appeared
below the template's path. The schema stores this order permanently (`saros_engine.catalog.tag_keys`), so all nodes
agree on it.

The node of a missing tag is `_`; trailing `_` nodes are omitted. If a value begins with `_`, another `_` is put before
it, so that it cannot be confused with `_` or with a reserved node. One thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from saros_engine.writes.batches import ColumnBatch
from saros_server.config.device_template import MISSING, DeviceTemplate, node_of_tag
from saros_server.line_protocol.lines import SeriesKey
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.base.types import TimeUnit

#: The error codes that mean that another writer has already created the database or the series.
_OVERTAKEN = (501, 503)
#: The maximum number of attempts to append tag keys while other writers append theirs.
_ATTEMPTS_MAX = 100


class LineSession(Protocol):
    """A session for writing lines."""

    @property
    def time_unit(self) -> TimeUnit:
        """The database's time unit."""
        ...

    def tag_keys(self, prefix: str) -> Sequence[str]:
        """Return the tag keys of the devices below a path, in the order of their numbers."""
        ...

    def append_tag_key(self, prefix: str, number: int, key: str) -> None:
        """Append a tag key. Raises UserMistake 503 if the number is taken."""
        ...

    def write_batches(self, batches: Sequence[ColumnBatch]) -> list[int | Exception]:
        """Write batches of different devices; return the number of points or the error of each."""
        ...


class DeviceMap:
    """The devices of the series of one write."""

    def __init__(self, template: DeviceTemplate, database: str, session: LineSession) -> None:
        self._template = template
        self._database = database
        self._session = session
        self._keys: dict[str, Sequence[str]] = {}
        self._paths: dict[SeriesKey, str | Exception] = {}

    def device(self, series: SeriesKey) -> str | Exception:
        """Return the path of the device that stores a series, or the error because of which its points are refused."""
        found = self._paths.get(series)
        if found is None:
            try:
                found = self._path(series)
            except Exception as error:  # noqa: BLE001 (the top of a part)
                found = error
            self._paths[series] = found
        return found

    def _path(self, series: SeriesKey) -> str:
        prefix, tags = self._template.prefix(self._database, series.measurement, dict(series.tags))
        places = {key: place for place, key in enumerate(self._order(prefix, tags))} if tags else {}
        nodes = [MISSING] * max((places[key] + 1 for key in tags), default=0)
        for key, value in tags.items():
            nodes[places[key]] = node_of_tag(value)
        path = join_nodes((prefix, *nodes))
        split_path(path)
        return path

    def _order(self, prefix: str, wanted: Iterable[str]) -> Sequence[str]:
        """Append the keys in `wanted` that are missing below a path, and return all tag keys below this path."""
        known = self._keys.get(prefix)
        for _ in range(_ATTEMPTS_MAX):
            if known is None:
                known = self._keys[prefix] = self._session.tag_keys(prefix)
            missing = next((key for key in wanted if key not in known), None)
            if missing is None:
                return known
            self._append(prefix, len(known) + 1, missing)
            known = None
        raise UserMistake(f"the tag keys below {prefix} change too quickly: write again", code=503)

    def _append(self, prefix: str, number: int, key: str) -> None:
        """Append a key with a number, unless another writer has already used this number."""
        try:
            self._session.append_tag_key(prefix, number, key)
        except UserMistake as error:
            if error.code not in _OVERTAKEN:
                raise
