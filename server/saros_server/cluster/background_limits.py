"""The limits of a node's background work, which can change while the node runs. Thread-safe."""

from __future__ import annotations

from saros_cluster.node.receive_throttle import ReceiveThrottle
from saros_server.cluster.rebalancing import BalanceOptions, Balancing
from saros_storage.compaction.compactor import Compactor
from saros_storage.flush.pacer import Pacer
from saros_storage.folder.store_options import StoreOptions


class BackgroundLimits:
    """Passes changed options to the compaction, migration and balancing of a node."""

    def __init__(self, compactor: Compactor, pacer: Pacer, received: ReceiveThrottle, balancing: Balancing) -> None:
        self._compactor = compactor
        self._pacer = pacer
        self._received = received
        self._balancing = balancing

    def set_options(self, options: StoreOptions, balance: BalanceOptions) -> None:
        """Use new limits from the next job, piece, or interval on."""
        self._compactor.set_options(options)
        self._pacer.set_percent(options.migration_cpu_percent)
        self._received.set_limit(options.migration_bytes_per_second)
        self._balancing.set_options(balance)
