"""Requests to all nodes, for statements that concern every node: SHOW QUERIES, SHOW FILES, KILL QUERY, SET SYSTEM, ...

    the client's node            --question-->  every other node
                                 <--- rows ---                     a silent node gets a row with the reason

All nodes are asked at the same time. A database outside a cluster is node 1 alone. Thread-safe; waits for other nodes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from saros_cluster.multiraft.peers import BadRequest
from saros_cluster.placement.ring import NodeId
from saros_cluster.users.privileges import Privilege
from saros_engine.base.access import Access
from saros_engine.base.database import Database
from saros_engine.base.errors import QueryNotFound
from saros_engine.base.other_nodes import OtherNodes, partly_done
from saros_engine.base.query_registry import QueryRegistry, RunningQuery
from saros_engine.base.row_set import Row, RowSet
from saros_engine.base.slow_queries import SlowQueries, SlowQuery
from saros_engine.base.system_mode import SystemMode
from saros_engine.expressions.times import format_time
from saros_engine.plan.plan import Field
from saros_engine.show.configuration_requests import ConfigurationRequests
from saros_engine.show.show_stored import FIELDS, check_whole, show_stored, silent_row
from saros_grammar.syntax.ast import Show, ShowKind
from saros_storage.base.clock import Clock
from saros_storage.base.types import DataType

#: The kind of the messages that carry questions to other nodes.
TELL = "tell"
_MODE = "mode"
_TEXT = DataType.TEXT
_QUERY_FIELDS = (
    Field("Time", DataType.TIMESTAMP),
    Field("QueryId", _TEXT),
    Field("DataNodeId", DataType.INT32),
    Field("ElapsedTime", DataType.FLOAT),
    Field("Statement", _TEXT),
    Field("WaitTimeInServer", DataType.FLOAT),
    Field("ClientIp", _TEXT),
    Field("Timeout", DataType.INT64),
    Field("MemoryBytes", DataType.INT64),
)
_SLOW_FIELDS = (*_QUERY_FIELDS[:5], Field("User", _TEXT), Field("ClientIp", _TEXT))
#: The columns of the kinds of SHOW whose rows have a time.
_TIMED = {ShowKind.QUERIES: _QUERY_FIELDS, ShowKind.SLOW_QUERIES: _SLOW_FIELDS}


class _Question(msgspec.Struct, frozen=True):
    """A question to a node: return rows of `kind`, or end queries if `kind` is None.

    If `user` is given, only that user's queries are returned or ended; otherwise the queries of all users.
    """

    kind: ShowKind | None
    databases: tuple[str, ...] = ()
    zone: str = "UTC"
    user: str | None = None
    #: The query to end, or None to end all queries.
    query: str | None = None
    #: True to drop caches instead.
    clear: bool = False
    #: The system mode to set instead, or None to leave the mode unchanged.
    read_only: bool | None = None

    def encode(self) -> bytes:
        if self.read_only is not None:
            return json.dumps([_MODE, self.read_only]).encode()
        kind = None if self.kind is None else self.kind.value
        more = [True] if self.clear else []  # older nodes can read questions without it
        return json.dumps([kind, self.databases, self.zone, self.user, self.query, *more]).encode()

    @staticmethod
    def decode(data: bytes) -> _Question:
        """Decode a question. Raises BadRequest."""
        try:
            words = json.loads(data)
            if words[0] == _MODE:
                return _Question(None, read_only=bool(words[1]))
            kind, databases, zone, user, query, *more = words
            known = None if kind is None else ShowKind(kind)
            return _Question(known, tuple(map(str, databases)), str(zone), user, query, bool(more))
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise BadRequest(TELL, error) from error


class ClusterRequests:
    """Answers other nodes' questions about this node, and asks the other nodes. Thread-safe."""

    def __init__(
        self,
        registry: QueryRegistry,
        slow: SlowQueries,
        store: Database,
        clock: Clock,
        node: NodeId,
        others: OtherNodes | None,
        forget: Callable[[], None],
        mode: SystemMode,
        configuration: ConfigurationRequests,
    ) -> None:
        """`others` is None outside a cluster. `forget` drops the engine's caches of statements and plans."""
        self._registry = registry
        self._slow = slow
        self._store = store
        self._clock = clock
        self._node = node
        self._others = others
        self._forget = forget
        self._mode = mode
        #: Requests about the nodes' options.
        self.configuration = configuration

    def show(self, statement: Show, zone: str, access: Access) -> RowSet:
        """Return the rows of SHOW [SLOW] QUERIES, PARTITIONS, FILES or DISK_USAGE from all nodes.

        Raises SemanticError.
        """
        kind = statement.kind
        databases = statement.databases if statement.path is None else (statement.path,)
        question = _Question(kind, tuple(map(str, databases)), zone, _visible_user(access))
        if kind is ShowKind.DISK_USAGE:
            check_whole(str(statement.path), self._store.schema.databases())
        rows: list[Row] = self._rows(question)
        silent: list[Row] = []
        for node, answer in self._ask_others(question):
            if isinstance(answer, str):
                silent.append(_silent_row(kind, node, answer))
            else:
                rows += map(tuple, json.loads(answer))
        if kind is ShowKind.QUERIES:
            return RowSet(_QUERY_FIELDS, self._with_times([*map(_query_row, rows), *silent]), timed=True)
        if kind is ShowKind.SLOW_QUERIES:
            rows.sort(key=lambda row: cast("int", row[0]), reverse=True)
            return RowSet(_SLOW_FIELDS, self._with_times([*silent, *rows]), timed=True)
        rows.sort(key=lambda row: (str(row[0]), cast("int", row[1])))  # database; slice or node
        return RowSet(FIELDS[kind], [*rows, *silent])

    def kill(self, query: str | None, access: Access) -> int:
        """End a query (None: all queries) on the nodes that answer; return the number of queries that were ended.

        Raises QueryNotFound, and StorageError if all queries should end and some nodes do not answer.
        """
        question = _Question(None, user=_visible_user(access), query=query)
        count, silent = self._end(question), []
        for _, answer in self._ask_others(question):
            if isinstance(answer, str):
                silent.append(answer)
            else:
                count += int(json.loads(answer))
        if query is not None and not count:
            raise QueryNotFound(query, silent)
        if query is None and silent:
            ended = f"{count} {'query was' if count == 1 else 'queries were'} ended on the other nodes"
            raise partly_done(ended, silent)
        return count

    def clear(self, *, local: bool) -> int:
        """Drop caches on all nodes, or only on this one if `local`; return the number of nodes that answered."""
        question = _Question(None, clear=True)
        self._clear()
        answers = [] if local else self._ask_others(question)
        return 1 + sum(isinstance(answer, bytes) for _, answer in answers)

    def set_mode(self, *, read_only: bool, local: bool) -> int:
        """Set the mode of all nodes, or only of this one if `local`; return the number of nodes.

        Raises StorageError if some nodes do not answer; the mode of all nodes that do answer is set.
        """
        self._mode.set(read_only=read_only)
        answers = [] if local else self._ask_others(_Question(None, read_only=read_only))
        silent = [answer for _, answer in answers if isinstance(answer, str)]
        if silent:
            raise partly_done("the mode was set on the other nodes", silent)
        return 1 + len(answers)

    def _clear(self) -> None:
        self._store.clear_caches()
        self._forget()

    def _ask_others(self, question: _Question) -> Sequence[tuple[NodeId, bytes | str]]:
        """Return the answer of each other node, or the reason why it did not answer."""
        return [] if self._others is None else self._others.ask_each(question.encode())

    # ------------------------------------------------------------------ this node

    def answer(self, data: bytes) -> bytes:
        """Answer a question of another node. Raises BadRequest, and the errors of `ConfigurationRequests.answer`."""
        if ConfigurationRequests.concerns(data):
            return self.configuration.answer(data)
        question = _Question.decode(data)
        if question.read_only is not None:
            self._mode.set(read_only=question.read_only)
            return json.dumps(None).encode()
        if question.clear:
            self._clear()
            return json.dumps(None).encode()
        return json.dumps(self._end(question) if question.kind is None else self._rows(question)).encode()

    def _end(self, question: _Question) -> int:
        chosen = [r for r in self._running(question.user) if question.query in (None, r.query)]
        return sum(r.execution.cancel("the query was killed") for r in chosen)

    def _running(self, user: str | None) -> list[RunningQuery]:
        return [r for r in self._registry.running() if user in (None, r.asker.user)]

    def _rows(self, question: _Question) -> list[Row]:
        unit = self._store.options.time_unit

        def time(ticks: int) -> str:
            return format_time(ticks, question.zone, unit)

        if question.kind in FIELDS:
            return show_stored(question.kind, question.databases, self._store.partitions(), time, self._node)
        if question.kind is ShowKind.SLOW_QUERIES:
            return [self._slow_row(s) for s in self._slow.newest_first() if question.user in (None, s.client.user)]
        now = self._clock.monotonic_ns()
        return [
            (
                time(ticks),
                r.query,
                str(self._node),
                f"{(now - r.ticks_ns) / 1e9:.3f}",
                r.statement,
                ticks,
                r.execution.waited_ns() / 1e9,
                r.asker.host,
                r.limit_ms,
                r.execution.memory_bytes(),
            )
            for r in self._running(question.user)
            for ticks in (self._ticks(r.started_ns),)
        ]

    def _slow_row(self, slow: SlowQuery) -> Row:
        ticks, elapsed_s = self._ticks(slow.started_ns), slow.elapsed_ms / 1_000
        user, host = slow.client.user or None, slow.client.host
        return (ticks, slow.query_id or None, self._node, elapsed_s, slow.statement, user, host)

    def _with_times(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of queries. The rows of older or silent nodes have no time, and get the current time."""
        now = self._ticks(self._clock.now_ns())
        return [(now if time is None else time, *others) for time, *others in rows]

    def _ticks(self, time_ns: int) -> int:
        """Return a time in the database's time unit."""
        return time_ns * self._store.options.time_unit.value // 1_000_000_000


def _visible_user(access: Access) -> str | None:
    """Return the user whose queries the session may see and end, or None if it may do so for all users."""
    return None if access.may(Privilege.MAINTAIN) else access.user


def _silent_row(kind: ShowKind, node: NodeId, why: str) -> Row:
    """Return the row that stands for a node that did not answer."""
    fields = _TIMED.get(kind)
    if fields is None:
        return silent_row(kind, node, why)
    return (None, None, node, None, why, *(None,) * len(fields[5:]))


def _query_row(told: Row) -> Row:
    """Return a row of `_QUERY_FIELDS` from a row of a node's answer: five texts, and fields that older nodes omit."""
    _, query, node, elapsed, statement, *newer = told
    ticks, waited, host, limit_ms, held = [*newer, *(None,) * 5][:5]
    return (ticks, query, int(str(node)), float(str(elapsed)), statement, waited, host, limit_ms, held)
