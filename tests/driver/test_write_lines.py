"""The driver's `write_lines` for InfluxDB's line protocol, embedded and through a server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

import saros
from saros_server.server import Server
from saros_wire.frames import BODY_BYTES_MAX


@pytest.fixture(scope="module", params=["embedded", "served"])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = str(tmp_path_factory.mktemp("lines") / "data")
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
        yield made


def test_lines_become_points_of_devices(connection: saros.Connection) -> None:
    lines = "cpu,host=h1,region=eu load=1.5,n=3i 5\ncpu,region=us,host=h2 load=2 6\n"
    assert 3 == connection.write_lines(lines, database="plant", precision="ms")
    found = connection.execute("select load from root.plant.cpu.*.* order by time align by device").fetchall()
    assert [(5, "root.plant.cpu.h1.eu", 1.5), (6, "root.plant.cpu.h2.us", 2.0)] == found


def test_a_template_gives_the_devices(connection: saros.Connection) -> None:
    assert 1 == connection.write_lines(b"cpu,host=h1 f=1 0", database="made", template="root.{db}.{host}.{measurement}")
    assert [("root.made.h1.cpu.f",)] == connection.execute("show timeseries root.made.**").fetch_arrow().select(
        ["Timeseries"]
    ).to_pandas().to_records(index=False).tolist()


def test_lines_without_a_time_have_the_time_that_is_given_or_now(connection: saros.Connection) -> None:
    before = time.time_ns() // 1_000_000
    for _ in range(2):
        connection.write_lines("m f=1", database="now", time_ns=7_000_000)
    connection.write_lines("m f=2", database="now")
    (first, second) = connection.execute("select f from root.now.m").fetchall()
    assert (7, 1.0) == first
    assert before <= second[0] <= time.time_ns() // 1_000_000


def test_wrong_lines_are_named_and_the_others_written(connection: saros.Connection) -> None:
    with pytest.raises(saros.DataError) as caught:
        connection.write_lines("m f=1 1\nbad\nm f=2 2\nm f=x 3\n", database="partial", precision="ms")
    expected = (
        "2 points are written; left out: line 2: the fields are missing: 'bad'; line 4: the value of a field is not a "
        "number, a boolean or a quoted text: 'm f=x 3'"
    )
    assert (2044, expected) == (caught.value.code, str(caught.value))
    assert [(1, 1.0), (2, 2.0)] == connection.execute("select f from root.partial.m").fetchall()


def test_values_of_another_type_are_left_out(connection: saros.Connection) -> None:
    connection.write_lines("m a=1 0", database="types")
    with pytest.raises(saros.DataError, match=r"root\.types\.m\.a is DOUBLE: a column of TEXT does not fit") as caught:
        connection.write_lines('m a="x",b=1 1', database="types", precision="ms")
    assert 507 == caught.value.code


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ({"database": "x", "precision": "d"}, 2003, "precision 'd' is unknown: send one of ns, us, ms, s, m, h"),
        ({"database": ""}, 509, "the name of the database is missing"),
        ({"database": "x", "template": "root.{db}"}, 509, r"template 'root.\{db\}' is wrong: expected a path such as"),
    ],
)
def test_wrong_use(connection: saros.Connection, arguments: dict[str, str], code: int, reason: str) -> None:
    with pytest.raises(saros.ProgrammingError, match=reason) as caught:
        connection.write_lines("m f=1", **arguments)  # type: ignore[arg-type]
    assert code == caught.value.code


def test_lines_are_one_text(connection: saros.Connection) -> None:
    with pytest.raises(saros.InterfaceError, match="lines must be a text or bytes, not list: join them with newlines"):
        connection.write_lines(["m f=1"], database="x")  # type: ignore[arg-type]


def test_no_lines(connection: saros.Connection) -> None:
    assert 0 == connection.write_lines("", database="none")


def test_more_bytes_than_a_message_has(target: str, connection: saros.Connection) -> None:
    if "://" in target:
        with pytest.raises(saros.ProgrammingError, match=f"more than {BODY_BYTES_MAX} for one write: divide them"):
            connection.write_lines(b"\n" * (BODY_BYTES_MAX + 1), database="large")


def test_tasks_write_lines(target: str) -> None:
    async def write() -> int:
        async with await saros.aio.connect(target) as connection:
            with pytest.raises(saros.DataError, match="line 1: "):
                await connection.write_lines("bad", database="tasks")
            return await connection.write_lines("m f=1,g=2 0", database="tasks")

    assert 2 == asyncio.run(write())
