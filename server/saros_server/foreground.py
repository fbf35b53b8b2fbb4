"""A server in the foreground: the process that `saros start` runs, with the command line of `saros start`.

`python -m saros_server ARGUMENTS`, `saros start --foreground`, and Spark jobs run it as well.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

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
from saros_server.config.arguments import data_parser
from saros_server.config.configuration import LOG_LEVELS, Configuration, ConfigurationError, configuration_file, load
from saros_server.config.data_folder import TLS_FOLDER, reason
from saros_storage.base.errors import StorageError
from saros_wire.protocol import DEFAULT_HTTP_PORT, DEFAULT_PORT

#: The errors that prevent a server from starting.
REFUSALS = (ConfigurationError, StorageError, OSError)
_DEFAULTS = "Other options come from the folder's saros.toml or SAROS_... in the environment: see saros config."
#: Only the server's user can read its files.
_UMASK = 0o077


class Prepared(msgspec.Struct, frozen=True):
    """The checked options of a server, and its security settings."""

    folder: str
    configuration: Configuration
    #: The options of the command line.
    overrides: Mapping[str, object]
    security: Security
    #: True if the HTTP port was configured and is not the default port.
    is_http_required: bool

    @property
    def warning(self) -> str:
        """A warning to the operator if a server with these options is unsafe; otherwise empty."""
        authenticated = self.security.authentication or has_users(self.folder)
        clustered = Path(self.folder, CLUSTER_FILE).exists()
        host = self.configuration.listen_host
        return warning(host, self.security, authenticated=authenticated, clustered=clustered)


def main(arguments: Sequence[str]) -> int:
    """Serve a folder until the process is told to stop.

    Return 0, or 1 if the server cannot start. Exits with status 2 for wrong arguments.
    """
    return serve(parse(arguments))


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line of `saros start`. Make files of this process accessible only to its user."""
    options = parser().parse_args(arguments)
    os.umask(_UMASK)
    return options


def serve(options: argparse.Namespace) -> int:
    """Serve in this process until it is told to stop. Return 0, or 1 if the server cannot start."""
    from saros_server.process.logs import set_level, write_json_lines
    from saros_server.server import Server

    try:
        prepared = prepare(options)
        configuration = prepared.configuration
        write_json_lines(configuration.log_level)
        if sys.stdout.isatty():
            write_warning(prepared)
        server = Server(
            options.data,
            configuration.listen_host,
            configuration.listen_port,
            http_port=configuration.http_port or None,
            http_required=prepared.is_http_required,
            metrics_port=configuration.listen_metrics_port,
            security=prepared.security,
            options=prepared.overrides,
        )
        server.api.node.settings.subscribe(lambda changed: set_level(changed.log_level))
        server.run_until_signalled()
    except REFUSALS as error:
        sys.stderr.write(f"saros start: {reason(error)}\n")
        return 1
    return 0


def prepare(options: argparse.Namespace) -> Prepared:
    """Load and check the options. If login is required and no user exists, create the first user. Raises `REFUSALS`."""
    given = {
        "listen_host": options.host,
        "listen_port": options.port,
        "http_port": options.http_port,
        "listen_metrics_port": options.metrics_port,
        "log_level": options.log_level,
        "authentication": "on" if options.auth else None,
        "tls_certificate": options.tls_certificate,
        "tls_key": options.tls_key,
    }
    overrides = {key: value for key, value in given.items() if value is not None}
    loaded = load(folder=options.data, file=configuration_file(options.data), overrides=overrides)
    check_folder(options.data)
    configuration = _with_certificate(loaded.values, options.data)
    security = security_of(configuration, insecure=options.insecure)
    if security.authentication:
        cost = Cost(configuration.password_cost)
        password = make_first_user(options.data, cost, options.init_admin_password_file)
        if password is not None:
            sys.stdout.write(
                f"created administrator {FIRST_USER} with a one-time password, shown only now; use it to set"
                f" another one: {password}\n"
            )
            sys.stdout.flush()
    return Prepared(options.data, configuration, overrides, security, loaded.sources["http_port"] != "default")


def _with_certificate(configuration: Configuration, folder: str) -> Configuration:
    """Return the configuration, with a new self-signed certificate if `tls_self_signed` asks for one."""
    hosts = [host.strip() for host in configuration.tls_self_signed.split(",") if host.strip()]
    if configuration.tls_certificate or not hosts:
        return configuration
    from saros_server.pki.certificate_making import make_server_certificate

    made, trusted = make_server_certificate(os.path.join(folder, TLS_FOLDER), hosts)
    sys.stdout.write(f"TLS certificate for {', '.join(hosts)}; clients need a copy of {trusted} (?tls=ca.pem)\n")
    sys.stdout.flush()
    return replace(configuration, tls_certificate=made.certificate, tls_key=made.key)


def write_warning(prepared: Prepared) -> None:
    """Print the warning about a server's options, if there is one."""
    if prepared.warning:
        sys.stdout.write(f"WARNING: {prepared.warning}\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros start`."""
    made = data_parser("start", "Serve a folder to other processes of this machine.", epilog=_DEFAULTS)
    made.add_argument("--host", help="address to listen on (default 127.0.0.1); others need --auth and TLS")
    made.add_argument("--port", type=int, help=f"default {DEFAULT_PORT}; 0: any free one")
    made.add_argument("--http-port", type=int, metavar="N", help=f"default {DEFAULT_HTTP_PORT}; 0: no HTTP")
    made.add_argument("--metrics-port", type=int, metavar="N", help="another port for /metrics, /health and /ready")
    made.add_argument("--log-level", choices=LOG_LEVELS, help="default INFO")
    made.add_argument("--auth", action="store_true", help="require login; the first start creates user root")
    made.add_argument("--init-admin-password-file", metavar="FILE", help="root's password, instead of a one-time one")
    made.add_argument("--tls-certificate", metavar="FILE", help="PEM file; clients must then use TLS")
    made.add_argument("--tls-key", metavar="FILE", help="PEM file with the certificate's key")
    made.add_argument("--insecure", action="store_true", help="allow other addresses without login or TLS")
    made.add_argument("--foreground", action="store_true", help="stay in the foreground")
    return made
