"""The driver against a real cluster of three nodes in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from system.cluster_fixture import running_servers

import saros
from saros_server.server import Server

pytestmark = pytest.mark.slow


@pytest.fixture
def servers(tmp_path: Path, monkeypatch) -> Iterator[list[Server]]:
    monkeypatch.setenv("SAROS_DURABILITY", "os")
    with running_servers(tmp_path, 3, 3) as made:
        yield made


def test_a_node_ends_while_many_write_and_no_caller_notices(servers: list[Server]) -> None:
    """The node that the client was given lists the other nodes, and stops while threads write. No row is lost."""
    with saros.connect(f"saros://{servers[0].address}", timestamps="epoch") as connection:
        assert {server.address for server in servers} == set(connection._session._calls._nodes.addresses)
        connection.execute("create timeseries root.t.e.y with datatype=double")
        connection.execute("create timeseries root.t.e.z with datatype=double")
        assert 2 == connection.execute("drop timeseries root.t.e.y, root.t.e.z").rowcount
        assert [] == connection.execute("show timeseries root.t.e.*").fetchall()
        half, ended = threading.Barrier(5), threading.Event()

        def write(number: int) -> None:
            for row in range(40):
                if row == 20:
                    half.wait(60)
                assert 1 == connection.insert(f"root.t.d{number}", [row], {"x": [float(row)]})
            assert ended.wait(60)
            connection.execute(f"insert into root.t.d{number}(time, x) values (40, 40.0)")

        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(write, number) for number in range(4)]
            half.wait(60)
            servers[0].stop()
            ended.set()
            for future in running:
                future.result()
        rows = connection.execute("select x from root.t.*").fetchall()
        assert [(row, *[float(row)] * 4) for row in range(41)] == rows
