"""`saros start`, `saros stop`, `saros status`: a server for a folder, in the background.

Exit codes: 0 done, 1 it did not work, 2 wrong use; `status` answers 3 if nobody serves the folder.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from saros_server.server import Serving, serving
from saros_wire.generated.client_pb2 import PingReply, PingRequest
from saros_wire.protocol import DEFAULT_PORT, PING, path_of

_START_SECONDS = 30.0
_STOP_SECONDS = 60.0
_PING_SECONDS = 10.0
_POLL_SECONDS = 0.05
_LOG = "server.log"
_NOT_RUNNING = 3


def start(arguments: Sequence[str]) -> int:
    """`saros start`."""
    options = start_parser().parse_args(arguments)
    if options.foreground:
        return _serve(options)
    found = serving(options.data)
    if found is not None:
        sys.stderr.write(f"saros start: process {found.pid} serves {options.data} already, at {found.address}\n")
        return 1
    os.makedirs(options.data, mode=0o700, exist_ok=True)
    log = Path(options.data, _LOG)
    with log.open("ab") as stream:
        child = subprocess.Popen(  # noqa: S603 (our own command)
            [sys.executable, "-m", "saros_server", "start", "--foreground", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    limit = time.monotonic() + _START_SECONDS
    while time.monotonic() < limit and child.poll() is None:
        found = serving(options.data)
        if found is not None:
            sys.stdout.write(f"serving {options.data} at saros://{found.address} (process {found.pid})\n")
            return 0
        time.sleep(_POLL_SECONDS)
    last = log.read_text(errors="replace").strip().splitlines()[-1:]
    sys.stderr.write(f"saros start: the server did not come up: {' '.join(last)}; see {log}\n")
    return 1


def _serve(options: argparse.Namespace) -> int:
    from saros_server.configuration import ConfigurationError
    from saros_server.logs import write_json_lines
    from saros_server.server import Server
    from saros_storage.errors import StorageError

    write_json_lines(options.log_level)
    try:
        server = Server(options.data, options.host, options.port, metrics_port=options.metrics_port)
        server.run_until_signalled()
    except (ConfigurationError, StorageError, OSError) as error:
        sys.stderr.write(f"saros start: {error}\n")
        return 1
    return 0


def stop(arguments: Sequence[str]) -> int:
    """`saros stop`."""
    options = data_parser("stop", "End the server of a folder; running calls may finish.").parse_args(arguments)
    found = serving(options.data)
    if found is None:
        sys.stderr.write(f"saros stop: nobody serves {options.data}\n")
        return 1
    os.kill(found.pid, signal.SIGTERM)
    limit = time.monotonic() + _STOP_SECONDS
    while serving(options.data) is not None:
        if time.monotonic() > limit:
            sys.stderr.write(f"saros stop: process {found.pid} has not ended in {_STOP_SECONDS:.0f} s\n")
            return 1
        time.sleep(_POLL_SECONDS)
    sys.stdout.write(f"stopped process {found.pid}\n")
    return 0


def status(arguments: Sequence[str]) -> int:
    """`saros status`."""
    options = data_parser("status", "Say who serves a folder, and how it is.").parse_args(arguments)
    found = serving(options.data)
    if found is None:
        sys.stdout.write(f"nobody serves {options.data}\n")
        return _NOT_RUNNING
    return _print_status(found)


def _print_status(found: Serving) -> int:
    import grpc

    try:
        with grpc.insecure_channel(found.address) as channel:
            call = channel.unary_unary(
                path_of(PING),
                request_serializer=PingRequest.SerializeToString,
                response_deserializer=PingReply.FromString,
            )
            reply: PingReply = call(PingRequest(), timeout=_PING_SECONDS)
    except grpc.RpcError as error:
        sys.stdout.write(f"process {found.pid} at {found.address} does not answer: {error.details()}\n")
        return 1
    rows = [
        ("process", str(found.pid)),
        ("address", f"saros://{found.address}"),
        ("version", reply.server),
        ("up", f"{reply.uptime_ms / 1_000:.0f} s"),
        ("sessions", str(reply.sessions)),
        ("queries", str(reply.queries)),
        *(("problem", text) for text in reply.problems),
    ]
    for name, value in rows:
        sys.stdout.write(f"{name:<9} {value}\n")
    return 0


def start_parser() -> argparse.ArgumentParser:
    """What `saros start` takes."""
    made = data_parser("start", "Serve a folder to other processes of this machine.")
    made.add_argument("--host", default="127.0.0.1", help="loopback address to listen on")
    made.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"default {DEFAULT_PORT}; 0: any free one")
    made.add_argument("--metrics-port", type=int, metavar="N", help="serve /metrics, /health and /ready (default: not)")
    made.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    made.add_argument("--foreground", action="store_true", help="do not go into the background")
    return made


def data_parser(name: str, what: str) -> argparse.ArgumentParser:
    """What all of them take."""
    made = argparse.ArgumentParser(prog=f"saros {name}", description=what)
    made.add_argument("--data", default="./data", metavar="FOLDER", help="data folder (default ./data)")
    return made
