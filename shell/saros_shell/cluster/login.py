"""Logins of the `saros cluster` commands: their options, and the resulting user and password.

the cluster has no administrator    an empty login
--user NAME                         the password comes from --password-file, SAROS_PASSWORD or a prompt
--to saros://NAME@host              as with --user
neither option                      None: the nodes cannot be queried, and only processes are shown

Single-threaded.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import saros
from saros_server.auth.security import read_password
from saros_server.local.local_cluster import LocalCluster
from saros_shell.output.login import VARIABLE, password_of, password_of_user
from saros_storage.base.errors import UserMistake


@dataclass(frozen=True, slots=True)
class Login:
    """A user and a password. Both are empty for a cluster without users."""

    user: str = ""
    password: str = field(default="", repr=False)


def login_options(
    made: argparse.ArgumentParser, what: str = "user to log in as, to see groups; password from SAROS_PASSWORD"
) -> None:
    """Add the options of a login."""
    made.add_argument("--user", metavar="NAME", help=what)
    made.add_argument("--password-file", metavar="FILE", help="file with the password in its first line")


def login_of(cluster: LocalCluster, options: argparse.Namespace) -> Login | None:
    """Return the login for a cluster's nodes, or None if the cluster has users, but the options name no user.

    Raises UserMistake if a user has no password, ConfigurationError if the password file does not exist.
    """
    found = given_login(options)
    return Login() if found is None and cluster.file.administrator is None else found


def given_login(options: argparse.Namespace) -> Login | None:
    """Return the login from the options, or None if the options name no user. Raises like `login_of`."""
    if options.user is None:
        return None
    password = read_password(options.password_file) if options.password_file else password_of_user(options.user)
    if not password:
        raise UserMistake(f"--user needs a password: in {VARIABLE}, or in a file (--password-file)")
    return Login(options.user, password)


def connect_to(target: str, options: argparse.Namespace) -> saros.Connection:
    """Connect to nodes by their address, as the user that the options or the address name.

    Raises like `login_of`, and saros.Error.
    """
    if "://" not in target:
        raise UserMistake(f"--to is {target}: expected the address of nodes, such as saros://hostA:6667")
    login = given_login(options)
    if login is not None:
        return saros.connect(target, user=login.user, password=login.password)
    password = read_password(options.password_file) if options.password_file else password_of(target)
    return saros.connect(target, password=password)
