"""How fast a sender sends, and how long it waits before it asks again. Pure."""

from __future__ import annotations

#: The first pause after a failure; each further one is twice as long, ...
_FIRST_PAUSE_S = 0.5
#: ... up to this.
_PAUSE_MAX_S = 60.0


class Pace:
    """At most so many bytes a second, over any time; a pause is not made up for later."""

    def __init__(self, bytes_per_second: int) -> None:
        """0: as many as go through."""
        self._rate = bytes_per_second
        #: When what was sent so far is paid for.
        self._paid_ns = 0

    def wait_s(self, now_ns: int, size: int) -> float:
        """How long to wait before so many bytes are sent at `now_ns`."""
        if not self._rate:
            return 0.0
        start_ns = max(now_ns, self._paid_ns)
        self._paid_ns = start_ns + size * 1_000_000_000 // self._rate
        return (start_ns - now_ns) / 1e9


def pause_s(failures: int) -> float:
    """How long to wait after so many failures in a row (1 or more)."""
    return min(_FIRST_PAUSE_S * 2.0 ** min(failures - 1, 32), _PAUSE_MAX_S)
