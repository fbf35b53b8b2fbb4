"""Inserts as Arrow IPC streams: the server refuses invalid streams, with any kinds of messages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from server.frame_client import columns

from saros_server.api.errors import BadMessage
from saros_server.api.insert_request import InsertRequest, read_insert
from saros_wire.payload import decode_insert_head, encode_insert_head


def messages() -> tuple[bytes, bytes]:
    """Return the two messages of an insert: the schema message and the batch message."""
    insert = columns("root.a.d", [1, 2], i=[3, 4])
    reader = pa.ipc.MessageReader.open_stream(insert[decode_insert_head(insert)[1] :])
    schema, batch = reader.read_next_message(), reader.read_next_message()
    return schema.serialize().to_pybytes(), batch.serialize().to_pybytes()


def read(stream: bytes) -> InsertRequest:
    return read_insert(encode_insert_head(b"root.a.d", 7, aligned=None) + stream)


def tensor() -> bytes:
    sink = pa.BufferOutputStream()
    pa.ipc.write_tensor(pa.Tensor.from_numpy(np.arange(4)), sink)
    return sink.getvalue().to_pybytes()


def test_a_stream_of_a_schema_and_a_batch_is_an_insert() -> None:
    insert = read(b"".join(messages()))
    assert ("root.a.d", 7, ["i"]) == (insert.device, insert.sequence, list(insert.columns))


@pytest.mark.parametrize("aligned", [None, True, False])
@pytest.mark.parametrize("device", ["root.a.d", "root.a.温度", "root.a.longer", ""])
def test_the_head_says_whose_rows_they_are(device: str, aligned: bool | None) -> None:
    insert = read_insert(encode_insert_head(device.encode(), 1 << 63, aligned=aligned) + b"".join(messages()))
    assert (device, aligned, 1 << 63) == (insert.device, insert.aligned, insert.sequence)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        bytes(15),
        b"\0" * 8 + b"\3" + b"\0" * 7,
        b"\0" * 9 + b"\1" + b"\0" * 6,
        b"\0" * 12 + b"\xff" * 4,
        encode_insert_head(b"root.\xff", 0, aligned=None),
    ],
    ids=["empty", "short", "aligned", "reserved", "a long device", "no text"],
)
def test_a_head_that_is_none_is_refused(head: bytes) -> None:
    with pytest.raises(BadMessage, match="columns that cannot be read"):
        read_insert(head + (b"".join(messages()) if len(head) > 15 else b""))


@pytest.mark.parametrize("order", ["bb", "ss", "ts", "sst", "st", "s", "b", ""])
def test_messages_of_other_types_are_refused(order: str) -> None:
    schema, batch = messages()
    parts = {"s": schema, "b": batch, "t": tensor()}
    with pytest.raises(BadMessage, match="columns that cannot be read"):
        read(b"".join(parts[letter] for letter in order))


def test_a_message_of_an_unknown_type_is_refused() -> None:
    """Arrow's own reader would crash the process if it read this stream."""
    schema, batch = messages()
    kinds = [place for place in range(len(schema)) if schema[place] == 1]
    refused = 0
    for place in kinds:
        try:
            read(schema[:place] + b"\x63" + schema[place + 1 :] + batch)
        except BadMessage as error:
            refused += "a message of type unknown" in str(error)
    assert refused > 0


def test_a_stream_of_a_known_shape_that_is_cut_off_is_refused() -> None:
    stream = b"".join(messages())
    assert [3, 4] == read(stream).columns["i"].to_list()  # type: ignore[attr-defined]
    for length in range(len(stream) - 1, len(stream) - 17, -1):
        with pytest.raises(BadMessage, match="columns that cannot be read"):
            read(stream[:length])
    assert [3, 4] == read(stream + b"more").columns["i"].to_list()  # type: ignore[attr-defined]
