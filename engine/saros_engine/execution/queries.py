"""Plan SELECTs (or reuse cached plans), and execute the plans.

    tree --`plan`, `cached_plan`--> QueryPlan --`start`--> QueryExecution -> blocks

An execution has an id, a view of the store, a memory account and a deadline; `open` counts the executions that still
hold resources. A MERGE may run for a long time, so it is counted and listed like a query. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from saros_cluster.placement.ring import NodeId
from saros_cluster.users.privileges import Privilege
from saros_engine.base.database import Database
from saros_engine.base.latency_histogram import LatencyHistogram
from saros_engine.base.query_registry import ClientInfo, Execution, QueryRegistry
from saros_engine.base.session_context import SessionContext
from saros_engine.execution.execution import QueryExecution
from saros_engine.execution.merge_execution import MergeExecution
from saros_engine.expressions.time_filter import TimeContext
from saros_engine.memory.memory import QueryMemory
from saros_engine.memory.options import EngineOptions
from saros_engine.memory.pool import MemoryPool
from saros_engine.optimizer import optimize
from saros_engine.plan.plan import Field, Node, QueryPlan
from saros_engine.planner import LogicalPlan, PlanContext, plan_select
from saros_engine.planning.distribution import distribute
from saros_engine.planning.plan_cache import PlanCache, PlanRequest
from saros_engine.planning.settled_plan import settled_plan
from saros_engine.security.authorization import authorize_plan, schema_for
from saros_grammar.syntax import ast
from saros_scheduler import DriverScheduler
from saros_storage.base.clock import Clock
from saros_storage.base.gc_control import reduced_gc
from saros_storage.scan.read_point import ReadPoint, Sources
from saros_storage.scan.reading import ReadView

T = TypeVar("T")
_NANOSECONDS_PER_MS = 1_000_000
_NANOSECONDS_PER_S = 1_000_000_000


#: A statement stops waiting for the schema this number of milliseconds before its timeout. If the timeout is short, the
#: wait stops after nine tenths of the timeout.
_ERROR_MS_MAX = 250


class ReadLimits(msgspec.Struct, frozen=True):
    """The limits on how long a statement may wait.

    `timeout_ms` is None for the configured timeout, and 0 for no timeout. `WriteRequest` explains `deadline_ns`.
    """

    timeout_ms: int | None = None
    deadline_ns: int | None = None


NO_LIMITS = ReadLimits()


class Queries:
    """The plans and executions of a database's queries."""

    def __init__(
        self, store: Database, scheduler: DriverScheduler, clock: Clock, options: EngineOptions, node: NodeId
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._clock = clock
        #: The options for statements that begin from now on.
        self.options = options
        self._unit = store.options.time_unit
        self._plans = PlanCache(options.plans_cached)
        self.registry = QueryRegistry(clock, node)
        #: The durations of ended executions.
        self.durations = LatencyHistogram()
        #: The memory pool that all executions share.
        self.memory = MemoryPool(options.queries_memory_bytes_max, clock)
        self._counting = threading.RLock()
        self._idle = threading.Condition(self._counting)
        self._open = 0
        #: True once `close` has begun to wait for the open executions.
        self._closing = False

    # ------------------------------------------------------------------ contexts of planning and reading

    def moment(self, session: SessionContext) -> TimeContext:
        """Return the current time and the session's time zone."""
        return TimeContext(session.zone, self._unit, self._clock.now_ns() * self._unit.value // _NANOSECONDS_PER_S)

    def read_point(self, session: SessionContext, limits: ReadLimits = NO_LIMITS) -> ReadPoint:
        """Return a read point for the session's next read.

        The point is extended as the scope of the read becomes known.
        """
        if session.point is not None:
            return session.point
        point = self._store.read_point(session.consistency, session.horizon, self._deadline_of(limits))
        if session.partial and not point.settled:
            point.partial = True
        return point

    def _deadline_of(self, limits: ReadLimits) -> int | None:
        """Return the deadline of a statement's waits, or None if the waits have no deadline.

        The deadline is earlier than the statement's timeout, because a timeout error would not name the cause of the
        wait.
        """
        timeout_ms = self.options.query_timeout_ms if limits.timeout_ms is None else limits.timeout_ms
        waiting_ms = max(timeout_ms - min(timeout_ms // 10, _ERROR_MS_MAX), 1) if timeout_ms else 0
        ends = [end for end in (self._deadline(waiting_ms), limits.deadline_ns) if end is not None]
        return min(ends, default=None)

    def catch_up(self, point: ReadPoint, patterns: Collection[str]) -> None:
        """Wait until the schema below path patterns is as new as the point requires.

        The wait includes the schema of the series to which views below the patterns refer.
        """
        settled_plan(self._store, point, patterns, lambda: None, lambda _: ())

    def consistent_plan(
        self, point: ReadPoint, patterns: Collection[str], plan: Callable[[], T], sources: Callable[[T], Sources]
    ) -> T:
        """See `settled_plan`."""
        return settled_plan(self._store, point, patterns, plan, sources)

    def context(self, session: SessionContext) -> PlanContext:
        """Return the context for planning, with the part of the schema whose data the session may read."""
        return PlanContext(schema_for(session.access, self._store, Privilege.READ_DATA), self.moment(session))

    # ------------------------------------------------------------------ plans

    def cached_plan(
        self,
        parsed: ast.Parsed,
        given: tuple[ast.Literal, ...],
        session: SessionContext,
        fill: Callable[[], ast.Statement],
    ) -> QueryPlan:
        """Return the plan of a SELECT with the values `given` for its parameters, from the plan cache if possible.

        `fill` returns the statement with the values filled in.
        """
        asking = PlanRequest(
            session.access.key,
            self.moment(session),
            self._store.schema.version,
            lambda: self.context(session),
            lambda root: authorize_plan(root, session.access),
        )
        planned = self._plans.plan(parsed, given, asking, fill)
        return self._distributed(planned.fields, planned.root, timed=planned.timed)

    def plan(self, select: ast.Select, session: SessionContext) -> QueryPlan:
        """Return the plan of a SELECT, without the plan cache."""
        with reduced_gc():
            return self.physical(plan_select(select, self.context(session)), session)

    def physical(self, logical: LogicalPlan, session: SessionContext) -> QueryPlan:
        """Optimize and authorize a logical plan, and cut it into fragments."""
        root = optimize(logical.root)
        authorize_plan(root, session.access)
        return self._distributed(logical.fields, root, timed=logical.timed)

    def _distributed(self, fields: tuple[Field, ...], root: Node, *, timed: bool) -> QueryPlan:
        return QueryPlan(fields, timed, root, distribute(root, self.options.parallelism))

    def clear_plans(self) -> None:
        """Empty the plan cache."""
        self._plans.clear()

    def plan_counts(self) -> tuple[int, int]:
        """Return how many plans of SELECTs were made, and how often a plan was reused."""
        return self._plans.counts()

    # ------------------------------------------------------------------ executions

    def start(
        self, plan: QueryPlan, text: str, asker: ClientInfo, timeout_ms: int | None, point: ReadPoint
    ) -> QueryExecution:
        """Start to execute a plan. `timeout_ms` is None for the configured timeout, and 0 for no timeout.

        The caller must read the execution to its end, or close it.
        """
        limit_ms = self.options.query_timeout_ms if timeout_ms is None else timeout_ms
        view = self._view(plan, point)
        execution = QueryExecution(
            self.registry.next_id(),
            plan,
            view,
            QueryMemory(self.options.query_memory_bytes_max, self.memory),
            self._clock,
            self._unit,
            self._ended,
            self.options.spill(),
        )
        self._began(text, asker, limit_ms, execution)
        execution.start(self._scheduler, self._deadline(limit_ms))
        return execution

    def _view(self, plan: QueryPlan, point: ReadPoint) -> ReadView:
        """Return the view that a plan reads.

        The sources of the plan are needed only if the read point is not settled (complete).
        """
        if point.picture is not None:
            return point.picture()
        return self._store.view(point, None if point.settled else plan.sources)

    @contextmanager
    def merging(self, text: str, asker: ClientInfo, timeout_ms: int | None) -> Iterator[MergeExecution]:
        """Register a MERGE while it runs. The configured timeout does not apply, but the client may set a timeout."""
        execution = MergeExecution(self.registry.next_id(), self._store, self._clock, self._deadline(timeout_ms))
        self._began(text, asker, timeout_ms, execution)
        try:
            yield execution
        finally:
            self._ended(execution)

    def _deadline(self, limit_ms: int | None) -> int | None:
        return self._clock.monotonic_ns() + limit_ms * _NANOSECONDS_PER_MS if limit_ms else None

    def _began(self, text: str, asker: ClientInfo, limit_ms: int | None, execution: Execution) -> None:
        with self._counting:
            self._open += 1
        self.registry.add(text, asker, limit_ms or None, execution)

    def _ended(self, execution: Execution) -> None:
        began_ns = self.registry.remove(execution).ticks_ns
        self.durations.add(self._clock.monotonic_ns() - began_ns)
        with self._counting:
            self._open -= 1
            if self._closing and not self._open:
                self._idle.notify_all()

    def interrupt(self, thread: int) -> None:
        """Cancel the query that a thread is starting; the thread may be running the query's first steps."""
        for running in self.registry.running():
            execution = running.execution
            if isinstance(execution, QueryExecution) and execution.started_by == thread:
                execution.cancel("the client interrupted the query")

    @property
    def open(self) -> int:
        """The number of executions that still hold resources."""
        return self._open

    def close(self) -> None:
        """End all executions and wait until their resources are released."""
        for running in self.registry.running():
            running.execution.cancel("the database is closing")
        with self._idle:
            self._closing = True
            while self._open:
                self._idle.wait()
