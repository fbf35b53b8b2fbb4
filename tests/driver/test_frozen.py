"""Frozen nodes: the process is stopped (SIGSTOP), but the kernel still accepts connections and data.

Every call ends nevertheless, either at another node or with an error that names the frozen node.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from system.local_cluster import LocalCluster
from waiting import PATIENCE_S

import saros
from saros.base.target import parse_target
from saros.transport import exchange, uploads

pytestmark = pytest.mark.slow

SILENT = "the node at {} has not answered for"
#: A node whose threads compute in Python for longer than the driver waits for a silent node.
BUSY_S, BUSY_THREADS = 6, 8
BUSY = f"""
import sys, threading, time
from saros_server.server import Server
from saros_server.api.session import EmbeddedSession
execute = EmbeddedSession.execute
def compute():
    until = time.monotonic() + {BUSY_S}
    while time.monotonic() < until:
        sum(range(100_000))
def busy(self, text, *arguments, **options):
    if text == "show databases":
        for _ in range({BUSY_THREADS}):
            threading.Thread(target=compute).start()
        compute()
    return execute(self, text, *arguments, **options)
EmbeddedSession.execute = busy
server = Server(sys.argv[1], "127.0.0.1", 0)
server.start()
print(server.address, flush=True)
sys.stdin.read()
server.stop()
"""


def test_a_silent_node_is_given_up_within_five_seconds() -> None:
    assert exchange.SILENT_S < 5


def test_a_node_whose_threads_all_compute_is_not_silent(tmp_path: Path) -> None:
    assert BUSY_S > exchange.SILENT_S
    words = [sys.executable, "-c", BUSY, str(tmp_path / "data")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        target = f"saros://{node.stdout.readline().strip()}"
        with saros.connect(target, failover_s=0) as connection:
            assert [] == connection.execute("show databases").fetchall()
            assert 1 == connection.insert("root.a.d", [1], {"x": [1.0]})
        node.communicate()


@pytest.fixture
def single(tmp_path: Path) -> Iterator[LocalCluster]:
    """Yield a started server."""
    yield from _started(tmp_path, 1)


@pytest.fixture
def three(tmp_path: Path) -> Iterator[LocalCluster]:
    """Yield a started cluster of three nodes. Each node has a replica of all data."""
    yield from _started(tmp_path, 3)


def _started(folder: Path, nodes: int) -> Iterator[LocalCluster]:
    with LocalCluster(folder, nodes, nodes, environment={"SAROS_DURABILITY": "os"}) as made:
        made.start()
        made.wait_ready()
        yield made
        made.bring_back()


def connect(cluster: LocalCluster, node: int = 1, **options: object) -> saros.Connection:
    return saros.connect(f"saros://{cluster.address(node)}", **{"timestamps": "epoch", "failover_s": 0, **options})


def error_of(call: Callable[[], object]) -> saros.Error:
    with pytest.raises(saros.Error) as caught:
        call()
    return caught.value


def test_all_calls_to_a_frozen_server_end_with_an_error_that_names_it(single: LocalCluster, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"content")
    with connect(single) as reads, connect(single) as writes, connect(single) as streams:
        rows = np.arange(1_000_000)
        reads.insert("root.a.d", rows, {"x": rows, "y": rows * 1.5})
        cursor = streams.cursor()
        cursor.execute("select x, y from root.a.d")
        cursor.fetchmany(10)
        prepared = reads.cursor().prepare("select x from root.a.d where time = ?")
        sender = uploads.Uploads(parse_target(f"saros://{single.address(1)}"))
        single.stop(1)
        calls = {
            "read": lambda: reads.execute("select x from root.a.d"),
            "prepared": lambda: prepared.execute([1]),
            "rest of a result": cursor.fetchall,
            "open": lambda: connect(single),
            "upload": lambda: sender.send("job", "file", str(file)),
        }
        with ThreadPoolExecutor(len(calls) + 3) as pool:
            ending = {name: pool.submit(error_of, call) for name, call in calls.items()}
            unknown = [
                pool.submit(error_of, lambda: writes.execute("insert into root.a.e(time, x) values (1, 1)")),
                pool.submit(error_of, lambda: writes.insert("root.a.e", [2], {"x": [2]})),
                pool.submit(error_of, lambda: _write_in_bulk(writes)),
            ]
            errors = {name: future.result(PATIENCE_S) for name, future in ending.items()}
            assert {2016} == {error.code for error in errors.values()}
            told = SILENT.format(single.address(1))
            assert {} == {name: str(error) for name, error in errors.items() if told not in str(error)}
            for future in unknown:
                error = future.result(PATIENCE_S)
                assert (2018, True) == (error.code, told in str(error))
        assert [] == single.up  # the process is still stopped
        single.resume(1)
        sender.close()
    with connect(single, failover_s=PATIENCE_S) as connection:
        assert [(len(rows),)] == connection.execute("select count(x) from root.a.d").fetchall()


def _write_in_bulk(connection: saros.Connection) -> None:
    with connection.bulk_writer() as writer:
        writer.add("root.a.e", [3], {"x": [3]})


def test_a_write_to_a_frozen_server_has_one_effect_when_it_goes_on(single: LocalCluster) -> None:
    with connect(single, failover_s=PATIENCE_S) as connection:
        connection.insert("root.a.d", [1], {"x": [1]})
        single.stop(1)
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(connection.insert, "root.a.d", [2], {"x": [2]})
            error = error_of(lambda: connect(single))
            assert SILENT.format(single.address(1)) in str(error)
            single.resume(1)
            assert 1 == writing.result(PATIENCE_S)
        assert [(2,)] == connection.execute("select count(x) from root.a.d").fetchall()


def test_calls_to_a_frozen_node_of_a_cluster_go_to_the_others(three: LocalCluster) -> None:
    with connect(three, failover_s=PATIENCE_S) as reads, connect(three, failover_s=PATIENCE_S) as writes:
        assert 1 == reads.insert("root.a.d", [1], {"x": [1]})
        prepared = reads.cursor().prepare("select count(x) from root.a.d")
        assert [(1,)] == prepared.execute().fetchall()
        three.stop(1)
        with ThreadPoolExecutor(4) as pool:
            done = [
                pool.submit(writes.insert, "root.a.d", [2], {"x": [2]}),
                pool.submit(lambda: writes.execute("insert into root.a.d(time, x) values (3, 3)").rowcount),
            ]
            counted = [
                pool.submit(lambda: reads.execute("select count(x) from root.a.d").fetchall()),
                pool.submit(lambda: prepared.execute().fetchall()),
            ]
            assert [1, 1] == [future.result(PATIENCE_S) for future in done]
            assert all(1 <= future.result(PATIENCE_S)[0][0] <= 3 for future in counted)
        assert [2, 3] == three.up
        three.resume(1)
        assert [(3,)] == reads.execute("select count(x) from root.a.d").fetchall()
