"""The effect on a replica of the entries that move slots (see `ownership`).

    Fence, Complete   change the ownership alone
    Prepare           adds schema of slots that are about to be opened
    Open              adds schema, requests and drops; creates partitions, read at the former group until they arrive
    Release           removes slots that are complete at their new group: from views and schema, then from disk
                      (`remove_left`)

After a restart, entries that the state file already reflects are not applied again. The caller holds the region's lock.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from saros_cluster.data.drops import Drops
from saros_cluster.data.entry_validation import needed
from saros_cluster.data.ownership import Complete, Fence, Open, Prepare, Release, Transfer
from saros_cluster.data.replica import Replica
from saros_cluster.data.schema_transfer import belongs_to_transfer
from saros_storage.mutation.mutation import Mutation
from saros_storage.schema import CreateSeries, DeleteSeries, SchemaChange


def move(replica: Replica, index: int, transfer: Transfer, changes: Sequence[SchemaChange]) -> None:
    """Apply entry `index`, which moves slots. `changes` is the schema that moves with these slots."""
    ownership = replica.ownership
    is_new = replica.advance(index)
    match transfer:
        case Fence() if is_new:
            ownership.fence(transfer, index)
        case Open(opened) if is_new and ownership.open(replace(opened, entry=index)):
            _open(replica, index, transfer, changes)
        case Prepare(epoch) if is_new and epoch > ownership.opened:
            _prepare(replica, index, changes, ())
        case Complete(epoch):
            ownership.complete(epoch)
        case Release(epoch):
            ownership.leave(epoch)
            if is_new:
                _forget_left(replica, index)


def remove_left(replica: Replica, index: int) -> None:
    """Remove the files of the slots that entry `index` released. The caller also holds `flusher.folders`."""
    ownership = replica.ownership
    replica.region.release(lambda database, number: not ownership.has(ownership.slot(database, number)), index)


def _open(replica: Replica, index: int, opened: Open, changes: Sequence[SchemaChange]) -> None:
    ownership, region = replica.ownership, replica.region
    arrival = ownership.arrivals[opened.arrival.epoch]
    replica.requests.add_arrived(arrival.epoch, index, opened.requests)
    replica.drops.merge(Drops.from_json(opened.drops))
    _prepare(replica, index, changes, sorted({database for database, _ in arrival.partitions}))
    replica.begin_with(arrival)
    came = set(arrival.slots)  # from now on this group announces their schema
    known = replica.all_schema()
    told = [
        c for c in known if belongs_to_transfer(region.schema, c, lambda database: ownership.slot(database, 0) in came)
    ]
    replica.schema_feed.record(index, told)


def _prepare(replica: Replica, index: int, changes: Sequence[SchemaChange], databases: Sequence[str]) -> None:
    """Add the schema of arriving slots. Some or all of this schema may have been added before."""
    wanted = [replace(c, if_missing=True) if isinstance(c, CreateSeries) else c for c in changes]
    replica.region.take_effect(index, Mutation(needed(replica.region.schema, wanted, databases)))


def _forget_left(replica: Replica, index: int) -> None:
    region = replica.region
    gone = [database for database in region.schema.databases() if not replica.ownership.has_schema(database)]
    region.take_effect(index, Mutation([DeleteSeries(f"{database}.**") for database in gone]))
    replica.schema_feed.forget(index)
