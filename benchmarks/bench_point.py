"""Repeated small queries: microseconds and Python calls per query, embedded and through a server on this machine.

python benchmarks/bench_point.py

One client queries one device of 100,000 rows in a file. The first statements read one or a few rows: one text repeated;
texts that differ in their time; one text with `?`; two series filtered by a third; and, for comparison, a SELECT that
is planned each time. The other statements read a short range, the last value, the newest rows, and aggregates of a
short range. Python calls are counted on the client's thread, on which an embedded database runs the entire query.
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import count

import numpy as np

import saros
from saros_server.server import Server
from saros_storage.base.clock import SystemClock

ROWS, ROUNDS, WARM, COUNTED = 100_000, 1_500, 100, 100
CASES = [
    ("the same text", lambda _: ("select s1 from root.g.d1 where time = 77", ())),
    ("other times", lambda i: (f"select s1 from root.g.d1 where time = {i}", ())),
    ("time = ?", lambda i: ("select s1 from root.g.d1 where time = ?", (i,))),
    (
        "other values",
        lambda i: ("select s1, s2 from root.g.d1 where time >= ? and time < ? and s3 > ?", (i, i + 9, 0.5)),
    ),
    ("planned anew", lambda i: ("select s1 from root.g.d1 where time = ? limit ?", (i, i + 1))),
    ("short range", lambda i: ("select s1, s2 from root.g.d1 where time >= ? and time < ?", (i, i + 50))),
    ("last", lambda _: ("select last s1 from root.g.d1", ())),
    ("newest rows", lambda _: ("select s1 from root.g.d1 order by time desc limit 10", ())),
    (
        "aggregates",
        lambda i: (
            "select avg(s1), max_value(s2), count(s3) from root.g.d1 where time >= ? and time < ?",
            (i, i + 500),
        ),
    ),
]


def measured(connection, question):
    cursor = connection.cursor()
    taken = []
    for i in range(-WARM, ROUNDS):
        text, values = question(abs(i))
        started = time.perf_counter()
        cursor.execute(text, values).fetchall()
        taken.append(time.perf_counter() - started)
    taken = sorted(taken[WARM:])
    return taken[len(taken) // 2] * 1e6, taken[len(taken) * 99 // 100] * 1e6


def python_calls(connection, question):
    """Return the number of Python calls that this thread makes for one statement."""
    cursor, calls = connection.cursor(), count()

    def profile(_frame, event, _argument):
        if event == "call":
            next(calls)

    questions = [question(i) for i in range(COUNTED)]
    sys.setprofile(profile)
    for text, values in questions:
        cursor.execute(text, values).fetchall()
    sys.setprofile(None)
    return next(calls) / COUNTED


def report(where, connection):
    for name, question in CASES:
        median, slow = measured(connection, question)
        calls = python_calls(connection, question)
        print(f"{where:<12}{name:<18}{median:>8.0f} us p50{slow:>10.0f} us p99{calls:>8.0f} calls")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with saros.connect(folder) as connection:
            columns = {f"s{i}": np.random.default_rng(i).random(ROWS) for i in range(10)}
            connection.insert("root.g.d1", np.arange(ROWS), columns)
            connection.execute("flush")
            report("embedded", connection)
        server = Server(folder, "127.0.0.1", 0, clock=SystemClock())
        server.start()
        try:
            with saros.connect(f"saros://{server.address}") as connection:
                report("server", connection)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
