"""`saros mqtt` with a real broker: no message that the broker has accepted is lost, whichever process ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from free_ports import HOST, free_ports
from self_signed import self_signed
from shell.mqtt.command_process import NUMBERS, CommandProcess, receiving
from shell.mqtt.mosquitto import Mosquitto, needs_mosquitto, running
from waiting import wait_equal, wait_until

import saros
from saros_server.process.server_file import serving

pytestmark = [needs_mosquitto, pytest.mark.slow]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with running(tmp_path / "broker") as started:
        yield started


class Server:
    """A Saros server in a separate process."""

    def __init__(self, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"saros://{HOST}:{self.port}"

    def start(self) -> None:
        options = ["--data", str(self._folder), "--port", str(self.port), "--http-port", "0", "--foreground"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "saros_server", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(lambda: serving(str(self._folder)) is not None)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def count(self) -> int:
        with saros.connect(self.url) as connection:
            rows = connection.execute("select count(x) from root.plant.pump").fetchall()
        return int(rows[0][0]) if rows else 0


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    made = Server(folder)
    made.start()
    try:
        yield made
    finally:
        made.kill()


def numbered(first: int, last: int) -> list[tuple[str, str]]:
    return [("plant/pump", json.dumps({"t": number, "x": number})) for number in range(first, last)]


def rows_of(folder: Path, statement: str) -> list[tuple[object, ...]]:
    with saros.connect(str(folder), timestamps="epoch") as connection:
        return connection.execute(statement).fetchall()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_writes_what_has_arrived(number: signal.Signals, broker: Mosquitto, tmp_path: Path) -> None:
    with receiving(tmp_path, ["--broker", broker.url, *NUMBERS, "-d", "data"]) as command:
        broker.publish(numbered(0, 500))
        assert 0 == command.stop(number)
    assert "" == command.errors
    assert "500 messages, 500 points, 0 refused\n" in command.output
    assert [(500, 499.0)] == rows_of(tmp_path / "data", "select count(x), max_value(x) from root.plant.pump")


@pytest.mark.parametrize(
    ("options", "messages", "statement", "rows"),
    [
        (
            ["--format", "number", "--topic", "plant/{d}/{s}", "--path", "root.plant.{d}.{s}"],
            [("plant/hall 1/t", "20.5"), ("plant/hall 1/t", "21")],
            "select count(t), sum(t) from root.plant.`hall 1`",
            [(2, 41.5)],
        ),
        (
            ["--format", "iotdb-json", "--topic", "iotdb"],
            [("iotdb", '{"device":"root.sg.d","timestamps":[1,2],"measurements":["s"],"values":[[1],[2.5]]}')],
            "select s from root.sg.d",
            [(1, 1.0), (2, 2.5)],
        ),
        (
            ["--topic", "plant/#", "--path", "root.plant.{1}", "--time-key", "at", "--time-unit", "s"],
            [("plant/a/b", '[{"at":1,"x":true,"s":"y"},{"at":"1970-01-01T00:00:02Z","x":false}]')],
            "select x, s from root.plant.a.b",
            [(1_000, True, "y"), (2_000, False, None)],
        ),
    ],
    ids=["number", "iotdb-json", "json"],
)
@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_formats(
    version: str,
    options: list[str],
    messages: list[tuple[str, str]],
    statement: str,
    rows: list[tuple[object, ...]],
    broker: Mosquitto,
    tmp_path: Path,
) -> None:
    arguments = ["--broker", broker.url, "--mqtt", version, "-d", "data", *options]
    with receiving(tmp_path, arguments) as command:
        broker.publish(messages)
        assert 0 == command.stop()
    assert "" == command.errors
    assert rows == rows_of(tmp_path / "data", statement)


def test_what_a_kill_left_unwritten_is_delivered_again(broker: Mosquitto, tmp_path: Path) -> None:
    with server(tmp_path / "data") as database:
        arguments = ["--broker", broker.url, *NUMBERS, "-d", database.url]
        with receiving(tmp_path, arguments) as command:
            database.send(signal.SIGSTOP)
            broker.publish(numbered(0, 300))
            wait_until(lambda: "cannot write" in command.errors)
            command.kill()
        database.send(signal.SIGCONT)
        with receiving(tmp_path, arguments):
            wait_equal(300, database.count)


def test_kills_at_any_time_lose_nothing(broker: Mosquitto, tmp_path: Path) -> None:
    with server(tmp_path / "data") as database:
        arguments = ["--broker", broker.url, *NUMBERS, "--in-flight", "50", "-d", database.url]
        for round_ in range(3):
            with receiving(tmp_path, arguments) as command:
                broker.publish(numbered(round_ * 1_000, round_ * 1_000 + 1_000))
                command.kill()
        with receiving(tmp_path, arguments):
            wait_equal(3_000, database.count)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_broker_that_restarts(version: str, broker: Mosquitto, tmp_path: Path) -> None:
    with server(tmp_path / "data") as database:
        arguments = ["--broker", broker.url, "--mqtt", version, *NUMBERS, "-d", database.url]
        with receiving(tmp_path, arguments) as command:
            broker.publish(numbered(0, 200))
            broker.stop()
            wait_until(lambda: "cannot connect to the broker" in command.errors)
            assert "ended the connection; another client may" in command.errors
            broker.start()
            broker.publish(numbered(200, 400))
            wait_equal(400, database.count)
            assert 0 == command.stop()
        assert "reconnected" in command.errors


def test_a_database_that_restarts(broker: Mosquitto, tmp_path: Path) -> None:
    with server(tmp_path / "data") as database:
        with receiving(tmp_path, ["--broker", broker.url, *NUMBERS, "-d", database.url]) as command:
            broker.publish(numbered(0, 200))
            database.kill()
            broker.publish(numbered(200, 400))
            wait_until(lambda: "cannot write" in command.errors)
            database.start()
            wait_equal(400, database.count)
            assert 0 == command.stop()
        assert "writing works again" in command.errors


def test_a_stop_during_an_outage_leaves_the_messages_to_the_broker(broker: Mosquitto, tmp_path: Path) -> None:
    with server(tmp_path / "data") as database:
        arguments = ["--broker", broker.url, *NUMBERS, "-d", database.url]
        with receiving(tmp_path, arguments) as command:
            database.kill()
            broker.publish(numbered(0, 3))
            wait_until(lambda: "cannot write" in command.errors)
            assert 1 == command.stop()
        assert "the broker will redeliver them" in command.errors
        database.start()
        with receiving(tmp_path, arguments):
            wait_equal(3, database.count)


def test_bad_messages_become_dead_letters_and_do_not_come_again(broker: Mosquitto, tmp_path: Path) -> None:
    arguments = ["--broker", broker.url, *NUMBERS, "-d", "data", "--dead-letter", "dead.jsonl"]
    for _ in range(2):
        with receiving(tmp_path, arguments) as command:
            broker.publish([("plant/pump", b"\xff"), ("plant/pump", '{"t":1,"x":1,"y":2}')])
            broker.publish([("plant/pump", '{"t":2,"x":"text","y":3}')])
            assert 0 == command.stop()
    letters = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text().splitlines()]
    assert ["/w==", None] * 2 == [letter.get("payload_base64") for letter in letters]
    assert "root.plant.pump.x: 'text' does not fit DOUBLE" == letters[1]["reason"]
    assert [(1, 1.0, 2.0), (2, None, 3.0)] == rows_of(tmp_path / "data", "select x, y from root.plant.pump")


def test_a_client_id_in_use_is_a_suspicion(broker: Mosquitto, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    arguments = ["--broker", broker.url, *NUMBERS, "-d", "data", "--client-id", "one"]
    with receiving(tmp_path, arguments) as older:
        newer = CommandProcess(tmp_path / "other", arguments)
        wait_until(lambda: "another client may have client id one" in older.errors)
        newer.kill()


def test_tls_with_a_client_certificate(tmp_path: Path) -> None:
    key, certificate = self_signed(tmp_path)
    settings = {"cafile": certificate, "certfile": certificate, "keyfile": key, "require_certificate": "true"}
    with running(tmp_path / "broker", settings) as broker:
        arguments = ["--broker", broker.url.replace("mqtt:", "mqtts:"), *NUMBERS, "-d", "data"]
        own = ["--tls-certificate", str(certificate), "--tls-key", str(key)]
        with receiving(tmp_path, [*arguments, "--tls-ca", str(certificate), *own]) as command:
            assert 0 == command.stop()
        stranger = CommandProcess(tmp_path, [*arguments, *own])
        assert 1 == stranger.wait()
    assert "its certificate is not trusted" in stranger.errors
    assert "--tls-ca" in stranger.errors


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_user_with_a_wrong_password_is_refused(version: str, tmp_path: Path) -> None:
    passwords = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), "gate", "right"], check=True, capture_output=True)
    with running(tmp_path / "broker", {"allow_anonymous": "false", "password_file": passwords}) as broker:
        url = broker.url.replace("mqtt://", "mqtt://gate@")
        arguments = ["--broker", url, "--mqtt", version, *NUMBERS, "-d", "data"]
        wrong = CommandProcess(tmp_path, arguments, {"SAROS_MQTT_PASSWORD": "wrong-secret"})
        assert 1 == wrong.wait()
        assert "refuses the connection: Not authorized; check the user" in wrong.errors
        assert "wrong-secret" not in wrong.errors
        with receiving(tmp_path, arguments, {"SAROS_MQTT_PASSWORD": "right"}) as command:
            assert 0 == command.stop()


def test_a_broker_that_is_not_there(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    command = CommandProcess(tmp_path, ["--broker", f"mqtt://{HOST}:{port}", *NUMBERS, "-d", "data"])
    assert 1 == command.wait()
    assert f"saros mqtt: cannot connect to the broker at {HOST}:{port}: Connection refused\n" in command.errors
