"""Many nodes as one database: placement, Raft groups, routing, growth. See the room's README.

Public: the modules that other rooms may import, by package; `*` means the whole package. The engine and `saros sync`
use the users, the database and its errors. The server builds a node from the rest.

    users              *
    node               *
    meta               *
    database           cluster_directory, database, partial_failure, synced_devices
    placement          balancer, members, ring, slots, table
    topology           commands, topology, transitions
    reconfiguration    reconciler, unsafe_recovery
    routing            merges, no_leader, proposer, replicas, round_robin, routes, schema_view
    remote             migration_sources, reader_open, reader_service, routed_view
    multiraft          host, host_threads, log_latency, peers, raft_log
    raft               membership, messages, ready
    transport          counters, grpc_peers, handshake
    data               snapshots
"""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())
