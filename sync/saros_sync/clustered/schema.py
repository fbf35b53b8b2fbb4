"""Senders' devices in the schema of a cluster.

Marked as theirs (`saros_cluster.database.synced_devices`), as the sender has them.

    before the commit    devices that are nobody's yet are made, marked: whoever of client and sender is first has it
    after it             all granted devices become what the sender has; marked ones that it has no longer go

Done again, nothing is left to do: so whoever finds that a commit was cut short does it again. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from saros_cluster.database.synced_devices import SENDER, sender_of
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import parse_pattern
from saros_storage.schema import DeleteSeries, DeviceSchema, SchemaChange, SchemaTree
from saros_sync.receiver.reconcile import refused, repair

#: Others make what was to be made, too.
_EXISTS, _SERIES_EXISTS = 501, 503
_ATTEMPTS_MAX = 20
#: Changes of an entry.
_BATCH = 500
_ALL = parse_pattern("root.**")


class Cluster(Protocol):
    """The cluster's schema. Methods raise StorageError."""

    @property
    def schema(self) -> SchemaTree:
        """As this node knows it."""
        ...

    def wait_all_visible(self) -> None:
        """Wait until all of it that was acknowledged shows here."""
        ...

    def change_schema_unguarded(self, changes: Sequence[SchemaChange]) -> None:
        """Make or alter series, senders' too."""
        ...

    def delete_series_unguarded(self, pattern: str) -> int:
        """Drop series, senders' too."""
        ...


def marked(device: DeviceSchema, sender: str) -> DeviceSchema:
    """The device with its sender in the attributes of its series."""
    series = {
        name: replace(known, attributes={**known.attributes, SENDER: sender}) for name, known in device.series.items()
    }
    return replace(device, series=series)


def is_own(tree: SchemaTree, device: str) -> bool:
    """Whether the cluster has the device itself."""
    found = tree.device(device)
    return found is not None and sender_of(found) is None


def claim(cluster: Cluster, sender: str, devices: Iterable[DeviceSchema]) -> dict[str, str]:
    """Make those that are not there, in the sender's name; which ones have no place in the schema, and why."""
    tree = cluster.schema
    new = [marked(device, sender) for device in devices if tree.device(device.path) is None]
    unplaced = refused(tree, new)
    _create(cluster, repair(tree, [device for device in new if device.path not in unplaced], ()).creates)
    return unplaced


def is_exists_error(error: UserMistake) -> bool:
    """Whether somebody else has made what was to be made: look again."""
    return error.code in (_EXISTS, _SERIES_EXISTS)


def give(
    cluster: Cluster, sender: str, devices: Mapping[str, DeviceSchema], granted: frozenset[str], owners: Iterable[str]
) -> None:
    """Let the schema have the granted devices as the sender has them, and no others in its name.

    `owners`: all devices that have a sender. Raises StorageError.
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
