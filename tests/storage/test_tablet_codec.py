from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_storage.base.block import Column
from saros_storage.base.errors import CorruptFile, UserMistake
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DataType, Scalar
from saros_storage.mutation.mutation import Deletion, Mutation, PlacedTablet, encode_mutation
from saros_storage.mutation.tablet_codec import COLUMNS_MAX, TabletFrame, decode_tablet, encode_tablet
from saros_storage.scan.reading import TimeRange

SOME: dict[DataType, st.SearchStrategy[Scalar]] = {
    DataType.BOOLEAN: st.booleans(),
    DataType.INT32: st.integers(-(2**31), 2**31 - 1),
    DataType.INT64: st.integers(-(2**63), 2**63 - 1),
    DataType.FLOAT: st.floats(width=32, allow_nan=False),
    DataType.DOUBLE: st.floats(allow_nan=False),
    DataType.TEXT: st.text(max_size=9),
    DataType.TIMESTAMP: st.integers(-(2**63), 2**63 - 1),
    DataType.DATE: st.integers(0, 99991231),
    DataType.BLOB: st.binary(max_size=9),
    DataType.STRING: st.text(max_size=9),
}


def same(a: Tablet, b: Tablet) -> bool:
    return (a.device, a.measurements, a.aligned, a.times.tolist()) == (
        b.device,
        b.measurements,
        b.aligned,
        b.times.tolist(),
    ) and [(c.type, c.to_list()) for c in a.columns] == [(c.type, c.to_list()) for c in b.columns]


@pytest.mark.slow
@given(st.data(), st.integers(0, 20), st.booleans())
@settings(max_examples=50)
def test_a_tablet_comes_back_from_its_frame(data: st.DataObject, rows: int, aligned: bool) -> None:
    columns = tuple(
        Column.of(t, data.draw(st.lists(st.one_of(st.none(), s), min_size=rows, max_size=rows)))
        for t, s in SOME.items()
    )
    times = np.array(data.draw(st.lists(st.integers(-(2**62), 2**62), min_size=rows, max_size=rows)), np.int64)
    names = tuple(f"`温 {i}`" for i in range(len(columns)))
    tablet = Tablet("root.a.`b.c`", names, times, columns, aligned)
    frame = encode_tablet(tablet)
    assert len(frame) % 8 == 0
    assert same(tablet, decode_tablet(memoryview(frame)))
    if rows:
        parts, joined = TabletFrame.of_tablet(tablet), TabletFrame.of_bytes(frame)
        assert (len(frame), frame) == (parts.size, b"".join(parts.parts))
        assert properties(joined) == properties(parts)
        assert encode(joined) == encode(parts) == encode(frame)


def properties(frame: TabletFrame) -> tuple[object, ...]:
    return frame.head, frame.rows, frame.ordered, frame.span, frame.size


def encode(content: TabletFrame | bytes) -> list[bytes]:
    """Return the payloads of two entries: one has only this tablet, the other has further mutations."""
    placed, deletion = PlacedTablet(2, content), Deletion(("root.a.**",), TimeRange())
    return [b"".join(encode_mutation(m)) for m in (Mutation(tablets=[placed]), Mutation((), [deletion], [placed] * 2))]


def test_a_frame_in_parts_shares_the_arrays_of_its_tablet_until_it_is_joined() -> None:
    times, values = np.arange(9), np.arange(9.0)
    frame = TabletFrame.of_tablet(Tablet("root.a.d", ("s",), times, (Column(DataType.DOUBLE, values),)))
    shared = [np.frombuffer(part) for part in frame.parts if isinstance(part, memoryview)]
    assert [True, True] == [np.shares_memory(a, b) for a, b in zip(shared, (times, values), strict=True)]
    joined = frame.frame
    assert [joined] == [*frame.parts]
    assert joined is frame.frame


def test_a_slice_of_text_is_packed_alone() -> None:
    column = Column.of(DataType.TEXT, ["long" * 100, "b", None]).slice(1, 3)
    tablet = Tablet("root.a.d", ("t",), np.array([1, 2]), (column,))
    frame = encode_tablet(tablet)
    assert len(frame) < 100
    assert ["b", None] == decode_tablet(memoryview(frame)).columns[0].to_list()


def test_columns_are_views_of_the_frame() -> None:
    frame = encode_tablet(Tablet("root.a.d", ("s",), np.arange(9), (Column(DataType.DOUBLE, np.arange(9.0)),)))
    tablet = decode_tablet(memoryview(frame))
    assert not tablet.columns[0].numbers.flags.owndata
    assert not tablet.times.flags.writeable


@given(st.integers(0, 200), st.binary(max_size=8))
@settings(max_examples=50)
def test_a_cut_or_foreign_frame_is_corrupt(cut: int, tail: bytes) -> None:
    columns = (Column.of(DataType.TEXT, ["a", None, "ccc"]), Column.of(DataType.INT32, [1, 2, 3]))
    frame = encode_tablet(Tablet("root.a.d", ("t", "n"), np.arange(3), columns))
    if cut < len(frame):
        with pytest.raises(CorruptFile):
            decode_tablet(memoryview(frame[:cut]))
    with pytest.raises(CorruptFile):
        decode_tablet(memoryview(tail))


def of_zeros(device: str, names: list[str]) -> Tablet:
    zeros = np.zeros(1, np.int64)
    return Tablet(device, tuple(names), zeros, tuple(Column(DataType.INT64, zeros) for _ in names))


@pytest.mark.slow
def test_a_frame_has_so_many_columns_and_no_more() -> None:
    widest = of_zeros("root.a.d", [f"s{number}" for number in range(COLUMNS_MAX)])
    assert same(widest, decode_tablet(encode_tablet(widest)))
    with pytest.raises(
        UserMistake, match=r"root\.a\.d has 65,536 columns: at most 65,535 are allowed; split"
    ) as caught:
        encode_tablet(of_zeros("root.a.d", [*widest.measurements, "more"]))
    assert 2006 == caught.value.code


@pytest.mark.parametrize("columns", [11, 44])  # with 44 columns, the size does not even fit in 32 bits
def test_a_frame_of_too_many_bytes_is_refused_before_it_is_made(columns: int) -> None:
    text = Column.of(DataType.TEXT, ["x" * (100 << 20)])
    tablet = Tablet("root.a.d", tuple(f"t{n}" for n in range(columns)), np.zeros(1, np.int64), (text,) * columns)
    with pytest.raises(UserMistake, match=r"bytes is too large: at most 1,073,741,824; split it") as caught:
        encode_tablet(tablet)
    assert 2006 == caught.value.code


@pytest.mark.parametrize(("device", "name"), [("root.a.d", "x" * 70_000), ("root.a." + "d" * 70_000, "x")])
def test_a_name_that_is_too_long_is_refused(device: str, name: str) -> None:
    with pytest.raises(UserMistake, match=r"has 70009 characters; at most 8192") as caught:
        encode_tablet(of_zeros(device, [name]))
    assert 509 == caught.value.code
