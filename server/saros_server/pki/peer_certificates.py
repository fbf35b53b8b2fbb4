"""The certificate that a node uses for connections to the other nodes of its cluster; options name its files.

    peer_ca             the authority that signed the certificates of all nodes
    peer_certificate    its names identify the node and the cluster (`transport.handshake`)
    peer_key

If the files change while a node runs, it uses the new contents for its next connections. `certificate_making` creates
such files. Any thread.
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
#: The interval at which the files are checked for changes. Every call to another node asks for the credentials, so a
#: check for each call would be too slow.
_LOOK_NS = 1_000_000_000


def peer_credentials(configuration: Configuration, clock: Clock, file: ClusterFile) -> PeerFiles | None:
    """Return the configured credentials of the node that `file` describes, or None if no credentials are configured.

    Raises ConfigurationError.
    """
    paths = [str(getattr(configuration, key)) for key in _KEYS]
    if not any(paths):
        return None
    if not all(paths):
        raise ConfigurationError(f"{', '.join(_KEYS)} go together: give all, or none")
    return PeerFiles(paths, clock, Identity(file.cluster, file.node))


class PeerFiles:
    """An implementation of `CredentialSource` with the newest valid contents of the authority, certificate and key."""

    def __init__(self, paths: Sequence[str], clock: Clock, identity: Identity) -> None:
        """Load the files. Raises ConfigurationError."""
        self._clock = clock
        self._lock = threading.Lock()
        #: The files.
        self.files = WatchedFiles(paths, identity.uri)
        self._looked_ns = clock.monotonic_ns()
        self._found = PeerCredentials(*self.files.contents)

    def now(self) -> PeerCredentials:
        """See `CredentialSource.now`; a change is noticed within a second."""
        with self._lock:
            if self._clock.monotonic_ns() - self._looked_ns >= _LOOK_NS:
                self._looked_ns = self._clock.monotonic_ns()
                if self.files.reload_if_changed():
                    self._found = PeerCredentials(*self.files.contents)
            return self._found
