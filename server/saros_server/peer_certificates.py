"""Certificates between the nodes of a cluster: those of a node as its configuration names them, and new ones.

    peer_ca             OUT/ca.pem            the cluster's own authority; OUT/ca.key signs, and no node needs it
    peer_certificate    OUT/node2.pem         whose names say which node of which cluster it is (`transport.handshake`)
    peer_key            OUT/node2.key

A node's certificate has its host's name too, so it may be `tls_certificate` as well. What is there is not made again:
to renew a certificate, remove it. A node that runs takes what it finds changed for its next connections. Made by the
`openssl` command. Any thread.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from saros_cluster.cluster_file import ClusterFile
from saros_cluster.placement.ring import NodeId
from saros_cluster.transport.handshake import Identity, PeerCredentials
from saros_server.certificate_files import WatchedFiles
from saros_server.configuration import Configuration, ConfigurationError
from saros_storage.clock import Clock
from saros_storage.errors import UserMistake

_KEYS = ("peer_ca", "peer_certificate", "peer_key")
_CA, _CA_KEY = "ca.pem", "ca.key"
_CA_DAYS, _NODE_DAYS = 3_650, 825
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
#: Each certificate gets a number of its own.
_SERIAL_BYTES = 15
#: All that is said of a certificate stands here, whatever the machine's openssl.cnf says.
_REQUEST = """\
[req]
distinguished_name = subject
x509_extensions = authority
prompt = no
[subject]
CN = {name}
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[node]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = {names}
"""
_HOST = re.compile(r"[A-Za-z0-9._-]+")
_OPENSSL_SECONDS = 60.0
#: Every call to another node asks.
_LOOK_NS = 1_000_000_000


def peer_credentials(configuration: Configuration, clock: Clock, file: ClusterFile) -> PeerFiles | None:
    """What the configuration names for the node of a file; None: nothing. Raises ConfigurationError."""
    paths = [str(getattr(configuration, key)) for key in _KEYS]
    if not any(paths):
        return None
    if not all(paths):
        raise ConfigurationError(f"{', '.join(_KEYS)} go together: give all, or none")
    return PeerFiles(paths, clock, Identity(file.cluster, file.node))


class PeerFiles:
    """Authority, certificate and key as the files are now; what they were before, while they do not fit together.

    Implements `CredentialSource`.
    """

    def __init__(self, paths: Sequence[str], clock: Clock, identity: Identity) -> None:
        """Raises ConfigurationError."""
        self._clock = clock
        self._lock = threading.Lock()
        #: The files.
        self.files = WatchedFiles(paths, identity.uri)
        self._looked_ns = clock.monotonic_ns()
        self._found = PeerCredentials(*self.files.contents)

    def now(self) -> PeerCredentials:
        """See `CredentialSource.now`; a change is seen after a second."""
        with self._lock:
            if self._clock.monotonic_ns() - self._looked_ns >= _LOOK_NS:
                self._looked_ns = self._clock.monotonic_ns()
                if self.files.look():
                    self._found = PeerCredentials(*self.files.contents)
            return self._found


def make_certificates(folder: str, cluster: str, hosts: Mapping[NodeId, str]) -> list[str]:
    """An authority and certificates of nodes, as far as they are not there; the names of what was made.

    Raises UserMistake 2004 (no openssl, no host's name), OSError.
    """
    identities = {node: Identity(cluster, node) for node in sorted(hosts)}
    names = {node: _names(identity, hosts[node]) for node, identity in identities.items()}
    if shutil.which("openssl") is None:
        raise UserMistake("there is no openssl command on this machine: install it, or use another machine", code=2004)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    made = []
    if not os.path.exists(os.path.join(folder, _CA)):
        _make_authority(folder, cluster)
        made.append(_CA)
    for node, alternative in names.items():
        if not os.path.exists(os.path.join(folder, f"node{node}.pem")):
            _make_certificate(folder, node, alternative)
            made.append(f"node{node}.pem")
    return made


def _names(identity: Identity, host: str) -> str:
    """The certificate's names, as openssl writes them."""
    try:
        own = f"IP:{ipaddress.ip_address(host.strip('[]'))}"
    except ValueError:
        if _HOST.fullmatch(host) is None:
            raise UserMistake(f"{host!r} is no name or address of a host", code=2004) from None
        own = f"DNS:{host}"
    return f"URI:{identity.uri},DNS:{identity.host_name},{own}"


def _make_authority(folder: str, cluster: str) -> None:
    with _asked_for(f"saros {cluster}", "DNS:none") as request:
        days = ("-days", str(_CA_DAYS), "-set_serial", _serial())
        _openssl(folder, "req", "-x509", *_CURVE, "-config", request, *days, "-keyout", _CA_KEY, "-out", _CA)


def _make_certificate(folder: str, node: NodeId, names: str) -> None:
    key, path = f"node{node}.key", f"node{node}.pem"
    with _asked_for(f"node {node}", names) as request:
        unsigned = request + ".pem"
        _openssl(folder, "req", "-new", *_CURVE, "-config", request, "-keyout", key, "-out", unsigned)
        signer = ("-CA", _CA, "-CAkey", _CA_KEY, "-extfile", request, "-extensions", "node")
        days = ("-days", str(_NODE_DAYS), "-set_serial", _serial())
        _openssl(folder, "x509", "-req", "-in", unsigned, *signer, *days, "-out", path)


@contextmanager
def _asked_for(name: str, names: str) -> Iterator[str]:
    """A file, for the moment, that tells openssl what to make."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "request")
        Path(path).write_text(_REQUEST.format(name=name, names=names))
        yield path


def _serial() -> str:
    return f"0x{secrets.token_hex(_SERIAL_BYTES)}"


def _openssl(folder: str, *words: str) -> None:
    """Run it there; what it makes is for the own user only."""
    done = subprocess.run(  # noqa: S603 (no shell; the words are checked)
        ["openssl", *words],  # noqa: S607 (whichever is installed)
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        umask=0o077,
        timeout=_OPENSSL_SECONDS,
    )
    if done.returncode != 0:
        raise UserMistake(f"openssl {words[0]} failed: {done.stderr.strip()}", code=2004)
