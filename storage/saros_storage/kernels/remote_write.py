"""Kernels over Prometheus's protobuf messages: they decode samples of remote write and encode samples of remote read.

    WriteRequest   series (1)*
    series         label (1)*, sample (2)*, histogram (4)*    in any order, usually labels first
    sample         value (1) f64, timestamp (2) varint        0 if missing

Fields with other numbers or wire types are skipped, as in protobuf parsers. The input may be malformed: kernels never
read beyond its end.
"""

from __future__ import annotations

import struct

import numpy as np

from saros_storage.base.types import ByteArray, Int64Array
from saros_storage.kernels.jit import kernel, part
from saros_storage.kernels.unaligned import copy_8

#: The record of a series: start of its first label, end of its last label, its first sample, number of histograms.
KEY_START, KEY_END, FIRST, HISTOGRAMS = range(4)
SERIES_WORDS = 4
#: Indices of the counts that `scan_write` fills in.
SERIES, SAMPLES = range(2)
#: Maximum bytes of an encoded sample.
SAMPLE_BYTES_MAX = 22

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
#: Tags: the number of a field and its wire type.
_SERIES_TAG = _LABEL_TAG = 1 << 3 | _LENGTH
_SAMPLE_TAG = 2 << 3 | _LENGTH
_HISTOGRAM_TAG = 4 << 3 | _LENGTH
_VALUE_TAG, _TIME_TAG = 1 << 3 | _EIGHT_BYTES, 2 << 3 | _VARINT
_VARINT_BYTES_MAX = 10


# ---------------------------------------------------------------------------------------------- write, compiled


@part
def _varint(data: ByteArray, at: int, end: int) -> tuple[np.uint64, int]:
    """Return a number and its end; the end is -1 if the varint is not terminated."""
    value = np.uint64(0)
    for place in range(_VARINT_BYTES_MAX):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= np.uint64(byte & 0x7F) << np.uint64(7 * place)
        if byte < 0x80:
            return value, at
    return value, -1


@part
def _field(data: ByteArray, at: int, end: int) -> tuple[np.int64, int, int]:
    """Return the tag of a field, and the start and end of its value; the end is -1 if the field is malformed."""
    tag, start = _varint(data, at, end)
    if start < 0 or tag < 8 or tag > 0xFFFF_FFFF:
        return np.int64(0), -1, -1
    stop = -1
    wire_type = np.int64(tag & np.uint64(7))
    if wire_type == _VARINT:
        _, stop = _varint(data, start, end)
    elif wire_type == _EIGHT_BYTES:
        stop = start + 8
    elif wire_type == _FOUR_BYTES:
        stop = start + 4
    elif wire_type == _LENGTH:
        size, start = _varint(data, start, end)
        if start >= 0 and size <= np.uint64(end - start):
            stop = start + np.int64(size)
    return np.int64(tag), start, stop if stop <= end else -1


@part
def _sample(data: ByteArray, at: int, end: int, place: int, times: Int64Array, values: ByteArray) -> bool:
    """Store a sample if there is room; return whether it is well-formed."""
    has_place = place < len(times)
    if has_place:
        times[place] = 0
        values[8 * place : 8 * place + 8] = 0
    while at < end:
        tag, start, at = _field(data, at, end)
        if at < 0:
            return False
        if has_place and tag == _VALUE_TAG:
            copy_8(values, 8 * place, data, start)
        elif has_place and tag == _TIME_TAG:
            times[place] = np.int64(_varint(data, start, at)[0])
    return True


@part
def _series(
    data: ByteArray, at: int, end: int, counts: Int64Array, series: Int64Array, times: Int64Array, values: ByteArray
) -> bool:
    """Store the record and the samples of a series as far as there is room; return whether it is well-formed."""
    first_label, last_label, histograms = end, end, 0
    first_sample = counts[SAMPLES]
    while at < end:
        began = at
        tag, start, at = _field(data, at, end)
        if at < 0:
            return False
        if tag == _LABEL_TAG:
            first_label, last_label = min(first_label, began), at
        elif tag == _SAMPLE_TAG:
            if not _sample(data, start, at, counts[SAMPLES], times, values):
                return False
            counts[SAMPLES] += 1
        elif tag == _HISTOGRAM_TAG:
            histograms += 1
    place = SERIES_WORDS * counts[SERIES]
    if place < len(series):
        series[place + KEY_START], series[place + KEY_END] = first_label, last_label
        series[place + FIRST], series[place + HISTOGRAMS] = first_sample, histograms
    counts[SERIES] += 1
    return True


# ---------------------------------------------------------------------------------------------- write, plain


def _varint_plain(raw: bytes, at: int, end: int) -> tuple[int, int]:
    stop = next((i for i in range(at, min(end, at + _VARINT_BYTES_MAX)) if raw[i] < 0x80), -2) + 1
    value = sum((raw[i] & 0x7F) << 7 * (i - at) for i in range(at, stop))
    return value & (1 << 64) - 1, stop


def _fields_plain(raw: bytes, at: int, end: int) -> list[tuple[int, int, int, int]]:
    """Return (start, tag, start of the value, end) of each field. Raises ValueError."""
    found = []
    while at < end:
        began = at
        tag, start = _varint_plain(raw, at, end)
        if start < 0 or not 8 <= tag < 1 << 32:
            raise ValueError
        match tag & 7:
            case 0:
                at = _varint_plain(raw, start, end)[1]
            case 1 | 5 as wire_type:
                at = start + (8 if wire_type == _EIGHT_BYTES else 4)
            case 2:
                size, start = _varint_plain(raw, start, end)
                at = start + size if start >= 0 else -1
            case _:
                raise ValueError
        if not 0 <= at <= end:
            raise ValueError
        found.append((began, tag, start, at))
    return found


def _sample_plain(raw: bytes, at: int, end: int) -> tuple[int, bytes]:
    time, value = 0, bytes(8)
    for _, tag, start, stop in _fields_plain(raw, at, end):
        if tag == _VALUE_TAG:
            value = raw[start:stop]
        elif tag == _TIME_TAG:
            time = _varint_plain(raw, start, stop)[0]
    return time, value


def _scan_write_plain(
    data: ByteArray, counts: Int64Array, series: Int64Array, times: Int64Array, values: ByteArray
) -> bool:
    raw = data.tobytes()
    records: list[int] = []
    samples: list[tuple[int, bytes]] = []
    try:
        for _, tag, start, stop in _fields_plain(raw, 0, len(raw)):
            if tag == _SERIES_TAG:
                fields = _fields_plain(raw, start, stop)
                labels = [(began, end) for began, tag, _, end in fields if tag == _LABEL_TAG] or [(stop, stop)]
                histograms = sum(tag == _HISTOGRAM_TAG for _, tag, _, _ in fields)
                records += [labels[0][0], labels[-1][1], len(samples), histograms]
                samples += [_sample_plain(raw, begin, end) for _, tag, begin, end in fields if tag == _SAMPLE_TAG]
    except ValueError:
        return False
    counts[SERIES], counts[SAMPLES] = len(records) // SERIES_WORDS, len(samples)
    series[:] = np.array(records[: len(series)], np.int64)
    kept = samples[: len(times)]
    times[:] = np.array([time for time, _ in kept], np.uint64).view(np.int64)
    values[:] = np.frombuffer(b"".join(value for _, value in kept), np.uint8)
    return True


@kernel("b1(u8r[], i64[], i64[], i64[], u8[])", twin=_scan_write_plain)
def scan_write(data: ByteArray, counts: Int64Array, series: Int64Array, times: Int64Array, values: ByteArray) -> bool:
    """Find the series and samples of a WriteRequest; return whether it is well-formed.

    `counts` receives the numbers of series and samples. As far as there is room, `series` receives the records of
    series, `times` the times of samples in ms, and `values` the values of samples, each 8 bytes, little-endian.
    """
    counts[SERIES], counts[SAMPLES] = 0, 0
    at = 0
    while at < len(data):
        tag, start, at = _field(data, at, len(data))
        if at < 0 or (tag == _SERIES_TAG and not _series(data, start, at, counts, series, times, values)):
            return False
    return True


# ---------------------------------------------------------------------------------------------- read


def _varint_bytes(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _encode_samples_plain(times: Int64Array, values: ByteArray, out: ByteArray) -> int:
    parts = []
    for time, (value,) in zip(times.tolist(), struct.iter_unpack("8s", values.tobytes()), strict=True):
        sample = bytes([_VALUE_TAG]) + value + bytes([_TIME_TAG]) + _varint_bytes(time & (1 << 64) - 1)
        parts.append(bytes([_SAMPLE_TAG, len(sample)]) + sample)
    found = b"".join(parts)
    out[: len(found)] = np.frombuffer(found, np.uint8)
    return len(found)


@kernel("i64(i64r[], u8r[], u8[])", twin=_encode_samples_plain)
def encode_samples(times: Int64Array, values: ByteArray, out: ByteArray) -> int:
    """Encode samples as fields of a series; times are in ms, values have 8 bytes each, little-endian.

    `out` has room for SAMPLE_BYTES_MAX bytes per sample. Returns the number of bytes.
    """
    at = 0
    for i in range(len(times)):
        out[at], out[at + 2] = _SAMPLE_TAG, _VALUE_TAG
        copy_8(out, at + 3, values, 8 * i)
        out[at + 11] = _TIME_TAG
        end = at + 12
        left = np.uint64(times[i])
        while left >= np.uint64(0x80):
            out[end] = np.uint8(left & np.uint64(0x7F)) | np.uint8(0x80)
            left >>= np.uint64(7)
            end += 1
        out[end] = np.uint8(left)
        end += 1
        out[at + 1] = end - at - 2
        at = end
    return at
