"""JSON schemas of request and response bodies, for the OpenAPI document. Pure data: any thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer", "format": "int64"}
BOOLEAN: Schema = {"type": "boolean"}
ANYTHING: Schema = {}


def array(items: Schema) -> Schema:
    """Return the schema of an array."""
    return {"type": "array", "items": items}


def nullable_array(items: Schema) -> Schema:
    """Return the schema of an array or null."""
    return {"type": ["array", "null"], "items": items}


def record(properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """Return the schema of an object."""
    return {"type": "object", "properties": dict(properties)} | ({"required": list(required)} if required else {})


#: IoTDB's answer without a result. It describes the response to a write, and that of an error. An error, too, has HTTP
#: status 200.
STATUS: Schema = record({"code": INTEGER, "message": {"type": ["string", "null"]}})


def result(column_names: str, data_types: str) -> Schema:
    """Return the schema of a columnar result or an error, with the field names of a version."""
    texts = nullable_array(TEXT)
    columns = {"expressions": texts, column_names: texts, data_types: texts, "timestamps": nullable_array(INTEGER)}
    return record({**STATUS["properties"], **columns, "values": array(array(ANYTHING))})
