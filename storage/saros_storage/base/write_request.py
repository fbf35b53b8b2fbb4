"""The client request that a write belongs to. It is passed along with the write from the client interface to the log.

The deadline bounds every wait of the write in a cluster: for leaders and their confirmation, for answers of other
nodes, and for drops and moves of data. It does not bound computation: an embedded database, which never waits for other
nodes, ignores it.

A numbered request takes effect only once, even if it is sent several times or to several nodes. The repetition of a
write without a number cannot be recognized. A group of a cluster treats a second write with the same number as a
repetition, so a statement that writes several times gives the number to at most one of its writes (`unnumbered`). Pure:
any thread.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace


class WriteRequest(msgspec.Struct, frozen=True):
    """The number of the client, the number of its request, and the deadline of the request."""

    #: 0 if the client has no number.
    client: int = 0
    #: 0 if the request has no number.
    sequence: int = 0
    #: Monotonic time in ns after which the request stops waiting, or None if each step has its own time limit.
    deadline_ns: int | None = None
    #: True if the request was sent before and its outcome is unknown, so that no error may claim that nothing was
    #: written.
    in_doubt: bool = False

    @property
    def is_numbered(self) -> bool:
        """True if a repetition can be recognized."""
        return bool(self.client and self.sequence)

    @property
    def key(self) -> tuple[int, int]:
        """(client, sequence): equal for repetitions of one request."""
        return self.client, self.sequence

    @property
    def unnumbered(self) -> WriteRequest:
        """The same request without a number.

        A statement uses it for further writes, which are harmless when repeated.
        """
        return replace(self, client=0, sequence=0)


#: A write without a deadline, whose repetition cannot be recognized.
UNNUMBERED = WriteRequest()
