"""The connection to a broker, with a persistent session: it receives messages and sends acknowledgements.

    connect -> CONNACK -> SUBACK of all filters -> receive, acknowledge ... -> lost -> connect, with growing pauses

Filters are subscribed with QoS 1, and the broker stores messages for the client id while the client is disconnected. A
message is acknowledged only on the connection on which it arrived. On the next connection, the broker redelivers the
message, and the old packet identifier may belong to another message. With MQTT 5, the broker sends at most `in_flight`
unacknowledged messages.

There is no background thread: only `receive` serves the network. While the caller writes, TCP applies back-pressure to
the broker. If the broker closes a connection that is silent for too long, `receive` reconnects. Not thread-safe.
"""

from __future__ import annotations

import select
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from saros_shell.mqtt.broker_address import BrokerAddress

VERSIONS = {"5": mqtt.MQTTv5, "3.1.1": mqtt.MQTTv311}
KEEPALIVE_S = 60
#: The maximum time until the broker accepts the connection and the subscriptions.
_ACCEPT_S = 10.0
#: The longest wait in one call. The caller can check for signals between calls.
_POLL_S = 0.2
#: The first and the longest pause between attempts to connect. Pauses double, and begin again with the first pause
#: after a connection that lasted at least `_STABLE_S`.
_PAUSE_S, _PAUSE_MAX_S, _STABLE_S = 0.5, 30.0, 10.0
_QOS = 1
#: MQTT 5: the broker sends retained messages only for a new subscription, not for one that the session already has.
_RETAINED_IF_NEW = 1
#: MQTT 5: another client has connected with the same client id.
_TAKEN_OVER = 142


class BrokerError(Exception):
    """The broker cannot be used."""


class BrokerRefused(BrokerError):
    """The broker refuses the connection or a subscription."""


class BrokerUnreachable(BrokerError):
    """The broker does not answer."""


class ClientIdInUse(BrokerError):
    """Another client with the same client id has taken over the session."""


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """Options of a connection, and the filters to subscribe to."""

    address: BrokerAddress
    subscriptions: Sequence[str]
    client_id: str
    version: str
    in_flight: int
    session_expiry_s: int
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None


class Message(msgspec.Struct):
    """A message of a topic.

    connection  the number of the connection on which the message arrived
    number      the packet identifier, for the acknowledgement; 0: no acknowledgement is needed (QoS 0)
    arrival     the time given to rows of the message that have no time
    """

    topic: str
    payload: bytes
    connection: int
    number: int
    arrival: int | None = None


class BrokerConnection:
    """A connection that reconnects. `report` gets a message when the connection is lost, and when it is restored."""

    def __init__(self, options: BrokerOptions, report: Callable[[str], None]) -> None:
        self._options = options
        self._report = report
        self._client = self._new_client()
        #: The number of the current connection. The first connection has the number 1.
        self._connection = 0
        #: Messages that the caller has not taken yet, and the size of their payloads.
        self._received: list[Message] = []
        self._received_bytes = 0
        #: Unacknowledged messages by packet identifier.
        self._unacknowledged: dict[int, Message] = {}
        #: The broker's answers since the last attempt to connect.
        self._connected = False
        self._subscribed = False
        self._refusal = ""
        self._is_taken_over = False
        #: The reason why the connection ended, or "" while it is open.
        self._lost = "not connected"
        self._pause_s = _PAUSE_S
        self._opened_at = self._retry_at = 0.0

    # ---------------------------------------------------------------------------------------------- for the bridge

    def connect(self) -> None:
        """Connect and subscribe. Raises BrokerUnreachable, BrokerRefused."""
        self._connection += 1
        self._connected = self._subscribed = self._is_taken_over = False
        self._refusal = self._lost = ""
        try:
            self._open()
            limit = time.monotonic() + _ACCEPT_S
            while not (self._subscribed or self._refusal or self._lost) and time.monotonic() < limit:
                self._wait(_POLL_S)
                self._read(sys.maxsize, sys.maxsize)  # the session's messages may come before the broker's answer
        except (OSError, ValueError) as error:
            self._lost = _reason_of(error)
        if self._refusal:
            self._client.disconnect()
            self._lost = self._refusal
            raise BrokerRefused(f"the broker at {self._options.address} refuses {self._refusal}")
        if not self._subscribed:
            self._lost = self._lost or f"no answer for {_ACCEPT_S:g} s"
            raise BrokerUnreachable(f"cannot connect to the broker at {self._options.address}: {self._lost}")
        self._opened_at = time.monotonic()

    def receive(self, messages_max: int, bytes_max: int, linger_s: float) -> list[Message]:
        """Return the messages that have arrived, or none after a short wait. Reconnect if needed.

        After the first message, further messages are collected for `linger_s` seconds, up to `messages_max` or
        `bytes_max`. Raises ClientIdInUse.
        """
        if self._lost and not self._reconnect():
            return []
        self._read(messages_max, bytes_max)
        if not self._received:
            self._wait(_POLL_S)
            self._read(messages_max, bytes_max)
        until = time.monotonic() + linger_s
        while self._received and not self._lost and not self._is_full(messages_max, bytes_max):
            left = until - time.monotonic()
            if left <= 0:
                break
            self._wait(left)
            self._read(messages_max, bytes_max)
        received, self._received, self._received_bytes = self._received, [], 0
        return received

    def acknowledge(self, messages: Iterable[Message]) -> None:
        """Acknowledge messages of the current connection. The broker redelivers messages of earlier connections."""
        for message in messages:
            if message.number and message.connection == self._connection and not self._lost:
                self._unacknowledged.pop(message.number, None)
                self._client.ack(message.number, _QOS)

    def close(self) -> None:
        """Disconnect. The broker keeps the session."""
        self._client.disconnect()
        self._client.loop_write()

    # ---------------------------------------------------------------------------------------------- the network

    def _new_client(self) -> mqtt.Client:
        options = self._options
        is_5 = options.version == "5"
        client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=options.client_id,
            clean_session=None if is_5 else False,
            protocol=VERSIONS[options.version],
            reconnect_on_failure=False,
            manual_ack=True,
        )
        if options.address.user:
            client.username_pw_set(options.address.user, options.password)
        if options.tls is not None:
            client.tls_set_context(options.tls)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        client.on_disconnect = self._on_disconnect
        client.on_socket_open = _send_at_once
        return client

    def _open(self) -> None:
        address = self._options.address
        if self._options.version != "5":
            self._client.connect(address.host, address.port, KEEPALIVE_S)
            return
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = self._options.session_expiry_s
        properties.ReceiveMaximum = self._options.in_flight
        self._client.connect(address.host, address.port, KEEPALIVE_S, clean_start=False, properties=properties)

    def _reconnect(self) -> bool:
        """Try to connect if the pause is over, otherwise wait briefly. Return whether the connection is open."""
        if self._is_taken_over:
            raise ClientIdInUse(
                f"another client has connected to {self._options.address} with client id {self._options.client_id}; "
                "stop it, or pass another --client-id"
            )
        now = time.monotonic()
        if self._subscribed:  # the connection has just been lost
            self._subscribed = False
            self._pause_s = _PAUSE_S if now - self._opened_at >= _STABLE_S else self._pause_s
            self._schedule_attempt(self._lost)
        if now < self._retry_at:
            time.sleep(min(self._retry_at - now, _POLL_S))
            return False
        try:
            self.connect()
        except (BrokerUnreachable, BrokerRefused) as error:
            self._schedule_attempt(str(error))
            return False
        self._report(f"reconnected to the broker at {self._options.address}")
        return True

    def _schedule_attempt(self, failure: str) -> None:
        self._report(f"{failure}; next attempt in {self._pause_s:g} s")
        self._retry_at = time.monotonic() + self._pause_s
        self._pause_s = min(self._pause_s * 2, _PAUSE_MAX_S)

    def _wait(self, seconds: float) -> None:
        """Wait at most `seconds` until the broker has sent something, and send pending packets."""
        opened = self._client.socket()
        if opened is None:
            self._lost = self._lost or "the connection ended"
            return
        writing = [opened] if self._client.want_write() else []
        _, writable, _ = select.select([opened], writing, [], min(seconds, _POLL_S))
        if writable:
            self._client.loop_write()
        self._client.loop_misc()

    def _read(self, messages_max: int, bytes_max: int) -> None:
        """Read the packets that have arrived, up to a maximum of messages or bytes."""
        count = -1
        while count < len(self._received) and not self._is_full(messages_max, bytes_max):
            count = len(self._received)
            self._client.loop_read()

    def _is_full(self, messages_max: int, bytes_max: int) -> bool:
        return len(self._received) >= messages_max or self._received_bytes >= bytes_max

    # ---------------------------------------------------------------------------------------------- callbacks of paho

    def _on_connect(
        self, _: mqtt.Client, __: object, flags: mqtt.ConnectFlags, reason: ReasonCode, *___: object
    ) -> None:
        if reason.is_failure:
            self._refusal = f"the connection: {reason}{_advice(str(reason))}"
            return
        self._connected = True
        if not flags.session_present:
            self._unacknowledged.clear()
        if self._options.version == "5":
            how = SubscribeOptions(qos=_QOS, retainHandling=_RETAINED_IF_NEW)
            self._client.subscribe([(subscription, how) for subscription in self._options.subscriptions])
        elif self._connection == 1 or not flags.session_present:
            self._client.subscribe([(subscription, _QOS) for subscription in self._options.subscriptions])
        else:
            self._subscribed = True

    def _on_subscribe(self, _: mqtt.Client, __: object, ___: int, reasons: list[ReasonCode], *____: object) -> None:
        refused = [
            f"topic {subscription}: {reason}"
            for subscription, reason in zip(self._options.subscriptions, reasons, strict=True)
            if reason.is_failure
        ]
        self._refusal = ", ".join(refused)
        self._subscribed = not refused

    def _on_message(self, _: mqtt.Client, __: object, found: mqtt.MQTTMessage) -> None:
        try:
            topic = found.topic
        except UnicodeDecodeError:
            topic = ""  # no route matches this topic, so the message becomes a dead letter
        message = Message(topic, found.payload, self._connection, found.mid if found.qos else 0)
        if message.number:
            before = self._unacknowledged.get(message.number)
            if found.dup and before and (before.topic, before.payload) == (message.topic, message.payload):
                message.arrival = before.arrival
            self._unacknowledged[message.number] = message
        self._received.append(message)
        self._received_bytes += len(message.payload)

    def _on_disconnect(
        self, _: mqtt.Client, __: object, flags: mqtt.DisconnectFlags, reason: ReasonCode, *___: object
    ) -> None:
        said = f" ({reason})" if flags.is_disconnect_packet_from_server else ""
        end = f"the broker at {self._options.address} ended the connection{said}"
        self._lost = self._lost or f"{end}; another client may have client id {self._options.client_id}"
        self._is_taken_over = self._is_taken_over or reason.value == _TAKEN_OVER


def _send_at_once(_: mqtt.Client, __: object, opened: socket.socket) -> None:
    """Disable Nagle's algorithm, so that small acknowledgements are sent at once."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _advice(reason: str) -> str:
    if "user name or password" in reason.lower() or "not authorized" in reason.lower():
        return "; check the user of --broker, and SAROS_MQTT_PASSWORD"
    return "; pass --mqtt 3.1.1" if "protocol version" in reason.lower() else ""


def _reason_of(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); check --tls-ca"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
