"""The rules for calls on connections: silence, credits, idle connections, addresses."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from saros.transport.exchange import (
    KEEPALIVE_S,
    SILENT_S,
    CallFailed,
    Credits,
    Endpoint,
    Fate,
    Silence,
    encode_request,
    endpoint_of,
)
from saros.transport.idle_connections import IDLE_MAX, IDLE_S, IdleConnections
from saros_wire.frames import CREDIT_BYTES, HEADER_BYTES, PREFACE, Call


def test_a_silent_node_is_pinged_once_and_given_up() -> None:
    silence = Silence(100.0, None)
    assert pytest.approx(KEEPALIVE_S) == silence.wait_s(100.0)
    assert not silence.passed(100.0 + KEEPALIVE_S / 2)
    assert silence.passed(100.0 + KEEPALIVE_S)
    assert pytest.approx(SILENT_S - KEEPALIVE_S) == silence.wait_s(100.0 + KEEPALIVE_S)
    assert not silence.passed(100.0 + KEEPALIVE_S + 0.1)
    with pytest.raises(CallFailed) as caught:
        silence.passed(100.0 + SILENT_S)
    assert (Fate.LOST, SILENT_S) == (caught.value.fate, caught.value.silent_s)


def test_a_wait_ends_with_the_time_of_its_call() -> None:
    silence = Silence(100.0, 100.5)
    assert pytest.approx(0.5) == silence.wait_s(100.0)
    assert not silence.passed(100.4)
    with pytest.raises(CallFailed) as caught:
        silence.passed(100.5)
    assert Fate.LATE is caught.value.fate


def test_credits_are_granted_when_half_a_window_was_taken() -> None:
    taken = Credits()
    assert [0, 0, CREDIT_BYTES, 0] == [taken.take(count) for count in (1, CREDIT_BYTES - 2, 1, CREDIT_BYTES - 1)]


def test_the_first_request_of_a_connection_greets_the_node() -> None:
    body = [b"12", memoryview(bytes(8)).cast("d")]
    for greet in (True, False):
        buffers, total = encode_request(Call.INSERT, 1, b"head", body, greet=greet)
        assert greet is bytes(buffers[0]).startswith(PREFACE)
        assert len(b"".join(buffers)) == total == len(PREFACE) * greet + HEADER_BYTES + len(b"head") + 10


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:6667", Endpoint("127.0.0.1", 6667)),
        ("[::1]:6667", Endpoint("::1", 6667)),
        ("unix-abstract:saros-1", Endpoint("", 0, "\0saros-1")),
        ("unix:/tmp/saros-1/port", Endpoint("", 0, "/tmp/saros-1/port")),
    ],
)
def test_the_parts_of_an_address(address: str, expected: Endpoint) -> None:
    assert expected == endpoint_of(address)


@dataclass
class Idle:
    """A connection."""

    number: int
    quiet: bool = True

    def is_quiet(self) -> bool:
        return self.quiet


def test_the_connection_that_was_used_last_is_taken_first() -> None:
    idle: IdleConnections[Idle] = IdleConnections()
    first, second, closed = Idle(1), Idle(2), Idle(3, quiet=False)
    for connection in (first, second, closed):
        assert [] == idle.give_back(connection, 0.0)
    assert (second, [closed]) == idle.take()
    assert (first, []) == idle.take()
    assert (None, []) == idle.take()


def test_connections_that_are_idle_for_long_or_are_too_many_are_closed() -> None:
    idle: IdleConnections[Idle] = IdleConnections()
    made = [Idle(number) for number in range(IDLE_MAX + 1)]
    assert [[]] * IDLE_MAX + [made[:1]] == [idle.give_back(connection, 0.0) for connection in made]
    late = Idle(-1)
    assert made[1:] == idle.give_back(late, IDLE_S + 1.0)
    assert [late] == idle.close()
    assert [late] == idle.give_back(late, IDLE_S + 1.0)
