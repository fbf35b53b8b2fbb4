"""Ports and limits of the native protocol (`frames`)."""

from __future__ import annotations

DEFAULT_PORT = 6667
#: The port of HTTP, the same as IoTDB's.
DEFAULT_HTTP_PORT = 18_080
#: Number of sequence numbers that a node remembers for a client. The number of a client's new write exceeds the number
#: of its oldest unanswered write by less than this.
SEQUENCES_KEPT = 256
#: A client sends a PING if the node has sent nothing for `KEEPALIVE_MS` while a call waits, and gives up the connection
#: `KEEPALIVE_TIMEOUT_MS` later, so it detects a frozen process or a lost machine within 5 s. The timeout is long enough
#: for a node whose threads are all computing, because they take turns every few milliseconds.
KEEPALIVE_MS, KEEPALIVE_TIMEOUT_MS = 2_000, 2_500
#: The maximum numbers of missing contents and of refused devices that an answer to SYNC_BEGIN or SYNC_COMMIT lists.
SYNC_WANTS_MAX, SYNC_CONFLICTS_MAX = 10_000, 1_000
#: Approximate size of the messages in which the columns of a write are sent.
INSERT_BYTES = 8 << 20
