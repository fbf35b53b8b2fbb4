"""Folders of TsFiles, tested without Spark: schemas, partition columns from folder names, pruning, and rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import saros
from saros_shell.transfer import exporter
from saros_spark.base.errors import SourceError
from saros_spark.base.options import file_options, file_write_options
from saros_spark.read.tsfiles import Folder, read_part

NOON = 1_704_110_400_000


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write folders plant=1 and plant=2, each with a file of root.p.d (not aligned) and root.p.l (aligned)."""
    folder = tmp_path_factory.mktemp("files")
    for number in (1, 2):
        data = folder / f"data{number}"
        with saros.connect(str(data), options={"durability": "os"}) as connection:
            connection.execute("create aligned timeseries root.p.l(i INT32, s STRING, w TIMESTAMP)")
            start = NOON * number
            times = start + np.arange(100)
            texts = pa.array([None if at % 3 else "é" for at in times.tolist()], pa.string())
            connection.insert("root.p.l", times, {"i": (times % 7).astype(np.int32), "s": texts})
            connection.insert("root.p.d", start + np.arange(0, 100, 2), {"x": np.arange(50.0)})
            connection.insert("root.p.d", start + np.arange(0, 100, 3), {"p q": np.arange(34) % 2 == 0})
        target = folder / "files" / f"plant={number}" / "a.tsfile"
        assert 0 == exporter.main(["root.**", "-d", str(data), "-o", str(target), "--quiet"])
    return folder / "files"


def read(path: Path, **options: object) -> tuple[list[dict[str, Any]], int]:
    made = file_options({"path": str(path), **{name: str(value) for name, value in options.items()}})
    folder = Folder(made)
    parts = folder.parts()
    batches = [batch for part in parts for batch in read_part(part, made, folder.schema)]
    return pa.Table.from_batches(batches, folder.schema).to_pylist(), len(parts)


def test_rows_of_all_files_with_the_keys_of_their_folders(plant: Path) -> None:
    rows, parts = read(plant, timeType="long")
    assert 2 == parts
    assert ["time", "device", "i", "p q", "s", "x", "plant"] == list(rows[0])
    for number in (1, 2):
        start = NOON * number
        of = {(row["device"], row["time"]): row for row in rows if row["plant"] == number}
        assert len(of) == 100 + len({*range(0, 100, 2), *range(0, 100, 3)})
        assert {(start + 6) % 7} == {of["root.p.l", start + 6]["i"]}
        both = of["root.p.d", start + 6]
        assert (3.0, True, None) == (both["x"], both["p q"], both["i"])
        assert (None, False) == (of["root.p.d", start + 3]["x"], of["root.p.d", start + 3]["p q"])


def test_a_folder_that_saros_export_wrote_is_read(tmp_path: Path) -> None:
    data, target = str(tmp_path / "data"), tmp_path / "out"
    with saros.connect(data, options={"durability": "os"}) as connection:
        connection.execute("create aligned timeseries root.a.`pump 1`(`p in` STRING, n INT64)")
        connection.execute("insert into root.a.`pump 1`(time, `p in`, n) aligned values (1, '007', 9007199254740993)")
        connection.execute("insert into root.a.`pump 1`(time, `p in`, n) aligned values (2, null, 8), (3, '', null)")
        connection.execute("insert into root.a._pump_1_(time, m) values (1, true)")
        connection.execute("insert into root.b.d(time, m) values (1, true)")
    assert 0 == exporter.main(["root.a.**", "-d", data, "-o", str(target), "--format", "tsfile", "--quiet"])
    rows, _ = read(target, timeType="long")
    assert [
        {"time": 1, "device": "root.a._pump_1_", "m": True, "n": None, "p in": None},
        {"time": 1, "device": "root.a.`pump 1`", "m": None, "n": 9007199254740993, "p in": "007"},
        {"time": 2, "device": "root.a.`pump 1`", "m": None, "n": 8, "p in": None},
        {"time": 3, "device": "root.a.`pump 1`", "m": None, "n": None, "p in": ""},
    ] == sorted(rows, key=lambda row: (row["device"], row["time"]))


def test_points_are_narrow_rows(plant: Path) -> None:
    rows, _ = read(plant / "plant=1", layout="narrow", columns="x", timeType="long")
    assert [(NOON + 2 * n, "root.p.d", "x", float(n)) for n in range(50)] == [tuple(row.values()) for row in rows]
    with pytest.raises(SourceError, match="valueType"):
        read(plant, layout="narrow")
    texts, _ = read(plant, layout="narrow", valueType="string")
    assert 2 * (100 + 34 + 50) <= len(texts)


def test_statistics_rule_files_and_devices_out(plant: Path) -> None:
    rows, parts = read(plant, startTime=NOON + 10, endTime=NOON + 13, devices="root.p.l", timeType="long")
    assert 1 == parts
    assert [NOON + 10, NOON + 11, NOON + 12] == [row["time"] for row in rows]
    assert ([], 0) == read(plant, startTime=NOON + 100, endTime=NOON + 200)
    for part_points in (7, 60):
        rows, parts = read(plant, columns="i", pointsPerPartition=part_points, timeType="long")
        assert -(-100 // part_points) * 2 == parts
        assert [*range(NOON, NOON + 100), *range(2 * NOON, 2 * NOON + 100)] == sorted(row["time"] for row in rows)


def test_what_is_no_folder_of_tsfiles_is_said(plant: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no file or folder"):
        read(tmp_path / "nowhere")
    with pytest.raises(SourceError, match=r"no \*\.tsfile"):
        read(tmp_path)
    (tmp_path / "bad.tsfile").write_bytes(b"TsFile no more")
    with pytest.raises(SourceError, match=r"bad\.tsfile cannot be read as a TsFile"):
        read(tmp_path)
    with pytest.raises(SourceError, match="did you mean timeUnit"):
        file_options({"path": "/x", "timeunits": "ms"})
    with pytest.raises(SourceError, match="save"):
        file_write_options({})
