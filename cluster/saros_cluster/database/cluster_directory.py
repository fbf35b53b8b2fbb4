"""The directory of a cluster: its users are in the meta group's state, which every node has.

    users     as this node knows them; on a node that is cut off, as it last knew them
    newest    includes every acknowledged change, unless the meta group does not answer promptly
    change    goes into the meta group's log, then shows here

Logins use `newest`: a user that was just created at one node may log in at all others, and one that was dropped at
none. Renewing a hash does not wait long for a leader: it is given up soon, until the next login.

A cluster that began without an administrator keeps no users: there is nobody who could make the first one. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable

from saros_cluster.database.database import ClusterDatabase
from saros_cluster.database.read_index import MID_SECONDS
from saros_cluster.routing.no_leader import NoLeader
from saros_cluster.routing.proposer import DEADLINE_SECONDS
from saros_cluster.users.commands import Command, Rehash
from saros_cluster.users.users import Users
from saros_storage.base.errors import UserMistake


class ClusterDirectory:
    """See the module. Implements `Directory`."""

    def __init__(self, database: ClusterDatabase, known: Callable[[], Users]) -> None:
        """`known`: the users in this node's state of the meta group."""
        self._database = database
        self._known = known

    def users(self) -> Users:
        """See `Directory.users`."""
        return self._known()

    def newest(self) -> Users:
        """See `Directory.newest`."""
        if self._known().users:
            try:
                self._database.wait_users_visible(MID_SECONDS)
            except NoLeader:
                return self._known()  # who was let in before is let in now
        return self._known()

    def change(self, command: Command, deadline_ns: int | None = None) -> None:
        """See `Directory.change`. Raises NoLeader, OutcomeUnknown."""
        if not self._known().users:
            raise UserMistake(
                "this cluster keeps no users: it was made without an administrator (saros cluster secure gives it one,"
                " if it is on one machine)"
            )
        seconds = MID_SECONDS if isinstance(command, Rehash) else DEADLINE_SECONDS
        self._database.change_users(command, seconds, deadline_ns)
