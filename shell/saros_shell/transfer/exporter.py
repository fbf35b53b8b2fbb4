"""`saros export PATTERNS`: writes devices to files, or the rows of a query to one file.

    saros export 'root.plant.**' -o out --format parquet      out/root.plant.pump1.parquet ...: one file per device
    saros export 'root.plant.**' -o out --format csv --types  with root.plant.pump1.temperature(FLOAT) as names
    saros export 'root.plant.**' -o plant.tsfile              one TsFile with all devices, and their encodings
    saros export -e "select ..." -o result.csv                a query's rows

A file gets its name only when it is complete. Devices are streamed batch by batch, so memory use is small.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import msgspec

import saros
from saros_server.config.arguments import CommandParser
from saros_server.sources.parquet_files import StatedDevice
from saros_server.sources.plurals import counted
from saros_shell.output.login import password_of
from saros_shell.output.progress import Progress
from saros_shell.output.user_files import cannot_write
from saros_shell.repl.copy import write_result
from saros_shell.transfer.exported_devices import Device, find_devices
from saros_storage.base.paths import sql_node
from saros_storage.folder.layout import caseless

FORMATS = ("csv", "json", "parquet", "tsfile")
#: Matches the beginning of a time in SQL.
_TIME = re.compile(r"\s*(-?\d|now\s*\()", re.IGNORECASE)


class Report(msgspec.Struct):
    """The number of files written, and of rows or points in them."""

    files: int = 0
    #: The number of rows or, for TsFiles, whose series need not share rows, the number of points.
    count: int = 0
    unit: str = "row"


def main(arguments: Sequence[str]) -> int:
    """Run `saros export`. Return 0, 1 if the database or the disk reported an error, or 2 for wrong usage."""
    options = parser().parse_args(arguments)
    if bool(options.patterns) == bool(options.execute):
        sys.stderr.write("saros export: give path patterns, or -e SQL\n")
        return 2
    if "://" not in options.database and not os.path.lexists(options.database):
        sys.stderr.write(f"saros export: there is no database in {options.database}; pass another one with -d\n")
        return 2
    try:
        with saros.connect(
            options.database, password=password_of(options.database), time_zone=options.zone, timestamps="epoch"
        ) as connection:
            report = run(connection, options)
    except saros.Error as error:
        sys.stderr.write(f"saros export: {error}\n")
        return 1
    where = f"{counted(report.files, 'file')} in {options.output}" if Path(options.output).is_dir() else options.output
    sys.stdout.write(f"{counted(report.count, report.unit)} -> {where}\n")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros export`."""
    made = CommandParser(prog="saros export", description="Write series or a query's rows to files.")
    made.add_argument("patterns", nargs="*", metavar="PATTERN", help="series, such as root.plant.** or root.a.d1.s1")
    made.add_argument(
        "-d", "--database", default="./data", metavar="TARGET", help="folder or saros://host; default ./data"
    )
    made.add_argument("-e", "--execute", metavar="SQL", help="export this query's rows instead")
    made.add_argument("-o", "--output", required=True, metavar="PATH", help="folder, or a file that ends in its format")
    made.add_argument("--format", choices=FORMATS, help="default: by the output's suffix, otherwise parquet")
    made.add_argument(
        "--types", action="store_true", help="CSV and JSON: name columns by path and type, which import restores"
    )
    made.add_argument("--start", metavar="TIME", help="first time, inclusive")
    made.add_argument("--end", metavar="TIME", help="last time, exclusive")
    made.add_argument("--zone", metavar="NAME", help="time zone of --start, --end and times in CSV")
    made.add_argument("--quiet", action="store_true", help="no progress bar")
    return made


def run(connection: saros.Connection, options: argparse.Namespace) -> Report:
    """Write the files. Raises saros.Error."""
    target = Path(options.output)
    suffix = target.suffix.lower().lstrip(".")
    if suffix.isalpha() and suffix not in FORMATS and not options.format and not target.is_dir():
        raise saros.InterfaceError(
            f"cannot tell the format of {target.name}; use the suffix .csv, .json, .parquet or .tsfile, or pass"
            " --format for a folder"
        )
    kind = options.format or (suffix if suffix in FORMATS else "parquet")
    if options.execute:
        from saros_grammar.queries import is_non_query  # only needed for -e

        if is_non_query(options.execute):
            raise saros.InterfaceError("-e needs a query that returns rows and writes none; this statement was not run")
        with connection.execute(options.execute) as cursor:
            return Report(1, write_result(cursor, target, typed=options.types))
    devices = find_devices(connection, options.patterns)
    if not devices:
        raise saros.InterfaceError(f"no series match {', '.join(options.patterns)}")
    where = _where(options)
    progress = Progress(len(devices), quiet=options.quiet)
    if suffix != kind:
        report = _write_each(connection, devices, where, target, kind, progress, typed=options.types)
    elif kind == "tsfile":
        from saros_shell.transfer.tsfile_export import write_tsfile

        report = Report(1, write_tsfile(connection, devices, where, target, progress), "point")
    elif len(devices) > 1:
        raise saros.InterfaceError(
            f"{target} is one file, but there are {len(devices)} devices; pass a folder, or a .tsfile"
        )
    else:
        report = Report(1, _write_device(connection, devices[0], where, target, typed=options.types))
    progress.finish()
    return report


def _where(options: argparse.Namespace) -> str:
    """Return the WHERE clause on time.

    Raises saros.InterfaceError for a text that is not a time, because SQL would take it for the name of a series.
    """
    parts = []
    for option, comparison, text in (("--start", ">=", options.start), ("--end", "<", options.end)):
        if text is None:
            continue
        if not _TIME.match(text):
            raise saros.InterfaceError(
                f"{option} {text!r} is not a time; pass one such as 2024-01-01T08:00:00, now() - 1d, or an integer"
            )
        parts.append(f"time {comparison} {text}")
    return " where " + " and ".join(parts) if parts else ""


def _write_each(
    connection: saros.Connection,
    devices: Sequence[Device],
    where: str,
    folder: Path,
    kind: str,
    progress: Progress,
    *,
    typed: bool,
) -> Report:
    """Write one file per device, named after the device. Raises saros.Error."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    report = Report(unit="point" if kind == "tsfile" else "row")
    for device, name in zip(devices, file_names([device.path for device in devices]), strict=True):
        report.count += _write_device(connection, device, where, folder / f"{name}.{kind}", typed=typed)
        report.files += 1
        progress.move_to(report.files)
        progress.show(report.count, report.count * len(device.series))
    return report


def _write_device(
    connection: saros.Connection, device: Device, where: str, target: Path, *, typed: bool = False
) -> int:
    if target.suffix == ".tsfile":
        from saros_shell.transfer.tsfile_export import write_tsfile

        return write_tsfile(connection, [device], where, target, Progress(1, quiet=True))
    if any(name == "Time" for name, *_ in device.series) and not (typed and target.suffix in (".csv", ".json")):
        raise saros.InterfaceError(
            f"{device.path} has a series named Time, like the column of times; export CSV or JSON with --types, or a "
            "TsFile"
        )
    stated = StatedDevice(device.path, device.aligned)
    columns = ", ".join(f"{sql_node(name)} as {sql_node(name)}" for name, *_ in device.series)
    with connection.execute(f"select {columns} from {device.path}{where}") as cursor:  # noqa: S608 (quoted)
        return write_result(cursor, target, device=stated, typed=typed)


def file_names(paths: Sequence[str]) -> list[str]:
    """Return paths as file names: unusual characters become `_`, and repeated names get a number.

    Two names count as the same if they differ only in case or in the normalization of Unicode, because some file
    systems ignore these differences.
    """
    names: list[str] = []
    taken: set[str] = set()
    for path in paths:
        plain = re.sub(r"[^\w.\-]", "_", path)
        tries = (plain if number == 1 else f"{plain}-{number}" for number in count(1))
        names.append(next(name for name in tries if caseless(name) not in taken))
        taken.add(caseless(names[-1]))
    return names
