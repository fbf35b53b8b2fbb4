"""The output of `saros tsfile inspect`: tables, or one JSON object per device for programs.

    stored     bytes of pages in the file            ratio      encoded / stored: the compression ratio
    encoded    bytes after decompression             B/point    stored / points: bytes per point

The times of an aligned device have a separate row, and the figures of the device's columns do not include the times.
Because a file does not contain the unit of its times, times are printed as integers or, if the user gives the unit, as
dates.

Pure: surveys in, rows out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from saros_shell.output.render import float_text
from saros_storage.base.types import Scalar
from saros_storage.scan.reading import Statistics
from saros_storage.tsfile.file_outline import ChunkOutline, DeviceSurvey, PageSurvey, SeriesOutline

Row: TypeAlias = dict[str, object]
#: A function that prints a time.
TimeText = Callable[[int], str]
#: The maximum number of characters in a cell of a table. Longer texts are cut.
_CELL_CHARACTERS_MAX = 24
_TIMES = "(times)"


def time_text(unit: str | None) -> TimeText:
    """Return a function that prints times as integers or, with a unit, as dates."""
    if unit is None:
        return str
    return lambda time: f"{np.array(time, f'datetime64[{unit}]')}Z"


def device_rows(devices: Iterable[DeviceSurvey], time: TimeText) -> Iterator[Row]:
    """Yield a row per device."""
    for device in devices:
        columns = [s for s in device.series if s.type is not None]
        known = [s.statistics for s in device.series if s.statistics is not None]
        points = sum(s.statistics.count for s in columns if s.statistics is not None)
        stored = sum(c.stored for s in device.series for c in s.chunks)
        yield {
            "device": device.path,
            "aligned": "yes" if device.aligned else "no",
            "series": len(columns),
            "points": points,
            "first time": time(min(s.start for s in known)) if known else "",
            "last time": time(max(s.end for s in known)) if known else "",
            "stored": stored,
            "B/point": _rate(stored, points),
        }


def series_rows(devices: Iterable[DeviceSurvey], time: TimeText) -> Iterator[Row]:
    """Yield a row per series, and a row for the times of each aligned device."""
    for device in devices:
        for series in device.series:
            yield {
                "series": _path(device, series),
                "type": "" if series.type is None else series.type.name,
                "encoding": _joined_names(chunk.encoding.name for chunk in series.chunks),
                "compressor": _joined_names(chunk.compressor.name for chunk in series.chunks),
                "chunks": len(series.chunks),
                "pages": sum(len(chunk.pages) for chunk in series.chunks),
                **_span(series.statistics, time),
                **_sizes(
                    sum(c.stored for c in series.chunks), sum(c.size for c in series.chunks), _count(series.statistics)
                ),
                **_values(series.statistics, is_time=series.type is None),
            }


def chunk_rows(devices: Iterable[DeviceSurvey], time: TimeText) -> Iterator[Row]:
    """Yield a row per chunk."""
    for device, series, chunk in _chunks(devices):
        yield {
            "series": _path(device, series),
            "offset": chunk.offset,
            "encoding": chunk.encoding.name,
            "compressor": chunk.compressor.name,
            "pages": len(chunk.pages),
            **_span(chunk.statistics, time),
            **_sizes(chunk.stored, chunk.size, _count(chunk.statistics)),
            **_values(chunk.statistics, is_time=series.type is None),
        }


def page_rows(devices: Iterable[DeviceSurvey], time: TimeText) -> Iterator[Row]:
    """Yield a row per page."""
    for device, series, chunk in _chunks(devices):
        for page in chunk.pages:
            yield {
                "series": _path(device, series),
                "chunk": chunk.offset,
                "offset": page.offset,
                **_span(page.statistics, time),
                **_sizes(page.stored, page.size, _count(page.statistics)),
                **_values(page.statistics, is_time=series.type is None),
            }


def _chunks(devices: Iterable[DeviceSurvey]) -> Iterator[tuple[DeviceSurvey, SeriesOutline, ChunkOutline]]:
    for device in devices:
        for series in device.series:
            for chunk in series.chunks:
                yield device, series, chunk


def _path(device: DeviceSurvey, series: SeriesOutline) -> str:
    return f"{device.path} {_TIMES}" if series.type is None else f"{device.path}.{series.measurement}"


def _joined_names(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _count(statistics: Statistics | None) -> int:
    return 0 if statistics is None else statistics.count


def _span(statistics: Statistics | None, time: TimeText) -> Row:
    if statistics is None:
        return {"points": 0, "first time": "", "last time": ""}
    return {"points": statistics.count, "first time": time(statistics.start), "last time": time(statistics.end)}


def _sizes(stored: int, encoded: int, points: int) -> Row:
    return {"stored": stored, "encoded": encoded, "ratio": _rate(encoded, stored), "B/point": _rate(stored, points)}


def _rate(amount: int, of: int) -> str:
    return f"{amount / of:.2f}" if of else ""


def _values(statistics: Statistics | None, *, is_time: bool) -> Row:
    known = None if is_time else statistics
    names = {"first": "first", "last": "last", "minimum": "min", "maximum": "max", "total": "sum"}
    return {title: "" if known is None else _cell(getattr(known, name)) for name, title in names.items()}


def value_text(value: Scalar) -> str:
    """Return a value as text for a table."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, float):
        return float_text(value)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _cell(value: Scalar) -> str:
    text = value_text(value)
    return text if len(text) <= _CELL_CHARACTERS_MAX else text[: _CELL_CHARACTERS_MAX - 3] + "..."


# ---------------------------------------------------------------------------------------------- JSON


def device_to_json(device: DeviceSurvey, *, pages: bool) -> Mapping[str, object]:
    """Return a device as a JSON object, with its pages if `pages` is True."""
    return {
        "device": device.path,
        "aligned": device.aligned,
        "series": [_series_to_json(series, pages=pages) for series in device.series],
    }


def _series_to_json(series: SeriesOutline, *, pages: bool) -> Row:
    return {
        "measurement": series.measurement,
        "type": None if series.type is None else series.type.name,
        "statistics": _statistics_to_json(series.statistics),
        "chunks": [_chunk_to_json(chunk, pages=pages) for chunk in series.chunks],
    }


def _chunk_to_json(chunk: ChunkOutline, *, pages: bool) -> Row:
    words: Row = {
        "offset": chunk.offset,
        "encoding": chunk.encoding.name,
        "compressor": chunk.compressor.name,
        "stored": chunk.stored,
        "encoded": chunk.size,
        "statistics": _statistics_to_json(chunk.statistics),
    }
    return {**words, "pages": [_page_to_json(page) for page in chunk.pages] if pages else len(chunk.pages)}


def _page_to_json(page: PageSurvey) -> Row:
    statistics = _statistics_to_json(page.statistics)
    return {"offset": page.offset, "stored": page.stored, "encoded": page.size, "statistics": statistics}


def _statistics_to_json(statistics: Statistics | None) -> Row | None:
    if statistics is None:
        return None
    return {name: json_value(getattr(statistics, name)) for name in statistics.__struct_fields__}


def json_value(value: Scalar) -> Scalar:
    """Return a value for JSON: NaN, infinities and bytes become texts, because JSON lacks them."""
    if isinstance(value, bytes):
        return value.hex()
    return float_text(value) if isinstance(value, float) and not math.isfinite(value) else value
