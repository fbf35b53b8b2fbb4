"""The connection to a broker. The broker is a fake that sends the bytes that a test specifies."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from free_ports import HOST
from waiting import wait_until

from saros_shell.mqtt.broker_address import BrokerAddress
from saros_shell.mqtt.broker_connection import (
    BrokerConnection,
    BrokerOptions,
    BrokerRefused,
    BrokerUnreachable,
    ClientIdInUse,
    Message,
)

CONNACK, CONNACK_SESSION = bytes.fromhex("2003000000"), bytes.fromhex("2003010000")
REFUSED = bytes.fromhex("2003008700")
TAKEN_OVER = bytes.fromhex("e0028e00")


def publish(number: int, payload: bytes, *, dup: bool = False, topic: bytes = b"a/b") -> bytes:
    body = len(topic).to_bytes(2, "big") + topic + number.to_bytes(2, "big") + b"\0" + payload
    return bytes([0x3A if dup else 0x32, len(body)]) + body


class ScriptedBroker:
    """A broker that answers CONNECT and SUBSCRIBE, sends packets, and records the bytes that it receives."""

    def __init__(self, *connections: tuple[bytes, int, bytes]) -> None:
        """Start the broker.

        connections  for each connection: the CONNACK, the reason code of the SUBACK, and the packets to send. The
                     broker then closes the connection, unless it is the last connection
        """
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self.received: list[bytes] = []
        self._connections = connections
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number, (connack, suback, packets) in enumerate(self._connections, 1):
            opened, _ = self._listener.accept()
            with opened:
                self._read(opened)
                opened.sendall(connack)
                if connack != REFUSED:
                    subscribe = self._read(opened)
                    opened.sendall(bytes([0x90, 4]) + subscribe[:2] + bytes([0, suback]) + packets)
                while number == len(self._connections) and (data := opened.recv(100)):
                    self.received.append(data)

    def _read(self, opened: socket.socket) -> bytes:
        """Read the body of a packet of fewer than 128 bytes."""
        return opened.recv(opened.recv(2)[1])

    def close(self) -> None:
        self._listener.close()
        self._thread.join()


Start = Callable[..., tuple[ScriptedBroker, BrokerConnection, list[str]]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a broker, and returns the broker, a connection to it, and the reports."""
    started: list[tuple[ScriptedBroker, BrokerConnection]] = []

    def begin(*connections: tuple[bytes, int, bytes]) -> tuple[ScriptedBroker, BrokerConnection, list[str]]:
        broker, reports = ScriptedBroker(*connections), []  # type: ignore[var-annotated]
        options = BrokerOptions(BrokerAddress(HOST, broker.port, False, ""), ["a/+"], "me", "5", 10, 60)
        connection = BrokerConnection(options, reports.append)
        started.append((broker, connection))
        return broker, connection, reports

    yield begin
    for broker, connection in started:
        connection.close()
        broker.close()


def receive(connection: BrokerConnection, count: int) -> list[Message]:
    found: list[Message] = []
    wait_until(lambda: found.extend(connection.receive(10, 1_000, 0.0)) or len(found) >= count)  # type: ignore[func-returns-value]
    return found


def test_a_message_is_acknowledged_on_demand(start: Start) -> None:
    broker, connection, _ = start((CONNACK, 1, publish(7, b"x") + publish(8, b"y")))
    connection.connect()
    first, second = receive(connection, 2)
    assert ("a/b", b"x", "a/b", b"y") == (first.topic, first.payload, second.topic, second.payload)
    connection.acknowledge([second])
    wait_until(lambda: broker.received)
    assert [bytes.fromhex("40020008")] == broker.received


def test_a_message_of_an_earlier_connection_is_not_acknowledged_and_keeps_its_time(start: Start) -> None:
    again = publish(7, b"x", dup=True) + publish(8, b"y")
    broker, connection, reports = start((CONNACK, 1, publish(7, b"x")), (CONNACK_SESSION, 1, again))
    connection.connect()
    (first,) = receive(connection, 1)
    first.arrival = 123
    redelivered, other = receive(connection, 2)
    assert (123, None) == (redelivered.arrival, other.arrival)
    connection.acknowledge([first, other])
    wait_until(lambda: broker.received)
    assert [bytes.fromhex("40020008")] == broker.received
    assert f"reconnected to the broker at {HOST}:{broker.port}" == reports[-1]


def test_a_number_that_is_used_again_is_another_message(start: Start) -> None:
    _, connection, _ = start((CONNACK, 1, publish(7, b"x")), (CONNACK_SESSION, 1, publish(7, b"z", dup=True)))
    connection.connect()
    (first,) = receive(connection, 1)
    first.arrival = 123
    (other,) = receive(connection, 1)
    assert (b"z", None) == (other.payload, other.arrival)


def test_no_more_than_a_batch_is_received_at_once(start: Start) -> None:
    packets = b"".join(publish(number, b"x" * 20) for number in range(1, 9))
    _, connection, _ = start((CONNACK, 1, packets))
    connection.connect()
    sizes: list[int] = []
    wait_until(lambda: sizes.append(len(connection.receive(3, 1_000, 0.0))) or sum(sizes) == 8)  # type: ignore[func-returns-value]
    assert 3 == max(sizes)


def test_a_batch_is_bounded_by_bytes(start: Start) -> None:
    packets = b"".join(publish(number, b"x" * 20) for number in range(1, 5))
    _, connection, _ = start((CONNACK, 1, packets))
    connection.connect()
    sizes: list[int] = []
    wait_until(lambda: sizes.append(len(connection.receive(9, 30, 5.0))) or sum(sizes) == 4)  # type: ignore[func-returns-value]
    assert [2, 2] == sizes


def test_messages_are_collected(start: Start) -> None:
    packets = publish(1, b"x") + publish(2, b"x")
    _, connection, _ = start((CONNACK, 1, packets))
    connection.connect()
    assert 2 == len(connection.receive(2, 1_000, 60.0))


def test_a_topic_that_is_not_utf_8_is_delivered(start: Start) -> None:
    _, connection, _ = start((CONNACK, 1, publish(1, b"x", topic=b"\xff")))
    connection.connect()
    assert [("", b"x")] == [(message.topic, message.payload) for message in receive(connection, 1)]


def test_a_refused_connection(start: Start) -> None:
    broker, connection, _ = start((REFUSED, 1, b""))
    with pytest.raises(BrokerRefused) as caught:
        connection.connect()
    advice = "check the user of --broker, and SAROS_MQTT_PASSWORD"
    assert f"the broker at {HOST}:{broker.port} refuses the connection: Not authorized; {advice}" == str(caught.value)


def test_a_refused_topic(start: Start) -> None:
    broker, connection, _ = start((CONNACK, 0x87, b""))
    with pytest.raises(BrokerRefused) as caught:
        connection.connect()
    assert f"the broker at {HOST}:{broker.port} refuses topic a/+: Not authorized" == str(caught.value)


def test_a_session_that_another_client_takes_over(start: Start) -> None:
    _, connection, _ = start((CONNACK, 1, TAKEN_OVER))
    connection.connect()
    with pytest.raises(ClientIdInUse, match="client id me; stop it, or pass another --client-id"):
        wait_until(lambda: connection.receive(10, 1_000, 0.0))


def test_an_address_that_does_not_answer() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    options = BrokerOptions(BrokerAddress(HOST, port, False, ""), ["a/+"], "me", "5", 10, 60)
    with pytest.raises(BrokerUnreachable, match=f"the broker at {HOST}:{port}: Connection refused"):
        BrokerConnection(options, print).connect()
