"""The step report: one self-contained HTML file about the quality of series.

    Relation -> a statement per series -> Spark's tasks: points -> Quality -> page/report.html.jinja

A task reads one series at a time, to bound its memory, and returns only figures. The page has a chart of each of the
worst series (uPlot, with hover and zoom; an SVG drawing for print), the worst device first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from saros_spark.base.connecting import connection_of
from saros_spark.base.errors import SourceError
from saros_spark.base.options import Connecting
from saros_spark.base.worker_gc import collect_garbage
from saros_spark.pipeline.definition import Export, Import, Report
from saros_spark.pipeline.quality import GAP, LONG, MEDIUM, Quality, assess
from saros_spark.pipeline.steps import Context
from saros_spark.read.planning import Slice
from saros_spark.read.scanning import Relation
from saros_storage.base.paths import unquote_node
from saros_storage.base.types import DataType

if TYPE_CHECKING:
    from markupsafe import Markup

#: The maximum number of charts. This limits the page to some megabytes, and browsers can show such a page.
_CHARTS_MAX = 500
#: The number of tasks for each of Spark's slots. With several tasks per slot, no slot is idle for long at the end.
_TASKS_PER_SLOT = 3
#: The size of the drawing for print.
_WIDTH, _HEIGHT = 600, 90


class Series(msgspec.Struct, frozen=True):
    """A series to assess: the names that the page shows for it, and the statement that reads it."""

    device: str
    measurement: str
    sql: str


class Assessed(msgspec.Struct, frozen=True):
    """A series of the page; `number` is its position on the page."""

    number: int
    series: Series
    quality: Quality
    unit: str

    @property
    def has_chart(self) -> bool:
        """True if the page shows a chart of the series."""
        return self.number < _CHARTS_MAX


def write_report(context: Context, step: Report) -> str:
    """Write the report; return its summary. Raises SourceError (no series of numbers, or an unwritable file)."""
    options = context.options(step.devices, columns=",".join(step.columns), startTime=step.start, endTime=step.end)
    relation = Relation(options)
    wanted = _series_of(relation)
    if not wanted:
        raise SourceError(f"{step.devices} has no numeric series")
    ticks_per_second = relation.unit.value

    def assessed(series: Series) -> tuple[Series, Quality | None]:
        return series, _assess(series, options.connecting, ticks_per_second, step)

    spark = context.spark.sparkContext
    tasks = min(len(wanted), _TASKS_PER_SLOT * spark.defaultParallelism)
    found = spark.parallelize(wanted, tasks).map(assessed).collect()
    known = [(series, quality) for series, quality in found if quality is not None]
    known.sort(key=lambda pair: (-pair[1].score, pair[0].device, pair[0].measurement))
    rows = [Assessed(n, *pair, step.units.get(pair[0].measurement, "")) for n, pair in enumerate(known)]
    target = Path(context.pipeline.path(step.to))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(render_page(context, step, rows, target), encoding="utf-8")
    except OSError as error:
        raise SourceError(f"cannot write {target}: {error.strerror}") from error
    gaps = {name: sum(row.quality.gaps[name] for row in rows) for name in ("long", "medium", "short")}
    outliers = sum(row.quality.outliers for row in rows)
    told = ", ".join(f"{count} {name}" for name, count in gaps.items())
    return f"{len(rows)} series: {sum(gaps.values())} gaps ({told}), {outliers} outliers, in {target}"


def _series_of(relation: Relation) -> list[Series]:
    start, end = relation.span
    return [
        Series(device, unquote_node(name), relation.task(Slice((device,), (name,), start, end)).sql)
        for device, types in relation.catalogue.devices.items()
        for name, type_ in sorted(types.items())
        if type_.is_numeric or type_ is DataType.BOOLEAN
    ]


def _assess(series: Series, connecting: Connecting, ticks_per_second: int, step: Report) -> Quality | None:
    """Read a series and return its quality; this runs in Spark's tasks."""
    read = connection_of(connecting).execute(series.sql).fetch_arrow()
    if read.num_columns < 3:  # the series was dropped
        return None
    read = read.drop_null()
    at = read.column(0).cast("int64").to_numpy() / ticks_per_second
    values = read.column(2).cast("float64").to_numpy()
    collect_garbage()
    return assess(at, values.astype(np.float64), step.interval_s, step.outlier)


# ---------------------------------------------------------------------------------------------- the page


def render_page(context: Context, step: Report, rows: Sequence[Assessed], target: Path) -> str:
    """Return the HTML page for `rows`, which are sorted with the worst series first; `target` is the page's path."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    page = Path(__file__).parent / "page"
    environment = Environment(
        loader=PackageLoader("saros_spark.pipeline", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"time": time_text, "seconds": seconds_text, "number": number_text, "drawing": _drawing}
    devices: dict[str, list[Assessed]] = {}
    for row in rows:
        devices.setdefault(row.series.device, []).append(row)
    return environment.get_template("report.html.jinja").render(
        step=step,
        rows=rows,
        devices=devices,
        steps=_links(context, target),
        charts={row.number: _chart(row, devices[row.series.device]) for row in rows if row.has_chart},
        rules={"gap": GAP, "medium": MEDIUM, "long": LONG, "charts": _CHARTS_MAX},
        # Files of this package and of the library, without any data.
        style=Markup((page / "uPlot.min.css").read_text("utf-8") + (page / "report.css").read_text("utf-8")),  # noqa: S704
        library=Markup((page / "uPlot.iife.min.js").read_text("utf-8").partition("*/")[2]),  # noqa: S704
        licence=Markup((page / "uPlot.LICENSE.txt").read_text("utf-8")),  # noqa: S704
        script=Markup((page / "report.js").read_text("utf-8")),  # noqa: S704
    )


def _links(context: Context, target: Path) -> list[dict[str, Any]]:
    """Return the results of the previous steps, with the paths of their files relative to the report's folder."""
    found = []
    for step, said in context.done:
        to = step.rejected if isinstance(step, Import) else step.to if isinstance(step, Export) else None
        label = "rejected rows" if isinstance(step, Import) else "Parquet"
        link = None if to is None or "://" in to else os.path.relpath(context.pipeline.path(to), target.parent)
        found.append({"name": type(step).__name__.lower(), "said": said, "to": to, "label": label, "link": link})
    return found


def _chart(row: Assessed, of_device: Sequence[Assessed]) -> dict[str, Any]:
    """Return the line and the marks of a series, and the flags of its device, for the page's script."""
    quality = row.quality
    flags = [] if quality.runs is not None else [one for one in of_device if one.quality.runs]
    return {
        "name": row.series.measurement,
        "unit": row.unit,
        "line": [quality.line.at, quality.line.mean, quality.line.low, quality.line.high],
        "gaps": [[gap.start, gap.end, gap.severity] for gap in quality.marked_gaps if gap.severity != "short"],
        "outliers": quality.marked_outliers,
        "flags": [{"name": one.series.measurement, "runs": one.quality.runs} for one in flags],
        "sync": row.series.device,
    }


def _drawing(row: Assessed) -> Markup:
    """Return the line as SVG, for print and for browsers without scripts. It contains only numbers."""
    from markupsafe import Markup

    quality = row.quality
    span, height = quality.last - quality.first or 1.0, quality.most - quality.least or 1.0

    def x(at: float) -> float:
        return (at - quality.first) / span * _WIDTH

    def y(value: float) -> float:
        return _HEIGHT - 3 - (value - quality.least) / height * (_HEIGHT - 6)

    marks = "".join(
        f'<rect class="{gap.severity}" x="{x(gap.start):.1f}" width="{max(x(gap.end) - x(gap.start), 1):.1f}" y="0"'
        f' height="{_HEIGHT}"/>'
        for gap in quality.marked_gaps
        if gap.severity != "short"
    )
    dots = "".join(f'<circle cx="{x(at):.1f}" cy="{y(v):.1f}" r="2.5"/>' for at, v in quality.marked_outliers)
    path, moves = "", True
    for at, mean in zip(quality.line.at, quality.line.mean, strict=True):
        if mean is not None:
            path += f"M{x(at):.1f} {y(mean):.1f}h1" if moves else f"L{x(at):.1f} {y(mean):.1f}"
        moves = mean is None
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none"'
    return Markup(f'<svg {size} aria-hidden="true">{marks}<path d="{path}"/>{dots}</svg>')  # noqa: S704 - numbers


def time_text(seconds: float) -> str:
    """Return the text of a time in UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def seconds_text(seconds: float) -> str:
    """Return the text of a duration in its largest unit, such as 1.5 h."""
    for unit, width in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= width:
            return f"{seconds / width:,.3g} {unit}"
    return f"{seconds:.3g} s"


def number_text(value: float) -> str:
    """Return the text of a value with five digits."""
    return f"{value:.5g}"
