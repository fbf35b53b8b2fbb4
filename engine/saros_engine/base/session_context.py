"""The state of a session: its user, its settings, and the state of the database that it has seen."""

from __future__ import annotations

from dataclasses import dataclass, field

from saros_engine.base.access import UNRESTRICTED, Access, Trail
from saros_engine.base.query_registry import ClientInfo
from saros_storage.scan.read_point import ReadHorizon, ReadPoint


@dataclass(slots=True)
class SessionContext:
    """The state of one session; SET statements change it."""

    zone: str = "UTC"
    #: Consistency of its reads in a cluster: strong, mid or weak.
    consistency: str = "strong"
    #: Its reads omit the data of groups without a leader, and report that.
    partial: bool = False
    access: Access = UNRESTRICTED
    trail: Trail | None = None
    #: The state that its reads have seen.
    horizon: ReadHorizon = field(default_factory=ReadHorizon)
    #: Folders that LOAD may read from; None: any that the process may read.
    load_folders: tuple[str, ...] | None = None
    #: The fixed read point of its reads; None: a new one for each read.
    point: ReadPoint | None = None
    #: It only accepts statements that read.
    read_only: bool = False
    #: Unrelated clients share it, so none of them may change its settings.
    shared: bool = False
    #: Host of its client; None: this process.
    host: str | None = None

    @property
    def asker(self) -> ClientInfo:
        """The client, as recorded for its queries."""
        return ClientInfo(self.access.user, self.host)
