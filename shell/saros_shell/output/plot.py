"""Charts of a result in the terminal, drawn with braille patterns: one chart per series, one below the other.

    root.plant.pump1.temperature
     25.3 │⠀⠀⠀⡠⠒⠢⡀⠀        a character has 2 x 4 dots
          │⠀⡠⠊⠀⠀⠀⠈⠢
     20.1 │⠊⠀⠀⠀⠀⠀⠀⠀
          └┬──────┬──      a tick at each multiple of a round step of time
           08:00  08:15

All points in one column of dots are drawn as a vertical line from the least value to the greatest. Two columns are not
connected across a gap: an interval between points that is at least 1.9 times as long as the 90th percentile of the
series' intervals. Therefore, a window without points is visible, and a series is connected even if the result also has
a series with a higher rate.

Pure: no terminal. NumPy does the work for each point, and Python code runs only once for each column.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from saros_shell.output.render import display_width, iso_times

Numbers = npt.NDArray[np.float64]
Times = npt.NDArray[np.int64]

#: The maximum number of charts on a screen. With more charts, each chart would be too low to read.
SERIES_MAX = 8
ROWS_MIN, ROWS_MAX = 4, 16
#: The minimum number of characters from one tick's label to the next.
_TICK_COLUMNS = 18
_GAP = 1.9
_USUAL = 0.9
#: For the row and column of a dot, its bit in a braille pattern.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], dtype=np.uint8)
_BRAILLE = 0x2800
_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3_600, 86_400
_STEPS = (
    *(m * _SECOND for m in (1, 2, 5, 10, 15, 30)),
    *(m * _MINUTE for m in (1, 2, 5, 10, 15, 30)),
    *(m * _HOUR for m in (1, 2, 3, 6, 12)),
    *(m * _DAY for m in (1, 2, 4, 7, 14, 28, 91, 182, 365, 730, 1826, 3652)),
)
_TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class NotPlottableError(Exception):
    """The result cannot be drawn. The message is the reason."""


class _Series(msgspec.Struct, frozen=True):
    """The points of a series, ordered by time."""

    name: str
    times: Times
    values: Numbers


def plot(table: pa.Table, columns: int, lines: int) -> Iterator[str]:
    """Yield the lines of the charts. A few charts fit into `columns` x `lines`. Raises NotPlottableError."""
    series = _series_of(table)
    shown = series[:SERIES_MAX]
    left = min(int(one.times[0]) for one in shown)
    right = max(int(one.times[-1]) for one in shown)
    rows = max(ROWS_MIN, min(ROWS_MAX, (lines - 3) // len(shown) - 1))
    scales = [_scale(one.values, rows) for one in shown]
    margin = max(len(label) for labels in scales for label in labels) + 2
    width = max(columns - margin - 1, _TICK_COLUMNS)
    for one, labels in zip(shown, scales, strict=True):
        yield one.name
        drawn = _braille(_canvas(one, left, right, width, rows))
        yield from (f"{label:>{margin - 1}} │{text}" for label, text in zip(labels, drawn, strict=True))
    yield from (" " * margin + line for line in _time_axis(table.schema.field("Time").type, left, right, width))
    if len(series) > len(shown):
        yield f"({len(shown)} of {len(series)} series)"


def _series_of(table: pa.Table) -> list[_Series]:
    """Return the numeric columns as series, one per device if there is a Device column. Raises NotPlottableError."""
    if "Time" not in table.column_names or not pa.types.is_timestamp(table.schema.field("Time").type):
        raise NotPlottableError("there is no column of times")
    parts = [("", table)]
    if "Device" in table.column_names:
        devices = table["Device"].unique().to_pylist()
        parts = [(f"{device}.", table.filter(pc.equal(table["Device"], device))) for device in devices]
    found = [
        made
        for prefix, part in parts
        for name in part.column_names
        if name not in ("Time", "Device") and (made := _series(prefix + name, part["Time"], part[name])) is not None
    ]
    if not found:
        raise NotPlottableError("there are no numbers")
    return found


def _series(name: str, times: pa.ChunkedArray, column: pa.ChunkedArray) -> _Series | None:
    type_ = column.type
    if not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)):
        return None
    values = column.cast(pa.float64() if not pa.types.is_boolean(type_) else pa.int8()).cast(pa.float64())
    numbers = values.to_numpy()
    usable = np.isfinite(numbers)
    if not usable.any():
        return None
    ticks = times.cast(pa.timestamp(times.type.unit)).cast(pa.int64()).to_numpy()[usable]
    order = np.argsort(ticks, kind="stable")
    return _Series(name, ticks[order], numbers[usable][order])


def _scale(values: Numbers, rows: int) -> list[str]:
    """Return the labels of a chart's rows: the greatest and the least value, or the only value."""
    low, high = f"{values.min():.6g}", f"{values.max():.6g}"
    if values.min() == values.max():
        return [*[""] * (rows // 2), low, *[""] * (rows - rows // 2 - 1)]
    return [high, *[""] * (rows - 2), low]


def _canvas(series: _Series, left: int, right: int, width: int, rows: int) -> npt.NDArray[np.bool_]:
    """Return the dots of a series as an array of shape (4 * rows, 2 * width), from the top down."""
    dots = np.zeros((rows * 4, width * 2), dtype=np.bool_)
    x = _scaled(series.times.astype(np.float64), left, right, width * 2)
    y = rows * 4 - 1 - _scaled(series.values, series.values.min(), series.values.max(), rows * 4)
    begins = np.flatnonzero(np.diff(x, prepend=-1))
    tops, bottoms = np.minimum.reduceat(y, begins), np.maximum.reduceat(y, begins)
    for at, top, bottom in zip(x[begins], tops, bottoms, strict=True):
        dots[top : bottom + 1, at] = True
    connected = np.diff(series.times) < _gap(series.times)
    for begin in begins[1:]:
        if connected[begin - 1]:
            _draw_line(dots, (x[begin - 1], y[begin - 1]), (x[begin], y[begin]))
    return dots


def _scaled(values: Numbers, low: float, high: float, dots: int) -> npt.NDArray[np.int64]:
    """Return the position of each value in dots. If the range is empty, all positions are in the middle."""
    if high <= low:
        return np.full(len(values), (dots - 1) // 2)
    return np.rint((values - low) / (high - low) * (dots - 1)).astype(np.int64)


def _gap(times: Times) -> float:
    """Return the minimum length of a gap."""
    return float(np.quantile(np.diff(times), _USUAL)) * _GAP if len(times) > 2 else np.inf


def _draw_line(dots: npt.NDArray[np.bool_], begin: tuple[int, int], end: tuple[int, int]) -> None:
    steps = max(abs(end[0] - begin[0]), abs(end[1] - begin[1])) + 1
    dots[
        np.rint(np.linspace(begin[1], end[1], steps)).astype(int),
        np.rint(np.linspace(begin[0], end[0], steps)).astype(int),
    ] = True


def _braille(dots: npt.NDArray[np.bool_]) -> Iterator[str]:
    height, width = dots.shape
    cells = dots.reshape(height // 4, 4, width // 2, 2)
    patterns = np.einsum("rdce,de->rc", cells.astype(np.uint8), _DOTS)
    return ("".join(chr(_BRAILLE + int(pattern)) for pattern in row) for row in patterns)


def _time_axis(type_: pa.DataType, left: int, right: int, width: int) -> tuple[str, str]:
    """Return the time axis below the charts, with its ticks, and the line with the labels of these ticks."""
    unit = _TICKS_PER_SECOND[type_.unit]
    wanted = (right - left) / unit / max(width // _TICK_COLUMNS, 1)
    step = next((step for step in _STEPS if step >= wanted), _STEPS[-1]) * unit
    shift = _offset(type_, left)
    first = -(-(left + shift) // step) * step - shift
    places = list(range(first, right + 1, step))
    if len(places) < 2 or right - left < unit:
        places = sorted({left, right})
    axis, labels = ["─"] * width, ""
    texts = _time_texts(pa.array(places, pa.timestamp(type_.unit)).cast(type_), step // unit)
    for at, text in zip(_scaled(np.array(places, dtype=np.float64), left, right, width), texts, strict=True):
        axis[at] = "┬"
        begin = max(min(int(at), width - display_width(text)), 0)
        if begin > len(labels) or not labels:
            labels = labels.ljust(begin) + text
    return "└" + "".join(axis), " " + labels


def _offset(type_: pa.DataType, at: int) -> int:
    """Return the offset of local time from UTC, in ticks."""
    if not type_.tz:
        return 0
    moment = pa.array([at], pa.timestamp(type_.unit)).cast(type_)
    return int(pc.local_timestamp(moment).cast(pa.int64())[0].as_py()) - at


def _time_texts(times: pa.Array, step_s: int) -> list[str]:
    """Return the labels: the date where the day changes, and the time of day if a step is shorter than a day."""
    texts = [str(text).rstrip("Z") for text in iso_times(times)]
    end = 10 if step_s >= _DAY else 16 if step_s >= _MINUTE else 19 if len(texts) > 2 else None
    made = [texts[0][:end].replace("T", " ")]
    for before, text in pairwise(texts):
        again = before[:10] == text[:10] and end != 10
        made.append(text[11:end] if again else text[:end].replace("T", " "))
    return made
