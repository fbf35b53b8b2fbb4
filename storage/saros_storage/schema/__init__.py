"""The schema: a tree of databases, devices and series, and the changes that build the tree. Pure: no I/O, no clock."""

from saros_storage.schema.catalogue import Catalogue
from saros_storage.schema.changes import (
    OF_ALL_GROUPS,
    OF_ONE_DEVICE,
    AlterSeries,
    AlterStorage,
    AlterType,
    CreateDatabase,
    CreateSeries,
    DeleteDatabase,
    DeleteSeries,
    SchemaChange,
    SetEntry,
    SetTtl,
    UnsetTtl,
    decode_change,
    encode_change,
)
from saros_storage.schema.model import (
    LEGAL_ENCODINGS,
    Deadband,
    DeviceSchema,
    SeriesSchema,
    check_deadband,
    encoding_as,
    retyped,
    stored_encoding,
)
from saros_storage.schema.tree import INTERNAL_NODE, SchemaTree, is_internal
from saros_storage.schema.ttl import Expiry
from saros_storage.schema.ttl_rules import TtlRules

__all__ = [
    "INTERNAL_NODE",
    "LEGAL_ENCODINGS",
    "OF_ALL_GROUPS",
    "OF_ONE_DEVICE",
    "AlterSeries",
    "AlterStorage",
    "AlterType",
    "Catalogue",
    "CreateDatabase",
    "CreateSeries",
    "Deadband",
    "DeleteDatabase",
    "DeleteSeries",
    "DeviceSchema",
    "Expiry",
    "SchemaChange",
    "SchemaTree",
    "SeriesSchema",
    "SetEntry",
    "SetTtl",
    "TtlRules",
    "UnsetTtl",
    "check_deadband",
    "decode_change",
    "encode_change",
    "encoding_as",
    "is_internal",
    "retyped",
    "stored_encoding",
]
