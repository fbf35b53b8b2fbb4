"""A long field behind a serialized message."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from saros_wire.bytes_field import cut_bytes, with_bytes
from saros_wire.generated import client_pb2

FIELD = client_pb2.SyncChunkRequest.DATA_FIELD_NUMBER


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 1 << 20])
def test_what_is_appended_is_the_field_of_the_whole_message(size: int) -> None:
    data = bytes(n % 251 for n in range(size))
    head = client_pb2.SyncChunkRequest(sender="a", number=7, sha256="b" * 64, offset=1 << 40, crc32=9)
    sent = with_bytes(head, FIELD, memoryview(data))
    whole = client_pb2.SyncChunkRequest(sender="a", number=7, sha256="b" * 64, offset=1 << 40, crc32=9, data=data)
    assert whole == client_pb2.SyncChunkRequest.FromString(sent)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 1 << 20])
def test_what_is_cut_out_is_the_field_of_the_whole_message_wherever_it_stands(size: int) -> None:
    data = bytes(n % 251 for n in range(size))
    head = client_pb2.SyncChunkRequest(sender="a", number=7, sha256="b" * 64, offset=1 << 40, crc32=9)
    behind = client_pb2.SyncChunkRequest(sender="later", crc32=10).SerializeToString()
    rest, found = cut_bytes(with_bytes(head, FIELD, b"earlier") + with_bytes(head, FIELD, data) + behind, FIELD)
    head.MergeFromString(behind)
    assert (data, head) == (bytes(found), client_pb2.SyncChunkRequest.FromString(rest))


@given(st.binary(max_size=40))
def test_of_any_bytes_what_is_cut_out_is_the_field_or_they_are_refused(message: bytes) -> None:
    try:
        rest, found = cut_bytes(message, FIELD)
        request = client_pb2.SyncChunkRequest.FromString(rest)
    except DecodeError:
        return
    request.data = bytes(found)
    assert client_pb2.SyncChunkRequest.FromString(message) == request


def test_a_message_of_very_many_fields_is_refused() -> None:
    with pytest.raises(DecodeError):
        cut_bytes(b"\x10\x01" * 1_000, FIELD)
