"""Saros and Apache's own implementation (PyPI `tsfile`) read each other's files.

Apache's implementation runs in a separate process, since it can crash. Data that it does not support is left out here:
BOOLEAN RLE, INT64 RLE, empty BLOBs, and BLOBs with a zero byte.
"""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import numpy as np
import pytest
from server.stock_clients import artefacts
from storage.other_reader import (
    JAVA,
    PYTHON,
    UNREADABLE,
    OtherReader,
    Rows,
    apache,
    as_json,
    differences,
    dump,
    rows_of,
    story_files,
)

from saros_storage.base.block import Column
from saros_storage.base.types import Compressor, DataType, Encoding, Scalar
from saros_storage.encoding import encodings_for
from saros_storage.io.disk import LocalDisk
from saros_storage.tsfile.file_outline import outline
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.writer import AlignedColumn, TsFileWriter

pytestmark = pytest.mark.slow

if importlib.util.find_spec("tsfile") is None:
    pytest.skip("the package tsfile is not installed", allow_module_level=True)

SAMPLES: dict[DataType, list[Scalar]] = {
    DataType.BOOLEAN: [True, False, False],
    DataType.INT32: [0, -(2**31), 2**31 - 1, 17],
    DataType.INT64: [0, -(2**63), 2**63 - 1, 17],
    DataType.FLOAT: [0.5, -1.25, 3.0, 3.0],
    DataType.DOUBLE: [0.1, -1e300, 2.5, 2.5],
    DataType.TEXT: ["text", "Wörter 温度", "x"],
    DataType.TIMESTAMP: [0, 1, 2**62],
    DataType.DATE: [20240229, 19700101, 20301231],
    DataType.BLOB: [b"\xff\x01", b"blob"],
    DataType.STRING: ["b", "a", "c"],
}
PAIRS = [(t, e) for t in DataType for e in sorted(encodings_for(t)) if (t, e) not in UNREADABLE]


def dumped(folder: Any, path: str) -> dict[str, dict[str, Rows]]:
    """Return the rows that the other reader finds in a file."""
    (found,) = dump([path], folder)
    return found


def sample(type_: DataType, count: int) -> list[Scalar]:
    return (SAMPLES[type_] * count)[:count]


def open_reader(path: str) -> TsFileReader:
    return TsFileReader(path, LocalDisk().map(path))


def test_it_reads_every_type_encoding_and_compressor_that_we_write(tmp_path: Any) -> None:
    path = str(tmp_path / "plain.tsfile")
    file = LocalDisk().create(path)
    writer = TsFileWriter(file, page_rows=10)
    expected: dict[str, dict[str, Rows]] = {}
    for number, compressor in enumerate(Compressor):
        device = f"root.plain.`c {number}`.d"
        expected[device] = {}
        for chunk in range(2):
            times = np.arange(25, dtype=np.int64) * 1000 + chunk * 10**6
            for type_, encoding in PAIRS:
                name, values = f"{type_.name}_{encoding.name}".lower(), sample(type_, 25)
                writer.write_series(device, name, type_, encoding, compressor, times, Column.of(type_, values).values)
                expected[device].setdefault(name, []).extend(as_json(values, times.tolist()))
    writer.finish()
    file.close()
    assert dumped(tmp_path, path) == expected


@pytest.mark.parametrize("reader", [PYTHON, JAVA], ids=["python", "java"])
def test_it_reads_the_files_that_random_operations_leave(tmp_path: Any, reader: OtherReader) -> None:
    files = [content for seed in range(12) for content in story_files(seed)]
    assert len(files) > 20
    try:
        assert [] == differences(files, tmp_path, reader)
    except artefacts.Unavailable as error:
        pytest.skip(str(error))


def test_a_file_that_is_read_otherwise_is_told(tmp_path: Any) -> None:
    (data, *_) = story_files(1)
    wrong = OtherReader(lambda paths, _: [{} for _ in paths], lambda _: True)
    assert all(" of 0" in text for text in differences([data], tmp_path, wrong))
    assert differences([data], tmp_path, wrong)


@pytest.mark.parametrize("type_", [DataType.FLOAT, DataType.DOUBLE])
def test_it_reads_decimals_that_we_write_as_whole_numbers(tmp_path: Any, type_: DataType) -> None:
    path, times = str(tmp_path / "scaled.tsfile"), np.arange(200, dtype=np.int64)
    file = LocalDisk().create(path)
    writer = TsFileWriter(file, page_rows=10)
    column = Column.of(type_, [(number**2 % 97 - 40) / 1_000 for number in range(200)])
    writer.write_series("root.d", "s", type_, Encoding.GORILLA, Compressor.LZ4, times, column.values)
    aligned = AlignedColumn("s", type_, Encoding.GORILLA, Compressor.LZ4, column)
    writer.write_aligned("root.al", times, [aligned])
    writer.finish()
    file.close()
    chunks = {s.measurement: s.chunks for device in outline(open_reader(path)) for s in device.series}
    assert {Encoding.TS_2DIFF} == {chunk.encoding for chunk in chunks["s"]}
    rows = as_json(column.to_list(), times.tolist())
    assert dumped(tmp_path, path) == {"root.d": {"s": rows}, "root.al": {"s": rows}}


@pytest.mark.parametrize("rows", [7, 25])
def test_it_reads_our_aligned_devices_with_nulls_and_late_columns(tmp_path: Any, rows: int) -> None:
    path = str(tmp_path / "aligned.tsfile")
    file = LocalDisk().create(path)
    writer = TsFileWriter(file, page_rows=10)
    expected: dict[str, dict[str, Rows]] = {"root.al.温度.d": {}, "root.al": {}}
    for device, series in expected.items():
        for chunk in range(3):
            times = np.arange(rows, dtype=np.int64) + chunk * 100
            columns = []
            for number, (type_, encoding) in enumerate(PAIRS):
                # Some columns begin in a later chunk, others end early, and some pages and chunks have only nulls.
                if (number + chunk) % 4 == 0:
                    continue
                values = [
                    v if i % 3 and not 9 < i < 20 and chunk != 2 else None for i, v in enumerate(sample(type_, rows))
                ]
                name = f"测点{number}"
                columns.append(AlignedColumn(name, type_, encoding, Compressor.LZ4, Column.of(type_, values)))
                series.setdefault(name, []).extend(as_json(values, times.tolist()))
            writer.write_aligned(device, times, columns)
    writer.finish()
    file.close()
    assert dumped(tmp_path, path) == {d: {n: r for n, r in s.items() if r} for d, s in expected.items()}


def test_it_finds_devices_through_our_index_of_several_levels(tmp_path: Any) -> None:
    path = str(tmp_path / "many.tsfile")
    file = LocalDisk().create(path)
    writer = TsFileWriter(file)
    expected: dict[str, dict[str, Rows]] = {}
    one = np.ones(1, np.int32)
    for number in range(300):
        device = f"root.many.d{number}"
        for name in ("s", "é"):
            writer.write_series(
                device, name, DataType.INT32, Encoding.PLAIN, Compressor.LZ4, np.array([number]), one * number
            )
        expected[device] = {"s": [[number, number]], "é": [[number, number]]}
    for number in range(300):
        writer.write_series(
            "root.many.wide", f"s{number}", DataType.INT32, Encoding.PLAIN, Compressor.LZ4, np.array([1]), one * number
        )
    expected["root.many.wide"] = {f"s{number}": [[1, number]] for number in range(300)}
    writer.finish()
    file.close()
    assert dumped(tmp_path, path) == expected


#: Encodings that the other writer offers, and that Saros and Apache's Java reader decode in the same way.
WRITTEN = [
    (DataType.BOOLEAN, [Encoding.PLAIN]),
    (
        DataType.INT32,
        [Encoding.PLAIN, Encoding.TS_2DIFF, Encoding.GORILLA, Encoding.RLE, Encoding.CHIMP, Encoding.ZIGZAG],
    ),
    (DataType.INT32, [Encoding.SPRINTZ, Encoding.RLBE]),
    (DataType.INT64, [Encoding.PLAIN, Encoding.TS_2DIFF, Encoding.GORILLA, Encoding.CHIMP, Encoding.ZIGZAG]),
    (DataType.INT64, [Encoding.RLBE]),
    (DataType.FLOAT, [Encoding.PLAIN, Encoding.GORILLA, Encoding.CHIMP, Encoding.SPRINTZ]),
    (DataType.DOUBLE, [Encoding.PLAIN, Encoding.GORILLA, Encoding.CHIMP]),
    (DataType.TEXT, [Encoding.PLAIN, Encoding.DICTIONARY]),
    (DataType.STRING, [Encoding.PLAIN, Encoding.DICTIONARY]),
    (DataType.BLOB, [Encoding.PLAIN]),
    (DataType.TIMESTAMP, [Encoding.PLAIN, Encoding.TS_2DIFF]),
    (DataType.DATE, [Encoding.PLAIN, Encoding.TS_2DIFF]),
]


def test_we_read_every_type_and_encoding_that_it_writes(tmp_path: Any) -> None:
    path, spec_path = str(tmp_path / "apache.tsfile"), str(tmp_path / "spec.json")
    series: dict[str, dict[str, Any]] = {}
    compressors = [Compressor.UNCOMPRESSED, Compressor.SNAPPY, Compressor.GZIP, Compressor.LZ4]
    for type_, encodings in WRITTEN:
        for encoding in encodings:
            # SPRINTZ and RLBE get only ordinary values: at the extremes the other library cannot read its own files.
            values = sample(type_, 400)
            if encoding in (Encoding.SPRINTZ, Encoding.RLBE, Encoding.ZIGZAG) and type_ is not DataType.FLOAT:
                values = [i * i % 1009 - 300 for i in range(400)]
            series[f"{type_.name}_{encoding.name}".lower()] = {
                "type": type_.value,
                "encoding": encoding.value,
                "compressor": compressors[len(series) % 4].value,
                "rows": as_json(values, range(0, 4000, 10)),
            }
    devices = {"root.sg.d1": series, "root.a.b.c.d.e": dict(list(series.items())[:3]), "root.sg.温度": series}
    with open(spec_path, "w") as file:
        json.dump({"model": "tree", "devices": devices}, file)
    apache("write", path, spec_path)
    reader = open_reader(path)
    assert sorted(reader.devices()) == sorted(devices)
    for device, columns in devices.items():
        assert {name: rows_of(reader, device, name) for name in columns} == {n: c["rows"] for n, c in columns.items()}


def test_we_read_its_table_model(tmp_path: Any) -> None:
    path, spec_path = str(tmp_path / "table.tsfile"), str(tmp_path / "spec.json")
    rows = 25_000
    fields = {"flag": 0, "small": 1, "big": 2, "ratio": 3, "temp": 4, "note": 11}
    full = {
        "flag": [i % 2 == 0 for i in range(rows)],
        "small": [i % 1000 for i in range(rows)],
        "big": [i * 10**9 for i in range(rows)],
        "ratio": [i * 0.5 for i in range(rows)],
        "temp": [round(i * 0.01, 2) for i in range(rows)],
        "note": [f"n{i % 7}" for i in range(rows)],
    }
    sparse = {name: [v if i % 3 else None for i, v in enumerate(values)] for name, values in full.items()}
    sparse["note"] = [None] * 20_000 + sparse["note"][20_000:]
    times = list(range(0, rows * 5, 5))
    batches = [
        {"time": times, "tags": ["north 1", "a"], "fields": full},
        {"time": times, "tags": ["south", None], "fields": sparse},
        {"time": [t + rows * 5 for t in times], "tags": ["south", None], "fields": {**full, "temp": [None] * rows}},
    ]
    spec = {"model": "table", "table": "weather", "tags": ["city", "station"], "fields": fields, "batches": batches}
    with open(spec_path, "w") as file:
        json.dump(spec, file)
    apache("write", path, spec_path)
    reader = open_reader(path)
    assert list(reader.devices()) == ["weather.`north 1`.a", "weather.south"]
    for name in fields:
        assert rows_of(reader, "weather.`north 1`.a", name) == as_json(full[name], times)
        expected = as_json(sparse[name], times)
        if name != "temp":
            expected += as_json(full[name], batches[2]["time"])  # type: ignore[arg-type]
        assert rows_of(reader, "weather.south", name) == expected
