"""Programs that use IoTDB's clients print the same output on Saros as on IoTDB, except for the differences listed here.

`testdata/iotdb` has their output on IoTDB 2.0.1-beta (see `server/stock_clients/drivers`). A test is skipped if its
client is unavailable, or its program is not in ../shared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from server.stock_clients.artefacts import Unavailable
from server.stock_clients.drivers import DRIVERS, PRINTED
from server.stock_clients.stock_server import stock_server

from saros_server.process.version import RELEASE

pytestmark = pytest.mark.slow

_SYNTAX = r"Error occurred while parsing SQL to physical plan: line 1:0 mismatched input 'selec' .*"
_MISTAKE = "line 1, column 1: unexpected 'selec'; did you mean SELECT?\n{}\n^"


def other(pattern: str, *parts: str) -> tuple[re.Pattern[str], str]:
    """Return a difference: a pattern that matches one place in IoTDB's output, and the output of Saros there."""
    return re.compile(pattern), "".join(parts)


DIFFERENT = {
    "python": [
        # Saros returns columns and rows in the order of paths, IoTDB in the order of hash tables.
        other(
            r"ok  query .*",
            r"ok  query (9, ['1\t\tTrue\t\t0x1\t\t2.5\t\t2024-01-02\t\t1.5\t\t1\t\t1\t\ts\t\tt",
            r"\t\t1970-01-01T00:00:01.001+00:00',",
            r" '2\t\tNone\t\tNone\t\tNone\t\tNone\t\tNone\t\t5\t\tNone\t\tNone\t\tx\t\tNone'])",
        ),
        other(
            r"ok  execute_statement .*",
            r"ok  execute_statement (5, ['0\t\troot.b.al\t\ttrue\t\tNone\t\tINF',",
            r" '0\t\troot.b.d\t\tfalse\t\tNone\t\tINF'])",
        ),
        other(r"\['new', 'np', 'd', 'al'\]", "['al', 'd', 'new', 'np']"),
        other(
            r"\{'name': 's', 'type': UserDefinedType\(\).*",
            "{'name': 'bl', 'type': UserDefinedType(), 'nullable': True, 'default': None},",
            " {'name': 'd', 'type': Float(), 'nulla",
        ),
        other(_SYNTAX, _MISTAKE.format("selec 1")),
        other(r"2\.0\.1-beta\\t\\t5f31648", rf"{RELEASE}\t\tSaros, IoTDB protocol V_3"),
    ],
    "jdbc": [other(_SYNTAX, _MISTAKE.format("selec"))],
    "pool": [
        other(
            r"ok  query .*",
            "ok  query [Time, root.jp.a.i, root.jp.d.i, root.jp.d.t, root.jp.e.i,",
            " root.jp.ta.d, root.jp.ta.i, root.jp.ta.t, root.jp.tb.d, root.jp.tb.i, root.jp.tb.t]",
            " [INT64, INT32, INT32, TEXT, INT32, DATE, INT32, TEXT, DATE, INT32, TEXT]",
            " 5 4\tnull\tnull\tnull\tnull\t20240101\t4\tv4\t20240101\t4\tv4",
        ),
        other(_SYNTAX, _MISTAKE.format("selec")),
    ],
    "cli": [
        other(r" _____(?s:.*)5f31648", f"version {RELEASE} (Build: Saros"),  # Saros prints no logo
        other(_SYNTAX, _MISTAKE.format("selec")),
        other(
            r"Fail to insert .*",
            "0 of 1 points of root.cli.d were written; left out: a ('z' does not fit INT32);",
            " insert corrected values for these",
        ),
        other(r"\[root\.cli\] does not exist", "[root.cli] is not a database"),
    ],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """Yield the port of a server without users, and a folder from which the server may load files."""
    folder = tmp_path_factory.mktemp("drivers")
    files = folder / "files"
    files.mkdir()
    with stock_server(folder, SAROS_LOAD_FOLDERS=str(files)) as port:
        yield port, files


def expected(name: str) -> list[str]:
    """Return the lines that a program prints."""
    text = (PRINTED / f"{name}.txt").read_text()
    for pattern, instead in DIFFERENT.get(name, ()):
        (found,) = pattern.finditer(text)
        text = text[: found.start()] + instead + text[found.end() :]
    return text.splitlines()


@pytest.mark.parametrize("name", ["python", "jdbc", "pool", "cli", "tools"])
def test_a_program_prints_the_same_as_on_iotdb(name: str, server: tuple[int, Path]) -> None:
    try:
        printed = DRIVERS[name](*server)
    except Unavailable as error:
        pytest.skip(str(error))
    assert expected(name) == printed
