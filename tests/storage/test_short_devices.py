"""Devices with few rows: a flush writes many of them together, with the same result as if it wrote each one alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saros_storage.base.block import Column, TextArray
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DEFAULT_ENCODING, FLOATING_TYPES, NUMPY_DTYPE, Compressor, DataType, Encoding
from saros_storage.folder.layout import RESOURCE, TEMPORARY, FileName
from saros_storage.folder.resource import decode_resource
from saros_storage.io.disk import LocalDisk
from saros_storage.mutation.tablet_codec import TabletFrame
from saros_storage.partition.flush_files import FileFlush
from saros_storage.partition.memtable import AlignedData, MemTable, MemTableSnapshot, SeriesData, ShortDevices
from saros_storage.scan.snapshot import Rank
from saros_storage.schema import Deadband
from saros_storage.tsfile.encoding_selection import EncodingChoices
from saros_storage.tsfile.reader import TsFileReader

#: The kinds of devices of a random MemTable: aligned, and the types of the series.
KINDS = (
    (False, (DataType.DOUBLE,) * 3),
    (True, (DataType.DOUBLE,) * 2),
    (False, (DataType.FLOAT, DataType.BOOLEAN, DataType.INT32, DataType.INT64, DataType.DATE, DataType.TIMESTAMP)),
    (True, (DataType.INT64, DataType.BOOLEAN, DataType.FLOAT, DataType.INT32)),
    (False, (DataType.INT32, DataType.TEXT)),
    (True, (DataType.STRING, DataType.DOUBLE)),
)
#: For some series, a declared encoding other than the default, or a compressor other than LZ4.
DECLARED = {
    "s0": (Encoding.PLAIN, Compressor.UNCOMPRESSED),
    "s2": (Encoding.GORILLA, Compressor.SNAPPY),
    "s3": (Encoding.CHIMP, Compressor.ZSTD),
}


@dataclass
class Singly:
    """A MemTable that yields every device separately."""

    snapshot: MemTableSnapshot

    def contents(self) -> Iterator[tuple[str, AlignedData | list[SeriesData]]]:
        for device, content in self.snapshot.contents():
            if isinstance(content, ShortDevices):
                yield from content.singly()
            else:
                yield device, content


class Trials(EncodingChoices):
    """Choices by a trial of every chunk, as for devices that are written together."""

    def choose(self, *args: Any) -> Encoding:
        return EncodingChoices().choose(*args)

    def without_trial(self, *args: Any) -> Encoding | None:
        return EncodingChoices().without_trial(*args)


@dataclass
class Flush:
    """A flush to a separate folder; `flushed` has the last times that some devices have in files."""

    folder: Path
    flushed: dict[str, int] = field(default_factory=dict)
    declared: dict[str, tuple[Encoding, Compressor]] = field(default_factory=dict)
    deadbands: dict[str, Deadband] = field(default_factory=dict)
    page_rows: int = 1_000
    steps: int = 0

    def storing(self, device: str, name: str, type_: DataType) -> tuple[Encoding, Compressor]:
        chosen = self.declared.get(name) if device.endswith("7") and type_ in FLOATING_TYPES else None
        return chosen or (DEFAULT_ENCODING[type_], Compressor.LZ4)

    def step(self) -> None:
        self.steps += 1

    def files(self, content: MemTableSnapshot | Singly) -> list[bytes]:
        """Write the files; return the bytes of each TsFile and of its resource."""
        self.folder.mkdir()
        flush = FileFlush(
            LocalDisk(),
            str(self.folder),
            self.storing,
            self.flushed,
            Rank(0, 1),
            FileName(1, 1),
            self.page_rows,
            lambda _device, name, _type: self.deadbands.get(name),
            Trials(),
            self.step,
        )
        paths = [written.path for written in flush.run(content)]  # type: ignore[arg-type]
        return [Path(path + suffix + TEMPORARY).read_bytes() for path in paths for suffix in ("", RESOURCE)]


def some_column(rng: np.random.Generator, type_: DataType, rows: int) -> Column:
    """Return random values: usually decimals, sometimes noise, equal values, NaN and infinities; sometimes nulls."""
    style = int(rng.integers(6))
    if type_.is_text:
        words = [bytes(rng.integers(97, 123, int(rng.integers(6))).astype(np.uint8)) for _ in range(rows)]
        values = TextArray.of(words)
    elif type_ is DataType.BOOLEAN:
        values = rng.integers(0, 2, rows).astype(np.bool_)
    elif type_ in FLOATING_TYPES:
        drawn = rng.normal(20, 5, rows) if style < 3 else np.round(rng.normal(20, 5, rows), 2)
        special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e300])
        drawn = special[rng.integers(0, 5, rows)] if style == 1 else np.full(rows, 21.5) if style == 2 else drawn
        with np.errstate(over="ignore"):
            values = drawn.astype(NUMPY_DTYPE[type_])
    else:
        info = np.iinfo(NUMPY_DTYPE[type_])
        low, high = (info.min, info.max) if style == 1 else (-1000, 1000)
        values = rng.integers(low, high, rows, endpoint=True, dtype=NUMPY_DTYPE[type_])
    valid = rng.random(rows) < 0.7 if rng.random() < 0.03 else None
    return Column(type_, values, valid)


def drawn(seed: int, kinds: Sequence[tuple[bool, tuple[DataType, ...]]]) -> tuple[MemTable, dict[str, int]]:
    """Return a MemTable of random devices, and the last times of some devices in files."""
    rng = np.random.default_rng(seed)
    memtable, flushed = MemTable(Rank(0, 1), 1), {}
    common = int(rng.choice([1, 7, 10]))
    for number in range(200):
        aligned, types = kinds[int(rng.integers(len(kinds)))]
        device = f"root.plant.pump{number:03}" + ("" if rng.random() < 0.9 else ".Ünit")
        names = tuple(f"s{place}" for place in range(len(types)))[:: 1 if rng.random() < 0.8 else -1]
        rows = common if rng.random() < 0.95 else int(rng.choice([2, 40, 70]))
        at = int(rng.integers(100))
        for index in range(int(rng.choice([1, 1, 3]))):
            times = at + np.cumsum(rng.integers(1, 9, rows))
            at = int(times[-1]) if rng.random() < 0.97 else at
            columns = tuple(some_column(rng, type_, rows) for type_ in types)
            memtable.write(TabletFrame.of_tablet(Tablet(device, names, times, columns, aligned)), index + 1)
        if rng.random() < 0.2:
            flushed[device] = int(rng.integers(150))
    memtable.freeze(9)
    return memtable, flushed


def is_together(memtable: MemTable) -> list[bool]:
    """Return for each item of the content whether it is a window (short devices that are written together)."""
    return [isinstance(content, ShortDevices) for _, content in memtable.snapshot().contents()]


def chunks_of(data: bytes) -> dict[tuple[str, str], str]:
    """Return all data of each series of a file: the form and the bytes of the only chunk, and the statistics."""
    reader = TsFileReader("file", memoryview(data))
    found = {}
    for device in reader.devices():
        index = reader.device(device)
        assert index is not None
        for name, (statistics,) in reader.stored(device).items():
            raw = reader.raw(index, name, 0, statistics)
            form = raw.type, raw.encoding, raw.compressor, raw.many
            found[device, name] = repr((form, raw.statistics, raw.body.tobytes()))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_devices_that_are_written_together_give_the_same_files_as_devices_written_alone(
    tmp_path: Path, seed: int
) -> None:
    memtable, flushed = drawn(seed, [kind for kind in KINDS if kind[0] or len(set(kind[1])) == 1])
    assert any(is_together(memtable))
    together = Flush(tmp_path / "together", flushed).files(memtable.snapshot())
    alone = Flush(tmp_path / "alone", flushed).files(Singly(memtable.snapshot()))
    assert len(alone) == 4
    assert alone == together


@pytest.mark.parametrize("seed", range(3, 7))
def test_series_of_any_kind_have_the_same_chunks_as_if_each_device_was_written_alone(tmp_path: Path, seed: int) -> None:
    memtable, flushed = drawn(seed, KINDS)
    assert any(is_together(memtable))
    together = Flush(tmp_path / "together", flushed, DECLARED).files(memtable.snapshot())
    alone = Flush(tmp_path / "alone", flushed, DECLARED).files(Singly(memtable.snapshot()))
    assert len(alone) == 4
    assert [decode_resource("", memoryview(one)) for one in alone[1::2]] == [
        decode_resource("", memoryview(one)) for one in together[1::2]
    ]
    for expected, actual in zip(alone[::2], together[::2], strict=True):
        assert chunks_of(expected) == chunks_of(actual)


def of_devices(count: int, rows: int = 10, series: int = 1) -> MemTable:
    """Return a MemTable of equal devices."""
    memtable = MemTable(Rank(0, 1), 1)
    names = tuple(f"s{place}" for place in range(series))
    columns = (Column(DataType.DOUBLE, np.round(np.arange(rows) * 0.1, 1)),) * series
    for number in range(count):
        tablet = Tablet(f"root.plant.pump{number:04}", names, np.arange(rows) * 10, columns, aligned=False)
        memtable.write(TabletFrame.of_tablet(tablet), 1)
    memtable.freeze(1)
    return memtable


def test_many_short_series_are_written_in_few_steps(tmp_path: Path) -> None:
    flush = Flush(tmp_path / "files")
    flush.files(of_devices(3_000).snapshot())
    assert flush.steps == 3


def test_a_deadband_thins_out_the_series_of_short_devices(tmp_path: Path) -> None:
    memtable, deadbands = of_devices(20, series=2), {"s1": Deadband(100.0)}
    together = Flush(tmp_path / "together", deadbands=deadbands).files(memtable.snapshot())
    alone = Flush(tmp_path / "alone", deadbands=deadbands).files(Singly(memtable.snapshot()))
    assert alone == together
    assert len(together[0]) < len(Flush(tmp_path / "all").files(memtable.snapshot())[0])


def test_pages_of_short_devices_have_at_most_the_rows_of_a_page(tmp_path: Path) -> None:
    memtable = of_devices(20)
    together = Flush(tmp_path / "together", page_rows=4).files(memtable.snapshot())
    assert Flush(tmp_path / "alone", page_rows=4).files(Singly(memtable.snapshot())) == together


def test_a_few_devices_of_a_kind_are_not_written_together(tmp_path: Path) -> None:
    assert [False] * 3 == is_together(of_devices(3))
    assert [True] == is_together(of_devices(4))
