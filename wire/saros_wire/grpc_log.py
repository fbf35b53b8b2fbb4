"""What gRPC's own library may write to the terminal: errors only. Call it before gRPC is loaded."""

from __future__ import annotations

import os


def silence_grpc_log() -> None:
    """Keep its notes (a node said GOAWAY when it ended) from standard error; who sets GRPC_VERBOSITY decides."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
