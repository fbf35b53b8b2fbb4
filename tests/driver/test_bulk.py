"""Bulk writes: the queue alone, and the writer on an embedded database."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from waiting import PATIENCE_S

import saros
from saros.api import bulk, bulk_queue
from saros.api.bulk import BulkProgress
from saros.api.bulk_queue import BulkQueue

# ---------------------------------------------------------------------------------------------- the queue


@dataclass(frozen=True)
class Rows:
    rows: int
    points: int


def taken(queue: BulkQueue) -> tuple[str, int] | None:
    batch = queue.take()
    return None if batch is None else (batch.device, batch.rows)


def test_a_device_is_due_when_enough_of_its_rows_wait() -> None:
    queue = BulkQueue(10)
    queue.put("a", Rows(6, 6))
    queue.put("b", Rows(9, 9))
    assert (None, False) == (taken(queue), queue.is_due)
    queue.put("a", Rows(5, 5))
    assert queue.is_due
    assert [("a", 11), None] == [taken(queue), taken(queue)]


def test_one_batch_of_a_device_is_sent_at_a_time() -> None:
    queue = BulkQueue(10)
    queue.put("a", Rows(10, 10))
    batch = queue.take()
    assert batch is not None
    for _ in range(3):
        queue.put("a", Rows(10, 10))
    queue.begin_flush()
    assert None is taken(queue)
    queue.done(batch)
    queue.end_flush()
    assert [("a", 30), None] == [taken(queue), taken(queue)]


def test_a_flush_takes_all_the_oldest_first() -> None:
    queue = BulkQueue(10)
    for device in ("a", "b", "c"):
        queue.put(device, Rows(1, 1))
    queue.begin_flush()
    queue.begin_flush()
    first = queue.take()
    queue.end_flush()
    assert [("b", 1), ("c", 1), None] == [taken(queue) for _ in range(3)]
    assert first is not None
    assert ("a", False) == (first.device, queue.is_empty)


def test_when_too_much_is_held_the_oldest_goes(monkeypatch) -> None:
    monkeypatch.setattr(bulk_queue, "POINTS_MAX", 100)
    queue = BulkQueue(1_000)
    queue.put("a", Rows(1, 60))
    assert (False, None) == (queue.is_full, taken(queue))
    queue.put("b", Rows(1, 60))
    assert queue.is_full
    batch = queue.take()
    assert batch is not None
    assert (True, "a") == (queue.is_full, batch.device)  # the batch being sent still occupies the queue
    queue.done(batch)
    assert (False, None, False) == (queue.is_full, taken(queue), queue.is_empty)


# ---------------------------------------------------------------------------------------------- the writer


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[saros.Connection]:
    with saros.connect(str(tmp_path), timestamps="epoch", options={"durability": "os"}) as opened:
        yield opened


def rows_of(connection: saros.Connection, columns: str, device: str) -> list[tuple]:
    return connection.execute(f"select {columns} from {device}").fetchall()


def test_columns_and_rows_of_many_devices(connection: saros.Connection) -> None:
    seen: list[BulkProgress] = []
    with connection.bulk_writer(batch_rows=30, max_in_flight=3, progress=seen.append) as writer:
        for turn in range(10):
            for number in range(5):
                times = np.arange(10) + turn * 10
                writer.add(f"root.a.d{number}", times, {"x": times * 1.0, "y": [str(t) for t in times]})
            writer.add_row("root.a.e", turn, {"a": turn * 1.5, "b": None if turn % 2 else True, "c": None})
        writer.add_row("root.a.e", 99, {"a": None})
    for number in range(5):
        assert [(t, float(t), str(t)) for t in range(100)] == rows_of(connection, "x, y", f"root.a.d{number}")
    assert [(t, t * 1.5, None if t % 2 else True) for t in range(10)] == rows_of(connection, "a, b", "root.a.e")
    assert [("root.a.e.a",), ("root.a.e.b",)] == [
        row[:1] for row in connection.execute("show timeseries root.a.e.*").fetchall()
    ]
    assert BulkProgress(510, 1_015, 0) == writer.progress == seen[-1]
    assert sorted(seen, key=lambda progress: progress.rows) == seen


def test_of_equal_times_the_later_row_wins_however_they_are_mixed(connection: saros.Connection) -> None:
    with connection.bulk_writer(batch_rows=3, max_in_flight=8) as writer:
        for value in range(300):
            if value % 3:
                writer.add("root.a.d", [1, 2], {"x": [float(value)] * 2})
            else:
                writer.add_row("root.a.d", 1, {"x": float(value)})
                writer.add_row("root.a.d", 2, {"x": float(value)})
    assert [(1, 299.0), (2, 299.0)] == rows_of(connection, "x", "root.a.d")


def test_columns_may_change_after_they_were_added(connection: saros.Connection) -> None:
    values = np.zeros(5)
    with connection.bulk_writer() as writer:
        for turn in range(3):
            values[:] = turn
            writer.add("root.a.d", np.arange(5) + turn * 5, {"x": values})
    assert [float(t // 5) for t in range(15)] == [row[1] for row in rows_of(connection, "x", "root.a.d")]


def test_numpy_columns_of_many_devices_keep_types_layouts_and_order(connection: saros.Connection) -> None:
    steps = np.arange(8)
    with connection.bulk_writer(max_in_flight=1) as writer:
        for number in range(40):
            for part in (steps[:4], steps[4:]):
                columns = {"a": part.astype(np.float32) + number, "b": part.astype(np.int32), "c": (steps * 2.5)[::-2]}
                writer.add(f"root.a.d{number}", part + number, columns)
            writer.add(f"root.a.d{number}", steps[:2], {"a": np.array([np.nan, 1], np.float32), "d": steps[:2] > 0})
    assert BulkProgress(400, 1_120, 0) == writer.progress
    types = {row[0].rpartition(".")[2]: row[3] for row in connection.execute("show timeseries root.a.d7.*").fetchall()}
    assert {"a": "FLOAT", "b": "INT32", "c": "DOUBLE", "d": "BOOLEAN"} == types
    for number in (0, 9, 39):
        expected = [(t + number, t + number, t, 17.5 - t % 4 * 5) for t in range(8)]
        device, since = f"root.a.d{number}", number or 2
        assert expected[since - number :] == rows_of(connection, "a, b, c", f"{device} where time >= {since}")
        assert [(0, False), (1, True)] == [row for row in rows_of(connection, "d", device) if row[1] is not None]


def test_adding_numpy_columns_makes_no_arrow_arrays(connection: saros.Connection) -> None:
    calls: list[str] = []
    columns = {f"s{number}": np.array([1.5]) for number in range(10)}
    with connection.bulk_writer() as writer:
        sys.setprofile(lambda _frame, event, _argument: calls.append(event))
        try:
            writer.add("root.a.d", np.array([1]), columns)
        finally:
            sys.setprofile(None)
    # A conversion to Arrow arrays would take 250 Python calls.
    assert calls.count("call") + calls.count("c_call") < 150


def test_refused_numpy_columns_come_back(connection: saros.Connection) -> None:
    connection.insert("root.a.d3", [0], {"x": ["text"]})
    times, values = np.array([1, 2]), np.array([0.5, 1.5])
    writer = connection.bulk_writer(max_in_flight=1)
    for number in range(6):
        writer.add(f"root.a.d{number}", times, {"x": values + number})
    with pytest.raises(saros.BulkError) as caught:
        writer.close()
    (failure,) = caught.value.failures
    assert ("root.a.d3", 2, 507) == (failure.device, failure.rows, failure.error.code)
    assert ([1, 2], [3.5, 4.5]) == (list(np.asarray(failure.times)), list(np.asarray(failure.columns["x"])))
    assert [(1, 5.5), (2, 6.5)] == rows_of(connection, "x", "root.a.d5")


def test_shapes_of_one_device_may_differ(connection: saros.Connection) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC)
    with connection.bulk_writer() as writer:
        writer.add("root.a.d", [1], {"x": [1.0]}, aligned=True)
        writer.add("root.a.d", [2], {"x": [2.0], "y": [2]}, aligned=True)
        writer.add("root.a.d", [moment], {"y": [0]}, aligned=True)
        writer.add_row("root.a.d", moment, {"x": 0.0}, aligned=True)
    assert [(0, 0.0, 0), (1, 1.0, None), (2, 2.0, 2)] == rows_of(connection, "x, y", "root.a.d")
    assert "true" == connection.execute("show devices root.a.d").fetchall()[0][1]


def test_what_is_refused_is_raised_with_its_rows(connection: saros.Connection) -> None:
    connection.insert("root.a.d", [0], {"x": [0.0]})
    writer = connection.bulk_writer(batch_rows=2)
    writer.add("root.a.d", [1, 2], {"x": ["text", "text"]})
    writer.add("root.a.d", [3], {"x": [3.0]})
    writer.add_row("root.a.e", 1, {"y": 1})
    with pytest.raises(saros.BulkError, match=r"not acknowledged: 2 rows of root\.a\.d: .*TEXT") as caught:
        writer.flush()
    (failure,) = caught.value.failures
    assert ("root.a.d", 2, None, 507, 507) == (
        failure.device, failure.rows, failure.aligned, failure.error.code, caught.value.code
    )  # fmt: skip
    assert ([1, 2], ["text", "text"]) == (failure.times.to_pylist(), failure.columns["x"].to_pylist())
    assert BulkProgress(2, 2, 2) == writer.progress
    writer.add_row("root.a.e", 2, {"y": [object()]})
    with pytest.raises(saros.BulkError) as caught:
        writer.close()
    assert ([2], {"y": [[caught.value.failures[0].columns["y"][0][0]]]}) == (
        caught.value.failures[0].times, caught.value.failures[0].columns
    )  # fmt: skip
    writer.close()
    assert [(0, 0.0), (3, 3.0)] == rows_of(connection, "x", "root.a.d")


def test_wrong_columns_are_refused_by_add(connection: saros.Connection) -> None:
    with connection.bulk_writer() as writer:
        with pytest.raises(saros.ProgrammingError, match="1 values for 2 times"):
            writer.add("root.a.d", [1, 2], {"x": [1.0]})
        with pytest.raises(saros.DataError, match="one type"):
            writer.add("root.a.d", [1, 2], {"x": [1.0, "a"]})
        with pytest.raises(saros.InterfaceError, match="columns must be"):
            writer.add("root.a.d", [1, 2], 7)
        writer.add("root.a.d", [], {"x": []})
    assert BulkProgress() == writer.progress
    with pytest.raises(saros.InterfaceError, match="closed"):
        writer.add("root.a.d", [1], {"x": [1.0]})
    for wrong in ({"batch_rows": 0}, {"max_in_flight": 0}):
        with pytest.raises(saros.InterfaceError, match="at least 1"):
            connection.bulk_writer(**wrong)


def test_an_error_in_the_block_keeps_what_was_added_and_tells_what_failed(connection: saros.Connection) -> None:
    def write() -> None:
        with connection.bulk_writer() as writer:
            writer.add_row("root.a.d", 1, {"x": 1.0})
            writer.add_row("root.`", 1, {"x": 1.0})
            raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        write()
    assert [(1, 1.0)] == rows_of(connection, "x", "root.a.d")
    assert "1 rows of root.`" in caught.value.__notes__[0]


def test_add_waits_while_too_much_is_held(connection: saros.Connection, monkeypatch) -> None:
    monkeypatch.setattr(bulk_queue, "POINTS_MAX", 100)
    session = connection._session
    go, most, lock = threading.Event(), 0, threading.Lock()

    class Slow:
        """A session whose inserts wait until the test sets `go`."""

        running = 0

        def insert(self, *args, **kwargs):
            nonlocal most
            with lock:
                self.running += 1
                most = max(most, self.running)
            assert go.wait(60)
            with lock:
                self.running -= 1
            return session.insert(*args, **kwargs)

    connection._session = Slow()
    writer = connection.bulk_writer(batch_rows=10, max_in_flight=2)
    connection._session = session
    added = []

    def add() -> None:
        for number in range(30):
            writer.add(f"root.a.d{number}", np.arange(10), {"x": np.arange(10.0)})
            added.append(number)

    adding = threading.Thread(target=add)
    adding.start()
    while len(added) < 10:
        adding.join(0.01)
    adding.join(0.1)
    assert 10 == len(added)
    go.set()
    adding.join(PATIENCE_S)
    writer.close()
    assert (30, 2, 300) == (len(added), most, writer.progress.points)


def test_closing_the_connection_closes_its_writers(tmp_path: Path) -> None:
    connection = saros.connect(str(tmp_path))
    connection.bulk_writer().add_row("root.a.d", 1, {"x": 1.0})
    connection.close()
    with saros.connect(str(tmp_path), timestamps="epoch") as again:
        assert [(1, 1.0)] == rows_of(again, "x", "root.a.d")
    assert not [thread for thread in threading.enumerate() if thread.name == "saros-bulk"]


def test_failures_are_bounded_then_add_raises_them(connection: saros.Connection, monkeypatch) -> None:
    monkeypatch.setattr(bulk, "POINTS_MAX", 50)
    connection.insert("root.a.d", [0], {"x": [0.0]})
    writer = connection.bulk_writer(batch_rows=10, max_in_flight=1)
    added = 0

    def add_many() -> None:
        nonlocal added
        while True:
            writer.add("root.a.d", np.arange(10), {"x": ["a"] * 10})
            added += 10

    with pytest.raises(saros.BulkError) as caught:
        add_many()
    failed = sum(failure.rows for failure in caught.value.failures)
    assert failed >= 50
    try:
        writer.close()
    except saros.BulkError as error:
        failed += sum(failure.rows for failure in error.failures)
    assert writer.progress.failed_rows == failed == added
