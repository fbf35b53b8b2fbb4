"""Ctrl-C while a call waits for a server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from waiting import wait_until

import saros
from saros_server.server import Server

pytestmark = pytest.mark.slow

ROWS = 1_000_000
#: A result that is larger than a server buffers for a client.
LARGE = f"select {', '.join(f'x + {i}' for i in range(24))} from root.a.d"

_CHILD = """
import signal, sys, threading, time, saros
connection = saros.connect(sys.argv[1], timestamps="epoch")
signal.signal(signal.SIGINT, signal.default_int_handler)
main, began = threading.main_thread().ident, time.monotonic()
cursor = connection.cursor()

def execute():
    while True:
        cursor.execute(f"select dtw(x, x) from root.a.d where time < {int(sys.argv[4])}")

def fetch():
    while True:
        cursor.execute(sys.argv[3]).fetchall()

def batches():
    while True:
        for _ in cursor.execute(sys.argv[3]).fetch_batches():
            pass

def insert():
    while True:
        connection.insert("root.b.d", range(100_000), {"y": [1.0] * 100_000})

def interrupt():
    global began
    began = time.monotonic()
    signal.pthread_kill(main, signal.SIGINT)

threading.Timer(1.0, interrupt).start()
try:
    globals()[sys.argv[2]]()
except KeyboardInterrupt:
    print(f"interrupted after {time.monotonic() - began:.2f} s")
print("again", connection.insert("root.c.d", [1], {"y": [1]}), connection.execute("select y from root.c.d").fetchall())
try:
    print("fetched", len(cursor.fetchall()))
except saros.InterfaceError as error:
    print(error)
sys.stdout.flush()
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(str(tmp_path_factory.mktemp("served")), "127.0.0.1", 0)
    made.start()
    with saros.connect(f"saros://{made.address}") as connection:
        connection.insert("root.a.d", np.arange(ROWS), {"x": np.arange(ROWS) * 0.5})
    yield made
    made.stop()


@pytest.mark.parametrize("what", ["execute", "fetch", "batches", "insert"])
def test_a_call_that_waits_is_broken_off_the_query_ends_and_the_connection_goes_on(server: Server, what: str) -> None:
    words = [sys.executable, "-c", _CHILD, f"saros://{server.address}", what, LARGE, "5000"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(3)]
        wait_until(lambda: server.api.node.engine.open_queries == 0)
        child.stdin.close()
    assert said[0].startswith("interrupted after ")
    assert float(said[0].split()[2]) < 5
    assert ["again 1 [(1, 1)]\n", "nothing to fetch: execute a statement first\n"] == said[1:]
    assert 0 == child.returncode
