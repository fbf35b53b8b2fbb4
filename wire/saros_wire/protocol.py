"""Ports and limits of the native protocol (`frames`)."""

from __future__ import annotations

DEFAULT_PORT = 6667
#: The port of the HTTP service, which has the same number as IoTDB's.
DEFAULT_HTTP_PORT = 18_080
#: The number of sequence numbers that a node remembers for each client. A client's new write waits if its sequence
#: number would exceed that of the client's oldest unfinished write by `SEQUENCES_KEPT` or more.
SEQUENCES_KEPT = 256
#: While a call waits, a client sends a PING if the node has sent nothing for `KEEPALIVE_MS`. If the node then sends
#: nothing for `KEEPALIVE_TIMEOUT_MS`, the client gives up the connection. It thus detects a frozen process or a lost
#: machine within 5 s. The timeout is long enough for a node whose threads are all computing, because the threads take
#: turns every few milliseconds.
KEEPALIVE_MS, KEEPALIVE_TIMEOUT_MS = 2_000, 2_500
#: The maximum numbers of missing contents and of refused devices that an answer to SYNC_BEGIN or SYNC_COMMIT lists.
SYNC_WANTS_MAX, SYNC_CONFLICTS_MAX = 10_000, 1_000
#: The approximate size of each message in which columns of a write are sent.
INSERT_BYTES = 8 << 20
