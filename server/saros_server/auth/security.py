"""Security checks before a server starts: the addresses it may listen on, and its first administrator.

    listens on         authentication    TLS              otherwise
    this machine       as configured     as configured
    other addresses    required          required         refused, unless --insecure is given, which logs a warning

If a folder has users, it is never served without authentication. The checks may run on any thread, before the database
is opened.
"""

from __future__ import annotations

import os
import stat

import msgspec

from saros_cluster.node.cluster_file import Administrator
from saros_cluster.node.cluster_file import load as load_cluster_file
from saros_cluster.users.commands import CreateUser, SetPassword
from saros_cluster.users.directory import FileDirectory
from saros_server.auth.passwords import Cost, check_password, hash_password, is_outdated, one_time_password
from saros_server.config.configuration import Configuration, ConfigurationError
from saros_server.config.data_folder import check_not_foreign, check_not_memory
from saros_server.pki.certificate_files import CertificateFiles
from saros_storage.io.disk import LocalDisk
from saros_storage.io.folder_lock import FolderLock
from saros_wire.addresses import is_loopback

FIRST_USER = "root"
OPEN_WARNING = "open: anyone {} may do everything; {}"
_REMEDY = "`saros user init` creates an administrator"
_REMEDY_OF_CLUSTER = "`saros cluster secure` gives a cluster on one machine an administrator (docs/security.md)"
INSECURE_WARNING = "insecure: others can read and change network traffic, passwords included"


class Security(msgspec.Struct, frozen=True):
    """The requested security of a server."""

    #: Clients must log in, even if there are no users yet.
    authentication: bool = False
    tls: CertificateFiles | None = None
    #: Allow addresses that other machines can reach, without TLS or authentication.
    insecure: bool = False


def security_of(configuration: Configuration, *, insecure: bool = False) -> Security:
    """Return the configured security. Raises ConfigurationError for a certificate without a key, or vice versa."""
    certificate, key = configuration.tls_certificate, configuration.tls_key
    if bool(certificate) != bool(key):
        raise ConfigurationError("tls_certificate and tls_key go together: give both, or none")
    tls = CertificateFiles(certificate, key) if certificate else None
    return Security(configuration.authentication == "on", tls, insecure)


def has_users(folder: str) -> bool:
    """Return whether the folder has users. Raises StorageError (they cannot be read), ConfigurationError (bad hash)."""
    cluster = load_cluster_file(folder, LocalDisk())
    if cluster is not None:
        if cluster.administrator is not None:
            check_hash(cluster.administrator.hash)
        return cluster.administrator is not None
    return bool(FileDirectory(folder, LocalDisk()).users().users)


def check_host(
    host: str, security: Security | None = None, *, authenticated: bool = False, clustered: bool = False
) -> None:
    """Raise ConfigurationError for an address that other machines can reach, unless it is secure or explicitly allowed.

    If `clustered`, the address and the users come from a cluster.json, so the message names other remedies.
    """
    if is_loopback(host) or (security is not None and security.insecure):
        return
    users = "administrator in cluster.json (saros cluster init --administrator-hash-file)"
    missing = [] if authenticated else [users if clustered else "authentication (--auth)"]
    if security is None or security.tls is None:
        missing.append("TLS (tls_certificate, tls_key)" if clustered else "TLS (--tls-certificate, --tls-key)")
    if missing:
        remedy = "add what is missing (docs/security.md)" if clustered else "use 127.0.0.1"
        raise ConfigurationError(
            f"{host} can be reached from other machines, and there is no {' and no '.join(missing)}: {remedy},"
            " or --insecure to allow it anyway"
        )


def warning(host: str, security: Security, *, authenticated: bool, clustered: bool) -> str:
    """Return the warning to show when the server starts, or an empty string."""
    exposed = not is_loopback(host) and (security.tls is None or not authenticated)
    open_to = "on this machine" if is_loopback(host) else "who can reach the port"
    words = []
    if not authenticated:
        words.append(OPEN_WARNING.format(open_to, _REMEDY_OF_CLUSTER if clustered else _REMEDY))
    if exposed:
        words.append(INSECURE_WARNING)
    return " ".join(words)


def check_folder(folder: str) -> None:
    """Raise ConfigurationError if every user can write to the folder, UserMistake if it is not a data folder."""
    if os.path.isdir(folder) and os.stat(folder).st_mode & stat.S_IWOTH:
        raise ConfigurationError(f"every user of this machine can write to {folder}; run chmod o-w {folder}")
    check_not_foreign(folder)


def make_first_user(folder: str, cost: Cost, password_file: str | None) -> str | None:
    """Create user root if the folder has no users; return its one-time password, or None if none was made.

    The first line of `password_file` is the password, in place of a one-time password. Raises ConfigurationError,
    StorageError.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if has_users(folder):
        return None
    password = one_time_password() if password_file is None else read_password(password_file)
    set_administrator(folder, FIRST_USER, password, cost, must_change=password_file is None)
    return password if password_file is None else None


def set_administrator(folder: str, name: str, password: str, cost: Cost, *, must_change: bool = False) -> bool:
    """Create an administrator, or set the password of an existing one; return whether it was created.

    The folder must not be served meanwhile. Raises ConfigurationError (the user exists and is not an administrator, or
    the folder is a node of a cluster), FolderInUse, UserMistake.
    """
    disk = LocalDisk()
    if load_cluster_file(folder, disk) is not None:
        raise ConfigurationError(
            f"{folder} is a node of a cluster, whose nodes share their users: create a new cluster with an"
            " administrator by saros cluster up --auth or saros cluster init --administrator-hash, add one to a cluster"
            " on this machine by saros cluster secure, or log in as one and use ALTER USER"
        )
    check_password(name, password)
    check_not_memory(folder)
    disk.make_folder(folder)
    owner = FolderLock.acquire(folder)
    try:
        directory = FileDirectory(folder, disk)
        known = directory.users().users.get(name)
        if known is not None and not known.administrator:
            raise ConfigurationError(f"{name} is a user without administrator rights; choose another name")
        phc = hash_password(password, cost)
        if known is None:
            directory.change(CreateUser(name, phc, administrator=True, must_change=must_change))
        else:
            directory.change(SetPassword(name, phc, must_change=must_change))
    finally:
        owner.release()
    return known is None


def first_administrator(cost: Cost, password_file: str | None) -> tuple[Administrator, str]:
    """Return user root for a new cluster, and its password, which is a one-time password or the first line of a file.

    Raises ConfigurationError, UserMistake 2041.
    """
    password = one_time_password() if password_file is None else read_password(password_file)
    check_password(FIRST_USER, password)
    return Administrator(FIRST_USER, hash_password(password, cost), must_change=password_file is None), password


def check_hash(phc: str) -> None:
    """Raise ConfigurationError if `phc` is not a valid hash."""
    try:
        is_outdated(phc, Cost())
    except ValueError as error:
        raise ConfigurationError(f"{error}: make one with saros user hash") from error


def read_password(path: str) -> str:
    """Return the first line of a file. Raises ConfigurationError."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"cannot read a password from {path}: {why}") from error
