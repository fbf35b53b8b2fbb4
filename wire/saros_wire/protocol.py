"""Ports and limits of the native protocol (`frames`)."""

from __future__ import annotations

DEFAULT_PORT = 6667
#: The port of the HTTP service, which has the same number as IoTDB's.
DEFAULT_HTTP_PORT = 18_080
#: The number of sequence numbers that a node remembers for each client. The number of a client's new write exceeds that
#: of its oldest unanswered write by less than this.
SEQUENCES_KEPT = 256
#: While a call waits, a client sends a PING if the node has sent nothing for `KEEPALIVE_MS`. If there is no answer for
#: `KEEPALIVE_TIMEOUT_MS`, it gives up the connection. So it detects a frozen process or a lost machine within 5 s. The
#: timeout is long enough for a node whose threads are all computing, because they take turns every few milliseconds.
KEEPALIVE_MS, KEEPALIVE_TIMEOUT_MS = 2_000, 2_500
#: The maximum numbers of missing contents and of refused devices that an answer to SYNC_BEGIN or SYNC_COMMIT lists.
SYNC_WANTS_MAX, SYNC_CONFLICTS_MAX = 10_000, 1_000
#: The approximate size of each message in which columns of a write are sent.
INSERT_BYTES = 8 << 20
