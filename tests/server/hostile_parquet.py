"""Parquet files built byte by byte. Their pages or footers declare more data than the file contains.

The module implements those parts of Thrift's compact protocol that https://github.com/apache/parquet-format uses.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

#: A field: its number, its wire type, and its encoded value.
Fields = Mapping[int, tuple[int, bytes]]
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
INT64, BYTE_ARRAY = 2, 6
PLAIN, RLE, DELTA_BYTE_ARRAY = 0, 3, 7
UNCOMPRESSED, ZSTD = 0, 6
#: The maximum length of Thrift's lists and texts.
HUGE = 2**31 - 1


def varint(number: int) -> bytes:
    """Encode an unsigned number."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def i32(number: int) -> tuple[int, bytes]:
    """Encode a field that is a non-negative 32-bit integer."""
    return _I32, varint(number << 1)


def i64(number: int) -> tuple[int, bytes]:
    """Encode a field that is a non-negative 64-bit integer."""
    return _I64, varint(number << 1)


def text(data: bytes, size: int | None = None) -> tuple[int, bytes]:
    """Encode a text; `size` is the size that the encoding claims."""
    return _BINARY, varint(len(data) if size is None else size) + data


def array(type_: int, items: Sequence[bytes], size: int | None = None) -> tuple[int, bytes]:
    """Encode a list; `size` is the size that the encoding claims."""
    return _LIST, bytes([0xF0 | type_]) + varint(len(items) if size is None else size) + b"".join(items)


def struct_of(fields: Fields) -> bytes:
    """Encode a structure."""
    out, last = b"", 0
    for number, (type_, data) in sorted(fields.items()):
        out += bytes([(number - last) << 4 | type_]) + data
        last = number
    return out + b"\0"


def data_page(data: bytes, plain_bytes: int, values: int, encoding: int) -> bytes:
    """Return a data page with `values` values and no nulls; its header claims `plain_bytes` decompressed bytes."""
    header = {1: i32(values), 2: i32(encoding), 3: i32(RLE), 4: i32(RLE)}
    about = {1: i32(0), 2: i32(plain_bytes), 3: i32(len(data)), 5: (_STRUCT, struct_of(header))}
    return struct_of(about) + data


def parquet(page: bytes, values: int, encoding: int, codec: int) -> bytes:
    """Return a file with an INT64 column `time` and a text column `x`, both with the same page."""

    def column(name: bytes, type_: int) -> bytes:
        found = {
            1: i32(type_),
            2: array(_I32, [varint(encoding << 1)]),
            3: array(_BINARY, [text(name)[1]]),
            4: i32(codec),
            5: i64(values),
            6: i64(len(page)),
            7: i64(len(page)),
            9: i64(4),
        }
        return struct_of({2: i64(4), 3: (_STRUCT, struct_of(found))})

    columns = [column(b"time", INT64), column(b"x", BYTE_ARRAY)]
    group = struct_of({1: array(_STRUCT, columns), 2: i64(len(page)), 3: i64(values)})
    schema = [
        struct_of({4: text(b"schema"), 5: i32(2)}),
        struct_of({1: i32(INT64), 3: i32(0), 4: text(b"time")}),
        struct_of({1: i32(BYTE_ARRAY), 3: i32(0), 4: text(b"x"), 6: i32(0)}),
    ]
    footer = {1: i32(1), 2: array(_STRUCT, schema), 3: i64(values), 4: array(_STRUCT, [group])}
    return file_of(struct_of(footer), page)


def file_of(footer: bytes, pages: bytes = b"") -> bytes:
    """Return a Parquet file that consists of these pages and this footer."""
    return b"PAR1" + pages + footer + struct.pack("<I", len(footer)) + b"PAR1"


def footers() -> dict[str, bytes]:
    """Return footers, each of which declares more data than it contains."""
    schema = array(_STRUCT, [struct_of({4: text(b"schema"), 5: i32(0)})])
    return {
        "groups": struct_of({1: i32(1), 2: schema, 3: i64(1), 4: array(_STRUCT, [], HUGE)}),
        "schema": struct_of({1: i32(1), 2: array(_STRUCT, [], HUGE), 3: i64(1), 4: array(_STRUCT, [])}),
        "text": struct_of({1: i32(1), 2: schema, 3: i64(1), 4: array(_STRUCT, []), 6: text(b"", HUGE)}),
        "children": struct_of({1: i32(1), 2: array(_STRUCT, [struct_of({4: text(b"s"), 5: i32(HUGE)})]), 3: i64(1)}),
    }
