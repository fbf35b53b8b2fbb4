"""Inserts of several sessions in one call: each has its own outcome, and none delays another for long.

    part -> its session, columns, request (else: refused)
      all that may be: handed over to the database at once -> wait --+-> written
      others, and those that were not taken: each on a thread   -----+-> done, or refused
                                                                     +-> PATIENCE_SECONDS later: pending

A pending part continues; the client asks again with an Insert of the same number, which waits for it
(`request_dedup_runner`). A part without a number cannot be asked for again, so the call waits for it. Thread-safe.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial

from saros_cluster.database.partial_failure import RowsLeft
from saros_engine.statements.insert_statement import ColumnBatch, InsertExecutor
from saros_server.api.errors import refusal_of, rows_left_of
from saros_server.api.insert_request import Columns, read_insert
from saros_server.api.session import EmbeddedSession
from saros_server.node.node import Node
from saros_server.node.request_dedup import State
from saros_storage.base.write_request import WriteRequest

#: What takes longer than this does not keep the others' answers any more.
PATIENCE_SECONDS = 0.5
#: What was handed over and is not written after this is written by itself, which finds out what became of it.
_HANDED_OVER_SECONDS = 2.0
#: Parts that cannot be handed over, at once; more wait.
_THREADS = 32


@dataclass(frozen=True, slots=True)
class InsertPart:
    """An insert of one of the sessions."""

    #: The token of its session.
    token: bytes
    columns: Columns


@dataclass(frozen=True, slots=True)
class InsertOutcome:
    """The outcome of an insert."""

    points: int = 0
    #: host:port of the node that led the write, if it is another: the next one may go there.
    leader: str = ""
    #: The status code of a refused part, and why it was refused; 0: it was not.
    code: int = 0
    message: str = ""
    #: The part takes longer than the others: ask for it by an insert of the same number.
    pending: bool = False
    #: The rows of a part that was written in part.
    rows: RowsLeft | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """A part that may be carried out, or is."""

    session: EmbeddedSession
    batch: ColumnBatch
    #: Whether another call carries it out already.
    runs: bool


@dataclass(frozen=True, slots=True)
class _PendingInserts:
    """A part that was handed over, or runs on a thread."""

    part: _Part
    inserting: InsertExecutor | None
    running: Future[int] | None = None


class InsertBatcher:
    """See the module."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="saros-inserts")

    def close(self) -> None:
        """Wait for what is under way."""
        self._pool.shutdown()

    def insert(
        self,
        parts: Sequence[InsertPart],
        session_of: Callable[[bytes], EmbeddedSession],
        deadline_ns: int | None = None,
    ) -> list[InsertOutcome]:
        """Carry out all parts. `session_of`: the session of a token, which it may refuse.

        `deadline_ns`: see `WriteRequest`.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        read = [self._read(part, session_of, deadline_ns) for part in parts]
        begun = iter(self._begin([part for part in read if isinstance(part, _Part) and not part.runs]))
        under_way = [
            self._started(part, None if part.runs else next(begun)) if isinstance(part, _Part) else part
            for part in read
        ]
        return [found if isinstance(found, InsertOutcome) else self._outcome(found, deadline) for found in under_way]

    def _read(
        self, part: InsertPart, session_of: Callable[[bytes], EmbeddedSession], deadline_ns: int | None
    ) -> _Part | InsertOutcome:
        """A part that is to be carried out, or what became of it."""
        try:
            session = session_of(part.token)
            insert = read_insert(part.columns)
            request = session.numbered(insert.sequence, deadline_ns)
            batch = session.batch(insert.device, insert.times, insert.columns, aligned=insert.aligned, request=request)
            found = self._node.requests.begin(request.key)
        except Exception as error:  # noqa: BLE001 (the top of a part)
            return _refused(error)
        if isinstance(found, int):
            return self._done(batch, found)
        return _Part(session, batch, runs=found is State.RUNNING)

    def _begin(self, parts: Sequence[_Part]) -> list[InsertExecutor | None]:
        try:
            return self._node.engine.insert_together([part.batch for part in parts])
        except BaseException:
            for part in parts:
                self._node.requests.end(part.batch.request.key, -1)
            raise

    def _started(self, part: _Part, inserting: InsertExecutor | None) -> _PendingInserts:
        """What was not handed over runs on a thread from now on."""
        requests, request = self._node.requests, part.batch.request.key
        if inserting is not None:
            return _PendingInserts(part, inserting)
        carry_out = requests.run_once if part.runs else requests.carry_out
        return _PendingInserts(
            part, None, self._pool.submit(carry_out, request, partial(part.session.write, part.batch))
        )

    def _outcome(self, found: _PendingInserts, deadline: float) -> InsertOutcome:
        """Wait for a part until then; for one without a number, until it is over."""
        batch = found.part.batch
        running = found.running
        try:
            if found.inserting is not None:
                running = self._await_part(found.part, found.inserting, deadline)
            if running is None:
                assert found.inserting is not None
                return self._done(batch, found.inserting.points)
            wait([running], max(deadline - time.monotonic(), 0.0) if batch.request.is_numbered else None)
            return self._done(batch, running.result()) if running.done() else InsertOutcome(pending=True)
        except Exception as error:  # noqa: BLE001 (the top of a part)
            return _refused(error)

    def _await_part(self, part: _Part, inserting: InsertExecutor, deadline: float) -> Future[int] | None:
        """Wait for what was handed over; None: it is written. Else it goes on on a thread."""
        requests, request = self._node.requests, part.batch.request.key
        try:
            written = inserting.wait(max(deadline - time.monotonic(), 0.0))
        except BaseException:
            requests.end(request, -1)
            raise
        if written:
            requests.end(request, inserting.points)
            return None
        again = partial(_write, part, None if written is False else inserting)
        return self._pool.submit(requests.carry_out, request, again)

    def _done(self, batch: ColumnBatch, points: int) -> InsertOutcome:
        return InsertOutcome(points=points, leader=self._node.leader_elsewhere(batch.device))


def _write(part: _Part, inserting: InsertExecutor | None) -> int:
    """Wait for a part that was handed over, until its deadline; write one that was not. Answers the points."""
    if inserting is not None and inserting.wait(_left_s(part.batch.request, _HANDED_OVER_SECONDS)):
        return inserting.points
    return part.session.write(part.batch)


def _left_s(request: WriteRequest, seconds: float) -> float:
    """Return the seconds that a request may wait, `seconds` at most."""
    if request.deadline_ns is None:
        return seconds
    return min(seconds, max((request.deadline_ns - time.monotonic_ns()) / 1e9, 0.0))


def _refused(error: Exception) -> InsertOutcome:
    code, message = refusal_of(error)
    return InsertOutcome(code=code, message=message, rows=rows_left_of(error))
