"""A server as a process and as a service: start, status, stop, rights to calls, bad messages, and a kill."""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from free_ports import free_ports
from server.frame_client import Refused
from server.secured import SESSION_CALLS, raw_call, request_of
from waiting import PATIENCE_S, wait_until

import saros
from saros_server.config.configuration import ConfigurationError
from saros_server.http.metrics import METRICS
from saros_server.process.logs import JsonLines
from saros_server.process.server_file import serving
from saros_server.server import Server, check_host
from saros_wire import parameter_values
from saros_wire.frames import Call
from saros_wire.generated import client_pb2

SAROS = str(Path(sys.executable).with_name("saros"))
PROTO = Path(__file__).resolve().parents[2] / "wire" / "client.proto"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SAROS, *words], capture_output=True, text=True, check=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(str(tmp_path / "data"), "127.0.0.1", 0)
    made.start()
    yield made
    made.stop()


# ---------------------------------------------------------------------------------------------- the process


@pytest.mark.slow
def test_start_status_stop(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert 3 == run("status", "--data", data).returncode
    started = run("start", "--data", data, "--port", "0")
    assert 0 == started.returncode, started.stderr
    target = re.search(r"saros://\S+", started.stdout)
    assert target is not None
    try:
        with saros.connect(target[0]) as connection:
            connection.execute("insert into root.a.d(time, x) values (1, 1.5)")
            assert "sessions  1" in run("status", "--data", data).stdout
            connection.execute("set system to readonly")
            assert "problem   it is read-only" in run("status", "--data", data).stdout
            connection.execute("set system to running")
            assert "problem" not in run("status", "--data", data).stdout
        assert "already" in run("start", "--data", data, "--port", "0").stderr
        refused = run("shell", data, "-e", "show databases").stderr
        assert "is in use by" in refused
        assert f"connect to its server, {target[0]}" in refused
    finally:
        assert 0 == run("stop", "--data", data).returncode
    assert 1 == run("stop", "--data", data).returncode
    with saros.connect(data, timestamps="epoch") as connection:
        assert [(1, 1.5)] == connection.execute("select x from root.a.d").fetchall()


@pytest.mark.slow
def test_where_a_server_listens_may_stand_in_its_folder(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    (tmp_path / "saros.toml").write_text(f'listen_port = {port}\nlog_level = "ERROR"\n')
    started = run("start", "--data", str(tmp_path))
    try:
        assert (0, True) == (started.returncode, f"at saros://127.0.0.1:{port} " in started.stdout), started.stderr
        assert "" == (tmp_path / "server.log").read_text()
    finally:
        assert 0 == run("stop", "--data", str(tmp_path)).returncode


def test_a_folder_of_something_else_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "plant.csv").write_text("time,x\n")
    started = run("start", "--data", str(tmp_path), "--port", "0")
    assert (1, "") == (started.returncode, started.stdout)
    assert f"saros start: {tmp_path} is not a data folder: it contains plant.csv; choose" in started.stderr
    assert ["plant.csv"] == os.listdir(tmp_path)


@pytest.mark.slow
def test_a_killed_server_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    done = 0
    for _ in range(3):
        target = re.search(r"saros://\S+", run("start", "--data", data, "--port", "0").stdout)
        assert target is not None
        found = serving(data)
        assert found is not None
        with saros.connect(target[0]) as connection:
            until = time.monotonic() + 0.3
            while time.monotonic() < until:
                connection.insert("root.a.d", np.arange(100) + done * 100, {"x": np.full(100, float(done))})
                done += 1
            os.kill(found.pid, signal.SIGKILL)
        while serving(data) is not None:
            time.sleep(0.01)
    with saros.connect(data) as connection:
        values = connection.execute("select x from root.a.d").fetch_arrow().column(1).to_numpy()
    assert np.array_equal(np.repeat(np.arange(float(done)), 100), values)


def test_only_this_machine_may_connect(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        check_host(host)
    for host in ("0.0.0.0", "192.168.1.5", "::", "example.org"):
        with pytest.raises(ConfigurationError, match="other machines"):
            Server(str(tmp_path), host, 0)
    assert not (tmp_path / "node.json").exists()


def test_a_port_that_is_taken_is_an_error_and_frees_the_folder(server: Server, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    port = int(server.address.rpartition(":")[2])
    with pytest.raises(ConfigurationError, match=r"cannot listen .* another process uses the port"):
        Server(other, "127.0.0.1", port)
    with pytest.raises(ConfigurationError, match=r"cannot listen .* for HTTP: another process uses the port"):
        Server(other, "127.0.0.1", 0, metrics_port=port)
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        free = reserved.getsockname()[1]
    with pytest.raises(ConfigurationError, match=r"cannot listen .* for HTTP: it is the port for clients"):
        Server(other, "127.0.0.1", free, metrics_port=free)
    saros.connect(other).close()


def test_a_default_port_of_http_that_is_taken_costs_http_only(server: Server, tmp_path: Path) -> None:
    port = int(server.address.rpartition(":")[2])
    other = Server(str(tmp_path / "other"), "127.0.0.1", 0, http_port=port, http_required=False)
    other.start()
    try:
        assert other.http is None
        assert f"cannot listen on 127.0.0.1:{port} for HTTP: another process uses the port" in other.http_problem
        saros.connect(f"saros://{other.address}").close()
    finally:
        other.stop()


@pytest.mark.slow
def test_the_port_of_http_can_be_chosen(server: Server, tmp_path: Path) -> None:
    data, (port,) = str(tmp_path / "chosen"), free_ports(1)
    taken = server.address.rpartition(":")[2]
    refused = run("start", "--data", data, "--port", "0", "--http-port", taken)
    assert (1, True) == (refused.returncode, "for HTTP: another process uses the port" in refused.stderr)
    started = run("start", "--data", data, "--port", "0", "--http-port", str(port))
    try:
        assert f"HTTP at http://127.0.0.1:{port}\n" in started.stdout, started.stderr
        assert f"http      http://127.0.0.1:{port}\n" in run("status", "--data", data).stdout
        assert (200, "ok\n") == get(port, "/ready")
        assert '"code":200' in get(port, "/ping")[1]
    finally:
        assert 0 == run("stop", "--data", data).returncode


@pytest.mark.slow
def test_the_log_is_json_lines(tmp_path: Path) -> None:
    record = logging.makeLogRecord({"name": "a.b", "levelname": "WARNING", "msg": "slow %s", "args": ("ä",), "ms": 7})
    words = json.loads(JsonLines().format(record))
    assert ("WARNING", "a.b", "slow ä", 7) == (words["level"], words["logger"], words["event"], words["ms"])
    data = str(tmp_path / "data")
    assert 0 == run("start", "--data", data, "--port", "0").returncode
    assert 0 == run("stop", "--data", data).returncode
    lines = [json.loads(line) for line in Path(data, "server.log").read_text().splitlines()]
    assert ["serving", "stopping", "stopped"] == [line["event"] for line in lines]


# ---------------------------------------------------------------------------------------------- the calls


@pytest.mark.parametrize("call", SESSION_CALLS)
@pytest.mark.parametrize("token", [None, b"x" * 32], ids=["none", "random"])
def test_a_call_without_a_session_is_refused(server: Server, call: Call, token: bytes | None) -> None:
    message, body = request_of(call)
    with pytest.raises(Refused, match="2014: no such session"):
        raw_call(server.address, call, message, token, body)


def test_a_closed_session_is_refused(server: Server) -> None:
    opened = client_pb2.OpenReply.FromString(raw_call(server.address, Call.OPEN, client_pb2.OpenRequest()))
    raw_call(server.address, Call.CLOSE, None, opened.session)
    with pytest.raises(Refused, match="2014: no such session"):
        raw_call(server.address, Call.INSERT, None, opened.session)


@pytest.mark.parametrize("junk", [b"", b"\0" * 100, b"\xff" * 1_000, b"ARROW1"])
def test_junk_is_refused_and_the_node_goes_on(server: Server, junk: bytes) -> None:
    opened = client_pb2.OpenReply.FromString(raw_call(server.address, Call.OPEN, client_pb2.OpenRequest()))
    for call in (Call.INSERT, Call.UPLOAD, Call.SYNC_CHUNK):
        with pytest.raises(Refused):
            raw_call(server.address, call, None, opened.session, junk)
    with saros.connect(f"saros://{server.address}") as connection:
        assert [] == connection.execute("show databases").fetchall()


def test_long_columns_go_in_several_messages(server: Server) -> None:
    with saros.connect(f"saros://{server.address}") as connection:
        rows = 2_000_000
        assert 2 * rows == connection.insert(
            "root.a.d", np.arange(rows), {"x": np.arange(float(rows)), "y": np.ones(rows)}
        )
        table = connection.execute("select x from root.a.d").fetch_arrow()
        assert np.array_equal(np.arange(float(rows)), table.column(1).to_numpy())


def test_a_client_that_leaves_ends_its_query(server: Server) -> None:
    with saros.connect(f"saros://{server.address}") as connection:
        connection.insert("root.a.d", np.arange(1_000_000), {"x": np.arange(1_000_000.0)})
        cursor = connection.execute("select sin(x), cos(x), tan(x) from root.a.d")
        cursor.fetchone()
        shown = connection.execute("show queries where statement like 'select%'").fetchall()
        assert [("127.0.0.1", 60_000)] == [row[-3:-1] for row in shown]
        assert 1 << 20 < shown[0][-1] < 64 << 20  # the size of the server's buffer for this client
        cursor.close()
        wait_until(lambda: [] == connection.execute("show queries").fetchall())


def test_a_target_where_nobody_answers_and_options_that_belong_to_the_node() -> None:
    with pytest.raises(saros.OperationalError, match="no Saros node answers"):
        saros.connect("saros://127.0.0.1:1")
    with pytest.raises(saros.InterfaceError, match="options are for folders only"):
        saros.connect("saros://127.0.0.1:1", options={"durability": "os"})


# ---------------------------------------------------------------------------------------------- values, generated code


def test_parameters_keep_their_values() -> None:
    moment = datetime(2024, 2, 29, 12, 30, 0, 123_456, tzinfo=UTC)
    plain = [None, True, -(1 << 63), 2.5, "ä", b"\0\xff", Decimal("1.50"), date(2024, 2, 29), datetime(2024, 1, 1, 5)]  # noqa: DTZ001
    assert plain == parameter_values.decode_values(parameter_values.encode_values(plain))
    assert [np.datetime64(moment.replace(tzinfo=None), "ns")] == parameter_values.decode_values(
        parameter_values.encode_values([moment])
    )
    assert [Decimal(1 << 63)] == parameter_values.decode_values(parameter_values.encode_values([1 << 63]))
    assert [3, 1.5] == parameter_values.decode_values(parameter_values.encode_values([np.int32(3), np.float32(1.5)]))
    with pytest.raises(TypeError, match="parameter 1 is a object"):
        parameter_values.encode_values([object()])


def test_generated_messages_are_fresh(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools")
    words = ["-m", "grpc_tools.protoc", "-I", str(PROTO.parent), f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    subprocess.run([sys.executable, *words, *map(str, PROTO.parent.glob("*.proto"))], check=True)
    committed = PROTO.parent / "saros_wire" / "generated"
    for name in ("client_pb2.py", "client_pb2.pyi", "prometheus_pb2.py", "prometheus_pb2.pyi"):
        assert (committed / name).read_text() == (tmp_path / name).read_text(), "run `make proto`"


# ---------------------------------------------------------------------------------------------- metrics


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", path)
    with closing(connection):
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_metrics_health_and_readiness(tmp_path: Path) -> None:
    server = Server(str(tmp_path), "127.0.0.1", 0, metrics_port=0)
    server.start()
    assert server.metrics is not None
    port = server.metrics.port
    with saros.connect(f"saros://{server.address}") as connection:
        connection.insert("root.a.d", [1, 2, 3], {"x": [1.0, None, 3.0]})
        connection.execute("insert into root.a.d(time, x) values (4, 4.0)")
        connection.execute("select x from root.a.d").fetchall()
        with pytest.raises(saros.ProgrammingError):
            connection.execute("selec")
        status, text = get(port, "/metrics")
    assert 200 == status
    values = dict(re.findall(r"^(saros_\w+) (\S+)$", text, re.MULTILINE))
    assert ("3.0", "3.0", "1.0", "1.0", "1.0") == tuple(
        values[name]
        for name in (
            "saros_points_written_total",
            "saros_statements_total",
            "saros_failures_total",
            "saros_queries_finished_total",
            "saros_sessions",
        )
    )
    assert 'saros_driver_quanta_total{level="0"}' in text
    for name, count in (("saros_query_seconds", "1.0"), ("saros_write_seconds", "2.0")):
        assert f'{name}_bucket{{le="100.0"}} {count}' in text
        assert f'{name}_bucket{{le="+Inf"}} {count}' in text
        assert count == values[f"{name}_count"]
        assert 0 < float(values[f"{name}_sum"]) < PATIENCE_S
    assert (200, "ok\n") == get(port, "/health")
    assert (200, "ok\n") == get(port, "/ready")
    with saros.connect(f"saros://{server.address}") as connection:
        connection.execute("set system to readonly")
        assert (503, "it is read-only: run SET SYSTEM TO RUNNING to allow writes again\n") == get(port, "/ready")
        connection.execute("set system to running")
    assert (200, "ok\n") == get(port, "/ready")
    assert 404 == get(port, "/secrets")[0]
    server.stop()


@pytest.mark.parametrize("name", METRICS)
def test_metric_is_documented(name: str) -> None:
    counts, text = METRICS[name]
    operations = (PROTO.parents[1] / "docs" / "operations.md").read_text()
    assert f"| `{name}{'_total' if counts else ''}` | {text} |" in operations


_SIGNALLED = """
import signal, sys, threading, time
from saros_server import server
from saros_server.process.server_file import serving

server._COLD_SECONDS = 0.1  # the main thread waits without end after it

def end() -> None:
    while serving(sys.argv[1]) is None:
        time.sleep(0.05)
    time.sleep(1)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    time.sleep(600)

made = server.Server(sys.argv[1], "127.0.0.1", 0)
threading.Thread(target=end, daemon=True).start()
made.run_until_signalled()
print("over", flush=True)
"""


@pytest.mark.slow
def test_a_signal_that_another_thread_was_given_ends_the_server(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _SIGNALLED, str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * PATIENCE_S)
    assert "over\n" == done.stdout, done.stderr
