"""Compare the answers of a running IoTDB with those of Saros, through IoTDB's Python client; or record them.

python benchmarks/compare_iotdb.py [--port 6667] [--record] [TOPIC ...]

The statements are those of `tests/iotdb/*.sql`; see `tests/iotdb_answers.py`. IoTDB must run on this machine with user
root, password root; all its databases are dropped. Without --record, prints the answers that differ and are not in
`tests/iotdb/differences.toml`, and the percentage of equal ones; the exit code is 1 if there are any. With --record,
writes IoTDB's answers to `tests/iotdb/answers`, without starting Saros.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from own_server import own_server

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from iotdb_answers import Comparison, Session, answers, differences, session_at, topics, write_recording


def record(session: Session, names: Sequence[str]) -> int:
    for topic in names:
        answered = list(answers(session, topic))
        write_recording(topic, answered)
        print(f"{topic}: {len(answered)} answers recorded")
    return 0


def compare(iotdb: Session, saros: Session, names: Sequence[str]) -> int:
    comparison, listed = Comparison(), differences()
    for topic in names:
        for (statement, expected), (_, answer) in zip(answers(iotdb, topic), answers(saros, topic), strict=True):
            comparison.add(statement, expected, answer)
    unexplained = [item for item in comparison.different if item[0] not in listed]
    for statement, expected, answer in unexplained:
        print(f"> {statement}\nIoTDB: {expected}\nSaros: {answer}\n")
    print(f"{comparison.share()}, {len(unexplained)} differences without a reason")
    return 1 if unexplained else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", default=topics())
    parser.add_argument("--port", type=int, default=6667, help="where IoTDB listens (default 6667)")
    parser.add_argument("--record", action="store_true", help="rewrite tests/iotdb/answers")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    try:
        iotdb = session_at(arguments.port)
    except Exception as error:  # noqa: BLE001 (the client raises several kinds)
        print(f"skipped: there is no IoTDB at port {arguments.port} ({error}); start one, or pass --port")
        return 0
    if arguments.record:
        return record(iotdb, arguments.topics)
    with own_server() as server:
        return compare(iotdb, session_at(server.port), arguments.topics)


if __name__ == "__main__":
    sys.exit(main())
