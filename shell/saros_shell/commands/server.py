"""`saros stop`, `saros status`: stop the server of a folder, or print its state. The database is not loaded.

Exit codes: 0 success, 1 failure, 2 wrong usage; `status` returns 3 if no server runs for the folder.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence

from saros.transport.exchange import CallFailed
from saros.transport.node_connection import NodeConnection
from saros_server.config.arguments import data_parser
from saros_server.config.data_folder import reason
from saros_server.process.daemon import is_launched, is_taken
from saros_server.process.server_file import Serving, serving
from saros_wire.frames import Call, encode_prefix
from saros_wire.generated.client_pb2 import PingReply

_STOP_SECONDS = 60.0
_PING_SECONDS = 10.0
_POLL_SECONDS = 0.05
_LAST_WORDS_SECONDS = 1.0
_WATCH_SECONDS = 2.0
_NOT_RUNNING = 3


def stop(arguments: Sequence[str]) -> int:
    """Run `saros stop` and return its exit code."""
    options = stop_parser().parse_args(arguments)
    found = serving(options.data)
    if found is None:
        sys.stderr.write(f"saros stop: {_why_not_served(options.data)[0]}\n")
        return 1
    launched = is_launched(options.data)
    os.kill(found.pid, signal.SIGTERM)
    limit = time.monotonic() + _STOP_SECONDS
    while is_taken(options.data):
        if time.monotonic() > limit:
            sys.stderr.write(f"saros stop: process {found.pid} has not ended in {_STOP_SECONDS:.0f} s\n")
            return 1
        time.sleep(_POLL_SECONDS)
    if not launched:  # a launched server holds its lock until it ends
        _await_end(found.pid)
    sys.stdout.write(f"stopped process {found.pid}\n")
    return 0


def _await_end(pid: int) -> None:
    """Wait for the end of a process that has released its folder, so that its last output precedes this command's.

    The time limit is short, because an ended process seems to run until its parent reaps it.
    """
    limit = time.monotonic() + _LAST_WORDS_SECONDS
    while time.monotonic() < limit:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(_POLL_SECONDS)


def status(arguments: Sequence[str]) -> int:
    """Run `saros status` and return its exit code."""
    options = status_parser().parse_args(arguments)
    while True:
        code = _status(options.data)
        if options.watch is None:
            return code
        sys.stdout.write("\n")
        sys.stdout.flush()
        time.sleep(max(options.watch, _POLL_SECONDS))


def stop_parser() -> argparse.ArgumentParser:
    """Return the parser of `saros stop`."""
    return data_parser("stop", "Stop the server of a folder once running calls end.")


def status_parser() -> argparse.ArgumentParser:
    """Return the parser of `saros status`."""
    made = data_parser("status", "Show the server of a folder and its condition.")
    made.add_argument(
        "--watch", nargs="?", type=float, const=_WATCH_SECONDS, metavar="SECONDS", help="repeat until Ctrl-C"
    )
    return made


def _status(folder: str) -> int:
    found = serving(folder)
    if found is None:
        told, known = _why_not_served(folder)
        sys.stdout.write(f"{told}\n")
        return _NOT_RUNNING if known else 1
    return _print_status(found)


def _why_not_served(folder: str) -> tuple[str, bool]:
    """Return the reason why a folder has no server, and whether it is certain that no server runs."""
    try:
        os.listdir(folder)
    except FileNotFoundError:
        return f"no server is running for {folder}: the folder does not exist", True
    except OSError as error:
        return f"cannot read the folder {reason(error)}", False
    if is_launched(folder):
        return f"the server of {folder} is still starting; try again in a few seconds", False
    return f"no server is running for {folder}", True


def _print_status(found: Serving) -> int:
    try:
        reply = ping(found.local or found.address)
    except CallFailed as failed:
        sys.stdout.write(f"process {found.pid} at {found.address} does not answer: {failed.details}\n")
        return 1
    rows = [
        ("process", str(found.pid)),
        ("address", f"saros://{found.address}"),
        *([("http", found.http)] if found.http else []),
        ("version", reply.server),
        ("up", f"{reply.uptime_ms / 1_000:.0f} s"),
        ("sessions", str(reply.sessions)),
        ("queries", str(reply.queries)),
        *(("problem", text) for text in reply.problems),
    ]
    for name, value in rows:
        sys.stdout.write(f"{name:<9} {value}\n")
    return 0


def ping(address: str) -> PingReply:
    """Return the node's answer. Raises CallFailed."""
    connection = NodeConnection(address, None)
    try:
        reply: PingReply = PingReply.FromString(connection.call(Call.PING, encode_prefix(), _PING_SECONDS))
    finally:
        connection.close()
    return reply
