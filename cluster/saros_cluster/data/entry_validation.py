"""The outcome of a client's entry in the state that earlier entries left: its effect, or a reason for refusing it.

    its request took effect before, on every slot concerned   nothing
    a drop that is not newer than the last one                nothing
    for a slot that the group does not own                    refused (2026)
    its coordinator has not seen a drop that concerns it      refused (2021): see `drops`
    does not fit the schema                                   refused, with the reason
    otherwise                                                 the part that is new: tablets, schema changes, and
                                                              their databases if missing

All members reach the same outcome. Validation changes nothing. The caller holds the region's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from saros_cluster.data.command import Command, Request, TableVersion
from saros_cluster.data.drops import OVERTAKEN, drop_of
from saros_cluster.data.replica import Replica
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.mutation.mutation import Mutation, PlacedTablet
from saros_storage.mutation.tablet_validation import TabletValidator
from saros_storage.schema import (
    OF_ALL_GROUPS,
    OF_ONE_DEVICE,
    AlterSeries,
    AlterStorage,
    AlterType,
    CreateDatabase,
    CreateSeries,
    DeleteDatabase,
    SchemaChange,
    SchemaTree,
)

_CACHED_DATABASES = 65_536


class ValidatedEntry(NamedTuple):
    """The effect of an entry.

    `places` has the positions of those tablets of the entry that take effect, or is None if all of them do. `spared`
    has the slots to which the entry's deletions were applied before.
    """

    mutation: Mutation
    places: list[int] | None
    spared: frozenset[int]


class EntryValidator:
    """Validates the entries of one replica."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._fitting = TabletValidator()

    def validate(self, index: int, command: Command, lost: UserMistake | None = None) -> ValidatedEntry | None:
        """Return the effect of entry `index`, or None if an earlier entry had the same effect already.

        `lost` is the reason why the entry's file cannot be loaded, or None. Raises UserMistake with code 2026, code
        2021 or the code of the schema's error, or raises `lost`.
        """
        replica, request = self._replica, command.request
        mutation = _with_parsed_frames(command.mutation)
        if drop_of(mutation.changes) is not None and command.drop <= replica.drops.newest:
            return None
        places: list[int] | None = None
        spared: frozenset[int] = frozenset()
        if replica.requests.is_known(request, index):
            places, creates = self._unapplied_part(request, index, mutation)
            deletions = mutation.deletions
            if deletions:
                spared, are_others = self._slots_already_applied(request, index)
                deletions = deletions if are_others else ()
            if not (places or creates or deletions or self._unseen_loads(request, index, mutation)):
                return None
            tablets = [mutation.tablets[place] for place in places]
            mutation = replace(mutation, changes=creates, deletions=deletions, tablets=tablets)
        self._check_slots(mutation, command.known)
        if lost is not None:
            raise lost
        return ValidatedEntry(self._checked(mutation, command.drop), places, spared)

    # ------------------------------------------------------------------ slots and requests

    def slots_of(self, placed: PlacedTablet) -> list[int]:
        """Return the slots of a tablet's rows. Usually there is only one slot."""
        frame, interval = placed.known, self._replica.region.options.time_partition_interval
        assert frame is not None
        database = _database(frame.head.device, placed.depth)
        numbers = range(frame.span.start // interval, frame.span.end // interval + 1)
        return [self._replica.ownership.slot(database, number) for number in numbers]

    def _unapplied_part(self, request: Request, index: int, mutation: Mutation) -> tuple[list[int], list[SchemaChange]]:
        """Return the positions of the tablets, and the creations, in slots to which the request was not applied yet."""
        covers, since = self._replica.requests.covers, self._replica.ownership.since

        def is_unapplied(slots: Sequence[int]) -> bool:
            return not all(covers(request, index, slot, since(slot)) for slot in slots)

        places = [place for place, placed in enumerate(mutation.tablets) if is_unapplied(self.slots_of(placed))]
        return places, [change for change, slots in self._slots_of_made(mutation.changes) if is_unapplied(slots)]

    def _slots_of_made(self, changes: Sequence[SchemaChange]) -> list[tuple[SchemaChange, list[int]]]:
        """Return the changes that create or alter something, each with the slots whose owner stores its schema.

        A change that is in no database has no slots.
        """
        ownership, schema = self._replica.ownership, self._replica.region.schema
        made = [change.path for change in changes if isinstance(change, CreateDatabase)]
        found: list[tuple[SchemaChange, list[int]]] = []
        for change in changes:
            match change:
                case CreateDatabase(path):
                    found.append((change, [ownership.slot(path, 0)]))
                case CreateSeries(device) | AlterSeries(device) | AlterType(device) | AlterStorage(device):
                    new = [path for path in made if device.startswith(f"{path}.")]
                    database = new[0] if new else schema.database_of(device)
                    found.append((change, [] if database is None else [ownership.slot(database, 0)]))
        return found

    def _slots_already_applied(self, request: Request, index: int) -> tuple[frozenset[int], bool]:
        """Return the owned, non-empty slots to which a request was applied, and whether it missed any owned slot.

        The second value must be the same on all members, so it does not depend on which slots are empty: when the log
        is replayed, files may already contain more partitions than other members had at this entry.
        """
        ownership, covered = self._replica.ownership, self._replica.requests.covered
        owned = ownership.owned()
        seen = {since: covered(request, index, slots, since) for since, slots in owned.items()}
        here = {ownership.slot(*partition.key) for partition in self._replica.region.partitions}
        return frozenset(here).intersection(frozenset().union(*seen.values())), seen != owned

    def _unseen_loads(self, request: Request, index: int, mutation: Mutation) -> bool:
        """Return whether the entry loads a file for a slot to which the request was not applied."""
        covers, ownership = self._replica.requests.covers, self._replica.ownership
        slots = [ownership.slot(staged.database, staged.slice) for staged in mutation.loads]
        return any(not covers(request, index, slot, ownership.since(slot)) for slot in slots)

    def _check_slots(self, mutation: Mutation, known: TableVersion) -> None:
        """Raise UserMistake (MOVED) if the entry is for another group, or would miss slots that are being moved."""
        ownership = self._replica.ownership
        slots = {slot for _, slots in self._slots_of_made(mutation.changes) for slot in slots}
        for placed in mutation.tablets:
            slots.update(self.slots_of(placed))
        slots.update(ownership.slot(staged.database, staged.slice) for staged in mutation.loads)
        ownership.check(sorted(slots), known.inbound)
        concerns_all = mutation.deletions or any(isinstance(c, OF_ALL_GROUPS) for c in mutation.changes)
        if concerns_all and drop_of(mutation.changes) is None:  # drops and moves exclude each other
            ownership.check_epoch(known.epoch, known.inbound)

    # ------------------------------------------------------------------ the schema

    def _checked(self, mutation: Mutation, seen: int) -> Mutation:
        """Return the mutation to apply, which also creates missing databases. Raises UserMistake."""
        replica = self._replica
        schema, tablets = replica.region.schema, mutation.tablets
        if seen < replica.drops.newest:
            self._check_not_overtaken(seen, mutation)
        databases = [_database(p.known.head.device, p.depth) for p in tablets if p.known is not None]
        loaded = [staged.database for staged in mutation.loads]
        changes = needed(schema, mutation.changes, [*databases, *loaded])
        if changes:
            schema = schema.dry_run(changes, [p.known.head.device for p in tablets if p.known is not None])
        for placed, database in zip(tablets, databases, strict=True):
            if placed.known is not None and replica.ownership.owns_schema(database):
                self._fitting.depth(placed.known.head, schema)
        return Mutation(changes, mutation.deletions, tablets, mutation.loads)

    def _check_not_overtaken(self, seen: int, mutation: Mutation) -> None:
        devices = {p.known.head.device for p in mutation.tablets if p.known is not None}
        devices |= {change.device for change in mutation.changes if isinstance(change, OF_ONE_DEVICE)}
        devices |= {d for staged in mutation.loads if staged.known is not None for d in staged.known.devices}
        if self._replica.drops.overtake(seen, devices):
            raise UserMistake(
                "series were dropped after the write was prepared; read the schema again and retry", code=OVERTAKEN
            )


def needed(known: SchemaTree, changes: Sequence[SchemaChange], databases: Sequence[str]) -> list[SchemaChange]:
    """Return the changes that still have an effect, preceded by the creation of `databases` that are missing."""
    found: list[SchemaChange] = []
    created = set()
    for wanted in changes:
        change = wanted
        if isinstance(change, CreateSeries) and change.if_missing:
            device = known.device(change.device)
            left = tuple(s for s in change.series if device is None or s.measurement not in device.series)
            if not left:
                continue
            change = CreateSeries(change.device, change.aligned, left)
        if isinstance(change, CreateDatabase):
            if known.is_database(change.path):
                continue
            created.add(change.path)
        if isinstance(change, DeleteDatabase) and not known.is_database(change.path):
            continue
        found.append(change)
    missing = {d for d in databases if not known.is_database(d)} - created
    return [*(CreateDatabase(database) for database in sorted(missing)), *found]


def _with_parsed_frames(mutation: Mutation) -> Mutation:
    """Return the mutation with the heads of its tablets parsed, so that later checks need not parse them again."""
    if not mutation.tablets:
        return mutation
    return replace(mutation, tablets=[PlacedTablet(p.depth, p.tablet) for p in mutation.tablets])


@lru_cache(_CACHED_DATABASES)
def _database(device: str, depth: int) -> str:
    return join_nodes(split_path(device)[:depth])
