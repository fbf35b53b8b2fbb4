"""The asyncio interface, on an embedded database and on servers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from driver.targets import WAYS, target_of

import saros
from saros import aio
from saros.aio.threads import THREADS
from saros_server.server import Server


@pytest.fixture(params=WAYS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield a folder, or the address of a server."""
    with target_of(request.param, tmp_path / "data") as target:
        yield target


def test_write_and_read(target: str) -> None:
    async def run() -> None:
        async with await aio.connect(target, timestamps="epoch") as connection:
            assert 3 == await connection.insert("root.a.d", [1, 2, 3], {"x": [1.0, 2.0, 3.0]})
            cursor = await connection.execute("select x from root.a.d where x > ?", (1.5,))
            assert ["Time", "root.a.d.x"] == [column[0] for column in cursor.description or ()]
            assert [(2, 2.0), (3, 3.0)] == [row async for row in cursor]
            async with await connection.execute("select count(x) from root.a.d") as other:
                assert (3,) == await other.fetchone()
            table = await (await connection.execute("select x from root.a.d")).fetch_arrow()
            assert 3 == table.num_rows
            with pytest.raises(saros.ProgrammingError):
                await connection.execute("selec")
            assert f"<saros.AsyncConnection: {target}>" == repr(connection)
        assert "<saros.AsyncConnection: closed>" == repr(connection)

    asyncio.run(run())


def test_columns_come_as_frames_and_under_short_names(target: str) -> None:
    async def run() -> None:
        async with await aio.connect(target, timestamps="epoch") as connection:
            await connection.insert("root.a.d", [1, 2, 3], {"x": [1.0, 2.0, 3.0]})
            cursor = connection.cursor()
            query, names = "select x from root.a.d", ["Time", "x"]
            assert names == (await (await cursor.execute(query)).fetch_arrow(short_names=True)).column_names
            assert names == (await (await cursor.execute(query)).fetch_polars(short_names=True)).columns
            assert names == list(await (await cursor.execute(query)).fetch_numpy(short_names=True))
            frame = await (await cursor.execute(query)).fetch_pandas(short_names=True, time_index=True)
            assert ("Time", {"x": [1.0, 2.0, 3.0]}) == (frame.index.name, frame.to_dict("list"))
            await cursor.execute(query)
            assert 1.0 == (await cursor.fetchone() or ())[1]
            batches = [batch async for batch in cursor.fetch_batches(short_names=True)]
            assert [names] == [batch.schema.names for batch in batches]
            assert [2.0, 3.0] == batches[0]["x"].to_pylist()
            assert "<saros.AsyncCursor: Time TIMESTAMP, root.a.d.x DOUBLE>" == repr(await cursor.execute(query))
            with pytest.raises(saros.InterfaceError, match="no column Time"):
                await (await cursor.execute("show databases")).fetch_pandas(time_index=True)

    asyncio.run(run())


def test_a_prepared_statement_runs_with_other_values(target: str) -> None:
    async def run() -> None:
        async with await aio.connect(target, timestamps="epoch") as connection:
            cursor = connection.cursor()
            await cursor.prepare("insert into root.a.d(time, x) values (?, ?)").executemany([(1, 1.5), (2, 2.5)])
            written = await connection.executemany("insert into root.a.d(time, x) values (?, ?)", [(3, 3.5)])
            assert 1 == written.rowcount
            above = connection.cursor().prepare("select x from root.a.d where x > ?")
            assert [(2, 2.5), (3, 3.5)] == await (await above.execute((2,))).fetchall()
            assert [(3, 3.5)] == await (await above.execute((3,))).fetchall()
            with pytest.raises(saros.ProgrammingError):
                await above.execute(())
            with pytest.raises(saros.InterfaceError, match="prepare"):
                cursor.prepare(" ")

    asyncio.run(run())


def test_many_statements_wait_at_once(target: str) -> None:
    async def run() -> None:
        async with await aio.connect(target) as connection:
            await asyncio.gather(*(connection.insert(f"root.a.d{i}", [1], {"x": [float(i)]}) for i in range(20)))
            cursors = await asyncio.gather(*(connection.execute(f"select x from root.a.d{i}") for i in range(20)))
            rows = await asyncio.gather(*(cursor.fetchall() for cursor in cursors))
            assert [float(i) for i in range(20)] == [found[0][1] for found in rows]

    asyncio.run(run())


def test_a_cancelled_task_cancels_its_statement(target: str) -> None:
    async def run() -> None:
        async with await aio.connect(target) as connection:
            await connection.insert("root.a.d", np.arange(1_000_000), {"x": np.arange(1_000_000.0)})
            columns = ", ".join(f"sin(x + {i})" for i in range(50))
            cursor = await connection.execute(f"select {columns} from root.a.d")
            task = asyncio.create_task(cursor.fetch_arrow())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert [] == await (await connection.execute("show queries")).fetchall()

    asyncio.run(run())


@pytest.mark.slow
def test_cancelling_many_tasks_waits_for_none_of_their_statements(tmp_path: Path) -> None:
    async def run() -> None:
        async with await aio.connect(str(tmp_path), options={"durability": "os"}) as connection:
            await connection.insert("root.a.d", np.arange(1_000_000), {"x": np.arange(1_000_000.0)})
            columns = ", ".join(f"sin(x + {i})" for i in range(200))
            cursors = [await connection.execute(f"select {columns} from root.a.d") for _ in range(THREADS + 6)]
            tasks = [asyncio.create_task(cursor.fetch_arrow()) for cursor in cursors]
            await asyncio.sleep(0.05)
            before = time.process_time()
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert {asyncio.CancelledError} == set(map(type, ended))
            assert 5.0 > time.process_time() - before  # more than a minute if all statements ran to their end
            for cursor in cursors:
                await cursor.close()
            assert [] == await (await connection.execute("show queries")).fetchall()

    asyncio.run(run())


def test_what_is_closed_is_refused(target: str) -> None:
    async def run() -> None:
        connection = await aio.connect(target)
        cursor = connection.cursor()
        await connection.close()
        await connection.close()
        await cursor.close()
        assert connection.closed
        for call in (cursor.execute("show databases"), connection.insert("root.a", [1], {"x": [1]}), connection.hold()):
            with pytest.raises(saros.InterfaceError, match="closed"):
                await call
        with pytest.raises(saros.InterfaceError, match="closed"):
            async with connection:
                pass

    asyncio.run(run())


def test_columns_and_moments_are_those_of_the_other_face(target: str) -> None:
    async def run() -> None:
        async with await aio.connect(target, timestamps="epoch") as connection:
            await connection.insert("root.a.d", [1, 2], {"x": [1.5, 2.5]})
            point = await connection.hold()
            await connection.insert("root.a.d", [3], {"x": [3.5]})
            cursor = await connection.execute("select x from root.a.d", at=point)
            assert {"Time": [1, 2], "root.a.d.x": [1.5, 2.5]} == {
                name: values.tolist() for name, values in (await cursor.fetch_numpy()).items()
            }
            await connection.let_go(point)
            await cursor.execute("select x from root.a.d")
            assert 3 == sum([batch.num_rows async for batch in cursor.fetch_batches()])
            await cursor.execute("select x from root.a.d")
            cursor.arraysize = 2
            assert 2 == len(await cursor.fetchmany())
            assert cursor.query_id
            await cursor.cancel()

    asyncio.run(run())


def test_tasks_share_a_connection_to_several_nodes_of_which_one_ends(tmp_path: Path) -> None:
    servers = [Server(str(tmp_path / name), "127.0.0.1", 0) for name in "ab"]
    for server in servers:
        server.start()
    target = "saros://" + ",".join(server.address for server in servers)

    async def task(connection: aio.AsyncConnection, number: int) -> int:
        device = f"root.a.d{number}"
        assert 1 == await connection.insert(device, [number], {"x": [float(number)]})
        cursor = await connection.execute(f"select x from {device}")
        assert [(number, float(number))] == [row async for row in cursor]
        return 0 if cursor.stale or cursor.missing else 1

    async def run() -> None:
        async with await aio.connect(target, timestamps="epoch", failover_s=10.0) as connection:
            assert [1] * 20 == await asyncio.gather(*(task(connection, number) for number in range(20)))
            used = connection._session._nodes.addresses[0]
            ended = next(server for server in servers if server.address == used)
            await asyncio.to_thread(ended.stop)
            assert [1] * 20 == await asyncio.gather(*(task(connection, number) for number in range(20)))

    asyncio.run(run())
    for server in servers:
        server.stop()


def test_rows_are_fetched_in_any_portions_and_the_rest_as_columns(target: str) -> None:
    async def run() -> None:
        async with await aio.connect(target, timestamps="epoch") as connection:
            await connection.insert("root.a.d", np.arange(100_000), {"x": np.arange(100_000)})
            cursor = await connection.execute("select x from root.a.d")
            assert (0, 0) == await cursor.fetchone()
            assert [(1, 1)] == await cursor.fetchmany()
            assert [(n, n) for n in range(2, 70_000)] == await cursor.fetchmany(69_998)
            assert list(range(70_000, 100_000)) == (await cursor.fetch_arrow()).column(1).to_pylist()
            assert [] == await cursor.fetchall()
            await cursor.execute("select x from root.a.d")
            assert 10 == len(await cursor.fetchmany(10))
            assert [(n, n) for n in range(10, 100_000)] == await cursor.fetchall()

    asyncio.run(run())


def test_a_statement_is_cancelled_from_another_task(target: str) -> None:
    async def run() -> None:
        async with await aio.connect(target) as connection:
            await connection.insert("root.a.d", np.arange(1_000_000), {"x": np.arange(1_000_000.0)})
            columns = ", ".join(f"sin(x + {i})" for i in range(50))
            cursor = await connection.execute(f"select {columns} from root.a.d")
            task = asyncio.create_task(cursor.fetch_arrow())
            await asyncio.sleep(0)
            await cursor.cancel()
            with pytest.raises(saros.OperationalError) as caught:
                await task
            assert 715 == caught.value.code
            await cursor.execute("show queries")
            assert [] == await cursor.fetchall()

    asyncio.run(run())


def test_nodes_are_spoken_to_without_threads(tmp_path: Path) -> None:
    server = Server(str(tmp_path), "127.0.0.1", 0)
    server.start()

    async def run() -> None:
        async with await aio.connect(f"saros://{server.address}") as connection:
            for _ in range(20):
                await asyncio.gather(*(connection.insert(f"root.a.d{i}", [1], {"x": [1]}) for i in range(20)))
            assert [] == [
                thread.name for thread in threading.enumerate() if thread.name.startswith(("saros-aio", "asyncio"))
            ]

    asyncio.run(run())
    server.stop()


@pytest.mark.slow
def test_many_tasks_write_at_once_and_all_is_written_once(target: str) -> None:
    async def write(connection: aio.AsyncConnection, task: int) -> int:
        return sum([await connection.insert(f"root.t.d{task}", [i], {"x": [float(i)]}) for i in range(10)])

    async def run() -> None:
        async with await aio.connect(target) as connection:
            assert [10] * 100 == await asyncio.gather(*(write(connection, task) for task in range(100)))
            cursor = await connection.execute("select count(x) from root.t.* align by device")
            assert [10] * 100 == [row[1] for row in await cursor.fetchall()]

    asyncio.run(run())
