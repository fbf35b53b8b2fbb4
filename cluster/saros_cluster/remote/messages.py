"""The questions of remote reading, their names, and their bytes.

    read.open     a query, what the view must show, requests -> what it shows, a number for   pins the view
                                                                each reader, some first batches
    read.stream   a query, a reader's number                 -> batches (`codec`), the last one with the counters
    read.next     the same                                   -> one batch, where no stream is to be had
    read.renew    a query                                    -> nothing                       it is still wanted
    read.close    a query                                    -> nothing                       releases all of it

A query's id must be unique over restarts of the node that asks: the holder knows a query by both. Pure: any thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from saros_cluster.data.command import TableVersion
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.codec import read_request, write_request
from saros_cluster.remote.fields import FieldReader, FieldWriter
from saros_scheduler.task import QueryId
from saros_storage.scan.reading import ScanRequest

OPEN, STREAM, NEXT, RENEW, CLOSE = "read.open", "read.stream", "read.next", "read.renew", "read.close"
#: A holder waits no longer than this until it has applied what a reader must see.
PATIENCE_MS_MAX = 5_000


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """What a coordinator demands of a holder's view."""

    group: GroupId
    #: The group's log entry that must have taken effect; None: whatever has (a weak read).
    minimum_applied: int | None
    #: Of the table by which the coordinator chose the group: see `Ownership.check_view`.
    epoch: int
    inbound: int = 0
    outbound: int = 0
    #: How long the holder may wait until it has that much; then it refuses.
    patience_ms: int = PATIENCE_MS_MAX
    #: Not the group's region is read, but a view that the node keeps under this name (see `opener`).
    view_name: str = ""

    @property
    def table_version(self) -> TableVersion:
        """What of that table concerns the group."""
        return TableVersion(self.epoch, self.inbound, self.outbound)

    def is_satisfied_by(self, other: ReadTarget) -> bool:
        """Whether a view that meets the other target meets this one."""
        if self.group != other.group or self.table_version != other.table_version or self.view_name != other.view_name:
            return False
        if self.minimum_applied is None or other.minimum_applied is None:
            return self.minimum_applied is None
        return self.minimum_applied <= other.minimum_applied


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """See the module. `pinned`: the query has read this group here before, so a view of it must still be there."""

    query: QueryId
    target: ReadTarget
    pinned: bool
    requests: tuple[ScanRequest, ...]
    #: Numbers of the query's readers here that are not wanted any more.
    abandoned: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """As bytes."""
        out = FieldWriter()
        out.text(self.query)
        out.number(self.target.group)
        out.scalar(self.target.minimum_applied)
        out.number(self.target.epoch)
        out.number(self.target.inbound)
        out.number(self.target.outbound)
        out.number(self.target.patience_ms)
        out.text(self.target.view_name)
        out.flag(self.pinned)
        out.number(len(self.requests))
        for request in self.requests:
            write_request(out, request)
        out.number(len(self.abandoned))
        for reader in self.abandoned:
            out.number(reader)
        return out.done()

    @staticmethod
    def decode(data: bytes) -> OpenQuestion:
        """The inverse. Raises ValueError."""
        fields = FieldReader(data)
        query = QueryId(fields.text())
        group, minimum = GroupId(fields.number()), fields.scalar()
        if minimum is not None and type(minimum) is not int:
            raise ValueError(f"{minimum!r} is no index of a log")
        known = TableVersion(fields.number(), fields.number(), fields.number())
        target = ReadTarget(group, minimum, *known, fields.number(), fields.text())
        pinned = fields.flag()
        requests = tuple(read_request(fields) for _ in range(fields.count()))
        question = OpenQuestion(query, target, pinned, requests, tuple(fields.number() for _ in range(fields.count())))
        fields.end()
        return question


@dataclass(frozen=True, slots=True)
class ReaderQuestion:
    """See the module."""

    query: QueryId
    reader: int

    def encode(self) -> bytes:
        """As bytes."""
        out = FieldWriter()
        out.text(self.query)
        out.number(self.reader)
        return out.done()

    @staticmethod
    def decode(data: bytes) -> ReaderQuestion:
        """The inverse. Raises ValueError."""
        fields = FieldReader(data)
        question = ReaderQuestion(QueryId(fields.text()), fields.number())
        fields.end()
        return question


@dataclass(frozen=True, slots=True)
class Opened:
    """The answer to an OpenQuestion."""

    #: No entry of the group's log behind this one shows in the view.
    shown: int
    #: Each reader's number and its first batch, or nothing instead of it.
    readers: tuple[tuple[int, bytes], ...]

    def encode(self) -> bytes:
        """As bytes."""
        out = FieldWriter()
        out.number(self.shown)
        out.number(len(self.readers))
        for number, batch in self.readers:
            out.number(number)
            out.data(batch)
        return out.done()

    @staticmethod
    def decode(data: bytes) -> Opened:
        """The inverse. Raises ValueError."""
        fields = FieldReader(data)
        opened = Opened(fields.number(), tuple((fields.number(), fields.data()) for _ in range(fields.count())))
        fields.end()
        return opened


def encode_query(query: QueryId) -> bytes:
    """The question to renew or to close."""
    return query.encode()


def decode_query(data: bytes) -> QueryId:
    """The inverse. Raises ValueError."""
    return QueryId(data.decode())
