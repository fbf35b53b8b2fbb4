"""Convert a pipeline's YAML file strictly to typed values.

An error names the key that is unknown or the value whose type is wrong, and its line and path.

    database: ./data                    a folder (served while the pipeline runs) or saros://...
    user, password_file, tls_ca
    spark: {master: "local[*]", conf: {key: value}}
    steps: [{import: ...}, {rollup: ...}, {export: ...}, {report: ...}]

Paths are relative to the pipeline's file. Pure, apart from reading that file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import fields

from saros_spark.base.errors import SourceError

#: The durations of the SQL dialect.
_DURATION = re.compile(r"(\d+(y|mo|w|d|h|m|s|ms|us|ns))+", re.IGNORECASE)


class TimeColumn(msgspec.Struct, frozen=True):
    """The time column: text in a pattern of Spark (`yyyy-MM-dd HH:mm:ss`, by default ISO), or integers of a unit."""

    column: str = "time"
    format: str | None = None
    zone: str = "UTC"
    unit: Literal["s", "ms", "us"] | None = None


class Rule(msgspec.Struct, frozen=True):
    """A condition in Spark's SQL that rows must meet, like SQL's CHECK.

    The condition's name is the reason that rejected rows get.
    """

    name: str
    keep: str


class Import(msgspec.Struct, frozen=True):
    """The step import: it writes the rows of files to devices.

    `device` is a template. `{file}` stands for the name of the file without its suffix, and the name of a column in
    braces stands for the column's value.
    """

    files: list[str]
    device: str = ""
    format: Literal["csv", "parquet", "json", "tsfile"] = "csv"
    delimiter: str = ","
    time: TimeColumn = msgspec.field(default_factory=TimeColumn)
    #: The columns to import, each with its measurement. If empty, all columns are imported under their names.
    columns: dict[str, str] = msgspec.field(default_factory=dict)
    #: Spark's types of the columns of text files. Columns without an entry are double.
    types: dict[str, str] = msgspec.field(default_factory=dict)
    rules: list[Rule] = msgspec.field(default_factory=list)
    #: Tells which row is written if several rows have the same device and time.
    duplicates: Literal["last", "first"] = "last"
    #: The folder to which rejected rows are written as JSON lines with their reasons.
    rejected: str | None = None
    #: If the share of rejected rows exceeds this, the step fails and writes no points.
    rejected_max: float = 0.0


class Rollup(msgspec.Struct, frozen=True):
    """The step rollup: it writes aggregates of windows of devices to other devices.

    `into` may contain {device} (the last node) and {path} (all nodes after root).
    """

    devices: str
    interval: str
    into: str
    columns: list[str] = msgspec.field(default_factory=list)
    functions: list[str] = msgspec.field(default_factory=lambda: ["avg", "min_value", "max_value", "count"])
    start: str | None = None
    end: str | None = None


class Export(msgspec.Struct, frozen=True):
    """The step export: it writes devices to Parquet files, in a folder per device and time partition.

    It replaces the folder.
    """

    devices: str
    to: str
    columns: list[str] = msgspec.field(default_factory=list)
    partition: Literal["year", "month", "day", "none"] = "day"
    start: str | None = None
    end: str | None = None
    where: str | None = None


class Report(msgspec.Struct, frozen=True):
    """The step report: it writes one HTML file about gaps, outliers and drift of devices."""

    devices: str
    to: str
    columns: list[str] = msgspec.field(default_factory=list)
    title: str = "Data quality"
    #: The units of measurements, which the axes show.
    units: dict[str, str] = msgspec.field(default_factory=dict)
    #: The expected interval between points in seconds, or None for the median interval.
    interval_s: float | None = None
    #: A point is an outlier if its distance from the median exceeds this number of (scaled) median absolute deviations.
    outlier: float = 6.0
    start: str | None = None
    end: str | None = None


Step = Import | Rollup | Export | Report
_STEPS: dict[str, type[Step]] = {"import": Import, "rollup": Rollup, "export": Export, "report": Report}


class SparkSettings(msgspec.Struct, frozen=True):
    """Settings of the Spark session that is created if the caller passes no session."""

    master: str = "local[*]"
    conf: dict[str, str] = msgspec.field(default_factory=dict)


class Pipeline(msgspec.Struct, frozen=True):
    """A checked pipeline; `folder` is the folder of its file."""

    folder: Path
    database: str
    steps: tuple[Step, ...]
    spark: SparkSettings
    user: str | None = None
    password_file: str | None = None
    tls_ca: str | None = None

    def path(self, text: str) -> str:
        """Return a path of the file, resolved against its folder; URLs stay unchanged."""
        return text if "://" in text else str(self.folder / text)


def load(path: str | Path) -> Pipeline:
    """Return the pipeline of a file. Raises SourceError."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SourceError(f"{path} cannot be read: {why}") from error
    return parse(text, Path(path).resolve().parent)


def parse(text: str, folder: Path) -> Pipeline:
    """Return the pipeline of YAML text. Raises SourceError, which names the line and the key."""
    import yaml

    loader = _text_loader()(text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise SourceError("the file is empty; it needs a database and steps")
        return _pipeline(loader.construct_document(node), folder)
    except yaml.YAMLError as error:
        raise SourceError(f"not valid YAML: {error}") from error
    except _Invalid as error:
        raise SourceError(f"line {_line(node, error.key)}: {error}") from error
    finally:
        loader.dispose()


_Key = tuple[str | int, ...]


class _Invalid(Exception):
    """Raised for an invalid value or key. The error reports the line of `key`, which is by default the value's key."""

    def __init__(self, where: _Key, said: str, key: _Key | None = None) -> None:
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
        super().__init__(f"{path.lstrip('.') or 'the file'} {said}")
        self.key = where if key is None else key


def _text_loader() -> Any:
    """Return a YAML loader that keeps all scalars except null as text; the structs define the types.

    YAML would otherwise read a start of 2024-01-01 as a date, a column `no` as false, and a password_file of digits as
    a number.
    """
    import yaml

    class TextLoader(yaml.SafeLoader):
        """A safe loader that keeps scalars as text."""

    kept = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
    TextLoader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag in kept]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return TextLoader


def _line(node: Any, key: _Key) -> int:
    """Return the line of a key of the document or, if the key does not exist, of its last part that exists."""
    line = node.start_mark.line
    for part in key:
        if isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line
            continue
        found = next(((name, value) for name, value in node.value if name.value == part), None)
        if found is None:  # the key comes from a merge key
            break
        line, node = found[0].start_mark.line, found[1]
    return int(line) + 1


def _pipeline(document: object, folder: Path) -> Pipeline:
    known = {"database", "user", "password_file", "tls_ca", "spark", "steps"}
    values = _mapping(document, (), known)
    for name in ("database", "steps"):
        if name not in values:
            raise _Invalid((), f"has no {name}")
    if not isinstance(values["steps"], list) or not values["steps"]:
        raise _Invalid(("steps",), "must be a list of steps")
    steps = tuple(_step(value, ("steps", number)) for number, value in enumerate(values["steps"]))
    texts = {n: _value(values.get(n), str | None, (n,)) for n in ("user", "password_file", "tls_ca")}
    spark = _made(SparkSettings, values.get("spark") or {}, ("spark",))
    return Pipeline(folder, _value(values["database"], str, ("database",)), steps, spark, **texts)


def _step(value: object, where: _Key) -> Step:
    step = _mapping(value, where, set(_STEPS))
    if len(step) != 1:
        raise _Invalid(where, f"must be one of {', '.join(_STEPS)}, with its settings")
    ((name, settings),) = step.items()
    made: Step = _made(_STEPS[name], settings, (*where, name))
    if isinstance(made, Rollup) and not _DURATION.fullmatch(made.interval):
        raise _Invalid((*where, name, "interval"), f"must be a duration such as 1m, 1h or 1d, not {made.interval!r}")
    return made


def _mapping(value: object, where: _Key, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Invalid(where, f"must be a mapping, not {value!r}")
    for key in value:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, 1)
            hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(sorted(known))}"
            raise _Invalid(where, f"has no key {key}: {hint}", (*where, key))
    return value


def _made(type_: type[Any], value: object, where: _Key) -> Any:
    """Return the struct of a mapping."""
    hints = get_type_hints(type_)
    given = _mapping(value, where, set(hints))
    for one in fields(type_):
        if one.required and one.name not in given:
            raise _Invalid(where, f"has no {one.name}")
    return type_(**{name: _value(item, hints[name], (*where, name)) for name, item in given.items()})


def _value(value: object, hint: Any, where: _Key) -> Any:
    """Convert a value, whose scalars are text, to the type of the hint."""
    if isinstance(hint, type) and hint in (TimeColumn, Rule):
        return _made(hint, value, where)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is list:
        if not isinstance(value, list):
            raise _Invalid(where, f"must be a list, not {value!r}")
        return [_value(item, arguments[0], (*where, number)) for number, item in enumerate(value)]
    if origin is dict:
        if not isinstance(value, dict):
            raise _Invalid(where, f"must be a mapping, not {value!r}")
        return {str(key): _value(item, arguments[1], (*where, key)) for key, item in value.items()}
    if origin is Literal:
        if value not in arguments:
            raise _Invalid(where, f"must be one of {', '.join(map(str, arguments))}, not {value!r}")
        return value
    if arguments:  # X | None
        return None if value is None else _value(value, arguments[0], where)
    if not isinstance(value, str):
        raise _Invalid(where, f"must be {'a text' if hint is str else 'a number'}, not {value!r}")
    if hint is str:
        return value
    try:
        return float(value)
    except ValueError:
        raise _Invalid(where, f"must be a number, not {value!r}") from None
