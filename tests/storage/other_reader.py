"""Compare the rows that our reader finds in our files with the rows that Apache's readers find there.

dump           the rows that Apache's reader finds in files (PyPI `tsfile`, in a separate process)
rows_of        the rows that our reader finds
story_files    the files that random operations on a store leave
differences    the series for which the two readers disagree
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace
from server.stock_clients import artefacts
from storage.crash_disk import CrashDisk
from storage.store_opening import OPTIONS, open_store
from storage.store_stories import drawn_story

from saros_storage.base.types import DataType, Encoding, Scalar
from saros_storage.tsfile.file_outline import SeriesOutline, outline
from saros_storage.tsfile.reader import TsFileReader

Rows = list[list[Any]]
#: By device and measurement.
Content = dict[str, dict[str, Rows]]

#: Pairs of type and encoding that the reader from PyPI misreads or refuses. It also fails on series whose chunks differ
#: in encoding.
UNREADABLE = {
    (DataType.BOOLEAN, Encoding.RLE),
    (DataType.INT64, Encoding.RLE),
    (DataType.TIMESTAMP, Encoding.RLE),
}
_SCRIPT = os.path.join(os.path.dirname(__file__), "apache_tsfile.py")
_JAVA_SCRIPT, _JAVA_VERSION = Path(__file__).with_name("TsFileDump.java"), "2.0.5"
_OPERATIONS = 14


def apache(verb: str, *paths: str) -> None:
    """Run the other implementation. Raises AssertionError if it fails."""
    done = subprocess.run(
        [sys.executable, _SCRIPT, verb, *paths], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def dump(paths: Sequence[str], folder: Path) -> list[Content]:
    """Return the rows that the other reader finds in files. The other reader writes its output to `folder`."""
    outs = [folder / f"dump{number}.json" for number in range(len(paths))]
    apache("dump", *(text for path, out in zip(paths, outs, strict=True) for text in (path, str(out))))
    return [json.loads(out.read_text()) for out in outs]


def as_json(values: Sequence[Scalar], times: Sequence[int]) -> Rows:
    """Return rows in the form in which `dump` returns them: without nulls, and with a list for each byte string."""
    return [[t, list(v) if isinstance(v, bytes) else v] for t, v in zip(times, values, strict=True) if v is not None]


def rows_of(reader: TsFileReader, device: str, name: str) -> Rows:
    """Return the rows of a series as our reader finds them."""
    index = reader.device(device)
    assert index is not None
    found: Rows = []
    for chunk in range(len(index.series[name].chunks)):
        pages = reader.pages(index, [name], chunk)
        block, _ = reader.read(index, [name], chunk, 0, len(pages))
        found += as_json(block.columns[0].to_list(), block.times.tolist())
    return found


def story_files(seed: int) -> list[bytes]:
    """Return the TsFiles that random operations leave: flushed, merged and loaded files of several partitions."""
    chance = Random(seed)
    options = replace(
        OPTIONS,
        compaction=chance.random() < 0.3,
        compaction_files_min=2,
        memtable_bytes_max=chance.choice((2_000, 1 << 20)),
    )
    disk = CrashDisk()
    store = open_store(disk, options)
    for operation in drawn_story(chance, _OPERATIONS):
        operation.run(store)
    store.flush()
    store.close()
    return [data for path, data in sorted(disk.files.items()) if path.endswith(".tsfile") and "/groups/" in path]


@dataclass(frozen=True, slots=True)
class OtherReader:
    """Another implementation.

    The function `dump` returns the rows of files; the function `reads` returns whether it can read a series.
    """

    dump: Callable[[Sequence[str], Path], list[Content]]
    reads: Callable[[SeriesOutline], bool]


def dump_by_java(paths: Sequence[str], folder: Path) -> list[Content]:
    """Return the rows that the Java library finds in files. Raises artefacts.Unavailable."""
    classes = artefacts.java_classes(_JAVA_VERSION, [_JAVA_SCRIPT])
    done = subprocess.run(
        ["java", "-cp", classes, _JAVA_SCRIPT.stem, *paths], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[Content] = [{} for _ in paths]
    for line in done.stdout.splitlines():
        number, device, name, rows = json.loads(line)
        found[number].setdefault(device, {})[name] = rows
    return found


def _pypi_reads(series: SeriesOutline) -> bool:
    encodings = {chunk.encoding for chunk in series.chunks}
    return len(encodings) < 2 and all((series.type, encoding) not in UNREADABLE for encoding in encodings)


PYTHON = OtherReader(dump, _pypi_reads)
JAVA = OtherReader(dump_by_java, lambda _: True)


def differences(files: Sequence[bytes], folder: Path, reader: OtherReader) -> list[str]:
    """Return a message for each series of which another reader finds different rows than our reader."""
    paths = [folder / f"{number}.tsfile" for number in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    found = []
    for path, data, theirs in zip(paths, files, reader.dump([*map(str, paths)], folder), strict=True):
        for (device, name), rows in _rows(TsFileReader(str(path), memoryview(data)), reader).items():
            other = theirs.get(device, {}).get(name, [])
            if rows != other:
                found.append(f"{path}, {device}.{name}: {rows[:5]} of {len(rows)}, there {other[:5]} of {len(other)}")
    return found


def _rows(ours: TsFileReader, reader: OtherReader) -> dict[tuple[str, str], Rows]:
    """Return the rows of all series that the other reader can read, as our reader finds them."""
    return {
        (device.path, series.measurement): rows_of(ours, device.path, series.measurement)
        for device in outline(ours)
        for series in device.series
        if series.type is not None and reader.reads(series)
    }
