"""MERGE on every node: the asking node polls until all are done.

    asks     {id, databases, full}     now and then, each node
    answers  still at it | done | why not

A node merges on a thread of its own, and gives up when it has not been asked for a while: so a MERGE that was killed,
or whose asking node failed, soon stops. A node that does not answer is left out; it merges in the background anyway.

Thread-safe.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from saros_cluster.multiraft.peers import BadRequest, CallHandler, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError

logger = logging.getLogger(__name__)
MERGE = "merge"
#: An answer comes after so long at the latest.
_WAIT_SECONDS = 0.5
#: Nobody has asked for so long: it is not wanted any more.
_WANTED_NS = 15_000_000_000
#: Merges of one node at a time: each has a thread.
_MERGES_MAX = 8

Stopped = Callable[[], bool]
#: (databases or all, full, stopped) merges what this node has.
MergeHere = Callable[[Sequence[str] | None, bool, Stopped], None]


@dataclass(slots=True)
class _Merge:
    """One that was asked for."""

    thread: threading.Thread | None
    asked_ns: int
    done: threading.Event
    error: StorageError | None = None


class Merges:
    """See the module; what this node does for others."""

    def __init__(self, merge_here: MergeHere, clock: Clock) -> None:
        self._merge_here = merge_here
        self._clock = clock
        self._lock = threading.Lock()
        self._merges: dict[str, _Merge] = {}
        self._closed = False

    def handler(self) -> CallHandler:
        """What other nodes ask under the name `MERGE`."""
        return lambda _, request: self.answer(request)

    def answer(self, request: bytes) -> bytes:
        """Begin or go on; waits a little. Raises the error that ended it, BadRequest."""
        try:
            words = json.loads(request)
            id_, databases, full = str(words["id"]), words["databases"], bool(words["full"])
            chosen = None if databases is None else [str(name) for name in databases]
        except (ValueError, TypeError, KeyError) as error:
            raise BadRequest(MERGE, error) from error
        merge = self._find(id_, chosen, full=full)
        if not merge.done.wait(_WAIT_SECONDS):
            return b""
        with self._lock:
            self._merges.pop(id_, None)
        if merge.error is not None:
            raise merge.error
        return b"done"

    def _find(self, id_: str, databases: Sequence[str] | None, *, full: bool) -> _Merge:
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            merge = self._merges.get(id_)
            if merge is None:
                over = [key for key, m in self._merges.items() if m.done.is_set() and m.asked_ns + _WANTED_NS < now_ns]
                for key in over:
                    del self._merges[key]
                if self._closed or len(self._merges) >= _MERGES_MAX:
                    raise StorageError("too many MERGEs at a time: wait for one of them")
                merge = self._merges[id_] = _Merge(None, now_ns, threading.Event())
                merge.thread = threading.Thread(
                    target=self._run, args=(merge, databases, full), name="saros-merge", daemon=True
                )
                merge.thread.start()
            merge.asked_ns = now_ns
            return merge

    def _run(self, merge: _Merge, databases: Sequence[str] | None, full: bool) -> None:
        def stopped() -> bool:
            return self._closed or merge.asked_ns + _WANTED_NS < self._clock.monotonic_ns()

        try:
            self._merge_here(databases, full, stopped)
        except StorageError as error:
            merge.error = error
        except Exception as error:
            logger.exception("a MERGE failed")
            merge.error = StorageError(f"MERGE failed: {error}")
        finally:
            merge.done.set()

    def close(self) -> None:
        """Give up all of them."""
        with self._lock:
            self._closed = True
            threads = [merge.thread for merge in self._merges.values()]
        for thread in threads:
            if thread is not None:
                thread.join()


def merge_everywhere(
    request: bytes, nodes: Iterable[NodeId], ask: Callable[[NodeId, bytes], bytes], stopped: Stopped
) -> None:
    """Ask all nodes, until each has done it or does not answer. Raises what one of them raises."""
    pending = list(nodes)
    while pending and not stopped():
        for node in tuple(pending):
            try:
                done = bool(ask(node, request))
            except Unreachable as error:
                logger.info("a node was not asked to merge", extra={"node": node, "why": str(error)})
                done = True
            if done:
                pending.remove(node)


def encode_request(id_: str, databases: Sequence[str] | None, *, full: bool) -> bytes:
    """What `Merges.answer` understands; `id_` is new for every MERGE."""
    return json.dumps({"id": id_, "databases": databases, "full": full}).encode()
