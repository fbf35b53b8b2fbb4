"""Guards can refuse a store's writes; layers wrap its views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import pytest

from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import parse_pattern, split_path
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DEFAULT_COMPRESSOR, DataType, Encoding
from saros_storage.base.write_request import UNNUMBERED
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import LocalDisk
from saros_storage.loading.loader import LoadOptions
from saros_storage.scan.reading import ReadView, TimeRange
from saros_storage.schema import OF_ONE_DEVICE, CreateDatabase, CreateSeries, SchemaChange, SeriesSchema
from saros_storage.store import Store

KEPT, FREE = "root.a.kept", "root.a.free"


class Keeps:
    """A guard that refuses every file, and all changes to one device."""

    change_lock: AbstractContextManager[object] = nullcontext()

    def check_rows(self, devices: Iterable[str]) -> None:
        if KEPT in list(devices):
            raise UserMistake("kept", code=1)

    def check_changes(self, changes: Iterable[SchemaChange]) -> None:
        self.check_rows(change.device for change in changes if isinstance(change, OF_ONE_DEVICE))

    def check_deletion(self, patterns: Sequence[str]) -> None:
        if any(parse_pattern(pattern).matches(split_path(f"{KEPT}.x")) for pattern in patterns):
            raise UserMistake("kept", code=1)

    def check_file(self, path: str) -> None:
        raise UserMistake("kept", code=1)


class Named:
    """A layer that records each opening of a view."""

    def __init__(self, name: str, opened: list[str]) -> None:
        self._name = name
        self._opened = opened

    def view(self, below: Callable[[], ReadView]) -> ReadView:
        self._opened.append(f"view {self._name}")
        return below()

    def hold(self, below: Callable[[], ReadView]) -> ReadView:
        self._opened.append(f"hold {self._name}")
        return below()

    def problems(self) -> tuple[str, ...]:
        return (f"{self._name} is damaged",)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(str(tmp_path / "data"), StoreOptions(), LocalDisk(), SystemClock())
    opened.change_schema([CreateDatabase("root.a"), created(KEPT, "x"), created(FREE, "x")])
    opened.write_guards = (Keeps(),)
    yield opened
    opened.close()


def created(device: str, measurement: str) -> CreateSeries:
    series = SeriesSchema(measurement, DataType.INT64, Encoding.PLAIN, DEFAULT_COMPRESSOR)
    return CreateSeries(device, False, (series,))


def rows(device: str, time: int = 1) -> Tablet:
    return Tablet(device, ("x",), np.array([time]), (Column(DataType.INT64, np.array([time])),))


WRITES: dict[str, Callable[[Store], object]] = {
    "rows": lambda store: store.write([rows(FREE), rows(KEPT)]),
    "rows and series": lambda store: store.write([rows(FREE)], [created(KEPT, "y")]),
    "series": lambda store: store.change_schema([created(KEPT, "y")]),
    "deletion": lambda store: store.delete(["root.a.**"], TimeRange()),
    "series dropped": lambda store: store.delete_series(f"{KEPT}.x"),
    "database dropped": lambda store: store.delete_database("root.a"),
    "file": lambda store: store.load("nowhere.tsfile", LoadOptions()),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_a_guard_refuses_has_no_effect(store: Store, write: Callable[[Store], object]) -> None:
    version = store.schema.version
    with pytest.raises(UserMistake, match="kept"):
        write(store)
    assert version == store.schema.version
    assert 0 == store.status().partitions


def test_a_guard_refuses_single_writes_and_submitted_ones_alike(store: Store) -> None:
    refused, taken = store.submit_writes([(rows(KEPT), UNNUMBERED), (rows(FREE), UNNUMBERED)])
    assert refused is None
    assert taken is not None
    assert taken.wait(10.0)
    assert 1 == store.status().partitions


def test_the_owner_of_a_guard_changes_the_schema_all_the_same(store: Store) -> None:
    store.change_schema_unguarded([created(KEPT, "y")])
    device = store.schema.device(KEPT)
    assert device is not None
    assert {"x", "y"} == set(device.series)


def test_each_layer_lies_over_those_before_it(store: Store) -> None:
    opened: list[str] = []
    store.view_layers = (Named("lower", opened), Named("upper", opened))
    store.view().close()
    store.hold().close()
    assert ["view upper", "view lower", "hold upper", "hold lower"] == opened
    assert ("lower is damaged", "upper is damaged") == store.status().problems
