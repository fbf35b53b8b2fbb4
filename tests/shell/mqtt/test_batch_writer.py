from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import saros
from saros_shell.mqtt.batch_writer import BatchWriter
from saros_shell.mqtt.message_reader import ReadMessages
from saros_shell.mqtt.payload_formats import Row, TimeScale, Value


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[saros.Connection]:
    with saros.connect(str(tmp_path / "data"), timestamps="epoch", options={"durability": "os"}) as opened:
        yield opened


def write(
    connection: saros.Connection, *rows: tuple[str, int, dict[str, Value]], writer: BatchWriter | None = None
) -> tuple[int, dict[int, list[str]]]:
    """Write rows, each from its own message. Return the number of points written, and the refusals."""
    messages = ReadMessages([(number, Row(*row)) for number, row in enumerate(rows)])
    writer = writer or BatchWriter(connection, TimeScale("ms", "ms"), aligned=False)
    return writer.write(messages), messages.refusals


def test_rows_of_many_devices_are_written_together(connection: saros.Connection) -> None:
    rows = [(f"root.a.d{number % 3}", number, {"x": number, "`y z`": str(number)}) for number in range(30)]
    assert (60, {}) == write(connection, *rows)
    assert [(9, 9.0, "9")] == connection.execute("select x, `y z` from root.a.d0 where time = 9").fetchall()
    counted = connection.execute("select count(x) from root.a.** group by level = 1").fetchall()
    assert [(30,)] == counted


def test_an_existing_series_gives_the_type(connection: saros.Connection) -> None:
    connection.execute("create timeseries root.a.d.n INT64")
    assert (2, {2: ["root.a.d.n: 2.5 does not fit INT64"]}) == write(
        connection, ("root.a.d", 1, {"n": 2**60 + 1}), ("root.a.d", 2, {"n": 2.0}), ("root.a.d", 3, {"n": 2.5})
    )
    assert [(1, 2**60 + 1), (2, 2)] == connection.execute("select n from root.a.d").fetchall()


def test_the_other_values_of_a_row_are_written(connection: saros.Connection) -> None:
    writer = BatchWriter(connection, TimeScale("ms", "ms"), aligned=False)
    assert (2, {}) == write(connection, ("root.a.d", 1, {"x": True, "y": 1}), writer=writer)
    assert (1, {0: ["root.a.d.x: 1 does not fit BOOLEAN"]}) == write(
        connection, ("root.a.d", 2, {"x": 1, "y": 2}), writer=writer
    )
    assert [(1, True, 1.0), (2, None, 2.0)] == connection.execute("select x, y from root.a.d").fetchall()


def test_a_type_that_has_changed_meanwhile_is_noticed(connection: saros.Connection) -> None:
    writer = BatchWriter(connection, TimeScale("ms", "ms"), aligned=False)
    write(connection, ("root.a.d", 1, {"x": 1}), writer=writer)
    connection.execute("drop timeseries root.a.d.x")
    connection.execute("create timeseries root.a.d.x INT64")
    assert (1, {}) == write(connection, ("root.a.d", 2, {"x": 2}), writer=writer)
    assert [(2, 2)] == connection.execute("select x from root.a.d").fetchall()


def test_values_that_the_database_refuses_are_found(connection: saros.Connection) -> None:
    rows: list[tuple[str, int, dict[str, Value]]] = [
        ("root.a.d", number, {"x": number, "y": 1}) for number in range(20)
    ]
    rows[7] = ("root.a.d", 2**63 - 1, {"x": 7, "y": 1})
    points, refusals = write(connection, *rows)
    assert (38, [7]) == (points, list(refusals))
    assert all("out of range" in reason for reason in refusals[7])
    assert [(19, 19)] == connection.execute("select count(x), count(y) from root.a.d").fetchall()


@pytest.mark.parametrize("device", ["root", "root.a.d.x", f"root.a.{'x' * 9_000}"])
def test_a_device_that_cannot_be_one_is_refused(device: str, connection: saros.Connection) -> None:
    write(connection, ("root.a.d", 1, {"x": 1}))
    points, refusals = write(connection, (device, 1, {"x": 1}), ("root.a.e", 1, {"x": 1}))
    assert (1, [0]) == (points, list(refusals))


def test_an_outage_is_raised(connection: saros.Connection) -> None:
    writer = BatchWriter(connection, TimeScale("ms", "ms"), aligned=False)
    connection.execute("set system to readonly")
    with pytest.raises(saros.OperationalError):
        write(connection, ("root.a.d", 1, {"x": 1}), writer=writer)
    connection.execute("set system to running")
    assert (1, {}) == write(connection, ("root.a.d", 1, {"x": 1}), writer=writer)


def test_new_devices_are_aligned_on_demand(connection: saros.Connection) -> None:
    writer = BatchWriter(connection, TimeScale("ms", "ms"), aligned=True)
    assert (2, {}) == write(connection, ("root.a.d", 1, {"x": 1, "y": 2}), writer=writer)
    assert [("root.a.d", "true")] == [row[:2] for row in connection.execute("show devices").fetchall()]
