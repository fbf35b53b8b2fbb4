"""A server in a separate process, for programs that use clients of other projects."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from free_ports import free_ports
from waiting import wait_until

from saros_server.process.server_file import serving


@contextmanager
def stock_server(folder: Path, *options: str, **variables: str) -> Iterator[int]:
    """Run a server in `folder` with these options and environment variables. Yield its port.

    The server must log no error.
    """
    (port,) = free_ports(1)
    data = str(folder / "data")
    command = (sys.executable, "-m", "saros_server", "--data", data, "--port", str(port), "--foreground", *options)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **variables})
    try:
        wait_until(lambda: serving(data) is not None)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=60)
    assert "ERROR" not in (folder / "log").read_text()
