"""Data folders written by earlier versions open with all of their content.

`folders_0_1.tar.xz` was written by the first snapshot of version 0.1. One folder has merged and unmerged files, points
that are only in the log, tombstones, a changed type, a template, a view, a continuous query, TTL and users. The other
folders belong to two nodes of a cluster; the second node joined when the cluster already had data.
"""

from __future__ import annotations

import datetime as dt
import tarfile
from pathlib import Path

import pytest

import saros
from saros_shell.main import main

ARCHIVE = Path(__file__).parent / "testdata" / "folders_0_1.tar.xz"


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def row_of_types(i: int) -> tuple[object, ...]:
    day, instant = dt.date(2024, 1, i % 28 + 1), i * 1_000
    return (i, i % 2 == 1, i, i * 10**10, i + 0.5, i + 0.25, f"t{i}", f"s{i}", bytes([i, 0xFF]), day, instant)


def test_values_of_all_types_are_as_they_were(folders: Path) -> None:
    names = ["boolean", "int32", "int64", "float", "double", "text", "string", "blob", "date", "timestamp"]
    columns = ", ".join(f"v_{name}" for name in names)
    with saros.connect(folders / "store", timestamps="epoch") as db:
        rows = db.execute(f"select {columns} from root.plant.types").fetchall()
    assert [*map(row_of_types, range(1, 41)), (41, None, 41, *[None] * 8)] == rows


def test_deletions_and_later_values_are_as_they_were(folders: Path) -> None:
    with saros.connect(folders / "store", timestamps="epoch") as db:
        rows = db.execute("select temperature, speed, state from root.plant.pump").fetchall()
    expected = [
        (i, 99.5 if i == 3 else 20 + i / 4, None if 5 <= i <= 8 else i, "on" if i % 3 else "off") for i in range(1, 41)
    ]
    assert expected == rows


def test_the_schema_is_as_it_was(folders: Path) -> None:
    with saros.connect(folders / "store") as db:

        def shown(statement: str, *columns: str) -> list[tuple[object, ...]]:
            cursor = db.execute(statement)
            names = [name for name, *_ in cursor.description or ()]
            return sorted(tuple(row[names.index(column)] for column in columns) for row in cursor.fetchall())

        assert [("root.gone",), ("root.plant",)] == shown("show databases", "Database")
        assert [("root.plant.types.v_int32", "INT64")] == shown(
            "show timeseries root.plant.types.v_int32", "Timeseries", "DataType"
        )
        assert [("root.plant.pump.temperature", '{"unit":"C"}')] == shown(
            "show timeseries root.plant.pump.temperature", "Timeseries", "Tags"
        )
        assert [] == shown("show timeseries root.gone.**", "Timeseries")
        assert [("meter",)] == shown("show device templates", "TemplateName")
        assert [("root.plant.view.t",)] == shown("show view root.plant.**", "Timeseries")
        assert [("cq1",)] == shown("show continuous queries", "CQId")
        assert [("root.**", "INF"), ("root.plant.short.**", "3600000")] == shown("show all ttl", "Device", "TTL(ms)")
        assert [("mia",)] == shown("list user", "User")


def test_devices_of_a_template_have_their_values(folders: Path) -> None:
    with saros.connect(folders / "store", timestamps="epoch") as db:
        assert [(1, 230.5, 2.5)] == db.execute("select volts, amps from root.plant.meters.m1").fetchall()


@pytest.mark.parametrize("node", ["node1", "node2"])
def test_nodes_of_a_cluster_are_whole(folders: Path, node: str) -> None:
    assert 0 == main(["verify", "--quiet", str(folders / "cluster" / node)])
