"""Schema changes and their encoding in the log; a change is checked, logged and then applied.

The effect of a change depends only on its contents and on the tree, so applying the same changes in the same order
gives the same tree. A change is encoded as UTF-8 JSON, such as `["CreateDatabase", "root.a"]`, since changes are rare
and people read logs. Pure: any thread.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from json.encoder import encode_basestring

import msgspec
from msgspec.structs import astuple

from saros_storage.base.errors import CorruptFile, NewerFormat
from saros_storage.base.identity_cache import cached_by_identity
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.schema.model import Deadband, SeriesSchema

#: Maximum number of cached sets of series. Devices of one kind often have equal sets; a cached set is encoded and
#: decoded only once.
_SERIES_SETS_MAX = 4_096
#: The start of an encoded CreateSeries, before the device's path.
_CREATION = b'["CreateSeries","'
#: Maximum size of a device's encoded series for which the decoded series are cached.
_SHAPE_BYTES_MAX = 4_096
#: All changes share this encoder, because a log entry may have thousands of changes.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
#: Number of items in the JSON list of a series that has only a measurement, type, encoding and compressor.
_PLAIN_WORDS = 4


class CreateDatabase(msgspec.Struct, frozen=True):
    """Mark `path` as a database."""

    path: str


class DeleteDatabase(msgspec.Struct, frozen=True):
    """Delete the database and everything below it."""

    path: str


class CreateSeries(msgspec.Struct, frozen=True):
    """Add series to a device, creating the device (aligned or not) if it does not exist."""

    device: str
    aligned: bool
    series: tuple[SeriesSchema, ...]
    #: True if the series are created implicitly. Series that already exist when the cluster agrees on the change may
    #: then be left out of the change.
    if_missing: bool = False


class DeleteSeries(msgspec.Struct, frozen=True):
    """Delete the series that the pattern matches, and the devices that then have no series."""

    pattern: str


class AlterSeries(msgspec.Struct, frozen=True):
    """Replace the alias, all tags and all attributes of a series."""

    device: str
    measurement: str
    alias: str | None = None
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    attributes: dict[str, str] = msgspec.field(default_factory=dict)


class AlterType(msgspec.Struct, frozen=True):
    """Change the type and encoding of a series; see `scan.type_conversion`."""

    device: str
    measurement: str
    type: DataType
    encoding: Encoding


class AlterStorage(msgspec.Struct, frozen=True):
    """Change the encoding or compressor of series of a device for future data. None leaves the property unchanged."""

    device: str
    measurements: tuple[str, ...]
    encoding: Encoding | None = None
    compressor: Compressor | None = None


class SetTtl(msgspec.Struct, frozen=True):
    """Set the time to live of the devices that the pattern covers (see `ttl_rules`); None is an unlimited time."""

    pattern: str
    milliseconds: int | None
    #: Number of the rule, which must be greater than the number of the rule to be replaced.
    number: int = 0


class UnsetTtl(msgspec.Struct, frozen=True):
    """Remove the TTL rule of the pattern."""

    pattern: str
    number: int = 0


class SetEntry(msgspec.Struct, frozen=True):
    """Set an entry of the catalogue, or remove it if `text` is None."""

    kind: str
    key: str
    text: str | None
    #: Number of the entry, which must be greater than the number of the entry to be replaced.
    number: int = 0


SchemaChange = (
    CreateDatabase
    | DeleteDatabase
    | CreateSeries
    | DeleteSeries
    | AlterSeries
    | AlterType
    | AlterStorage
    | SetTtl
    | UnsetTtl
    | SetEntry
)
#: Changes to the series of one device.
OF_ONE_DEVICE = (CreateSeries, AlterSeries, AlterType, AlterStorage)
#: Changes that every group of a cluster applies.
OF_ALL_GROUPS = (SetTtl, UnsetTtl, SetEntry)


def encode_change(change: SchemaChange) -> bytes:
    """Encode a change for the log."""
    if isinstance(change, CreateSeries):
        device, more = encode_basestring(change.device), ",true" * change.if_missing
        aligned = "true" if change.aligned else "false"
        return f'["CreateSeries",{device},{aligned},{_series_text(change.series)}{more}]'.encode()
    words: list[object] = [type(change).__name__]
    if isinstance(change, CreateDatabase | DeleteDatabase):
        words.append(change.path)
    elif isinstance(change, DeleteSeries):
        words.append(change.pattern)
    elif isinstance(change, AlterType):
        words += [change.device, change.measurement, int(change.type), int(change.encoding)]
    elif isinstance(change, AlterStorage):
        words += [change.device, change.measurements, change.encoding, change.compressor]
    elif isinstance(change, SetTtl):
        words += [change.pattern, change.milliseconds, change.number]
    elif isinstance(change, UnsetTtl):
        words += [change.pattern, change.number]
    elif isinstance(change, SetEntry):
        words += [change.kind, change.key, change.text, change.number]
    else:
        words += [change.device, change.measurement, change.alias, change.tags, change.attributes]
    return _json(words).encode()


def decode_change(data: bytes) -> SchemaChange:
    """Decode a change that `encode_change` encoded. Raises CorruptFile, or NewerFormat for a change of unknown kind."""
    try:
        creation = _decode_creation(data)
        if creation is not None:
            return creation
        name, *words = json.loads(data)
        if name == "CreateDatabase":
            return CreateDatabase(str(words[0]))
        if name == "DeleteDatabase":
            return DeleteDatabase(str(words[0]))
        if name == "DeleteSeries":
            return DeleteSeries(str(words[0]))
        if name == "CreateSeries":
            return CreateSeries(str(words[0]), bool(words[1]), _all_series_of(words[2]), len(words) > 3)
        if name == "AlterSeries":
            return AlterSeries(*words)
        if name == "AlterType":
            return AlterType(str(words[0]), str(words[1]), DataType(words[2]), Encoding(words[3]))
        if name == "AlterStorage":
            device, names, encoding, compressor = words
            return AlterStorage(
                str(device),
                tuple(map(str, names)),
                None if encoding is None else Encoding(encoding),
                None if compressor is None else Compressor(compressor),
            )
        if name == "SetTtl":
            return SetTtl(str(words[0]), None if words[1] is None else int(words[1]), int(words[2]))
        if name == "UnsetTtl":
            return UnsetTtl(str(words[0]), int(words[1]))
        if name == "SetEntry":
            kind, key, text, number = words
            return SetEntry(str(kind), str(key), None if text is None else str(text), int(number))
    except (ValueError, TypeError, IndexError, KeyError) as error:
        raise CorruptFile("schema log", 0, f"not a schema change: {error}") from error
    if not isinstance(name, str):
        raise CorruptFile("schema log", 0, "not a schema change")
    raise NewerFormat("the schema", f"change {name!r}")


def _decode_creation(data: bytes) -> CreateSeries | None:
    """Decode a CreateSeries as `encode_change` writes it; equal series of several devices are decoded only once.

    Returns None if the data is another change, or a CreateSeries that needs the general decoder.
    """
    if not data.startswith(_CREATION):
        return None
    device, comma, shape = data[len(_CREATION) :].partition(b'",')
    if not comma or b"\\" in device or len(shape) > _SHAPE_BYTES_MAX:
        return None
    return CreateSeries(device.decode(), *_decode_shape(shape))


@lru_cache(_SERIES_SETS_MAX)
def _decode_shape(data: bytes) -> tuple[bool, tuple[SeriesSchema, ...], bool]:
    """Return the fields that follow the device in a CreateSeries. Raises ValueError, TypeError, KeyError."""
    aligned, series, *more = json.loads(b"[" + data)
    return bool(aligned), _all_series_of(series), bool(more)


def _json(value: object) -> str:
    return _ENCODER.encode(value)


@cached_by_identity(_SERIES_SETS_MAX)
def _series_text(series: tuple[SeriesSchema, ...]) -> str:
    return _json([_series_to_json(s) for s in series])


def _series_to_json(s: SeriesSchema) -> list[object]:
    words: list[object] = [s.measurement, int(s.type), int(s.encoding), int(s.compressor)]
    has_more = s.decimals is not None or s.deadband is not None or bool(s.earlier)
    if s.alias is not None or s.tags or s.attributes or has_more:
        words += [s.alias, dict(s.tags), dict(s.attributes)]
    if has_more:
        words += [s.decimals, None if s.deadband is None else list(astuple(s.deadband))]
    if s.earlier:
        words.append([int(type_) for type_ in s.earlier])
    return words


def _all_series_of(words: Sequence[Sequence[object]]) -> tuple[SeriesSchema, ...]:
    """Decode the series of a change. Devices with equal plain series share the result."""
    if all(len(one) == _PLAIN_WORDS for one in words):
        return _plain_series_of(tuple(map(tuple, words)))
    return tuple(map(_series_of, words))


@lru_cache(_SERIES_SETS_MAX)
def _plain_series_of(words: tuple[tuple[object, ...], ...]) -> tuple[SeriesSchema, ...]:
    return tuple(map(_series_of, words))


def _series_of(words: Sequence[object]) -> SeriesSchema:
    name, type_, encoding, compressor, *rest = words
    alias, tags, attributes, *more = rest or (None, {}, {})
    decimals, deadband, *changed = more or (None, None)
    (earlier,) = changed or ([],)
    assert isinstance(tags, dict)
    assert isinstance(attributes, dict)
    assert isinstance(earlier, list)
    return SeriesSchema(
        str(name),
        DataType(int(str(type_))),
        Encoding(int(str(encoding))),
        Compressor(int(str(compressor))),
        None if alias is None else str(alias),
        tags,
        attributes,
        None if decimals is None else int(str(decimals)),
        None if deadband is None else _deadband_of(deadband),
        tuple(DataType(number) for number in earlier),
    )


def _deadband_of(words: object) -> Deadband:
    assert isinstance(words, list)
    deviation, shortest, longest = words
    return Deadband(float(deviation), int(shortest), int(longest))
