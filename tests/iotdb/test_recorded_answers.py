"""Saros gives the same answers to the statements of `*.sql` as IoTDB, except for those in `differences.toml`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from free_ports import free_ports
from waiting import wait_until

pytest.importorskip("iotdb.Session", reason="apache-iotdb is not installed")

from iotdb_answers import (
    Answer,
    Comparison,
    Session,
    answers,
    differences,
    equal,
    recording,
    rule_for,
    session_at,
    topics,
    write_recording,
)

from saros_server.process.server_file import serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Yield a session of IoTDB's own client with a Saros server."""
    folder = tmp_path_factory.mktemp("answers")
    (port,) = free_ports(1)
    command = (sys.executable, "-m", "saros_server", "--data", str(folder), "--port", str(port), "--foreground")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: serving(str(folder)) is not None)
        session = session_at(port)
        yield session
        session.close()
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def comparison(session: Session) -> Comparison:
    """Return a comparison of all answers with the recorded answers."""
    found = Comparison()
    for topic in topics():
        for (recorded, expected), (statement, answer) in zip(recording(topic), answers(session, topic), strict=True):
            assert recorded == statement
            found.add(statement, expected, answer)
    print(found.share())
    return found


def test_answers_are_those_of_iotdb_but_for_listed_differences(comparison: Comparison) -> None:
    listed = differences()
    assert [] == [
        f"> {statement}\nIoTDB: {expected}\nSaros: {answer}"
        for statement, expected, answer in comparison.different
        if statement not in listed
    ]


def test_answers_are_equal_for_98_percent_of_the_statements_that_iotdb_answers_well(comparison: Comparison) -> None:
    assert 0.98 <= comparison.share_without_faults()


def test_each_listed_difference_exists(comparison: Comparison) -> None:
    assert set() == set(differences()) - {statement for statement, _, _ in comparison.different}


def rows(*values: object, kind: str = "DOUBLE", name: str = "Time") -> Answer:
    return Answer("rows", ((name, kind),), tuple((value,) for value in values))


@pytest.mark.parametrize(
    ("statement", "one", "other", "same"),
    [
        ("select x", Answer("ok"), Answer("error 701"), False),
        ("select x", rows(1.0), rows(1.0 + 1e-12), True),
        ("select x", rows(1.0), rows(1.001), False),
        ("select x", rows(1), rows(1.0), False),
        ("select x", rows(float("nan")), rows(float("nan")), True),
        ("select x", rows(float("nan")), rows(None), False),
        ("select x", rows(1), rows(1, 1), False),
        ("select x", rows(1, kind="INT32"), rows(1, kind="INT64"), False),
        ("select x", rows(1, 2), rows(2, 1), False),
        ("show devices", rows(1, 2, name="Device"), rows(2, 1, name="Device"), True),
        ("show devices order by device", rows(1, 2, name="Device"), rows(2, 1, name="Device"), False),
    ],
)
def test_answers_are_equal_if_header_types_and_rows_are(statement: str, one: Answer, other: Answer, same: bool) -> None:
    assert same == equal(statement, one, other)


def test_columns_of_a_wildcard_are_equal_in_any_order() -> None:
    one = Answer("rows", (("a", "INT32"), ("b", "INT32")), ((1, 2),))
    other = Answer("rows", (("b", "INT32"), ("a", "INT32")), ((2, 1),))
    assert (True, False) == (equal("select *", one, other), equal("select a, b", one, other))


def test_a_rule_explains_a_difference_by_statement_and_outcome() -> None:
    refused, answered = Answer("error 701"), rows()
    assert "LIMIT 0 is allowed, and answers no rows." == rule_for("select x from root.a limit 0", refused, answered)
    assert rule_for("select x from root.a", refused, answered) is None
    assert rule_for("select x from root.a limit 0", answered, refused) is None


@pytest.mark.parametrize(
    "answer", [Answer("ok"), Answer("error 701"), rows(1.5, None, name="count_if(root.a.b.c > 5, 1)"), rows()]
)
def test_a_recorded_answer_is_read_as_it_was(answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iotdb_answers.FOLDER", tmp_path)
    (tmp_path / "answers").mkdir()
    write_recording("topic", [("select x", answer), ("show devices", answer)])
    assert [("select x", answer), ("show devices", answer)] == recording("topic")
