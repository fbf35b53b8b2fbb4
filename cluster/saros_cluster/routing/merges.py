"""MERGE on every node: the coordinator polls the nodes until all are done.

    request   {id, databases, full}     to each node, repeatedly
    answer    in progress | done | an error

A node merges on a separate thread, and stops when the coordinator has not polled it for a while. So a MERGE stops
shortly after it was killed or its coordinator has failed. The coordinator skips a node that does not answer. The
skipped node merges its files later, in the background.

Thread-safe.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Sequence

import msgspec

from saros_cluster.multiraft.peers import BadRequest, CallHandler, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError

logger = logging.getLogger(__name__)
MERGE = "merge"
#: Longest time until a node answers.
_WAIT_SECONDS = 0.5
#: A merge stops if its coordinator has not polled for this long.
_WANTED_NS = 15_000_000_000
#: The maximum number of concurrent merges on one node. Each of them takes a thread.
_MERGES_MAX = 8

Stopped = Callable[[], bool]
#: Merges files of this node, called with (databases, or None for all; full; stopped).
MergeHere = Callable[[Sequence[str] | None, bool, Stopped], None]


class _Merge(msgspec.Struct):
    """A merge that is in progress, or that has finished but is not reported yet."""

    thread: threading.Thread | None
    asked_ns: int
    done: threading.Event
    error: StorageError | None = None


class Merges:
    """The merges that this node runs for coordinators."""

    def __init__(self, merge_here: MergeHere, clock: Clock) -> None:
        self._merge_here = merge_here
        self._clock = clock
        self._lock = threading.Lock()
        self._merges: dict[str, _Merge] = {}
        self._closed = False

    def handler(self) -> CallHandler:
        """Return the handler of the call `MERGE`."""
        return lambda _, request: self.answer(request)

    def answer(self, request: bytes) -> bytes:
        """Start a merge or wait for it briefly. Return b"" while it is in progress. Raises its error, BadRequest."""
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
                    raise StorageError("too many concurrent MERGEs; wait until one ends")
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
            logger.exception("MERGE failed")
            merge.error = StorageError(f"MERGE failed: {error}")
        finally:
            merge.done.set()

    def close(self) -> None:
        """Stop all merges."""
        with self._lock:
            self._closed = True
            threads = [merge.thread for merge in self._merges.values()]
        for thread in threads:
            if thread is not None:
                thread.join()


def merge_everywhere(
    request: bytes, nodes: Iterable[NodeId], ask: Callable[[NodeId, bytes], bytes], stopped: Stopped
) -> None:
    """Poll all nodes until each is done or does not answer. Raises an error that one of the nodes raises."""
    pending = list(nodes)
    while pending and not stopped():
        for node in tuple(pending):
            try:
                done = bool(ask(node, request))
            except Unreachable as error:
                logger.info("skipping a node in MERGE", extra={"node": node, "why": str(error)})
                done = True
            if done:
                pending.remove(node)


def encode_request(id_: str, databases: Sequence[str] | None, *, full: bool) -> bytes:
    """Return the request for `Merges.answer`. `id_` is unique for every MERGE."""
    return json.dumps({"id": id_, "databases": databases, "full": full}).encode()
