"""If a write leaves points out, its error says how many points were written, and the counters include these."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pytest
from engine.embedded_engine import Engine

from saros_engine.writes.batches import ColumnBatch
from saros_engine.writes.writer import PartlyWritten
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType
from saros_storage.base.write_request import UNNUMBERED
from saros_storage.scan.read_point import ReadPoint, ReadScope


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(tmp_path)
    yield engine
    engine.close()


def test_points_of_a_partial_insert_are_counted(engine: Engine) -> None:
    with pytest.raises(PartlyWritten) as caught:
        engine.ask("insert into root.a.d(time, x, y) values (1, 1, 1), (2, 'no', 2), (3, null, true)")
    assert (507, 3) == (caught.value.code, caught.value.points)
    assert 3 == engine.engine.counters().points_written


def test_a_batch_with_expired_rows_says_how_many_points_were_written(engine: Engine) -> None:
    now = time.time_ns() // 1_000_000
    engine.ask("create database root.a")
    engine.ask("set ttl to root.a 3600000")
    columns = {
        "x": Column.of(DataType.DOUBLE, [1.0, 2.0, 3.0]),
        "y": Column.of(DataType.DOUBLE, [None, None, 6.0]),
    }
    with pytest.raises(PartlyWritten) as caught:
        engine.engine.insert_columns("root.a.d", np.array([7, now, now + 1]), columns)
    left_out = "1 of 3 rows, older than the TTL, such as time 7"
    assert f"3 of 4 points of root.a.d were written; left out: {left_out}" == str(caught.value)
    assert (607, 3) == (caught.value.code, caught.value.points)
    assert 3 == engine.engine.counters().points_written


@pytest.mark.parametrize("way", ["statement", "batch", "batches"])
def test_a_database_that_is_dropped_during_an_insert_is_created_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    engine.ask("create database root.a")
    write = engine.store.write

    def write_after_drop(*arguments: object, **named: object) -> None:
        monkeypatch.undo()
        engine.ask("drop database root.a")
        write(*arguments, **named)

    monkeypatch.setattr(engine.store, "write", write_after_drop)
    column = Column.of(DataType.DOUBLE, [1.0])
    if way == "statement":
        engine.ask("insert into root.a.d(time, x) values (1, 1)")
    elif way == "batch":
        engine.engine.insert_columns("root.a.d", np.array([1]), {"x": column})
    else:
        batch = ColumnBatch("root.a.d", np.array([1]), {"x": column}, None)
        assert [1] == engine.engine.insert_batches([batch], session=engine.session, request=UNNUMBERED)
    assert [[1, 1.0]] == engine.ask("select x from root.a.d")[1]


@pytest.mark.parametrize("way", ["statement", "batch", "batches", "partial batches"])
def test_values_are_refused_only_by_the_current_schema(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The type is changed at another node, and this node learns of it only when it asks."""
    engine.ask("create timeseries root.a.d.n with datatype=INT32")
    asked: list[Collection[str]] = []

    def catch_up_with_change(point: ReadPoint, scope: ReadScope) -> bool:
        asked.append(scope.patterns)
        monkeypatch.undo()
        engine.ask("alter timeseries root.a.d.n set data type DOUBLE")
        return False

    monkeypatch.setattr(engine.store, "catch_up", catch_up_with_change)
    columns = {"n": Column.of(DataType.DOUBLE, [0.5, 1.5])}
    if way == "statement":
        engine.ask("insert into root.a.d(time, n) values (1, 0.5), (2, 1.5)")
    elif way == "batch":
        engine.engine.insert_columns("root.a.d", np.array([1, 2]), columns)
    else:
        batch = ColumnBatch("root.a.d", np.array([1, 2]), columns, None, partial=way == "partial batches")
        assert [2] == engine.engine.insert_batches([batch], session=engine.session, request=UNNUMBERED)
    assert [["root.a"]] == asked
    assert [[1, 0.5], [2, 1.5]] == engine.ask("select n from root.a.d")[1]


def test_the_schema_is_asked_for_once_however_many_batches_are_refused(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.ask("create timeseries root.a.d.n with datatype=INT32")
    engine.ask("create timeseries root.a.e.n with datatype=INT32")
    asked: list[Collection[str]] = []
    monkeypatch.setattr(engine.store, "catch_up", lambda point, scope: asked.append(scope.patterns))
    columns = {"n": Column.of(DataType.TEXT, ["no"])}
    batches = [ColumnBatch(f"root.a.{device}", np.array([1]), columns, None) for device in "de"]
    outcomes = engine.engine.insert_batches(batches, session=engine.session, request=UNNUMBERED)
    assert [507, 507] == [outcome.code for outcome in outcomes if isinstance(outcome, UserMistake)]
    assert [["root.a"]] == asked
