"""A kernel that finds the smallest and the largest of many byte strings."""

from __future__ import annotations

from saros_storage.base.types import ByteArray, Int32Array, Int64Array
from saros_storage.kernels.jit import kernel


def _text_extremes_plain(offsets: Int32Array, data: ByteArray, out: Int64Array) -> None:
    values = [data[offsets[i] : offsets[i + 1]].tobytes() for i in range(len(offsets) - 1)]
    out[0] = values.index(min(values))
    out[1] = values.index(max(values))


@kernel("void(i32r[], u8r[], i64[])", twin=_text_extremes_plain)
def text_extremes(offsets: Int32Array, data: ByteArray, out: Int64Array) -> None:
    """Store in `out` the first positions of the smallest and of the largest value in byte order.

    There is at least one value.
    """
    for side in range(2):
        best = 0
        for i in range(1, len(offsets) - 1):
            a, b = offsets[i], offsets[best]
            size_a, size_b = offsets[i + 1] - a, offsets[best + 1] - b
            shared = min(size_a, size_b)
            order = size_a - size_b
            for k in range(shared):
                if data[a + k] != data[b + k]:
                    order = 1 if data[a + k] > data[b + k] else -1
                    break
            if (side == 0 and order < 0) or (side == 1 and order > 0):
                best = i
        out[side] = best
