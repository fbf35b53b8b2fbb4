"""The step report: gaps, outliers and drift of series, as one HTML file that needs nothing else.

    gap       two neighbours that are further apart than 1.5 times the expected distance
    outlier   |value - median| > outlier x 1.4826 x MAD (median absolute deviation; of constant series nothing)
    drift     (median of the last fifth of the time - of the first fifth) / (1.4826 x MAD)

1.4826 makes the MAD of a normal distribution its standard deviation. Medians are Spark's percentile_approx.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saros_spark.base.errors import SourceError
from saros_spark.pipeline.definition import Report
from saros_spark.pipeline.steps import Context, measurements_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_SCALE = 1.4826
_GAP = 1.5
_BUCKETS = 120
_WIDTH, _HEIGHT = 240, 36
_SERIES = ("device", "measurement")


def write_report(context: Context, step: Report) -> str:
    """Write the file. Raises SourceError (no numbers, or the file cannot be written)."""
    columns = step.columns or measurements_of(context, step.devices)
    if not columns:
        raise SourceError(f"{step.devices} has no series of numbers")
    points = context.read(
        step.devices, columns=columns, start=step.start, end=step.end, layout="narrow", valueType="double"
    )
    known = _with_statistics(points.where("not isnan(value)"), step).persist()
    try:
        rows = sorted(_figures(known, step).collect(), key=lambda row: (row["device"], row["measurement"]))
        lines = _lines(known)
    finally:
        known.unpersist()
    target = Path(context.pipeline.path(step.to))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_page(step, rows, lines), encoding="utf-8")
    except OSError as error:
        raise SourceError(f"cannot write {target}: {error.strerror}") from error
    gaps, outliers = (sum(row[name] for row in rows) for name in ("gaps", "outliers"))
    return f"{len(rows)} series: {gaps} gaps, {outliers} outliers, in {target}"


def _with_statistics(points: DataFrame, step: Report) -> DataFrame:
    """Points with what is known of their series. All of it is windows over a series: points are shuffled once."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    series = Window.partitionBy(*_SERIES)
    in_time = series.orderBy("at")
    whole = in_time.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    points = points.select(*_SERIES, F.col("time").cast("double").alias("at"), "value")
    points = points.withColumn("step", F.col("at") - F.lag("at").over(in_time))
    usual = F.percentile_approx("step", 0.5).over(whole) if step.interval_s is None else F.lit(step.interval_s)
    points = points.withColumns(
        {
            "first": F.min("at").over(whole),
            "last": F.max("at").over(whole),
            "median": F.percentile_approx("value", 0.5).over(whole),
            "expected": usual,
        }
    )
    points = points.withColumn("off", F.abs(F.col("value") - F.col("median")))
    return points.withColumn("mad", F.percentile_approx("off", 0.5).over(whole))


def _figures(known: DataFrame, step: Report) -> DataFrame:
    """A row per series."""
    from pyspark.sql import functions as F  # noqa: N812

    fifth = (F.col("last") - F.col("first")) / 5
    is_gap = F.col("step") > F.col("expected") * _GAP
    is_outlier = (F.col("mad") > 0) & (F.col("off") > F.col("mad") * (step.outlier * _SCALE))
    early = F.when(F.col("at") <= F.col("first") + fifth, F.col("value"))
    late = F.when(F.col("at") >= F.col("last") - fifth, F.col("value"))
    found = known.groupBy(*_SERIES).agg(
        F.count("value").alias("points"),
        *(F.first(name).alias(name) for name in ("first", "last", "median", "mad")),
        F.min("value").alias("least"),
        F.max("value").alias("most"),
        F.count_if(is_gap).alias("gaps"),
        F.max(F.when(is_gap, F.col("step"))).alias("longest"),
        F.coalesce(F.sum(F.when(is_gap, F.round(F.col("step") / F.col("expected")) - 1)), F.lit(0)).alias("missing"),
        F.count_if(is_outlier).alias("outliers"),
        F.max_by("at", F.when(is_outlier, F.col("off"))).alias("worst"),
        (F.percentile_approx(late, 0.5) - F.percentile_approx(early, 0.5)).alias("moved"),
    )
    return found.withColumn("drift", F.when(F.col("mad") > 0, F.col("moved") / (F.col("mad") * _SCALE)))


def _lines(known: DataFrame) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """Means in equal parts of each series' time: those of a page may lie months apart."""
    from pyspark.sql import functions as F  # noqa: N812

    width = F.greatest(F.col("last") - F.col("first"), F.lit(1e-6)) / _BUCKETS
    bucket = F.least(F.lit(_BUCKETS - 1), F.floor((F.col("at") - F.col("first")) / width)).alias("bucket")
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in sorted(known.groupBy(*_SERIES, bucket).agg(F.avg("value").alias("mean")).collect()):
        found.setdefault((row["device"], row["measurement"]), []).append((row["bucket"], row["mean"]))
    return found


_STYLE = """
body{font:14px system-ui,sans-serif;margin:1.5em;color:#222}table{border-collapse:collapse}
td,th{padding:.3em .5em;border-bottom:1px solid #ddd;text-align:right;font-variant-numeric:tabular-nums}
td,th{white-space:nowrap}td:first-child,th:first-child,td:nth-child(2),th:nth-child(2),td:nth-child(4),th:nth-child(4){text-align:left}
thead th{position:sticky;top:0;background:#fff;border-bottom:2px solid #999}
.device th{padding-top:1.2em;font-size:1.1em}
.bad{background:#fde8e6}svg{display:block}path{fill:none;stroke:#2a6fb0;stroke-width:1.2}p{max-width:60em}
"""
_HEAD = ("measurement", "means", "points", "from and to (UTC)", "min", "median", "max", "gaps", "longest", "missing",
         "outliers", "worst at", "drift")  # fmt: skip


def _page(step: Report, rows: list[Row], lines: dict[tuple[str, str], list[tuple[int, float]]]) -> str:
    title = html.escape(step.title)
    devices: dict[str, list[str]] = {}
    for row in rows:
        line = lines.get((row["device"], row["measurement"]), [])
        devices.setdefault(row["device"], []).append(_row(row, line))
    body = "".join(
        f'<tbody><tr class="device"><th colspan="{len(_HEAD)}">{html.escape(device)}</th></tr>{"".join(series)}</tbody>'
        for device, series in devices.items()
    )
    head = "".join(f"<th>{name}</th>" for name in _HEAD)
    points, gaps, outliers = (sum(row[name] for row in rows) for name in ("points", "gaps", "outliers"))
    about = (
        f"Gaps: neighbours further apart than {_GAP} times the usual distance. Outliers: further from the median than"
        f" {step.outlier:g} robust standard deviations. Drift: from the first fifth of the time to the last, in robust"
        " standard deviations."
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>"
        f"<body><h1>{title}</h1><p>{html.escape(step.devices)}: devices {len(devices):,}, series {len(rows):,}, points"
        f" {points:,}; <b>gaps {gaps:,}, outliers {outliers:,}</b>.</p><p>{about}</p>"
        f"<table><thead><tr>{head}</tr></thead>{body}</table></body></html>\n"
    )


def _row(row: Row, line: list[tuple[int, float]]) -> str:
    cells = [
        (html.escape(row["measurement"]), False),
        (_sparkline(line), False),
        (f"{row['points']:,}", False),
        (f"{_time_text(row['first'])} to {_later(row, 'last')}", False),
        *((f"{row[name]:.5g}", False) for name in ("least", "median", "most")),
        (f"{row['gaps']:,}", row["gaps"] > 0),
        ("" if row["longest"] is None else f"{row['longest']:,.3g} s", False),
        (f"{row['missing']:,.0f}", False),
        (f"{row['outliers']:,}", row["outliers"] > 0),
        ("" if row["worst"] is None else _later(row, "worst"), False),
        ("" if row["drift"] is None else f"{row['drift']:+.1f}", row["drift"] is not None and abs(row["drift"]) > 3),
    ]
    return (
        "<tr>" + "".join(f'<td class="bad">{text}</td>' if bad else f"<td>{text}</td>" for text, bad in cells) + "</tr>"
    )


def _later(row: Row, name: str) -> str:
    """A moment of a series; its day only if the series has several."""
    text = _time_text(row[name])
    one_day = _time_text(row["first"])[:11] == _time_text(row["last"])[:11]
    return text[11:] if one_day else text


def _time_text(seconds: Any) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _sparkline(line: list[tuple[int, float]]) -> str:
    """The means as a path; a hole where there are none, and a dot that can be seen for one alone."""
    if not line:
        return ""
    least, most = min(mean for _, mean in line), max(mean for _, mean in line)
    scale = (_HEIGHT - 4) / (most - least) if most > least else 0.0
    path, before = "", -2
    for bucket, mean in line:
        x, y = bucket * _WIDTH / _BUCKETS, _HEIGHT - 2 - (mean - least) * scale
        path += f"L{x:.1f} {y:.1f}" if bucket == before + 1 else f"M{x:.1f} {y:.1f}h1"
        before = bucket
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img"><path d="{path}"/></svg>'
