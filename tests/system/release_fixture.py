"""Write the fixture of a release: a data folder and a backup in this version's format, which later releases must open.

    python tests/system/release_fixture.py        tests/system/testdata/releases/<version>.tar.xz

Run it on the commit of a release, once: a fixture never changes. It contains

    folder/     a data folder whose process was killed: merged and unmerged files, and points that are only in the log
    backups/    a full backup, and an incremental one that was taken before the last statements

`test_releases.py` knows the written data, and compares the answers of the version under test with that data.
"""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

import saros
from saros_server.process.version import RELEASE

FIXTURES = Path(__file__).parent / "testdata" / "releases"
ROWS = 40
TYPES = ("boolean", "int32", "int64", "float", "double", "text", "string", "blob", "date", "timestamp")
#: Encodings and compressors. The list must not change, even if the program's own list grows.
ENCODINGS = {
    "BOOLEAN": ("PLAIN", "RLE"),
    "INT32": ("TS_2DIFF", "PLAIN", "RLE", "GORILLA", "CHIMP"),
    "INT64": ("TS_2DIFF", "PLAIN", "GORILLA", "CHIMP"),
    "DOUBLE": ("GORILLA", "PLAIN", "CHIMP"),
    "TEXT": ("PLAIN", "DICTIONARY"),
}
COMPRESSORS = ("LZ4", "SNAPPY", "GZIP", "ZSTD", "LZMA2", "UNCOMPRESSED")
#: The length of a time partition: a week.
PARTITION_MS = 7 * 24 * 3_600_000

_SCHEMA = (
    "create database root.plant",
    *(f"create timeseries root.plant.plain.v_{name} with datatype={name}" for name in TYPES),
    f"create aligned timeseries root.plant.aligned({', '.join(f'v_{name} {name}' for name in TYPES)})",
    "create timeseries root.plant.pump.heat with datatype=DOUBLE tags(unit='C') attributes(note='old')",
    "create timeseries root.plant.pump.count with datatype=INT32",
    "create device template meter (volts FLOAT, amps FLOAT)",
    "create database root.meters",
    "set device template meter to root.meters.hall",
    "create view root.view.temperature as root.plant.pump.heat",
    "create view root.view.fahrenheit as select heat * 1.8 + 32 from root.plant.pump",
    "create cq hourly begin select avg(no) into root.hourly.d(no) from root.plant.none group by(1h) end",
    "create user ann 'correct horse battery'",
    "create role operators",
    "grant read_data on root.plant.** to user ann",
    "grant role operators to ann",
)
#: Statements that write the data of the first backup: files in two partitions, late rows, tombstones, dropped series
#: and databases.
_FIRST = (
    "insert into root.plant.short.d(time, x) values (1, 1)",
    "set ttl to root.plant.short.** 3600000",
    "insert into root.meters.hall.m1(time, volts, amps) values (1, 230.5, 2.5)",
    f"insert into root.plant.pump(time, heat, count) values (1, 1.5, 1), (3, 3.5, 3), ({PARTITION_MS}, 9.5, 9)",
    "insert into root.gone.d(time, x) values (1, 1)",
    "insert into root.plant.dropped(time, x) values (1, 1)",
    "flush",
    "insert into root.plant.pump(time, heat, count) values (2, 2.5, 2), (3, 33.5, 3)",
    "flush",
    "delete from root.plant.plain.v_int64 where time >= 5 and time <= 8",
    "drop database root.gone",
    "drop timeseries root.plant.dropped.x",
    "alter timeseries root.plant.pump.count set data type INT64",
)
#: Statements that write the data of the second backup: a merge, then late rows and a tombstone.
_SECOND = (
    "merge",
    "insert into root.plant.pump(time, heat) values (4, 4.5)",
    "insert into root.plant.plain(time, v_double) values (3, 33.25)",
    "delete from root.plant.plain.v_int64 where time = 12",
)
#: The folder's last statements, whose data is in no backup and is never flushed.
_TAIL = (
    "insert into root.plant.pump(time, heat) values (1, 11.5), (5, 5.5)",
    "delete from root.plant.pump.heat where time = 2",
    "insert into root.meters.hall.m2(time, volts) values (1, 231.5)",
    "alter timeseries root.plant.pump.heat upsert alias=warmth attributes(note='new')",
)


def row_of_types(i: int) -> tuple[object, ...]:
    """Return a value of each of the `TYPES` for row `i`. In every seventh row, every second value is missing."""
    day, instant = dt.date(2024, 1, i % 28 + 1), i * 1_000
    values = (i % 2 == 1, i, i * 10**10, i + 0.5, i + 0.25, f"t{i}", f"s{i}", bytes([i, 0xFF]), day, instant)
    return tuple(value if i % 7 or place % 2 else None for place, value in enumerate(values))


def encoded_series() -> list[tuple[str, str, str, str]]:
    """Return (measurement, type, encoding, compressor) of each series of `root.codecs.d`."""
    pairs = [(type_, encoding) for type_, encodings in ENCODINGS.items() for encoding in encodings]
    return [
        (f"{type_}_{encoding}".lower(), type_, encoding, COMPRESSORS[place % len(COMPRESSORS)])
        for place, (type_, encoding) in enumerate(pairs)
    ]


def encoded_value(type_: str, i: int) -> object:
    """Return the value at time `i` of a series of `root.codecs.d`.

    The values have few decimals, repeat for some rows, and then jump.
    """
    step = i // 5 * 1_001 - i
    return {"BOOLEAN": i % 10 < 6, "INT32": step, "INT64": step << 33, "DOUBLE": step / 8, "TEXT": f"state {i % 4}"}[
        type_
    ]


# ------------------------------------------------------------------------------------------------ writing


def _write_first(db: saros.Connection) -> None:
    for statement in _SCHEMA:
        db.execute(statement)
    for measurement, type_, encoding, compressor in encoded_series():
        words = f"datatype={type_}, encoding={encoding}, compressor={compressor}"
        db.execute(f"create timeseries root.codecs.d.{measurement} with {words}")
    for i in range(1, ROWS + 1):
        for device in ("plain", "aligned"):
            _insert(db, f"root.plant.{device}", i, [f"v_{name}" for name in TYPES], row_of_types(i))
        columns = encoded_series()
        values = [encoded_value(type_, i) for _, type_, _, _ in columns]
        _insert(db, "root.codecs.d", i, [name for name, *_ in columns], values)
    for statement in _FIRST:
        db.execute(statement)


def _insert(db: saros.Connection, device: str, time: int, names: Sequence[str], values: Sequence[object]) -> None:
    given = [(name, value) for name, value in zip(names, values, strict=True) if value is not None]
    places = ", ".join("?" * (len(given) + 1))
    statement = f"insert into {device}(time, {', '.join(name for name, _ in given)}) values ({places})"
    db.execute(statement, [time, *(value for _, value in given)])


def _write_second(db: saros.Connection) -> None:
    for statement in _SECOND:
        db.execute(statement)


def _write_tail(db: saros.Connection) -> None:
    for statement in _TAIL:
        db.execute(statement)


_STEPS = {"first": _write_first, "second": _write_second, "tail": _write_tail}


def run_step(name: str, folder: str) -> None:
    """Run one step on the folder, and end the process without closing it, as `kill -9` does."""
    _STEPS[name](saros.connect(folder))
    os._exit(0)


def write_fixture(archive: Path) -> None:
    """Write the fixture of this version."""
    with tempfile.TemporaryDirectory() as made:
        folder, backups = Path(made, "folder"), Path(made, "backups")
        back_up = [
            sys.executable,
            "-m",
            "saros_shell",
            "backup",
            "--quiet",
            "--data",
            str(folder),
            "--to",
            str(backups),
        ]
        steps = [[sys.executable, __file__, name, str(folder)] for name in _STEPS]
        for command in (steps[0], back_up, steps[1], [*back_up, "--incremental"], steps[2]):
            subprocess.run(command, check=True)
        (folder / "LOCK").unlink()  # it names a process of this machine
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive, "x:xz", preset=9) as tar:
            for part in (folder, backups):
                tar.add(part, part.name)


if __name__ == "__main__":
    if sys.argv[1:]:
        run_step(*sys.argv[1:])
    write_fixture(FIXTURES / f"{RELEASE}.tar.xz")
