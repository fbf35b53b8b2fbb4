"""Planning with a schema that shows what a read point must see, in as few rounds of messages as possible.

    plan by the schema as it is known here
    catch up with the groups that keep the schema of the statement's patterns, and those that keep the plan's sources
    nothing new came of it: the plan is right        otherwise: plan again, and ask the groups that are new

A plan is taken only if, when it was made, every group that it depends on had told its newest entry. On one node, and of
a pinned moment, nothing is to be asked, and the first plan is taken. Any thread.
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
    """See the module; `sources` returns the sources of a plan. Raises what `plan` and `Database.catch_up` raise."""
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
            return made  # type: ignore[return-value]  # without an error there is one
    return plan()
