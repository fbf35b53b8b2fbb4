"""Inserts as Arrow IPC streams: streams that are none are refused, whatever their messages are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from server.frame_client import columns

from saros_server.api.errors import BadMessage
from saros_server.api.insert_request import read_insert


def messages() -> tuple[bytes, bytes]:
    """The schema and the batch of an insert."""
    stream = columns("root.a.d", [1, 2], i=[3, 4])
    reader = pa.ipc.MessageReader.open_stream(stream)
    schema, batch = reader.read_next_message(), reader.read_next_message()
    return schema.serialize().to_pybytes(), batch.serialize().to_pybytes()


def tensor() -> bytes:
    sink = pa.BufferOutputStream()
    pa.ipc.write_tensor(pa.Tensor.from_numpy(np.arange(4)), sink)
    return sink.getvalue().to_pybytes()


def test_a_stream_of_a_schema_and_a_batch_is_an_insert() -> None:
    insert = read_insert(b"".join(messages()))
    assert ("root.a.d", ["i"]) == (insert.device, list(insert.columns))


@pytest.mark.parametrize("order", ["bb", "ss", "ts", "sst", "st", "s", "b", ""])
def test_messages_of_other_types_are_refused(order: str) -> None:
    schema, batch = messages()
    parts = {"s": schema, "b": batch, "t": tensor()}
    with pytest.raises(BadMessage, match="columns that cannot be read"):
        read_insert(b"".join(parts[letter] for letter in order))


def test_a_message_of_an_unknown_type_is_refused() -> None:
    """Arrow's reader ends the process with it."""
    schema, batch = messages()
    kinds = [place for place in range(len(schema)) if schema[place] == 1]
    refused = 0
    for place in kinds:
        try:
            read_insert(schema[:place] + b"\x63" + schema[place + 1 :] + batch)
        except BadMessage as error:
            refused += "a message of type unknown" in str(error)
    assert refused > 0
