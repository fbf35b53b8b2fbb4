"""Read or write TsFiles with Apache's implementation: `python apache_tsfile.py dump|write FILE X ...`.

This program runs in a separate process, since Apache's implementation can crash. If there are several pairs of
arguments, they are processed in turn. `dump FILE OUT` writes every series of a tree-model file as JSON: {device:
{measurement: [[time, value], ...]}}; nulls are left out, and byte strings become lists of numbers. `write FILE SPEC`
writes a file from the JSON in SPEC.
"""

import datetime as dt
import json
import sys

import pyarrow as pa
import tsfile
from tsfile import TSDataType, TSEncoding

#: The Arrow type of a field of the table model, by the type's id in TsFile.
ARROW_TYPES = {0: pa.bool_(), 1: pa.int32(), 2: pa.int64(), 3: pa.float32(), 4: pa.float64(), 11: pa.string()}
TIME_MIN, TIME_MAX = -(2**63), 2**63 - 1


def plain(value):
    if isinstance(value, (bytes, bytearray)):
        return list(value)
    if isinstance(value, dt.date):
        return value.year * 10_000 + value.month * 100 + value.day
    return value.item() if hasattr(value, "item") else value


def dump_series(reader, device, measurement):
    """Return the rows of a series, or the text of the error that a read of the series raises."""
    try:
        return series_rows(reader, device, measurement)
    except tsfile.exceptions.LibraryError as error:
        return f"{type(error).__name__}: {error}"


def series_rows(reader, device, measurement):
    result = reader.query_timeseries(device, [measurement], TIME_MIN, TIME_MAX)
    rows = []
    while result.next():
        if not result.is_null_by_index(2):
            rows.append([result.get_value_by_index(1), plain(result.get_value_by_index(2))])
    result.close()
    return rows


def dump(path, out):
    reader = tsfile.TsFileReader(path)
    found = {}
    for group in reader.get_timeseries_metadata().values():
        device = ".".join(s for s in group.segments if s is not None)
        found[device] = {
            s.measurement_name: dump_series(reader, device, s.measurement_name)
            for s in group.timeseries
            if s.statistic.row_count
        }
    reader.close()
    with open(out, "w") as file:
        json.dump(found, file)


def write(path, spec_path):
    with open(spec_path) as file:
        spec = json.load(file)
    (write_table if spec["model"] == "table" else write_tree)(path, spec)


def write_tree(path, spec):
    writer = tsfile.TsFileWriter(path)
    for device, series in spec["devices"].items():
        for name, column in series.items():
            schema = tsfile.TimeseriesSchema(
                name,
                TSDataType(column["type"]),
                TSEncoding(column["encoding"]),
                tsfile.Compressor(column["compressor"]),
            )
            writer.register_timeseries(device, schema)
    for device, series in spec["devices"].items():
        for name, column in series.items():
            write_tablet(writer, device, name, column)
    writer.close()


def write_tablet(writer, device, name, column):
    type_ = TSDataType(column["type"])
    tablet = tsfile.Tablet([name], [type_], len(column["rows"]))
    tablet.set_table_name(device)
    for row, (time, value) in enumerate(column["rows"]):
        tablet.add_timestamp(row, time)
        tablet.add_value_by_index(0, row, from_json(type_, value))
    writer.write_tablet(tablet)


def from_json(type_, value):
    if type_ is TSDataType.DATE:
        return dt.date(value // 10_000, value // 100 % 100, value % 100)
    return bytes(value) if type_ is TSDataType.BLOB else value


def write_table(path, spec):
    kinds = tsfile.ColumnCategory
    fields = spec["fields"]
    columns = [tsfile.ColumnSchema(tag, TSDataType.STRING, kinds.TAG) for tag in spec["tags"]]
    columns += [tsfile.ColumnSchema(name, TSDataType(type_), kinds.FIELD) for name, type_ in fields.items()]
    writer = tsfile.TsFileTableWriter(path, tsfile.TableSchema(spec["table"], columns))
    for batch in spec["batches"]:
        arrays = {"time": pa.array(batch["time"], pa.int64())}
        for tag, value in zip(spec["tags"], batch["tags"], strict=True):
            arrays[tag] = pa.array([value] * len(batch["time"]), pa.string())
        for name, type_ in fields.items():
            arrays[name] = pa.array(batch["fields"][name], ARROW_TYPES[type_])
        writer.write_arrow_batch(pa.record_batch(arrays))
    writer.close()


if __name__ == "__main__":
    act = {"dump": dump, "write": write}[sys.argv[1]]
    for first, second in zip(sys.argv[2::2], sys.argv[3::2], strict=True):
        act(first, second)
