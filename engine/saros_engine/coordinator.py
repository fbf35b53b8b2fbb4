"""The coordinator: one statement from its text to its result.

    text --statement cache--> tree --bind ?--> SELECT   plan (`plan_cache`) -> execution -> blocks
                                               INSERT   tablets -> store
                                               others   schema, show, delete, flush, queries, users

Between tree and effect stands `authorization`; whoever keeps an audit trail is told what came of the statement.

Each SELECT gets an id, a view of the store, a memory account and a deadline; all of them are gone when it is over
(`open_queries` says what is not). Thread-safe; `execute` runs on the caller's thread up to the first block.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import get_args

from saros_cluster.users.privileges import Privilege
from saros_cluster.users.users import Users
from saros_engine import ddl
from saros_engine.access import UNRESTRICTED, Access, NoPermission, Trail, access_of
from saros_engine.authorization import (
    RULES,
    Asked,
    authorize,
    authorize_plan,
    authorize_views,
    authorize_write,
    schema_for,
)
from saros_engine.cluster_info import ClusterAdmin, ClusterInfo, OneNode
from saros_engine.cluster_statements import run_cluster_statement
from saros_engine.continuous import ContinuousQuery, continuous_query, creation, removal
from saros_engine.database import Database, Writing
from saros_engine.distribution import distribute
from saros_engine.errors import EngineError, NotSupportedError, SemanticError
from saros_engine.every_node import EveryNode, OtherNodes
from saros_engine.execution import QueryExecution
from saros_engine.explain import explain, explain_analysis
from saros_engine.extension_statements import Installations, extension_changes, show_functions, show_triggers
from saros_engine.extensions.triggers import Triggers
from saros_engine.information_schema import plan_table, show_of
from saros_engine.inserting import ColumnBatch, Inserting
from saros_engine.loading import load_files
from saros_engine.memory import QueryMemory
from saros_engine.merging import MergeExecution
from saros_engine.optimizer import optimize
from saros_engine.options import EngineOptions
from saros_engine.plan import Field, Node, QueryPlan
from saros_engine.plan_cache import Asking, PlanCache
from saros_engine.planner import LastItem, LogicalPlan, PlanContext, last_scan, plan_select
from saros_engine.planner.into import targets_of
from saros_engine.query_registry import Execution, QueryRegistry
from saros_engine.result import Result, fixed_result
from saros_engine.select_into import write_into, written
from saros_engine.show import Shown, count_schema, show_cluster, show_schema
from saros_engine.sync_statements import SyncDesk, run_sync_statement, show_sync
from saros_engine.templates import change_templates
from saros_engine.time_filter import Moment, constant_time, time_range
from saros_engine.times import format_time, zone_of
from saros_engine.user_statements import UserStatements
from saros_engine.view_statements import create_views, drop_views, planned_views, rename_view
from saros_engine.writing import Writer, points_of
from saros_grammar import ast
from saros_grammar.bind import ParameterBinder
from saros_grammar.cache import StatementCache
from saros_scheduler import DriverScheduler
from saros_storage.block import Column
from saros_storage.clock import Clock
from saros_storage.errors import StorageError
from saros_storage.paths import split_series
from saros_storage.read_point import HERE, Horizon, ReadPoint
from saros_storage.reading import TimeRange
from saros_storage.tablet import Tablet
from saros_storage.types import DataType, Int64Array

_TEXT = DataType.TEXT
_NANOSECONDS_PER_MS = 1_000_000
#: Statements that look up here what they change.
_LOOK_FIRST = (
    *get_args(ast.TemplateStatement),
    *get_args(ast.ViewStatement),
    ast.AlterDatabase,
    ast.CreateContinuousQuery,
    ast.DropContinuousQuery,
    *get_args(ast.ExtensionStatement),
    ast.DeleteDatabases,
    ast.DeleteTimeseries,
    ast.AlterTimeseries,
    ast.SetTtl,
    ast.UnsetTtl,
)
_INTERNAL = 2001


@dataclass(slots=True)
class SessionContext:
    """What a session has set; SET TIME ZONE changes it."""

    zone: str = "UTC"
    #: Of reads in a cluster: strong, mid or weak.
    consistency: str = "strong"
    access: Access = UNRESTRICTED
    trail: Trail | None = None
    #: What it was shown.
    horizon: Horizon = field(default_factory=Horizon)
    #: Folders that LOAD may read from; None: whatever the process may.
    load_folders: tuple[str, ...] | None = None
    #: What its reads see; None: what there is when they begin.
    point: ReadPoint | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    """A statement as it came: `given` are the values of its `?`."""

    text: str
    parsed: ast.Parsed
    given: tuple[ast.Literal, ...]
    timeout_ms: int | None


@dataclass(slots=True)
class EngineCounters:
    """Sums since the start."""

    statements: int = 0
    #: Statements and batches that ended by an error before their first row.
    failures: int = 0
    points_written: int = 0
    #: Plans of SELECTs: made, and used again.
    plans_made: int = 0
    plans_reused: int = 0


class QueryEngine:
    """See the module."""

    def __init__(
        self,
        store: Database,
        scheduler: DriverScheduler,
        clock: Clock,
        options: EngineOptions,
        cluster: ClusterInfo | None = None,
        users: UserStatements | None = None,
        admin: ClusterAdmin | None = None,
        sync: SyncDesk | None = None,
        installations: Installations | None = None,
        others: OtherNodes | None = None,
    ) -> None:
        """`users`: None if this database keeps none; `admin`: None if it is no cluster's, `sync`: if it is one's.

        `installations`: what the other nodes have installed, `others`: what they tell; None: there are none.
        """
        self._installations = installations
        self._admin = admin
        self._sync = sync
        self._store = store
        self._users = users
        self._cluster = OneNode(store, _version()) if cluster is None else cluster
        self._scheduler = scheduler
        self._clock = clock
        self._options = options
        self._unit = store.options.time_unit
        self._statements = StatementCache(options.statements_cached)
        self._binder = ParameterBinder(self._unit.value)
        self._plans = PlanCache(options.plans_cached)
        node = self._cluster.node
        self._registry = QueryRegistry(clock, node)
        #: What is told, and asked of, node by node.
        self.every_node = EveryNode(self._registry, store, clock, node, others)
        self._triggers = Triggers(lambda: store.schema.catalogue)
        self._writer = Writer(store, options.default_database_level, clock, self._triggers)
        self._idle = threading.Condition()
        self._open = 0
        self._counters = EngineCounters()
        self._counting = threading.Lock()

    # ------------------------------------------------------------------ entry points

    def execute(
        self,
        text: str,
        session: SessionContext,
        parameters: Sequence[object] = (),
        *,
        timeout_ms: int | None = None,
    ) -> Result:
        """Run one statement. Raises what is wrong with it: ParseError, UserMistake, EngineError, StorageError."""
        with self._counted(statements=1):
            return self._execute(text, session, parameters, timeout_ms)

    @contextmanager
    def _counted(self, *, statements: int) -> Iterator[None]:
        failed = True
        try:
            yield
            failed = False
        finally:
            with self._counting:
                self._counters.statements += statements
                self._counters.failures += failed

    def _execute(
        self, text: str, session: SessionContext, parameters: Sequence[object], timeout_ms: int | None
    ) -> Result:
        parsed = self._statements.get(text)
        question = _Question(text, parsed, (), timeout_ms)
        if parsed.parameters or parameters:
            question = replace(question, given=tuple(self._binder.literals(parsed.statement, parameters)))
        if session.trail is None and session.access.unrestricted:
            return self._run(question, session)
        with _recorded(session.trail, RULES[type(parsed.statement)].event, parsed.redacted or text):
            authorize(parsed.statement, self._asked(session.access))
            return self._run(question, session)

    def _asked(self, access: Access) -> Asked:
        return Asked(access, self._store, Users() if self._users is None else self._users.users())

    def insert_columns(
        self,
        device: str,
        times: Int64Array,
        columns: Mapping[str, Column],
        *,
        aligned: bool | None = None,
        session: SessionContext | None = None,
    ) -> int:
        """Write a batch of one device; see `writing.Writer.insert_columns`. `session`: None may everything."""
        with self._counted(statements=0):
            if session is not None and not session.access.unrestricted:
                with _recorded(session.trail, None, f"columns for {device}"):
                    authorize_write(device, tuple(columns), self._asked(session.access))
            points = self._writer.insert_columns(device, times, columns, aligned=aligned)
        self._count_points(points)
        return points

    def insert_together(self, batches: Sequence[ColumnBatch]) -> list[Inserting | None]:
        """Begin to write batches, each by itself; None: `insert_columns` that one, which also says what is wrong."""
        known = [self._known(batch) for batch in batches]
        ready = [(tablet, batch.request) for tablet, batch in zip(known, batches, strict=True) if tablet is not None]
        writings = iter(self._store.hand_over(ready))
        return [None if tablet is None else self._inserting(tablet, next(writings)) for tablet in known]

    def _known(self, batch: ColumnBatch) -> Tablet | None:
        """The batch as it is written; None if it is not known how, or may not be."""
        tablet = self._writer.known_tablet(batch.device, batch.times, batch.columns, aligned=batch.aligned)
        if tablet is not None and not batch.access.unrestricted:
            try:
                authorize_write(batch.device, tuple(batch.columns), self._asked(batch.access))
            except (EngineError, StorageError):
                return None
        return tablet

    def _inserting(self, tablet: Tablet, writing: Writing | None) -> Inserting | None:
        if writing is None:
            return None
        return Inserting(writing, points_of(tablet.rows, tablet.columns), self._count_points)

    def _count_points(self, points: int) -> None:
        with self._counting:
            self._counters.points_written += points

    def counters(self) -> EngineCounters:
        """What was done so far."""
        made, reused = self._plans.counts()
        with self._counting:
            return replace(self._counters, plans_made=made, plans_reused=reused)

    @property
    def open_queries(self) -> int:
        """Queries of which something is left: 0 when all is quiet."""
        return self._open

    def close(self) -> None:
        """End all queries and wait until nothing of them is left; let triggers run out."""
        self._triggers.calls.close()
        for running in self._registry.running():
            running.execution.cancel("the database is closing")
        with self._idle:
            while self._open:
                self._idle.wait()

    # ------------------------------------------------------------------ statements

    def _run(self, question: _Question, session: SessionContext) -> Result:
        parsed, text, timeout_ms = question.parsed, question.text, question.timeout_ms
        if isinstance(parsed.statement, ast.Select) and parsed.statement.into is None:
            return self._select(question, session) if parsed.statement.table is None else self._table(question, session)
        statement = self._binder.filled(parsed.statement, question.given) if question.given else parsed.statement
        match statement:
            case ast.Select():
                return self._select_into(statement, session, text, timeout_ms)
            case ast.Insert():
                moment = Moment(session.zone, self._unit, self._now())

                def time_of(expression: ast.Expression | None) -> int:
                    return constant_time(expression, moment)

                points = self._writer.insert(statement, time_of, session.zone, self._unit)
                self._count_points(points)
                return Result("", count=points)
            case ast.Explain():
                return self._explain(statement, session, text, timeout_ms)
            case ast.Show():
                return self._show(statement, session)
            case ast.Count():
                point = self._catch_up(session)
                shown = count_schema(statement, schema_for(session.access, self._store, Privilege.READ_SCHEMA))
                self._store.looked_at_schema(point)
                return fixed_result(shown.fields, shown.rows, point=point)
            case ast.NotSupported(what):
                raise NotSupportedError(what)
            case ast.Merge():
                self._merge(statement, session, text, timeout_ms)
                return Result("", count=0)
            case _ if isinstance(statement, ast.UserStatement):
                return self._run_user_statement(statement, session)
            case _ if isinstance(statement, ast.ClusterStatement):
                return self._run_cluster_statement(statement)
            case _ if isinstance(statement, ast.SyncStatement):
                return Result("", count=run_sync_statement(statement, self._sync_desk()))
            case _:
                return Result("", count=self._change(statement, session, text))

    def _sync_desk(self) -> SyncDesk:
        if self._sync is None:
            raise NotSupportedError("saros sync to and from clusters")
        return self._sync

    def _run_cluster_statement(self, statement: ast.ClusterStatement) -> Result:
        if self._admin is None:
            raise NotSupportedError("nodes of a database that is no cluster's")
        shown = run_cluster_statement(statement, self._admin)
        return Result("", count=1) if shown is None else fixed_result(shown.fields, shown.rows)

    def _run_user_statement(self, statement: ast.UserStatement, session: SessionContext) -> Result:
        if self._users is None:
            raise NotSupportedError("users of a database that keeps none")
        shown = self._users.run(statement, session.access)
        return Result("", count=1) if shown is None else fixed_result(shown.fields, shown.rows)

    def _change(self, statement: ast.Statement, session: SessionContext, text: str) -> int:
        """Carry out a statement that answers no rows; how many things it changed."""
        store = self._store
        if isinstance(statement, _LOOK_FIRST):
            store.catch_up("strong")
        match statement:
            case ast.DeleteData(paths, where):
                times = time_range(where, Moment(session.zone, self._unit, self._now()))
                store.delete([str(path) for path in paths], times)
                return 0
            case ast.Load():
                return load_files(store, statement, self._options.default_database_level, session.load_folders)
            case ast.Flush(databases):
                store.flush([str(path) for path in databases] or None)
            case ast.KillQuery(query_id):
                return self.every_node.kill(query_id, session.access)
            case ast.SetTimeZone(zone):
                zone_of(zone)
                session.zone = zone
            case _:
                return self._change_schema(statement, session, text)
        return 0

    def _change_schema(self, statement: ast.Statement, session: SessionContext, text: str) -> int:
        """Carry out a statement that changes the schema; how many things it changed."""
        store = self._store
        match statement:
            case ast.CreateDatabase():
                return ddl.create_database(store, statement)
            case ast.AlterDatabase():
                return ddl.alter_database(store, statement)
            case ast.DeleteDatabases():
                return ddl.delete_databases(store, statement)
            case ast.CreateTimeseries():
                return ddl.create_timeseries(store, self._writer, statement)
            case ast.DeleteTimeseries():
                return ddl.delete_timeseries(store, statement)
            case ast.AlterTimeseries():
                return ddl.alter_timeseries(store, statement)
            case ast.SetTtl() | ast.UnsetTtl():
                return ddl.change_ttl(store, statement)
            case _ if isinstance(statement, ast.TemplateStatement):
                return change_templates(store, statement)
            case ast.CreateView():
                views = planned_views(statement, self._plan_context(session))
                authorize_views(views, self._asked(session.access))
                return create_views(store, self._writer, views, exist=statement.exists)
            case ast.RenameView():
                return rename_view(store, statement)
            case ast.DropViews():
                return drop_views(store, statement)
            case ast.CreateContinuousQuery():
                return self._create_continuous(statement, session, text)
            case ast.DropContinuousQuery(name):
                store.change_schema(removal(name, store.schema))
            case _ if isinstance(statement, ast.ExtensionStatement):
                store.change_schema(extension_changes(statement, store.schema.catalogue, self._installations))
            case _:
                raise AssertionError(statement)
        return 1

    def _create_continuous(self, create: ast.CreateContinuousQuery, session: SessionContext, text: str) -> int:
        moment = Moment(session.zone, self._unit, self._now())
        query = continuous_query(create, text, session.access.user, moment)
        # What is wrong with it shows now, and not when it runs.
        select = query.select(moment.now)
        self._authorize(select, session)
        targets_of(select, plan_select(select, self._plan_context(session)))
        self._store.change_schema(creation(query, self._store.schema))
        return 1

    def run_continuous(self, query: ContinuousQuery, moment: int) -> None:
        """Carry out a continuous query for a moment, as the user who created it. Raises what `execute` raises."""
        access = UNRESTRICTED
        if query.user:
            if self._users is None:
                raise SemanticError(f"this database keeps no users, and {query.name} is to run as {query.user}")
            access = access_of(self._users.users(), query.user)
        session = SessionContext(query.zone, access=access)
        select = query.select(moment)
        with self._counted(statements=1):
            self._authorize(select, session)
            self._select_into(select, session, query.text, None).close()

    def _authorize(self, statement: ast.Statement, session: SessionContext) -> None:
        if not session.access.unrestricted:
            authorize(statement, self._asked(session.access))

    def _merge(self, statement: ast.Merge, session: SessionContext, text: str, timeout_ms: int | None) -> None:
        """Unless its client says so, a MERGE may take longer than a query."""
        deadline = self._clock.monotonic_ns() + timeout_ms * _NANOSECONDS_PER_MS if timeout_ms else None
        execution = MergeExecution(self._registry.next_id(), self._store, self._clock, deadline)
        with self._idle:
            self._open += 1
        self._registry.add(text, session.access.user, execution)
        try:
            execution.run([str(path) for path in statement.databases] or None, full=statement.full)
        finally:
            self._ended(execution)

    # ------------------------------------------------------------------ SELECT

    def _select(self, question: _Question, session: SessionContext) -> Result:
        point = self._catch_up(session)
        plan = self._cached_plan(question, session)
        self._store.looked_at_schema(point)
        execution = self._start(plan, question.text, session.access.user, question.timeout_ms, point)
        return Result(execution.query, plan.fields, timed=plan.timed, rows=execution, point=point)

    def _catch_up(self, session: SessionContext) -> ReadPoint:
        return self._store.catch_up(session.consistency, session.horizon) if session.point is None else session.point

    def _select_into(self, select: ast.Select, session: SessionContext, text: str, timeout_ms: int | None) -> Result:
        point = self._store.catch_up(session.consistency)
        logical = plan_select(select, self._plan_context(session))
        targets = targets_of(select, logical)
        for target in targets:
            authorize_write(target.device, (target.measurement,), self._asked(session.access))

        def write(device: str, times: Int64Array, columns: Mapping[str, Column], aligned: bool) -> None:
            self._count_points(self._writer.insert_columns(device, times, columns, aligned=aligned or None))

        execution = self._start(self._physical(logical, session), text, session.access.user, timeout_ms, point)
        try:
            counts = write_into(execution, targets, write)
        finally:
            execution.close()
        names = [field.name for field in logical.fields[len(logical.fields) - len(logical.sources) :]]
        return fixed_result(*written(targets, names, counts))

    def _cached_plan(self, question: _Question, session: SessionContext) -> QueryPlan:
        asking = Asking(
            session.access.key,
            Moment(session.zone, self._unit, self._now()),
            self._store.schema.version,
            lambda: self._plan_context(session),
            lambda root: authorize_plan(root, session.access),
        )
        planned = self._plans.plan(question.parsed, question.given, asking)
        return self._distributed(planned.fields, planned.root, timed=planned.timed)

    def _plan(self, select: ast.Select, session: SessionContext) -> QueryPlan:
        return self._physical(plan_select(select, self._plan_context(session)), session)

    def _plan_context(self, session: SessionContext) -> PlanContext:
        schema = schema_for(session.access, self._store, Privilege.READ_DATA)
        return PlanContext(schema, Moment(session.zone, self._unit, self._now()))

    def _physical(self, logical: LogicalPlan, session: SessionContext) -> QueryPlan:
        root = optimize(logical.root)
        authorize_plan(root, session.access)
        return self._distributed(logical.fields, root, timed=logical.timed)

    def _distributed(self, fields: tuple[Field, ...], root: Node, *, timed: bool) -> QueryPlan:
        return QueryPlan(fields, timed, root, distribute(root, self._options.parallelism))

    def _start(self, plan: QueryPlan, text: str, user: str, timeout_ms: int | None, point: ReadPoint) -> QueryExecution:
        view = self._store.view(point) if point.picture is None else point.picture()
        execution = QueryExecution(
            self._registry.next_id(),
            plan,
            view,
            QueryMemory(self._options.query_memory_bytes_max),
            self._clock,
            self._unit,
            self._ended,
            self._options.spill(),
        )
        with self._idle:
            self._open += 1
        self._registry.add(text, user, execution)
        limit_ms = self._options.query_timeout_ms if timeout_ms is None else timeout_ms
        deadline = self._clock.monotonic_ns() + limit_ms * _NANOSECONDS_PER_MS if limit_ms else None
        execution.start(self._scheduler, deadline)
        return execution

    def _ended(self, execution: Execution) -> None:
        self._registry.remove(execution)
        with self._idle:
            self._open -= 1
            self._idle.notify_all()

    def _explain(self, statement: ast.Explain, session: SessionContext, text: str, timeout_ms: int | None) -> Result:
        if not isinstance(statement.statement, ast.Select):
            raise NotSupportedError("EXPLAIN of a statement that is not a SELECT")
        if statement.analyze and statement.statement.into is not None:
            raise NotSupportedError("EXPLAIN ANALYZE of a SELECT INTO, which would have to write: leave INTO out")
        point = self._catch_up(session)
        plan = self._plan(statement.statement, session)
        if not statement.analyze:
            lines = explain(plan)
        else:
            started = self._clock.monotonic_ns()
            execution = self._start(plan, text, session.access.user, timeout_ms, point)
            try:
                while execution.next_block() is not None:
                    continue
            finally:
                execution.close()
            elapsed = self._clock.monotonic_ns() - started
            lines = explain_analysis(execution.drivers, elapsed, execution.memory.peak)
        return fixed_result([Field("distribution plan", _TEXT)], [(line,) for line in lines])

    # ------------------------------------------------------------------ SHOW

    def _show(self, statement: ast.Show, session: SessionContext) -> Result:
        shown, point = self._shown(statement, session)
        return fixed_result(shown.fields, shown.rows, point=point)

    def _table(self, question: _Question, session: SessionContext) -> Result:
        """A SELECT from information_schema."""
        select = self._binder.filled(question.parsed.statement, question.given)
        assert isinstance(select, ast.Select)
        shown, point = self._shown(show_of(select), session)
        logical = plan_table(select, shown, Moment(session.zone, self._unit, self._now()))
        plan = self._physical(logical, session)
        execution = self._start(plan, question.text, session.access.user, question.timeout_ms, point)
        return Result(execution.query, plan.fields, timed=plan.timed, rows=execution, point=point)

    def _shown(self, statement: ast.Show, session: SessionContext) -> tuple[Shown, ReadPoint]:
        """What SHOW shows, and up to where it looked."""
        kind = statement.kind

        def time(ticks: int) -> str:
            return format_time(ticks, session.zone, self._unit)

        match kind:
            case ast.ShowKind.QUERIES | ast.ShowKind.PARTITIONS | ast.ShowKind.FILES:
                return self.every_node.show(statement, session.zone, session.access), HERE
            case ast.ShowKind.FUNCTIONS:
                self._catch_up(session)
                return show_functions(self._store.schema.catalogue), HERE
            case ast.ShowKind.TRIGGERS:
                self._catch_up(session)
                return show_triggers(self._triggers), HERE
            case ast.ShowKind.VERSION:
                return Shown(_texts("Version"), [(_version(),)]), HERE
            case ast.ShowKind.TIME_ZONE:
                return Shown(_texts("TimeZone"), [(session.zone,)]), HERE
            case ast.ShowKind.CURRENT_TIMESTAMP:
                return Shown(_texts("CurrentTimestamp"), [(time(self._now()),)]), HERE
            case ast.ShowKind.VARIABLES:
                return Shown(_texts("Variable", "Value"), list(self._variables())), HERE
            case ast.ShowKind.CLUSTER | ast.ShowKind.CLUSTER_CHANGE | ast.ShowKind.REGIONS:
                return show_cluster(statement, self._cluster), HERE  # also without a leader: nothing is caught up with
            case ast.ShowKind.SENDERS | ast.ShowKind.RECEIVERS | ast.ShowKind.SYNC:
                return show_sync(kind, self._sync_desk(), lambda seconds: time(seconds * self._unit.value)), HERE
        point = self._catch_up(session)
        schema = schema_for(session.access, self._store, Privilege.READ_SCHEMA)
        shown = show_schema(statement, schema, partial(self._latest_times, point, session.access))
        self._store.looked_at_schema(point)
        return shown, point

    def _latest_times(self, point: ReadPoint, access: Access, paths: Sequence[str]) -> dict[str, int]:
        """The time of each series' latest point; series without points, or that may not be read, are missing."""
        items = []
        for path in paths:
            if not access.may(Privilege.READ_DATA, path):
                continue
            device, measurement = split_series(path)
            known = self._store.schema.device(device)
            if known is not None and measurement in known.series:
                items.append(LastItem(device, measurement, known.series[measurement].type, known.aligned, path))
        scan = last_scan(items, TimeRange())
        plan = QueryPlan(scan.fields, True, scan, distribute(scan, 1))
        execution = self._start(plan, "show latest timeseries", access.user, None, point)
        found: dict[str, int] = {}
        try:
            while (block := execution.next_block()) is not None:
                names = [str(name) for name in block.columns[0].to_list()]
                found.update(zip(names, block.times.tolist(), strict=True))
        finally:
            execution.close()
        return found

    def _variables(self) -> list[tuple[str, str]]:
        options = self._store.options
        return [
            ("TimestampPrecision", self._unit.suffix),
            ("TimePartitionInterval", str(options.time_partition_interval)),
            ("Durability", options.durability),
            ("QueryTimeoutMs", str(self._options.query_timeout_ms)),
            ("QueryMemoryBytes", str(self._options.query_memory_bytes_max)),
            ("Parallelism", str(self._options.parallelism)),
            *self._cluster.variables(),
        ]

    def _now(self) -> int:
        return self._clock.now_ns() * self._unit.value // 1_000_000_000


@contextmanager
def _recorded(trail: Trail | None, event: str | None, text: str) -> Iterator[None]:
    """Tell the trail of a statement that belongs there, or that was denied, once it is known what came of it."""
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


def _version() -> str:
    from importlib.metadata import version

    return version("saros")


def _texts(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, _TEXT) for name in names)
