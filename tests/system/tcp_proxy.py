"""Faulty links: a TCP proxy between nodes, or between clients and nodes, with configurable faults (the weather).

    client ──> port of the link ══ forth ══> target        each direction has a weather, which may change at any time
           <──                  ══ back  ══

    PASS     bytes pass after `delay_s`, in order, at most `bytes_per_second` per connection (0: unlimited); with
             probability `corruption`, a byte of a chunk is changed
    HOLD     bytes are kept until the weather changes: a link that stalls
    LOSE     bytes are lost silently: a partition, one-way if the other direction passes. A connection that lost bytes
             has a hole, so it is aborted when the weather changes
    REFUSE   connections are aborted, new ones too: a link that is down (set in either direction)

The method `half_close` ends one direction of the open connections, and leaves the other direction open.

The proxy runs an event loop in a separate thread. Its methods may be called from any other thread, and return when the
change is in effect.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

T = TypeVar("T")
HOST = "127.0.0.1"
_CHUNK_BYTES = 1 << 16
#: The maximum number of chunks in the queue of a direction. If the queue is full, the sender has to wait.
_CHUNKS_MAX = 64
_CALL_SECONDS = 10.0


class Mode(Enum):
    """The way in which the proxy treats bytes and connections in one direction."""

    PASS = "pass"
    HOLD = "hold"
    LOSE = "lose"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Weather:
    """The mode of a direction, with its delay, rate and corruption."""

    mode: Mode = Mode.PASS
    delay_s: float = 0.0
    corruption: float = 0.0
    bytes_per_second: float = 0.0


FAIR = Weather()


class _Direction:
    """The weather of one direction of a link, and the tasks that wait for a change."""

    def __init__(self) -> None:
        self.weather = FAIR
        self.changed = asyncio.Event()

    def set(self, weather: Weather) -> None:
        self.weather = weather
        self.changed.set()
        self.changed = asyncio.Event()


class _Link:
    """A port that leads to a target."""

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.forth, self.back = _Direction(), _Direction()
        self.server: asyncio.Server | None = None
        self.connections: set[_Connection] = set()

    @property
    def refuses(self) -> bool:
        return Mode.REFUSE in (self.forth.weather.mode, self.back.weather.mode)


class _Connection:
    """A client's connection to the proxy, and the proxy's connection to the target."""

    def __init__(self, client: asyncio.StreamWriter, target: asyncio.StreamWriter) -> None:
        self.client = client
        self.target = target
        self.has_hole = False
        #: The ends to which the proxy has stopped sending: they get no more bytes, but may still send some.
        self.closed: set[asyncio.StreamWriter] = set()

    def close(self, writer: asyncio.StreamWriter) -> None:
        if writer not in self.closed:
            self.closed.add(writer)
            writer.write_eof()

    def abort(self) -> None:
        for writer in (self.client, self.target):
            writer.transport.abort()


class TcpProxy:
    """A proxy that runs in a separate thread."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._links: dict[str, _Link] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp-proxy", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ control

    def add_link(self, name: str, host: str, port: int, listen_port: int = 0) -> int:
        """Add a link to a target, which need not listen yet; return the port of the link."""
        return self._run(self._add_link(name, host, port, listen_port))

    def set_weather(self, name: str, *, forth: Weather | None = None, back: Weather | None = None) -> None:
        """Change the weather of a link. If an argument is None, the weather of that direction does not change."""
        self._run(self._set_weather(self._links[name], forth, back))

    def half_close(self, name: str, *, forth: bool) -> None:
        """End one direction of all open connections: to the target if `forth`, otherwise to the client."""
        self._run(self._half_close(self._links[name], forth))

    def connections(self, name: str) -> int:
        """Return the number of open connections of a link."""
        return len(self._links[name].connections)

    def close(self) -> None:
        """Abort all connections, free the ports, end the thread. Idempotent."""
        if self._loop.is_closed():
            return
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, order: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(order, self._loop).result(_CALL_SECONDS)

    # ------------------------------------------------------------------ on the loop

    async def _add_link(self, name: str, host: str, port: int, listen_port: int) -> int:
        assert name not in self._links
        link = _Link(host, port)
        link.server = await asyncio.start_server(
            lambda reader, writer: self._serve(link, reader, writer), HOST, listen_port
        )
        self._links[name] = link
        bound: int = link.server.sockets[0].getsockname()[1]
        return bound

    async def _set_weather(self, link: _Link, forth: Weather | None, back: Weather | None) -> None:
        for direction, weather in ((link.forth, forth), (link.back, back)):
            if weather is not None:
                direction.set(weather)
        loses = Mode.LOSE in (link.forth.weather.mode, link.back.weather.mode)
        for connection in list(link.connections):
            if link.refuses or (connection.has_hole and not loses):
                connection.abort()

    async def _half_close(self, link: _Link, forth: bool) -> None:
        for connection in list(link.connections):
            connection.close(connection.target if forth else connection.client)

    async def _close(self) -> None:
        for link in self._links.values():
            assert link.server is not None
            link.server.close()
            for connection in list(link.connections):
                connection.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _serve(self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._carry(link, reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry a connection from its beginning to its end."""
        if link.refuses:
            writer.transport.abort()
            return
        try:
            target_reader, target_writer = await asyncio.open_connection(*link.target)
        except OSError:
            writer.transport.abort()  # the connection ends like one to the target itself, which does not listen
            return
        connection = _Connection(writer, target_writer)
        link.connections.add(connection)
        if link.refuses:  # the weather changed while the target was contacted
            connection.abort()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(link.forth, connection, reader, target_writer))
                group.create_task(self._pump(link.back, connection, target_reader, writer))
        except* OSError:
            connection.has_hole = True  # one side has closed, so the connection must end
        finally:
            link.connections.discard(connection)
            connection.abort()

    async def _pump(
        self,
        direction: _Direction,
        connection: _Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Carry one direction of a connection: chunks wait in a queue until they are due."""
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_CHUNKS_MAX)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._deliver(direction, connection, queue, writer))
            through = 0.0
            while True:
                data = await reader.read(_CHUNK_BYTES)
                weather, through = direction.weather, max(through, self._loop.time())
                through += len(data) / weather.bytes_per_second if weather.bytes_per_second else 0.0
                await queue.put((through + weather.delay_s, data))
                if not data:
                    break

    async def _deliver(
        self,
        direction: _Direction,
        connection: _Connection,
        queue: asyncio.Queue[tuple[float, bytes]],
        writer: asyncio.StreamWriter,
    ) -> None:
        data = b"begin"
        while data:
            due, data = await queue.get()
            await self._wait(direction, due)
            if direction.weather.mode is Mode.LOSE:
                connection.has_hole = True
            elif not data:
                connection.close(writer)
            elif writer not in connection.closed:
                writer.write(self._weathered(data, direction.weather))
                await writer.drain()

    async def _wait(self, direction: _Direction, due: float) -> None:
        """Wait until a chunk is due and its direction is not held.

        A change of the weather does not shorten delays, since bytes must stay in order.
        """
        await asyncio.sleep(due - self._loop.time())
        while direction.weather.mode is Mode.HOLD:
            await direction.changed.wait()

    def _weathered(self, data: bytes, weather: Weather) -> bytes:
        if not weather.corruption or self._random.random() >= weather.corruption:
            return data
        changed = bytearray(data)
        changed[self._random.randrange(len(changed))] ^= self._random.randint(1, 255)
        return bytes(changed)


@contextlib.contextmanager
def running_proxy(seed: int = 1):
    """Run a proxy within this context."""
    proxy = TcpProxy(seed)
    try:
        yield proxy
    finally:
        proxy.close()
