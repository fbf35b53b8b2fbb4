"""Payloads of line protocol from a broker: those with times are written together, and a refusal affects only one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import saros
from saros_shell.mqtt.broker_connection import Message
from saros_shell.mqtt.line_writer import LineWriter, is_joinable
from saros_shell.mqtt.message_reader import ArrivalClock, LineReader
from saros_shell.mqtt.routes import Route, Router, parse_template, parse_topic


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[saros.Connection]:
    with saros.connect(str(tmp_path / "data"), timestamps="epoch", options={"durability": "os"}) as opened:
        yield opened


def write(connection: saros.Connection, *payloads: bytes, topic: str = "plant") -> tuple[int, dict[int, list[str]]]:
    """Write payloads that arrive at 7 ms. Return the number of points written, and the refusals."""
    filter_ = parse_topic("+")
    reader = LineReader(Router([Route(filter_, parse_template("root.{1}", filter_))]), ArrivalClock(lambda: 7), 10**6)
    messages = reader.read([Message(topic, payload, 1, number) for payload, number in zip(payloads, count(1))])
    return LineWriter(connection, "ms").write(messages), messages.refusals


def test_payloads_of_a_database_become_points(connection: saros.Connection) -> None:
    assert (3, {}) == write(connection, b"cpu,host=h1 load=1.5 1", b"cpu,host=h2 load=2 2\ncpu,host=h2 load=3 3\n")
    found = connection.execute("select load from root.plant.cpu.* order by time align by device").fetchall()
    assert [(1, "root.plant.cpu.h1", 1.5), (2, "root.plant.cpu.h2", 2.0), (3, "root.plant.cpu.h2", 3.0)] == found


def test_lines_without_times_do_not_replace_each_other(connection: saros.Connection) -> None:
    assert (2, {}) == write(connection, b"m f=1", b"m f=2")
    assert [(7, 1.0), (8, 2.0)] == connection.execute("select f from root.plant.m").fetchall()


def test_a_wrong_payload_is_refused_alone(connection: saros.Connection) -> None:
    payloads = [b"m f=%d %d" % (number, number) for number in range(10)]
    payloads[6] = b"m f=x 6"
    points, refusals = write(connection, *payloads)
    assert (9, [6]) == (points, list(refusals))
    assert "left out: line 1: the value of a field is not a number" in refusals[6][0]
    assert [(9,)] == connection.execute("select count(f) from root.plant.m").fetchall()


def test_the_right_lines_of_a_wrong_payload_are_written(connection: saros.Connection) -> None:
    assert [0] == list(write(connection, b"m f=1 1\nbad\nm f=2 2")[1])
    assert [(1, 1.0), (2, 2.0)] == connection.execute("select f from root.plant.m").fetchall()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"m f=1 5", True),
        (b"m f=1 5\r\n\n# comment\nm f=2 -6\n", True),
        (b"", True),
        (b"m f=1", False),
        (b"m f=1 5\nm f=2", False),
        (b'm f="a 5', False),
        (b'm f="a" 5', True),
    ],
)
def test_payloads_that_can_be_joined(text: bytes, expected: bool) -> None:
    assert expected is is_joinable(text)
