"""`saros tsfile inspect|verify|dump FILE`: shows the content of a TsFile of any origin, and changes nothing.

    inspect    prints devices and series, and with --chunks and --pages also chunks and pages, each with its encodings,
               statistics and sizes
    verify     decodes every page and recomputes every statistic; prints a line per file and per problem
    dump       prints the points

Exit codes: 0 success, 1 a file is damaged or cannot be read, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import msgspec
import pyarrow as pa

from saros_server.config.arguments import CommandParser, at_least
from saros_server.config.data_folder import reason
from saros_shell.output import tsfile_tables as tables
from saros_shell.output.render import render_table
from saros_storage.base.errors import StorageError
from saros_storage.base.paths import PathPattern, parse_pattern, split_path
from saros_storage.base.types import TIME_UNITS, Scalar
from saros_storage.io.disk import LocalDisk
from saros_storage.scan.tsfile_access import DeviceIndex
from saros_storage.tsfile.file_outline import DeviceSurvey, outline
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.verifier import check_tsfile

#: The number of points that are printed at a time.
_BATCH_ROWS = 10_000


class SubCommand(msgspec.Struct, frozen=True):
    """A sub-command of `saros tsfile`: its help text and the function that runs it."""

    what: str
    run: Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str]) -> int:
    """Run a sub-command and return its exit code."""
    options = parser().parse_args(arguments)
    try:
        return COMMANDS[options.command].run(options)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader closed the pipe: discard the rest
        return 0
    except (StorageError, OSError) as error:
        sys.stderr.write(f"saros tsfile {options.command}: {reason(error)}\n")
        return 1


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros tsfile`."""
    made = CommandParser(prog="saros tsfile", description="Inspect, verify or dump TsFiles.")
    words = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parts = {name: words.add_parser(name, help=c.what, description=c.what) for name, c in COMMANDS.items()}
    for name, part in parts.items():
        part.add_argument("files", nargs="+" if name == "verify" else 1, metavar="FILE")
        part.add_argument("--json", action="store_true", help="JSON, one object per line")
    for name in ("inspect", "dump"):
        parts[name].add_argument("--path", metavar="PATTERN", help="only matching series")
        parts[name].add_argument(
            "--unit", choices=tuple(TIME_UNITS), help="unit of the file's times; prints them as dates"
        )
    parts["inspect"].add_argument("--chunks", action="store_true", help="also a row per chunk")
    parts["inspect"].add_argument("--pages", action="store_true", help="also a row per page")
    parts["dump"].add_argument("--limit", type=at_least(0), metavar="N", help="print at most N points")
    return made


def _open(path: str) -> TsFileReader:
    return TsFileReader(path, LocalDisk().map(path))


def _line(words: object) -> None:
    sys.stdout.write(json.dumps(words, ensure_ascii=False) + "\n")


# ---------------------------------------------------------------------------------------------- inspect


def _inspect(options: argparse.Namespace) -> int:
    reader = _open(options.files[0])
    devices = _chosen(reader, options.path)
    head = _head(reader)
    if options.json:
        _line(head)
        for device in devices:
            _line(tables.device_to_json(device, pages=options.pages))
        return 0
    width = max(map(len, head))
    sys.stdout.writelines(f"{key:<{width}}  {value}\n" for key, value in head.items())
    surveyed, time = list(devices), tables.time_text(options.unit)
    parts: list[Iterator[tables.Row]] = [tables.device_rows(surveyed, time), tables.series_rows(surveyed, time)]
    parts += [tables.chunk_rows(surveyed, time)] if options.chunks else []
    parts += [tables.page_rows(surveyed, time)] if options.pages else []
    for rows in parts:
        _print_table(list(rows))
    return 0


def _head(reader: TsFileReader) -> dict[str, object]:
    metadata = reader.metadata
    properties = {key: value for key, value in metadata.properties.items() if value is not None}
    return {
        "file": reader.path,
        "bytes": LocalDisk().size(reader.path),
        "version": metadata.version,
        "index_at": metadata.data_end,
        "properties": ", ".join(f"{key}={value}" for key, value in sorted(properties.items())) or "none",
    }


def _chosen(reader: TsFileReader, pattern: str | None) -> Iterator[DeviceSurvey]:
    """Return the devices with the series that match the pattern."""
    if pattern is None:
        return outline(reader)
    return _matching(outline(reader), parse_pattern(pattern))


def _matching(devices: Iterable[DeviceSurvey], pattern: PathPattern) -> Iterator[DeviceSurvey]:
    for device in devices:
        nodes = split_path(device.path)
        series = tuple(s for s in device.series if s.type is None or pattern.matches((*nodes, s.measurement)))
        if any(s.type is not None for s in series):
            yield DeviceSurvey(device.path, device.aligned, series)


def _print_table(rows: list[tables.Row]) -> None:
    if rows:
        table = pa.Table.from_pylist(rows)
        sys.stdout.write("\n")
        sys.stdout.writelines(line + "\n" for line in render_table(table.schema, table.to_batches()))


# ---------------------------------------------------------------------------------------------- verify


def _verify(options: argparse.Namespace) -> int:
    damaged = False
    for path in options.files:
        result = check_tsfile(path, LocalDisk().map(path))
        damaged |= bool(result.problems)
        counts = {"devices": result.devices, "series": result.series, "chunks": result.chunks}
        counts |= {"pages": result.pages, "points": result.points}
        if options.json:
            _line({"file": path, "ok": not result.problems, **counts, "problems": [str(p) for p in result.problems]})
            continue
        words = ", ".join(f"{count} {name}" for name, count in counts.items())
        sys.stdout.write(f"{'DAMAGED' if result.problems else 'ok'}  {path}  {words}\n")
        sys.stdout.writelines(f"  {problem}\n" for problem in result.problems)
    return 1 if damaged else 0


# ---------------------------------------------------------------------------------------------- dump


def _dump(options: argparse.Namespace) -> int:
    points = islice(_points(_open(options.files[0]), options.path), options.limit)
    if options.json:
        for time, series, value in points:
            _line({"time": time, "series": series, "value": tables.json_value(value)})
        return 0
    show = tables.time_text(options.unit)
    texts = ((show(time), series, tables.value_text(value)) for time, series, value in points)
    schema = pa.schema([(name, pa.string()) for name in ("Time", "Series", "Value")])
    sys.stdout.writelines(line + "\n" for line in render_table(schema, _batches(texts, schema)))
    return 0


def _points(reader: TsFileReader, pattern: str | None) -> Iterator[tuple[int, str, Scalar]]:
    """Yield (time, series, value) of all points, one series after the other."""
    wanted = None if pattern is None else parse_pattern(pattern)
    for path in reader.devices():
        device = reader.device(path)
        assert device is not None
        for name in device.series:
            if wanted is None or wanted.matches((*split_path(path), name)):
                yield from _points_of(reader, device, name)


def _points_of(reader: TsFileReader, device: DeviceIndex, name: str) -> Iterator[tuple[int, str, Scalar]]:
    for chunk in range(len(device.series[name].chunks)):
        for page in range(len(reader.pages(device, (name,), chunk))):
            block, _ = reader.read(device, (name,), chunk, page, page + 1)
            for time, value in zip(block.times.tolist(), block.columns[0].to_list(), strict=True):
                if value is not None:
                    yield time, f"{device.device}.{name}", value


def _batches(rows: Iterator[tuple[str, str, str]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while some := list(islice(rows, _BATCH_ROWS)):
        yield pa.record_batch([pa.array(column, pa.string()) for column in zip(*some, strict=True)], schema)


COMMANDS: dict[str, SubCommand] = {
    "inspect": SubCommand("devices, series, chunks and pages of a file", _inspect),
    "verify": SubCommand("decode every page and recompute every statistic", _verify),
    "dump": SubCommand("print the points of a file", _dump),
}
