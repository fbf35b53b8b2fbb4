"""The user directory of a cluster. Users are part of the meta group's state, which every node has.

    users     as this node knows them; a node that is cut off may have an old state
    newest    includes every acknowledged change, unless the meta group does not answer promptly
    change    goes into the meta group's log; visible on this node when the call returns

Logins use `newest`, so that a new user can log in on all nodes at once, and a dropped user cannot log in anywhere. The
renewal of a password hash waits for a leader only briefly. If the renewal fails, the next login tries again.

A cluster that was started without an administrator has no users, since no one would have the right to create the first
one. Thread-safe.
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
    """The users in the meta group's state. Implements `Directory`."""

    def __init__(self, database: ClusterDatabase, known: Callable[[], Users]) -> None:
        """Start with `known`, which returns the users in this node's copy of the meta group's state."""
        self._database = database
        self._known = known

    def users(self) -> Users:
        """Implement `Directory.users`."""
        return self._known()

    def newest(self) -> Users:
        """Implement `Directory.newest`."""
        if self._known().users:
            try:
                self._database.wait_users_visible(MID_SECONDS)
            except NoLeader:
                return self._known()  # without a leader, users in this node's copy can still log in
        return self._known()

    def change(self, command: Command, deadline_ns: int | None = None) -> None:
        """Implement `Directory.change`. Raises NoLeader, OutcomeUnknown."""
        if not self._known().users:
            raise UserMistake(
                "this cluster has no users: it was created without an administrator (if all nodes are on one machine,"
                " saros cluster secure creates one)"
            )
        seconds = MID_SECONDS if isinstance(command, Rehash) else DEADLINE_SECONDS
        self._database.change_users(command, seconds, deadline_ns)
