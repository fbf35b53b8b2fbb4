"""The parts of a client protocol that do not depend on how it frames messages: an insert's columns, and limits.

An insert is an Arrow IPC stream of one batch: the times, then the columns. The metadata of its schema has the device,
whether it is aligned (`true`, `false`; otherwise as the device is), and the write's number, if it has one. Pure data:
any thread.
"""

from __future__ import annotations

DEVICE_KEY, ALIGNED_KEY, SEQUENCE_KEY = b"saros.device", b"saros.aligned", b"saros.sequence"
#: Largest message either way: a batch of rows, or of columns; the driver splits what is longer.
MESSAGE_BYTES_MAX = 16 << 20
