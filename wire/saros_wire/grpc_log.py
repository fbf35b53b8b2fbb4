"""The log level of the gRPC library, which writes to standard error."""

from __future__ import annotations

import os


def silence_grpc_log() -> None:
    """Log errors only, unless GRPC_VERBOSITY is set. Call this before gRPC is loaded.

    Otherwise gRPC reports, for example, that a node sent GOAWAY when it stopped.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
