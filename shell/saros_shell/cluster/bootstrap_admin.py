"""`saros cluster secure`: adds an administrator to a local cluster that was created without one.

    stop all nodes --> write user root into their files (`saros_server.local.bootstrap_admin`) --> start the nodes again

Nodes that were not running before are not started. A call that resumes an interrupted call starts all nodes.

After the restart, the nodes accept only clients that log in. Single-threaded.
"""

from __future__ import annotations

import argparse
import sys

from saros_cluster.node.cluster_file import Administrator
from saros_cluster.placement.ring import NodeId
from saros_server.auth.passwords import Cost
from saros_server.auth.security import first_administrator
from saros_server.config.configuration import load as load_configuration
from saros_server.local import bootstrap_admin, local_cluster
from saros_server.local.local_cluster import LocalCluster, Say
from saros_storage.io.disk import Disk


def secure(cluster: LocalCluster, options: argparse.Namespace, disk: Disk, say: Say) -> dict[NodeId, str]:
    """Add the administrator. Return the nodes that did not stop or start, each with the reason.

    Raises UserMistake if no administrator can be added, for example because the cluster already has one.
    """
    bootstrap_admin.check(cluster, disk)
    administrator, ran = bootstrap_admin.interrupted_administrator(cluster, disk), cluster.nodes
    if administrator is None:
        administrator = _new_administrator(options)
        ran = [node for node in cluster.nodes if cluster.is_started(node)]
    else:
        say("resuming an interrupted call: the administrator and password are those of that call")
    left = local_cluster.stop(cluster, [node for node in cluster.nodes if cluster.is_started(node)], say)
    if left:
        return dict.fromkeys(left, "it has not ended yet, and nothing was changed; run the command again")
    bootstrap_admin.secure(cluster, administrator, disk)
    secured = local_cluster.find(options.dir, disk)
    assert secured is not None
    startable = [node for node in ran if node not in secured.problems]
    failures = local_cluster.start(secured, startable, options.log_level, options.timeout, say)
    targets = ",".join(secured.address(node) for node in secured.nodes)
    sys.stdout.write(f"clients must log in from now on: saros shell saros://{administrator.name}:PASSWORD@{targets}\n")
    if not ran:
        sys.stdout.write(
            f"no node was running, and none was started; start them with saros cluster up --dir {options.dir}\n"
        )
    return failures


def _new_administrator(options: argparse.Namespace) -> Administrator:
    """Return user root with the given password, or with a one-time password that is printed before anything changes."""
    cost = Cost(load_configuration().values.password_cost)
    administrator, password = first_administrator(cost, options.init_admin_password_file)
    if administrator.must_change:
        sys.stdout.write(one_time(administrator, password))
        sys.stdout.flush()
    return administrator


def one_time(administrator: Administrator, password: str) -> str:
    """Return the message that shows a one-time password."""
    return (
        f"created administrator {administrator.name} with a one-time password, shown only now; use it to set"
        f" another one (ALTER USER {administrator.name} SET PASSWORD '...'): {password}\n\n"
    )
