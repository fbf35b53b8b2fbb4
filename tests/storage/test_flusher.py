"""A gentle (throttled) flush pauses only while no thread waits for the flusher.

The clock stands still, so a pause lasts until something makes the flush urgent.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from manual_clock import ManualClock
from waiting import PATIENCE_S, wait_until

from saros_storage.base.block import Column
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.flush.pacer import SLICE_NS, Pacer
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import LocalDisk
from saros_storage.scan.snapshot import everything
from saros_storage.schema import CreateDatabase, CreateSeries, SeriesSchema
from saros_storage.store import Store


class Gentle:
    """A store, and a thread that flushes it gently."""

    def __init__(self, folder: Path) -> None:
        options = StoreOptions(durability="os", compaction=False, memtables_total_bytes_max=1 << 20)
        self.store = Store.open(str(folder), options, LocalDisk(), ManualClock())
        series = tuple(
            SeriesSchema(name, DataType.INT64, Encoding.PLAIN, Compressor.UNCOMPRESSED) for name in ("x", "y")
        )
        for database in ("root.a", "root.b"):
            self.store.change_schema([CreateDatabase(database), CreateSeries(f"{database}.d", False, series)])
        self.write("root.a.d", 0)
        self.region = self.store._region
        self.thread = threading.Thread(target=lambda: self.region.flush_chosen(everything, gently=True))

    def write(self, device: str, *times: int) -> None:
        at = np.array(times, np.int64)
        columns = tuple(Column(DataType.INT64, at) for _ in "xy")
        self.store.write([Tablet(device, ("x", "y"), at, columns, False)])

    def begin(self) -> None:
        """Begin to flush, and return once the flusher pauses."""
        ticks, resting = itertools.count(step=SLICE_NS), threading.Event()

        class Watched(Pacer):
            def rest_ns(self, worked_ns: int, now_ns: int) -> int:
                resting.set()
                return super().rest_ns(worked_ns, now_ns)

        self.region.flusher._pacer = Watched(1, lambda: next(ticks))
        self.thread.start()
        assert resting.wait(PATIENCE_S)
        assert [] == self.files()

    def files(self) -> list[str]:
        return sorted(p.database for p in self.store.partitions() if p.files)

    def is_over(self) -> bool:
        self.thread.join(PATIENCE_S)
        return not self.thread.is_alive()


@pytest.fixture
def gentle(tmp_path: Path) -> Iterator[Gentle]:
    made = Gentle(tmp_path)
    yield made
    made.store.close()
    assert made.is_over()


def _flush_all(gentle: Gentle) -> None:
    gentle.store.flush()


def _drop_other(gentle: Gentle) -> None:
    gentle.store.delete_database("root.b")  # needs the folders


def _fill_memory(gentle: Gentle) -> None:
    gentle.write("root.b.d", *range(40_000))


@pytest.mark.parametrize("act", [_flush_all, _drop_other, _fill_memory])
def test_a_gentle_flush_rests_until_others_need_it(gentle: Gentle, act: Callable[[Gentle], None]) -> None:
    gentle.begin()
    acting = threading.Thread(target=act, args=(gentle,), daemon=True)
    acting.start()
    assert gentle.is_over()
    acting.join(PATIENCE_S)
    assert "root.a" in gentle.files()


def test_a_gentle_flush_ends_by_itself_when_its_time_has_come(gentle: Gentle) -> None:
    gentle.begin()
    clock = gentle.store._clock
    assert isinstance(clock, ManualClock)
    wait_until(lambda: (clock.advance(1), not gentle.thread.is_alive())[1])
    assert ["root.a"] == gentle.files()
