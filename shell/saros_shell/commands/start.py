"""`saros start`: a server for a folder, in the background or in the foreground.

Who starts one in the background loads nothing of the database: the process that serves does.

Exit codes: 0 it serves, 1 it did not work, 2 wrong use.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from saros_cluster.node.cluster_file import CLUSTER_FILE
from saros_server.auth.passwords import Cost
from saros_server.auth.security import (
    FIRST_USER,
    Security,
    check_folder,
    has_users,
    make_first_user,
    security_of,
    warning,
)
from saros_server.config.configuration import LOG_LEVELS, Configuration, ConfigurationError, configuration_file, load
from saros_server.config.data_folder import reason
from saros_server.process.daemon import is_launched, last_words, launch
from saros_server.process.server_file import serving
from saros_shell.commands.server import data_parser
from saros_storage.base.errors import StorageError
from saros_wire.protocol import DEFAULT_PORT

_START_SECONDS = 30.0
_POLL_SECONDS = 0.05
_DEFAULTS = "Other options come from the folder's saros.toml or SAROS_... in the environment: see saros config."
_REFUSALS = (ConfigurationError, StorageError, OSError)
#: What the server makes is nobody else's to read.
_UMASK = 0o077


def main(arguments: Sequence[str]) -> int:
    """`saros start`."""
    options = parser().parse_args(arguments)
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
    except _REFUSALS as error:
        sys.stderr.write(f"saros start: {reason(error)}\n")
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
    from saros_server.grpc.server import Server
    from saros_server.process.logs import write_json_lines

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
    except _REFUSALS as error:
        sys.stderr.write(f"saros start: {reason(error)}\n")
        return 1
    return 0


def _prepared(options: argparse.Namespace) -> tuple[Configuration, Security]:
    """What the server is to have; makes the first user, if there must be one. Raises `_REFUSALS`."""
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
    configuration = load(folder=options.data, file=configuration_file(options.data), overrides=overrides).values
    security = security_of(configuration, insecure=options.insecure)
    check_folder(options.data)
    if security.authentication:
        cost = Cost(configuration.password_cost)
        password = make_first_user(options.data, cost, options.init_admin_password_file)
        if password is not None:
            sys.stdout.write(
                f"created administrator {FIRST_USER} with a one-time password, shown only now; use it to set"
                f" another one: {password}\n"
            )
            sys.stdout.flush()
    return configuration, security


def _warn(folder: str, prepared: tuple[Configuration, Security]) -> None:
    """Say on standard output what whoever starts a server should know."""
    configuration, security = prepared
    authenticated = security.authentication or has_users(folder)
    clustered = Path(folder, CLUSTER_FILE).exists()
    text = warning(configuration.listen_host, security, authenticated=authenticated, clustered=clustered)
    if text:
        sys.stdout.write(f"WARNING: {text}\n")


def parser() -> argparse.ArgumentParser:
    """What `saros start` takes."""
    made = data_parser("start", "Serve a folder to other processes of this machine.", epilog=_DEFAULTS)
    made.add_argument("--host", help="address to listen on (default 127.0.0.1); others need --auth and TLS")
    made.add_argument("--port", type=int, help=f"default {DEFAULT_PORT}; 0: any free one")
    made.add_argument("--metrics-port", type=int, metavar="N", help="serve /metrics, /health and /ready (default: off)")
    made.add_argument("--log-level", choices=LOG_LEVELS, help="default INFO")
    made.add_argument("--auth", action="store_true", help="require login; the first start creates user root")
    made.add_argument("--init-admin-password-file", metavar="FILE", help="root's password, instead of a one-time one")
    made.add_argument("--tls-certificate", metavar="FILE", help="PEM file; clients must then use TLS")
    made.add_argument("--tls-key", metavar="FILE", help="PEM file with the certificate's key")
    made.add_argument("--insecure", action="store_true", help="allow other addresses without login or TLS")
    made.add_argument("--foreground", action="store_true", help="stay in the foreground")
    return made
