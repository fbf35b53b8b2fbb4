"""`saros support [TARGET]`: collects a bundle for a support request in a ZIP file.

If a section cannot be collected, all other sections are still collected, and the file `errors.txt` of the bundle has
the reason. Exit codes: 0 all sections were collected, 1 a section is missing or the file cannot be written, 2 wrong
usage.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

import saros
from saros.base.target import SCHEME
from saros.transport.exchange import CallFailed
from saros_server.config.arguments import CommandParser
from saros_server.config.configuration import ConfigurationError
from saros_server.process.server_file import serving
from saros_shell.commands.server import ping
from saros_shell.output.login import password_of
from saros_storage.base.errors import StorageError

if TYPE_CHECKING:
    from saros_shell.support.redaction import Redactor
    from saros_shell.support.sections import Section

_LOG_LINES = 2_000
#: The time limit of a statement: a statement that waits for a group without a leader must not hold up the bundle.
_STATEMENT_SECONDS = 20.0
_KEY_BYTES = 32
_FAILURES = (saros.Error, StorageError, ConfigurationError, CallFailed, OSError, ValueError)


def main(arguments: Sequence[str]) -> int:
    """Run `saros support` and return its exit code."""
    options = parser().parse_args(arguments)
    is_remote = options.target.startswith(SCHEME)
    if is_remote and options.server is not None:
        parser().error("give --server with a folder only")
    if not is_remote and not os.path.isdir(options.target):
        sys.stderr.write(f"saros support: {options.target} is not a folder; pass a data folder or saros://host:port\n")
        return 2
    out = options.out or f"saros-support-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.zip"
    try:
        with open(out, "xb", opener=_private) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            errors = _collect(_Bundle(archive), options, is_remote=is_remote)
    except FileExistsError:
        sys.stderr.write(f"saros support: {out} exists; pass another file with --out\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"saros support: cannot write {out}: {error.strerror}\n")
        return 1
    sys.stdout.write(f"{out}: check its contents before you send it\n")
    return 1 if errors else 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros support`."""
    made = CommandParser(prog="saros support", description="Collect a bundle for a support request.")
    made.add_argument("target", nargs="?", default="./data", help="data folder (default ./data), or saros://host:port")
    made.add_argument("--server", metavar="TARGET", help="also ask this server (default: that of the folder)")
    made.add_argument("--out", metavar="FILE", help="file to create (default saros-support-TIME.zip)")
    made.add_argument("--with-names", action="store_true", help="keep the paths of series")
    made.add_argument("--with-hosts", action="store_true", help="keep host names and addresses")
    made.add_argument("--log-lines", type=_count, default=_LOG_LINES, metavar="N", help="last lines of server.log")
    return made


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of lines")
    return int(text)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class _Bundle(msgspec.Struct):
    """The file that is being written."""

    archive: zipfile.ZipFile
    #: The redacted reasons why sections are missing.
    errors: list[str] = msgspec.field(default_factory=list)

    def add(self, name: str, what: str, text: str) -> None:
        """Add a file, and print its name."""
        self.archive.writestr(name, text)
        sys.stdout.write(f"{name:<26} {len(text.encode()):>11,} bytes  {what}\n")

    def fail(self, name: str, error: Exception, redactor: Redactor) -> None:
        """Record that a section is missing."""
        reason = redactor.message(str(error))
        self.errors.append(f"{name}: {type(error).__name__}: {reason}\n")
        sys.stdout.write(f"{name:<26} {'-':>11}        missing: {error}\n")

    def add_section(self, section: Section, redactor: Redactor) -> None:
        """Add a section, or record why it is missing."""
        try:
            text = section.content()
        except _FAILURES as error:
            self.fail(section.name, error, redactor)
        else:
            self.add(section.name, section.what, text)


def _collect(bundle: _Bundle, options: argparse.Namespace, *, is_remote: bool) -> list[str]:
    """Fill the bundle, and return the reasons why sections are missing."""
    from saros_shell.support.redaction import Redactor
    from saros_shell.support.sections import folder_sections, metrics_section

    redactor = Redactor(secrets.token_bytes(_KEY_BYTES), with_names=options.with_names, with_hosts=options.with_hosts)
    server: str | None = options.target if is_remote else options.server
    if not is_remote:
        for section in folder_sections(options.target, redactor, options.log_lines):
            bundle.add_section(section, redactor)
        found = serving(options.target)
        if found is not None:
            bundle.add_section(_status_section(found.local or found.address, redactor), redactor)
            if found.http:
                bundle.add_section(metrics_section(found.http, redactor), redactor)
            server = server or f"{SCHEME}{found.local or found.address}"
    if server is not None:
        _ask(bundle, server, redactor)
    if bundle.errors:
        bundle.add("errors.txt", "sections that are missing", "".join(bundle.errors))
    return bundle.errors


def _ask(bundle: _Bundle, server: str, redactor: Redactor) -> None:
    """Add the sections of a running database."""
    from saros_shell.support.sections import database_sections

    try:
        with _connected(server) as connection:
            for section in database_sections(connection, redactor):
                bundle.add_section(section, redactor)
    except saros.Error as error:
        bundle.fail("show-*.json", error, redactor)


@contextmanager
def _connected(server: str) -> Iterator[saros.Connection]:
    connection = saros.connect(server, password=password_of(server), timeout=_STATEMENT_SECONDS)
    try:
        yield connection
    finally:
        connection.close()


def _status_section(address: str, redactor: Redactor) -> Section:
    from saros_shell.support.sections import Section

    def content() -> str:
        reply = ping(address)
        status = {
            "version": reply.server,
            "uptime_ms": reply.uptime_ms,
            "sessions": reply.sessions,
            "queries": reply.queries,
            "problems": [redactor.message(problem) for problem in reply.problems],
        }
        return json.dumps(status, indent=1) + "\n"

    return Section("status.json", "condition of the server", content)
