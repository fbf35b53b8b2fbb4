"""`saros mqtt`: receives messages from an MQTT broker and writes them to a folder or a server.

    saros mqtt --broker mqtt://127.0.0.1 --topic 'plant/{area}/{device}' --path 'root.plant.{area}.{device}' -d TARGET

On Ctrl-C or SIGTERM, the command writes and acknowledges the messages that have arrived, and ends. A second signal ends
the command at once, and the broker redelivers unacknowledged messages. Exit codes: 0 stopped, 1 the broker or the
database refused the connection, 2 wrong usage, 130 interrupted twice.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING

import saros
from saros_server.config.arguments import CommandParser, at_least
from saros_server.config.data_folder import reason
from saros_server.sources.plurals import counted
from saros_shell.mqtt.broker_address import BrokerAddress, MqttUsageError, parse_broker
from saros_shell.mqtt.dead_letters import DeadLetterFile
from saros_shell.mqtt.payload_formats import NANOSECONDS, IotdbJsonParser, JsonParser, Parser, TimeScale, parse_number
from saros_shell.mqtt.routes import Route, Router, parse_template, parse_topic
from saros_shell.output.login import password_of, password_of_user
from saros_shell.output.progress import Rate

if TYPE_CHECKING:
    from saros_shell.mqtt.bridge import Counts, Reader, Writer

FORMATS = ("number", "json", "iotdb-json", "line")
UNITS = ("s", "ms", "us", "ns")
PASSWORD_VARIABLE = "SAROS_MQTT_PASSWORD"  # noqa: S105 - a name
#: The maximum number of payload bytes of a batch.
_BATCH_BYTES = 8 << 20
#: The number of seconds between two lines of counts.
_COUNTS_S = 60.0
#: Seconds for which a call to the database looks for a live node. If the call fails, the command retries the write.
_FAILOVER_S = 5.0
_WEEK_S = 7 * 24 * 3_600
_IN_FLIGHT_MAX = 65_535
_ID_DIGITS = 8
_INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Run `saros mqtt` and return its exit code."""
    options = parser().parse_args(arguments)
    try:
        address = parse_broker(options.broker)
        router = Router(_routes(options))
        tls = _tls_context(address, options)
    except (MqttUsageError, OSError) as error:
        return _failed(reason(error), 2)
    if find_spec("paho") is None:
        return _failed("this needs the extra `mqtt`: pip install 'saros[mqtt]'", 2)
    try:
        return _run(options, address, router, tls)
    except (saros.Error, OSError) as error:
        return _failed(reason(error), 1)


def _failed(what: str, code: int) -> int:
    sys.stderr.write(f"saros mqtt: {what}\n")
    return code


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros mqtt`."""
    made = CommandParser(prog="saros mqtt", description="Write the messages of an MQTT broker to a database.")
    made.add_argument("--broker", required=True, metavar="URL", help="mqtt://[user@]host[:port], or mqtts:// for TLS")
    made.add_argument(
        "--topic", action="append", required=True, metavar="FILTER", help="such as plant/+/temperature; may be repeated"
    )
    made.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="PATH",
        help="path to write to, such as root.plant.{1}; once, or once for each --topic",
    )
    made.add_argument("-d", "--database", default="./data", metavar="TARGET", help="folder or saros://host:port")
    made.add_argument("--format", choices=FORMATS, default="json", help="payload format (default %(default)s)")
    made.add_argument("--time-key", metavar="NAME", help="json: the member that is the time (default: time of arrival)")
    made.add_argument("--time-unit", choices=UNITS, help="unit of numeric times (default: the database's; line: ns)")
    made.add_argument("--aligned", action="store_true", help="create new devices as aligned")
    made.add_argument(
        "--dead-letter",
        default="saros-mqtt.dead.jsonl",
        metavar="FILE",
        help="file for refused messages (default %(default)s)",
    )
    made.add_argument(
        "--dead-letter-bytes", type=at_least(1), default=64 << 20, metavar="N", help="size for renaming it to FILE.1"
    )
    made.add_argument("--client-id", metavar="ID", help="client id (default: from host, broker and topics)")
    made.add_argument("--mqtt", choices=("5", "3.1.1"), default="5", help="protocol version (default %(default)s)")
    made.add_argument(
        "--in-flight", type=_in_flight, default=2_000, metavar="N", help="most unacknowledged messages (2000)"
    )
    made.add_argument("--linger-ms", type=at_least(0), default=0, metavar="N", help="time to collect messages (0)")
    made.add_argument(
        "--session-expiry",
        type=at_least(0),
        default=_WEEK_S,
        metavar="S",
        help="seconds for which the broker keeps the session; MQTT 5 only (one week)",
    )
    made.add_argument("--tls-ca", metavar="FILE", help="CA of the broker's certificate (default: the system's)")
    made.add_argument("--tls-certificate", metavar="FILE", help="certificate of this client")
    made.add_argument("--tls-key", metavar="FILE", help="its key")
    made.add_argument("--quiet", action="store_true", help="no counts while it runs")
    return made


def _in_flight(text: str) -> int:
    number = at_least(1)(text)
    if number > _IN_FLIGHT_MAX:
        raise argparse.ArgumentTypeError(f"{number} is too large: at most {_IN_FLIGHT_MAX}")
    return number


# ---------------------------------------------------------------------------------------------- options


def _routes(options: argparse.Namespace) -> list[Route]:
    """Return the routes that the options describe. Raises MqttUsageError."""
    topics = [parse_topic(text) for text in options.topic]
    if options.aligned and options.format == "line":
        raise MqttUsageError("--aligned: devices of --format line are always aligned; omit it")
    if options.time_key is not None and options.format != "json":
        raise MqttUsageError(f"--time-key belongs to --format json, not {options.format}")
    if options.format == "iotdb-json":
        if options.path:
            raise MqttUsageError("--format iotdb-json has the device in each payload; omit --path")
        return [Route(topic, None) for topic in topics]
    if len(options.path) not in (1, len(topics)):
        raise MqttUsageError(
            f"{counted(len(options.path), '--path')} for {counted(len(topics), '--topic')}: "
            "give it once, or once for each --topic, such as --path 'root.plant.{1}'"
        )
    paths = options.path if len(options.path) == len(topics) else options.path * len(topics)
    routes = [Route(topic, parse_template(path, topic)) for topic, path in zip(topics, paths, strict=True)]
    _check_lengths(routes, paths, options.format)
    return routes


def _check_lengths(routes: Sequence[Route], paths: Sequence[str], format_: str) -> None:
    """Raise MqttUsageError if a path has fewer or more nodes than the payload format needs."""
    least = 3 if format_ == "number" else 2
    for route, path in zip(routes, paths, strict=True):
        if route.path is not None and len(route.path.nodes) < least and not route.topic.multi_level:
            needed = "a device and a measurement" if least > 2 else "a device"
            raise MqttUsageError(f"--path {path} is too short: after root, --format {format_} needs {needed}")
        if format_ == "line" and (route.path is None or len(route.path.nodes) > least or route.topic.multi_level):
            raise MqttUsageError(f"--path {path}: --format line needs a database, such as root.plant or root.{{1}}")


def _tls_context(address: BrokerAddress, options: argparse.Namespace) -> ssl.SSLContext | None:
    """Return the context of a mqtts:// broker. Raises MqttUsageError, OSError (files that cannot be read)."""
    if not address.tls:
        if options.tls_ca or options.tls_certificate or options.tls_key:
            raise MqttUsageError("--tls-ca, --tls-certificate and --tls-key need --broker mqtts://...")
        return None
    if options.tls_key and not options.tls_certificate:
        raise MqttUsageError("--tls-key needs --tls-certificate")
    named = [file for file in (options.tls_ca, options.tls_certificate, options.tls_key) if file]
    for file in named:
        with open(file, "rb"):  # the error of `ssl` does not name the file
            continue
    try:
        context = ssl.create_default_context(cafile=options.tls_ca)
        if options.tls_certificate:
            context.load_cert_chain(options.tls_certificate, options.tls_key, password=_no_passphrase)
    except ssl.SSLError as error:
        raise MqttUsageError(f"{', '.join(named)}: not PEM files of a certificate and its key ({error})") from None
    return context


def _no_passphrase() -> str:
    raise MqttUsageError("--tls-key is protected by a passphrase; give a key without one")


def _client_id(options: argparse.Namespace, address: BrokerAddress) -> str:
    """Return the client id. All runs on this machine with the same options have the same default id."""
    what = "\n".join([str(address), address.user, *options.topic, os.path.abspath(options.database)])
    return options.client_id or f"saros-{socket.gethostname()}-{hashlib.sha256(what.encode()).hexdigest()[:_ID_DIGITS]}"


# ---------------------------------------------------------------------------------------------- running


def _run(options: argparse.Namespace, address: BrokerAddress, router: Router, tls: ssl.SSLContext | None) -> int:
    """Connect to the broker and the database, run, and return the exit code. Raises saros.Error, OSError."""
    from saros_shell.mqtt.bridge import BatchLimits, Bridge, NotWritten
    from saros_shell.mqtt.broker_connection import BrokerConnection, BrokerError, BrokerOptions

    broker_options = BrokerOptions(
        address=address,
        subscriptions=[route.topic.subscription for route in router.routes],
        client_id=_client_id(options, address),
        version=options.mqtt,
        in_flight=options.in_flight,
        session_expiry_s=options.session_expiry,
        password=password_of_user(address.user, PASSWORD_VARIABLE) if address.user else None,
        tls=tls,
    )
    stopped = _stop_on_signals()
    display = _Display(quiet=options.quiet)
    with (
        closing(DeadLetterFile(options.dead_letter, options.dead_letter_bytes)) as dead_letters,
        saros.connect(
            options.database, password=password_of(options.database), timestamps="epoch", failover_s=_FAILOVER_S
        ) as connection,
    ):
        reader, writer = _reader_and_writer(connection, options, router)
        broker = BrokerConnection(broker_options, display.report)
        limits = BatchLimits(options.in_flight, _BATCH_BYTES, options.linger_ms / 1_000)
        bridge = Bridge(broker, reader, writer, dead_letters, limits, report=display.report, progress=display.show)
        try:
            broker.connect()
            topics = ", ".join(broker_options.subscriptions)
            sys.stdout.write(f"receiving {topics} from {address} as {broker_options.client_id}; Ctrl-C stops\n")
            sys.stdout.flush()
            bridge.run(stopped)
        except (BrokerError, NotWritten) as error:
            return _failed(str(error), 1)
        finally:
            broker.close()
            display.finish(bridge.counts)
    return 0


def _reader_and_writer(
    connection: saros.Connection, options: argparse.Namespace, router: Router
) -> tuple[Reader, Writer]:
    from saros_shell.mqtt.batch_writer import BatchWriter
    from saros_shell.mqtt.line_writer import LineWriter
    from saros_shell.mqtt.message_reader import ArrivalClock, LineReader, MessageReader

    unit = connection.execute("show current_timestamp").fetch_arrow().schema.types[0].unit
    scale = TimeScale(options.time_unit or unit, unit)
    divisor = NANOSECONDS[unit]
    clock = ArrivalClock(lambda: time.time_ns() // divisor)
    if options.format == "line":
        return LineReader(router, clock, divisor), LineWriter(connection, options.time_unit or "ns")
    parsers: dict[str, Parser] = {
        "number": parse_number,
        "json": JsonParser(options.time_key, scale),
        "iotdb-json": IotdbJsonParser(scale),
    }
    reader = MessageReader(router, parsers[options.format], clock)
    return reader, BatchWriter(connection, scale, aligned=options.aligned)


def _stop_on_signals() -> threading.Event:
    """Return the event that the first Ctrl-C or SIGTERM sets. A second signal ends the process."""
    stopped = threading.Event()

    def handle(_: int, __: FrameType | None) -> None:
        if stopped.is_set():
            os._exit(_INTERRUPTED)  # the broker redelivers unacknowledged messages, as after a crash
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    return stopped


class _Display:
    """Output on standard error: messages, a line of counts every minute, and a progress line on a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._rate = Rate(quiet=quiet)
        self._told_at = time.monotonic()
        self._told = 0

    def report(self, sentence: str) -> None:
        """Print a message."""
        self._rate.finish()
        sys.stderr.write(f"saros mqtt: {sentence}\n")
        sys.stderr.flush()

    def show(self, counts: Counts) -> None:
        """Show the counts if enough time has passed."""
        self._rate.show(counts.messages, "message", _refused_text(counts))
        now = time.monotonic()
        if now - self._told_at < _COUNTS_S:
            return
        if not self._quiet and counts.messages > self._told:
            self.report(_counts_text(counts))
        self._told_at, self._told = now, counts.messages

    def finish(self, counts: Counts) -> None:
        """Print the final counts."""
        self._rate.finish()
        sys.stdout.write(f"{_counts_text(counts)}\n")


def _counts_text(counts: Counts) -> str:
    return f"{counted(counts.messages, 'message')}, {counted(counts.points, 'point')}{_refused_text(counts)}"


def _refused_text(counts: Counts) -> str:
    return f", {counts.refused} refused"
