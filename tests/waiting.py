"""Waiting for other threads and processes."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Tests wait at most this long, which is sufficient even on a busy machine.
PATIENCE_S = 60.0


def wait_equal(expected: object, found: Callable[[], object]) -> None:
    """Wait until `found()` equals `expected`. Raises AssertionError, which shows both values, after a minute."""
    limit = time.monotonic() + PATIENCE_S
    while (last := found()) != expected and time.monotonic() < limit:
        time.sleep(0.01)
    assert expected == last


def wait_until(holds: Callable[[], object]) -> None:
    """Wait until `holds()` is true. Raises AssertionError after a minute."""
    limit = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < limit, "it did not come true in time"
        time.sleep(0.01)
