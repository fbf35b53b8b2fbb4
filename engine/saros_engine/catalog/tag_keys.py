"""The order of tag keys for devices whose paths consist of tag values.

The order is stored in the schema as internal series.

    root.plant.cpu._saros.tags.t1    ATTRIBUTES('tag'='host')         devices: root.plant.cpu.h1.eu
    root.plant.cpu._saros.tags.t2    ATTRIBUTES('tag'='region')

A series can only be created once, so if two writers append a key at the same time, even on different nodes, one of them
is refused and must read the list a second time. The list only grows, so a node that knows only a prefix of the list
derives the same paths. Users do not see internal series (`saros_storage.schema.tree`), and patterns do not delete them.

These functions read a schema, and any thread may call them.
"""

from __future__ import annotations

from collections.abc import Sequence

from saros_engine.base.authorized_schema import SchemaReader
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DEFAULT_COMPRESSOR, DEFAULT_ENCODING, DataType
from saros_storage.schema import INTERNAL_NODE, CreateSeries, SeriesSchema, is_internal

#: The name of the attribute that holds the key.
_ATTRIBUTE = "tag"
_PREFIX = "t"


def tag_keys(schema: SchemaReader, prefix: str) -> Sequence[str]:
    """Return the tag keys of devices below a canonical path, in their order."""
    device = schema.device(device_of_tag_keys(prefix))
    if device is None:
        return ()
    numbered = {int(name.removeprefix(_PREFIX)): series for name, series in device.series.items()}
    return [numbered[number].attributes[_ATTRIBUTE] for number in sorted(numbered)]


def device_of_tag_keys(prefix: str) -> str:
    """Return the internal device that keeps the tag keys below a path."""
    return f"{prefix}.{INTERNAL_NODE}.tags"


def tag_key_creation(prefix: str, number: int, key: str) -> CreateSeries:
    """Return the change that records a key under a number (from 1).

    If the number is taken, the change is refused with code 503.
    """
    type_ = DataType.TEXT
    series = SeriesSchema(
        f"{_PREFIX}{number}", type_, DEFAULT_ENCODING[type_], DEFAULT_COMPRESSOR, attributes={_ATTRIBUTE: key}
    )
    return CreateSeries(device_of_tag_keys(prefix), aligned=False, series=(series,))


def require_not_internal(device: str) -> None:
    """Raise UserMistake 509 if series below the path would count as internal series."""
    if is_internal(device):
        raise UserMistake(f"{device} has the node {INTERNAL_NODE}, which is reserved: use another name", code=509)
