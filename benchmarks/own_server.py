"""A Saros server in a separate process, for the benchmarks that measure a server from outside."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from free_ports import free_ports
from interruptible import uninterrupted
from waiting import wait_until

from saros_server.process.server_file import serving


@dataclass(frozen=True, slots=True)
class OwnServer:
    """A running server."""

    port: int
    process: int
    #: Port and URL of the server's HTTP service; 0 and "" if it has none.
    http_port: int
    http: str


@contextmanager
def own_server(*, http: bool = False) -> Iterator[OwnServer]:
    """Run a server on an empty folder until the context ends. If `http`, the server has an HTTP service."""
    port, http_port = free_ports(2) if http else (*free_ports(1), 0)
    with tempfile.TemporaryDirectory(prefix="saros-bench-") as folder:
        options = ("--data", folder, "--port", str(port), "--http-port", str(http_port), "--foreground")
        with uninterrupted():
            command = (sys.executable, "-m", "saros_server", *options)
            server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: serving(folder) is not None)
            yield OwnServer(port, server.pid, http_port, f"http://127.0.0.1:{http_port}" if http else "")
        finally:
            server.terminate()
            server.wait()
