"""A mosquitto broker on a free loopback port, with its data in a folder, and a client that publishes."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from free_ports import HOST, free_ports
from waiting import PATIENCE_S, wait_until

PROGRAM = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin")
needs_mosquitto = pytest.mark.skipif(PROGRAM is None, reason="mosquitto is not installed")
needs_mosquitto_clients = pytest.mark.skipif(
    PROGRAM is None or shutil.which("mosquitto_pub") is None, reason="mosquitto or its clients are not installed"
)


class Mosquitto:
    """A broker that persists sessions in its folder. Its configuration contains `settings`."""

    def __init__(self, folder: Path, settings: Mapping[str, object] | None = None) -> None:
        folder.mkdir(exist_ok=True)
        (self.port,) = free_ports(1)
        lines = {
            "listener": f"{self.port} {HOST}",
            "user": "root",
            "allow_anonymous": "true",
            "persistence": "true",
            "persistence_location": f"{folder}/",
            "max_queued_messages": 0,
            "max_inflight_messages": 0,
            "log_dest": f"file {folder}/mosquitto.log",
            **(settings or {}),
        }
        self._configuration = folder / "mosquitto.conf"
        self._configuration.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"mqtt://{HOST}:{self.port}"

    def start(self) -> None:
        assert PROGRAM is not None
        self._process = subprocess.Popen(
            [PROGRAM, "-c", str(self._configuration)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(self._accepts)

    def _accepts(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def publish(self, messages: Iterable[tuple[str, bytes | str]]) -> None:
        """Publish with QoS 1, and wait until the broker has acknowledged all messages."""
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        client.max_inflight_messages_set(0)
        client.connect(HOST, self.port)
        client.loop_start()
        sent = [client.publish(topic, payload, qos=1) for topic, payload in messages]
        for info in sent:
            info.wait_for_publish(PATIENCE_S)
            assert info.is_published()
        client.disconnect()
        client.loop_stop()


@contextmanager
def running(folder: Path, settings: Mapping[str, object] | None = None) -> Iterator[Mosquitto]:
    """Yield a running broker."""
    broker = Mosquitto(folder, settings)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
