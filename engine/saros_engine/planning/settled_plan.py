"""Plan with a schema that is as current as a read point requires.

Planning takes as few rounds of messages to other nodes as possible.

    plan with the schema known on this node
    catch up with the groups that hold the schema of the statement's patterns, and those that hold the plan's sources
    nothing new arrived: the plan is right           otherwise: plan again, and ask the new groups

A plan is accepted only if every group that it depends on had reported its newest log entry before the plan was made. On
a single node, and for a fixed read point, no group has to be asked, and the first plan is accepted. Any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from saros_engine.base.database import Database
from saros_engine.base.errors import EngineError
from saros_engine.catalog.views import with_bases
from saros_storage.base.errors import StorageError
from saros_storage.scan.read_point import ReadPoint, ReadScope, Sources

T = TypeVar("T")


def settled_plan(
    database: Database,
    point: ReadPoint,
    patterns: Collection[str],
    plan: Callable[[], T],
    sources: Callable[[T], Sources],
) -> T:
    """Return a plan made with a current schema; `sources` returns the devices and times that a plan reads.

    Raises the errors of `plan` and `Database.catch_up`.
    """
    while not point.settled:
        version = database.schema.version
        made: T | None = None
        error: Exception | None = None
        try:
            made = plan()
            read = sources(made)
        except (EngineError, StorageError) as found:
            error, read = found, ()
        asked = database.catch_up(point, ReadScope(with_bases(database.schema.catalogue, patterns), read))
        if not asked and error is not None:
            raise error
        if not asked or (error is None and database.schema.version == version):
            return made  # type: ignore[return-value]  # without an error, `made` is set
    return plan()
