"""The executor of SHOW and COUNT: returns the rows, and the read point at which they were read.

The rows come from specialised modules (`show_schema`, `show_cluster`, `cluster_requests`, ...).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial

from saros_cluster.users.privileges import Privilege
from saros_engine.base.cluster_info import ClusterInfo
from saros_engine.base.database import Database
from saros_engine.base.row_set import Row, RowSet
from saros_engine.base.session_context import SessionContext
from saros_engine.execution.queries import Queries, ReadLimits
from saros_engine.expressions.times import format_time
from saros_engine.extensions.triggers import Triggers
from saros_engine.plan.plan import Field, QueryPlan
from saros_engine.planner import LastItem, last_scan
from saros_engine.planning.distribution import distribute
from saros_engine.planning.schema_patterns import patterns_of
from saros_engine.security.authorization import schema_for
from saros_engine.show.cluster_requests import ClusterRequests
from saros_engine.show.show_cluster import OF_CLUSTER, show_cluster
from saros_engine.show.show_schema import count_schema, show_schema
from saros_engine.show.show_times import Points
from saros_engine.statements.extension_statements import show_functions, show_triggers
from saros_engine.statements.sync_statements import SyncAdmin, show_sync
from saros_grammar.syntax import ast
from saros_storage.base.paths import split_series
from saros_storage.base.types import DataType
from saros_storage.scan.read_point import HERE, ReadPoint
from saros_storage.scan.reading import TimeRange

_SETTINGS = (
    Field("SchemaReplicationFactor", DataType.INT32),
    Field("DataReplicationFactor", DataType.INT32),
    Field("TimePartitionOrigin", DataType.INT64),
    Field("TimePartitionInterval", DataType.INT64),
)
#: Columns about the number of groups that hold a database's data. The minimum and the maximum are null in Saros.
_GROUP_SETTINGS = tuple(
    Field(f"{bound}{what}RegionGroupNum", DataType.INT32) for what in ("Schema", "Data") for bound in ("", "Min", "Max")
)
#: The version of IoTDB's session protocol that the server implements.
IOTDB_PROTOCOL = "V_3"


class ShowExecutor:
    """Executes SHOW and COUNT for sessions."""

    def __init__(
        self,
        store: Database,
        queries: Queries,
        cluster: ClusterInfo,
        every_node: ClusterRequests,
        triggers: Triggers,
        sync: SyncAdmin | None,
    ) -> None:
        self._store = store
        self._queries = queries
        self._unit = store.options.time_unit
        self._cluster = cluster
        self._every_node = every_node
        self._triggers = triggers
        self._sync = sync

    def count(self, statement: ast.Count, session: SessionContext, limits: ReadLimits) -> tuple[RowSet, ReadPoint]:
        """Return the rows of a COUNT over the schema, and its read point."""
        point = self._caught_up(statement, session, limits)
        schema = schema_for(session.access, self._store, Privilege.READ_SCHEMA)
        shown = count_schema(statement, schema, self._points(point, session))
        self._store.finish_schema_read(point)
        return shown, point

    def _caught_up(self, statement: ast.Show | ast.Count, session: SessionContext, limits: ReadLimits) -> ReadPoint:
        """Catch up with the part of the schema to which the statement refers. SHOW omits unavailable groups."""
        point = self._queries.read_point(session, limits)
        if isinstance(statement, ast.Show) and not point.settled:
            point.partial = True
        self._queries.catch_up(point, patterns_of(statement))
        return point

    def show(self, statement: ast.Show, session: SessionContext, limits: ReadLimits) -> tuple[RowSet, ReadPoint]:
        """Return the rows of a SHOW, and its read point."""
        kind = statement.kind

        def time(ticks: int) -> str:
            return format_time(ticks, session.zone, self._unit)

        match kind:
            case (
                ast.ShowKind.QUERIES
                | ast.ShowKind.SLOW_QUERIES
                | ast.ShowKind.PARTITIONS
                | ast.ShowKind.FILES
                | ast.ShowKind.DISK_USAGE
            ):
                return self._every_node.show(statement, session.zone, session.access), HERE
            case ast.ShowKind.CONFIGURATION:
                node = statement.nodes[0] if statement.nodes else None
                return self._every_node.configuration.show(node, described=statement.details), HERE
            case ast.ShowKind.FUNCTIONS:
                self._caught_up(statement, session, limits)
                return show_functions(self._store.schema.catalogue), HERE
            case ast.ShowKind.TRIGGERS:
                self._caught_up(statement, session, limits)
                return show_triggers(self._triggers), HERE
            case ast.ShowKind.VERSION:
                return RowSet(_texts("Version", "BuildInfo"), [_version()]), HERE
            case ast.ShowKind.TIME_ZONE:
                return RowSet(_texts("TimeZone"), [(session.zone,)]), HERE
            case ast.ShowKind.CURRENT_TIMESTAMP:
                now = self._queries.moment(session).now
                return RowSet((Field("CurrentTimestamp", DataType.TIMESTAMP),), [(now,)]), HERE
            case ast.ShowKind.CURRENT_USER:
                return RowSet(_texts("CurrentUser"), [(session.access.user or None,)]), HERE
            case ast.ShowKind.CURRENT_SQL_DIALECT:
                return RowSet(_texts("CurrentSqlDialect"), [("TREE",)]), HERE
            case ast.ShowKind.VARIABLES:
                return RowSet(_texts("Variable", "Value"), list(self._variables())), HERE
            case _ if kind in OF_CLUSTER:
                return show_cluster(statement, self._cluster), HERE  # waits for no schema, so works without a leader
            case ast.ShowKind.SENDERS | ast.ShowKind.RECEIVERS | ast.ShowKind.SYNC:
                return show_sync(kind, self._sync, lambda seconds: time(seconds * self._unit.value)), HERE
        point = self._caught_up(statement, session, limits)
        schema = schema_for(session.access, self._store, Privilege.READ_SCHEMA)
        shown = show_schema(statement, schema, self._points(point, session))
        self._store.finish_schema_read(point)
        return self._with_settings(shown, statement) if kind is ast.ShowKind.DATABASES else shown, point

    def _with_settings(self, shown: RowSet, statement: ast.Show) -> RowSet:
        """Add the settings common to all databases: the replication factor and the time partitions."""
        copies = self._cluster.replicas
        settings = (copies, copies, 0, self._store.options.time_partition_interval)
        rows: list[Row] = [(*row, *settings) for row in shown.rows]
        if not statement.details:
            return RowSet((*shown.fields, *_SETTINGS), rows)
        regions = {(database, r.region) for r in self._cluster.regions() for database in r.databases}
        groups = Counter(database for database, _ in regions)
        rows = [(*row, *(groups[str(row[0])], None, None) * 2) for row in rows]
        return RowSet((*shown.fields, *_SETTINGS, *_GROUP_SETTINGS), rows)

    def _points(self, point: ReadPoint, session: SessionContext) -> Points:
        return Points(partial(self._latest_times, point, session), self._queries.moment(session))

    def _latest_times(
        self, point: ReadPoint, session: SessionContext, paths: Sequence[str], times: TimeRange
    ) -> dict[str, int]:
        """Return the times of the series' latest points in `times`, omitting series that are unreadable or empty."""
        items = []
        for path in paths:
            if not session.access.may(Privilege.READ_DATA, path):
                continue
            device, measurement = split_series(path)
            known = self._store.schema.device(device)
            if known is not None and measurement in known.series:
                items.append(LastItem(device, measurement, known.series[measurement].type, known.aligned, path))
        scan = last_scan(items, times)
        plan = QueryPlan(scan.fields, True, scan, distribute(scan, 1))
        execution = self._queries.start(plan, "latest times of series", session.asker, None, point)
        found: dict[str, int] = {}
        try:
            while (block := execution.next_block()) is not None:
                names = [str(name) for name in block.columns[0].to_list()]
                found.update(zip(names, block.times.tolist(), strict=True))
        finally:
            execution.close()
        return found

    def _variables(self) -> list[tuple[str, str]]:
        options, limits = self._store.options, self._queries.options
        return [
            ("TimestampPrecision", self._unit.suffix),
            ("TimePartitionInterval", str(options.time_partition_interval)),
            ("DefaultDatabaseLevel", str(limits.automatic_schema.database_level)),
            ("Durability", options.durability),
            ("QueryTimeoutMs", str(limits.query_timeout_ms)),
            ("SlowQueryMs", str(limits.slow_query_ms)),
            ("QueryMemoryBytes", str(limits.query_memory_bytes_max)),
            ("QueriesMemoryBytes", str(limits.queries_memory_bytes_max)),
            ("Parallelism", str(limits.parallelism)),
            ("DataReplicationFactor", str(self._cluster.replicas)),
            *self._cluster.variables(),
        ]


def _texts(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, DataType.TEXT) for name in names)


def _version() -> tuple[str, str]:
    """Return the version, and a text with the product, IoTDB's protocol and the commit if pip recorded it (PEP 610)."""
    from importlib.metadata import distribution  # a slow import: it loads the email package

    installed = distribution("saros")
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    commit = origin.get("vcs_info", {}).get("commit_id")
    return installed.version, f"Saros, IoTDB protocol {IOTDB_PROTOCOL}{f', commit {commit}' if commit else ''}"
