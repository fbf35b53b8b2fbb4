"""A coordinator's entries: in the logs of data groups, at once, and in that of the meta group.

Each carries a request, the client's or one of this node's own, so a repetition has no second effect (`data.requests`).
What spans groups is one entry in each: each is all or nothing, the whole may be done in part if a group fails, and then
says so (`partly`). Thread-safe.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress

from saros_cluster.catching_up import CatchingUp
from saros_cluster.data.command import NO_REQUEST, Request, current_request, encode_command
from saros_cluster.growth.topology import META
from saros_cluster.meta.machine import encode_meta_entry
from saros_cluster.meta.state import MetaCommand
from saros_cluster.partly import raise_failures
from saros_cluster.proposer import NoLeader, OutcomeUnknown, Proposer
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing import Routing
from saros_storage.errors import StorageError
from saros_storage.mutation import Mutation

#: What was written is waited for so long until it shows.
SEE_SECONDS = 10.0


class Entries:
    """See the module."""

    def __init__(self, client: int, proposer: Proposer, catching_up: CatchingUp, pool: ThreadPoolExecutor) -> None:
        """`client`: of this node's own requests; `pool`: talks to several groups at once."""
        self._client = client
        self._sequence = itertools.count(1)
        self._proposer = proposer
        self._catching_up = catching_up
        self._pool = pool

    def request(self) -> Request:
        """The client's request, or one of this node's own."""
        request = current_request.get()
        return self.own_request() if request == NO_REQUEST else request

    def own_request(self) -> Request:
        """A new one of this node's."""
        return Request(self._client, next(self._sequence))

    def propose_all(
        self, mutations: Mapping[GroupId, Mutation], request: Request, routing: Routing, seen: int = 0
    ) -> None:
        """An entry in each group, at once; `routing`: that which says to whom what goes.

        `seen`: the newest drop that they take into account. Raises what `in_all` does.
        """

        def propose(group: GroupId) -> None:
            self._proposer.propose(group, encode_command(request, mutations[group], seen, routing.known(group)))

        self.in_all(mutations, propose)

    def in_all(self, mutations: Mapping[GroupId, Mutation], act: Callable[[GroupId], None]) -> None:
        """Carry out something in each group, at once. Raises what `raise_failures` does, after all are over."""
        if len(mutations) == 1:
            act(next(iter(mutations)))
            return
        running = {group: self._pool.submit(act, group) for group in mutations}
        wait(running.values())
        failures: dict[GroupId, StorageError] = {}
        for group, future in running.items():
            try:
                future.result()
            except StorageError as error:
                failures[group] = error
        raise_failures(mutations, failures)

    def change_meta(self, command: MetaCommand, request: Request | None = None) -> None:
        """An entry of the meta group; it shows here when this returns.

        By default a command has a number of its own: one request may need several.
        """
        with self.showing([META]):
            self._proposer.propose(META, encode_meta_entry(request or self.own_request(), command))

    @contextmanager
    def showing(self, groups: Collection[GroupId]) -> Iterator[None]:
        """What is written to these groups meanwhile shows in this node's schema afterwards.

        Raises OutcomeUnknown if that cannot be seen: then it may be written all the same.
        """
        try:
            yield
        except StorageError:
            with suppress(NoLeader):
                self.see(groups)
            raise
        try:
            self.see(groups)
        except NoLeader as error:
            raise OutcomeUnknown(error.group, error.why) from error

    def see(self, groups: Iterable[GroupId]) -> None:
        """Wait until what was written to these groups before shows in this node's schema. Raises NoLeader."""
        self._catching_up.catch_up(groups, SEE_SECONDS)
