"""Messages of Thrift's binary protocol (the strict variant), each in a frame.

    frame     int32 length, then a message
    message   0x8001 00 kind, int32 length, name, int32 sequence number, then a struct: the arguments, or the result

Structs are declared as dataclasses: the annotation of a field is its wire type, and the order of the fields gives their
numbers.

    @thrift_struct
    class EndPoint:
        ip: Text                                            1, required: a message without it cannot be read
        port: I32 = 6667                                    2, with a default
        note: Text | None = numbered(5, default=None)       5: numbers continue from here

Structs are immutable; `None` stands for an absent field. Apache Thrift's C codec reads and writes them with the table
that `thrift_struct` creates. The codec checks each length against the length of the frame, and limits nesting. A frame
is received into memory that the codec reads directly, so bytes are copied only once: into the struct.

Messages of the compact protocol, and those without a frame, are recognised only to tell the client that they are not
supported.
Thread-safe.
"""

from __future__ import annotations

import dataclasses
import struct
import types
import typing
from io import BytesIO
from typing import Annotated, Any, TypeVar

import msgspec
from thrift.protocol import fastbinary
from thrift.Thrift import TApplicationException, TMessageType, TType

UNKNOWN_METHOD, PROTOCOL_ERROR = TApplicationException.UNKNOWN_METHOD, TApplicationException.PROTOCOL_ERROR
#: The first bytes of a message of this protocol, and of a message of the compact protocol.
VERSION, COMPACT = b"\x80\x01", 0x82
#: The limit of elements of a list or map in a request: the codec allocates memory for them before it reads them.
CONTAINER_MAX = 1 << 22
#: The maximum length of a method's name in a request; all real names are shorter.
_NAME_BYTES_MAX = 127
_VERSION_NUMBER = 0x8001_0000
_KINDS = (TMessageType.CALL, TMessageType.ONEWAY)
_HEAD = struct.Struct(">II")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_FIELD = struct.Struct(">bh")
_STOP = b"\0"
#: Headers of fields: the answer's field in a result struct, for each wire type, and the request's in an argument
#: struct.
_STRUCT_ANSWER, _LONG_ANSWER = _FIELD.pack(TType.STRUCT, 0), _FIELD.pack(TType.I64, 0)
_REQUEST = _FIELD.pack(TType.STRUCT, 1)
#: In the compact protocol: the type byte of an exception of version 1, and the continuation bit of a varint.
_COMPACT_EXCEPTION, _MORE = bytes((COMPACT, TMessageType.EXCEPTION << 5 | 1)), 0x80

_Struct = TypeVar("_Struct")
#: The key of the field number in a field's metadata.
_NUMBER = "number"


# ---------------------------------------------------------------------------------------------- declarations

Bool = Annotated[bool, TType.BOOL]
Byte = Annotated[int, TType.BYTE]
I32 = Annotated[int, TType.I32]
I64 = Annotated[int, TType.I64]
Text = Annotated[str, TType.STRING, "UTF8"]
#: Bytes, of which the codec makes one copy.
Binary = Annotated[bytes, TType.STRING, "BINARY"]


def numbered(number: int, *, default: None) -> Any:
    """Return the default of an optional field with this number; the numbers of later fields continue from it."""
    return dataclasses.field(default=default, metadata={_NUMBER: number})


@typing.dataclass_transform(frozen_default=True, field_specifiers=(numbered,))
def thrift_struct(declared: type[_Struct]) -> type[_Struct]:
    """Turn a class into a struct: a frozen dataclass with a `thrift_spec`."""
    made = dataclasses.dataclass(frozen=True, slots=True)(declared)
    hints = typing.get_type_hints(made, localns={made.__name__: made}, include_extras=True)
    # A struct may contain itself: the codec follows this reference when the table is complete.
    made.thrift_reference = reference = [made, None]  # type: ignore[attr-defined]
    rows: list[tuple[object, ...] | None] = [None]
    for field in dataclasses.fields(made):  # type: ignore[arg-type]  # a dataclass since two lines
        number = field.metadata.get(_NUMBER, len(rows))
        rows += [None] * (number - len(rows))
        kind, arguments = _wire_type(hints[field.name])
        rows.append((number, kind, field.name, arguments, None))
    made.thrift_spec = reference[1] = tuple(rows)  # type: ignore[attr-defined, call-overload]
    return made


def reference_to(struct: type) -> Any:
    """Return a struct and its table in the form that the codec expects."""
    return struct.thrift_reference  # type: ignore[attr-defined]


def _wire_type(hint: Any) -> tuple[int, object]:
    """Return the wire type of an annotation, and its arguments in the codec's tables."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):  # X | None
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return parts[1], parts[2] if len(parts) > 2 else None
    if origin is list:
        return TType.LIST, (*_wire_type(parts[0]), False)
    if origin is dict:
        return TType.MAP, (*_wire_type(parts[0]), *_wire_type(parts[1]), False)
    return TType.STRUCT, reference_to(hint)


# ---------------------------------------------------------------------------------------------- calls


class UnreadableMessage(Exception):
    """The bytes are not a message of the protocol, and no later message can be read."""


class BadArguments(Exception):
    """The arguments of a message cannot be read; the connection can continue."""


class Header(msgspec.Struct, frozen=True):
    """The beginning of a message."""

    name: str
    sequence: int
    #: True if the client does not wait for an answer.
    oneway: bool = False


class FrameBuffer:
    """A frame. First receive the frame into `memory`, then read the header, then the arguments."""

    __slots__ = ("_bytes", "_size")

    def __init__(self, size: int) -> None:
        self._bytes = BytesIO(bytes(size))
        self._size = size

    def memory(self) -> memoryview:
        """Return the frame's memory; release the view before reading the frame."""
        return self._bytes.getbuffer()

    def read_header(self) -> Header:
        """Read the header. Raises UnreadableMessage."""
        head = self._bytes.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise UnreadableMessage(f"a message of {self._size} bytes")
        version, size = _HEAD.unpack(head)
        kind = version - _VERSION_NUMBER
        if kind not in _KINDS or not 0 < size <= _NAME_BYTES_MAX:
            raise UnreadableMessage(f"a message that begins with {head.hex()}")
        rest = self._bytes.read(size + _INT.size)
        if len(rest) < size + _INT.size:
            raise UnreadableMessage(f"a message of {self._size} bytes, with a name of {size}")
        (sequence,) = _INT.unpack_from(rest, size)
        return Header(rest[:size].decode("ascii", "replace"), sequence, kind == TMessageType.ONEWAY)

    def read_arguments(self, kind: type[_Struct], *, bare: bool = False) -> _Struct:
        """Read the arguments of the call: its request, or all of them if they are `bare`; then free the memory.

        Raises BadArguments.
        """
        message, self._bytes = self._bytes, BytesIO()
        if not bare and message.read(len(_REQUEST)) != _REQUEST:
            raise BadArguments("the call has no request")
        try:
            found: _Struct = fastbinary.decode_binary(None, _Source(message, self._size), reference_to(kind))
        except Exception as error:  # the codec raises exceptions of many kinds
            raise BadArguments(f"arguments that cannot be read as {kind.__name__}: {error}") from error
        return found


class _Source:
    """A frame with the attributes that the codec reads."""

    __slots__ = ("container_length_limit", "cstringio_buf", "string_length_limit", "trans")

    def __init__(self, frame: BytesIO, size: int) -> None:
        self.trans = self
        self.cstringio_buf = frame
        self.string_length_limit = size
        self.container_length_limit = min(size, CONTAINER_MAX)

    def cstringio_refill(self, _: bytes, __: int) -> BytesIO:
        """Refuse to read past the end of the frame."""
        raise BadArguments("the message ends too early")


# ---------------------------------------------------------------------------------------------- answers


@thrift_struct
class ApplicationError:
    """An error of the protocol itself: `TApplicationException`."""

    message: Text
    kind: I32


def reply(header: Header, answer: object) -> list[bytes]:
    """Return the frame of an answer: a struct, or an integer."""
    if isinstance(answer, int):
        return framed(_head(TMessageType.REPLY, header), _LONG_ANSWER, _LONG.pack(answer), _STOP)
    return framed(_head(TMessageType.REPLY, header), _STRUCT_ANSWER, encode(answer), _STOP)


def refuse(header: Header, kind: int, message: str) -> list[bytes]:
    """Return the message, without a frame, that refuses a call."""
    return [_head(TMessageType.EXCEPTION, header), encode(ApplicationError(message, kind))]


def refuse_compact(call: bytes, kind: int, message: str) -> list[bytes]:
    """Return the message, without a frame, that refuses a call of the compact protocol. Raises UnreadableMessage.

    `call`: the first bytes of the call.
    """
    try:
        after_number = next(place for place in range(2, len(call)) if not call[place] & _MORE) + 1
        end = after_number + 1 + call[after_number]
    except (StopIteration, IndexError):
        end = len(call) + 1
    if end > len(call):
        raise UnreadableMessage(f"a message that begins with {call[:8].hex()}")
    refusal = ApplicationError(message, kind)
    return [_COMPACT_EXCEPTION, call[2:end], fastbinary.encode_compact(refusal, reference_to(ApplicationError))]


def encode(value: object) -> bytes:
    """Return the bytes of a struct."""
    encoded: bytes = fastbinary.encode_binary(value, reference_to(type(value)))
    return encoded


def framed(*parts: bytes) -> list[bytes]:
    """Return a message in a frame."""
    return [_INT.pack(sum(map(len, parts))), *parts]


def _head(kind: int, header: Header) -> bytes:
    name = header.name.encode()
    return _HEAD.pack(_VERSION_NUMBER + kind, len(name)) + name + _INT.pack(header.sequence)
