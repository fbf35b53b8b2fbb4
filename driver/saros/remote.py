"""A session on a node elsewhere: the driver's `Session` over gRPC.

    saros://host[:port]      Open -> token      Execute -> head, then Arrow record batches      Insert <- Arrow columns

Columns that are too long for one message go in several, in order; if one is refused, those before it are written. A
call that the node did not answer is not repeated by itself. Threads may share a session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import grpc
import pyarrow as pa
from grpc.experimental import ChannelOptions

from saros.errors import InterfaceError, NotSupportedError, OperationalError, database_error
from saros_wire import protocol
from saros_wire.generated import client_pb2

_OPEN_SECONDS = 10.0
_NO_CODE = 2000
_KILLED = 715
_OPTIONS = [
    ("grpc.max_receive_message_length", protocol.MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", protocol.MESSAGE_BYTES_MAX),
    # The caller's thread reads a stream itself: half the time of a short query.
    (ChannelOptions.SingleThreadedUnaryStream, 1),
]


def address_of(target: str) -> str:
    """host:port of a `saros://` target. Raises InterfaceError, NotSupportedError."""
    parts = urlsplit(target)
    if parts.scheme != "saros":
        raise NotSupportedError(f"cannot connect to {target}: give a folder, or saros://host:port", 2002)
    if "," in parts.netloc:
        raise NotSupportedError("several addresses in one target are not supported yet: give one", 2002)
    if parts.username or parts.password:
        raise NotSupportedError("users and passwords are not supported yet", 2002)
    try:
        port = parts.port or protocol.DEFAULT_PORT
    except ValueError as error:
        raise InterfaceError(f"{target}: {error}") from error
    if not parts.hostname:
        raise InterfaceError(f"{target} names no host")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"


def open_remote(target: str, *, time_zone: str | None) -> RemoteSession:
    """A session on the node at a `saros://` target. Raises OperationalError if nobody answers."""
    return RemoteSession(address_of(target), time_zone)


def _unary(channel: grpc.Channel, name: str, decode: Any) -> Any:
    return channel.unary_unary(
        protocol.path_of(name),
        request_serializer=lambda message: message if isinstance(message, bytes) else message.SerializeToString(),
        response_deserializer=decode,
    )


@contextmanager
def _translated(address: str) -> Iterator[None]:
    """GRPC's errors as the driver's, by the code in their metadata."""
    try:
        yield
    except grpc.RpcError as error:
        metadata = dict(error.trailing_metadata() or ())
        code = metadata.get(protocol.CODE_KEY)
        if code is not None:
            raise database_error(str(error.details()), int(code)) from None
        if error.code() is grpc.StatusCode.CANCELLED:
            raise OperationalError("the statement was cancelled", _KILLED) from None
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            raise OperationalError(f"no Saros node answers at {address}: {error.details()}", _NO_CODE) from error
        raise OperationalError(f"the call to {address} failed: {error.details()}", _NO_CODE) from error


class RemoteSession:
    """Implements the driver's `Session`."""

    def __init__(self, address: str, time_zone: str | None) -> None:
        """Connect. Raises OperationalError."""
        self._address = address
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        request = client_pb2.OpenRequest(protocol=protocol.PROTOCOL, time_zone=time_zone or "", client="python")
        try:
            with _translated(address):
                opened = _unary(self._channel, protocol.OPEN, client_pb2.OpenReply.FromString)
                reply = opened(request, timeout=_OPEN_SECONDS)
        except BaseException:
            self._channel.close()
            raise
        self._metadata = ((protocol.SESSION_KEY, reply.session),)
        self._insert = _unary(self._channel, protocol.INSERT, client_pb2.InsertReply.FromString)
        self._execute = self._channel.unary_stream(
            protocol.path_of(protocol.EXECUTE),
            request_serializer=client_pb2.ExecuteRequest.SerializeToString,
            response_deserializer=bytes,
        )

    def execute(self, text: str, parameters: Sequence[object], timeout_s: float | None) -> RemoteOutcome:
        """See `Session.execute`."""
        try:
            values = protocol.encode_values(parameters)
        except TypeError as error:
            raise database_error(str(error), 2003) from error
        timeout_ms = 0 if timeout_s is None else max(int(timeout_s * 1_000), 1)
        request = client_pb2.ExecuteRequest(statement=text, parameters=values, timeout_ms=timeout_ms)
        with _translated(self._address):
            return RemoteOutcome(self._execute(request, metadata=self._metadata), self._address)

    def insert(self, device: str, times: object, columns: Mapping[str, object], *, aligned: bool | None) -> int:
        """See `Session.insert`."""
        arrays = [_array(times), *(_array(values) for values in columns.values())]
        for name, array in zip(columns, arrays[1:], strict=True):
            if len(array) != len(arrays[0]):
                raise database_error(f"column {name} has {len(array)} values for {len(arrays[0])} times", 2003)
        metadata = {protocol.DEVICE_KEY: device.encode(), protocol.ALIGNED_KEY: str(aligned).lower().encode()}
        batch = pa.record_batch(arrays, names=["", *columns]).replace_schema_metadata(metadata)
        rows = max(batch.num_rows * protocol.INSERT_BYTES // max(batch.nbytes, 1), 1)
        points = 0
        with _translated(self._address):
            for start in range(0, batch.num_rows, rows):
                points += self._insert(_stream_of(batch.slice(start, rows)), metadata=self._metadata).points
        return points

    def close(self) -> None:
        """See `Session.close`."""
        call = _unary(self._channel, protocol.CLOSE, client_pb2.CloseReply.FromString)
        try:
            call(client_pb2.CloseRequest(), metadata=self._metadata, timeout=_OPEN_SECONDS)
        except grpc.RpcError:
            return  # the node ends an idle session by itself
        finally:
            self._channel.close()


def _array(values: object) -> pa.Array:
    """A column as Arrow, nulls where pandas and lists have none."""
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    try:
        import numpy as np

        if isinstance(values, np.ma.MaskedArray):
            return pa.array(values.data, mask=np.ma.getmaskarray(values))
        plain = isinstance(values, np.ndarray) and values.dtype != object
        return pa.array(values, from_pandas=not plain)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise database_error(f"a column cannot be read as one type: {error}", 507) from error


def _stream_of(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


class RemoteOutcome:
    """Implements the driver's `Outcome` over a stream of messages."""

    def __init__(self, stream: Any, address: str) -> None:
        """Reads the head. Raises grpc.RpcError."""
        self._stream = stream
        self._address = address
        head = client_pb2.ResultHead.FromString(next(stream))
        self._head = head
        self._schema = pa.ipc.read_schema(pa.py_buffer(head.schema)) if head.schema else pa.schema([])

    @property
    def query_id(self) -> str:
        """See `Outcome.query_id`."""
        return str(self._head.query_id)

    @property
    def names(self) -> Sequence[str] | None:
        """See `Outcome.names`."""
        return self._schema.names if self._head.schema else None

    @property
    def type_names(self) -> Sequence[str]:
        """See `Outcome.type_names`."""
        return list(self._head.type_names)

    @property
    def schema(self) -> pa.Schema:
        """See `Outcome.schema`."""
        return self._schema

    @property
    def update_count(self) -> int:
        """See `Outcome.update_count`."""
        return int(self._head.update_count)

    def next_batch(self) -> pa.RecordBatch | None:
        """See `Outcome.next_batch`."""
        with _translated(self._address):
            message = next(self._stream, None)
        return None if message is None else pa.ipc.read_record_batch(pa.py_buffer(message), self._schema)

    def close(self) -> None:
        """See `Outcome.close`."""
        self._stream.cancel()
