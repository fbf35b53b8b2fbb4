"""The state of a session: its user, its settings, and what it was shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from saros_engine.base.access import UNRESTRICTED, Access, Trail
from saros_engine.base.query_registry import ClientInfo
from saros_storage.scan.read_point import ReadHorizon, ReadPoint


@dataclass(slots=True)
class SessionContext:
    """One session's; SET statements change it."""

    zone: str = "UTC"
    #: Of reads in a cluster: strong, mid or weak.
    consistency: str = "strong"
    #: Its reads leave out what groups without a leader have, and say so.
    partial: bool = False
    access: Access = UNRESTRICTED
    trail: Trail | None = None
    #: What it was shown.
    horizon: ReadHorizon = field(default_factory=ReadHorizon)
    #: Folders that LOAD may read from; None: whatever the process may.
    load_folders: tuple[str, ...] | None = None
    #: What its reads see; None: what there is when they begin.
    point: ReadPoint | None = None
    #: It takes statements that read, and no others.
    read_only: bool = False
    #: Clients that know nothing of each other use it, so that none may change its settings.
    shared: bool = False
    #: Where its client is; None: in this process.
    host: str | None = None

    @property
    def asker(self) -> ClientInfo:
        """Who asks for its queries."""
        return ClientInfo(self.access.user, self.host)
