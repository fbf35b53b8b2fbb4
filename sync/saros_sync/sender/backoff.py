"""How long a sender waits before it asks again. Pure."""

from __future__ import annotations

#: The first pause after a failure; each further one is twice as long, ...
_FIRST_PAUSE_S = 0.5
#: ... up to this.
_PAUSE_MAX_S = 60.0


def pause_s(failures: int) -> float:
    """How long to wait after so many failures in a row (1 or more)."""
    return min(_FIRST_PAUSE_S * 2.0 ** min(failures - 1, 32), _PAUSE_MAX_S)
