"""RLE: TsFile's hybrid of repeated values and bit-packed groups of eight, compatible with Apache's libraries.

    run      uvar h, h even:  h >> 1 times one value of ceil(width / 8) bytes (32-bit: little-, 64-bit: big-endian)
             uvar h, h odd:   h >> 1 groups | u8 values in the last group | groups * width bytes, high bit first

The encoder writes a repeated run for eight or more equal values, and at most 63 groups in a packed run.
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.types import ByteArray, Int64Array
from saros_storage.kernels.jit import kernel

U = np.uint64
#: Minimum number of equal values for which a repeated run saves space; also the number of values in a packed group.
GROUP = 8
_PACKED_MAX = 63 * GROUP
#: Maximum length of a repeated run that Apache's readers accept; longer runs are split.
_REPEAT_MAX = 32_767


def _decode_twin(data: ByteArray, width: int, big_endian: int, out: Int64Array) -> int:
    raw, position, filled, count = data.tobytes(), 0, 0, len(out)
    size = (width + 7) // 8
    while filled < count:
        head, shift = 0, 0
        while True:
            if position >= len(raw) or shift > 28:
                return -1
            byte = raw[position]
            head |= (byte & 127) << shift
            position += 1
            shift += 7
            if byte < 128:
                break
        if head % 2 == 0:
            if head == 0 or position + size > len(raw):
                return -1
            value = int.from_bytes(raw[position : position + size], "big" if big_endian else "little")
            wanted = min(head // 2, count - filled)
            out[filled : filled + wanted] = (value + 2**63) % 2**64 - 2**63
            position += size
        else:
            groups = head // 2
            if groups == 0 or position + 1 + groups * width > len(raw) or not 1 <= raw[position] <= GROUP:
                return -1
            wanted = min((groups - 1) * GROUP + raw[position], count - filled)
            packed = int.from_bytes(raw[position + 1 : position + 1 + groups * width], "big")
            total = groups * width * 8
            for i in range(wanted):
                value = (packed >> (total - (i + 1) * width)) & ((1 << width) - 1)
                out[filled + i] = (value + 2**63) % 2**64 - 2**63
            position += 1 + groups * width
        filled += wanted
    return position


@kernel("i64(u8r[], i64, i64, i64[])", twin=_decode_twin)
def rle_decode(data: ByteArray, width: int, big_endian: int, out: Int64Array) -> int:
    """Decode patterns of `width` bits (1 to 64) until `out` is full.

    Returns the number of bytes read, or -1 if the data is damaged.
    """
    one, eight = U(1), U(8)
    position, end = U(0), U(len(data))
    wide, size = U(width), U((width + 7) // 8)
    filled = 0
    while filled < len(out):
        head, shift = U(0), U(0)
        while True:
            if position >= end or shift > U(28):
                return -1
            byte = U(data[position])
            head |= (byte & U(127)) << shift
            position += one
            shift += U(7)
            if byte < U(128):
                break
        length = head >> one
        if length == U(0):
            return -1
        if head & one == U(0):
            if size > end - position:
                return -1
            value = U(0)
            for i in range(size):
                at = i if big_endian != 0 else size - one - i
                value = (value << eight) | U(data[position + at])
            position += size
            stop = filled + min(int(np.int64(length)), len(out) - filled)
            out[filled:stop] = np.int64(value)
        else:
            if position >= end or length * wide > end - position - one or not 1 <= data[position] <= GROUP:
                return -1
            values = int(np.int64(length - one)) * GROUP + int(np.int64(data[position]))
            stop = filled + min(values, len(out) - filled)
            position += one
            bit = position << U(3)
            for i in range(filled, stop):
                value = U(0)
                missing = wide
                while missing > U(0):
                    room = eight - (bit & U(7))
                    taken = min(room, missing)
                    part = (U(data[bit >> U(3)]) >> (room - taken)) & ((one << taken) - one)
                    value = (value << taken) | part
                    bit += taken
                    missing -= taken
                out[i] = np.int64(value)
            position += length * wide
        filled = stop
    return int(np.int64(position))


def rle_bytes_max(count: int, width: int) -> int:
    """Return the maximum size of `rle_encode`'s output: every 8 values may need a packed group and a repeated run."""
    return (count // GROUP + 2) * (width + 16)


def _encode_twin(values: Int64Array, width: int, out: ByteArray) -> int:
    stream, start = b"", 0
    pending: list[int] = []
    plain = [v & ((1 << width) - 1) for v in values.tolist()]

    def uvar(value: int) -> bytes:
        return bytes([value & 127 | 128]) + uvar(value >> 7) if value >= 128 else bytes([value])

    def packed(part: list[int]) -> bytes:
        groups = -(-len(part) // GROUP)
        bits = "".join(format(v, f"0{width}b") for v in part).ljust(groups * width * 8, "0")
        head = uvar(groups << 1 | 1) + bytes([(len(part) - 1) % GROUP + 1])
        return head + int(bits, 2).to_bytes(groups * width, "big")

    while start < len(plain):
        stop = start
        while stop < len(plain) and plain[stop] == plain[start] and stop - start < _REPEAT_MAX:
            stop += 1
        if stop - start >= GROUP:
            if pending:
                stream, pending = stream + packed(pending), []
            stream += uvar((stop - start) << 1) + plain[start].to_bytes((width + 7) // 8, "little")
            start = stop
        else:
            pending.append(plain[start])
            start += 1
            if len(pending) == _PACKED_MAX:
                stream, pending = stream + packed(pending), []
    if pending:
        stream += packed(pending)
    out[: len(stream)] = np.frombuffer(stream, np.uint8)
    return len(stream)


@kernel("i64(i64r[], i64, u8[])", twin=_encode_twin)
def rle_encode(values: Int64Array, width: int, out: ByteArray) -> int:
    """Encode patterns of `width` bits (1 to 32) as runs into `out`, which consists of `rle_bytes_max` zero bytes.

    Returns the number of bytes.
    """
    position = 0
    count = len(values)
    start = 0
    first_pending = 0
    while start < count or first_pending < start:
        stop = start
        while stop < count and values[stop] == values[start] and stop - start < _REPEAT_MAX:
            stop += 1
        repeated = stop - start >= GROUP
        if not repeated and start < count:
            start += 1
        pending = start - first_pending
        if pending > 0 and (repeated or start >= count or pending == _PACKED_MAX):
            groups = (pending + GROUP - 1) // GROUP
            head = (groups << 1) | 1
            if head >= 128:
                out[position] = np.uint8((head & 127) | 128)
                position += 1
                head >>= 7
            out[position] = np.uint8(head)
            out[position + 1] = np.uint8((pending - 1) % GROUP + 1)
            position += 2
            building = np.int64(0)
            used = 0
            at = position
            for i in range(first_pending, start):
                building = (building << width) | values[i]
                used += width
                while used >= 8:
                    used -= 8
                    out[at] = np.uint8((building >> used) & 255)
                    at += 1
                building &= 255
            if used > 0:
                out[at] = np.uint8((building << (8 - used)) & 255)
            position += groups * width
            first_pending = start
        if repeated:
            head = (stop - start) << 1
            while head >= 128:
                out[position] = np.uint8((head & 127) | 128)
                position += 1
                head >>= 7
            out[position] = np.uint8(head)
            position += 1
            for i in range((width + 7) // 8):
                out[position] = np.uint8((values[start] >> (8 * i)) & 255)
                position += 1
            start = stop
            first_pending = stop
    return position
