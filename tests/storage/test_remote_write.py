"""Kernels for Prometheus' messages: for messages and other bytes, they agree with their twins and generated classes."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from saros_storage.kernels.remote_write import (
    FIRST,
    HISTOGRAMS,
    KEY_END,
    KEY_START,
    SAMPLE_BYTES_MAX,
    SERIES_WORDS,
    encode_samples,
    scan_write,
)
from saros_wire.generated.prometheus_pb2 import Label, Sample, TimeSeries, WriteRequest

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
LABELS = st.builds(Label, name=st.text(max_size=4), value=st.text(max_size=9))
SAMPLES = st.builds(Sample, value=st.floats(), timestamp=INT64)
SERIES = st.builds(
    TimeSeries,
    labels=st.lists(LABELS, max_size=3),
    samples=st.lists(SAMPLES, max_size=3),
    histograms=st.lists(st.binary(max_size=3), max_size=1),
)
REQUESTS = st.builds(WriteRequest, timeseries=st.lists(SERIES, max_size=4))

Scanned = tuple[bool, list[list[int]], list[int], bytes]


def scan(run: object, raw: bytes) -> Scanned:
    data, counts, none = np.frombuffer(raw, np.uint8), np.zeros(2, np.int64), np.empty(0, np.int64)
    if not run(data, counts, none, none, none.view(np.uint8)):  # type: ignore[operator]
        return False, [], [], b""
    series, times = np.empty(counts[0] * SERIES_WORDS, np.int64), np.empty(counts[1], np.int64)
    values = np.empty(counts[1] * 8, np.uint8)
    assert run(data, counts, series, times, values)  # type: ignore[operator]
    return True, series.reshape(-1, SERIES_WORDS).tolist(), times.tolist(), values.tobytes()


@given(REQUESTS)
def test_a_message_is_what_the_generated_class_says(request: WriteRequest) -> None:
    raw = request.SerializeToString()
    for run in (scan_write, scan_write.twin):
        is_right, series, times, values = scan(run, raw)
        assert is_right
        samples = [sample for one in request.timeseries for sample in one.samples]
        assert [sample.timestamp for sample in samples] == times
        assert b"".join(struct.pack("<d", sample.value) for sample in samples) == values
        firsts = np.cumsum([0, *(len(one.samples) for one in request.timeseries)])[:-1]
        assert firsts.tolist() == [record[FIRST] for record in series]
        assert [len(one.histograms) for one in request.timeseries] == [record[HISTOGRAMS] for record in series]
        labels = [TimeSeries.FromString(raw[r[KEY_START] : r[KEY_END]]).labels for r in series]
        assert [list(one.labels) for one in request.timeseries] == [list(found) for found in labels]


FIELDS = st.sampled_from([b"\x0a", b"\x12", b"\x22", b"\x09", b"\x10", b"\x0d", b"\x0b", b"\x80", b"\x8a\x00", b"\x00"])


@given(st.lists(st.one_of(FIELDS, st.binary(max_size=3), st.integers(0, 12).map(lambda n: bytes([n]))), max_size=40))
@example([b"\x0a\x02\x12\x00"])
@example([b"\x0a\x0d\x12\x0b\x10", b"\xff" * 9, b"\x01"])
@example([b"\x0a\x0d\x12\x0b\x10", b"\xff" * 9, b"\x7f"])
@example([b"\x0a\x0b\x12\x09\x09", b"\x01" * 8])
@example([b"\x0a", b"\xff" * 9, b"\x01"])
@example([b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"])
@example([b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"])
@settings(max_examples=400)
def test_any_bytes_are_what_the_twin_says(parts: list[bytes]) -> None:
    raw = b"".join(parts)
    assert scan(scan_write.twin, raw) == scan(scan_write, raw)


@given(REQUESTS, st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), min_size=1, max_size=3))
def test_damaged_messages_are_what_the_twin_says(request: WriteRequest, changes: list[tuple[int, int]]) -> None:
    raw = bytearray(request.SerializeToString() or b"\x0a\x00")
    for place, byte in changes:
        raw[place % len(raw)] = byte
    assert scan(scan_write.twin, bytes(raw)) == scan(scan_write, bytes(raw))


def test_labels_after_samples_are_found() -> None:
    label, sample = Label(name="a", value="b"), Sample(value=1, timestamp=2)
    parts = [TimeSeries(labels=[label]), TimeSeries(samples=[sample]), TimeSeries(labels=[label])]
    one = b"".join(part.SerializeToString() for part in parts)
    raw = b"\x0a" + bytes([len(one)]) + one
    _, series, times, _ = scan(scan_write, raw)
    assert one == raw[series[0][KEY_START] : series[0][KEY_END]]
    assert [2] == times


@given(st.lists(SAMPLES, max_size=5))
@example([Sample(value=0.0, timestamp=0), Sample(value=-0.0, timestamp=-1)])
def test_encoded_samples_are_read_as_they_were(samples: list[Sample]) -> None:
    times = np.array([sample.timestamp for sample in samples], np.int64)
    values = np.array([sample.value for sample in samples], np.float64).view(np.uint8)
    for run in (encode_samples, encode_samples.twin):
        out = np.empty(SAMPLE_BYTES_MAX * len(samples), np.uint8)
        found = TimeSeries.FromString(out[: run(times, values, out)].tobytes()).samples
        assert times.tolist() == [sample.timestamp for sample in found]
        assert values.tobytes() == np.array([sample.value for sample in found], np.float64).tobytes()
