"""The coordinator executes statements: it takes a text and returns a result.

    text --statement cache--> tree --bind ?--> SELECT   `queries`: plan -> execution -> blocks
                                               INSERT   `writer`: tablets -> store
                                               SHOW     `show_executor`
                                               others   `schema_statements`, DELETE, LOAD, FLUSH, users, ...

`authorization` checks every statement before it takes effect. If the session has an audit trail, audited statements and
denied statements are reported to the trail with their outcomes.

Thread-safe; `execute` runs the statement on the caller's thread, up to the first block of rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec
from msgspec.structs import replace

from saros_cluster.users.users import Users
from saros_engine.base.access import UNRESTRICTED, Access, NoPermission, Trail, access_of
from saros_engine.base.cluster_info import ClusterAdmin, OneNode
from saros_engine.base.database import Database, wait_for_schema
from saros_engine.base.errors import NotSupportedError, SemanticError
from saros_engine.base.latency_histogram import NOTHING, LatencyHistogram, LatencySnapshot
from saros_engine.base.node_settings import NodeSettings
from saros_engine.base.row_set import RowSet
from saros_engine.base.session_context import SessionContext
from saros_engine.base.slow_queries import SlowQueries
from saros_engine.base.system_mode import SystemMode
from saros_engine.catalog.continuous_queries import ContinuousQuery
from saros_engine.catalog.tag_keys import tag_key_creation
from saros_engine.cluster import Cluster
from saros_engine.execution.explain import explain, explain_analysis
from saros_engine.execution.queries import Queries, ReadLimits
from saros_engine.execution.result import Result, fixed_result
from saros_engine.expressions.time_filter import time_range
from saros_engine.expressions.times import zone_of
from saros_engine.extensions.triggers import Triggers
from saros_engine.memory.options import EngineOptions
from saros_engine.memory.pool import NO_MEMORY, PoolStatus
from saros_engine.plan.plan import Field, QueryPlan, sources_of
from saros_engine.planner import plan_select
from saros_engine.planner.into import source_columns, targets_of
from saros_engine.planner.window_range import bounds_query, lacks_range, with_range
from saros_engine.planning.schema_patterns import patterns_of
from saros_engine.security.authorization import (
    RULES,
    AuthorizationRequest,
    authorize,
    authorize_write,
    changes,
    check_session,
    leaves_database_alone,
)
from saros_engine.security.information_schema import chooses, plan_show, plan_table, show_of
from saros_engine.show.cluster_requests import ClusterRequests
from saros_engine.show.configuration_requests import ConfigurationRequests
from saros_engine.show.show_executor import ShowExecutor
from saros_engine.statements.cluster_statements import run_cluster_statement, show_plan
from saros_engine.statements.ddl import patterns_to_delete
from saros_engine.statements.load_statement import load_files
from saros_engine.statements.schema_statements import SchemaStatements
from saros_engine.statements.select_into import check_types, write_into, written
from saros_engine.statements.sync_statements import SyncAdmin, run_sync_statement
from saros_engine.statements.user_statements import UserRequest, UserStatements
from saros_engine.writes.batches import ColumnBatch, MultiBatch, outcomes_of
from saros_engine.writes.writer import PartlyWritten, Writer
from saros_grammar.bind import ParameterBinder
from saros_grammar.cache import RecentMap, StatementCache
from saros_grammar.syntax import ast
from saros_scheduler import DriverScheduler
from saros_storage.base.block import Column
from saros_storage.base.clock import Clock
from saros_storage.base.errors import UserMistake
from saros_storage.base.gc_control import reduced_gc
from saros_storage.base.types import DataType, Int64Array
from saros_storage.base.write_request import UNNUMBERED, WriteRequest
from saros_storage.scan.read_point import ReadPoint, Sources

_INTERNAL = 2001


class _Question(msgspec.Struct, frozen=True):
    """A statement as received. `given` holds the values of its `?` parameters."""

    text: str
    parsed: ast.Parsed
    given: tuple[ast.Literal, ...]
    timeout_ms: int | None
    request: WriteRequest

    @property
    def limits(self) -> ReadLimits:
        """The limits on how long the statement may wait."""
        return ReadLimits(self.timeout_ms, self.request.deadline_ns)


class EngineCounters(msgspec.Struct):
    """Counters since the start of an engine, and the memory that its queries use."""

    statements: int = 0
    #: Statements and batches that failed before their first row.
    failures: int = 0
    points_written: int = 0
    #: How many plans of SELECTs were made, and how often a cached plan was reused.
    plans_made: int = 0
    plans_reused: int = 0
    #: The memory pool that all queries share.
    memory: PoolStatus = NO_MEMORY
    #: The durations of queries, and of writes (batches and INSERTs).
    queries: LatencySnapshot = NOTHING
    writes: LatencySnapshot = NOTHING


class _Counted:
    """A context manager that adds `statements` to the count of statements at its exit.

    An exception also counts as a failure.
    """

    __slots__ = ("_counters", "_counting", "_statements")

    def __init__(self, counters: EngineCounters, counting: threading.Lock, statements: int) -> None:
        self._counters = counters
        self._counting = counting
        self._statements = statements

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._counting:
            self._counters.statements += self._statements
            self._counters.failures += kind is not None


class QueryEngine:
    """The engine of one database: executes statements and writes batches."""

    def __init__(
        self,
        store: Database,
        scheduler: DriverScheduler,
        clock: Clock,
        options: EngineOptions,
        cluster: Cluster | None = None,
        users: UserStatements | None = None,
        sync: SyncAdmin | None = None,
        mode: SystemMode | None = None,
        settings: NodeSettings | None = None,
    ) -> None:
        """Create the engine of a store.

        `cluster` is None outside a cluster; `users` is None if the database has no users; `sync` is None if the
        database does not take part in sync; `mode` is None if the system mode need not survive a restart; `settings` is
        None if statements cannot change options.
        """
        self._cluster = cluster
        self._sync = sync
        self._store = store
        self._users = users
        self._clock = clock
        #: The system mode: running, or read-only.
        self.mode = SystemMode() if mode is None else mode
        info = OneNode(store, self.mode) if cluster is None else cluster.info
        others = None if cluster is None else cluster.others
        installations = None if cluster is None else cluster.installations
        self._statements = StatementCache(options.statements_cached)
        self._patterns_known: RecentMap[str, tuple[str, ...]] = RecentMap(options.statements_cached)
        self._binder = ParameterBinder(store.options.time_unit.value)
        self._queries = Queries(store, scheduler, clock, options, info.node)
        #: The latest slow statements.
        self.slow_queries = SlowQueries(clock, options.slow_query_ms)
        #: Executes statements that concern every node.
        self.every_node = ClusterRequests(
            self._queries.registry,
            self.slow_queries,
            store,
            clock,
            info.node,
            others,
            self._forget,
            self.mode,
            ConfigurationRequests(settings, info.node, others),
        )
        self._triggers = Triggers(lambda: store.schema.catalogue)
        self._writer = Writer(store, options.automatic_schema, clock, self._triggers)
        self._schema = SchemaStatements(store, self._writer, self._queries, self._authorization_request, installations)
        self._showing = ShowExecutor(store, self._queries, info, self.every_node, self._triggers, sync)
        self._counters = EngineCounters()
        self._counting = threading.Lock()
        self._writes = LatencyHistogram()

    # ------------------------------------------------------------------ entry points

    def execute(
        self,
        text: str,
        session: SessionContext,
        parameters: Sequence[object] = (),
        *,
        timeout_ms: int | None = None,
        request: WriteRequest = UNNUMBERED,
    ) -> Result:
        """Execute one statement. Raises ParseError, UserMistake, EngineError, StorageError."""
        with self._counted(statements=1):
            watch = self.slow_queries.start(text, session.asker)
            parsed = self._statements.get(text)  # invalid statements are not recorded, since they cannot be redacted
            is_bound = bool(parsed.parameters or parameters)
            given = tuple(self._binder.literals(parsed.statement, parameters)) if is_bound else ()
            try:
                result = self._execute(_Question(text, parsed, given, timeout_ms, request), session)
            except BaseException:
                watch.stop("")
                raise
            result.timed_by(watch)
            return result

    def _counted(self, *, statements: int) -> _Counted:
        return _Counted(self._counters, self._counting, statements)

    def _execute(self, question: _Question, session: SessionContext) -> Result:
        parsed = question.parsed
        if session.read_only or session.shared:
            check_session(parsed.statement, session)
        if session.trail is None and session.access.unrestricted:
            return self._run(question, session)
        with _recorded(session.trail, RULES[type(parsed.statement)].event, parsed.redacted or question.text):
            authorize(parsed.statement, self._authorization_request(session.access, question.request))
            return self._run(question, session)

    def set_options(self, options: EngineOptions) -> None:
        """Use new options for statements that begin from now on.

        `parallelism` and the sizes of caches and of the memory pool do not change.
        """
        self._queries.options = options
        self._writer.automatic = options.automatic_schema
        self.slow_queries.threshold_ms = options.slow_query_ms

    def _forget(self) -> None:
        """Empty the caches of statements and plans."""
        self._statements.clear()
        self._queries.clear_plans()

    def _authorization_request(self, access: Access, request: WriteRequest = UNNUMBERED) -> AuthorizationRequest:
        users = Users() if self._users is None else self._users.users()
        return AuthorizationRequest(access, self._store, users, request.deadline_ns)

    def insert_columns(
        self,
        device: str,
        times: Int64Array,
        columns: Mapping[str, Column],
        *,
        aligned: bool | None = None,
        session: SessionContext | None = None,
        request: WriteRequest = UNNUMBERED,
    ) -> int:
        """Write points of one device; see `writer.Writer.insert_columns`. Without a session, nothing is checked."""
        with self._counted(statements=0):
            if session is not None:
                self._authorize_columns(device, columns, session, request)
            self.mode.require_running()
            insert = partial(self._writer.insert_columns, device, times, columns, aligned=aligned, request=request)
            return self._timed(insert)

    def insert_batches(
        self, batches: Sequence[ColumnBatch | Exception], *, session: SessionContext, request: WriteRequest
    ) -> list[int | Exception]:
        """Write batches of different devices; see `writer.Writer.insert_batches`."""

        def allowed(batch: ColumnBatch) -> ColumnBatch:
            self._authorize_columns(batch.device, batch.columns, session, request)
            return batch

        with self._counted(statements=0), reduced_gc(len(batches)):
            found = outcomes_of(batches, allowed)
            self.mode.require_running()
            began_ns = self._clock.monotonic_ns()
            outcomes = self._writer.insert_batches(found, request)
            self._written(began_ns, sum(map(_points_of, outcomes)))
            return outcomes

    def insert_rows(self, rows: MultiBatch, *, session: SessionContext, request: WriteRequest) -> list[int | Exception]:
        """Write rows of many devices; see `writer.Writer.insert_rows`."""

        def allow(device: str) -> None:
            self._authorize_columns(device, rows.columns, session, request)

        with self._counted(statements=0), reduced_gc(len(rows.devices)):
            found = enumerate(outcomes_of(rows.devices, allow))
            refused = {number: error for number, error in found if error is not None}
            self.mode.require_running()
            began_ns = self._clock.monotonic_ns()
            outcomes = self._writer.insert_rows(rows, refused, request)
            self._written(began_ns, sum(map(_points_of, outcomes)))
            return outcomes

    def append_tag_key(
        self, prefix: str, number: int, key: str, *, session: SessionContext, request: WriteRequest
    ) -> None:
        """Append a tag key (see `tag_keys`); the session needs the privilege to write the key.

        Raises UserMistake 503 if the number is taken.
        """
        creation = tag_key_creation(prefix, number, key)
        self._authorize_columns(creation.device, [one.measurement for one in creation.series], session, request)
        self.mode.require_running()
        self._writer.require_automatic(creation.device, [one.measurement for one in creation.series])
        self._store.change_schema([*self._writer.database_for(creation.device), creation], request=request)

    def _authorize_columns(
        self, device: str, measurements: Iterable[str], session: SessionContext, request: WriteRequest
    ) -> None:
        if not session.access.unrestricted:
            with _recorded(session.trail, None, f"columns for {device}"):
                authorize_write(device, tuple(measurements), self._authorization_request(session.access, request))

    def _timed(self, write: Callable[[], int]) -> int:
        """Run a write, and record its duration and the number of points that it returns."""
        began_ns = self._clock.monotonic_ns()
        try:
            points = write()
        except PartlyWritten as error:
            self._written(began_ns, error.points)
            raise
        self._written(began_ns, points)
        return points

    def _written(self, began_ns: int, points: int) -> None:
        self._writes.add(self._clock.monotonic_ns() - began_ns)
        with self._counting:
            self._counters.points_written += points

    def counters(self) -> EngineCounters:
        """Return the current counters."""
        made, reused = self._queries.plan_counts()
        queries, writes = self._queries.durations.spread(), self._writes.spread()
        memory = self._queries.memory.status()
        with self._counting:
            return replace(
                self._counters, plans_made=made, plans_reused=reused, memory=memory, queries=queries, writes=writes
            )

    def interrupt(self, thread: int) -> None:
        """Cancel the query that `execute` is starting on a thread, if there is one."""
        self._queries.interrupt(thread)

    @property
    def open_queries(self) -> int:
        """The number of queries that still hold resources: 0 when idle."""
        return self._queries.open

    def close(self) -> None:
        """End all queries, wait until their resources are released, and let triggers finish."""
        self._triggers.calls.close()
        self._queries.close()

    # ------------------------------------------------------------------ statements

    def _is_refused(self, statement: ast.Statement) -> bool:
        """Return whether a read-only system refuses the statement."""
        return changes(statement) or (self.mode.is_fixed and not leaves_database_alone(statement))

    def _run(self, question: _Question, session: SessionContext) -> Result:
        parsed, text, timeout_ms = question.parsed, question.text, question.timeout_ms
        if self.mode.read_only and self._is_refused(parsed.statement):
            self.mode.require_running()
        if isinstance(parsed.statement, ast.Select) and parsed.statement.into is None:
            return self._select(question, session) if parsed.statement.table is None else self._table(question, session)
        statement = self._filled(parsed, question.given)
        match statement:
            case ast.Select():
                return self._select_into(statement, session, text, timeout_ms, question.request)
            case ast.Insert():
                moment = self._queries.moment(session)
                insert = partial(self._writer.insert, statement, moment, question.request)
                return Result("", count=self._timed(insert))
            case ast.Explain():
                return self._explain(statement, session, question)
            case ast.Show():
                return self._show(statement, question, session)
            case ast.Count():
                return _result(*self._showing.count(statement, session, question.limits))
            case ast.NotSupported(what):
                raise NotSupportedError(what)
            case _ if isinstance(statement, ast.UserStatement):
                if self._users is None:
                    raise NotSupportedError("users in a folder that is opened without a server")
                asked = UserRequest(session.access, question.request, self._queries.moment(session))
                return _optional_result(self._users.run(statement, asked))
            case _ if isinstance(statement, ast.ClusterStatement):
                return _optional_result(run_cluster_statement(statement, self._nodes()))
            case _:
                return Result("", count=self._change(statement, session, question))

    def _change(self, statement: ast.Statement, session: SessionContext, question: _Question) -> int:
        """Run a statement that returns no rows; return the number of objects that it changed."""
        request = question.request
        match statement:
            case ast.DeleteData(paths, where):
                times = time_range(where, self._queries.moment(session))
                # `patterns_to_delete` resolves aliases and views, so the schema must be current.
                wait_for_schema(self._store, patterns_of(statement), request.deadline_ns)
                patterns, count = patterns_to_delete(self._store.schema, map(str, paths))
                self._store.delete(patterns, times, request=request)
                return count
            case ast.Load():
                level = self._queries.options.automatic_schema.database_level
                return load_files(self._store, statement, level, session.load_folders, request)
            case ast.Flush(databases):
                self._store.flush(self._existing(databases, request))
                return 0
            case ast.Merge(databases, full):
                with self._queries.merging(question.text, session.asker, question.timeout_ms) as merge:
                    merge.run(self._existing(databases, request), full=full)
                return 0
            case ast.ClearCache(local):
                return self.every_node.clear(local=local)
            case ast.SetSystem(read_only, local):
                return self.every_node.set_mode(read_only=read_only, local=local)
            case ast.SetConfiguration(settings, node):
                return self.every_node.configuration.set(dict(settings), node)
            case ast.LoadConfiguration(local):
                return self.every_node.configuration.load(local=local)
            case ast.KillQuery(query_id):
                return self.every_node.kill(query_id, session.access)
            case ast.SetTimeZone(zone):
                zone_of(zone)
                session.zone = zone
                return 0
            case ast.SetPartialResults(allowed):
                session.partial = allowed
                return 0
            case ast.SetSqlDialect():
                return 0
            case _ if isinstance(statement, ast.SyncStatement):
                return run_sync_statement(statement, self._sync)
            case _:
                return self._schema.run(statement, session, question.text, request)

    # ------------------------------------------------------------------ SELECT

    def _select(self, question: _Question, session: SessionContext) -> Result:
        point = self._queries.read_point(session, question.limits)
        parsed, given = question.parsed, question.given
        assert isinstance(parsed.statement, ast.Select)
        plan: Callable[[], QueryPlan]
        if lacks_range(parsed.statement):
            select = self._filled(parsed, given)
            assert isinstance(select, ast.Select)
            ranged = self._with_range(select, session, question.text, question.timeout_ms, point)
            plan = partial(self._queries.plan, ranged, session)
        else:
            fill = partial(self._filled, parsed, given)
            plan = partial(self._queries.cached_plan, parsed, given, session, fill)
        settled = (
            plan() if point.settled else self._queries.consistent_plan(point, self._patterns(parsed), plan, _sources_of)
        )
        self._store.finish_schema_read(point)
        return self._started(settled, question, session, point)

    def _with_range(
        self, select: ast.Select, session: SessionContext, text: str, timeout_ms: int | None, point: ReadPoint
    ) -> ast.Select:
        """Return the SELECT with a range for its time windows. A query may have to be run to find this range."""
        if not lacks_range(select):
            return select
        moment = self._queries.moment(session)
        bounds = bounds_query(select, moment)
        if bounds is None:
            return with_range(select, (), moment)
        plan = self._queries.consistent_plan(
            point, patterns_of(bounds), lambda: self._queries.plan(bounds, session), _sources_of
        )
        execution = self._queries.start(plan, text, session.asker, timeout_ms, point)
        found: list[int] = []
        try:
            while (block := execution.next_block()) is not None:
                found += [int(time) for column in block.columns for time in column.numbers[column.present]]
        finally:
            execution.close()
        return with_range(select, found, moment)

    def _patterns(self, parsed: ast.Parsed) -> tuple[str, ...]:
        """Return the path patterns of a statement.

        The patterns are cached for each shape (statement without its literals).
        """
        found = self._patterns_known.get(parsed.shape)
        if found is None:
            found = patterns_of(parsed.statement)
            self._patterns_known.put(parsed.shape, found)
        return found

    def _filled(self, parsed: ast.Parsed, given: tuple[ast.Literal, ...]) -> ast.Statement:
        """Return the statement with its parameters filled in."""
        return self._binder.filled(parsed.statement, given) if given else parsed.statement

    def _table(self, question: _Question, session: SessionContext) -> Result:
        """Run a SELECT from information_schema."""
        select = self._binder.filled(question.parsed.statement, question.given)
        assert isinstance(select, ast.Select)
        shown, point = self._showing.show(show_of(select), session, question.limits)
        plan = self._queries.physical(plan_table(select, shown, self._queries.moment(session)), session)
        return self._started(plan, question, session, point)

    def _existing(self, databases: Sequence[ast.PathExpression], request: WriteRequest) -> list[str] | None:
        """Return the databases that a statement names, or None if it names none. Raises UserMistake 504."""
        named = [str(path) for path in databases]
        if named:
            wait_for_schema(self._store, named, request.deadline_ns)
        for path in named:
            if not self._store.schema.is_database(path):
                raise UserMistake(f"Path [{path}] is not a database", code=504)
        return named or None

    def _show(self, statement: ast.Show, question: _Question, session: SessionContext) -> Result:
        shown, point = self._showing.show(statement, session, question.limits)
        if not chooses(statement):
            return _result(shown, point)
        plan = self._queries.physical(plan_show(statement, shown, self._queries.moment(session)), session)
        return self._started(plan, question, session, point)

    def _started(self, plan: QueryPlan, question: _Question, session: SessionContext, point: ReadPoint) -> Result:
        execution = self._queries.start(plan, question.text, session.asker, question.timeout_ms, point)
        return Result(execution.query, plan.fields, timed=plan.timed, rows=execution, point=point)

    def _select_into(
        self, select: ast.Select, session: SessionContext, text: str, timeout_ms: int | None, request: WriteRequest
    ) -> Result:
        point = self._store.read_point(session.consistency, deadline_ns=request.deadline_ns)
        select = self._with_range(select, session, text, timeout_ms, point)
        logical = self._queries.consistent_plan(
            point,
            patterns_of(select),
            lambda: plan_select(select, self._queries.context(session)),
            lambda p: sources_of(p.root),
        )
        self._store.finish_schema_read(point)
        targets = targets_of(select, logical)
        for target in targets:
            authorize_write(target.device, (target.measurement,), self._authorization_request(session.access))
        check_types(targets, logical.fields, self._store.schema)

        def write(device: str, times: Int64Array, columns: Mapping[str, Column], aligned: bool) -> None:
            insert = self._writer.insert_columns
            self._timed(partial(insert, device, times, columns, aligned=aligned or None, request=request.unnumbered))

        plan = self._queries.physical(logical, session)
        execution = self._queries.start(plan, text, session.asker, timeout_ms, point)
        try:
            counts = write_into(execution, targets, write)
        finally:
            execution.close()
        return fixed_result(*written(targets, source_columns(select, logical), counts))

    def run_continuous(self, query: ContinuousQuery, moment: int) -> None:
        """Run a continuous query for one moment, with the privileges of its user. Raises the errors of `execute`."""
        self.mode.require_running()
        access = UNRESTRICTED
        if query.user:
            if self._users is None:
                raise SemanticError(
                    f"continuous query {query.name} runs as user {query.user}, and only a server has users: start one"
                )
            access = access_of(self._users.users(), query.user)
        session = SessionContext(query.zone, access=access)
        select = query.select(moment)
        with self._counted(statements=1):
            authorize(select, self._authorization_request(access))
            self._select_into(select, session, query.text, None, UNNUMBERED).close()

    def _nodes(self) -> ClusterAdmin:
        if self._cluster is None:
            raise NotSupportedError("statements about nodes outside a cluster")
        return self._cluster.admin

    def _explain(self, statement: ast.Explain, session: SessionContext, question: _Question) -> Result:
        if isinstance(statement.statement, ast.Rebalance) and not statement.analyze:
            return _optional_result(show_plan(statement.statement, self._nodes()))
        if not isinstance(statement.statement, ast.Select):
            raise NotSupportedError("EXPLAIN of statements other than SELECT and REBALANCE CLUSTER")
        if statement.analyze and statement.statement.into is not None:
            raise NotSupportedError("EXPLAIN ANALYZE of SELECT INTO, which would write: leave INTO out")
        point = self._queries.read_point(session, question.limits)
        select = self._with_range(statement.statement, session, question.text, question.timeout_ms, point)
        plan = self._queries.consistent_plan(
            point, patterns_of(select), lambda: self._queries.plan(select, session), _sources_of
        )
        if not statement.analyze:
            title, lines = "distribution plan", explain(plan) if plan.fields else []
        else:
            started = self._clock.monotonic_ns()
            execution = self._queries.start(plan, question.text, session.asker, question.timeout_ms, point)
            try:
                while execution.next_block() is not None:
                    continue
            finally:
                execution.close()
            elapsed = self._clock.monotonic_ns() - started
            title, lines = "Explain Analyze", explain_analysis(execution.drivers, elapsed, execution.memory.peak)
        return fixed_result([Field(title, DataType.TEXT)], [(line,) for line in lines])


def _result(shown: RowSet, point: ReadPoint) -> Result:
    return fixed_result(shown.fields, shown.rows, point, timed=shown.timed)


def _sources_of(plan: QueryPlan) -> Sources:
    return plan.sources


def _optional_result(shown: RowSet | None) -> Result:
    return Result("", count=1) if shown is None else fixed_result(shown.fields, shown.rows)


@contextmanager
def _recorded(trail: Trail | None, event: str | None, text: str) -> Iterator[None]:
    """Report a statement and its outcome to the audit trail if the statement is audited or was denied."""
    code = 0
    try:
        yield
    except Exception as error:
        code = getattr(error, "code", _INTERNAL)
        raise
    finally:
        kind = "denied" if code == NoPermission.code else event
        if trail is not None and kind is not None:
            trail.record(kind, text, code)


def _points_of(outcome: int | Exception) -> int:
    """Return the number of points that a batch with this outcome has written."""
    if isinstance(outcome, int):
        return outcome
    return outcome.points if isinstance(outcome, PartlyWritten) else 0
