"""Changes of a series' type: the allowed conversions, and the values that readers see, wherever points are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from quick_disk import QuickDisk
from storage.test_store import open_store

from saros_storage.base.block import Block, Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DEFAULT_ENCODING, Compressor, DataType, Encoding, Scalar
from saros_storage.loading.loader import LoadOptions
from saros_storage.scan.reading import ReadCounters, ScanRequest, Statistics, Summary, TimeRange, WindowGrid
from saros_storage.scan.type_conversion import TypeChanged, read_as, statistics_read_as, value_read_as
from saros_storage.schema import (
    AlterStorage,
    AlterType,
    CreateDatabase,
    CreateSeries,
    Deadband,
    SchemaTree,
    SeriesSchema,
    encoding_as,
)
from saros_storage.store import Store
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.writer import TsFileWriter

D = DataType
TEXTS = {D.TEXT, D.STRING}
#: For each type of a series, the types to which it can change, according to IoTDB's manual.
BECOMES = {
    D.INT32: {D.INT64, D.FLOAT, D.DOUBLE, D.TIMESTAMP} | TEXTS,
    D.INT64: {D.TIMESTAMP, D.DOUBLE} | TEXTS,
    D.FLOAT: {D.DOUBLE} | TEXTS,
    D.DOUBLE: TEXTS,
    D.BOOLEAN: TEXTS,
    D.TEXT: {D.BLOB, D.STRING},
    D.STRING: {D.TEXT, D.BLOB},
    D.BLOB: TEXTS,
    D.DATE: TEXTS,
    D.TIMESTAMP: {D.INT64, D.DOUBLE} | TEXTS,
}
#: Sample values of each type; EXPECTED has their conversions to other types.
VALUES: dict[DataType, Sequence[Scalar]] = {
    D.INT32: [0, -7, 2**31 - 1, 16_777_217],
    D.INT64: [0, -7, 2**63 - 1, 2**53 + 1],
    D.TIMESTAMP: [0, -7, 2**63 - 1, 2**53 + 1],
    D.FLOAT: [0.0, -0.5, float(np.float32(0.1)), 1e10],
    D.DOUBLE: [0.0, -0.5, 0.1, 1e300],
    D.BOOLEAN: [True, False, False, True],
    D.DATE: [19700101, 20240229, 10101, 99991231],
    D.TEXT: ["", "ä", "7", "long"],
    D.STRING: ["", "ä", "7", "long"],
    D.BLOB: [b"", "ä".encode(), b"7", b"long"],
}
WHOLE_DOUBLES = [0.0, -7.0, 2.0**63, 2.0**53]
EXPECTED: dict[tuple[DataType, DataType], Sequence[Scalar]] = {
    (D.INT32, D.FLOAT): [0.0, -7.0, 2.0**31, 16_777_216.0],
    (D.INT32, D.DOUBLE): [0.0, -7.0, 2.0**31 - 1, 16_777_217.0],
    (D.INT32, D.TEXT): ["0", "-7", "2147483647", "16777217"],
    (D.INT64, D.DOUBLE): WHOLE_DOUBLES,
    (D.TIMESTAMP, D.DOUBLE): WHOLE_DOUBLES,
    (D.INT64, D.TEXT): ["0", "-7", "9223372036854775807", "9007199254740993"],
    (D.TIMESTAMP, D.TEXT): ["0", "-7", "9223372036854775807", "9007199254740993"],
    (D.FLOAT, D.TEXT): ["0.0", "-0.5", "0.1", "1.0E10"],
    (D.DOUBLE, D.TEXT): ["0.0", "-0.5", "0.1", "1.0E300"],
    (D.BOOLEAN, D.TEXT): ["true", "false", "false", "true"],
    (D.DATE, D.TEXT): ["1970-01-01", "2024-02-29", "0001-01-01", "9999-12-31"],
    (D.TEXT, D.BLOB): VALUES[D.BLOB],
    (D.STRING, D.BLOB): VALUES[D.BLOB],
    (D.BLOB, D.TEXT): VALUES[D.TEXT],
}
PAIRS = [(source, target) for source, found in BECOMES.items() for target in sorted(found)]


def expected(source: DataType, target: DataType) -> list[Scalar]:
    """Return the sample values of type `source` as `target`. Without an entry in EXPECTED, the values do not change."""
    as_text = D.TEXT if target is D.STRING else target
    return list(EXPECTED.get((source, as_text), VALUES[source]))


# ---------------------------------------------------------------------------------------------- allowed changes


def tree_of(series: SeriesSchema) -> SchemaTree:
    tree = SchemaTree()
    tree.apply(CreateDatabase("root.a"))
    tree.apply(CreateSeries("root.a.d", False, (series,)))
    return tree


def alter(tree: SchemaTree, type_: DataType) -> SeriesSchema:
    series = tree.device("root.a.d").series["s"]  # type: ignore[union-attr]
    change = AlterType("root.a.d", "s", type_, encoding_as(series, type_))
    tree.check(change)
    tree.apply(change)
    return tree.device("root.a.d").series["s"]  # type: ignore[union-attr]


def plain(type_: DataType, encoding: Encoding | None = None, **more: object) -> SeriesSchema:
    return SeriesSchema("s", type_, encoding or DEFAULT_ENCODING[type_], Compressor.ZSTD, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("source", "target"), list(product(D, D)))
def test_a_series_becomes_what_the_manual_says_and_nothing_else(source: DataType, target: DataType) -> None:
    tree = tree_of(plain(source))
    if target is source or target in BECOMES[source]:
        assert target is alter(tree, target).type
        return
    with pytest.raises(UserMistake, match=f"root.a.d.s is {source.name}, which may become .* not {target.name}") as why:
        alter(tree, target)
    assert why.value.code == 507


@pytest.mark.parametrize(
    ("types", "says"),
    [
        ((D.INT32, D.FLOAT, D.DOUBLE), "was INT32 before it was FLOAT"),
        ((D.INT32, D.INT64, D.DOUBLE, D.TEXT), "was INT32 before it was DOUBLE"),
        ((D.FLOAT, D.DOUBLE, D.STRING), "was FLOAT before it was DOUBLE"),
        ((D.TIMESTAMP, D.DOUBLE, D.TEXT), "was TIMESTAMP before it was DOUBLE"),
    ],
)
def test_a_second_change_that_would_make_other_points_of_the_first_is_refused(
    types: Sequence[DataType], says: str
) -> None:
    tree = tree_of(plain(types[0]))
    for type_ in types[1:-1]:
        alter(tree, type_)
    with pytest.raises(UserMistake, match=says) as why:
        alter(tree, types[-1])
    assert why.value.code == 507


def test_what_is_declared_stays_as_far_as_it_goes_with_the_type() -> None:
    kept = {"alias": "name", "tags": {"a": "b"}, "attributes": {"c": "d"}}
    found = alter(tree_of(plain(D.INT32, Encoding.RLE, deadband=Deadband(2.0), **kept)), D.INT64)
    assert found == plain(D.INT64, Encoding.RLE, deadband=Deadband(2.0), earlier=(D.INT32,), **kept)
    found = alter(tree_of(plain(D.FLOAT, Encoding.RLE, decimals=2, deadband=Deadband(2.0), **kept)), D.STRING)
    assert found == plain(D.STRING, earlier=(D.FLOAT,), **kept)
    assert alter(tree_of(plain(D.INT32)), D.DOUBLE).encoding is Encoding.GORILLA
    assert alter(tree_of(plain(D.INT32, Encoding.ZIGZAG)), D.DOUBLE).encoding is Encoding.GORILLA
    assert alter(tree_of(plain(D.INT32, Encoding.ZIGZAG)), D.INT64).encoding is Encoding.ZIGZAG


def test_a_schema_that_is_saved_knows_what_its_series_were() -> None:
    tree = tree_of(plain(D.INT32))
    alter(tree, D.INT64)
    alter(tree, D.TIMESTAMP)
    assert alter(tree, D.INT64).earlier == (D.INT32, D.TIMESTAMP)
    again = SchemaTree.load(tree.dump())
    assert again.device("root.a.d") == tree.device("root.a.d")


# ---------------------------------------------------------------------------------------------- values, statistics


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_values_come_to_the_same_one_by_one_and_as_columns(source: DataType, target: DataType) -> None:
    wanted = expected(source, target)
    column = Column.of(source, [*VALUES[source], None])
    assert [*wanted, None] == read_as(column, target).to_list()
    assert wanted == [value_read_as(value, source, target) for value in VALUES[source]]
    assert read_as(column, target).type is target


def test_sums_of_whole_numbers_that_no_float_holds_are_not_taken_from_statistics() -> None:
    exact = Statistics(2, 1, 2, 3, 2**24, 3, 2**24, 2**24 + 3)
    as_float = Statistics(2, 1, 2, 3.0, 2.0**24, 3.0, 2.0**24, 2.0**24 + 3)
    assert as_float == statistics_read_as(exact, D.INT32, D.FLOAT)
    assert statistics_read_as(Statistics(1, 1, 1, *[2**24 + 1] * 5), D.INT32, D.FLOAT) is None
    assert statistics_read_as(Statistics(1, 1, 1, *[-(2**24) - 1] * 5), D.INT32, D.FLOAT) is None


# ---------------------------------------------------------------------------------------------- points


DEVICE = "root.a.d"


@contextmanager
def series_of(folder: Path, type_: DataType, *, aligned: bool = False) -> Iterator[Store]:
    store = open_store(folder)
    series = (SeriesSchema("s", type_, DEFAULT_ENCODING[type_], Compressor.LZ4),)
    store.change_schema([CreateDatabase("root.a"), CreateSeries(DEVICE, aligned, series)])
    try:
        yield store
    finally:
        store.close()


def write(store: Store, start: int, type_: DataType, values: Sequence[Scalar]) -> None:
    times = np.arange(start, start + len(values))
    known = store.schema.device(DEVICE)
    assert known is not None
    store.write([Tablet(DEVICE, ("s",), times, (Column.of(type_, values),), known.aligned)])


def change(store: Store, type_: DataType) -> None:
    store.change_schema([AlterType(DEVICE, "s", type_, DEFAULT_ENCODING[type_])])


def asked(store: Store, type_: DataType, **more: object) -> ScanRequest:
    known = store.schema.device(DEVICE)
    assert known is not None
    return ScanRequest(DEVICE, ("s",), (type_,), known.aligned, **more)  # type: ignore[arg-type]


def points(store: Store, type_: DataType) -> list[tuple[int, Scalar]]:
    view = store.view()
    reader = view.open(asked(store, type_))
    found: list[tuple[int, Scalar]] = []
    while (block := reader.next()) is not None:
        assert isinstance(block, Block)
        found += zip(block.times.tolist(), block.columns[0].to_list(), strict=True)
    reader.close()
    view.close()
    return found


def latest(store: Store, type_: DataType) -> tuple[int, Scalar] | None:
    view = store.view()
    (found,) = view.latest(asked(store, type_, descending=True, latest=True), ReadCounters())
    view.close()
    return found


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_points_show_with_the_new_type_wherever_they_are(
    tmp_path: Path, source: DataType, target: DataType, *, aligned: bool
) -> None:
    """When the type changes, points are in a file and in memory. More are written later.

    All are then flushed, merged, and read after a restart.
    """
    old, new = VALUES[source], VALUES[target]
    wanted = list(enumerate([*expected(source, target), *expected(source, target), *new]))
    with series_of(tmp_path, source, aligned=aligned) as store:
        write(store, 0, source, old)
        store.flush()
        write(store, len(old), source, old)
        assert latest(store, source) == (2 * len(old) - 1, old[-1])
        change(store, target)
        assert points(store, target) == wanted[: 2 * len(old)]
        assert latest(store, target) == wanted[2 * len(old) - 1]
        write(store, 2 * len(old), target, new)
        assert points(store, target) == wanted
        assert latest(store, target) == wanted[-1]
    store = open_store(tmp_path)
    try:
        assert points(store, target) == wanted
        store.flush()
        assert points(store, target) == wanted
        store.merge(full=True)
        assert points(store, target) == wanted
        assert latest(store, target) == wanted[-1]
        assert [1] == [len(partition.files) for partition in store.partitions()]
    finally:
        store.close()


def test_rows_that_were_prepared_before_the_change_are_taken_as_of_before(tmp_path: Path) -> None:
    with series_of(tmp_path, D.INT32) as store:
        change(store, D.DOUBLE)
        write(store, 0, D.DOUBLE, [0.5])
        write(store, 1, D.INT32, [7])
        write(store, 2, D.DOUBLE, [1.5])
        assert points(store, D.DOUBLE) == [(0, 0.5), (1, 7.0), (2, 1.5)]
        with pytest.raises(UserMistake, match="is DOUBLE, not INT64"):
            write(store, 3, D.INT64, [7])
        store.flush()
        store.merge(full=True)
        assert points(store, D.DOUBLE) == [(0, 0.5), (1, 7.0), (2, 1.5)]


def test_older_points_are_answered_from_statistics_too(tmp_path: Path) -> None:
    with series_of(tmp_path, D.INT32) as store:
        write(store, 0, D.INT32, range(9))
        store.flush()
        change(store, D.INT64)
        view = store.view()
        found = view.open(asked(store, D.INT64, grid=WindowGrid())).next()
        view.close()
        assert found == Summary(0, 8, (Statistics(9, 0, 8, 0, 8, 0, 8, 36.0),))


def test_a_query_that_was_planned_before_reads_on_with_what_it_had_or_is_told(tmp_path: Path) -> None:
    with series_of(tmp_path, D.INT32) as store:
        write(store, 0, D.INT32, [1, 2])
        view = store.view()
        reader = view.open(asked(store, D.INT32))
        change(store, D.INT64)
        write(store, 1, D.INT64, [2**40])
        block = reader.next()
        assert isinstance(block, Block)
        assert block.columns[0].to_list() == [1, 2]
        view.close()
        assert points(store, D.INT64) == [(0, 1), (1, 2**40)]
        for _ in range(2):
            with pytest.raises(TypeChanged, match="run it again") as why:
                points(store, D.INT32)
            assert why.value.code == 2021
            with pytest.raises(TypeChanged):
                latest(store, D.INT32)
            store.flush()


def test_a_series_that_is_dropped_and_made_anew_with_its_first_type_has_nothing_to_do_with_the_other(
    tmp_path: Path,
) -> None:
    with series_of(tmp_path, D.INT32) as store:
        change(store, D.INT64)
        write(store, 0, D.INT64, [2**40])
        store.flush()
        write(store, 1, D.INT64, [2**41])
        store.delete_series(f"{DEVICE}.s")
        store.change_schema([CreateSeries(DEVICE, False, (plain(D.INT32),))])
        assert points(store, D.INT32) == []
        assert latest(store, D.INT32) is None
        write(store, 5, D.INT32, [7])
        store.flush()
        assert points(store, D.INT32) == [(5, 7)]
        assert latest(store, D.INT32) == (5, 7)
        change(store, D.DOUBLE)
        assert points(store, D.DOUBLE) == [(5, 7.0)]


def test_a_file_with_a_type_that_the_series_had_is_loaded_and_one_with_another_is_not(tmp_path: Path) -> None:
    paths = {}
    for type_, values in ((D.INT32, [7, 8]), (D.FLOAT, [0.5, 1.5])):
        paths[type_] = str(tmp_path / f"{type_.name}.tsfile")
        file = QuickDisk().create(paths[type_])
        writer = TsFileWriter(file, page_rows=2)
        column = Column.of(type_, values)
        writer.write_series(
            DEVICE, "s", type_, DEFAULT_ENCODING[type_], Compressor.LZ4, np.array([1, 2]), column.values
        )
        writer.finish()
        file.close()
    with series_of(tmp_path / "data", D.INT32) as store:
        change(store, D.INT64)
        write(store, 2, D.INT64, [2**40])
        store.load(paths[D.INT32], LoadOptions(1))
        assert points(store, D.INT64) == [(1, 7), (2, 8)]
        with pytest.raises(UserMistake, match=r"root\.a\.d\.s is INT64, the file has FLOAT"):
            store.load(paths[D.FLOAT], LoadOptions(1))


def stored_as(store: Store) -> list[tuple[DataType, Encoding, Compressor]]:
    """Return type, encoding and compressor of the first chunk of each file, in order."""
    found = []
    for partition in store._region.partitions:
        for file in partition.files:
            reader = TsFileReader(file.path, store._disk.map(file.path))
            index = reader.device(DEVICE)
            assert index is not None
            layout = reader.layout(index, index.series["s"], 0)
            assert layout.type is not None
            found.append((layout.type, layout.encoding, layout.compressor))
    return found


def test_what_is_written_after_a_change_of_encoding_or_compressor_is_stored_so(tmp_path: Path) -> None:
    with series_of(tmp_path, D.INT32) as store:
        write(store, 0, D.INT32, [1, 2])
        store.flush()
        store.change_schema([AlterStorage(DEVICE, ("s",), Encoding.PLAIN, None)])
        write(store, 2, D.INT32, [3])
        store.flush()
        store.change_schema(
            [AlterStorage(DEVICE, ("s",), None, Compressor.ZSTD), AlterType(DEVICE, "s", D.INT64, Encoding.PLAIN)]
        )
        write(store, 3, D.INT64, [4])
        store.flush()
        assert stored_as(store) == [
            (D.INT32, Encoding.TS_2DIFF, Compressor.LZ4),
            (D.INT32, Encoding.PLAIN, Compressor.LZ4),
            (D.INT64, Encoding.PLAIN, Compressor.ZSTD),
        ]
        store.merge(full=True)
        assert stored_as(store) == [(D.INT64, Encoding.PLAIN, Compressor.ZSTD)]
        assert points(store, D.INT64) == [(0, 1), (1, 2), (2, 3), (3, 4)]
        with pytest.raises(UserMistake, match="encoding DICTIONARY does not support INT64"):
            store.change_schema([AlterStorage(DEVICE, ("s",), Encoding.DICTIONARY)])
        with pytest.raises(UserMistake, match=r"root\.a\.d\.t\] does not exist"):
            store.change_schema([AlterStorage(DEVICE, ("s", "t"), Encoding.PLAIN)])
    store = open_store(tmp_path)
    known = store.schema.device(DEVICE)
    assert known is not None
    assert known.series["s"].encoding is Encoding.PLAIN
    assert known.series["s"].compressor is Compressor.ZSTD
    store.close()


def test_a_deletion_of_before_hides_what_it_hid(tmp_path: Path) -> None:
    with series_of(tmp_path, D.INT32) as store:
        write(store, 0, D.INT32, range(6))
        store.flush()
        store.delete([f"{DEVICE}.s"], TimeRange(1, 3))
        change(store, D.TEXT)
        store.delete([f"{DEVICE}.s"], TimeRange(4, 5))
        wanted = [(0, "0"), (3, "3"), (5, "5")]
        assert points(store, D.TEXT) == wanted
        store.merge(full=True)
        assert points(store, D.TEXT) == wanted
