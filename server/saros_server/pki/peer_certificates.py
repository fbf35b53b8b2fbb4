"""Certificates between the nodes of a cluster: those of a node, as its configuration names them.

    peer_ca             the authority that signed those of all nodes
    peer_certificate    whose names say which node of which cluster it is (`transport.handshake`)
    peer_key

A node that runs takes what it finds changed for its next connections. `certificate_making` makes them. Any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from saros_cluster.node.cluster_file import ClusterFile
from saros_cluster.transport.handshake import Identity, PeerCredentials
from saros_server.config.configuration import Configuration, ConfigurationError
from saros_server.pki.certificate_files import WatchedFiles
from saros_storage.base.clock import Clock

_KEYS = ("peer_ca", "peer_certificate", "peer_key")
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
                if self.files.reload_if_changed():
                    self._found = PeerCredentials(*self.files.contents)
            return self._found
