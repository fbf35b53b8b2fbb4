"""The encoding of statement parameters (`?`) as messages. Pure: any thread."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from saros_wire.generated import client_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

_INT64 = 1 << 63
_NANOSECONDS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def encode_values(values: Sequence[object]) -> list[client_pb2.Value]:
    """Encode Python values as parameters.

    Raises TypeError, which states the number of the first value that cannot be encoded.
    """
    return [_encode(value, number) for number, value in enumerate(values, 1)]


def _encode(value: object, number: int) -> client_pb2.Value:
    item = getattr(value, "item", None)
    if callable(item) and type(value).__module__ == "numpy":
        value = item()
    match value:
        case None:
            return client_pb2.Value(null=True)
        case bool():
            return client_pb2.Value(boolean=value)
        case int() if -_INT64 <= value < _INT64:
            return client_pb2.Value(integer=value)
        case int() | Decimal():
            return client_pb2.Value(decimal=str(value))
        case float():
            return client_pb2.Value(number=value)
        case str():
            return client_pb2.Value(text=value)
        case bytes() | bytearray() | memoryview():
            return client_pb2.Value(blob=bytes(value))
        case datetime() if value.tzinfo is not None and -_INT64 <= (instant := _nanoseconds(value)) < _INT64:
            return client_pb2.Value(instant_ns=instant)
        case date():  # this includes datetimes with an offset that are before 1677 or after 2262
            return client_pb2.Value(local_time=value.isoformat())
        case _:
            raise TypeError(f"parameter {number} is a {type(value).__name__}, which has no SQL type")


def _nanoseconds(moment: datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * _NANOSECONDS + since.microseconds * 1_000


def decode_values(values: Sequence[client_pb2.Value]) -> list[object]:
    """Decode parameters to Python values. Instants become `numpy.datetime64` in nanoseconds."""
    return [_decode(value) for value in values]


def _decode(value: client_pb2.Value) -> object:
    kind = value.WhichOneof("kind")
    if kind is None or kind == "null":
        return None
    content: object = getattr(value, kind)
    if kind == "instant_ns":
        import numpy as np

        return np.datetime64(value.instant_ns, "ns")
    if kind == "decimal":
        return Decimal(value.decimal)
    if kind == "local_time":
        text = value.local_time
        return datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)
    return content
