"""Batches written together at any node of a cluster, which create series of several groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from system.cluster_fixture import Nodes

from saros_engine.base.session_context import SessionContext
from saros_engine.writes.batches import ColumnBatch, MultiBatch
from saros_storage.base.block import Column
from saros_storage.base.types import DataType
from saros_storage.base.write_request import UNNUMBERED, WriteRequest

pytestmark = pytest.mark.slow
WEEK = 604_800_000


def batch(device: str, time: int) -> ColumnBatch:
    """Return rows in two slices."""
    times = np.array([time, time + WEEK])
    return ColumnBatch(device, times, {"x": Column.of(DataType.DOUBLE, [1.0, 2.0])}, None, tags={"device": device})


def test_series_of_all_groups_are_created_with_their_tags(tmp_path: Path) -> None:
    cluster = Nodes(tmp_path / "cluster", 3, 2)
    devices = [f"root.a{database}.d{number}" for database in range(6) for number in range(3)]
    try:
        for node, part in ((0, devices[:12]), (1, devices[6:]), (2, devices)):
            batches = [batch(device, node) for device in part]
            engine = cluster.node(node).engine
            assert [2] * len(part) == engine.insert_batches(batches, session=SessionContext(), request=UNNUMBERED)
        for number in range(3):
            shown = {row[0]: row[6] for row in cluster.run(number, "show timeseries root.*.*.x")}
            assert {f"{device}.x": f'{{"device":"{device}"}}' for device in devices} == shown
            counts = cluster.run(number, "select count(x) from root.** align by device")
            expected = {device: 6 if device in devices[6:12] else 4 for device in devices}
            assert expected == {row[0]: row[1] for row in counts}
    finally:
        cluster.close()


def test_rows_of_many_devices_take_effect_once_in_all_groups(tmp_path: Path) -> None:
    cluster = Nodes(tmp_path / "cluster", 3, 2)
    devices = [f"root.a{database}.d{number}" for database in range(6) for number in range(5)]
    times = np.tile([0, WEEK], len(devices))
    columns = {"x": Column(DataType.DOUBLE, np.arange(len(times)) / 2), "y": Column(DataType.INT64, times)}
    rows = MultiBatch(devices, [2] * len(devices), times, columns, None)
    try:
        for node in (0, 1):
            engine = cluster.node(node).engine
            outcomes = engine.insert_rows(rows, session=SessionContext(), request=WriteRequest(7, 1))
            assert [4] * len(devices) == outcomes
            if node == 0:
                cluster.run(2, f"delete from {devices[1]}.x where time = 0")  # the repetition must not restore it
        expected = [[0, device, float(n), 0] for n, device in enumerate(devices)]
        expected += [[WEEK, device, n + 0.5, WEEK] for n, device in enumerate(devices)]
        expected[1][2] = None
        found = cluster.run(2, "select x, y from root.** align by device")
        assert sorted(expected, key=str) == sorted([list(row) for row in found], key=str)
    finally:
        cluster.close()
