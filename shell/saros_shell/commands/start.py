"""`saros start`: starts a server for a folder, in the background or in the foreground.

If the server runs in the background, only the server process loads the database; this command does not.

Exit codes: 0 the server runs, 1 failure, 2 wrong usage.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from saros_server.config.data_folder import reason
from saros_server.foreground import REFUSALS, Prepared, parse, prepare, serve, write_warning
from saros_server.process.daemon import is_launched, last_log_line, launch
from saros_server.process.server_file import Serving, serving

_START_SECONDS = 30.0
_POLL_SECONDS = 0.05


def main(arguments: Sequence[str]) -> int:
    """Run `saros start` and return its exit code."""
    options = parse(arguments)
    if options.foreground:
        return serve(options)
    found = serving(options.data)
    if found is not None:
        sys.stderr.write(
            f"saros start: a server is already running for {options.data}: process {found.pid} at saros://{found.address}\n"
        )
        return 1
    try:
        prepared = prepare(options)
        launch(options.data, arguments)
    except REFUSALS as error:
        sys.stderr.write(f"saros start: {reason(error)}\n")
        return 1
    limit = time.monotonic() + _START_SECONDS
    while time.monotonic() < limit and is_launched(options.data):
        found = serving(options.data)
        if found is not None:
            sys.stdout.write(f"serving {options.data} at saros://{found.address} (process {found.pid})\n")
            write_http(found, prepared)
            write_warning(prepared)
            return 0
        time.sleep(_POLL_SECONDS)
    sys.stderr.write(f"saros start: the server did not come up: {last_log_line(options.data)}\n")
    return 1


def write_http(found: Serving, prepared: Prepared) -> None:
    """Print the address of the server's HTTP service, or the reason why it has none."""
    if found.http:
        sys.stdout.write(f"HTTP at {found.http}\n")
    elif port := prepared.configuration.http_port:
        sys.stdout.write(f"no HTTP: port {port} is in use; choose another one with --http-port, or 0 for none\n")
