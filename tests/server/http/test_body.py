"""Bodies that arrive slowly. The tests set the clock of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from saros_server.http.body import BodyMemory, ClientGone, IncomingBody
from saros_server.http.errors import HttpError
from saros_server.http.limits import HttpLimits

LIMITS = HttpLimits(body_s=10.0, body_rate=100, body_bytes=5_000, bodies_bytes=6_000)


class TurnedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock advances only when a test advances it."""

    now_s = 0.0

    def time(self) -> float:
        return self.now_s

    async def pass_s(self, seconds: float) -> None:
        """Advance the clock, and run everything that is due by then."""
        self.now_s += seconds
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
def loop() -> Iterator[TurnedLoop]:
    made = TurnedLoop()
    yield made
    made.close()


async def whole(body: IncomingBody, memory: BodyMemory) -> bytes:
    async with body.read(LIMITS, memory) as read:
        assert len(read) <= memory.bytes
        return read


def outcome(loop: TurnedLoop, arrive: Callable[[IncomingBody], Awaitable[None]]) -> bytes | int:
    """Return the body, which is read while it arrives, or the HTTP status of the error if it is refused."""
    memory = BodyMemory()

    async def run() -> bytes:
        body = IncomingBody(loop)
        body.add(b"-")
        reading = asyncio.create_task(whole(body, memory))
        await loop.pass_s(0)
        await arrive(body)
        await loop.pass_s(0)
        assert reading.done()
        return await reading

    try:
        return loop.run_until_complete(run())
    except HttpError as error:
        return error.status
    finally:
        assert 0 == memory.bytes


def pieces(loop: TurnedLoop, *sizes: int, every_s: float) -> bytes | int:
    async def arrive(body: IncomingBody) -> None:
        for size in sizes:
            await loop.pass_s(every_s)
            body.add(b"x" * size)
        body.complete()

    return outcome(loop, arrive)


def test_a_body_may_take_long_if_its_pieces_come_in_time(loop: TurnedLoop) -> None:
    assert b"-" + b"x" * 4_000 == pieces(loop, 1_000, 1_000, 1_000, 1_000, every_s=9.0)


def test_a_piece_that_comes_late_is_refused(loop: TurnedLoop) -> None:
    assert 408 == pieces(loop, 1_000, 1_000, every_s=10.1)


def test_small_pieces_below_the_lowest_rate_are_refused(loop: TurnedLoop) -> None:
    assert 408 == pieces(loop, *[50] * 25, every_s=1.0)
    assert isinstance(pieces(loop, *[150] * 25, every_s=1.0), bytes)


def test_pieces_beyond_the_largest_body_are_refused(loop: TurnedLoop) -> None:
    assert isinstance(pieces(loop, 4_000, 999, every_s=0), bytes)
    assert 413 == pieces(loop, 4_000, 1_000, every_s=0)


def test_bodies_beyond_their_memory_are_refused(loop: TurnedLoop) -> None:
    memory = BodyMemory(2_000)

    async def run(size: int) -> bytes:
        body = IncomingBody(loop)
        body.add(b"x" * size)
        body.complete()
        return await whole(body, memory)

    assert 4_000 == len(loop.run_until_complete(run(4_000)))
    with pytest.raises(HttpError) as raised:
        loop.run_until_complete(run(4_001))
    assert (503, 2_000) == (raised.value.status, memory.bytes)


def test_a_client_that_goes_ends_the_wait(loop: TurnedLoop) -> None:
    async def leave(body: IncomingBody) -> None:
        body.add(b"x")
        body.abandon()

    with pytest.raises(ClientGone):
        outcome(loop, leave)
