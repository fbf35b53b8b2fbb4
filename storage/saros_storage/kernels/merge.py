"""Union of sorted time arrays: the basis of merges of overlapping sources and of joins by time.

    a        10 20    40            times        10 20 30 40
    b           20 30               positions of a   0  1     3
                                    positions of b      1  2

Every input is strictly increasing, and so is the union. Merges and joins need only the positions of each source's rows
in the union. A merge by rank writes the values of each source to their positions, starting with the lowest rank. A join
writes the values of each source to their positions in a separate column.

Two arrays are united in one pass. Three or more arrays are united in pairs, the shortest first (as in a Huffman tree),
so that uniting a long array with many short ones takes hardly longer than copying the long one. If two arrays are
equal, or one ends before the other begins, no pass is needed. If one array is far shorter than the other, as with late
rows, the long array is copied in runs between the times of the short one.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from saros_storage.base.types import Int64Array
from saros_storage.kernels.jit import kernel


def _rises_plain(times: Int64Array) -> bool:
    return bool((times[1:] > times[:-1]).all())


@kernel("b1(i64r[])", twin=_rises_plain)
def rises(times: Int64Array) -> bool:
    """Return whether each time is later than the one before it."""
    falls = 0
    for i in range(1, len(times)):
        falls += times[i] <= times[i - 1]
    return falls == 0


def _union_two_plain(a: Int64Array, b: Int64Array, times: Int64Array, at_a: Int64Array, at_b: Int64Array) -> int:
    both = np.concatenate((a, b))
    both.sort(kind="stable")
    fresh = np.ones(len(both), np.bool_)
    fresh[1:] = both[1:] != both[:-1]
    union = both[fresh]
    times[: len(union)] = union
    at_a[:] = np.searchsorted(union, a)
    at_b[:] = np.searchsorted(union, b)
    return len(union)


@kernel("i64(i64r[], i64r[], i64[], i64[], i64[])", twin=_union_two_plain)
def union_two(a: Int64Array, b: Int64Array, times: Int64Array, at_a: Int64Array, at_b: Int64Array) -> int:
    """Unite two strictly increasing arrays into `times` (of length len(a) + len(b)); return the number of times."""
    i = 0
    j = 0
    n = 0
    # The loop does not branch on which value is smaller: the processor could not predict such a branch. A position
    # written too early is overwritten in a later step.
    while i < len(a) and j < len(b):
        x = a[i]
        y = b[j]
        times[n] = min(x, y)
        at_a[i] = n
        at_b[j] = n
        i += x <= y
        j += y <= x
        n += 1
    while i < len(a):
        times[n] = a[i]
        at_a[i] = n
        i += 1
        n += 1
    while j < len(b):
        times[n] = b[j]
        at_b[j] = n
        j += 1
        n += 1
    return n


@kernel("i64(i64r[], i64r[], i64[], i64[], i64[])", twin=_union_two_plain)
def union_few(a: Int64Array, b: Int64Array, times: Int64Array, at_a: Int64Array, at_b: Int64Array) -> int:
    """Unite two arrays like `union_two`, but fast if `b` is far shorter than `a`."""
    i = 0
    n = 0
    for j in range(len(b)):
        y = b[j]
        # Count the elements of `a` before y by exponential search: double the step until it overshoots, then bisect.
        step = 1
        while i + step <= len(a) and a[i + step - 1] < y:
            step *= 2
        low = i + step // 2
        high = min(i + step - 1, len(a))
        while low < high:
            middle = (low + high) // 2
            if a[middle] < y:
                low = middle + 1
            else:
                high = middle
        for k in range(low - i):
            times[n + k] = a[i + k]
            at_a[i + k] = n + k
        n += low - i
        i = low
        times[n] = y
        at_b[j] = n
        if i < len(a) and a[i] == y:
            at_a[i] = n
            i += 1
        n += 1
    for k in range(len(a) - i):
        times[n + k] = a[i + k]
        at_a[i + k] = n + k
    return n + len(a) - i


#: Ratio of lengths from which `union_few` is faster than `union_two`.
_FEW = 32

#: The times of a union, and for each input its number and the positions of its rows (None if the input equals the
#: union).
_Union: TypeAlias = tuple[Int64Array, list[tuple[int, Int64Array | None]]]


def union_times(arrays: Sequence[Int64Array]) -> tuple[Int64Array, list[Int64Array]]:
    """Return the union of one or more strictly increasing, contiguous arrays, and the positions of each array's rows.

    The results may share memory with the inputs and with each other, so they must not be modified.
    """
    waiting: list[tuple[int, int, _Union]] = [(len(a), n, (a, [(n, None)])) for n, a in enumerate(arrays)]
    heapq.heapify(waiting)
    while len(waiting) > 1:
        _, number, least = heapq.heappop(waiting)
        joined = _join(least, waiting[0][2])
        heapq.heapreplace(waiting, (len(joined[0]), number, joined))
    times, members = waiting[0][2]
    everywhere: Int64Array | None = None
    found: list[Int64Array] = [times] * len(arrays)
    for number, at in members:
        if at is None:
            everywhere = np.arange(len(times), dtype=np.int64) if everywhere is None else everywhere
            at = everywhere  # noqa: PLW2901
        found[number] = at
    return times, found


def _join(left: _Union, right: _Union) -> _Union:
    times, at_left, at_right = _unite(left[0], right[0])
    members = [(number, _compose(at, at_left)) for number, at in left[1]]
    members += [(number, _compose(at, at_right)) for number, at in right[1]]
    return times, members


def _compose(inner: Int64Array | None, outer: Int64Array | None) -> Int64Array | None:
    """Map positions `inner` in an array to a union in which the array's rows have the positions `outer`.

    None stands for the positions 0, 1, 2 and so on.
    """
    if outer is None:
        return inner
    return outer if inner is None else outer[inner]


def _unite(a: Int64Array, b: Int64Array) -> tuple[Int64Array, Int64Array | None, Int64Array | None]:
    if len(a) == len(b) and (a is b or np.array_equal(a, b)):
        return a, None, None
    if len(a) == 0 or len(b) == 0:
        empty = np.empty(0, np.int64)
        return (b, empty, None) if len(a) == 0 else (a, None, empty)
    total = len(a) + len(b)
    if a[-1] < b[0]:
        return np.concatenate((a, b)), np.arange(len(a), dtype=np.int64), np.arange(len(a), total, dtype=np.int64)
    if b[-1] < a[0]:
        return np.concatenate((b, a)), np.arange(len(b), total, dtype=np.int64), np.arange(len(b), dtype=np.int64)
    times = np.empty(total, np.int64)
    at_a = np.empty(len(a), np.int64)
    at_b = np.empty(len(b), np.int64)
    if len(a) >= len(b) * _FEW:
        count = union_few(a, b, times, at_a, at_b)
    elif len(b) >= len(a) * _FEW:
        count = union_few(b, a, times, at_b, at_a)
    else:
        count = union_two(a, b, times, at_a, at_b)
    # If one array contains all times of the other array, it is the union.
    if count == len(a):
        return a, None, at_b
    if count == len(b):
        return b, at_a, None
    return times[:count], at_a, at_b
