"""Kernels that read sound and damaged pages of non-aligned series, compared with their Python sources and twins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cramjam
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saros_storage.base.types import NUMPY_DTYPE, DataType, Encoding, Int64Array
from saros_storage.encoding import encode
from saros_storage.kernels.codecs.points import (
    lz4_plain_points,
    lz4_ts2diff_points,
    pages_span,
    plain_decode,
    point_sections,
)
from saros_storage.tsfile.structure.format import uvar

NOTHING = np.empty(0, np.int64)


def sections(pages: list[bytes]) -> list[list[tuple[int, int]]]:
    """Return the positions at which times and values begin, for each page before the first damaged one.

    The result has such a list for the kernel, for its source and for its twin.
    """
    data, (starts, ends) = np.frombuffer(b"".join(pages), np.uint8), bounds([len(page) for page in pages])
    found = []
    for run in (point_sections, point_sections.source, point_sections.twin):
        times, values = np.zeros(len(pages), np.int64), np.zeros(len(pages), np.int64)
        count = run(data, starts, ends, times, values)
        found.append(list(zip(times[:count].tolist(), values[:count].tolist(), strict=True)))
    return found


def bounds(sizes: list[int]) -> tuple[Int64Array, Int64Array]:
    ends = np.cumsum(sizes, dtype=np.int64)
    return ends - np.array(sizes, np.int64), ends


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 9)), min_size=1, max_size=5))
def test_times_stand_in_front_of_values(sizes: list[tuple[int, int]]) -> None:
    pages = [uvar(times) + b"t" * times + b"v" * values for times, values in sizes]
    stream = b"".join(pages)
    for found in sections(pages):
        assert [b"t" * times for times, _ in sizes] == [stream[a:b] for a, b in found]
        ends = np.cumsum([len(page) for page in pages]).tolist()
        assert [b"v" * v for _, v in sizes] == [stream[b:e] for (_, b), e in zip(found, ends, strict=True)]


@pytest.mark.parametrize("damaged", ["", "05 00", "80", "ffffffffff00", "ffffffff0f"])
def test_a_page_whose_times_do_not_end_in_it_is_the_last_that_is_read(damaged: str) -> None:
    whole = uvar(2) + b"ttvv"
    assert [[(1, 3)]] * 3 == sections([whole, bytes.fromhex(damaged), whole])


@given(st.binary(max_size=20))
def test_whatever_a_page_holds_kernel_and_twin_say_the_same(page: bytes) -> None:
    kernel, source, twin = sections([page, uvar(0)])
    assert source == twin == kernel


@given(st.sampled_from((4, 8)), st.lists(st.integers(0, 9), max_size=5), st.integers(0, 3))
def test_plain_values_are_turned_round(size: int, counts: list[int], spare: int) -> None:
    values = (np.arange(1, sum(counts) + 1) * 0x01020305).astype(f">u{size}")
    parts = np.split(values, np.cumsum(counts)[:-1]) if counts else []
    pages = [part.tobytes() + b"x" * spare for part in parts]
    starts, ends = bounds([len(page) for page in pages])
    data = np.frombuffer(b"".join(pages), np.uint8)
    for run in (plain_decode, plain_decode.source, plain_decode.twin):
        out = np.zeros(size * sum(counts), np.uint8)
        assert len(out) == run(data, starts, ends, np.array(counts, np.int64), size, out)
        assert values.tolist() == out.view(f"u{size}").tolist()


def test_a_plain_page_with_too_few_bytes_is_refused() -> None:
    data, (starts, ends) = np.zeros(23, np.uint8), bounds([16, 7])
    for run in (plain_decode, plain_decode.source, plain_decode.twin):
        assert run(data, starts, ends, np.array([2, 1]), 8, np.empty(24, np.uint8)) < 0


Points = tuple[int, bytes, list[int], bytes]


def points_at_once(
    read: Callable[..., int], pages: list[bytes], counts: list[int], width: int, *, room: int = 0, cut: int = 0
) -> Points:
    """Return the results of a kernel that reads pages: its return value, the times, their lengths, the values.

    `read` calls the kernel with the arguments that both kernels have. `room` is added to the number of bytes needed for
    times, and `cut` bytes are missing from the last page.
    """
    blocks = [bytes(cramjam.lz4.compress_block(page, store_size=False)) for page in pages]
    blocks[-1] = blocks[-1][: len(blocks[-1]) - cut]
    data = np.frombuffer(b"".join(blocks), np.uint8)
    offsets, ends = bounds([len(block) for block in blocks])
    sizes, rows = np.array([len(page) for page in pages], np.int64), np.array(counts, np.int64)
    page, times = np.zeros(sizes.max(), np.uint8), np.zeros(max(int(sizes.sum()) + room, 0), np.uint8)
    lengths, values = np.zeros(len(pages), np.int64), np.zeros(max(width * sum(counts), 0), np.uint8)
    used = read(data, offsets, ends - offsets, sizes, rows, width, page, times, lengths, values)
    return used, times[: max(used, 0)].tobytes(), lengths.tolist(), values.tobytes()


def plain_points(pages: list[bytes], counts: list[int], width: int, *, room: int = 0, cut: int = 0) -> list[Points]:
    """Return the results of kernel and twin on pages of PLAIN values."""
    kernels = lz4_plain_points, lz4_plain_points.twin
    return [points_at_once(kernel, pages, counts, width, room=room, cut=cut) for kernel in kernels]


def ts2diff_points(
    pages: list[bytes], counts: list[int], width: int, *, powers: Sequence[float] = (), room: int = 0, cut: int = 0
) -> list[Points]:
    """Return the results of kernel and twin on pages of TS_2DIFF values, which are integers if there are no powers."""

    def reader(kernel: Callable[..., int]) -> Callable[..., int]:
        def read(*given: Any) -> int:
            *extents, page, times, lengths, values = given
            whole = np.zeros(max(counts), np.int64)
            return kernel(*extents, np.array(powers, float), page, whole, times, lengths, values)

        return read

    kernels = lz4_ts2diff_points, lz4_ts2diff_points.twin
    return [points_at_once(reader(kernel), pages, counts, width, room=room, cut=cut) for kernel in kernels]


@given(
    st.sampled_from((4, 8)),
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 9)), min_size=1, max_size=5),
    st.integers(0, 3),
)
def test_pages_of_lz4_and_plain_values_are_read_at_once(width: int, shapes: list[tuple[int, int]], spare: int) -> None:
    counts = [count for _, count in shapes]
    values = (np.arange(1, sum(counts) + 1) * 0x01020305).astype(f">u{width}")
    times = [bytes(n % 251 for n in range(size)) for size, _ in shapes]
    parts = np.split(values, np.cumsum(counts)[:-1])
    pages = [uvar(len(t)) + t + part.tobytes() + b"x" * spare for t, part in zip(times, parts, strict=True)]
    stream = b"".join(times)
    expected = (len(stream), stream, [len(t) for t in times], values.astype(f"u{width}").tobytes())
    assert [expected] * 2 == plain_points(pages, counts, width)


@pytest.mark.parametrize(
    ("page", "count", "room", "cut"),
    [
        (uvar(3) + b"ttt" + bytes(15), 2, 0, 0),
        (uvar(30) + b"ttt" + bytes(16), 2, 0, 0),
        (uvar(3) + b"ttt" + bytes(16), -1, 0, 0),
        (uvar(3) + b"ttt" + bytes(16), 2, 0, 3),
        (uvar(3) + b"ttt" + bytes(16), 2, -38, 0),
        (b"", 0, 0, 0),
    ],
    ids=["too few values", "times that do not end", "less than no rows", "cut off", "no room for times", "nothing"],
)
def test_pages_that_are_damaged_or_too_large_are_refused_at_once(page: bytes, count: int, room: int, cut: int) -> None:
    whole = uvar(2) + b"tt" + bytes(16)
    assert [-1] * 2 == [found[0] for found in plain_points([whole, page], [2, count], 8, room=room, cut=cut)]


Shapes = list[tuple[int, int]]


def differences(type_: DataType, shapes: Shapes, seed: int) -> tuple[list[np.ndarray], list[bytes]]:
    """Return random integers of various bit widths for each page, and the pages as TS_2DIFF.

    A shape is (bytes, values).
    """
    rng, dtype = np.random.default_rng(seed), NUMPY_DTYPE[type_]
    bits = rng.integers(1, dtype.itemsize * 8 - 1, len(shapes)).tolist()
    parts = [rng.integers(-(1 << b), 1 << b, n, dtype) for b, (_, n) in zip(bits, shapes, strict=True)]
    return parts, [encode(Encoding.TS_2DIFF, type_, part) for part in parts]


SHAPES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 400)), min_size=1, max_size=5)


@given(st.sampled_from((DataType.INT32, DataType.INT64)), SHAPES, st.integers(0, 30))
def test_pages_of_lz4_and_ts2diff_values_are_read_at_once(type_: DataType, shapes: Shapes, seed: int) -> None:
    parts, values = differences(type_, shapes, seed)
    times = [bytes(n % 251 for n in range(size)) for size, _ in shapes]
    pages = [uvar(len(t)) + t + v for t, v in zip(times, values, strict=True)]
    stream, numbers = b"".join(times), np.concatenate(parts).tobytes()
    expected = (len(stream), stream, [len(t) for t in times], numbers)
    assert [expected] * 2 == ts2diff_points(pages, [n for _, n in shapes], NUMPY_DTYPE[type_].itemsize)


@given(st.sampled_from((DataType.FLOAT, DataType.DOUBLE)), SHAPES, st.integers(0, 30))
def test_numbers_of_ts2diff_are_divided_by_each_pages_power(type_: DataType, shapes: Shapes, seed: int) -> None:
    whole = DataType.INT32 if type_ is DataType.FLOAT else DataType.INT64
    parts, values = differences(whole, shapes, seed)
    pages = [uvar(0) + bytes((m,)) + v for m, v in enumerate(values)]
    divided = [(part / 10.0**m).astype(NUMPY_DTYPE[type_]) for m, part in enumerate(parts)]
    expected = (0, b"", [0] * len(pages), np.concatenate(divided).tobytes())
    counts, width = [n for _, n in shapes], NUMPY_DTYPE[type_].itemsize
    assert [expected] * 2 == ts2diff_points(pages, counts, width, powers=[1.0, 10.0, 100.0, 1e3, 1e4])


@pytest.mark.parametrize(
    ("page", "count", "room", "cut"),
    [
        (uvar(3) + b"ttt", 1, 0, 0),
        (uvar(3) + b"ttt" + b"\2", 1, 0, 0),
        (uvar(3) + b"ttt" + b"\3" + bytes(24), 1, 0, 0),
        (uvar(30) + b"ttt" + b"\2" + bytes(24), 1, 0, 0),
        (uvar(3) + b"ttt" + b"\2" + bytes(24), -1, 0, 0),
        (uvar(3) + b"ttt" + b"\2" + bytes(24), 1, 0, 3),
        (uvar(3) + b"ttt" + b"\2" + bytes(24), 1, -53, 0),
        (uvar(3) + b"ttt" + b"\2" + bytes(24), 2, 0, 0),
    ],
    ids=[
        "no values",
        "no numbers",
        "a power that is not there",
        "times that do not end",
        "less than no rows",
        "cut off",
        "no room for times",
        "too few",
    ],
)
def test_ts2diff_pages_that_are_damaged_are_refused_at_once(page: bytes, count: int, room: int, cut: int) -> None:
    whole = uvar(2) + b"tt" + b"\2" + bytes(24)
    found = ts2diff_points([whole, page], [1, count], 8, powers=[1.0, 10.0, 100.0], room=room, cut=cut)
    assert [-1] * 2 == [answer for answer, *_ in found]


def test_pages_begin_and_end_with_their_times() -> None:
    times, counts = np.array([1, 2, 3, 7]), np.array([3, 1])
    firsts, lasts = np.array([1, 7]), np.array([3, 7])
    for run in (pages_span, pages_span.source, pages_span.twin):
        assert run(times, counts, firsts, lasts)
        assert not run(times, counts, firsts + 1, lasts)
        assert not run(times, counts, firsts, lasts - 1)
        assert run(NOTHING, NOTHING, NOTHING, NOTHING)
        assert not run(times, np.array([4, 0]), np.array([1, 0]), np.array([7, 0]))
