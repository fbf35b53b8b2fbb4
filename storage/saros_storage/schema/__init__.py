"""The schema: databases, devices and series as a tree, and the changes that make it."""

from saros_storage.schema.changes import (
    AlterSeries,
    CreateDatabase,
    CreateSeries,
    DeleteDatabase,
    DeleteSeries,
    SchemaChange,
    decode_change,
    encode_change,
)
from saros_storage.schema.model import LEGAL_ENCODINGS, DeviceSchema, SeriesSchema, stored_encoding
from saros_storage.schema.tree import SchemaTree

__all__ = [
    "LEGAL_ENCODINGS",
    "AlterSeries",
    "CreateDatabase",
    "CreateSeries",
    "DeleteDatabase",
    "DeleteSeries",
    "DeviceSchema",
    "SchemaChange",
    "SchemaTree",
    "SeriesSchema",
    "decode_change",
    "encode_change",
    "stored_encoding",
]
