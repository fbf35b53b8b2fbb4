"""Statements of clients: a session carries them out, and their results go back.

    Ask      -> all of a small result in one answer; of a large or slow one what there is by then, and a number for
    Rest     -> a stream of the other batches; DiscardRest -> nobody will come for them
    Execute  -> a stream of all, for drivers that do not ask

A stream costs each side half as much again as an answer does, so what fits goes by an answer. Whoever has the result
closes it: the answer that was all, the stream, or `result_cursors`, where no client came for it.

Thread-safe.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import suppress

import grpc
import pyarrow as pa

from saros_server.api.errors import BadMessage
from saros_server.api.result_cursors import CursorGone, ResultCursor, ResultCursors
from saros_server.api.session import EmbeddedSession
from saros_server.grpc.admin_calls import named_point
from saros_server.grpc.leader_wait import leaders_until_ns
from saros_server.process.logs import shape_of
from saros_storage.base.clock import Clock
from saros_wire import protocol
from saros_wire.generated import client_pb2

logger = logging.getLogger(__name__)

#: A statement whose rows took longer, the client's reading included, is logged.
SLOW_MS = 1_000
#: An answer waits for no more rows than make so many bytes, and has no more than twice as many: an answer is copied
#: oftener than what a stream carries.
_ANSWER_BYTES = 1 << 20
#: Or when this is over: the client cannot cancel before, and what takes longer does not feel what a stream costs. Not
#: less, since on a machine that has too much to do small queries take some ten milliseconds as well.
_ANSWER_SECONDS = 0.1
#: Results that clients have not read to the end. Each has one of the node's 256 calls; the others are for what is
#: short, of which 32 at a time may find the same last place free.
RESULTS_MAX = 192
#: More than a cluster has groups; each may be named twice, for its data and its schema.
_GROUPS_MAX = 4_096


class TooManyResults(Exception):
    """As many results as may wait for clients do."""

    code = 2031

    def __init__(self) -> None:
        super().__init__(
            f"{RESULTS_MAX} results wait on this node for clients that have not read them to the end, which is as many "
            "as may: fetch or close those that you have"
        )


class Statements:
    """See the module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rests = ResultCursors(clock)
        self._lock = threading.Lock()
        #: Streams of results that are not over.
        self._streams = 0

    def ask(
        self, request: client_pb2.ExecuteRequest, context: grpc.ServicerContext, session: EmbeddedSession
    ) -> client_pb2.Answer:
        """The call Ask. Raises what the statement raises until the answer goes, and TooManyResults."""
        sending = self._begun(request, context, session)
        try:
            answer = client_pb2.Answer(head=_head(sending))
            whole = self._fill_answer(sending, answer)
            if not whole and context.is_active():
                self._check_room()
                answer.rest = self._rests.put(sending)
                return answer
            if whole and (end := _end(sending)) is not None:
                answer.end.CopyFrom(end)
        except BaseException:
            self._close(sending)
            raise
        self._close(sending)
        return answer

    def _fill_answer(self, sending: ResultCursor, answer: client_pb2.Answer) -> bool:
        """Put rows into an answer; whether these are all."""
        outcome = sending.outcome
        if outcome.names is None:
            return True
        until = self._clock.monotonic_ns() + round(_ANSWER_SECONDS * 1e9)
        size = len(answer.head.schema)
        while size < _ANSWER_BYTES and outcome.wait((until - self._clock.monotonic_ns()) / 1e9):
            batch = outcome.next_batch()
            if batch is None:
                return True
            for message in _messages(batch):
                size += len(message)
                (answer.batches if size <= 2 * _ANSWER_BYTES else sending.left).append(message)
        return False

    def rest(
        self, request: client_pb2.RestRequest, context: grpc.ServicerContext, session: EmbeddedSession
    ) -> Iterator[bytes]:
        """The call Rest. Raises CursorGone."""
        return self._stream(self._rests.take(request.rest, session), context)

    def discard_rest(
        self, request: client_pb2.RestRequest, _: grpc.ServicerContext, session: EmbeddedSession
    ) -> client_pb2.DiscardRestReply:
        """The call DiscardRest. A rest that was taken is ended by its stream."""
        with suppress(CursorGone):
            self._close(self._rests.take(request.rest, session))
        return client_pb2.DiscardRestReply()

    def execute(
        self, request: client_pb2.ExecuteRequest, context: grpc.ServicerContext, session: EmbeddedSession
    ) -> Iterator[bytes]:
        """The call Execute. Raises what the statement raises up to its first rows, and TooManyResults."""
        self._check_room()
        return self._stream(self._begun(request, context, session), context, headed=True)

    def close(self) -> None:
        """Close what waits for clients."""
        self._rests.close()

    def _begun(
        self, request: client_pb2.ExecuteRequest, context: grpc.ServicerContext, session: EmbeddedSession
    ) -> ResultCursor:
        if session.horizon is not None:
            session.horizon.note(_shown(request))
        started = self._clock.monotonic_ns()
        until_ns = leaders_until_ns(context, started)
        outcome = session.execute(
            request.statement,
            protocol.decode_values(request.parameters),
            request.timeout_ms / 1_000 if request.timeout_ms else None,
            at=named_point(request.read_point) if request.HasField("read_point") else None,
            request=session.numbered(request.sequence, until_ns),
        )
        return ResultCursor(outcome, session, request.statement, started)

    def _check_room(self) -> None:
        with self._lock:
            streams = self._streams
        if streams + len(self._rests) >= RESULTS_MAX:
            raise TooManyResults

    def _stream(self, sending: ResultCursor, context: grpc.ServicerContext, *, headed: bool = False) -> Iterator[bytes]:
        def on_end() -> None:
            with self._lock:
                self._streams -= 1
            sending.outcome.close()

        with self._lock:
            self._streams += 1
        if not context.add_callback(on_end):
            on_end()
        return self._pieces(sending, context, headed=headed)

    def _pieces(self, sending: ResultCursor, context: grpc.ServicerContext, *, headed: bool) -> Iterator[bytes]:
        outcome = sending.outcome
        try:
            if headed:
                yield _head(sending).SerializeToString()
            yield from sending.left
            while outcome.names is not None and (batch := outcome.next_batch()) is not None:
                yield from _messages(batch)
            if (end := _end(sending)) is not None:
                context.set_trailing_metadata(((protocol.END_KEY, end.SerializeToString()),))
        finally:
            self._close(sending)

    def _close(self, sending: ResultCursor) -> None:
        """Nothing of it will be sent any more."""
        sending.outcome.close()
        elapsed_ms = (self._clock.monotonic_ns() - sending.started_ns) // 1_000_000
        if elapsed_ms >= SLOW_MS:
            extra = {"ms": elapsed_ms, "query": sending.outcome.query_id, "statement": shape_of(sending.statement)}
            logger.warning("slow statement", extra=extra)


def _head(sending: ResultCursor) -> client_pb2.ResultHead:
    outcome = sending.outcome
    head = client_pb2.ResultHead(query_id=outcome.query_id, update_count=outcome.update_count, stale=outcome.stale)
    if outcome.names is not None:
        head.schema = outcome.schema.serialize().to_pybytes()
        head.type_names.extend(outcome.type_names)
    return head


def _end(sending: ResultCursor) -> client_pb2.ResultEnd | None:
    """What is known at the end of rows; None: nothing need be."""
    outcome, horizon = sending.outcome, sending.session.horizon
    if horizon is None or outcome.names is None:
        return None
    return client_pb2.ResultEnd(stale=outcome.stale, shown=horizon.shown)


def _shown(request: client_pb2.ExecuteRequest) -> dict[int, int]:
    """What a client says that it was shown."""
    if len(request.shown) > _GROUPS_MAX:
        raise BadMessage(f"a session was shown {len(request.shown)} groups: more than {_GROUPS_MAX}")
    return dict(request.shown)


def _messages(batch: pa.RecordBatch) -> Iterator[bytes]:
    """The batch as Arrow IPC messages, none above the limit."""
    if batch.nbytes > protocol.MESSAGE_BYTES_MAX // 2 and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _messages(batch.slice(0, half))
        yield from _messages(batch.slice(half))
    else:
        yield batch.serialize().to_pybytes()
