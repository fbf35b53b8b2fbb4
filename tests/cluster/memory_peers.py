"""A network of nodes in memory, for tests and simulation. A run is determined by its seed and its steps.

    send     -> [(due, what)] --step()--> receive(sender, messages)      delayed or lost at random
    call     -> handler, at once                                         never delayed or lost at random
    stream   -> handler's iterator, advanced by the reader

A cut is one-way and applies to messages, calls and streams: messages are lost when they would arrive; a call does not
reach the handler, or its reply is lost after the handler ran. Messages from one node to another arrive in the order of
sending, and pass through the codec. Time is a number that only `step` and `run` advance; the caller chooses its unit.

Single-threaded.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from saros_cluster.multiraft.peers import CallHandler, Receive, RemoteError, StreamHandler, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Message
from saros_cluster.transport.codec import decode_batch, encode_batch

Given = TypeVar("Given")


@dataclass(order=True, slots=True)
class _Letter:
    due: int
    number: int
    sender: NodeId = field(compare=False)
    receiver: NodeId = field(compare=False)
    batch: bytes = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Node:
    receive: Receive
    calls: Mapping[str, CallHandler]
    streams: Mapping[str, StreamHandler]


class MemoryNetwork:
    """A network in memory.

    The delay of a message is a random time from the range `delay`; a message is lost with probability `loss`.
    """

    def __init__(self, seed: int, *, delay: tuple[int, int] = (1, 5), loss: float = 0.0) -> None:
        self.delay = delay
        self.loss = loss
        #: The current time, which is at least the time of the last delivery.
        self.now = 0
        self.delivered = self.lost = 0
        self._random = random.Random(seed)
        self._nodes: dict[NodeId, _Node] = {}
        self._cuts: set[tuple[NodeId, NodeId]] = set()
        self._letters: list[_Letter] = []
        self._count = 0
        #: The arrival time of the last message by (sender, receiver); no later message arrives earlier than this.
        self._last_due: dict[tuple[NodeId, NodeId], int] = {}

    def join(
        self,
        node: NodeId,
        receive: Receive,
        calls: Mapping[str, CallHandler] | None = None,
        streams: Mapping[str, StreamHandler] | None = None,
    ) -> MemoryPeers:
        """Add a node that starts or restarts."""
        self._nodes[node] = _Node(receive, calls or {}, streams or {})
        return MemoryPeers(self, node)

    def leave(self, node: NodeId) -> None:
        """Remove a crashed node. Messages that the node sent before it restarted may arrive later."""
        self._nodes.pop(node, None)

    def cut(self, sender: NodeId, receiver: NodeId) -> None:
        """Cut the link in this direction."""
        self._cuts.add((sender, receiver))

    def isolate(self, node: NodeId) -> None:
        """Cut all links from a node and to it."""
        for other in self._nodes.keys() - {node}:
            self._cuts |= {(node, other), (other, node)}

    def heal(self) -> None:
        """Remove all cuts."""
        self._cuts.clear()

    def reaches(self, sender: NodeId, receiver: NodeId) -> bool:
        """Return whether messages in this direction arrive."""
        return receiver in self._nodes and (sender, receiver) not in self._cuts

    @property
    def due(self) -> int | None:
        """Return the time of the next delivery; None if no message is pending."""
        return self._letters[0].due if self._letters else None

    def step(self) -> bool:
        """Advance to the next message, deliver it and return True; return False if no message is pending."""
        if not self._letters:
            return False
        letter = heapq.heappop(self._letters)
        self.now = max(self.now, letter.due)
        if self.reaches(letter.sender, letter.receiver):
            self.delivered += 1
            messages = decode_batch(letter.batch, letter.sender, letter.receiver)
            self._nodes[letter.receiver].receive(letter.sender, messages)
        else:
            self.lost += 1
        return True

    def run(self, until: int) -> None:
        """Deliver all messages due until a time, and advance to that time."""
        while self.due is not None and self.due <= until:
            self.step()
        self.now = max(self.now, until)

    def post(self, sender: NodeId, receiver: NodeId, messages: Sequence[Message]) -> None:
        """Send messages from one node to another."""
        assert all((message.sender, message.receiver) == (sender, receiver) for message in messages)
        kept = [message for message in messages if self._random.random() >= self.loss]
        self.lost += len(messages) > 0 and not kept
        if kept:
            pair = (sender, receiver)
            due = max(self.now + self._random.randint(*self.delay), self._last_due.get(pair, 0))
            self._last_due[pair] = due
            self._count += 1
            heapq.heappush(self._letters, _Letter(due, self._count, sender, receiver, encode_batch(kept)))

    def node(self, asker: NodeId, node: NodeId) -> _Node:
        """Return the called node. Raises Unreachable."""
        if not self.reaches(asker, node):
            raise Unreachable(node, "cut")
        return self._nodes[node]

    def back(self, node: NodeId, asker: NodeId) -> None:
        """Check that a reply from `node` can reach `asker`. Raises Unreachable."""
        if not self.reaches(node, asker):
            raise Unreachable(node, "its answer is cut")


class MemoryPeers:
    """The connections of one node: implements `Peers`."""

    def __init__(self, network: MemoryNetwork, node: NodeId) -> None:
        self._network = network
        self._node = node

    def send(self, node: NodeId, messages: Sequence[Message]) -> None:
        """Send messages, as `Peers.send`."""
        self._network.post(self._node, node, messages)

    def call(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> bytes:
        """Make a call, as `Peers.call`. No time passes."""
        handler = _named(node, self._network.node(self._node, node).calls, name)
        answer = _answer(node, lambda: handler(self._node, request))
        self._network.back(node, self._node)
        return answer

    def stream(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> Generator[bytes, None, None]:
        """Open a stream, as `Peers.stream`. No time passes."""
        handler = _named(node, self._network.node(self._node, node).streams, name)
        return self._answers(node, _answer(node, lambda: handler(self._node, request)))

    def _answers(self, node: NodeId, answers: Iterator[bytes]) -> Generator[bytes, None, None]:
        try:
            while (answer := _answer(node, lambda: next(answers, None))) is not None:
                self._network.back(node, self._node)
                yield answer
            self._network.back(node, self._node)
        finally:
            close = getattr(answers, "close", None)
            if close is not None:
                close()


def _named(node: NodeId, handlers: Mapping[str, Given], name: str) -> Given:
    handler = handlers.get(name)
    if handler is None:
        raise RemoteError(node, 2002, f"this node has no handler for {name!r}")
    return handler


def _answer(node: NodeId, ask: Callable[[], Given]) -> Given:
    """Return a handler's reply; if the handler raises an exception, raise the error that the caller gets."""
    try:
        return ask()
    except Exception as error:
        code = getattr(error, "code", None)
        raise RemoteError(node, code if isinstance(code, int) else 2001, str(error)) from error
