"""`saros start`, `saros stop`, `saros status`: a server for a folder, in the background.

Exit codes: 0 done, 1 it did not work, 2 wrong use; `status` answers 3 if nobody serves the folder.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from saros_cluster.cluster_file import CLUSTER_FILE
from saros_server.configuration import LOG_LEVELS, Configuration, ConfigurationError, load
from saros_server.launching import is_launched, is_taken, last_words, launch
from saros_server.server import Serving, serving
from saros_wire.generated.client_pb2 import PingReply, PingRequest
from saros_wire.protocol import DEFAULT_PORT, PING, path_of

if TYPE_CHECKING:
    from saros_server.security import Security

_START_SECONDS = 30.0
_STOP_SECONDS = 60.0
_PING_SECONDS = 10.0
_POLL_SECONDS = 0.05
_LAST_WORDS_SECONDS = 1.0
_NOT_RUNNING = 3
_DEFAULTS = "What is not given comes from saros.toml in the folder, or SAROS_... in the environment: see saros config."
#: What the server makes is nobody else's to read.
_UMASK = 0o077


def start(arguments: Sequence[str]) -> int:
    """`saros start`."""
    options = start_parser().parse_args(arguments)
    os.umask(_UMASK)
    if options.foreground:
        return _serve(options)
    found = serving(options.data)
    if found is not None:
        sys.stderr.write(f"saros start: process {found.pid} serves {options.data} already, at {found.address}\n")
        return 1
    try:
        prepared = _prepared(options)
        launch(options.data, arguments)
    except _refusals() as error:
        sys.stderr.write(f"saros start: {error}\n")
        return 1
    limit = time.monotonic() + _START_SECONDS
    while time.monotonic() < limit and is_launched(options.data):
        found = serving(options.data)
        if found is not None:
            sys.stdout.write(f"serving {options.data} at saros://{found.address} (process {found.pid})\n")
            _warn(options.data, prepared)
            return 0
        time.sleep(_POLL_SECONDS)
    sys.stderr.write(f"saros start: the server did not come up: {last_words(options.data)}\n")
    return 1


def _serve(options: argparse.Namespace) -> int:
    from saros_server.logs import write_json_lines
    from saros_server.server import Server

    try:
        prepared = configuration, security = _prepared(options)
        write_json_lines(configuration.log_level)
        if sys.stdout.isatty():
            _warn(options.data, prepared)
        host, port, metrics_port = (
            configuration.listen_host,
            configuration.listen_port,
            configuration.listen_metrics_port,
        )
        server = Server(options.data, host, port, metrics_port=metrics_port, security=security)
        server.run_until_signalled()
    except _refusals() as error:
        sys.stderr.write(f"saros start: {error}\n")
        return 1
    return 0


def _refusals() -> tuple[type[Exception], ...]:
    from saros_storage.errors import StorageError

    return ConfigurationError, StorageError, OSError


def _prepared(options: argparse.Namespace) -> tuple[Configuration, Security]:
    """What the server is to have; makes the first user, if there must be one. Raises `_refusals`."""
    from saros_server.node import configuration_file
    from saros_server.passwords import Cost
    from saros_server.security import FIRST_USER, check_folder, make_first_user, security_of

    given = {
        "listen_host": options.host,
        "listen_port": options.port,
        "listen_metrics_port": options.metrics_port,
        "log_level": options.log_level,
        "authentication": "on" if options.auth else None,
        "tls_certificate": options.tls_certificate,
        "tls_key": options.tls_key,
    }
    overrides = {key: value for key, value in given.items() if value is not None}
    configuration = load(file=configuration_file(options.data), overrides=overrides).values
    security = security_of(configuration, insecure=options.insecure)
    check_folder(options.data)
    if security.authentication:
        cost = Cost(configuration.password_cost)
        password = make_first_user(options.data, cost, options.init_admin_password_file)
        if password is not None:
            sys.stdout.write(
                f"made user {FIRST_USER}, an administrator; the password, which is shown this once and serves to set"
                f" another one: {password}\n"
            )
            sys.stdout.flush()
    return configuration, security


def _warn(folder: str, prepared: tuple[Configuration, Security]) -> None:
    """Say on standard output what whoever starts a server should know."""
    from saros_server.security import has_users, warning

    configuration, security = prepared
    authenticated = security.authentication or has_users(folder)
    clustered = Path(folder, CLUSTER_FILE).exists()
    text = warning(configuration.listen_host, security, authenticated=authenticated, clustered=clustered)
    if text:
        sys.stdout.write(f"WARNING: {text}\n")


def stop(arguments: Sequence[str]) -> int:
    """`saros stop`."""
    options = data_parser("stop", "End the server of a folder; running calls may finish.").parse_args(arguments)
    found = serving(options.data)
    if found is None:
        comes = is_launched(options.data)
        told = "the server of {} is just coming up: try again" if comes else "nobody serves {}"
        sys.stderr.write(f"saros stop: {told.format(options.data)}\n")
        return 1
    os.kill(found.pid, signal.SIGTERM)
    limit = time.monotonic() + _STOP_SECONDS
    while is_taken(options.data):
        if time.monotonic() > limit:
            sys.stderr.write(f"saros stop: process {found.pid} has not ended in {_STOP_SECONDS:.0f} s\n")
            return 1
        time.sleep(_POLL_SECONDS)
    _await_end(found.pid)
    sys.stdout.write(f"stopped process {found.pid}\n")
    return 0


def _await_end(pid: int) -> None:
    """Let a process that has let its folder go say its last words; where nobody reaps it, it seems to live on."""
    limit = time.monotonic() + _LAST_WORDS_SECONDS
    while time.monotonic() < limit:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(_POLL_SECONDS)


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
        with grpc.insecure_channel(found.local or found.address) as channel:
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
    made = data_parser("start", "Serve a folder to other processes of this machine.", epilog=_DEFAULTS)
    made.add_argument("--host", help="address to listen on (default 127.0.0.1); others need --auth and TLS")
    made.add_argument("--port", type=int, help=f"default {DEFAULT_PORT}; 0: any free one")
    made.add_argument("--metrics-port", type=int, metavar="N", help="serve /metrics, /health and /ready (default: not)")
    made.add_argument("--log-level", choices=LOG_LEVELS, help="default INFO")
    made.add_argument("--auth", action="store_true", help="clients log in; the first start makes user root")
    made.add_argument("--init-admin-password-file", metavar="FILE", help="root's password, instead of a one-time one")
    made.add_argument("--tls-certificate", metavar="FILE", help="PEM file; clients then speak TLS")
    made.add_argument("--tls-key", metavar="FILE", help="PEM file with the certificate's key")
    made.add_argument("--insecure", action="store_true", help="other addresses without authentication or TLS too")
    made.add_argument("--foreground", action="store_true", help="do not go into the background")
    return made


def data_parser(name: str, what: str, *, epilog: str | None = None) -> argparse.ArgumentParser:
    """What all of them take."""
    made = argparse.ArgumentParser(prog=f"saros {name}", description=what, epilog=epilog)
    made.add_argument("--data", default="./data", metavar="FOLDER", help="data folder (default ./data)")
    return made
