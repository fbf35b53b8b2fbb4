"""Kernels that read the values that IoTDB's clients send: for any bytes, they give the same results as their twins."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from saros_storage.kernels.prefixed import PREFIXED, UNKNOWN, gather, prefixed_offsets, typed_values


def bytes_of(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def message(texts: list[bytes]) -> bytes:
    return b"".join(len(text).to_bytes(4, "big") + text for text in texts)


@given(st.lists(st.binary(max_size=9)), st.binary(max_size=9))
def test_texts_are_found_and_copied(texts: list[bytes], before: bytes) -> None:
    data = bytes_of(before + message(texts))
    for find, copy in ((prefixed_offsets, gather), (prefixed_offsets.twin, gather.twin)):
        offsets = np.empty(len(texts) + 1, np.int32)
        assert len(data) == find(data, len(before), offsets)
        assert [0, *np.cumsum([len(text) for text in texts])] == offsets.tolist()
        starts = offsets[:-1] + len(before) + 4 * np.arange(1, len(texts) + 1)
        out = np.empty(offsets[-1], np.uint8)
        copy(data, starts, offsets, out)
        assert b"".join(texts) == out.tobytes()


@given(st.binary(max_size=30), st.integers(0, 4), st.integers(0, 40))
@example(b"\xff\xff\xff\xff", 1, 0)
@example(b"\x7f\xff\xff\xff", 1, 0)
@example(b"\x00\x00\x00\x00\x00\x00\x00", 2, 0)
def test_any_bytes_as_texts_end_where_the_twin_says(data: bytes, count: int, at: int) -> None:
    found, expected = np.zeros(count + 1, np.int32), np.zeros(count + 1, np.int32)
    end = prefixed_offsets.twin(bytes_of(data), at, expected)
    assert end == prefixed_offsets(bytes_of(data), at, found)
    assert end == -1 or expected.tolist() == found.tolist()


_PIECES = st.sampled_from([b"\x00", b"\x01", b"\x05", b"\x07", b"\x00\x00\x00\x02", b"ab", b"\xfe", b"\xff"])


@given(st.lists(st.tuples(st.lists(_PIECES, max_size=6).map(b"".join), st.integers(0, 3)), max_size=4))
def test_any_bytes_as_records_are_what_the_twin_says(records: list[tuple[bytes, int]]) -> None:
    sizes = np.full(256, UNKNOWN, np.int64)
    sizes[[0, 1, 5, 0xFE]] = [1, 4, PREFIXED, 0]
    data = bytes_of(b"".join(record for record, _ in records))
    bounds = np.cumsum([0, *(len(record) for record, _ in records)])
    counts = np.array([count for _, count in records], np.int64)
    results = []
    for run in (typed_values, typed_values.twin):
        types, starts = np.zeros(counts.sum(), np.uint8), np.zeros(counts.sum(), np.int64)
        wrong = run(data, bounds, counts, sizes, types, starts)
        results.append((wrong, *((types.tolist(), starts.tolist()) if wrong < 0 else ())))
    assert results[1] == results[0]
