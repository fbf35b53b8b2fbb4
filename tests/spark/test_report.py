"""The report's page: its text is escaped, and a browser renders it without a network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saros_spark.pipeline.definition import Export, Import, Pipeline, Report, SparkSettings
from saros_spark.pipeline.quality import assess
from saros_spark.pipeline.report import Assessed, Series, render_page
from saros_spark.pipeline.steps import Context

HOSTILE = "</script><img src=x onerror=alert(1)>"


def page(folder: Path) -> str:
    at = np.concatenate((np.arange(0, 300.0), np.arange(500, 1000.0))) + 1_704_067_200
    values = at % 7
    values[40] = 900
    quiet = np.arange(0, 1000.0) + 1_704_067_200
    rows = [
        Assessed(number, Series(device, name, ""), found, unit)
        for number, (device, name, unit, found) in enumerate(
            (
                ("root.p.a", HOSTILE, "°C", assess(at, values, 1.0, 6.0)),
                ("root.p.a", "alarm", "", assess(quiet, (quiet % 100 < 9).astype(float), 1.0, 6.0)),
                (f"root.`{HOSTILE}`", "x", "", assess(quiet, quiet % 7, 1.0, 6.0)),
            )
        )
        if found is not None
    ]
    pipeline = Pipeline(folder, "data", (), SparkSettings())
    spark: Any = None
    context = Context(spark, pipeline, {})
    context.done.append((Import(["*.csv"], rejected="out/re jected"), f"5 rows, {HOSTILE}"))
    context.done.append((Export("root.**", "s3://bucket/parquet"), "5 rows"))
    return render_page(context, Report("root.**", "out/report.html", title=HOSTILE), rows, folder / "out/report.html")


def test_data_are_text_and_nothing_comes_from_elsewhere(tmp_path: Path) -> None:
    text = page(tmp_path)
    assert HOSTILE not in text
    assert "<title>&lt;/script&gt;" in text
    assert [] == re.findall(r"(?:src|href)=.(?!#)[^ >]*//", text)
    assert "MIT License" in text


def test_the_page_links_files_and_lists_the_worst_series_first(tmp_path: Path) -> None:
    text = page(tmp_path)
    assert '<a href="re%20jected">rejected rows</a>' in text
    assert "Parquet in s3://bucket/parquet" in text
    order = re.findall(r'<tr>\s*<td><a href="#series-(\d)">', text)
    assert ["0", "1", "2"] == order
    assert "3.35 min from 2024-01-01 00:04:59" in text


@pytest.mark.slow
def test_a_browser_draws_charts_that_fit_and_zoom(tmp_path: Path) -> None:
    from system.console_browser import chromium

    file = tmp_path / "report.html"
    file.write_text(page(tmp_path), encoding="utf-8")
    with chromium() as browser:
        for width in (1300, 400):
            shown = browser.new_page(viewport={"width": width, "height": 900})
            errors: list[str] = []
            shown.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
            shown.on("request", lambda request, errors=errors: errors.append(request.url))
            shown.goto(file.as_uri())
            chart = shown.locator(".chart").first
            chart.scroll_into_view_if_needed()
            area = chart.locator(".u-over")
            area.hover()
            assert re.search(r"2024-01-01 00:\d\d:\d\d", chart.locator(".u-legend").inner_text())
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
            before = chart.locator(".u-legend .u-value").first.inner_text()
            box = area.bounding_box()
            assert box is not None
            shown.mouse.move(box["x"] + 10, box["y"] + 20)
            shown.mouse.down()
            shown.mouse.move(box["x"] + 60, box["y"] + 20, steps=4)
            shown.mouse.up()
            area.hover()
            assert before != chart.locator(".u-legend .u-value").first.inner_text()
            shown.emulate_media(media="print")
            assert chart.locator("svg").is_visible()
            assert not area.is_visible()
            assert [file.as_uri()] == errors
            shown.close()
