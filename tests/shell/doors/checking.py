"""A check that writes a frame through one door into a database. All doors out of it must return the same points.

A door is a way into or out of a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st
from shell.doors import doors_in, doors_out
from shell.doors.frames import Frame, Points, frames, quoted
from shell.doors.places import Place, Places

from saros_storage.base.paths import quote_node

FORMATS = ("csv", "json", "parquet", "tsfile")
ZONES = ("UTC", "Asia/Kolkata", "America/New_York", "Europe/Amsterdam")


@dataclass(frozen=True)
class Walk:
    """A frame, and the options with which it is written, exported and imported again.

    exists   True if the series are created before the frame is written
    export   the file format of the export
    typed    True if a text format names the types of columns
    zone     the time zone of the exported times
    """

    frame: Frame
    exists: bool
    export: str
    typed: bool
    zone: str


@st.composite
def walks(draw: st.DrawFn) -> Walk:
    """Draw a frame and the options of its export."""
    frame = draw(frames())
    export = draw(st.sampled_from(FORMATS if frame.moments else FORMATS[2:]))
    return Walk(frame, draw(st.booleans()), export, draw(st.booleans()), draw(st.sampled_from(ZONES)))


def check(places: Places, door: str, walk: Walk) -> None:
    """Write the walk's frame through the door. Raises AssertionError, saros.Error."""
    place = places.of("first", walk.frame.unit)
    exists = walk.exists or door in doors_in.UNTYPED
    try:
        if exists:
            _create(place, walk.frame)
        written = doors_in.DOORS[door](place, walk.frame)
        if not exists and door not in doors_in.MAKE_STRINGS:
            written = _with_texts(written)
        written = written if exists else _with_points(written)
        if written.columns:
            _check_cursors(place, written)
            _check_files(place, places.of("second", written.unit), written, walk)
    finally:
        for name in ("first", "second"):
            _drop(places.of(name, walk.frame.unit), walk.frame)


def _create(place: Place, frame: Frame) -> None:
    if frame.aligned:
        listed = ", ".join(f"{quoted(name)} {type_}" for name, (type_, _) in frame.columns.items())
        place.connection.execute(f"create aligned timeseries {frame.source}({listed})")
    else:
        for name, (type_, _) in frame.columns.items():
            place.connection.execute(f"create timeseries {frame.source}.{quoted(name)} {type_}")


def _drop(place: Place, frame: Frame) -> None:
    database = ".".join(frame.device.split(".")[:2])
    if place.connection.execute(f"show databases {database}").fetchall():
        place.connection.execute(f"delete database {database}")


def _with_texts(frame: Frame) -> Frame:
    """Return the frame with the types of series that were created from Arrow's types: TEXT instead of STRING."""
    columns = {name: ("TEXT" if t == "STRING" else t, values) for name, (t, values) in frame.columns.items()}
    return Frame(frame.unit, frame.device, frame.aligned, frame.moments, frame.times, columns)


def _with_points(frame: Frame) -> Frame:
    """Return the frame with only the columns that create series, which have at least one value."""
    return frame.only(lambda name, _: any(value is not None for value in frame.columns[name][1]))


def _values(points: Points) -> doors_out.Values:
    return {name: values for name, (_, values) in points.items()}


def _types(place: Place, frame: Frame) -> dict[str, str]:
    found = place.connection.execute(f"show timeseries {frame.source}.*").fetchall()
    types = {path: type_ for path, _, _, type_, *_ in found}
    return {name: str(types.get(frame.path(name))) for name in frame.columns}


def _check_cursors(place: Place, frame: Frame) -> None:
    _same("types", {name: type_ for name, (type_, _) in frame.columns.items()}, _types(place, frame))
    expected = _values(frame.points())
    for name, read in doors_out.CURSORS.items():
        if name == "pandas":
            held = doors_out.in_pandas(frame)
            if held.columns:
                _same(name, _values(held.points()), read(place, held))
        elif name != "moments" or frame.moments:
            _same(name, expected, read(place, frame))


def _check_files(place: Place, other: Place, frame: Frame, walk: Walk) -> None:
    """Export, read the file with other libraries, and import it into another database."""
    if walk.export == "parquet" and "Time" in walk.frame.columns:
        return  # the export is refused because the file would have two columns called Time
    typed = walk.export in ("csv", "json") and (walk.typed or not all(map(_is_plain, walk.frame.columns)))
    options = ["--zone", walk.zone, *(["--types"] if typed else [])]
    file = doors_out.export(place, frame, f"out.{walk.export}", *options)
    expected = _values(frame.points())
    if walk.export in doors_out.READERS:
        found = doors_out.READERS[walk.export](file, frame)
        _same(f"the file {file.name}", _without_empty(expected, walk), _without_empty(found, walk))
    if not any(expected.values()):
        return
    if walk.export in ("csv", "json") and not typed:
        _create(other, frame)
        other.import_files("--device", frame.device, str(file))
    else:
        other.import_files(str(file))
    present = _with_points(frame)
    _same("types of the copy", {name: type_ for name, (type_, _) in present.columns.items()}, _types(other, present))
    _same(f"the copy of {file.name}", _values(present.points()), doors_out.arrow(other, present))


def _without_empty(values: doors_out.Values, walk: Walk) -> doors_out.Values:
    """Remove empty texts if the export is a CSV: Python's `csv` reads a missing value as an empty text."""
    if walk.export != "csv":
        return {name: points for name, points in values.items() if points}
    rest = {name: {t: v for t, v in points.items() if v != ""} for name, points in values.items()}
    return {name: points for name, points in rest.items() if points}


def _is_plain(name: str) -> bool:
    """Return whether the name is read back unchanged from a header without types."""
    return quote_node(name) == name and name.lower() != "time"


def _same(what: str, expected: Mapping[str, object], found: Mapping[str, object]) -> None:
    differing = [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
    if differing:
        shown = "; ".join(f"{name!r}: expected {expected.get(name)}, found {found.get(name)}" for name in differing)
        raise AssertionError(f"{what}: {shown}")
