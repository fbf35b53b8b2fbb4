"""Batches of different devices that are written together.

    ColumnBatch --checked--> CheckedBatch --fitted to the schema--> Fitted ----------+--> JointWrite --> Database.write
    MultiBatch  --kinds of devices--> one device fitted for all of a kind --> Group -+

Thread-confined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from saros_engine.base.database import Database
from saros_engine.writes.batches import MultiBatch
from saros_engine.writes.fitting import points_of
from saros_engine.writes.schema_check import SchemaCheck
from saros_storage.base.block import Column
from saros_storage.base.tablet import MultiTablet, Tablet
from saros_storage.base.types import DataType, Int64Array
from saros_storage.base.write_request import WriteRequest
from saros_storage.schema import CreateDatabase, SchemaChange

#: The shape of a batch: the device as the caller spelled it, the measurements and their types, and the requested
#: alignment.
BatchKey = tuple[str, tuple[str, ...], tuple[DataType, ...], bool | None]


class CheckedBatch(msgspec.Struct, frozen=True, eq=False):
    """A checked batch: each column has one value per row and at least one point, and no row is expired."""

    key: BatchKey
    times: Int64Array
    columns: Mapping[str, Column]
    #: If some rows were expired: the number of points including the expired points, and a text about the expired rows.
    given: int = 0
    expired: str = ""
    #: True if columns that do not fit their series are left out.
    partial: bool = False
    #: The tags of the series that the batch creates.
    tags: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def points(self) -> int:
        """The number of points."""
        return 0 if self.is_empty else points_of(tuple(self.columns.values()))

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to write."""
        return not self.columns or not len(self.times)


class Fitted(msgspec.Struct, frozen=True):
    """The tablet of a batch, fitted to the current schema."""

    tablet: Tablet
    creates: Sequence[SchemaChange] = ()
    #: For the columns of a partial batch that the tablet does not have: the number of their points, and the reasons.
    lost: int = 0
    misfits: Sequence[str] = ()


class Group(msgspec.Struct, frozen=True, eq=False):
    """Devices of one kind whose rows are written as one tablet."""

    #: The devices' numbers in the request.
    numbers: Sequence[int]
    rows: MultiBatch
    tablet: MultiTablet
    creates: Sequence[SchemaChange]
    #: The batch of each device, if the write of the tablet has failed; otherwise empty.
    batches: list[CheckedBatch] = msgspec.field(default_factory=list)

    def outcomes(self, failed: Mapping[CheckedBatch, int | Exception]) -> list[int | Exception]:
        """Return the outcome of each device; `failed` has the outcomes of the batches that the tablet did not write."""
        points = self.rows.points()
        return [failed.get(b, n) for b, n in zip(self.batches, points, strict=True)] if self.batches else [*points]


class JointWrite(msgspec.Struct, frozen=True):
    """Batches of different devices that are written together, and the schema changes that they need."""

    #: The version of the schema, which was read before the batches were fitted to it.
    version: int
    tablets: dict[CheckedBatch, Tablet] = msgspec.field(default_factory=dict)
    groups: list[Group] = msgspec.field(default_factory=list)
    creates: list[SchemaChange] = msgspec.field(default_factory=list)
    #: The databases in `creates`. Several devices may need the same database.
    databases: set[CreateDatabase] = msgspec.field(default_factory=set)

    @property
    def content(self) -> list[Tablet | MultiTablet]:
        """The tablets to write."""
        return [*self.tablets.values(), *(group.tablet for group in self.groups)]

    def add(self, batch: CheckedBatch, tablet: Tablet, creates: Sequence[SchemaChange]) -> None:
        """Add a batch."""
        self.tablets[batch] = tablet
        self._create(creates)

    def add_group(self, group: Group) -> None:
        """Add a group."""
        self.groups.append(group)
        self._create(group.creates)

    def _create(self, creates: Sequence[SchemaChange]) -> None:
        for change in creates:
            if isinstance(change, CreateDatabase):
                if change in self.databases:
                    continue
                self.databases.add(change)
            self.creates.append(change)


class JointWrites(msgspec.Struct, frozen=True):
    """The joint writes of a request.

    Unless the request is numbered, batches that create series are written separately, so that a refused schema change
    does not affect other batches.
    """

    plain: JointWrite
    creating: JointWrite
    schema_check: SchemaCheck

    @staticmethod
    def of(database: Database, request: WriteRequest) -> JointWrites:
        """Return empty joint writes for the current schema. A numbered request has only one joint write for both."""
        plain = JointWrite(database.schema.version)
        creating = plain if request.is_numbered else JointWrite(plain.version)
        return JointWrites(plain, creating, SchemaCheck(database, request))

    def add(self, batch: CheckedBatch, tablet: Tablet, creates: Sequence[SchemaChange]) -> None:
        """Add a batch."""
        (self.creating if creates else self.plain).add(batch, tablet, creates)

    def add_group(self, group: Group) -> None:
        """Add a group."""
        (self.creating if group.creates else self.plain).add_group(group)
