"""One call's attempts: what a failed one means, and whether another may follow.

    the node said        2016 NODE_UNREACHABLE, 2017 NO_LEADER, 2014 CLOSED (the session is lost)      again
                         any other code                                                                the end
    it could not be reached, so nothing was sent                                                       again
    it was reached, and no answer came                                                                 see below

What changes nothing may be sent again anywhere. A write that a node may have carried out carries a number, and may be
sent again only to nodes that share the memory in which that number would be found: the same process of a node, or the
same cluster. Otherwise nobody knows, and the error is 2018 OUTCOME_UNKNOWN. A call after which `LOST_MAX` connections
broke is not sent again: it may be what breaks the nodes.

Pure: the caller passes `now` (seconds).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from saros.errors import DatabaseError, OperationalError, database_error
from saros_wire import protocol
from saros_wire.status import ErrorClass, status_of

if TYPE_CHECKING:
    import grpc

SESSION_LOST, UNREACHABLE, NO_LEADER, OUTCOME_UNKNOWN = 2014, 2016, 2017, 2018
RETRYABLE = frozenset({SESSION_LOST, UNREACHABLE, NO_LEADER})
LOST_MAX = 3
_FAILED = 2000
_KILLED = 715
#: What gRPC says of a call that it did not send; of other words we assume that it did.
_NOT_SENT = "failed to connect"
#: What gRPC says of a call that this process broke off.
_CANCELLED_HERE = ("Locally cancelled", "Channel closed")
#: What gRPC answers in the place of a service that never saw the call.
_REFUSED = frozenset({"RESOURCE_EXHAUSTED", "UNIMPLEMENTED", "UNAUTHENTICATED", "PERMISSION_DENIED"})


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt.

    `lost`: the connection broke; `effect`: the node may have carried the call out; `unreached`: there was no
    connection.
    """

    error: DatabaseError
    lost: bool
    effect: bool
    unreached: bool = False

    @property
    def retryable(self) -> bool:
        """Whether another node (or this one, later) may do better."""
        return self.error.code in RETRYABLE


def failure_of(error: grpc.RpcError, address: str) -> Failure:
    """What a failed call means."""
    details = str(error.details())
    code = dict(error.trailing_metadata() or ()).get(protocol.CODE_KEY)
    if code is not None:
        number = int(code)
        return Failure(database_error(details, number), lost=False, effect=number == UNREACHABLE)
    match error.code().name:
        case "UNAVAILABLE":
            sent = _NOT_SENT not in details
            said = OperationalError(f"no Saros node answers at {address}: {details}", UNREACHABLE)
            return Failure(said, lost=sent, effect=sent, unreached=not sent)
        case "DEADLINE_EXCEEDED":
            said = OperationalError(f"the node at {address} did not answer in time", UNREACHABLE)
            return Failure(said, lost=False, effect=True)
        case "CANCELLED" if details.startswith(_CANCELLED_HERE):
            # The caller's own wish: it is told just that.
            return Failure(cancelled(), lost=False, effect=False)
        case "CANCELLED":  # by a node that ends
            said = OperationalError(f"the node at {address} broke the call off: {details}", UNREACHABLE)
            return Failure(said, lost=True, effect=True)
        case name:
            said = OperationalError(f"the call to {address} failed: {details}", _FAILED)
            return Failure(said, lost=False, effect=name not in _REFUSED)


def cancelled() -> OperationalError:
    """What a fetch is told when another thread has closed its result."""
    return OperationalError("the statement was cancelled", _KILLED)


@dataclass(frozen=True, slots=True)
class Memory:
    """Where a node looks up the numbers of writes. `name` 0: in the cluster's log; `kept` False: nowhere."""

    name: int
    kept: bool

    @property
    def is_shared(self) -> bool:
        """Whether other nodes look there too."""
        return self.kept and self.name == 0


class Attempts:
    """See the module. One per call."""

    def __init__(self, patience_s: float, *, write: bool = False, deadline: float | None = None) -> None:
        """`deadline`: when to give up; None: `patience_s` after the first failure."""
        self._patience_s = patience_s
        self._write = write
        self._lost = 0
        #: Where the write may have been carried out.
        self._memory: Memory | None = None
        self.deadline = deadline

    def check_node(self, memory: Memory) -> None:
        """Before the call is sent to a node. Raises OperationalError (2018) if it might be carried out twice."""
        if self._memory is not None and not (memory.kept and memory == self._memory):
            raise _unknown("the node that it was sent to is gone, and this one cannot know")

    def failed(self, failure: Failure, memory: Memory | None, now: float) -> None:
        """Count a failed attempt (`memory` None: at opening a session). Raises the call's error if it was the last."""
        if self._write and failure.effect and memory is not None:
            self._memory = memory
        if memory is not None:
            self._lost += failure.lost
        if self.deadline is None:
            self.deadline = now + self._patience_s
        last = not failure.retryable or self._lost >= LOST_MAX or now >= self.deadline
        undecided = failure.retryable or status_of(failure.error.code).error_class is ErrorClass.OPERATIONAL
        if undecided and self._memory is not None and (last or not self._memory.kept):
            raise _unknown(str(failure.error)) from failure.error
        if last:
            raise failure.error


def _unknown(why: str) -> OperationalError:
    return OperationalError(f"nobody knows whether the write was carried out: {why}", OUTCOME_UNKNOWN)
