"""Value encodings: convert the values of a page to TsFile bytes and back.

    encode(encoding, type, values) -> bytes               one page, without nulls
    encode_rows(type, matrix) -> [bytes | None]           a TS_2DIFF page of each row
    encode_matrix(encoding, type, matrix)                 a page of each row in any encoding
    decode(encoding, type, data, count) -> values         driven by the count, never by the bytes alone
    decode_pages_into(...)                                many pages of fixed-width values in one call

              BOOLEAN  INT32/DATE  INT64/TIMESTAMP  FLOAT  DOUBLE  TEXT/STRING  BLOB
    PLAIN     rw       rw          rw               rw     rw      rw           rw
    RLE       rw       rw          r
    TS_2DIFF           rw          rw               rw*    rw*
    GORILLA            rw          rw               rw     rw
    CHIMP              rw          rw               rw     rw
    ZIGZAG             r           r
    DICTIONARY                                                     rw

    * only values that are restored bit for bit (see `scaled`)

Any other encoding of the format raises `UnsupportedEncoding`, except those in `compat_decoders`. Every decoder checks
its input: malformed bytes raise DecodeError, and nothing is allocated beyond what the count requires (DICTIONARY:
beyond `TEXT_BYTES_MAX`).

Pure: any thread.
"""

from saros_storage.encoding.codecs import (
    MATRIX_TYPES,
    TEXT_BYTES_MAX,
    decode,
    decode_into,
    decode_pages_into,
    decode_times_into,
    encode,
    encode_matrix,
    encode_plain_rows,
    encode_rows,
    encode_scaled,
    encode_time_rows,
    encode_times,
    encodings_for,
    is_byte_swapped,
    is_delta_encoded,
)
from saros_storage.encoding.errors import DecodeError, UnsupportedEncoding
from saros_storage.encoding.scaled import EXACT_POWERS, scaled

__all__ = [
    "EXACT_POWERS",
    "MATRIX_TYPES",
    "TEXT_BYTES_MAX",
    "DecodeError",
    "UnsupportedEncoding",
    "decode",
    "decode_into",
    "decode_pages_into",
    "decode_times_into",
    "encode",
    "encode_matrix",
    "encode_plain_rows",
    "encode_rows",
    "encode_scaled",
    "encode_time_rows",
    "encode_times",
    "encodings_for",
    "is_byte_swapped",
    "is_delta_encoded",
    "scaled",
]
