"""Senders' devices in the cluster's schema.

These devices have the sender's definitions, and their series are marked (`saros_cluster.database.synced_devices`).

    before the commit    missing devices are created and marked; the first creator, client or sender, owns them
    after the commit     all granted devices are brought in line with the sender's; its other marked devices are dropped

Both steps are idempotent, so any node may repeat them after an interrupted commit. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from saros_cluster.database.synced_devices import SENDER, sender_of
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import parse_pattern
from saros_storage.schema import DeleteSeries, DeviceSchema, SchemaChange, SchemaTree
from saros_sync.receiver.reconcile import refused, repair

#: Error codes: another node or client has created the database or series in the meantime.
_EXISTS, _SERIES_EXISTS = 501, 503
_ATTEMPTS_MAX = 20
#: The maximum number of changes in one log entry.
_BATCH = 500
_ALL = parse_pattern("root.**")


class Cluster(Protocol):
    """The cluster's schema. Methods raise StorageError."""

    @property
    def schema(self) -> SchemaTree:
        """The schema as this node knows it."""
        ...

    def wait_all_visible(self) -> None:
        """Wait until this node has all acknowledged changes."""
        ...

    def change_schema_unguarded(self, changes: Sequence[SchemaChange]) -> None:
        """Create or alter series, without the check for senders' devices."""
        ...

    def delete_series_unguarded(self, pattern: str) -> int:
        """Drop series, without the check for senders' devices."""
        ...


def marked(device: DeviceSchema, sender: str) -> DeviceSchema:
    """Return the device with its sender in the attributes of its series."""
    series = {
        name: replace(known, attributes={**known.attributes, SENDER: sender}) for name, known in device.series.items()
    }
    return replace(device, series=series)


def is_own(tree: SchemaTree, device: str) -> bool:
    """Return whether the device exists and belongs to no sender."""
    found = tree.device(device)
    return found is not None and sender_of(found) is None


def claim(cluster: Cluster, sender: str, devices: Iterable[DeviceSchema]) -> dict[str, str]:
    """Create the missing devices, marked as the sender's. Return the reason for each device that the schema refuses."""
    tree = cluster.schema
    new = [marked(device, sender) for device in devices if tree.device(device.path) is None]
    unplaced = refused(tree, new)
    _create(cluster, repair(tree, [device for device in new if device.path not in unplaced], ()).creates)
    return unplaced


def is_exists_error(error: UserMistake) -> bool:
    """Return whether a creation failed because the database or series exists. If so, the caller rereads the schema."""
    return error.code in (_EXISTS, _SERIES_EXISTS)


def give(
    cluster: Cluster, sender: str, devices: Mapping[str, DeviceSchema], granted: frozenset[str], owners: Iterable[str]
) -> None:
    """Give the granted devices the sender's definitions, and drop the other devices that are marked as the sender's.

    The devices in `owners` belong to senders, and are not dropped. Raises StorageError.
    """
    wanted = [marked(devices[path], sender) for path in sorted(granted) if path in devices]
    others = frozenset(owners) - granted
    for _ in range(_ATTEMPTS_MAX):
        cluster.wait_all_visible()
        tree = cluster.schema
        unwanted = [
            device.path
            for device in tree.match_devices(_ALL)
            if sender_of(device) == sender and device.path not in granted and device.path not in others
        ]
        changes = repair(tree, [device for device in wanted if not is_own(tree, device.path)], unwanted)
        if not changes.drops and not changes.creates:
            return
        for change in changes.drops:
            assert isinstance(change, DeleteSeries)
            cluster.delete_series_unguarded(change.pattern)
        try:
            _create(cluster, changes.creates)
        except UserMistake as error:
            if not is_exists_error(error):
                raise
            failure = error
        else:
            return
    raise failure


def _create(cluster: Cluster, changes: Sequence[SchemaChange]) -> None:
    for start in range(0, len(changes), _BATCH):
        cluster.change_schema_unguarded(changes[start : start + _BATCH])
