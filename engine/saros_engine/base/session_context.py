"""The state of a session: its user, its settings, and how much of the database's history it has seen."""

from __future__ import annotations

import msgspec

from saros_engine.base.access import UNRESTRICTED, Access, Trail
from saros_engine.base.query_registry import ClientInfo
from saros_storage.scan.read_point import ReadHorizon, ReadPoint


class SessionContext(msgspec.Struct):
    """The state of one session; SET statements change it."""

    zone: str = "UTC"
    #: The consistency of the session's reads in a cluster: strong, mid or weak.
    consistency: str = "strong"
    #: True if reads omit the data of groups that have no leader, and report the omission.
    partial: bool = False
    access: Access = UNRESTRICTED
    trail: Trail | None = None
    #: The state of the database that the session's reads have seen.
    horizon: ReadHorizon = msgspec.field(default_factory=ReadHorizon)
    #: The folders that LOAD may read from; None means any folder that the process may read.
    load_folders: tuple[str, ...] | None = None
    #: The fixed read point of the session's reads; None means a new read point for each read.
    point: ReadPoint | None = None
    #: True if the session accepts only statements that read.
    read_only: bool = False
    #: True if unrelated clients share the session, so that none of them may change its settings.
    shared: bool = False
    #: The host of the session's client, or None if the client is in this process.
    host: str | None = None

    @property
    def asker(self) -> ClientInfo:
        """The client, as the query registry shows it."""
        return ClientInfo(self.access.user, self.host)
