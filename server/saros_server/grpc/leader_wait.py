"""How long a call may wait for groups without a leader, as its client has said in the call's metadata."""

from __future__ import annotations

import grpc

from saros_server.api.errors import BadMessage
from saros_wire import protocol

#: Digits of a number of milliseconds: at most some eleven days.
_DIGITS = 9


def leaders_until_ns(context: grpc.ServicerContext, now_ns: int) -> int | None:
    """Return `WriteRequest.leaders_until_ns`; None if the client has set no limit. Raises BadMessage."""
    text = dict(context.invocation_metadata()).get(protocol.LEADER_WAIT_KEY)
    if text is None:
        return None
    if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise BadMessage(f"{protocol.LEADER_WAIT_KEY} {text!r}: not a number of milliseconds")
    return now_ns + int(text) * 1_000_000
