"""Add an administrator to a local cluster that was created without one, while no node of the cluster runs.

    DIR/securing    {"name": "root", "hash": "$scrypt$...", "must_change": true}      written first, removed last
    each node       the meta group's state, if the node has one, gets the administrator; then cluster.json

The functions change the files of the nodes directly, so they need write access to these files. A node that starts
afterwards requires logins from the beginning. All nodes get the same user, and no node has had users before, since a
cluster without an administrator refuses to create users. So the nodes agree on their users, even if some have not
applied all entries of their logs. Each node's folder is locked during the call. If a call is interrupted, it must be
repeated with the same administrator. Until the new call has succeeded, no node of the cluster can be started
(`local_cluster.find`).

One thread.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import asdict

from msgspec.structs import replace

from saros_cluster.meta.machine import begin_with_users
from saros_cluster.node.cluster_file import Administrator, ClusterFile, load, rewrite
from saros_cluster.placement.ring import NodeId
from saros_cluster.topology.topology import META
from saros_server.local.local_cluster import SECURING_FILE, LocalCluster
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.folder.layout import write_durably
from saros_storage.io.disk import Disk
from saros_storage.io.folder_lock import FolderLock


def encode(administrator: Administrator) -> bytes:
    """Return the content of DIR/securing."""
    return json.dumps(asdict(administrator)).encode()


def interrupted_administrator(cluster: LocalCluster, disk: Disk) -> Administrator | None:
    """Return the administrator that an interrupted call was adding, or None. Raises UserMistake 2004 (damaged file)."""
    path = os.path.join(cluster.directory, SECURING_FILE)
    if not disk.exists(path):
        return None
    try:
        return Administrator(**json.loads(bytes(disk.map(path))))
    except (ValueError, TypeError) as error:
        raise UserMistake(f"{path} is not as saros cluster secure wrote it: restore it", code=2004) from error


def check(cluster: LocalCluster, disk: Disk) -> dict[NodeId, ClusterFile]:
    """Return the `cluster.json` of each node that can be started again.

    Raises UserMistake 2004 if the cluster has users or a file is damaged.
    """
    if cluster.file.administrator is not None and interrupted_administrator(cluster, disk) is None:
        raise UserMistake(
            f"the cluster in {cluster.directory} already has users: log in as {cluster.file.administrator.name} to"
            " create others, or to set passwords with ALTER USER (docs/security.md)",
            code=2004,
        )
    found = {}
    for node in cluster.nodes:
        try:
            file = load(cluster.folder(node), disk)
        except StorageError as error:
            raise UserMistake(f"node {node}: {error.message}", code=2004) from error
        if file is None:  # the node can never be started again
            continue
        if file.cluster != cluster.file.cluster:
            raise UserMistake(f"{cluster.folder(node)} is a node of another cluster: move it away", code=2004)
        found[node] = file
    return found


def secure(cluster: LocalCluster, administrator: Administrator, disk: Disk) -> None:
    """Give the cluster an administrator: after an interrupted call, the result of `interrupted_administrator`.

    Raises the errors of `check`, FolderInUse if a node is running, CorruptFile, OSError.
    """
    nodes = check(cluster, disk)
    path = os.path.join(cluster.directory, SECURING_FILE)
    with ExitStack() as locked:
        for node in nodes:
            locked.callback(FolderLock.acquire(cluster.folder(node)).release)
        write_durably(disk, path, encode(administrator))
        for node, file in nodes.items():
            folder, secured = cluster.folder(node), replace(file, administrator=administrator)
            begin_with_users(os.path.join(folder, "meta", f"group-{META}"), disk, secured.users)
            rewrite(folder, secured, disk)
        disk.remove(path)
        disk.sync_folder(cluster.directory)
