"""Read files to import as Arrow batches: CSV, JSON lines, Parquet. Not thread-safe.

    opened_file      the format of a file, by its content, and its decompressed bytes
    csv_files        CSV; annotated_csv: InfluxDB's format, with several tables
    json_lines       JSON lines
    parquet_files    Parquet; parquet_worker: the process that reads it
    source_layout    the columns of a batch as times and typed values

This module does not access a database.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa

from saros_server.sources.annotated_csv import is_annotated, read_annotated_csv
from saros_server.sources.csv_files import read_csv
from saros_server.sources.json_lines import read_json_lines
from saros_server.sources.opened_file import InputFile, input_file
from saros_server.sources.parquet_files import read_parquet
from saros_server.sources.parquet_worker.process import ParquetRefused, ParquetWorker
from saros_server.sources.source_layout import NewSeries, Series, SourceBatch
from saros_server.sources.source_options import SourceError, SourceOptions

#: Arrow's message for bytes that are not valid in the encoding.
_NOT_TEXT = "invalid UTF8"
#: The byte order marks of UTF-16, with one of which a file in UTF-16 usually begins.
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_source(
    file: Path,
    format_: str | None,
    options: SourceOptions,
    series: Series | None = None,
    name: str | None = None,
    worker: Callable[[], AbstractContextManager[ParquetWorker]] = ParquetWorker,
) -> Iterator[SourceBatch]:
    """Yield the rows of a file as batches, converted to the types of `series`. Raises SourceError.

    format_   the format, or None to detect it from the content
    name      the name of the file for messages
    worker    returns the client of the process that reads Parquet files
    """
    name, series = name or str(file), series or NewSeries()
    try:
        source = input_file(file, name, format_, options.encoding)
        if source.format == "parquet":
            with worker() as reader:
                yield from read_parquet(source, options, series, reader)
        else:
            yield from _reader(source, options)(source, options, series)
    except ParquetRefused as error:
        raise SourceError(str(error)) from error
    except (UnicodeError, pa.ArrowInvalid, csv.Error, OSError) as error:
        if isinstance(error, UnicodeDecodeError) or _NOT_TEXT in str(error):
            likely = "utf-16" if _begins_as_utf_16(file) else "latin-1"
            said = f"{name} is not {options.encoding}: pass its encoding, such as --encoding {likely}"
            raise SourceError(said) from error
        raise SourceError(f"{name}: {error}") from error


def _reader(
    source: InputFile, options: SourceOptions
) -> Callable[[InputFile, SourceOptions, Series], Iterator[SourceBatch]]:
    if source.format == "tsfile":
        raise SourceError(f"{source.name} is a TsFile: saros import and LOAD load it as it is")
    if source.format == "csv":
        return read_annotated_csv if is_annotated(source, options) else read_csv
    return read_json_lines


def _begins_as_utf_16(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(2) in _UTF_16
