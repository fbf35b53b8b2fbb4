"""IoTDB's own clients, run as separate processes, print the same output with Saros as with IoTDB.

The clients come from PyPI and Maven Central (`server/stock_clients/artefacts`). A test whose client is unavailable is
skipped. Telegraf and Grafana's plugin use IoTDB's Go client, which no registry has: a test makes its calls one by one.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from server.stock_clients import artefacts
from server.stock_clients.stock_server import stock_server
from server.thrift_client import Failed, ThriftClient

from saros_server.thrift import structs

pytestmark = pytest.mark.slow

USER, PASSWORD = "root", "a-secret-of-stock-clients"
_PROGRAM = Path(artefacts.__file__).with_name("python_client.py")
_CLIENT_SECONDS = 60.0
_JAVA = ("java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@contextmanager
def serve(folder: Path, *more: str) -> Iterator[int]:
    """Run a server that has a user, with the options `more`; yield the server's port."""
    secret = folder / "password"
    secret.write_text(PASSWORD)
    with stock_server(folder, "--auth", "--init-admin-password-file", str(secret), *more) as found:
        yield found


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Yield the port of a shared server: each client uses different databases, and drops them."""
    with serve(tmp_path_factory.mktemp("stock")) as found:
        yield found


def lines_of(command: tuple[str, ...], **environment: str) -> list[str]:
    """Return the lines that a program prints."""
    variables = {**os.environ, **environment}
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_CLIENT_SECONDS, env=variables)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def java_steps(version: str, program: str, port: int, *more: str) -> dict[str, str]:
    try:
        classes = artefacts.java_classes(version)
    except artefacts.Unavailable as error:
        pytest.skip(str(error))
    lines = lines_of((*_JAVA, "-cp", classes, program, str(port), USER, PASSWORD, *more))
    return dict(line.split(" | ", 1) for line in lines if " | " in line)


# ---------------------------------------------------------------------------------------------- Python

DONE_BY_PYTHON = [
    *("set_storage_group", "create_time_series", "create_multi_time_series", "create_aligned_time_series"),
    *("insert_record", "insert_record with nulls", "insert_str_record", "insert_records"),
    *("insert_records_of_one_device", "insert_string_records_of_one_device", "insert_tablet", "insert_tablets"),
    *("insert_aligned_record", "insert_aligned_str_record", "insert_aligned_records"),
    *("insert_aligned_records_of_one_device", "insert_aligned_tablet", "insert_aligned_tablets"),
    *("insert_tablet of arrays", "test_insert_record", "test_insert_tablet", "insert in the first zone"),
    *("write while a result is open", "delete_data", "delete_data_in_range", "delete_time_series"),
    "delete_storage_group",
]
PYTHON = {
    **dict.fromkeys(DONE_BY_PYTHON, 0),
    "check_time_series_exists": True,
    "check a series that is not there": False,
    "execute_query_statement": [
        "1 True 1 1099511627777 0.5 0.25 t1 s",
        "2 False None 1099511627778 None 0.5 None None",
        "3 None 3 None None None t3 None",
        "4 False 4 1099511627780 0.5 1.0 t4 s",
        "5 True 5 1099511627781 0.5 1.25 t5 s",
        "6 False 6 1099511627782 0.5 1.5 t6 s",
        "7 None 7 None None None None None",
        "8 None None None None None t8 None",
        "9 True 9 1099511627785 0.5 2.25 t9 s",
        "11 True 11 1099511627787 0.5 2.75 t11 s",
        "12 None 12 None None None None None",
        "13 None 13 None None None None None",
    ],
    "types that are not numbers": [
        "1 1970-01-01T00:00:00.001+00:00 2024-01-02 0xff",
        "2 1970-01-01T00:00:00.002+00:00 None 0xff",
        "4 1970-01-01T00:00:00.004+00:00 2024-01-05 0xff",
    ],
    "execute_statement": [
        "0 root.py.al true None INF",
        "0 root.py.d false None INF",
        "0 root.py.e false None INF",
        "0 root.py.new false None INF",
        "0 root.py.np false None INF",
    ],
    "todf": [7, 11],
    "aggregate": ["0 7 0.95"],
    "raw": ["3 3", "4 4"],
    "last": ["13 root.py.d.i 13 INT32"],
    "by device": ["1 root.py.al 1", "1 root.py.d 1"],
    "no rows": [],
    "syntax": "StatementExecutionException: 700: line 1, column 1: unexpected 'selec'; did you mean SELECT?\nselec\n^",
    "a value of another type": "StatementExecutionException: 507: root.py.d.i is INT32: a column of TEXT does not fit",
    "one of two records": "StatementExecutionException: 302: root.py.d.i is INT32: a column of TEXT does not fit",
    "the other one": ["21 21"],
    "an illegal path": "StatementExecutionException: 509: py.d is not a legal path: it does not begin with root",
    "time-out": "StatementExecutionException: 720",
    "after the time-out": ["0 400000"],
    "get_time_zone": ["+08:00", "UTC"],
    "read in the second zone": ["1704067200000 1.0"],
    "set_time_zone": "Asia/Tokyo",
    "read in the third zone": [],
    "the open result": ["1", "3", "4", "5", "6", "7", "9", "11", "12", "13", "21"],
    "SessionPool": ["0 11", "0 11"],
    "DB-API": [["Time", "root.py.z.i"], [[1.0, 2.0], [5.0, 5.0]]],
    "SQLAlchemy": [[1.0, 2.0], [5.0, 5.0]],
    "SQLAlchemy's inspector": [["root.py"], ["al", "d", "e", "new", "np", "z"]],
    "what is left": ["7 7", "9 9", "11 11", "13 13", "21 21"],
    "no database": [],
    "no such user": "StatementExecutionException: 801: wrong user or password",
}


def packages_of(version: str) -> str:
    try:
        return str(artefacts.python_packages(version))
    except artefacts.Unavailable as error:
        pytest.skip(str(error))


def test_the_python_client(port: int) -> None:
    command = (sys.executable, str(_PROGRAM), str(port), USER, PASSWORD)
    lines = lines_of(command, PYTHONPATH=packages_of("2.0.11"))
    steps = {found["step"]: found["result"] for found in map(json.loads, lines)}
    steps["time-out"] = steps["time-out"].partition(": query")[0]
    assert PYTHON == steps


OLD_PYTHON = """
import sys
from iotdb.Session import Session
from iotdb.utils.IoTDBConstants import TSDataType
from iotdb.utils.Tablet import Tablet

session = Session("127.0.0.1", *sys.argv[1:], fetch_size=2, zone_id="UTC")
session.open()
names, types = ["i", "t", "b", "f"], [TSDataType.INT32, TSDataType.TEXT, TSDataType.BOOLEAN, TSDataType.FLOAT]
session.insert_tablet(Tablet("root.old.d", names, types, [[1, "on", True, 0.5], [2, None, None, 1.5]], [1, 2]))
session.insert_record("root.old.d", 3, names, types, [3, "off", False, 2.5])
for text in ("select i, t, b, f from root.old.d", "show devices root.old.**", "select i from root.old.d where i > 3"):
    result = session.execute_query_statement(text)
    while result.has_next():
        print(*str(result.next()).split("\\t\\t"))
    result.close_operation_handle()
session.delete_storage_group("root.old")
session.close()
"""


def test_the_python_client_of_1_3(port: int) -> None:
    """This client fetches results with the older calls, whose names do not end with `V2`."""
    command = (sys.executable, "-W", "ignore", "-c", OLD_PYTHON, str(port), USER, PASSWORD)
    expected = ["1 1 on True 0.5", "2 2 None None 1.5", "3 3 off False 2.5", "0 root.old.d false None INF"]
    assert expected == lines_of(command, PYTHONPATH=packages_of("1.3.4"))


# ---------------------------------------------------------------------------------------------- Java

JDBC = {
    "valid": "true",
    "product": "IoTDB",
    "create database": "false",
    "create timeseries": "false",
    "insert": "0",
    "batch": "[200, 200, 200]",
    "prepared insert": "done",
    "columns of a result": "Time root.jdbc.d.l root.jdbc.d.f root.jdbc.d.t root.jdbc.d.b",
    "query": "[1 4611686018427387904 1.5 x true][2 null 2.5 null false][3 3 null null null]"
    "[4 4 null null null][5 5 null null null][6 6 null it null]",
    "aggregate": "[5 4.0]",
    "last": "[6 root.jdbc.d.t it TEXT]",
    "prepared query": "4",
    "show": "4",
    "tables": "1",
    "syntax": "IoTDBSQLException: 700: line 1, column 1: unexpected 'selec'; did you mean SELECT?",
    "a value of another type": "IoTDBSQLException: 507: 0 of 1 points of root.jdbc.d were written; left out: "
    "l ('x' does not fit INT64); insert corrected values for these",
    "two sessions in two zones": "[1000 1.0]",
    "with a time-out": "5",
    "drop": "false",
    "no such user": "IoTDBSQLException: 801: wrong user or password",
}

DONE_BY_POOL = [
    *("createDatabase", "createTimeseries", "insertRecord", "insertRecord of texts", "insertRecords"),
    *("insertRecords of texts", "insertRecordsOfOneDevice", "insertStringRecordsOfOneDevice", "insertTablet"),
    *("insertTablets", "insertAlignedRecord", "insertAlignedRecords", "insertAlignedRecordsOfOneDevice"),
    *("insertAlignedTablet", "executeNonQueryStatement", "deleteData", "deleteTimeseries", "deleteDatabase"),
]
POOL = {
    **dict.fromkeys(DONE_BY_POOL, "done"),
    "checkTimeseriesExists": "true",
    "executeQueryStatement": "[1 true 1 1099511627777 0.5 0.25 t1][2 null 2 null null null t2]"
    "[3 true 3 1099511627779 0.5 0.75 t3][4 null 4 null null null null][5 true 5 1099511627781 0.5 1.25 t5]"
    "[6 false 6 1099511627782 0.5 1.5 t6][7 null 7 null null null null][8 false 8 1099511627784 0.5 2.0 t8]"
    "[9 true null 1099511627785 null 2.25 null][10 false 10 1099511627786 0.5 2.5 t10]"
    "[11 true null 1099511627787 null 2.75 null]",
    "aligned": "[4 false 4 1099511627780 0.5 1.0 t4][5 true null 1099511627781 null 1.25 null]",
    "count": "[0 13 10]",
    "with a time-out": "[3 3][4 4]",
    "executeRawDataQuery": "[1 1][2 2][3 3]",
    "executeLastDataQuery": "[17 root.pool.d.i 17 INT32]",
    "executeLastDataQueryForOneDevice": "[4 root.pool.al.i 4 INT32][4 root.pool.al.t t4 TEXT]",
    "executeAggregationQuery": "[0 13]",
    "two results at once": "[1 1][2 2][3 3][4 4]70",
    "syntax": "StatementExecutionException: 700: line 1, column 1: unexpected 'selec'; did you mean SELECT?",
    "a value of another type": "StatementExecutionException: 507: "
    "root.pool.d.i is INT32: a column of TEXT does not fit",
    "one of two records": "302: root.pool.d.i is INT32: a column of TEXT does not fit; ",
    "the other one": "[20 20]",
    "what is left": "[16 16][17 17]",
}


@pytest.mark.parametrize("version", ["1.3.2", "2.0.5"])
def test_jdbc(version: str, port: int) -> None:
    assert JDBC == java_steps(version, "JdbcClient", port)


@pytest.mark.parametrize("version", ["1.3.2", "2.0.5"])
def test_the_session_pool(version: str, port: int) -> None:
    steps = java_steps(version, "PoolClient", port)
    steps["one of two records"] = steps["one of two records"].partition("Exception: ")[2]  # the class differs
    assert POOL == steps


# ---------------------------------------------------------------------------------------------- the calls of Go

INT32, TEXT = 1, 5


def test_the_calls_of_the_go_client(port: int) -> None:
    """Make the calls of Telegraf and Grafana's plugin."""
    with ThriftClient(f"127.0.0.1:{port}") as client:
        opened = client.open(USER, PASSWORD, version="V_1_0", sql_dialect="tree")
        assert {"timestamp_precision": "ms"} == opened.configuration
        number, letters = struct.pack(">Bi", INT32, 7), struct.pack(">Bi", TEXT, 2) + b"on"
        session = client.session_id
        records = structs.InsertRecords(
            session, ["root.go.cpu", "root.go.`a.b`"], [["n"], ["n", "t"]], [number, number + letters], [1, 1], False
        )
        client.done("insertRecords", records)
        values = struct.pack(">3i", 8, 9, 10) + struct.pack(">i2si0si1s", 2, b"up", 0, b"", 1, b"x") + b"\0\1\2"
        tablet = structs.InsertTablet(
            session, "root.go.cpu", ["n", "t"], values, struct.pack(">3q", 2, 3, 4), [INT32, TEXT], 3, False
        )
        client.done("insertTablet", tablet)
        result = client.execute("select n, t from root.go.cpu", 2, name="executeQueryStatementV2")
        assert ["root.go.cpu.n", "root.go.cpu.t"] == result.answer.columns
        assert ["INT32", "TEXT"] == result.answer.types
        expected = [[(1, 7, None), (2, 8, b"up")], [(3, 9, None), (4, 10, b"x")]]
        assert expected == result.pages()
        client.done("closeOperation", structs.CloseOperation(session, result.answer.query_id, client.statement_id))
        with pytest.raises(Failed, match="is not open on this connection"):
            client.fetch(result.answer.query_id or 0, 2)
        client.done("deleteStorageGroups", structs.Paths(session, ["root.go"]), bare=True)
        client.done("closeSession", structs.CloseSession(session))


# ---------------------------------------------------------------------------------------------- examples of the docs

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
#: The output of each example, in the order of the page.
PRINTED = {
    "python": [["2 21.0"], [], ["[[2]]"], ["[(1.0, 20.5), (2.0, 21.0)]"]],
    "java": [["1 20.5", "2 21.0"], ["true"]],
}


def examples(language: str, port: int) -> list[str]:
    """Return the examples of the documentation, changed to use the server of the tests."""
    found = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [text.replace("6667", str(port)).replace("secret", PASSWORD) for text in found]


def test_the_examples_in_python_run_as_they_stand(port: int) -> None:
    packages = packages_of("2.0.11")
    quiet = (sys.executable, "-W", "ignore", "-c")
    printed = [lines_of((*quiet, text), PYTHONPATH=packages) for text in examples("python", port)]
    assert PRINTED["python"] == printed


def test_the_examples_in_java_run_as_they_stand(port: int, tmp_path: Path) -> None:
    try:
        classes = artefacts.java_classes("2.0.5")
    except artefacts.Unavailable as error:
        pytest.skip(str(error))
    printed = []
    for text in examples("java", port):
        name = re.search(r"public class (\w+)", text)
        assert name is not None
        (tmp_path / f"{name[1]}.java").write_text(text)
        printed.append(lines_of((*_JAVA, "-cp", classes, str(tmp_path / f"{name[1]}.java"))))
    assert PRINTED["java"] == [[line for line in lines if "[main]" not in line] for lines in printed]
