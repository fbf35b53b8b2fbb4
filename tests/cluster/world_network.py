"""The network of a simulated world, which delays, duplicates and loses messages between nodes and clients.

    send       a batch -> codec, delay, loss, duplicates -> `receive` of the node, which has one task for this
    call       request -> a task at the other node -> reply                   delayed; lost if the link is cut meanwhile
    stream     request -> a task at the other node, which continues when its last reply was taken
    exchange   like `call`, but for a client's request to a node

A cut is one-way. A request fails after a short time if the node is down, shortly after a crash if the node crashes
during the request, and at the timeout if the node is unreachable. Calls and streams are not lost or duplicated at
random: they model connections, which retransmit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cluster.world_threads import Task, Threads

from saros_cluster.multiraft.peers import CallHandler, Receive, RemoteError, StreamHandler, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Message
from saros_cluster.transport.codec import decode_batch, encode_batch

T = TypeVar("T")
#: If the other end of a connection disappears silently, the connection is closed after this time.
_SILENCE_NS = 3_000_000_000
_REPEAT_NS = 200_000_000
#: The location of clients.
OUTSIDE = NodeId(0)


@dataclass(slots=True)
class _Waiting(Generic[T]):
    """The future reply, or the error, for which a task waits."""

    task: Task
    value: T | None = None
    error: BaseException | None = None
    is_over: bool = False


@dataclass(eq=False)
class Endpoint:
    """A node on the network: its handlers, and the owner of its tasks."""

    owner: object
    receive: Receive
    calls: Mapping[str, CallHandler]
    streams: Mapping[str, StreamHandler]
    inbox: deque[tuple[NodeId, bytes]] = field(default_factory=deque)
    receiver: Task | None = None
    #: Functions that are called when the node crashes.
    broken: dict[object, Callable[[], None]] = field(default_factory=dict)


class WorldNetwork:
    """The network of one world, with its cuts."""

    def __init__(self, threads: Threads) -> None:
        self.threads = threads
        chance = self.random = threads.random
        self.delay_ns = chance.choice((1_000_000, 5_000_000, 20_000_000))
        self.loss = chance.choice((0.0, 0.0, 0.02, 0.15))
        self.doubles = chance.choice((0.0, 0.03))
        #: True if messages from one node to another may be reordered.
        self.overtakes = chance.random() < 0.5
        self.cuts: set[tuple[NodeId, NodeId]] = set()
        #: Nodes whose connections for messages are broken. Their connections for requests work.
        self.uninformed: set[NodeId] = set()
        self.endpoints: dict[NodeId, Endpoint] = {}
        self._last_due: dict[tuple[NodeId, NodeId], int] = {}
        self.delivered = self.lost = 0

    # ------------------------------------------------------------------ nodes

    def join(self, node: NodeId, endpoint: Endpoint) -> None:
        """Add a starting node."""
        self.endpoints[node] = endpoint
        endpoint.receiver = self.threads.spawn("receive", endpoint.owner, lambda: self._receive(endpoint))

    def leave(self, node: NodeId) -> None:
        """Remove a crashed node; connected nodes notice this after a short time."""
        endpoint = self.endpoints.pop(node, None)
        if endpoint is not None:
            for broken in list(endpoint.broken.values()):
                self.threads.after(self.delay(), broken)

    def heal(self) -> None:
        """Remove all cuts, and stop losses and duplicates."""
        self.cuts.clear()
        self.uninformed.clear()
        self.loss = self.doubles = 0.0
        self.delay_ns = 2_000_000

    def reaches(self, sender: NodeId, receiver: NodeId) -> bool:
        return (sender, receiver) not in self.cuts

    def delay(self) -> int:
        late = 50 if self.random.random() < 0.005 else 1
        return 100_000 + self.random.randrange(self.delay_ns) * late

    def carry(
        self, sender: NodeId, receiver: NodeId, arrive: Callable[[], None], lost: Callable[[], None] | None = None
    ) -> None:
        """Call `arrive` as soon as the link is not cut.

        If the link stays cut for as long as connections retransmit, call `lost` instead.
        """
        self._carry_until(sender, receiver, arrive, lost, self.threads.now_ns + _SILENCE_NS)

    def _carry_until(
        self,
        sender: NodeId,
        receiver: NodeId,
        arrive: Callable[[], None],
        lost: Callable[[], None] | None,
        until: int,
    ) -> None:
        if self.reaches(sender, receiver):
            arrive()
        elif self.threads.now_ns < until:
            self.threads.after(_REPEAT_NS, lambda: self._carry_until(sender, receiver, arrive, lost, until))
        elif lost is not None:
            lost()

    # ------------------------------------------------------------------ messages

    def send(self, sender: NodeId, receiver: NodeId, messages: Sequence[Message]) -> None:
        """Send messages from one node to another."""
        data = encode_batch(messages)
        for _ in range(2 if self.random.random() < self.doubles else 1):
            if self.random.random() < self.loss:
                self.lost += 1
                continue
            due = self.threads.now_ns + self.delay()
            if not self.overtakes:
                pair = (sender, receiver)
                due = self._last_due[pair] = max(due, self._last_due.get(pair, 0))
            self.threads.at(due, lambda: self._deliver(sender, receiver, data))

    def _deliver(self, sender: NodeId, receiver: NodeId, data: bytes) -> None:
        endpoint = self.endpoints.get(receiver)
        if endpoint is None or receiver in self.uninformed or not self.reaches(sender, receiver):
            self.lost += 1
            return
        self.delivered += 1
        endpoint.inbox.append((sender, data))
        assert endpoint.receiver is not None
        self.threads.wake(endpoint.receiver)

    def _receive(self, endpoint: Endpoint) -> None:
        own = next(node for node, found in self.endpoints.items() if found is endpoint)
        while True:
            while not endpoint.inbox:
                self.threads.park()
            sender, data = endpoint.inbox.popleft()
            endpoint.receive(sender, decode_batch(data, sender, own))

    # ------------------------------------------------------------------ requests

    def exchange(self, asker: NodeId, node: NodeId, name: str, work: Callable[[Endpoint], T], timeout_s: float) -> T:
        """Run `work` in a task at the node; return its result or raise its error. Raises Unreachable."""
        me = self.threads.current
        assert me is not None
        waiting: _Waiting[T] = _Waiting(me)
        until = self.threads.now_ns + int(timeout_s * 1e9)
        self.threads.after(
            self.delay(), lambda: self.carry(asker, node, lambda: self._ask(asker, node, name, work, waiting))
        )
        try:
            while not waiting.is_over:
                if not self.threads.park(until):
                    raise Unreachable(node, f"no answer to {name!r} in {timeout_s:.3f} s")
        finally:
            waiting.is_over = True
        if waiting.error is not None:
            raise waiting.error
        return waiting.value  # type: ignore[return-value]

    def _ask(self, asker: NodeId, node: NodeId, name: str, work: Callable[[Endpoint], T], waiting: _Waiting[T]) -> None:
        endpoint = self.endpoints.get(node)
        if endpoint is None:
            self._answer(node, asker, waiting, None, Unreachable(node, "connection refused", sent=False))
            return

        def broken() -> None:
            self._answer(node, asker, waiting, None, Unreachable(node, "connection lost"))

        def run() -> None:
            value: T | None = None
            error: BaseException | None = None
            try:
                value = work(endpoint)
            except Exception as raised:  # noqa: BLE001 (the top of a call)
                error = raised
            endpoint.broken.pop(waiting_key, None)
            self.threads.after(self.delay(), lambda: self._answer(node, asker, waiting, value, error))

        waiting_key = object()
        endpoint.broken[waiting_key] = broken
        self.threads.spawn(name, endpoint.owner, run)

    def _answer(
        self, node: NodeId, asker: NodeId, waiting: _Waiting[T], value: T | None, error: BaseException | None
    ) -> None:
        def arrive() -> None:
            if not waiting.is_over:
                waiting.value, waiting.error, waiting.is_over = value, error, True
                self.threads.wake(waiting.task)

        self.carry(node, asker, arrive)


class WorldPeers:
    """The connections of a node to other nodes, and its server port. Implements `Peers`."""

    def __init__(self, network: WorldNetwork, node: NodeId, owner: object) -> None:
        self._network = network
        self._node = node
        self._owner = owner
        self._endpoint: Endpoint | None = None

    def start(
        self,
        host: str,
        port: int,
        *,
        receive: Receive,
        calls: Mapping[str, CallHandler],
        streams: Mapping[str, StreamHandler],
    ) -> int:
        """Start serving, as `GrpcPeers.start`."""
        self._endpoint = Endpoint(self._owner, receive, calls, streams)
        self._network.join(self._node, self._endpoint)
        return port

    def close(self) -> None:
        """Close, as `GrpcPeers.close`."""
        if self._endpoint is not None and self._network.endpoints.get(self._node) is self._endpoint:
            self._network.leave(self._node)
        self._endpoint = None

    def send(self, node: NodeId, messages: Sequence[Message]) -> None:
        """Send messages, as `Peers.send`."""
        if self._network.endpoints.get(self._node) is self._endpoint:
            self._network.send(self._node, node, messages)

    def call(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> bytes:
        """Make a call, as `Peers.call`."""

        def work(endpoint: Endpoint) -> bytes:
            return _named(node, endpoint.calls, name)(self._node, request)

        try:
            return self._network.exchange(self._node, node, name, work, timeout_s)
        except (Unreachable, RemoteError):
            raise
        except Exception as error:
            raise _as_remote(node, error) from error

    def stream(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> WorldStream:
        """Open a stream, as `Peers.stream`."""
        return WorldStream(self._network, self._node, node, name, request, timeout_s)


class WorldStream:
    """A stream of replies; implements `Answers`.

    The task at the other node makes further replies when earlier replies have been taken. A message informs the task of
    the stream's end. If the message does not arrive, the task notices the silence.
    """

    def __init__(
        self, network: WorldNetwork, asker: NodeId, node: NodeId, name: str, request: bytes, timeout_s: float
    ) -> None:
        self._network = network
        self._threads = network.threads
        self._asker = asker
        self._node = node
        self._name = name
        self._request = request
        self._timeout_ns = int(timeout_s * 1e9)
        #: Items that have arrived but have not been taken: replies, errors, or None at the end.
        self._arrived: deque[bytes | BaseException | None] = deque()
        self._waiting: Task | None = None
        #: Items in transit to the caller.
        self._on_way: deque[bytes | BaseException | None] = deque()
        self._over = False
        #: The task that makes replies, the number of replies that it may make, and whether it knows that the stream has
        #: ended.
        self._maker: Task | None = None
        self._wanted = 2
        self._closed_there = False
        self._to(self._begin)
        own = network.endpoints.get(asker)
        if own is not None:
            own.broken[self] = self._end_there
            self._own = own

    def __iter__(self) -> WorldStream:
        return self

    def __next__(self) -> bytes:
        until = self._threads.now_ns + self._timeout_ns
        while not self._arrived:
            if self._over:
                raise StopIteration
            self._waiting = self._threads.current
            if not self._threads.park(until) and not self._arrived:
                raise Unreachable(self._node, f"no answer of {self._name!r}")
        found = self._arrived.popleft()
        if found is None:
            self._over = True
            raise StopIteration
        if isinstance(found, BaseException):
            self._over = True
            if isinstance(found, (Unreachable, RemoteError)):
                raise found
            raise _as_remote(self._node, found) from found
        self._to(self._want_more)
        return found

    def close(self) -> None:
        """Close the stream, as `Answers.close`."""
        if not self._over:
            self._over = True
            self._to(self._end_there)
            # If the message is lost, the other side notices the silence.
            self._threads.after(_SILENCE_NS, self._end_there)
        self._forget()

    # ------------------------------------------------------------------ transport

    def _to(self, event: Callable[[], None]) -> None:
        network = self._network
        self._threads.after(network.delay(), lambda: network.carry(self._asker, self._node, event, self._break))

    def _back(self, what: bytes | BaseException | None) -> None:
        """Send an item to the caller. Items arrive in order, even if one of them must be retransmitted."""
        self._on_way.append(what)
        network = self._network
        self._threads.after(network.delay(), lambda: network.carry(self._node, self._asker, self._arrive, self._break))

    def _arrive(self) -> None:
        if self._on_way:
            self._arrived.append(self._on_way.popleft())
            if self._waiting is not None:
                self._threads.wake(self._waiting)

    def _break(self) -> None:
        """Close the connection on both sides."""
        self._on_way.clear()
        self._arrived.append(Unreachable(self._node, "connection lost"))
        if self._waiting is not None:
            self._threads.wake(self._waiting)
        self._end_there()

    # ------------------------------------------------------------------ at the other node

    def _begin(self) -> None:
        endpoint = self._network.endpoints.get(self._node)
        if endpoint is None:
            self._back(Unreachable(self._node, "connection refused", sent=False))
            return
        endpoint.broken[self._end_there] = lambda: self._back(Unreachable(self._node, "connection lost"))
        self._maker = self._threads.spawn(self._name, endpoint.owner, lambda: self._make(endpoint))

    def _make(self, endpoint: Endpoint) -> None:
        answers: Iterator[bytes] | None = None
        last: BaseException | None = None
        try:
            answers = _named(self._node, endpoint.streams, self._name)(self._asker, self._request)
            for answer in answers:
                self._back(answer)
                self._wanted -= 1
                while self._wanted <= 0 and not self._closed_there:
                    self._threads.park()
                if self._closed_there:
                    break
        except Exception as error:  # noqa: BLE001 (the top of a call)
            last = error
        finally:
            endpoint.broken.pop(self._end_there, None)
            close = getattr(answers, "close", None)
            if close is not None:
                close()
        self._back(last)

    def _want_more(self) -> None:
        self._wanted += 1
        self._wake_maker()

    def _end_there(self) -> None:
        self._closed_there = True
        self._wake_maker()

    def _wake_maker(self) -> None:
        if self._maker is not None and not self._maker.done:
            self._threads.wake(self._maker)

    def _forget(self) -> None:
        own = self._network.endpoints.get(self._asker)
        if own is not None:
            own.broken.pop(self, None)


def _named(node: NodeId, handlers: Mapping[str, T], name: str) -> T:
    handler = handlers.get(name)
    if handler is None:
        raise RemoteError(node, 2002, f"this node has no handler for {name!r}")
    return handler


def _as_remote(node: NodeId, error: BaseException) -> RemoteError:
    code = getattr(error, "code", None)
    return RemoteError(node, code if isinstance(code, int) else 2001, str(error))
