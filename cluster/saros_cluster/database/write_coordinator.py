"""Proposes the entries of a coordinator to the meta group, and to several data groups in parallel.

Each entry carries a request, either the client's or one of this node's own, so that a repetition has no second effect
(`data.applied_requests`). A write that spans several groups becomes one entry in each group. Each entry takes effect
entirely or not at all. The outcome of the whole request:

    all done                      nothing is raised
    some refused it               the refusal: the request is wrong, or must be prepared again
    none done                     the failure; OutcomeUnknown takes precedence, since a part may have taken effect
    some done, others not         PartialFailure (2020), which lists both

A caller that prepares a refused request again states which rows are written already. If the request is refused for good
later, the error is a PartialFailure, too. Thread-safe.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial

from msgspec.structs import replace

from saros_cluster.data.command import Request, encode_command
from saros_cluster.data.drops import OVERTAKEN
from saros_cluster.database.partial_failure import PartialFailure, Parts, databases_in
from saros_cluster.database.read_index import ReadBarrier
from saros_cluster.meta.machine import encode_meta_entry
from saros_cluster.meta.state import MetaCommand
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader, OutcomeUnknown, step_deadline_ns
from saros_cluster.routing.proposer import Proposer
from saros_cluster.routing.routing import Routing
from saros_cluster.topology.topology import META
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.write_request import UNNUMBERED, WriteRequest
from saros_storage.mutation.mutation import Mutation

#: The longest time to wait until a change is visible in this node's schema.
SEE_SECONDS = 10.0


class WriteCoordinator:
    """Proposes entries to one or more groups, and combines their outcomes."""

    def __init__(
        self, client: int, proposer: Proposer, read_barrier: ReadBarrier, pool: ThreadPoolExecutor, clock: Clock
    ) -> None:
        """`client` is the client number of this node's own requests.

        The threads of `pool` run the proposals to several groups.
        """
        self._client = client
        self._sequence = itertools.count(1)
        self._proposer = proposer
        self._read_barrier = read_barrier
        self._pool = pool
        self._clock = clock

    def numbered(self, request: WriteRequest) -> WriteRequest:
        """Return the client's request, or, if it has no number, a request with a number of this node."""
        return request if request.is_numbered else self.renumbered(request)

    def renumbered(self, request: WriteRequest) -> WriteRequest:
        """Return the same request with a new number of this node."""
        client, sequence = self.own_request()
        return replace(request, client=client, sequence=sequence)

    def own_request(self) -> Request:
        """Return a new request number of this node."""
        return Request(self._client, next(self._sequence))

    def propose_all(
        self,
        mutations: Parts,
        request: WriteRequest,
        routing: Routing,
        seen: int = 0,
        written: dict[GroupId, Mutation] | None = None,
    ) -> None:
        """Propose an entry in all groups in parallel. The mutations were assigned to the groups by `routing`.

        `seen` is the newest drop that the mutations reflect. `written` has, for each group, the rows that the request
        has written already, and is updated here. Raises what `in_all` raises.
        """
        written = {} if written is None else written
        number = Request(*request.key)

        def propose(group: GroupId) -> None:
            mutation = mutations[group]
            command = encode_command(number, mutation, seen, routing.table_version(group))
            try:
                self._proposer.propose(group, command, deadline_ns=request.deadline_ns)
            except (NoLeader, OutcomeUnknown) as error:
                found = error.unknown() if request.in_doubt and isinstance(error, NoLeader) else error
                raise found.named(databases_in(mutation)) from error
            if mutation.tablets:
                written[group] = mutation

        self.in_all(mutations, propose, written)

    def in_all(self, mutations: Parts, act: Callable[[GroupId], None], done: Parts | None = None) -> None:
        """Run `act` for each group, for all groups at once. Raise errors after all have finished (`raise_failures`).

        `done` has the parts of the request that are applied. A group without a leader does not stop the requests to
        other groups.
        """
        raise_failures(mutations, self._failures(mutations, act), done or {})

    def _failures(self, groups: Collection[GroupId], act: Callable[[GroupId], None]) -> dict[GroupId, StorageError]:
        results: dict[GroupId, Callable[[], object]]
        if len(groups) == 1:
            results = {group: partial(act, group) for group in groups}
        else:
            running = {group: self._pool.submit(act, group) for group in groups}
            wait(running.values())
            results = {group: future.result for group, future in running.items()}
        return {group: error for group, result in results.items() if (error := _failure(result)) is not None}

    def change_meta(self, command: MetaCommand, request: WriteRequest = UNNUMBERED) -> None:
        """Propose a command to the meta group. The effect of the command is visible on this node when the call returns.

        Without `request`, the command gets its own number, since one request may need several commands.
        """
        numbered = self.numbered(request)
        entry = encode_meta_entry(Request(*numbered.key), command)
        with self.showing([META], request.deadline_ns):
            self._proposer.propose(META, entry, deadline_ns=request.deadline_ns)

    @contextmanager
    def showing(self, groups: Collection[GroupId], deadline_ns: int | None) -> Iterator[None]:
        """On exit, wait until the changes that the `with` block made to these groups are visible in this node's schema.

        Raises OutcomeUnknown if the changes are made but do not become visible in time.
        """
        try:
            yield
        except StorageError:
            with suppress(NoLeader):
                self.wait_visible(groups, deadline_ns)
            raise
        try:
            self.wait_visible(groups, deadline_ns)
        except NoLeader as error:
            raise error.unknown() from error

    def wait_visible(self, groups: Iterable[GroupId], deadline_ns: int | None = None) -> None:
        """Wait until all earlier changes of these groups are visible in this node's schema. Raises NoLeader."""
        now_ns = self._clock.monotonic_ns()
        until_ns = step_deadline_ns(now_ns, SEE_SECONDS, deadline_ns)
        self._read_barrier.catch_up(groups, (until_ns - now_ns) / 1e9)


def _failure(result: Callable[[], object]) -> StorageError | None:
    try:
        result()
    except StorageError as error:
        return error
    return None


def raise_failures(mutations: Parts, failures: Mapping[GroupId, StorageError], before: Parts) -> None:
    """Raise the error of the whole request if a group failed. The module's docstring lists the cases.

    `failures` has the error of each group that failed. `before` has the parts of the request that were applied in
    earlier attempts.
    """
    if not failures:
        return
    found = sorted(failures.values(), key=_precedence)
    done = {**before, **{group: mutation for group, mutation in mutations.items() if group not in failures}}
    if isinstance(found[0], UserMistake) or not done:
        raise found[0]
    failed = {group: mutations[group] for group in failures if group not in done}
    raise PartialFailure(done, failed, "; ".join(str(error) for error in failures.values())) from found[0]


def _precedence(error: StorageError) -> int:
    if error.code in (MOVED, OVERTAKEN):
        return 0
    return 1 if isinstance(error, UserMistake) else 2 if isinstance(error, OutcomeUnknown) else 3
