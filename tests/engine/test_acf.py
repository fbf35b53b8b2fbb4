"""Autocorrelation of many points, computed from the spectrum, equals the sums of its definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from engine.embedded_engine import Engine

from saros_storage.base.block import Column
from saros_storage.base.types import DataType


def test_many_points_give_the_sums_of_products(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=3_001)
    engine = Engine(tmp_path)
    engine.engine.insert_columns("root.a.d", np.arange(3_001), {"x": Column(DataType.DOUBLE, values)})
    _, rows = engine.ask("select acf(x) from root.a.d")
    engine.close()
    shifted = [values[: 3_001 - k] @ values[k:] / 3_001 for k in range(3_001)]
    assert np.allclose([*shifted[:0:-1], *shifted], [row[1] for row in rows])
    assert list(range(1, 6_002)) == [row[0] for row in rows]
