"""A tablet of many devices gives the same frames, log entries and rows as a separate tablet for each device."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from storage.store_crashes import enumerate_crashes
from storage.store_model import flush, write_devices
from storage.store_opening import OPTIONS

from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import UserMistake
from saros_storage.base.tablet import MultiTablet, Tablet, tablets_of
from saros_storage.base.types import DEFAULT_COMPRESSOR, NUMPY_DTYPE, DataType, Encoding
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import LocalDisk
from saros_storage.mutation import multi_tablet_codec
from saros_storage.mutation.multi_tablet_codec import frames_of_devices
from saros_storage.mutation.mutation import MUTATION, decode_mutation
from saros_storage.mutation.tablet_codec import TabletFrame, encode_tablet
from saros_storage.mutation.tablet_validation import frames_of
from saros_storage.schema import AlterType, CreateDatabase, CreateSeries, SeriesSchema
from saros_storage.store import Store

FIXED = sorted(NUMPY_DTYPE)
SERIES = (SeriesSchema("s", DataType.DOUBLE, Encoding.PLAIN, DEFAULT_COMPRESSOR),)


@st.composite
def columns(draw: st.DrawFn, type_: DataType, rows: int) -> Column:
    if type_.is_text:
        values = draw(st.lists(st.none() | st.text(max_size=3), min_size=rows, max_size=rows))
        return Column.of(type_, values)
    seed = np.random.default_rng(draw(st.integers(0, 99)))
    numbers = seed.integers(0, 2, rows).astype(NUMPY_DTYPE[type_])
    return Column(type_, numbers, draw(st.none() | st.just(seed.random(rows) < 0.5)))


@st.composite
def multi_tablets(draw: st.DrawFn) -> MultiTablet:
    nodes = draw(st.lists(st.sampled_from(["d", "é", "ee", "long_name"]), min_size=1, max_size=30))
    counts = draw(st.lists(st.integers(1, 3), min_size=len(nodes), max_size=len(nodes)))
    if draw(st.booleans()):
        counts = [2] * len(nodes)
    rows = sum(counts)
    types = draw(st.lists(st.sampled_from(FIXED), min_size=1, max_size=4)) + draw(
        st.sampled_from([[], [DataType.TEXT]])
    )
    times = np.array(draw(st.lists(st.integers(-3, 3), min_size=rows, max_size=rows)), np.int64)
    return MultiTablet(
        [f"root.a.{node}{number % 10}" for number, node in enumerate(nodes)],
        counts,
        tuple(f"`s {number}`" for number in range(len(types))),
        times,
        tuple(draw(columns(type_, rows)) for type_ in types),
        draw(st.booleans()),
    )


@pytest.mark.slow
@given(multi_tablets())
@settings(max_examples=80)
def test_frames_are_those_of_the_tablets_byte_for_byte(tablet: MultiTablet) -> None:
    expected = [TabletFrame.of_bytes(encode_tablet(one)) for one in tablet.tablets()]
    found = frames_of_devices(tablet)
    assert [frame.frame for frame in expected] == [bytes(frame.frame) for frame in found]
    assert [properties(frame) for frame in expected] == [properties(frame) for frame in found]


def properties(frame: TabletFrame) -> tuple[object, ...]:
    return frame.head, frame.rows, frame.ordered, frame.span, frame.size


def of_numbers(devices: list[str], rows: int = 2, names: tuple[str, ...] = ("s",)) -> MultiTablet:
    numbers = np.arange(len(devices) * rows)
    column = Column(DataType.DOUBLE, numbers / 2)
    return MultiTablet(devices, [rows] * len(devices), names, numbers, (column,) * len(names))


def test_large_frames_of_one_size_share_memory_which_nobody_can_change() -> None:
    tablet = of_numbers([f"root.a.d{n}" for n in range(9)], rows=200)
    frames = [frame.frame for frame in frames_of_devices(tablet)]
    assert all(isinstance(frame, memoryview) and frame.readonly for frame in frames)
    ends = [np.frombuffer(frame, np.uint8).__array_interface__["data"][0] + len(frame) for frame in frames]
    assert {len(frames[0])} == {after - before for before, after in pairwise(ends)}
    assert {0} == {(end - len(frames[0])) % 8 for end in ends}


def test_a_small_frame_keeps_only_its_own_bytes() -> None:
    frames = [frame.frame for frame in frames_of_devices(of_numbers([f"root.a.d{n}" for n in range(9)], rows=1))]
    assert all(isinstance(frame, bytes) for frame in frames)
    assert {0} == {np.frombuffer(frame, np.uint8).__array_interface__["data"][0] % 8 for frame in frames}


@pytest.mark.parametrize("together_min", [1, 1_000])
def test_what_one_device_refuses_is_refused(monkeypatch: pytest.MonkeyPatch, together_min: int) -> None:
    monkeypatch.setattr(multi_tablet_codec, "_TOGETHER_MIN", together_min)
    for devices, names, code in (
        (["root.a.d", "root.a." + "d" * 9_000], ("s",), 509),
        (["root.a.d"], ("s" * 9_000,), 509),
        (["root.a.d"], tuple(f"s{n}" for n in range(65_536)), 2006),
    ):
        with pytest.raises(UserMistake) as caught:
            frames_of_devices(of_numbers(devices, 1, names))
        assert caught.value.code == code


def test_a_time_out_of_range_is_refused_with_its_device() -> None:
    tablet = of_numbers([f"root.a.d{n}" for n in range(9)])
    tablet.times[7] = 2**63 - 1
    with pytest.raises(UserMistake, match=r"time 9223372036854775807 of root\.a\.d3 is out of range") as caught:
        frames_of([tablet], joined=True)
    assert 2007 == caught.value.code


def entries_of(patch: pytest.MonkeyPatch, folder: Path, tablets: Sequence[Tablet | MultiTablet]) -> list[bytes]:
    """Write tablets twice, the first time to new series; return the entries of the log."""
    store = Store.open(str(folder), StoreOptions(durability="os"), LocalDisk(), SystemClock())
    append = store._log.append
    entries: list[bytes] = []

    def noting(group: int, kind: int, payload: Sequence[bytes | memoryview]) -> tuple[int, int]:
        if kind == MUTATION:
            entries.append(b"".join(payload))
        return append(group, kind, payload)

    patch.setattr(store._log, "append", noting)
    made = [CreateSeries(one.device, one.aligned, SERIES) for tablet in tablets for one in tablets_of(tablet)]
    store.write(tablets, [CreateDatabase("root.a"), *made])
    store.write(tablets)
    store.close()
    return entries


def test_the_log_has_the_same_entries_as_for_the_tablets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tablet = of_numbers([f"root.a.d{number}" for number in (3, 1, 10, 11, 2, 12, 4, 13)])
    together = entries_of(monkeypatch, tmp_path / "together", [tablet])
    assert entries_of(monkeypatch, tmp_path / "each", [*tablet.tablets()]) == together
    assert len(together) == 2
    assert len(decode_mutation(memoryview(together[1])).tablets) == 8


def test_a_shape_that_fits_a_device_is_still_checked_for_other_devices(tmp_path: Path) -> None:
    """Devices created alike share their series objects, and tablets of one shape share their measurements."""
    store = Store.open(str(tmp_path / "data"), StoreOptions(durability="os"), LocalDisk(), SystemClock())
    devices = [f"root.a.d{number}" for number in range(8)]
    made = [CreateSeries(device, device == devices[7], SERIES) for device in devices]
    store.change_schema([CreateDatabase("root.a"), *made])
    store.write([of_numbers(devices[:4])])
    for wrong, code in (([*devices[4:7], "root.a.other"], 508), (devices[4:], 511)):
        with pytest.raises(UserMistake) as caught:
            store.write([of_numbers(wrong)])
        assert caught.value.code == code
    store.change_schema([AlterType(devices[1], "s", DataType.TEXT, Encoding.PLAIN)])
    store.write([of_numbers(devices[:4])])  # a tablet of an earlier type is accepted
    store.delete_series(f"{devices[2]}.s")
    with pytest.raises(UserMistake, match=r"root\.a\.d2\] does not exist"):
        store.write([of_numbers(devices[:4])])
    store.close()


@pytest.mark.slow
def test_an_entry_of_many_devices_survives_crashes_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_tablet_codec, "_TOGETHER_MIN", 1)
    devices = ("root.a.d1", "root.b.c.d1")
    told = [write_devices(devices, (5, 3, 5), 1), write_devices(devices, (4, 5), 2), flush()]
    for durability in ("fsync", "os"):
        options = replace(OPTIONS, durability=durability)
        assert enumerate_crashes(told, [write_devices(devices, (6,), 3)], options, again=2).different > 20
