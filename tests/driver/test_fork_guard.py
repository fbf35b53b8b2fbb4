"""A process that forks: a node does not mistake one child's writes for repetitions of another child's writes.

    parent     connects, writes
      child    fails to use its parent's connection, opens its own connection, writes

The program runs in a separate process, because the process of the tests has threads of many kinds.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import saros
from saros_server.server import Server
from saros_storage.base.clock import SystemClock

pytestmark = pytest.mark.slow

PROGRAM = """
import os, sys
import numpy as np
import saros

target = sys.argv[1]
times, values = np.arange(10), {"s": np.arange(10.0)}
connection = saros.connect(target)
cursor = connection.execute("show databases")
writer = connection.bulk_writer()
connection.insert("root.f.parent", times, values)


def refused(call, *arguments):
    try:
        call(*arguments)
    except saros.Error as error:
        return getattr(error, "code", None)
    return "not refused"


for child in range(3):
    if os.fork() == 0:
        codes = [
            refused(connection.insert, "root.f.lost", times, values),
            refused(connection.execute, "show databases"),
            refused(cursor.fetchall),
            refused(writer.add, "root.f.lost", times, values),
            refused(writer.flush),
        ]
        connection.close()
        try:
            with saros.connect(target) as own:
                own.insert(f"root.f.child{child}", times, values)
        except saros.Error as error:
            codes.append(error.code)
        print(*codes, flush=True)
        os._exit(0)
    os.wait()
connection.insert("root.f.parent", times + 10, values)
writer.close()
for row in connection.execute("select count(s) from root.f.* align by device").fetchall():
    print(*row)
"""


def lines(target: str) -> list[str]:
    """Run the program, and return the lines that it printed."""
    command = [sys.executable, "-c", PROGRAM, target]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_children_of_a_client_connect_by_themselves_and_no_write_is_lost(tmp_path: Path) -> None:
    server = Server(str(tmp_path), "127.0.0.1", 0, clock=SystemClock())
    server.start()
    try:
        printed = lines(f"saros://{server.address}")
    finally:
        server.stop()
    refused = ["2014 2014 2014 2014 2014"] * 3
    written = ["root.f.child0 10", "root.f.child1 10", "root.f.child2 10", "root.f.parent 20"]
    assert refused + written == printed


def test_a_folder_stays_with_the_process_that_opened_it(tmp_path: Path) -> None:
    printed = lines(str(tmp_path / "data"))
    assert ["2014 2014 2014 2014 2014 2012"] * 3 + ["root.f.parent 20"] == printed
    with saros.connect(tmp_path / "data") as connection:
        assert [(20,)] == connection.execute("select count(s) from root.f.parent").fetchall()


ASYNC_PROGRAM = """
import asyncio, os, sys
import saros


async def codes(connection, cursor):
    found = []
    calls = [connection.insert("root.f.lost", [1], {"s": [1]}), connection.execute("show databases"), cursor.fetchall()]
    for call in calls:
        try:
            await asyncio.wait_for(call, 10)
        except (saros.Error, TimeoutError) as error:
            found.append(getattr(error, "code", None))
    await asyncio.wait_for(cursor.close(), 10)
    await asyncio.wait_for(connection.close(), 10)
    return found


async def begin():
    connection = await saros.aio.connect(sys.argv[1])
    await connection.insert("root.f.parent", [1, 2], {"s": [1, 2]})
    return connection, await connection.execute("show databases")


async def end(connection):
    print(await (await connection.execute("select count(s) from root.f.parent")).fetchall())
    await connection.close()


connection, cursor = asyncio.run(begin())
if os.fork() == 0:
    print(*asyncio.run(codes(connection, cursor)), flush=True)
    os._exit(0)
os.wait()
asyncio.run(end(connection))
"""


@pytest.mark.parametrize("is_served", [False, True])
def test_a_child_is_refused_what_its_parent_awaits(tmp_path: Path, *, is_served: bool) -> None:
    target, server = str(tmp_path / "data"), None
    if is_served:
        server = Server(target, "127.0.0.1", 0, clock=SystemClock())
        server.start()
        target = f"saros://{server.address}"
    try:
        command = [sys.executable, "-c", ASYNC_PROGRAM, target]
        ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    finally:
        if server is not None:
            server.stop()
    assert ["2014 2014 2014", "[(2,)]"] == ran.stdout.splitlines(), ran.stderr
