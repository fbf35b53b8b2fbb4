"""What came of one request that is an entry in each of several groups.

    all done                      nothing is raised
    some refused it               why: the request is wrong, or has to be prepared anew
    none done                     the failure; OutcomeUnknown before any other: it may be done after all
    some done, others not         PartlyDone (2020), which says what is where

A request that is sent again is done where it was not, and nowhere twice.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Mapping

from saros_cluster.data.drops import OVERTAKEN
from saros_cluster.data.ownership import MOVED
from saros_cluster.proposer import OutcomeUnknown
from saros_cluster.raft.messages import GroupId
from saros_storage.errors import StorageError, UserMistake
from saros_storage.mutation import Mutation
from saros_storage.schema import AlterSeries, CreateSeries

#: Things that a sentence lists.
_LISTED_MAX = 5


class PartlyDone(StorageError):
    """Some groups have carried their part out, others have not, or may have not."""

    code = 2020

    def __init__(self, done: Mapping[GroupId, str], failed: Mapping[GroupId, str], why: Mapping[GroupId, str]) -> None:
        super().__init__(f"done in part: done is {_list(done)}; not done is {_list(failed)}: {'; '.join(why.values())}")
        self.done = tuple(done)
        self.failed = tuple(failed)


def raise_failures(mutations: Mapping[GroupId, Mutation], failures: Mapping[GroupId, StorageError]) -> None:
    """See the module; `failures`: those of the groups that have one."""
    if not failures:
        return
    found = sorted(failures.values(), key=_precedence)
    if isinstance(found[0], UserMistake) or len(failures) == len(mutations):
        raise found[0]
    done = {group: what(mutation) for group, mutation in mutations.items() if group not in failures}
    failed = {group: what(mutations[group]) for group in failures}
    raise PartlyDone(done, failed, {g: str(e) for g, e in failures.items()}) from found[0]


def _precedence(error: StorageError) -> int:
    if error.code in (MOVED, OVERTAKEN):
        return 0
    return 1 if isinstance(error, UserMistake) else 2 if isinstance(error, OutcomeUnknown) else 3


def what(mutation: Mutation) -> str:
    """What a group was to do."""
    parts = [f"dropping or deleting {', '.join(deletion.patterns)}" for deletion in mutation.deletions]
    parts += [f"schema of {c.device}" for c in mutation.changes if isinstance(c, CreateSeries | AlterSeries)]
    for placed in mutation.tablets:
        frame = placed.tablet
        parts.append(f"{frame.head.device} from {frame.span.start} to {frame.span.end}")
    return _shortened(parts or ["dropping a database"])


def _list(parts: Mapping[GroupId, str]) -> str:
    return _shortened([f"{text} (group {group})" for group, text in parts.items()])


def _shortened(parts: list[str]) -> str:
    more = f" and {len(parts) - _LISTED_MAX} more" if len(parts) > _LISTED_MAX else ""
    return ", ".join(parts[:_LISTED_MAX]) + more
