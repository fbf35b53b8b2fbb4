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
    """Return the schema of a value that is an array or null."""
    return {"type": ["array", "null"], "items": items}


def record(properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """Return the schema of an object."""
    return {"type": "object", "properties": dict(properties)} | ({"required": list(required)} if required else {})


#: The schema of IoTDB's answer without a result, which is the response to a write or to an error. The HTTP status is
#: 200 for most errors, too.
STATUS: Schema = record({"code": INTEGER, "message": {"type": ["string", "null"]}})


def result(column_names: str, data_types: str) -> Schema:
    """Return the schema of a response with columns or with an error. The arguments are names of its fields."""
    texts = nullable_array(TEXT)
    columns = {"expressions": texts, column_names: texts, data_types: texts, "timestamps": nullable_array(INTEGER)}
    return record({**STATUS["properties"], **columns, "values": array(array(ANYTHING))})
