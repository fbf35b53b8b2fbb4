"""Ports and limits of the native protocol (`frames`)."""

from __future__ import annotations

DEFAULT_PORT = 6667
#: Of HTTP, as IoTDB's.
DEFAULT_HTTP_PORT = 18_080
#: A node remembers this many of a client's numbers; a client does not run further ahead of its oldest unanswered write.
SEQUENCES_KEPT = 256
#: A client pings a node that has sent nothing for `KEEPALIVE_MS` while a call waits, and gives the connection up
#: `KEEPALIVE_TIMEOUT_MS` later: a frozen process or a vanished machine is noticed within 5 s. The time-out is long
#: enough for a node whose threads all compute: they take turns every few milliseconds.
KEEPALIVE_MS, KEEPALIVE_TIMEOUT_MS = 2_000, 2_500
#: Contents that an answer to SYNC_BEGIN or SYNC_COMMIT names as lacking, and devices that it names as refused.
SYNC_WANTS_MAX, SYNC_CONFLICTS_MAX = 10_000, 1_000
#: Columns of a write go in messages of about this size.
INSERT_BYTES = 8 << 20
