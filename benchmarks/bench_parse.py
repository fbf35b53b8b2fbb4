"""Milliseconds to parse a statement: cold, warm, from the statement cache, and by the fast path for INSERT.

    python benchmarks/bench_parse.py [--rounds 200]

The column "first" is the first parse of the statement in a new process, when the parser tables are empty; for the
column "after warm()", `warm()` has filled these tables. All figures are the CPU time of one thread; the figures of the
other columns are the best of the rounds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

STATEMENTS = {
    "select, 2 predicates": "select s1, s2 from root.sg.d1 where time > {n} and s1 < 3.5",
    "group by time, fill": (
        "select count(s1), avg(s2), max_value(s3) as m from root.sg.d1, root.sg.d2 where time >= {n} "
        "group by ([{n}, 1000000), 10m, 5m) having count(s1) > 1 fill(previous) order by time desc limit 10 offset 5"
    ),
    "5 levels deep": (
        "select abs(ceil(floor(sqrt(sin(s1 + 1) * 2) / 3) - 4) % 5), round(s2, 2), cast(s3 as text) from root.sg.** "
        "where (((s1 > {n} and s2 < 2) or s3 = 'x') and not (s4 in (1, 2, 3))) or s5 between 1 and 2"
    ),
    "create timeseries": "create timeseries root.sg.d{n}.s1 with datatype=INT32, encoding=RLE, compressor=LZ4",
    "insert, 1 row": "insert into root.sg.d1(time, s1, s2, s3) values ({n}, 1.5, 'x', true)",
    "insert, 1 row, ?": "insert into root.sg.d1(time, s1, s2, s3) values (?, ?, ?, ?)",
}


def insert(rows):
    values = ", ".join(f"({i}, {i}.5, 'text {i}', true)" for i in range(rows))
    return f"insert into root.sg.d1(time, s1, s2, s3) values {values}"


def best(work, rounds):
    times = []
    for i in range(rounds):
        start = time.thread_time_ns()
        work(i)
        times.append(time.thread_time_ns() - start)
    return min(times) / 1e6


def first(text, *, warmed):
    """Return the milliseconds of the first parse in a new process."""
    program = (
        "import sys, time\n"
        "from saros_grammar import parser\n"
        + ("parser.warm()\n" if warmed else "")
        + "start = time.thread_time_ns()\nparser.parse_source(sys.argv[1])\nprint(time.thread_time_ns() - start)"
    )
    answer = subprocess.run([sys.executable, "-c", program, text], check=True, capture_output=True, text=True)
    return int(answer.stdout) / 1e6


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=200)
    rounds = options.parse_args().rounds

    start = time.thread_time_ns()
    from saros_grammar import bind, cache, insert_fast, parser

    imported = time.thread_time_ns()
    parser.warm()
    warmed = time.thread_time_ns()
    print(f"import {(imported - start) / 1e6:.0f} ms, warm() {(warmed - imported) / 1e6:.0f} ms\n")
    print(f"{'ms per statement':24}{'first':>9}{'after warm()':>14}{'warm':>9}{'shape hit':>11}{'text hit':>10}")
    for name, template in STATEMENTS.items():
        text = template.format(n=7)
        statements = cache.StatementCache()
        statements.get(text)
        parser.parse_source(text)
        row = (
            first(text, warmed=False),
            first(text, warmed=True),
            best(lambda i, t=template: parser.parse_source(t.format(n=i)), rounds),
            best(lambda i, t=template, s=statements: s.get(t.format(n=i + 10_000)), rounds),
            best(lambda _, t=text, s=statements: s.get(t), rounds),
        )
        print(f"{name:24}{row[0]:9.3f}{row[1]:14.3f}{row[2]:9.3f}{row[3]:11.4f}{row[4]:10.4f}")

    print(f"\n{'insert, rows of 4':24}{'ANTLR':>9}{'fast path':>14}")
    for rows in (1, 10, 100, 1000):
        text = insert(rows)
        slow = best(lambda _, t=text: parser.parse_source(t), max(3, rounds // rows))
        fast = best(lambda _, t=text: insert_fast.parse_insert(t), max(3, rounds // rows))
        print(f"{rows:<24}{slow:9.3f}{fast:14.4f}")

    binder = bind.ParameterBinder()
    statement = parser.parse(STATEMENTS["insert, 1 row, ?"]).statement
    print(f"\nbind 4 values: {best(lambda i: binder.bind(statement, (i, 1.5, 'x', True)), rounds):.4f} ms")


if __name__ == "__main__":
    main()
