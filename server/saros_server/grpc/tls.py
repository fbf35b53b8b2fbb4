"""TLS for clients: a certificate and its key as gRPC takes them, read anew when the files change.

Versions below 1.2 are not spoken (gRPC's own floor). Thread-safe.
"""

from __future__ import annotations

import grpc

from saros_server.pki.certificate_files import WatchedFiles


def server_credentials(files: WatchedFiles) -> grpc.ServerCredentials:
    """For `add_secure_port`; gRPC asks at every handshake whether there are others."""

    def configuration() -> grpc.ServerCertificateConfiguration:
        certificate, key = files.contents
        return grpc.ssl_server_certificate_configuration([(key, certificate)])

    return grpc.dynamic_ssl_server_credentials(
        configuration(), lambda: configuration() if files.reload_if_changed() else None
    )
