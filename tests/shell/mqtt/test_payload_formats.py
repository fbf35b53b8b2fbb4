from __future__ import annotations

from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saros_shell.mqtt.payload_formats import IotdbJsonParser, JsonParser, Parser, TimeScale, parse_number
from saros_shell.mqtt.routes import BadMessage

MS = TimeScale("ms", "ms")
PATH = ("root", "plant", "pump", "temperature")
PARSERS: list[Parser] = [parse_number, JsonParser(None, MS), JsonParser("t", MS), IotdbJsonParser(MS)]


@pytest.mark.parametrize(
    ("payload", "value"),
    [(b"20.5", 20.5), (b" 7\n", 7), (b"-1e3", -1000.0), (b"+.5", 0.5), (b"9223372036854775807", 2**63 - 1)],
)
def test_a_number(payload: bytes, value: object) -> None:
    (row,) = parse_number(payload, PATH).rows
    assert ("root.plant.pump", None, {"temperature": value}) == (row.device, row.time, row.values)


@pytest.mark.parametrize(
    "payload", [b"", b"x", b"1_000", b"nan", b"inf", b"0x10", b"1,5", b"1e999", b"9" * 399, b"1" * 5_000, b"\xff"]
)
def test_what_is_no_number_is_bad(payload: bytes) -> None:
    with pytest.raises(BadMessage, match="number"):
        parse_number(payload, PATH)


def test_json_gives_measurements_of_the_device() -> None:
    parsed = JsonParser("ts", TimeScale("s", "ms"))(b'{"ts":1.5,"a b":1,"on":true,"s":"x","no":null}', ("root", "d"))
    (row,) = parsed.rows
    assert ("root.d", 1_500, {"`a b`": 1, "on": True, "s": "x"}) == (row.device, row.time, row.values)
    assert [] == parsed.problems


def test_a_value_that_no_type_holds_is_left_out() -> None:
    parsed = JsonParser(None, MS)(b'{"a":1,"b":{},"c":[1],"":2}', ("root", "d"))
    assert [{"a": 1}] == [row.values for row in parsed.rows]
    assert [
        "b is an object, which has no data type",
        "c is a list, which has no data type",
        "a measurement has an empty name",
    ] == parsed.problems


def test_a_list_of_objects_needs_times() -> None:
    payload = b'[{"t":1,"a":1},{"t":2,"a":2}]'
    assert [1, 2] == [row.time for row in JsonParser("t", MS)(payload, ("root", "d")).rows]
    with pytest.raises(BadMessage, match="pass --time-key"):
        JsonParser(None, MS)(payload, ("root", "d"))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "not JSON"),
        (b"5", "not a JSON object"),
        (b"{}", "no member 't', the time"),
        (b'{"t":1}', "no values"),
        (b'{"t":1,"a":null}', "no values"),
        (b'{"t":true,"a":1}', "not a time"),
        (b'{"t":"yesterday","a":1}', "not a time"),
        (b'{"t":1e300,"a":1}', "out of range"),
        (b'{"t":1,"a":[1]}', "a is a list"),
    ],
)
def test_bad_json(payload: bytes, reason: str) -> None:
    with pytest.raises(BadMessage, match=reason):
        JsonParser("t", MS)(payload, ("root", "d"))


@pytest.mark.parametrize(
    ("unit", "database", "value", "ticks"),
    [
        ("ms", "ms", 1_704_067_200_123, 1_704_067_200_123),
        ("s", "ns", 1_704_067_200, 1_704_067_200_000_000_000),
        ("ns", "ms", 1_704_067_200_123_999_999, 1_704_067_200_123),
        ("s", "ms", 1_704_067_200.1234, 1_704_067_200_123),
        ("ms", "ns", "2024-01-01T00:00:00.123456789Z", 1_704_067_200_123_456_789),
        ("ms", "ms", "2024-01-01T01:00:00,5+01:00", 1_704_067_200_500),
        ("ms", "ms", "2024-01-01", 1_704_067_200_000),
        ("ms", "ms", "1969-12-31T23:59:59.5", -500),
    ],
)
def test_times(unit: str, database: str, value: object, ticks: int) -> None:
    assert ticks == TimeScale(unit, database).ticks(value)


def test_payloads_of_iotdb() -> None:
    one = {"device": "root.sg.d1", "timestamp": 5, "measurements": ["s1", "`a b`"], "values": [0.5, "x"]}
    several = {"device": "root.sg.`d 2`", "timestamps": [1, 2], "measurements": ["s1"], "values": [[1], [None]]}
    parsed = IotdbJsonParser(MS)(orjson.dumps([one, several]), None)
    assert [
        ("root.sg.d1", 5, {"s1": 0.5, "`a b`": "x"}),
        ("root.sg.`d 2`", 1, {"s1": 1}),
        ("root.sg.`d 2`", 2, {}),
    ] == [(row.device, row.time, row.values) for row in parsed.rows]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"device": 1}, "device is not a path"),
        ({"device": "sg.d1"}, "not a legal path"),
        ({"measurements": "s1"}, "measurements is not a list"),
        ({"measurements": ["s1", "`s1`"]}, "occurs twice in measurements"),
        ({"values": [1, 2]}, "not a list of 1 values"),
        ({"timestamps": [1, 2]}, "same length"),
        ({"timestamp": []}, "not a time"),
    ],
)
def test_bad_payloads_of_iotdb(change: dict[str, object], reason: str) -> None:
    payload = {"device": "root.sg.d1", "timestamp": 5, "measurements": ["s1"], "values": [0.5]} | change
    with pytest.raises(BadMessage, match=reason):
        IotdbJsonParser(MS)(orjson.dumps(payload), None)


EXAMPLES = [
    b"20.5",
    b'{"t":1,"a":1.5,"b":"x","c":true}',
    b'[{"t":"2024-01-01T00:00:00.5Z","a":1}]',
    b'{"device":"root.a.`b c`","timestamps":[1,2],"measurements":["s"],"values":[[1],[2]]}',
]


@given(st.sampled_from(EXAMPLES), st.lists(st.tuples(st.integers(0, 99), st.binary(max_size=3)), max_size=4))
def test_a_mutated_payload_is_read_or_bad(example: bytes, changes: list[tuple[int, bytes]]) -> None:
    for place, inserted in changes:
        at = place % (len(example) + 1)
        example = example[:at] + inserted + example[at + 1 :]
    for parse in PARSERS:
        try:
            parsed = parse(example, PATH)
        except BadMessage:
            continue
        for row in parsed.rows:
            assert row.time is None or -(2**63) < row.time < 2**63
            assert all(isinstance(value, bool | int | float | str) for value in row.values.values())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(
    st.dictionaries(st.sampled_from(["device", "timestamp", "timestamps", "measurements", "values", "t", "a"]), VALUES)
)
def test_json_of_any_types_is_read_or_bad(document: dict[str, object]) -> None:
    try:
        payload = orjson.dumps(document)
    except orjson.JSONEncodeError:  # an integer of more than 64 bits, or a lone surrogate
        return
    for parse in PARSERS:
        with suppress(BadMessage):
            parse(payload, PATH)
