"""Make a self-signed certificate for 127.0.0.1 with the command openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

_REQUEST = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -days 2"


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Make a key and its certificate; skip the test if openssl is not installed."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    more = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run(["openssl", *_REQUEST.split(), *more], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no openssl")
    key.chmod(0o600)
    return key, certificate
