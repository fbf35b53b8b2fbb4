"""The stock Python client and JDBC read the same values, types, and codes from Saros as from IoTDB.

`server/stock_clients/values.sql` has the statements, and `testdata/iotdb/*_values.txt` the answers that the clients of
`server/stock_clients/drivers` read from IoTDB 2.0.1-beta. `testdata/iotdb/*_values_of_saros.txt` has the answers of
Saros that differ, each with the reason. A test is skipped if its client is unavailable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from server.stock_clients.artefacts import Unavailable
from server.stock_clients.drivers import DRIVERS, PRINTED
from server.stock_clients.stock_server import stock_server

pytestmark = pytest.mark.slow

_CLIENTS = ("session_values", "jdbc_values")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Yield the port of a server that requires no login."""
    with stock_server(tmp_path_factory.mktemp("values")) as found:
        yield found


def answers(lines: list[str]) -> dict[str, str]:
    """Return the answers by "number statement"; the number is the count of earlier occurrences of the statement.

    Lines that begin with `#` are reasons, and are skipped.
    """
    text = "\n".join(line for line in lines if not line.startswith("#"))
    blocks = re.split(r"^> ", text, flags=re.MULTILINE)[1:]
    found: dict[str, str] = {}
    for block in blocks:
        statement, _, answer = block.strip("\n").partition("\n")
        times = sum(known.partition(" ")[2] == statement for known in found)
        found[f"{times} {statement}"] = answer
    return found


def recorded(name: str) -> list[str]:
    return (PRINTED / f"{name}.txt").read_text(encoding="utf-8").split("\n")


@pytest.mark.parametrize("name", _CLIENTS)
def test_a_client_reads_the_same_values_as_from_iotdb(name: str, port: int, tmp_path: Path) -> None:
    try:
        printed = DRIVERS[name](port, tmp_path)
    except Unavailable as error:
        pytest.skip(str(error))
    assert {**answers(recorded(name)), **answers(recorded(f"{name}_of_saros"))} == answers(printed)


@pytest.mark.parametrize("name", _CLIENTS)
def test_each_listed_answer_has_a_reason_and_differs_from_iotdb(name: str) -> None:
    lines = recorded(f"{name}_of_saros")
    iotdb, listed = answers(recorded(name)), answers(lines)
    assert [] == [statement for statement, answer in listed.items() if iotdb[statement] == answer]
    statements = [at for at, line in enumerate(lines) if line.startswith("> ")]
    assert [] == [lines[at] for at in statements if not lines[at - 1].startswith("# ")]
