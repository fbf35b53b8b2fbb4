"""What a server must have before it serves: who may listen where, with what, and the first administrator.

    listens on         authentication    TLS        without
    this machine       as configured     as given
    other addresses    needed            needed     refused, or --insecure, which says so loudly

A folder that has users is never served without authentication. Read before the database is opened; any thread.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Security:
    """What was asked for."""

    #: Clients log in, also if there are no users yet.
    authentication: bool = False
    tls: CertificateFiles | None = None
    #: Listen on other addresses without TLS or authentication.
    insecure: bool = False


def security_of(configuration: Configuration, *, insecure: bool = False) -> Security:
    """What the configuration asks for. Raises ConfigurationError for a certificate without a key, or the reverse."""
    certificate, key = configuration.tls_certificate, configuration.tls_key
    if bool(certificate) != bool(key):
        raise ConfigurationError("tls_certificate and tls_key go together: give both, or none")
    tls = CertificateFiles(certificate, key) if certificate else None
    return Security(configuration.authentication == "on", tls, insecure)


def has_users(folder: str) -> bool:
    """Whether somebody could log in. Raises StorageError if that cannot be read, ConfigurationError for a bad hash."""
    cluster = load_cluster_file(folder, LocalDisk())
    if cluster is not None:
        if cluster.administrator is not None:
            check_hash(cluster.administrator.hash)
        return cluster.administrator is not None
    return bool(FileDirectory(folder, LocalDisk()).users().users)


def check_host(
    host: str, security: Security | None = None, *, authenticated: bool = False, clustered: bool = False
) -> None:
    """Raise ConfigurationError for an address that others could reach, unless that is safe, or was insisted on.

    `clustered`: a cluster.json says the address, and whether there are users.
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
    """What whoever starts the server should know; empty: nothing."""
    exposed = not is_loopback(host) and (security.tls is None or not authenticated)
    open_to = "on this machine" if is_loopback(host) else "who can reach the port"
    words = []
    if not authenticated:
        words.append(OPEN_WARNING.format(open_to, _REMEDY_OF_CLUSTER if clustered else _REMEDY))
    if exposed:
        words.append(INSECURE_WARNING)
    return " ".join(words)


def check_folder(folder: str) -> None:
    """Raise ConfigurationError for a data folder in which anybody may write, UserMistake for what is none at all."""
    if os.path.isdir(folder) and os.stat(folder).st_mode & stat.S_IWOTH:
        raise ConfigurationError(f"every user of this machine can write to {folder}; run chmod o-w {folder}")
    check_not_foreign(folder)


def make_first_user(folder: str, cost: Cost, password_file: str | None) -> str | None:
    """Make user root if the folder has no users; the one-time password, or None if there is nothing to be told.

    With a file, its first line is the password, and no one-time one. Raises ConfigurationError, StorageError.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if has_users(folder):
        return None
    password = one_time_password() if password_file is None else read_password(password_file)
    set_administrator(folder, FIRST_USER, password, cost, must_change=password_file is None)
    return password if password_file is None else None


def set_administrator(folder: str, name: str, password: str, cost: Cost, *, must_change: bool = False) -> bool:
    """Make an administrator, or set the password of one; whether it was made. Nobody may serve the folder meanwhile.

    Raises ConfigurationError (the user is there and no administrator, or a cluster's node), FolderInUse, UserMistake.
    """
    disk = LocalDisk()
    if load_cluster_file(folder, disk) is not None:
        raise ConfigurationError(
            f"{folder} is a node of a cluster, whose nodes all have the same users: saros cluster up --auth, or saros"
            " cluster init --administrator-hash, makes one with an administrator, saros cluster secure gives one to a"
            " cluster on this machine; in it, an administrator sets the password of another with ALTER USER"
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
    """User root, for a cluster to begin with, and the password: a one-time one, or a file's first line.

    Raises ConfigurationError, UserMistake 2041.
    """
    password = one_time_password() if password_file is None else read_password(password_file)
    check_password(FIRST_USER, password)
    return Administrator(FIRST_USER, hash_password(password, cost), must_change=password_file is None), password


def check_hash(phc: str) -> None:
    """Raise ConfigurationError for what no password can be compared with."""
    try:
        is_outdated(phc, Cost())
    except ValueError as error:
        raise ConfigurationError(f"{error}: make one with saros user hash") from error


def read_password(path: str) -> str:
    """The first line of a file. Raises ConfigurationError."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"cannot read a password from {path}: {why}") from error
