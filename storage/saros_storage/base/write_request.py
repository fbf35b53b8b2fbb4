"""The client's request that a write belongs to. It is passed with the write from the client interface down to the log.

The deadline bounds all that the write waits for in a cluster: leaders, their confirmation, what other nodes have to
tell, drops and moves of data. It bounds no work: an embedded database does not look at it.

A numbered request has one effect, however often and wherever it is sent again. A write without a number cannot be
told from others. A group of a cluster takes a second write with the same number for a repetition, so a statement that
writes several times gives the number to one of them at most (`unnumbered`). Pure: any thread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A client's number, the number of its request, and how long the request waits."""

    #: 0: the client has no number.
    client: int = 0
    #: 0: the request has no number.
    sequence: int = 0
    #: The time (monotonic, ns) from which on the request waits for nothing; None: each step waits as long as it allows.
    deadline_ns: int | None = None
    #: It was sent before, and its outcome is not known: no failure may say that nothing was done.
    in_doubt: bool = False

    @property
    def is_numbered(self) -> bool:
        """Whether a repetition can be recognized."""
        return bool(self.client and self.sequence)

    @property
    def key(self) -> tuple[int, int]:
        """(client, sequence): equal for repetitions of one request."""
        return self.client, self.sequence

    @property
    def unnumbered(self) -> WriteRequest:
        """The same without a number: for further writes of a statement, which do no harm when they are repeated."""
        return replace(self, client=0, sequence=0)


#: A write whose repetition cannot be recognized, and which has no deadline.
UNNUMBERED = WriteRequest()
