"""A coordinator's entries: in the logs of data groups, at once, and in that of the meta group.

Each carries a request, the client's or one of this node's own, so a repetition has no second effect
(`data.applied_requests`). A write that spans groups is one entry in each. Each entry is all or nothing; the outcome of
the whole:

    all done                      nothing is raised
    some refused it               why: the request is wrong, or has to be prepared anew
    none done                     the failure; OutcomeUnknown before any other: it may be done after all
    some done, others not         PartialFailure (2020), which says what is where

Who prepares anew what was refused keeps what rows were written before: refused for good then, it is PartialFailure too.
Thread-safe.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

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

#: The longest wait until what was written shows.
SEE_SECONDS = 10.0


class WriteCoordinator:
    """See the module."""

    def __init__(
        self, client: int, proposer: Proposer, read_barrier: ReadBarrier, pool: ThreadPoolExecutor, clock: Clock
    ) -> None:
        """`client`: of this node's own requests; `pool`: talks to several groups at once."""
        self._client = client
        self._sequence = itertools.count(1)
        self._proposer = proposer
        self._read_barrier = read_barrier
        self._pool = pool
        self._clock = clock

    def numbered(self, request: WriteRequest) -> WriteRequest:
        """The client's request, or, if it has no number, one of this node's own."""
        return request if request.is_numbered else self.renumbered(request)

    def renumbered(self, request: WriteRequest) -> WriteRequest:
        """A new request of this node's, with the deadline of another one."""
        client, sequence = self.own_request()
        return replace(request, client=client, sequence=sequence)

    def own_request(self) -> Request:
        """A new number of this node's."""
        return Request(self._client, next(self._sequence))

    def propose_all(
        self,
        mutations: Parts,
        request: WriteRequest,
        routing: Routing,
        seen: int = 0,
        written: dict[GroupId, Mutation] | None = None,
    ) -> None:
        """An entry in each group, at once; `routing`: that which says to whom what goes.

        `seen`: the newest drop that they take into account; `written`: by group, rows that the request has brought by
        now. Raises what `in_all` does.
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
        """Carry out something in each group, at once; raises after all are over. `done`: what is, of the request.

        A group that has no leader keeps none of the others from its part.
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
        """An entry of the meta group; it shows here when this returns.

        By default a command has a number of its own: one request may need several.
        """
        numbered = self.numbered(request)
        entry = encode_meta_entry(Request(*numbered.key), command)
        with self.showing([META], request.deadline_ns):
            self._proposer.propose(META, entry, deadline_ns=request.deadline_ns)

    @contextmanager
    def showing(self, groups: Collection[GroupId], deadline_ns: int | None) -> Iterator[None]:
        """What is written to these groups meanwhile shows in this node's schema afterwards.

        Raises OutcomeUnknown if that cannot be seen in time: then it may be written all the same.
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
        """Wait until what was written to these groups before shows in this node's schema. Raises NoLeader."""
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
    """See the module; `failures`: those of the groups that have one; `before`: what was done of the request earlier."""
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
