"""Decides after each failed attempt at a call what the failure means, and whether another attempt follows.

    the node answered    2016 NODE_UNREACHABLE, 2017 NO_LEADER, 2014 CLOSED (the session is lost)      retry
                         insert in a cluster: 2018, 2020, 2021, 2026; read: 2026                       retry
                         any other code                                                                fail
    the node could not be reached, so nothing was sent                                                 retry
    the node was reached, and no answer arrived                                                        see below

A call without effects may be sent again to any node. A write has a sequence number, which nodes look up in a memory of
executed writes. The nodes of a cluster share one such memory; without a cluster, it ends with the node's process. If a
node may have executed a write, the write may be sent again only to nodes with the same memory. Otherwise, the outcome
of the write cannot be determined, and the error is 2018 OUTCOME_UNKNOWN. If `LOST_MAX` connections have broken during a
call, the call is not sent again, because it may have crashed the nodes. An insert is also sent again if a cluster has
executed only a part of it (2020), or if drops or moves of data interfered (2021, 2026), since executing a part again
has no further effect.

A read shares its deadline with the nodes, which do not wait for other nodes beyond the deadline. The first attempt may
fail without an answer after the deadline, or with an answer long after the deadline. The node was then silent or
working, not waiting for other nodes, and the fail-over time begins at the failure.

If a call fails at several nodes, it raises the last error that a node answered. If no node answered, the error lists
the addresses, and for how long each node has been silent. If a part of an insert was executed, the error always says
so.

Pure: the caller passes `now` (seconds).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from saros.errors import DatabaseError, OperationalError, PartialWriteError, RowRange, database_error
from saros.transport.exchange import CallFailed, Fate
from saros_wire.status import ErrorClass, status_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from saros_wire.generated import client_pb2

SESSION_LOST, UNREACHABLE, NO_LEADER, OUTCOME_UNKNOWN = 2014, 2016, 2017, 2018
RETRYABLE = frozenset({SESSION_LOST, UNREACHABLE, NO_LEADER})
_PARTLY_DONE, _SCHEMA_CHANGED, _SLOTS_MOVED = 2020, 2021, 2026
#: Codes of answers after which an insert may be sent again to a cluster.
REPEATABLE_INSERT = frozenset({OUTCOME_UNKNOWN, _PARTLY_DONE, _SCHEMA_CHANGED, _SLOTS_MOVED})
LOST_MAX = 3
_FAILED = 2000
_KILLED = 715
#: If less than this time is left until the caller's timeout when a node answers with an error, no further attempt is
#: made, because it could only time out.
_ATTEMPT_SECONDS_MIN = 0.3
#: The shortest silence of a node that error messages mention.
_SILENCE_MIN_S = 1.0


class Failure(msgspec.Struct, frozen=True):
    """A failed attempt.

    lost               the connection broke
    effect             the node may have executed the call
    said               the error is an answer of the node
    silence, silent_s  the reason why there is no answer, and for how long the node had been silent
    final              the node would refuse the insert again
    """

    error: DatabaseError
    address: str
    lost: bool = False
    effect: bool = False
    said: bool = False
    silence: str = ""
    silent_s: float = 0.0
    final: bool = False

    @property
    def retryable(self) -> bool:
        """True if the call may succeed at another node, or later at the same node."""
        return self.error.code in RETRYABLE


def failure_of(failed: CallFailed, address: str) -> Failure:
    """Classify the failure of a call to the node at an address."""
    match failed.fate:
        case Fate.ANSWERED:
            return _answered(failed, address)
        case Fate.NOT_SENT | Fate.LOST as fate:
            error = _silent(address, failed.details, failed.silent_s)
            lost = fate is Fate.LOST
            return Failure(error, address, lost=lost, effect=lost, silence=failed.details, silent_s=failed.silent_s)
        case Fate.LATE:
            late = OperationalError(f"the node at {address} did not finish the call in time", UNREACHABLE)
            return Failure(late, address, effect=True)
        case Fate.CANCELLED:
            return Failure(cancelled(), address)
        case Fate.BROKEN | Fate.TOO_LARGE as fate:
            refused = OperationalError(f"the call to {address} failed: {failed.details}", _FAILED)
            return Failure(refused, address, effect=fate is Fate.BROKEN)


def _answered(failed: CallFailed, address: str) -> Failure:
    """Classify an error that the node answered."""
    rows = failed.partial_write
    if rows is None:
        effect = failed.code in (UNREACHABLE, OUTCOME_UNKNOWN)
        return Failure(database_error(failed.details, failed.code), address, effect=effect, said=True)
    written, missing = _ranges(rows.written), _ranges(rows.missing)
    error = PartialWriteError(failed.details, failed.code, written=written, missing=missing)
    return Failure(error, address, said=True, final=rows.final)


def _ranges(found: Iterable[client_pb2.RowRanges]) -> list[RowRange]:
    return [
        RowRange(rows.device, start, end) for rows in found for start, end in zip(rows.starts, rows.ends, strict=True)
    ]


def _silent(address: str, silence: str, seconds: float) -> OperationalError:
    if seconds < _SILENCE_MIN_S:
        return OperationalError(f"no Saros node answers at {address}: {silence}", UNREACHABLE)
    return OperationalError(f"the node at {address} has not answered for {seconds:.0f} s: {silence}", UNREACHABLE)


def cancelled() -> OperationalError:
    """Return the error of a fetch whose result another thread has closed."""
    return OperationalError("the statement was cancelled", _KILLED)


class Memory(msgspec.Struct, frozen=True):
    """The memory in which a node looks up the numbers of writes. If `name` is 0, the memory is the cluster's log."""

    name: int

    @property
    def is_shared(self) -> bool:
        """True if all nodes of a cluster share the memory."""
        return self.name == 0


class RetryPolicy:
    """The failed attempts of one call, and the decision whether to make another attempt."""

    def __init__(
        self,
        patience_s: float,
        *,
        write: bool = False,
        insert: bool = False,
        deadline: float | None = None,
        end: float | None = None,
        grace_s: float | None = None,
    ) -> None:
        """Create the policy of a call.

        deadline  the time to give up; None: `patience_s` after the first failure
        grace_s   a node that only waits for other nodes answers within this time after the deadline. If the first
                  attempt fails later, the deadline moves. None: the deadline never moves
        end       the latest deadline; None: no limit
        """
        self._end = end
        self._grace_s = grace_s
        self._patience_s = patience_s
        self._write = write
        self._insert = insert
        #: The last error that reported the execution of only a part of an insert.
        self._partly_done: DatabaseError | None = None
        self._lost = 0
        #: The memory of a node that may have executed the write, or None if no node can have executed it.
        self._memory: Memory | None = None
        self.deadline = deadline
        #: For each address, the last failure of the node, and the time at which the node became silent. The oldest
        #: failure comes first.
        self._failures: dict[str, tuple[Failure, float]] = {}

    def left_s(self, now: float) -> float | None:
        """Return the seconds until the deadline, or None if it is not known before the first failure."""
        return None if self.deadline is None else max(self.deadline - now, 0.0)

    def check_node(self, memory: Memory) -> None:
        """Check that the call may be sent to a node. Raises OperationalError (2018) if it might be executed twice."""
        if self._memory is not None and memory != self._memory:
            raise _unknown("the node that received it is gone, and this one has no record of it")

    def failed(self, failure: Failure, memory: Memory | None, now: float) -> None:
        """Record a failed attempt. Raise the error of the call if no further attempt may be made.

        `memory` is None if no session was open.
        """
        if self._write and failure.effect and memory is not None:
            self._memory = memory
        if memory is not None:
            self._lost += failure.lost
        if failure.error.code == _PARTLY_DONE:
            self._partly_done = failure.error
        if self.deadline is None:
            self.deadline = now + self._patience_s
        if not self._failures:
            self._begin_late(failure, now)
        self._record(failure, now)
        is_over = now >= self.deadline or (failure.said and self._is_near_end(now))
        last = not self._may_repeat(failure, memory) or self._lost >= LOST_MAX or is_over
        error = self._error(failure, now) if last else failure.error
        undecided = failure.retryable or status_of(failure.error.code).error_class is ErrorClass.OPERATIONAL
        if undecided and last and self._partly_done is not None:
            raise self._partly_done
        if undecided and self._memory is not None and last:
            raise (error if error.code == OUTCOME_UNKNOWN else _unknown(str(error))) from failure.error
        if last:
            raise error

    def _is_near_end(self, now: float) -> bool:
        return self._end is not None and now > self._end - _ATTEMPT_SECONDS_MIN

    def _begin_late(self, failure: Failure, now: float) -> None:
        """Begin the fail-over time at the first failure, unless the node spent the time waiting for other nodes."""
        if self._grace_s is None or self.deadline is None:
            return
        if now > self.deadline + (self._grace_s if failure.said else 0.0):
            self.deadline = now + self._patience_s if self._end is None else min(now + self._patience_s, self._end)

    def _may_repeat(self, failure: Failure, memory: Memory | None) -> bool:
        if self._insert and memory is not None and memory.is_shared and failure.error.code in REPEATABLE_INSERT:
            return not failure.final
        return failure.retryable or (not self._write and failure.error.code == _SLOTS_MOVED)

    def _record(self, failure: Failure, now: float) -> None:
        earlier, since = self._failures.pop(failure.address, (None, 0.0))
        if earlier is None or not (earlier.silence and failure.silence):
            since = now - failure.silent_s
        self._failures[failure.address] = failure, since

    def _error(self, failure: Failure, now: float) -> DatabaseError:
        """Return the most informative error, as the module's docstring describes."""
        if not failure.retryable:
            return failure.error
        answers = [found.error for found, _ in self._failures.values() if found.said]
        if answers:
            return answers[-1]
        silent = [
            _silent(address, found.silence, now - since) if found.silence else found.error
            for address, (found, since) in self._failures.items()
        ]
        return OperationalError("; ".join(map(str, silent)), UNREACHABLE)


def _unknown(why: str) -> OperationalError:
    return OperationalError(f"it is unknown whether the write was executed: {why}", OUTCOME_UNKNOWN)
