"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Nothing that a test waits for takes so long, not even on a machine that has much else to do.
PATIENCE_S = 60.0


def wait_equal(expected: object, found: Callable[[], object]) -> None:
    """Return once what is found equals what is expected. Raises AssertionError, with both, after a minute."""
    limit = time.monotonic() + PATIENCE_S
    while (last := found()) != expected and time.monotonic() < limit:
        time.sleep(0.01)
    assert expected == last


def wait_until(holds: Callable[[], object]) -> None:
    """Return once it holds. Raises AssertionError after a minute."""
    limit = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < limit, "it did not come true in time"
        time.sleep(0.01)
