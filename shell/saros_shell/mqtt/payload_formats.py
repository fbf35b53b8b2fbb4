"""Payload formats of messages: parsers that turn payloads into rows of devices.

    number       20.5                                      one value; the path of the topic names the series
    json         {"temperature": 20.5, "state": "on"}      measurements; the path of the topic names the device
    iotdb-json   {"device": "root.a.b", "timestamp": 1, "measurements": ["s"], "values": [1.5]}
                 {"device": "root.a.b", "timestamps": [1, 2], "measurements": ["s"], "values": [[1.5], [2.5]]}

A list of objects is allowed if each object has a time. A value that no data type can hold, such as an object, is
reported as a problem, and all other values are written. Pure: any thread.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import orjson

from saros_shell.mqtt.routes import BadMessage
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, quote_node, split_path, unquote_node

Value = bool | int | float | str

#: The maximum number of characters of a number in a payload. A DOUBLE needs at most 24 characters.
_NUMBER_CHARACTERS_MAX = 400
_WHOLE = re.compile(rb"[+-]?[0-9]+")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_FRACTION = re.compile(r"[.,](\d+)")
NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_NANOSECOND_DIGITS = 9
_INT64_MAX = 2**63 - 1


class Row(msgspec.Struct):
    """The values of a device at one time. Paths and names are canonical. `time` is None for the time of arrival."""

    device: str
    time: int | None
    values: dict[str, Value]


class Parsed(msgspec.Struct):
    """The rows of a payload, and the reasons why values are left out."""

    rows: list[Row] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)


class TimeScale(msgspec.Struct, frozen=True):
    """The meaning of times in payloads: numbers in `unit` since 1970, or ISO 8601 texts.

    A text without an offset is in UTC. `ticks` returns times in the database's unit, `database`.
    """

    unit: str
    database: str

    def ticks(self, value: object) -> int:
        """Return the time in the database's unit. Raises BadMessage."""
        try:
            found = self._ticks(value)
        except (ValueError, OverflowError):
            raise BadMessage(f"{value!r} is not a time: a number of {self.unit} since 1970, or ISO 8601") from None
        if not -_INT64_MAX < found < _INT64_MAX:
            raise BadMessage(f"time {value!r} is out of range; check --time-unit {self.unit}")
        return found

    def _ticks(self, value: object) -> int:
        multiplier, divisor = NANOSECONDS[self.unit], NANOSECONDS[self.database]
        match value:
            case bool():
                raise ValueError
            case int():
                return value * multiplier // divisor
            case float():
                return round(value * multiplier / divisor)
            case str():
                return self._nanoseconds(value) // divisor
            case _:
                raise ValueError

    def _nanoseconds(self, text: str) -> int:
        """Return the nanoseconds of an ISO 8601 text. The fraction is parsed here: `datetime` has only microseconds."""
        fraction = _FRACTION.search(text)
        moment = datetime.fromisoformat(text if fraction is None else text[: fraction.start()] + text[fraction.end() :])
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        digits = "" if fraction is None else fraction[1][:_NANOSECOND_DIGITS]
        return round(moment.timestamp()) * NANOSECONDS["s"] + int(digits.ljust(_NANOSECOND_DIGITS, "0"))


#: A parser of payloads. Its second argument is the path of the topic, or None if the payload names the devices.
Parser = Callable[[bytes, tuple[str, ...] | None], Parsed]


def parse_number(payload: bytes, path: tuple[str, ...] | None) -> Parsed:
    """Return the row of a plain number. Raises BadMessage."""
    assert path is not None
    text = payload.strip()
    if len(text) > _NUMBER_CHARACTERS_MAX or not _NUMBER.fullmatch(text):
        raise BadMessage("the payload is not a number")
    if not math.isfinite(float(text)):
        raise BadMessage("the number is out of the range of DOUBLE")
    value: Value = int(text) if _WHOLE.fullmatch(text) else float(text)
    if len(path) <= 2:
        raise BadMessage("the path has no device: it needs root, a device, and a measurement")
    return Parsed([Row(join_nodes(path[:-1]), None, {path[-1]: value})])


class JsonParser(msgspec.Struct, frozen=True):
    """A parser of objects of measurements. `time_key` names the member that contains the time."""

    time_key: str | None
    scale: TimeScale

    def __call__(self, payload: bytes, path: tuple[str, ...] | None) -> Parsed:
        """Return the rows of an object, or of a list of objects. Raises BadMessage."""
        assert path is not None
        document = _document(payload)
        if isinstance(document, list) and self.time_key is None:
            raise BadMessage("the payload is a list of objects, which need times; pass --time-key")
        device, parsed = join_nodes(path), Parsed()
        for item in document if isinstance(document, list) else [document]:
            self._add(item, device, parsed)
        return _checked(parsed)

    def _add(self, item: object, device: str, parsed: Parsed) -> None:
        if not isinstance(item, dict):
            raise BadMessage("the payload is not a JSON object of measurements and values")
        time = None
        if self.time_key is not None:
            if self.time_key not in item:
                raise BadMessage(f"the payload has no member {self.time_key!r}, the time")
            time = self.scale.ticks(item[self.time_key])
        values = {name: value for name, value in item.items() if name != self.time_key}
        parsed.rows.append(Row(device, time, _values(values, parsed.problems)))


class IotdbJsonParser(msgspec.Struct, frozen=True):
    """A parser of objects in the format of IoTDB's MQTT service."""

    scale: TimeScale

    def __call__(self, payload: bytes, _: tuple[str, ...] | None) -> Parsed:
        """Return the rows of an object, or of a list of objects. Raises BadMessage."""
        document, parsed = _document(payload), Parsed()
        several = isinstance(document, list)
        for item in document if isinstance(document, list) else [document]:
            if not isinstance(item, dict):
                raise BadMessage("the payload is not a JSON object with device, timestamp, measurements and values")
            self._add(item, parsed, several=several)
        return _checked(parsed)

    def _add(self, item: Mapping[str, object], parsed: Parsed, *, several: bool) -> None:
        device, names = _device_of(item.get("device")), item.get("measurements")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise BadMessage("measurements is not a list of names")
        names = [unquote_node(name) for name in names]
        if len(set(names)) < len(names):
            raise BadMessage("a name occurs twice in measurements")
        for time, values in self._times_and_values(item, several=several):
            if not isinstance(values, list) or len(values) != len(names):
                raise BadMessage(f"values is not a list of {len(names)} values, one for each measurement")
            found = _values(dict(zip(names, values, strict=True)), parsed.problems)
            parsed.rows.append(Row(device, time, found))

    def _times_and_values(self, item: Mapping[str, object], *, several: bool) -> Sequence[tuple[int | None, object]]:
        times, values = item.get("timestamps"), item.get("values")
        if times is None:
            time = item.get("timestamp")
            if time is None and several:
                raise BadMessage("an object of a list has no timestamp")
            return [(None if time is None else self.scale.ticks(time), values)]
        if not isinstance(times, list) or not isinstance(values, list) or len(times) != len(values):
            raise BadMessage("timestamps and values are not lists of the same length")
        return [(self.scale.ticks(time), of_one) for time, of_one in zip(times, values, strict=True)]


def _device_of(text: object) -> str:
    if not isinstance(text, str):
        raise BadMessage("device is not a path, such as root.plant.pump1")
    try:
        return join_nodes(split_path(text))
    except UserMistake as error:
        raise BadMessage(str(error)) from None


def _document(payload: bytes) -> object:
    try:
        document: object = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise BadMessage(f"the payload is not JSON: {error}") from None
    return document


def _values(found: Mapping[str, object], problems: list[str]) -> dict[str, Value]:
    """Return the values by canonical name, without nulls. Add a problem for each item that cannot be written."""
    values: dict[str, Value] = {}
    for name, value in found.items():
        if not name:
            problems.append("a measurement has an empty name")
        elif isinstance(value, bool | int | float | str):
            values[quote_node(name)] = value
        elif value is not None:
            problems.append(f"{name} is {'a list' if isinstance(value, list) else 'an object'}, which has no data type")
    return values


def _checked(parsed: Parsed) -> Parsed:
    """Return `parsed`, or raise BadMessage if it has no values."""
    if not any(row.values for row in parsed.rows):
        raise BadMessage("; ".join(parsed.problems) or "the payload has no values")
    return parsed
