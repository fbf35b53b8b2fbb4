"""Messages per second of `saros mqtt` (QoS 1), compared with receiving them without writing.

python benchmarks/bench_mqtt.py [--messages N] [--devices N] [--rounds N]

A mosquitto broker without limits queues N messages for a session. The messages are then received in three ways: by
mosquitto_sub, by this program without writing (the most that paho-mqtt can reach), and by this program while it writes
to a server in another process, with fsync. Payloads are single numbers, whose timestamp is their time of arrival, and
JSON objects with a time and ten numbers. The figures are medians of the rounds.

Other load on the machine changes the messages per second, but hardly this process's processor time per message.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import interruptible
from own_server import own_server
from shell.mqtt.mosquitto import HOST, Mosquitto, running

import saros
from saros_shell.mqtt.batch_writer import BatchWriter
from saros_shell.mqtt.bridge import BatchLimits, Bridge, Counts
from saros_shell.mqtt.broker_address import parse_broker
from saros_shell.mqtt.broker_connection import BrokerConnection, BrokerOptions
from saros_shell.mqtt.dead_letters import DeadLetterFile
from saros_shell.mqtt.message_reader import ArrivalClock, MessageReader
from saros_shell.mqtt.payload_formats import JsonParser, Parser, TimeScale, parse_number
from saros_shell.mqtt.routes import Route, Router, parse_template, parse_topic

IN_FLIGHT, BATCH_BYTES = 2_000, 8 << 20
START_MS = 1_704_067_200_000
MS = TimeScale("ms", "ms")
FORMATS: dict[str, tuple[str, Parser]] = {
    "1 number": ("root.bench.{1}.x", parse_number),
    "10-field JSON": ("root.bench.{1}", JsonParser("t", MS)),
}


def payload(format_: str, number: int) -> str:
    """Return the payload of a message."""
    if format_ == "1 number":
        return str(number / 7)
    return json.dumps({"t": START_MS + number, **{f"s{field}": number / (field + 7) for field in range(10)}})


def session(broker: Mosquitto) -> BrokerConnection:
    """Return a connection whose session the broker keeps."""
    options = BrokerOptions(parse_broker(broker.url), ["bench/+"], "bench", "5", IN_FLIGHT, 3_600)
    return BrokerConnection(options, print)


def backlog(broker: Mosquitto, format_: str, messages: int, devices: int) -> None:
    """Make the broker queue messages for the session."""
    connection = session(broker)
    connection.connect()
    connection.close()
    broker.publish((f"bench/d{number % devices}", payload(format_, number)) for number in range(messages))


def receive_only(broker: Mosquitto, messages: int) -> None:
    """Receive and acknowledge."""
    connection = session(broker)
    connection.connect()
    count = 0
    while count < messages:
        received = connection.receive(IN_FLIGHT, BATCH_BYTES, 0.0)
        connection.acknowledge(received)
        count += len(received)
    connection.close()


def write(broker: Mosquitto, format_: str, messages: int, writer: BatchWriter, folder: str) -> None:
    """Receive, write and acknowledge, as the command does."""
    topic = parse_topic("bench/+")
    path, parse = FORMATS[format_]
    router = Router([Route(topic, parse_template(path, topic))])
    reader = MessageReader(router, parse, ArrivalClock(lambda: time.time_ns() // 1_000_000))
    stopped = threading.Event()

    def progress(counts: Counts) -> None:
        if counts.messages >= messages:
            stopped.set()

    opened = session(broker)
    dead_letters = DeadLetterFile(f"{folder}/dead", 1 << 20)
    limits = BatchLimits(IN_FLIGHT, BATCH_BYTES, 0.0)
    opened.connect()
    Bridge(opened, reader, writer, dead_letters, limits, report=print, progress=progress).run(stopped)
    opened.close()
    dead_letters.close()


def by_mosquitto_sub(broker: Mosquitto, messages: int) -> None:
    """Receive with mosquitto's own client."""
    where = ["-h", HOST, "-p", str(broker.port), "-V", "5", "-c", "-i", "bench", "-x", "3600"]
    command = ["mosquitto_sub", *where, "-q", "1", "-t", "bench/+", "-C", str(messages)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measured(run: Callable[[], None], messages: int) -> tuple[float, float]:
    """Return the messages per second of a run, and this process's processor time per message in microseconds."""
    began, used = time.perf_counter(), time.process_time()
    run()
    return messages / (time.perf_counter() - began), (time.process_time() - used) / messages * 1e6


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--messages", type=int, default=20_000)
    made.add_argument("--devices", type=int, default=100)
    made.add_argument("--rounds", type=int, default=3)
    options = made.parse_args()
    messages = options.messages
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder)) as broker,
        own_server() as server,
        saros.connect(f"saros://{HOST}:{server.port}") as connection,
    ):
        for format_ in FORMATS:
            writer = BatchWriter(connection, MS, aligned=False)
            runs: dict[str, Callable[[], None]] = {
                "mosquitto_sub": lambda: by_mosquitto_sub(broker, messages),
                "received only": lambda: receive_only(broker, messages),
                "written": lambda format_=format_, writer=writer: write(broker, format_, messages, writer, folder),
            }
            backlog(broker, format_, options.devices, options.devices)
            write(broker, format_, options.devices, writer, folder)  # creates the series
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
            for _ in range(options.rounds):
                for name, run in runs.items():
                    backlog(broker, format_, messages, options.devices)
                    found[name].append(measured(run, messages))
            for name, results in found.items():
                rate, processor_us = map(statistics.median, zip(*results, strict=True))
                print(f"{format_}, {name}: {rate:,.0f} messages/s, {processor_us:.0f} us each", flush=True)


if __name__ == "__main__":
    interruptible.run(main)
