"""Record the days on which tokens were used; the user directory stores this record.

A login does not wait until the record is written: a node that is partitioned from its cluster cannot write the record,
but still admits users. Each node tries to record the use of a token once a day. Thread-safe.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

from saros_cluster.users.commands import RecordTokenUse
from saros_cluster.users.directory import Directory
from saros_cluster.users.tokens import Token
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError, UserMistake

logger = logging.getLogger(__name__)

_DAY_NS = 86_400 * 1_000_000_000
#: The timeout of one record.
_WRITE_NS = 5_000_000_000


class TokenUses:
    """Records the days on which tokens were used, on a separate thread."""

    def __init__(self, directory: Directory, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._lock = threading.Lock()
        self._day = 0
        #: The digests of the tokens for which this node has tried to record that they were used on `_day`.
        self._recorded: set[str] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="saros-token-use")

    def record(self, token: Token) -> None:
        """Record a login with a token, asynchronously."""
        day = self._clock.now_ns() // _DAY_NS
        with self._lock:
            if day != self._day:
                self._day = day
                self._recorded.clear()
            if token.last_used_day == day or token.digest in self._recorded:
                return
            self._recorded.add(token.digest)
        self._thread.submit(self._write, RecordTokenUse(token.user, token.name, day))

    def _write(self, command: RecordTokenUse) -> None:
        try:
            self._directory.change(command, self._clock.monotonic_ns() + _WRITE_NS)
        except (StorageError, UserMistake, OSError) as error:
            logger.warning("the use of a token was not recorded", extra={"token": command.name, "error": str(error)})

    def close(self) -> None:
        """Stop the thread; pending records are dropped."""
        self._thread.shutdown(cancel_futures=True)
