"""Batches that create series of several groups, written together at any node of a cluster."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from system.cluster_fixture import Nodes

from saros_engine.base.session_context import SessionContext
from saros_engine.statements.batches import ColumnBatch
from saros_storage.base.block import Column
from saros_storage.base.types import DataType
from saros_storage.base.write_request import UNNUMBERED

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
