"""A long field behind a serialized message."""

from __future__ import annotations

import pytest

from saros_wire.appending import with_bytes
from saros_wire.generated import client_pb2


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 1 << 20])
def test_what_is_appended_is_the_field_of_the_whole_message(size: int) -> None:
    data = bytes(n % 251 for n in range(size))
    head = client_pb2.SyncChunkRequest(sender="a", number=7, sha256="b" * 64, offset=1 << 40, crc32=9)
    sent = with_bytes(head, client_pb2.SyncChunkRequest.DATA_FIELD_NUMBER, memoryview(data))
    whole = client_pb2.SyncChunkRequest(sender="a", number=7, sha256="b" * 64, offset=1 << 40, crc32=9, data=data)
    assert whole == client_pb2.SyncChunkRequest.FromString(sent)
