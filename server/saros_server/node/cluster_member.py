"""Open a folder that has a `cluster.json` as a node of its cluster. Imported only for such folders."""

from __future__ import annotations

from saros_cluster.node.cluster_file import ClusterFile
from saros_cluster.transport.grpc_peers import CannotListen
from saros_grammar.syntax.ast import Measure
from saros_server.cluster.node import ClusterNode
from saros_server.cluster.rebalancing import BalanceOptions
from saros_server.config.configuration import Configuration, ConfigurationError
from saros_server.pki.certificate_files import WatchedFiles
from saros_server.pki.peer_certificates import peer_credentials
from saros_storage.base.clock import Clock
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import Disk


def open_member(
    folder: str, file: ClusterFile, configuration: Configuration, options: StoreOptions, disk: Disk, clock: Clock
) -> tuple[ClusterNode, list[WatchedFiles]]:
    """Open the node; return it and its certificates for the other nodes. Raises StorageError, ConfigurationError."""
    credentials = peer_credentials(configuration, clock, file)
    try:
        node = ClusterNode.open(
            folder,
            file,
            options,
            disk,
            clock,
            credentials=credentials,
            balance=balance_options(configuration),
            meta_voter_timeout_ms=configuration.meta_voter_timeout_ms,
        )
    except CannotListen as error:
        raise ConfigurationError(str(error)) from error
    return node, [] if credentials is None else [credentials.files]


def balance_options(configuration: Configuration) -> BalanceOptions:
    """Return the options of automatic balancing from the configuration."""
    by = configuration.rebalance_by
    return BalanceOptions(None if by == "off" else Measure(by), configuration.rebalance_interval_ms)
