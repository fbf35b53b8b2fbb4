"""If several series have the same encoded timestamps, they share one decoded array."""

from __future__ import annotations

from collections.abc import Sequence, Sized

import numpy as np
import pytest

from saros_storage.base.types import Int64Array
from saros_storage.encoding import DecodeError, encode_times
from saros_storage.tsfile import shared_timestamps
from saros_storage.tsfile.shared_timestamps import decode_times


def pages(*times: Int64Array) -> tuple[bytes, Int64Array, Int64Array, Int64Array, Int64Array]:
    """Return the encoded stream, and for each page the number of bytes, number of rows, first time and last time."""
    streams = [encode_times(page) for page in times]
    ends = [np.array([page[at] for page in times], np.int64) for at in (0, -1)]
    return b"".join(streams), lengths(streams), lengths(times), ends[0], ends[1]


def lengths(parts: Sequence[Sized]) -> Int64Array:
    return np.array([len(part) for part in parts], np.int64)


FIRST = np.arange(1_000, dtype=np.int64) * 7
LATER = np.array([7_000, 7_001, 9_000], np.int64)


def test_times_of_pages_come_one_after_the_other() -> None:
    assert np.array_equal(np.concatenate((FIRST, LATER)), decode_times(*pages(FIRST, LATER)))
    assert np.array_equal(np.concatenate((LATER, FIRST + 10_000)), decode_times(*pages(LATER, FIRST + 10_000)))
    assert len(decode_times(*pages())) == 0


def test_the_same_pages_give_the_same_array_which_nobody_may_change() -> None:
    times = decode_times(*pages(FIRST, LATER))
    assert times is decode_times(*pages(FIRST, LATER))
    assert times is not decode_times(*pages(FIRST))
    with pytest.raises(ValueError, match="read-only"):
        times[0] = 1


def test_bytes_that_are_cut_elsewhere_are_other_times() -> None:
    """Equal bytes do not mean equal times: the pages may have different numbers of rows."""
    stream, size, count, first, last = pages(np.array([1, 2, 3, 4], np.int64))
    for _ in range(2):
        assert [1, 2, 3, 4] == decode_times(stream, size, count, first, last).tolist()
        assert [1, 2] == decode_times(stream, size, count // 2, first, last - 2).tolist()


def test_times_that_are_known_are_refused_where_statistics_say_otherwise() -> None:
    stream, sizes, counts, firsts, lasts = pages(FIRST, LATER)
    for _ in range(2):
        assert len(FIRST) + len(LATER) == len(decode_times(stream, sizes, counts, firsts, lasts))
        for wrong in ((firsts + 1, lasts), (firsts, lasts + 1)):
            with pytest.raises(DecodeError, match="statistics"):
                decode_times(stream, sizes, counts, *wrong)


def test_damaged_times_are_refused_each_time() -> None:
    stream, _, *told = pages(LATER)
    for _ in range(2):
        with pytest.raises(DecodeError, match="damaged"):
            decode_times(stream[:10], lengths([stream[:10]]), *told)
        with pytest.raises(DecodeError, match="not ascending"):
            decode_times(*pages(LATER, FIRST))


def test_what_is_kept_is_bounded() -> None:
    runs = [FIRST + start for start in range(2 * shared_timestamps._BYTES_MAX // FIRST.nbytes)]
    first = decode_times(*pages(runs[0]))
    assert first is decode_times(*pages(runs[0]))
    for run in runs[1:]:
        decode_times(*pages(run))
    assert first is not decode_times(*pages(runs[0]))
    large = np.arange(shared_timestamps._ROWS_MAX + 1, dtype=np.int64)
    assert decode_times(*pages(large)) is not decode_times(*pages(large))


def test_a_series_of_many_runs_is_known_when_the_next_one_is_read() -> None:
    """The series consists of runs that are each as long as a block."""
    runs = [np.arange(start << 17, (start + 1) << 17, dtype=np.int64) * 1_000 for start in range(24)]
    stored = [pages(run) for run in runs]
    first = [decode_times(*run) for run in stored]
    assert all(times is decode_times(*run) for times, run in zip(first, stored, strict=True))
