"""What the driver lets gRPC write to the terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, saros
try:
    saros.connect("saros://127.0.0.1:1", failover_s=0)
except saros.OperationalError:
    print(os.environ["GRPC_VERBOSITY"])
"""


@pytest.mark.parametrize(("given", "expected"), [(None, "ERROR"), ("INFO", "INFO")])
def test_errors_only_unless_the_user_wants_more(given: str | None, expected: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "GRPC_VERBOSITY"}
    environment |= {} if given is None else {"GRPC_VERBOSITY": given}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert expected == done.stdout.strip()
