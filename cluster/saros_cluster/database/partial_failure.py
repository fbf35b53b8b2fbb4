"""The error for a request over several groups that took effect in part (see `write_coordinator` for when it is raised).

For a write of rows, the error lists the written and the missing rows as ranges of time (`RowsLeft`), so that the client
can send the missing rows again. Rows count as missing if their group has not acknowledged them, although the group may
have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from saros_cluster.data.drops import OVERTAKEN
from saros_cluster.placement.slots import MOVED
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.mutation.mutation import Mutation
from saros_storage.schema import OF_ONE_DEVICE, CreateDatabase

if TYPE_CHECKING:  # an embedded database imports these errors, but must not import Raft
    from saros_cluster.raft.messages import GroupId

#: The maximum number of items that a message lists.
_LISTED_MAX = 5
#: The mutation of each group.
Parts = Mapping["GroupId", Mutation]


class RowRange(msgspec.Struct, frozen=True):
    """The rows of a write for one device in a range of time, both ends inclusive."""

    device: str
    start: int
    end: int


class RowsLeft(msgspec.Struct, frozen=True):
    """The written and the missing rows of a write that took effect in part. Every row is in one of the two lists."""

    written: Sequence[RowRange]
    missing: Sequence[RowRange]
    #: True if the missing rows will be refused again, unless the schema changes.
    is_final: bool = False


class PartialFailure(StorageError):
    """Some groups have applied their parts of a request.

    Other groups have not applied their parts, or may not have applied them.
    """

    code = 2020

    def __init__(
        self,
        done: Parts,
        failed: Parts,
        why: str,
        refused: UserMistake | None = None,
        rows: RowsLeft | None = None,
    ) -> None:
        """`failed` has the parts that failed, or is empty if all parts that are not in `done` failed.

        `rows` is set for a write of rows. `refused` is set if the request was refused for good, so that a repetition
        would be refused again.
        """
        rest = _list(failed) if failed else "the rest"
        super().__init__(f"partially done: {_list(done)} succeeded; {rest} failed: {why}")
        self.done = done
        self.failed = failed
        self.why = why
        self.refused = refused
        self.rows = rows


def final_refusal(done: Parts, why: UserMistake, rows: RowsLeft | None = None) -> PartialFailure:
    """Return the error of a request that is refused for good although some groups have applied its parts `done`."""
    return PartialFailure(done, {}, str(why), why, None if rows is None else replace(rows, is_final=True))


def is_refusal(error: Exception) -> bool:
    """Return whether a request, or a part of it, was refused for good: a repetition would be refused again."""
    if isinstance(error, PartialFailure):
        return error.refused is not None
    return isinstance(error, UserMistake) and error.code not in (MOVED, OVERTAKEN)


def cause_of(error: StorageError) -> StorageError:
    """Return the error of the group that caused a PartialFailure. Return any other error unchanged."""
    while isinstance(error, PartialFailure) and isinstance(error.__cause__, StorageError):
        error = error.__cause__
    return error


def of_device(error: PartialFailure, device: str) -> PartialFailure | None:
    """Return the error for the rows of one device, or None if all of them are written."""
    rows = error.rows
    if rows is None:
        return error
    written, missing = (
        [found for found in ranges if found.device == device] for ranges in (rows.written, rows.missing)
    )
    if not missing:
        return None
    left = replace(rows, written=written, missing=missing)
    found = PartialFailure(error.done, error.failed, error.why, error.refused, left)
    found.__cause__ = error.__cause__
    return found


def databases_in(mutation: Mutation) -> list[str]:
    """Return the databases that a mutation creates, or to which it writes rows."""
    rows = (join_nodes(split_path(placed.tablet.head.device)[: placed.depth]) for placed in mutation.tablets)
    made = (change.path for change in mutation.changes if isinstance(change, CreateDatabase))
    return sorted({*rows, *made})


def _describe(mutation: Mutation) -> str:
    parts = [f"dropping or deleting {', '.join(deletion.patterns)}" for deletion in mutation.deletions]
    parts += [f"schema of {c.device}" for c in mutation.changes if isinstance(c, OF_ONE_DEVICE)]
    for placed in mutation.tablets:
        frame = placed.tablet
        parts.append(f"{frame.head.device} from {frame.span.start} to {frame.span.end}")
    return _shortened(parts or ["dropping a database"])


def _list(parts: Parts) -> str:
    return _shortened([f"{_describe(mutation)} (group {group})" for group, mutation in parts.items()])


def _shortened(parts: list[str]) -> str:
    more = f" and {len(parts) - _LISTED_MAX} more" if len(parts) > _LISTED_MAX else ""
    return ", ".join(parts[:_LISTED_MAX]) + more
