"""The declared structs of IoTDB's session protocol agree with the tables in IoTDB's own (stock) client."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest
from server.thrift_client import decode

from saros_server.thrift import structs
from saros_server.thrift.codec import I32, I64, BadArguments, Binary, Text, encode, numbered, thrift_struct
from saros_server.thrift.structs import EndPoint, OpenSessionAnswer, Status

STRUCTS = [found for _, found in inspect.getmembers(structs, dataclasses.is_dataclass)]
#: The structs that are the arguments of a call, each with its name in the stock client.
ARGUMENTS = {
    "SessionArguments": "requestStatementId_args",
    "SetStorageGroup": "setStorageGroup_args",
    "Paths": "deleteTimeseries_args",
    "NoArguments": "getProperties_args",
}
#: Fields of the stock client's structs that servers may omit or ignore.
LEFT_OUT = {
    "Status": {"needRetry", "responseData"},
    "ExecuteAnswer": {"operationType", "nonAlignQueryDataSet", "sgColumns", "aliasColumns"}
    | {"tracingInfo", "database"},
    "FetchAnswer": {"nonAlignQueryDataSet"},
    "CloseOperation": {"preparedStatementName"},
}


@thrift_struct
class Sample:
    """A struct whose field numbers have a gap."""

    number: I64
    texts: list[list[Text]] | None = None
    places: dict[Text, I32] | None = numbered(9, default=None)
    data: Binary | None = None


def test_values_of_all_kinds_come_back() -> None:
    for value in (
        Sample(-(2**63), [["a", "ä"], []], {"x": -1}, b"\0\xff"),
        Sample(1, data=b""),
        OpenSessionAnswer(Status(302, "no", [Status(400, None, None, EndPoint("::1", 1)), Status()]), 2, 7, {"a": "b"}),
    ):
        assert value == decode(type(value), encode(value))


def test_fields_have_the_numbers_of_their_declaration() -> None:
    assert b"\x0a\0\1" + bytes(7) + b"\5" + b"\x0b\0\x0a\0\0\0\2hi" + b"\0" == encode(Sample(5, data=b"hi"))


def test_a_missing_field_is_refused_if_it_is_required() -> None:
    with pytest.raises(BadArguments, match="number"):
        decode(Sample, b"\0")


def test_a_field_of_another_type_counts_as_missing() -> None:
    assert Sample(5) == decode(Sample, b"\x0a\0\1" + bytes(7) + b"\5" + b"\x08\0\2\0\0\0\1" + b"\0")


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_structs_agree_with_those_of_the_stock_client(struct: Any) -> None:
    service = pytest.importorskip("iotdb.thrift.rpc.IClientRPCService")
    rpc = pytest.importorskip("iotdb.thrift.rpc.ttypes")
    common = pytest.importorskip("iotdb.thrift.common.ttypes")
    words = {word.strip("`.,:;()") for word in (struct.__doc__ or "").split()}
    stock = next((getattr(place, word) for place in (rpc, common) for word in words if hasattr(place, word)), None)
    if stock is None:
        stock = getattr(service, ARGUMENTS[struct.__name__])
    ours = {row[0]: _shape(row[1], row[3]) for row in struct.thrift_spec if row}
    theirs = {row[0]: (row[2], _shape(row[1], row[3])) for row in stock.thrift_spec if row}
    assert {number: theirs[number][1] for number in ours} == ours
    assert LEFT_OUT.get(struct.__name__, set()) == {name for number, (name, _) in theirs.items() if number not in ours}


def _shape(kind: int, arguments: Any) -> object:
    """Return the wire type of a field, together with the types of its elements."""
    match kind:
        case 15:
            return kind, _shape(*arguments[:2])
        case 13:
            return kind, _shape(*arguments[:2]), _shape(*arguments[2:4])
        case 11:
            return kind, arguments
        case _:
            return kind
