"""Random frames of a device, and the points that they contain.

A point's value is compared in a canonical form: floats by their bits, days and instants as integers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import count

import pyarrow as pa
from hypothesis import strategies as st

from saros_storage.base.paths import quote_node, split_path, unquote_node
from saros_storage.base.types import TIME_MAX, TIME_MIN

#: For each series, its type, and its values by time.
Points = dict[str, tuple[str, dict[int, object]]]

UNITS = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH = date(1970, 1, 1).toordinal()
#: Bounds of dates and `datetime` values, in seconds since 1970. The upper bound is exclusive.
_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800
#: Numbers for the names of databases: each frame is written into a new database.
_NUMBERS = count()

ODD_NAMES = [
    "time",
    "Time",
    "device",
    "select",
    "1",
    "1e5",
    "a.b",
    "a b",
    " a",
    "a`b",
    "`a`",
    "`",
    "*",
    "**",
    "d*",
    "'",
]
ODD_NAMES += ['"', ",", ";", "a(INT32)", "(TEXT)", "root.a", "root", "läuft", "🙂", "a/b", "\\", "%s", "{device}", "?"]
ODD_NAMES += [":a", "a\tb", "a\nb", "#", "--", "=", "a=b,c d", "null", "\x03", "__index_level_0__", "_field", "\ufeff"]
ODD_TEXTS = [
    "00123",
    "true",
    "1e5",
    "NaN",
    "null",
    "NA",
    "-",
    "2024-01-01",
    "0x00ff",
    "",
    " ",
    " lead",
    "end ",
    'a,"b"',
]
ODD_TEXTS += [
    "l\nm",
    "l\r\nm",
    "\r",
    "\n",
    '"',
    '""',
    "'",
    ";",
    "\t",
    "\\",
    "\\n",
    '\\"',
    "\x00",
    "\ufeff",
    "\u2028",
    "\x1c",
]
ODD_TEXTS += ["\x85", "🙂", "None", "9223372036854775807"]

_CHARACTERS = st.characters(exclude_categories=["Cs"])
#: Names cannot contain the character U+0000, which ends a name in Arrow's C interface.
_NAME_CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
_TEXTS = st.sampled_from(ODD_TEXTS) | st.text(_CHARACTERS, max_size=8)
_NAMES = (
    st.sampled_from(["a", "b", "temperature"])
    | st.sampled_from(ODD_NAMES)
    | st.text(_NAME_CHARACTERS, min_size=1, max_size=5)
)


def _floats(width: int) -> st.SearchStrategy[float]:
    """Return a strategy of floats. Its NaNs have no payload, because no text format preserves a payload."""
    return st.floats(width=width).map(lambda value: float("nan") if value != value else value)  # type: ignore[arg-type]


def _whole(bits: int) -> st.SearchStrategy[int]:
    extremes = st.sampled_from([-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, -1, min(2**53 + 1, 2 ** (bits - 1) - 2)])
    return extremes | st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@dataclass(frozen=True)
class Frame:
    """Times, and columns: (type, values) for each raw name of a series. None is an absent point.

    moments  True if a `datetime` can represent all times and instants: years 1 to 9999, whole microseconds
    """

    unit: str
    device: str
    aligned: bool
    moments: bool
    times: tuple[int, ...]
    columns: Mapping[str, tuple[str, tuple[object, ...]]]

    def points(self) -> Points:
        """Return the points of all series, including series without points."""
        return {
            name: (type_, {t: canonical(type_, v) for t, v in zip(self.times, values, strict=True) if v is not None})
            for name, (type_, values) in self.columns.items()
        }

    def only(self, keep: Callable[[str, str], bool]) -> Frame:
        """Return the frame with only the columns whose name and type `keep` accepts."""
        return replace(self, columns={name: column for name, column in self.columns.items() if keep(name, column[0])})

    def arrays(self) -> dict[str, pa.Array]:
        """Return the columns as Arrow arrays of their types."""
        return {name: arrow_column(type_, values, self.unit) for name, (type_, values) in self.columns.items()}

    def path(self, name: str) -> str:
        """Return the canonical path of a series."""
        return f"{self.device}.{quote_node(name)}"

    @property
    def source(self) -> str:
        """The device in SQL."""
        root, database, device = split_path(self.device)
        return f"{root}.{database}.{quoted(unquote_node(device))}"

    def rows(self) -> list[tuple[int, dict[str, object]]]:
        """Return each time with its non-null values by name."""
        names = list(self.columns)
        cells = zip(*(values for _, values in self.columns.values()), strict=True) if names else [()] * len(self.times)
        return [
            (moment, {name: value for name, value in zip(names, row, strict=True) if value is not None})
            for moment, row in zip(self.times, cells, strict=True)
        ]


def quoted(name: str) -> str:
    """Return a name with quotes for SQL, because even a plain name may be a keyword."""
    return "`" + name.replace("`", "``") + "`"


def arrow_column(type_: str, values: Sequence[object], unit: str) -> pa.Array:
    """Return values of one of the ten types as an array."""
    stamp = pa.timestamp(unit, "UTC")
    types = {"BOOLEAN": pa.bool_(), "INT32": pa.int32(), "INT64": pa.int64(), "FLOAT": pa.float32()}
    types |= {"DOUBLE": pa.float64(), "BLOB": pa.binary(), "DATE": pa.date32(), "TIMESTAMP": pa.int64()}
    array = pa.array(values, types.get(type_, pa.string()), from_pandas=False)
    return array.cast(stamp) if type_ == "TIMESTAMP" else array


def are_exact(values: Sequence[object]) -> bool:
    """Return whether a DOUBLE can represent all of the integers exactly."""
    return all(abs(value) <= 2**53 for value in values if isinstance(value, int))


def canonical(type_: str, value: object) -> object:
    """Return the canonical form of the value. Two canonical forms are equal only if the values have the same bits."""
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack("d" if type_ == "DOUBLE" else "f", value)
    if isinstance(value, date):
        return value.toordinal() - _EPOCH
    return value


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    """Draw a frame of up to five columns and six rows."""
    unit = draw(st.sampled_from(list(UNITS)))
    moments = draw(st.sampled_from([True, True, True, False]))
    times = _times(unit, moments=moments)
    values: dict[str, st.SearchStrategy[object]] = {
        "BOOLEAN": st.booleans(),
        "INT32": _whole(32),
        "INT64": _whole(64),
        "FLOAT": _floats(32),
        "DOUBLE": _floats(64),
        "TEXT": _TEXTS,
        "STRING": _TEXTS,
        "BLOB": st.binary(max_size=6) | st.sampled_from([b"\x00\xff", b"", b"0x", b'a,"\n']),
        "DATE": st.dates() | st.sampled_from([date.min, date.max, date(1970, 1, 1)]),
        "TIMESTAMP": times if moments else times | _whole(64),
    }
    stamps = draw(st.lists(times, min_size=1, max_size=6, unique=True))
    names = draw(st.lists(_NAMES, min_size=1, max_size=5, unique=True))
    columns = {}
    for name in names:
        type_ = draw(st.sampled_from(list(values)))
        cells = st.lists(st.none() | values[type_], min_size=len(stamps), max_size=len(stamps))
        columns[name] = type_, tuple(draw(cells))
    device = f"root.g{next(_NUMBERS)}.{quote_node(draw(_NAMES.filter(_is_no_template)))}"
    return Frame(unit, device, draw(st.booleans()), moments, tuple(stamps), columns)


def _is_no_template(name: str) -> bool:
    """Return whether the name has no brace, which would begin a field in the template of `--device`."""
    return "{" not in name


def _times(unit: str, *, moments: bool) -> st.SearchStrategy[int]:
    if not moments:
        extremes = st.sampled_from([TIME_MIN + 1, TIME_MAX - 1, 0, -1, _YEAR_10000 * UNITS[unit] % 2**62])
        return extremes | st.integers(TIME_MIN + 1, TIME_MAX - 1)
    step = 1_000 if unit == "ns" else 1
    day = 86_400 * UNITS[unit]  # so that local times are within the bounds, too
    first = (max(_YEAR_1 * UNITS[unit], TIME_MIN) + day) // step
    last = (min(_YEAR_10000 * UNITS[unit], TIME_MAX) - day) // step
    today = 1_700_000_000 * UNITS[unit] // step
    ticks = st.sampled_from([first, last, 0, -1, 1, today]) | st.integers(first, last) | st.integers(today, today + 9)
    return ticks.map(lambda tick: tick * step)
