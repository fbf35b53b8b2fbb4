"""Opens views for queries of other nodes: a view of a replica that has applied the required entry, or a named view.

    replica      waits until it has applied the required entry, and the moves that the coordinator's table contains;
                 if it lags for too long, it refuses, and the coordinator asks another holder
    view_name    a view that this node keeps under this name; refuses if there is no such view here

This code runs on the threads that serve calls from other nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from saros_cluster.multiraft.host import GroupHost, NotHere
from saros_cluster.remote.messages import PATIENCE_MS_MAX, ReadTarget
from saros_cluster.routing.replicas import Replicas
from saros_storage.base.clock import Clock
from saros_storage.scan.reading import ReadView

_POLL_SECONDS = 0.002


def opener(
    host: GroupHost, replicas: Replicas, clock: Clock, named_view: Callable[[str], ReadView | None] = lambda _: None
) -> Callable[[ReadTarget], ReadView]:
    """Return the function with which `ReaderService` opens views. `named_view` finds a view stored under a name."""

    def open_view(target: ReadTarget) -> ReadView:
        if target.view_name:
            view = named_view(target.view_name)
            if view is None:
                raise NotHere(target.group, f"this node does not have {target.view_name}; ask another one")
            return view
        machine = replicas.machines.get(target.group)
        if machine is None:
            raise NotHere(target.group, "this node has no replica of it")
        known = target.table_version
        deadline_ns = clock.monotonic_ns() + min(target.patience_ms, PATIENCE_MS_MAX) * 1_000_000
        if not _has_applied(host, target):
            host.read(target.group)  # makes the leader send its commit index at once
        while not (_has_applied(host, target) and machine.replica.knows_table(known)):
            if clock.monotonic_ns() > deadline_ns:
                raise NotHere(target.group, "this replica is behind; ask another one")
            time.sleep(_POLL_SECONDS)
        return replicas.view({target.group: known})

    return open_view


def _has_applied(host: GroupHost, target: ReadTarget) -> bool:
    if target.minimum_applied is None:
        return True
    status = host.status(target.group)
    return status is not None and status.applied >= target.minimum_applied
