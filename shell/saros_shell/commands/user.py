"""`saros user init`: creates an administrator, or sets its password, in a folder that no process has open.

`saros user hash` prints the hash of a password for `saros cluster init`: all nodes of a new cluster need the same hash.

`init` needs no password, only write permission for the folder, so it also restores access if all passwords are lost.
Exit codes: 0 success, 1 failure, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Sequence

from saros_server.auth.passwords import Cost, check_password, hash_password
from saros_server.auth.security import FIRST_USER, read_password, set_administrator
from saros_server.config.arguments import CommandParser
from saros_server.config.configuration import ConfigurationError, configuration_file, load
from saros_server.config.data_folder import reason
from saros_storage.base.errors import StorageError


def main(arguments: Sequence[str]) -> int:
    """Run `saros user` and return its exit code."""
    options = parser().parse_args(arguments)
    try:
        cost = Cost(load(file=configuration_file(options.data)).values.password_cost)
        password = read_password(options.password_file) if options.password_file else _ask(options.name)
        if options.what == "hash":
            check_password(options.name, password)
            sys.stdout.write(hash_password(password, cost) + "\n")
            return 0
        made = set_administrator(options.data, options.name, password, cost)
    except (ConfigurationError, StorageError, OSError) as error:
        sys.stderr.write(f"saros user: {reason(error)}\n")
        return 1
    what = "is an administrator" if made else "has a new password"
    sys.stdout.write(f"{options.name} {what}; clients of {options.data} must now log in\n")
    return 0


def _ask(name: str) -> str:
    """Ask for the password twice on the terminal. Without a terminal, read the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass(f"password of {name}: ")
    if getpass.getpass("repeat: ") != password:
        raise ConfigurationError("the two passwords differ")
    return password


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros user`."""
    made = CommandParser(prog="saros user", description="Create an administrator, or set its password.")
    made.add_argument(
        "what",
        choices=("init", "hash"),
        metavar="VERB",
        help="init: create an administrator, or set its password; hash: print a hash for saros cluster init",
    )
    made.add_argument("--data", default="./data", metavar="FOLDER", help="data folder (default ./data)")
    made.add_argument("--name", default=FIRST_USER, help=f"administrator (default {FIRST_USER})")
    made.add_argument("--password-file", metavar="FILE", help="file with the password in its first line")
    return made
