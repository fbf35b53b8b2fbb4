from __future__ import annotations

from saros_shell.mqtt.broker_connection import Message
from saros_shell.mqtt.message_reader import ArrivalClock, MessageReader
from saros_shell.mqtt.payload_formats import JsonParser, TimeScale
from saros_shell.mqtt.routes import Route, Router, parse_template, parse_topic


def reader() -> MessageReader:
    topic = parse_topic("+")
    router = Router([Route(topic, parse_template("root.a.{1}", topic))])
    return MessageReader(router, JsonParser(None, TimeScale("ms", "ms")), ArrivalClock(lambda: 100))


def test_messages_of_a_series_that_arrive_at_once_get_times_of_their_own() -> None:
    payloads = (("d", b'{"a":1}'), ("d", b'{"a":1,"b":2}'), ("d", b'{"b":1}'), ("e", b'{"a":1}'), ("d", b'{"c":1}'))
    found = reader().read([Message(topic, payload, 1, 1) for topic, payload in payloads])
    assert [100, 101, 102, 100, 100] == [row.time for _, row in found.rows]


def test_a_message_keeps_its_time() -> None:
    reads, message = reader(), Message("d", b'{"a":1}', 1, 1)
    assert [100, 100] == [reads.read([message]).rows[0][1].time for _ in range(2)]


def test_a_bad_message_is_refused_and_the_others_are_read() -> None:
    found = reader().read([Message("d", b"x", 1, 1), Message("d", b'{"a":1,"b":[]}', 1, 2), Message("x/y", b"", 1, 3)])
    assert [1] == [number for number, _ in found.rows]
    assert [0, 1, 2] == sorted(found.refusals)


def test_the_clock_forgets_series_of_the_past() -> None:
    times = iter(range(1_000_000))
    clock = ArrivalClock(lambda: next(times))
    for number in range(250_000):
        clock.next([("d", str(number))])
    assert len(clock._last) <= 100_000
