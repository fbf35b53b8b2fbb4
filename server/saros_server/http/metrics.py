"""Metrics of a node for Prometheus. Thread-safe.

`METRICS` describes every metric. A test compares the documentation with this table. At each scrape, all values are read
from counters that the node keeps anyway.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from saros_engine.base.latency_histogram import BOUNDS_SECONDS, LatencySnapshot
from saros_server.node.node import Node
from saros_server.port.counters import ProtocolCounters

if TYPE_CHECKING:
    from saros_cluster.transport.counters import PeerCounters
    from saros_server.cluster.node import ClusterNode
    from saros_server.cluster.status import LocalGroup

#: Maps the name of each metric to two values: whether it is a counter, and its description. The names of counters get
#: the suffix `_total`.
METRICS: dict[str, tuple[bool, str]] = {
    "saros_uptime_seconds": (False, "Time since the server started."),
    "saros_sessions": (False, "Open sessions."),
    "saros_port_connections": (
        False,
        "Open connections of clients, by protocol; unknown: they have not said which.",
    ),
    "saros_port_parked": (False, "Open connections of clients that wait for a request without a thread, by protocol."),
    "saros_port_accepted": (True, "Connections of clients that were accepted, by protocol."),
    "saros_port_refused": (
        True,
        "Connections that were refused, by protocol: too many; unknown: another protocol, or none in time.",
    ),
    "saros_port_requests": (True, "Requests of clients, by protocol."),
    "saros_port_received_bytes": (True, "Bytes received from clients, without TLS, by protocol."),
    "saros_port_sent_bytes": (True, "Bytes sent to clients, without TLS, by protocol."),
    "saros_statements": (True, "Executed statements."),
    "saros_failures": (True, "Statements and batches that were refused or failed."),
    "saros_points_written": (True, "Acknowledged points."),
    "saros_plans_made": (True, "Plans made for SELECTs."),
    "saros_plans_reused": (True, "SELECTs that reused a plan, with the same or other values."),
    "saros_queries_running": (False, "Queries in progress, including those being cleaned up."),
    "saros_queries_finished": (True, "Queries that completed."),
    "saros_queries_aborted": (True, "Queries that ended early: time-out, error, cancelled."),
    "saros_query_memory_bytes": (False, "Bytes that all queries hold of their shared memory."),
    "saros_query_memory_limit_bytes": (False, "Limit of that memory: queries_memory_bytes."),
    "saros_query_memory_waits": (True, "Times a query waited because others held too much of it."),
    "saros_query_memory_ended": (True, "Queries ended because they held most of it while others waited."),
    "saros_query_seconds": (False, "Duration of queries, including waits for clients: a histogram."),
    "saros_write_seconds": (False, "Time until batches and INSERTs were acknowledged: a histogram."),
    "saros_driver_quanta": (True, "Quanta run by drivers, by queue level."),
    "saros_driver_run_seconds": (True, "Time drivers ran, by queue level."),
    "saros_drivers_ready": (False, "Drivers now waiting for a worker."),
    "saros_driver_ready_seconds": (True, "Time drivers waited for a worker."),
    "saros_driver_blocked_seconds": (True, "Time drivers waited for data or for room."),
    "saros_databases": (False, "Databases."),
    "saros_devices": (False, "Devices."),
    "saros_partitions": (False, "Partitions: a database in a slice of time."),
    "saros_files": (False, "TsFiles."),
    "saros_file_bytes": (False, "Bytes of TsFiles."),
    "saros_unsequence_files": (False, "TsFiles of late rows; queries also read the files they overlap."),
    "saros_unsequence_file_bytes": (False, "Bytes of TsFiles of late rows: roughly the most that merging can free."),
    "saros_partition_files_max": (False, "TsFiles of the partition with the most."),
    "saros_flushed_bytes": (True, "Bytes of TsFiles flushed from memory."),
    "saros_compactions": (True, "Merges of TsFiles that completed."),
    "saros_compaction_failures": (True, "Merges of TsFiles that failed and will be retried."),
    "saros_compaction_read_bytes": (True, "Bytes read by merges."),
    "saros_compaction_written_bytes": (
        True,
        "Bytes written by merges; (flushed + written) / flushed is the write amplification.",
    ),
    "saros_compaction_points_copied": (True, "Points that merges copied in whole chunks."),
    "saros_compaction_points_merged": (True, "Points that merges decoded and rewrote."),
    "saros_latest_hits": (True, "Series whose latest point in files SELECT LAST found in its cache."),
    "saros_latest_misses": (True, "Series whose latest point was looked up in files."),
    "saros_latest_bytes": (False, "Bytes of cached latest points."),
    "saros_memtable_bytes": (False, "Bytes in MemTables."),
    "saros_log_bytes": (False, "Bytes of the write-ahead log."),
    "saros_views": (False, "Snapshots of the store held by queries."),
    "saros_sync_senders": (False, "Instances that have sent data with saros sync."),
    "saros_sync_devices": (False, "Devices shown here that belong to a sender."),
    "saros_sync_refused_devices": (False, "Devices sent here but refused: see SHOW SYNC."),
    "saros_sync_files": (False, "TsFiles received from senders."),
    "saros_sync_file_bytes": (False, "Bytes of TsFiles received from senders."),
    "saros_sync_lacking_bytes": (False, "Bytes still missing from incoming rounds, as far as known."),
    "saros_sync_sending_lag_seconds": (
        False,
        "Age of what the receiver shows: time since it was sealed here, by receiver.",
    ),
    "saros_disk_free_bytes": (False, "Free bytes on the data folder's disk."),
    "saros_cluster_nodes": (False, "Nodes of the cluster."),
    "saros_cluster_silent_nodes": (False, "Nodes of the cluster that do not answer this node."),
    "saros_cluster_changing": (False, "1 while nodes join or leave, or slots move."),
    "saros_cluster_answer_seconds": (False, "Response time of another node to a status request, by node."),
    "saros_cluster_log_write_seconds": (False, "Recent time of a log write of a node, until it is durable, by node."),
    "saros_cluster_log_slow": (False, "1 while log writes of a node are slow, and others lead its groups, by node."),
    "saros_peer_messages_sent": (True, "Raft messages sent to another node, by node."),
    "saros_peer_messages_received": (True, "Raft messages received from another node."),
    "saros_peer_messages_dropped": (
        True,
        "Raft messages to another node that were dropped: the queue was full, or one was too large.",
    ),
    "saros_peer_sent_bytes": (True, "Bytes of Raft messages sent to another node."),
    "saros_peer_received_bytes": (True, "Bytes of Raft messages received from another node."),
    "saros_peer_reconnects": (True, "Reconnections to another node."),
    "saros_read_confirmations": (
        True,
        "Times reads and changes of the schema asked a group how far they must see, by group; 0 is the meta group.",
    ),
    "saros_group_leads": (False, "1 if this node leads a group, by group; 0 is the meta group."),
    "saros_group_has_leader": (False, "1 if this node knows the leader of a group that it belongs to."),
    "saros_group_term": (False, "Raft term of a group: it grows with each election."),
    "saros_group_applied": (False, "Log entries of a group applied here."),
    "saros_group_lag": (False, "Log entries of a group that are committed but not yet applied here."),
    "saros_certificate_expiry_seconds": (False, "Time until a certificate expires, by file."),
    "saros_problems": (False, "Problems that need attention: saros status names them."),
}
_OF_GROUPS: dict[str, Callable[[LocalGroup], float]] = {
    "saros_group_leads": lambda here: here.leads,
    "saros_group_has_leader": lambda here: here.has_leader,
    "saros_group_term": lambda here: here.term,
    "saros_group_applied": lambda here: here.applied,
    "saros_group_lag": lambda here: here.lag,
}
_OF_PEERS: dict[str, Callable[[PeerCounters], float]] = {
    "saros_peer_messages_sent": lambda peer: peer.messages_sent,
    "saros_peer_messages_received": lambda peer: peer.messages_received,
    "saros_peer_messages_dropped": lambda peer: peer.messages_dropped,
    "saros_peer_sent_bytes": lambda peer: peer.bytes_sent,
    "saros_peer_received_bytes": lambda peer: peer.bytes_received,
    "saros_peer_reconnects": lambda peer: peer.reconnects,
}
_OF_PROTOCOLS: dict[str, Callable[[ProtocolCounters], float]] = {
    "saros_port_connections": lambda figures: figures.connections,
    "saros_port_parked": lambda figures: figures.parked,
    "saros_port_accepted": lambda figures: figures.accepted,
    "saros_port_refused": lambda figures: figures.refused,
    "saros_port_requests": lambda figures: figures.requests,
    "saros_port_received_bytes": lambda figures: figures.bytes_in,
    "saros_port_sent_bytes": lambda figures: figures.bytes_out,
}
_NANOSECONDS = 1e9


class Figures(msgspec.Struct, frozen=True):
    """The figures of the server process that do not belong to its node."""

    sessions: Callable[[], int]
    uptime_s: Callable[[], float]
    #: Returns the counters of each protocol, which the port for clients updates.
    port: Callable[[], Mapping[str, ProtocolCounters]]


class NodeCollector:
    """A collector that reads the figures of a node and of its server at each scrape.

    `folder` is the data folder of the node.
    """

    def __init__(self, node: Node, figures: Figures, folder: str) -> None:
        self._node = node
        self._figures = figures
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics of the table."""
        store, scheduler = self._node.store.status(), self._node.scheduler.metrics()
        engine, compaction = self._node.engine.counters(), self._node.store.compaction
        latest = self._node.store.latest
        yield from _single(
            {
                "saros_uptime_seconds": self._figures.uptime_s(),
                "saros_sessions": self._figures.sessions(),
                "saros_statements": engine.statements,
                "saros_failures": engine.failures,
                "saros_points_written": engine.points_written,
                "saros_plans_made": engine.plans_made,
                "saros_plans_reused": engine.plans_reused,
                "saros_queries_running": self._node.engine.open_queries,
                "saros_queries_finished": scheduler.finished_queries,
                "saros_queries_aborted": scheduler.aborted_queries,
                "saros_drivers_ready": scheduler.ready_tasks,
                "saros_query_memory_bytes": engine.memory.used,
                "saros_query_memory_limit_bytes": engine.memory.bytes_max,
                "saros_query_memory_waits": engine.memory.waits,
                "saros_query_memory_ended": engine.memory.ended,
                "saros_driver_ready_seconds": scheduler.ready_ns / _NANOSECONDS,
                "saros_driver_blocked_seconds": scheduler.blocked_ns / _NANOSECONDS,
                "saros_databases": store.databases,
                "saros_devices": store.devices,
                "saros_partitions": store.partitions,
                "saros_files": store.files,
                "saros_file_bytes": store.file_bytes,
                "saros_unsequence_files": store.unsequence_files,
                "saros_unsequence_file_bytes": store.unsequence_file_bytes,
                "saros_partition_files_max": store.partition_files_max,
                "saros_flushed_bytes": store.flushed_bytes,
                "saros_compactions": compaction.jobs,
                "saros_compaction_failures": compaction.failures,
                "saros_compaction_read_bytes": compaction.bytes_read,
                "saros_compaction_written_bytes": compaction.bytes_written,
                "saros_compaction_points_copied": compaction.points_copied,
                "saros_compaction_points_merged": compaction.points_merged,
                "saros_latest_hits": latest.hits,
                "saros_latest_misses": latest.misses,
                "saros_latest_bytes": latest.bytes,
                "saros_memtable_bytes": store.memtable_bytes,
                "saros_log_bytes": store.log_bytes,
                "saros_views": store.views,
                "saros_disk_free_bytes": shutil.disk_usage(self._folder).free,
                "saros_problems": len(self._node.problems()),
            }
        )
        port = self._figures.port()
        for name, count_in in _OF_PROTOCOLS.items():
            yield _by(name, "protocol", {protocol: count_in(figures) for protocol, figures in port.items()})
        yield from _of_sync(self._node)
        yield _of_certificates(self._node)
        if self._node.cluster is not None:
            yield from _of_cluster(self._node.cluster)
        yield _histogram("saros_query_seconds", engine.queries)
        yield _histogram("saros_write_seconds", engine.writes)
        yield _by("saros_driver_quanta", "level", dict(enumerate(scheduler.quanta)))
        yield _by("saros_driver_run_seconds", "level", {n: ns / _NANOSECONDS for n, ns in enumerate(scheduler.run_ns)})


def _single(values: dict[str, float]) -> Iterator[Metric]:
    for name, value in values.items():
        counts, text = METRICS[name]
        yield CounterMetricFamily(name, text, value=value) if counts else GaugeMetricFamily(name, text, value=value)


def _of_sync(node: Node) -> Iterator[Metric]:
    """Yield the metrics of the sync tool: those about its senders, and those about its receivers."""
    senders = node.sync.senders()
    yield from _single(
        {
            "saros_sync_senders": len(senders),
            "saros_sync_devices": sum(row.devices for row in senders),
            "saros_sync_refused_devices": sum(row.refused for row in senders),
            "saros_sync_files": sum(row.files for row in senders),
            "saros_sync_file_bytes": sum(row.size for row in senders),
            "saros_sync_lacking_bytes": sum(max(row.lacking or 0, 0) for row in senders),
        }
    )
    shown = {found.name: found.shows_ns for found in node.sync.receivers() if found.shows_ns}
    lags = {name: max(time.time() - shows_ns / _NANOSECONDS, 0.0) for name, shows_ns in shown.items()}
    yield _by("saros_sync_sending_lag_seconds", "receiver", lags)


def _of_cluster(cluster: ClusterNode) -> Iterator[Metric]:
    """Yield metrics of the cluster, of the groups to which this node belongs, and of its traffic with other nodes."""
    status = cluster.status
    yield from _single(
        {
            "saros_cluster_nodes": len(status.nodes()),
            "saros_cluster_silent_nodes": status.unreachable_count(),
            "saros_cluster_changing": status.changing,
        }
    )
    yield _by("saros_cluster_answer_seconds", "node", status.answer_seconds())
    logs = status.log_health()
    yield _by("saros_cluster_log_write_seconds", "node", {n: log.write_ns / _NANOSECONDS for n, log in logs.items()})
    yield _by("saros_cluster_log_slow", "node", {n: log.slow for n, log in logs.items()})
    yield _by("saros_read_confirmations", "group", cluster.database.read_confirmations)
    groups = status.local_groups()
    for name, value_of in _OF_GROUPS.items():
        yield _by(name, "group", {group: value_of(here) for group, here in groups.items()})
    peers = cluster.peers.counters()
    for name, count_of in _OF_PEERS.items():
        yield _by(name, "node", {node: count_of(peer) for node, peer in peers.items()})


def _of_certificates(node: Node) -> Metric:
    found = dict(found for files in node.certificates for found in files.validities)
    seconds = {path: validity.end.timestamp() - time.time() for path, validity in found.items()}
    return _by("saros_certificate_expiry_seconds", "file", seconds)


def _by(name: str, label: str, values: Mapping[Any, float]) -> Metric:
    counts, text = METRICS[name]
    family = (CounterMetricFamily if counts else GaugeMetricFamily)(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([str(key)], value)
    return family


def _histogram(name: str, spread: LatencySnapshot) -> Metric:
    bounds = [*map(floatToGoString, BOUNDS_SECONDS), "+Inf"]
    up_to = list(zip(bounds, accumulate(spread.counts), strict=True))
    return HistogramMetricFamily(name, METRICS[name][1], buckets=up_to, sum_value=spread.seconds)
