"""The frames of the native protocol as bytes: layout, limits, refused frames."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saros_wire.frames import (
    BODY_BYTES_MAX,
    HEAD_BYTES_MAX,
    HEADER_BYTES,
    MAGIC,
    NO_TOKEN,
    NO_WAIT_LIMIT,
    PREFACE,
    PREFIX_BYTES,
    TOKEN_BYTES,
    VERSION,
    BadFrame,
    Call,
    Header,
    Kind,
    decode_credit,
    decode_header,
    decode_prefix,
    encode_credit,
    encode_header,
    encode_prefix,
)

NUMBERS = st.integers(0, 0xFFFF_FFFF)


def test_the_layout_that_all_versions_share() -> None:
    """A driver of any version must be able to read the reason why a server refuses it."""
    assert (b"SAROS\x07\r\n", 8, b"SAROS", 7) == (PREFACE, len(PREFACE), MAGIC, PREFACE[5])
    assert PREFACE[5] == VERSION
    header = encode_header(Kind.ERROR, 0x0403_0201, 0x0D0C, 0x0F0E, 7)
    assert bytes.fromhex("0c0d0000 0e0f0000 01020304 13 07 0000") == header
    assert (16, 36) == (HEADER_BYTES, PREFIX_BYTES)
    assert [1, 2, 3, 4, 16, 17, 18, 19, 20] == list(Kind)
    assert list(range(1, 17)) == list(Call)


@given(
    kind=st.sampled_from(Kind),
    call=st.integers(0, 255),
    request=NUMBERS,
    head_bytes=st.integers(0, HEAD_BYTES_MAX),
    body_bytes=st.integers(0, BODY_BYTES_MAX),
)
def test_a_header_is_read_as_it_was_written(
    kind: Kind, call: int, request: int, head_bytes: int, body_bytes: int
) -> None:
    encoded = encode_header(kind, request, head_bytes, body_bytes, call)
    for data in (encoded, bytearray(encoded), memoryview(encoded + b"more")):
        assert Header(kind, call, request, head_bytes, body_bytes) == decode_header(data)


@given(st.binary(min_size=HEADER_BYTES, max_size=HEADER_BYTES))
def test_any_bytes_are_a_header_or_are_refused(data: bytes) -> None:
    try:
        header = decode_header(data)
    except BadFrame:
        return
    again = encode_header(header.kind, header.request, header.head_bytes, header.body_bytes, header.call)
    assert data == again
    assert header.head_bytes <= HEAD_BYTES_MAX
    assert header.body_bytes <= BODY_BYTES_MAX


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({12: 0}, "a frame of kind 0"),
        ({12: 5}, "a frame of kind 5"),
        ({12: 255}, "a frame of kind 255"),
        ({14: 1}, "reserved bytes of a header are 1, not 0"),
        ({3: 2}, "a head of 33554432 bytes: more than 16777216"),
        ({7: 2}, "a body of 33554432 bytes: more than 16777216"),
        ({3: 255, 2: 255}, "a head of 4294901760 bytes"),
    ],
)
def test_a_header_that_is_none_is_refused_with_the_reason(changed: dict[int, int], reason: str) -> None:
    data = bytearray(encode_header(Kind.PING, 1))
    for place, value in changed.items():
        data[place] = value
    with pytest.raises(BadFrame, match=reason):
        decode_header(data)


@given(token=st.binary(min_size=TOKEN_BYTES, max_size=TOKEN_BYTES), wait_ms=NUMBERS, rest=st.binary(max_size=9))
def test_a_prefix_is_read_as_it_was_written(token: bytes, wait_ms: int, rest: bytes) -> None:
    found = decode_prefix(memoryview(encode_prefix(token, wait_ms) + rest))
    assert (b"" if token == NO_TOKEN else token, None if wait_ms == NO_WAIT_LIMIT else wait_ms) == found


def test_a_prefix_without_token_and_limit_has_none() -> None:
    assert (b"", None) == decode_prefix(encode_prefix())
    assert (b"", 0) == decode_prefix(encode_prefix(wait_ms=0))
    with pytest.raises(BadFrame, match="a request's head of 35 bytes: less than 36"):
        decode_prefix(encode_prefix()[:-1])


@given(NUMBERS)
def test_a_credit_is_read_as_it_was_written(count: int) -> None:
    assert count == decode_credit(encode_credit(count))


@pytest.mark.parametrize("size", [0, 3, 5])
def test_a_credit_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(BadFrame, match=f"a credit of {size} bytes"):
        decode_credit(bytes(size))
