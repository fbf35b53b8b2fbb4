"""The error for a request over several groups that is done in part. When it is raised: see `write_coordinator`."""

from __future__ import annotations

from collections.abc import Mapping

from saros_cluster.raft.messages import GroupId
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.mutation.mutation import Mutation
from saros_storage.schema import OF_ONE_DEVICE, CreateDatabase

#: Things that a sentence lists.
_LISTED_MAX = 5
#: What groups were to do.
Parts = Mapping[GroupId, Mutation]


class PartialFailure(StorageError):
    """Some groups have carried their part out, others have not, or may have not."""

    code = 2020

    def __init__(self, done: Parts, failed: Parts, why: str, refused: UserMistake | None = None) -> None:
        """`failed`: none if it is all that is not done; `refused`: why it never will be done, as it was prepared."""
        rest = _list(failed) if failed else "the rest"
        super().__init__(f"done in part: done is {_list(done)}; not done is {rest}: {why}")
        self.done = done
        self.failed = failed
        self.refused = refused


def final_refusal(done: Parts, why: UserMistake) -> PartialFailure:
    """A request is refused for good, of which some groups have done this."""
    return PartialFailure(done, {}, str(why), why)


def databases_in(mutation: Mutation) -> list[str]:
    """The databases that rows are for, or that series are made in."""
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
