"""A Saros server in a process of its own, for the benchmarks that measure it from outside. One caller."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from free_ports import free_ports
from interruptible import uninterrupted
from waiting import wait_until

from saros_server.process.server_file import serving


@contextmanager
def own_server(http_port: int = 0) -> Iterator[tuple[int, int]]:
    """Run a server on an empty folder until the context ends: its port, its process. `http_port`: 0: without HTTP."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="saros-bench-") as folder:
        options = ("--data", folder, "--port", str(port), "--http-port", str(http_port), "--foreground")
        with uninterrupted():
            command = (sys.executable, "-m", "saros_server", *options)
            server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: serving(folder) is not None)
            yield port, server.pid
        finally:
            server.terminate()
            server.wait()
