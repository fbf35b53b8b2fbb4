"""The requests of remote reading, their names, and their bytes.

    read.open     a query, the required view, scan requests  -> index shown, a number for     pins the view
                                                                each reader, some first batches
    read.stream   a query, a reader's number                 -> batches (`codec`), the last one with the counters
    read.next     a query, a reader's number                 -> one batch, for a reader without a stream
    read.renew    a query                                    -> nothing                       extends the lease
    read.close    a query                                    -> nothing                       releases all of it

A holder identifies a query by the node that runs it and by the query's id, which must be unique even across restarts of
that node. Pure: any thread.
"""

from __future__ import annotations

import msgspec

from saros_cluster.data.command import TableVersion
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.codec import read_request, write_request
from saros_cluster.remote.fields import FieldReader, FieldWriter
from saros_scheduler.task import QueryId
from saros_storage.scan.reading import ScanRequest

OPEN, STREAM, NEXT, RENEW, CLOSE = "read.open", "read.stream", "read.next", "read.renew", "read.close"
#: The longest time for which a holder waits until it has applied the required entry.
PATIENCE_MS_MAX = 5_000


class ReadTarget(msgspec.Struct, frozen=True):
    """The view that a coordinator requires of a holder."""

    group: GroupId
    #: The entry of the group's log that the holder must have applied, or None if any state is sufficient (a weak read).
    minimum_applied: int | None
    #: The version of the coordinator's table (see `Ownership.check_view`).
    epoch: int
    inbound: int = 0
    outbound: int = 0
    #: How long the holder may wait until it has applied the required entry. After this time, the holder refuses the
    #: request.
    patience_ms: int = PATIENCE_MS_MAX
    #: If set, the holder reads the view that it has stored under this name, instead of the group's region (see
    #: `opener`).
    view_name: str = ""

    @property
    def table_version(self) -> TableVersion:
        """The version of the coordinator's table for this group."""
        return TableVersion(self.epoch, self.inbound, self.outbound)

    def is_satisfied_by(self, other: ReadTarget) -> bool:
        """Return whether a view that meets the other target also meets this target."""
        if self.group != other.group or self.table_version != other.table_version or self.view_name != other.view_name:
            return False
        if self.minimum_applied is None or other.minimum_applied is None:
            return self.minimum_applied is None
        return self.minimum_applied <= other.minimum_applied


class OpenQuestion(msgspec.Struct, frozen=True):
    """A request to open readers.

    `pinned` is True if the query has read this group at this holder before: the query's view must still be there.
    """

    query: QueryId
    target: ReadTarget
    pinned: bool
    requests: tuple[ScanRequest, ...]
    #: Numbers of the query's readers at the holder that are no longer needed.
    abandoned: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """Return the message as bytes."""
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
        """Decode the message. Raises ValueError."""
        fields = FieldReader(data)
        query = QueryId(fields.text())
        group, minimum = GroupId(fields.number()), fields.scalar()
        if minimum is not None and type(minimum) is not int:
            raise ValueError(f"{minimum!r} is not a log index")
        known = TableVersion(fields.number(), fields.number(), fields.number())
        target = ReadTarget(group, minimum, *known, fields.number(), fields.text())
        pinned = fields.flag()
        requests = tuple(read_request(fields) for _ in range(fields.count()))
        question = OpenQuestion(query, target, pinned, requests, tuple(fields.number() for _ in range(fields.count())))
        fields.end()
        return question


class ReaderQuestion(msgspec.Struct, frozen=True):
    """A request for batches of one reader."""

    query: QueryId
    reader: int

    def encode(self) -> bytes:
        """Return the message as bytes."""
        out = FieldWriter()
        out.text(self.query)
        out.number(self.reader)
        return out.done()

    @staticmethod
    def decode(data: bytes) -> ReaderQuestion:
        """Decode the message. Raises ValueError."""
        fields = FieldReader(data)
        question = ReaderQuestion(QueryId(fields.text()), fields.number())
        fields.end()
        return question


class Opened(msgspec.Struct, frozen=True):
    """The answer to an OpenQuestion."""

    #: The last entry of the group's log that the view may show.
    shown: int
    #: For each opened reader, its number and its first batch, or b"" if the batch is not included.
    readers: tuple[tuple[int, bytes], ...]

    def encode(self) -> bytes:
        """Return the message as bytes."""
        out = FieldWriter()
        out.number(self.shown)
        out.number(len(self.readers))
        for number, batch in self.readers:
            out.number(number)
            out.data(batch)
        return out.done()

    @staticmethod
    def decode(data: bytes) -> Opened:
        """Decode the message. Raises ValueError."""
        fields = FieldReader(data)
        opened = Opened(fields.number(), tuple((fields.number(), fields.data()) for _ in range(fields.count())))
        fields.end()
        return opened


def encode_query(query: QueryId) -> bytes:
    """Return the bytes of a request to renew or to close a query."""
    return query.encode()


def decode_query(data: bytes) -> QueryId:
    """Decode the request of `encode_query`. Raises ValueError."""
    return QueryId(data.decode())
