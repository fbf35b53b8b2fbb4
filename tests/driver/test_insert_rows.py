"""Rows of several devices in one call: `Connection.insert` with a device for each row, and the bulk writer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import saros
import saros.aio
from saros.base import device_rows
from saros.base.device_rows import parts_of, rows_by_device, rows_of
from saros_server.api.session import EmbeddedSession
from saros_server.server import Server
from saros_storage.base.write_request import WriteRequest
from saros_wire.device_rows import DeviceRows


@pytest.fixture(scope="module", params=["embedded", "served"])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = str(tmp_path_factory.mktemp("rows") / "data")
    if request.param == "embedded":
        yield folder
        return
    server = Server(folder, "127.0.0.1", 0)
    server.start()
    yield f"saros://{server.address}"
    server.stop()


@pytest.fixture
def connection(target: str) -> Iterator[saros.Connection]:
    with saros.connect(target, timestamps="epoch") as made:
        if ("root.a",) in [row[:1] for row in made.execute("show databases").fetchall()]:
            made.execute("drop database root.a")
        yield made


def rows_in(connection: saros.Connection, device: str) -> list[tuple[object, ...]]:
    return connection.execute(f"select * from {device}").fetchall()


def test_rows_go_to_the_device_that_is_given_for_each(connection: saros.Connection) -> None:
    devices = ["root.a.d1", "root.a.d2", "root.a.d1", "root.a.d3"]
    values = {"x": np.array([1.0, 2.0, 3.0, 4.0]), "name": ["a", "b", None, "d"], "n": [None, 7, None, None]}
    assert 8 == connection.insert(devices, np.array([1, 1, 2, 1]), values)
    assert [(1, 1.0, "a"), (2, 3.0, None)] == [
        tuple(row) for row in connection.execute("select x, name from root.a.d1").fetchall()
    ]
    assert [(1, 7, "b", 2.0)] == connection.execute("select n, name, x from root.a.d2").fetchall()
    assert [(1, 4.0)] == connection.execute("select x from root.a.d3").fetchall()
    columns = {(row[0]) for row in connection.execute("show timeseries root.a.**").fetchall()}
    assert {"root.a.d1.x", "root.a.d1.name", "root.a.d2.x", "root.a.d2.name", "root.a.d2.n"} <= columns
    assert not {"root.a.d1.n", "root.a.d3.n"} & columns


def test_of_equal_times_of_a_device_the_later_row_wins(connection: saros.Connection) -> None:
    devices = np.array(["root.a.d1", "root.a.d2", "root.a.d1", "root.a.d2"])
    assert 4 == connection.insert(devices, [5, 5, 5, 5], {"x": [1, 2, 3, 4]})
    assert [(5, 3)] == rows_in(connection, "root.a.d1")
    assert [(5, 4)] == rows_in(connection, "root.a.d2")


def test_a_frame_and_its_column_of_devices(connection: saros.Connection) -> None:
    frame = pd.DataFrame({"device": ["root.a.d1", "root.a.d2"], "time": [1, 2], "x": [1.5, 2.5]})
    assert 2 == connection.insert(frame.pop("device"), frame, aligned=True)
    assert [(2, 2.5)] == rows_in(connection, "root.a.d2")
    assert "true" in connection.execute("show devices root.a.d1").fetchall()[0]


def test_a_device_that_is_refused_keeps_no_other_from_being_written(connection: saros.Connection) -> None:
    connection.insert("root.a.d2", [0], {"x": ["text"]})
    devices = ["root.a.d1", "root.a.d2", "root.a.d2", "root.a.d3", "root.a.`"]
    with pytest.raises(saros.BulkError) as caught:
        connection.insert(devices, [1, 1, 2, 1, 1], {"x": [1.0, 2.0, 3.0, 4.0, 5.0]})
    assert ["root.a.d2", "root.a.`"] == [failure.device for failure in caught.value.failures]
    assert [2, 1] == [failure.rows for failure in caught.value.failures]
    assert "root.a.d2.x is TEXT" in str(caught.value.failures[0].error)
    assert [2.0, 3.0] == pa.array(caught.value.failures[0].columns["x"]).to_pylist()
    assert [(1, 1.0)] == rows_in(connection, "root.a.d1")
    assert [(1, 4.0)] == rows_in(connection, "root.a.d3")
    assert [(0, "text")] == rows_in(connection, "root.a.d2")


@pytest.mark.parametrize(
    ("devices", "error", "text"),
    [
        (["root.a.d"], saros.ProgrammingError, "1 devices for 2 times"),
        (["root.a.d", None], saros.ProgrammingError, "a device is null"),
        ([1, 2], saros.InterfaceError, "devices must be texts"),
    ],
)
def test_devices_must_be_texts_one_for_each_row(
    connection: saros.Connection, devices: list[object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        connection.insert(devices, [1, 2], {"x": [1.0, 2.0]})  # type: ignore[arg-type]


def test_no_rows_are_no_write(connection: saros.Connection) -> None:
    assert 0 == connection.insert([], np.array([], np.int64), {"x": np.array([], np.float64)})


def test_tasks_write_rows_of_several_devices(target: str) -> None:
    async def write() -> list[object]:
        async with await saros.aio.connect(target, timestamps="epoch") as connection:
            await connection.insert(["root.b.d1", "root.b.d2"], [1, 1], {"x": [1.0, 2.0]})
            with pytest.raises(saros.BulkError):
                await connection.insert(["root.b.d1", "root.b.d2"], [2, 2], {"x": ["a", "b"]})
            return await (await connection.execute("select x from root.b.*")).fetchall()

    assert [(1, 1.0, 2.0)] == asyncio.run(write())


def test_a_write_of_many_devices_is_divided(connection: saros.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_rows, "DEVICES_MAX", 7)
    devices = [f"root.a.d{number}" for number in range(30)]
    assert 60 == connection.insert(devices * 2, np.arange(60), {"x": np.arange(60.0)})
    assert [(30,)] == connection.execute("count devices root.a.*").fetchall()
    assert [(3, 3.0), (33, 33.0)] == rows_in(connection, "root.a.d3")


# ---------------------------------------------------------------------------------------------- dividing


def batch(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"": np.arange(rows), "x": np.arange(rows) * 1.5})


def listed(rows: DeviceRows) -> tuple[list[str], list[int], list[int]]:
    return list(rows.devices), list(rows.counts), rows.times.to_pylist()  # type: ignore[attr-defined]


def test_rows_are_grouped_by_device_in_order() -> None:
    rows = rows_by_device(["b", "a", "b", "a", "c"], batch(5), None)
    assert (["b", "a", "c"], [2, 2, 1], [0, 2, 1, 3, 4]) == listed(rows)
    assert (["a"], [2], [1, 3]) == listed(rows_of(rows, 1))


def test_parts_have_a_bounded_number_of_bytes_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_rows.protocol, "INSERT_BYTES", 16 * 4)  # rows of 16 bytes
    rows = rows_by_device(["a"] * 9 + ["b", "c", "d"], batch(12), None)
    expected = [(["a"], [4]), (["a"], [4]), (["a", "b", "c", "d"], [1, 1, 1, 1])]
    assert expected == [listed(part)[:2] for part in parts_of(rows)]
    monkeypatch.setattr(device_rows, "DEVICES_MAX", 2)
    assert [*expected[:2], (["a", "b"], [1, 1]), (["c", "d"], [1, 1])] == [listed(p)[:2] for p in parts_of(rows)]
    assert list(range(12)) == [time for part in parts_of(rows) for time in listed(part)[2]]


# ---------------------------------------------------------------------------------------------- repetitions


def test_a_repeated_write_has_no_effect(tmp_path: Path) -> None:
    with saros.connect(str(tmp_path), timestamps="epoch") as connection:
        session = connection._session
        assert isinstance(session, EmbeddedSession)
        rows = DeviceRows(["root.a.d1", "root.a.d2"], [1, 1], np.array([1, 1]), {"x": np.array([1.0, 2.0])})
        request = WriteRequest(client=5, sequence=1)
        assert 2 == session.insert_rows(rows, request=request).points
        connection.insert("root.a.d1", [1], {"x": [9.0]})
        assert 2 == session.insert_rows(rows, request=request).points
        assert [(1, 9.0)] == rows_in(connection, "root.a.d1")


# ---------------------------------------------------------------------------------------------- in bulk


def test_the_bulk_writer_sends_few_rows_of_many_devices_together(
    connection: saros.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    session = type(connection._session)
    for name in ("insert", "insert_rows"):
        original = getattr(session, name)

        def counted(self: object, *args: object, original=original, name: str = name, **more: object) -> object:
            calls.append(name)
            return original(self, *args, **more)

        monkeypatch.setattr(session, name, counted)
    with connection.bulk_writer(max_in_flight=1) as writer:
        for number in range(500):
            writer.add(f"root.a.d{number}", np.array([1]), {"x": np.array([float(number)])})
        writer.add("root.a.e", np.array([1]), {"y": np.array([1])})
        writer.add_row("root.a.f", 1, {"x": 1.0})
    assert 502 == writer.progress.points
    assert ["insert", "insert", "insert_rows"] == sorted(calls)
    assert [(1, 499.0)] == rows_in(connection, "root.a.d499")


def test_the_bulk_writer_keeps_the_order_of_a_device_whose_columns_change(connection: saros.Connection) -> None:
    with connection.bulk_writer() as writer:
        for device in ("root.a.d1", "root.a.d2"):
            writer.add(device, [1], {"x": [1.0]})
            writer.add(device, [1], {"x": [2.0], "y": [2.0]})
            writer.add(device, [1], {"x": [3.0]})
    for device in ("root.a.d1", "root.a.d2"):
        assert [(1, 3.0, 2.0)] == connection.execute(f"select x, y from {device}").fetchall()


def test_failures_of_a_bulk_writer_name_their_devices(connection: saros.Connection) -> None:
    connection.insert("root.a.d1", [0], {"x": ["text"]})
    writer = connection.bulk_writer()
    for number in range(3):
        writer.add(f"root.a.d{number}", [1], {"x": [1.0]})
    with pytest.raises(saros.BulkError) as caught:
        writer.close()
    assert [("root.a.d1", 1)] == [(failure.device, failure.rows) for failure in caught.value.failures]
    assert (2, 2, 1) == (writer.progress.rows, writer.progress.points, writer.progress.failed_rows)
