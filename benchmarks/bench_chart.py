"""How long the console takes to draw a long series: the request to the node, and the page in headless Chromium.

    .venv/bin/python benchmarks/bench_chart.py [--points 100000000] [--folder DIR]

If the folder exists, the points in it are used again.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time

import httpx
import numpy as np
from playwright.sync_api import sync_playwright

import saros
from saros_server.embedded_console import EmbeddedConsole

STEP = 1_000_000
ROUNDS = 7
SQL = "select temperature from root.plant.pump1"
WIDTH = 1_200


def fill(folder: str, points: int) -> None:
    """Write one point a second."""
    random = np.random.default_rng(1)
    with saros.connect(folder) as database:
        for start in range(0, points, STEP):
            numbers = np.arange(start, start + STEP)
            times = (1_500_000_000_000 + numbers * 1_000).astype("datetime64[ms]")
            values = (20 + 5 * np.sin(numbers / 5e5) + random.normal(0, 0.3, STEP)).round(2)
            database.insert("root.plant.pump1", times, {"temperature": values})
        database.execute("flush")


def of_node(link: str) -> list[float]:
    """Return the seconds that each request for the chart takes."""
    url, _, ticket = link.partition("/console/#ticket=")
    with httpx.Client(base_url=url, timeout=600) as client:
        session = client.post("/console/ticket", json={"ticket": ticket}).json()
        found = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            headers = {"x-saros-csrf": session["csrf"]}
            client.post("/console/chart", json={"sql": SQL, "width": WIDTH}, headers=headers).raise_for_status()
            found.append(time.perf_counter() - began)
    return found


def of_page(link: str) -> tuple[float, list[float]]:
    """Return the seconds to the page's first paint, and the seconds that the page reports for each drawn chart."""
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 800})
        page.goto(link)
        page.locator(".cm-content").wait_for()
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1_000
        for _ in range(ROUNDS):
            page.goto(f"{link.partition('#')[0]}#/explore")
            page.locator(".tree-link").first.wait_for()
            page.goto(f"{link.partition('#')[0]}#/explore/root.plant.pump1.temperature")
            note = page.locator(".chart-note", has_text=" ms.")
            note.wait_for(timeout=600_000)
            found.append(float(note.inner_text().split(" ms.")[0].split(", ")[-1]) / 1_000)
        browser.close()
    return paint, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=100_000_000)
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "bench_chart"))
    options = parser.parse_args()
    if not os.path.exists(options.folder):
        fill(options.folder, options.points)
    console = EmbeddedConsole(options.folder)
    try:
        times = of_node(console.link())
        print(f"node: first {times[0]:.3f} s, then median {statistics.median(times[1:]):.3f} s")
        paint, drawn = of_page(console.link())
        print(f"page: first paint {paint:.3f} s; request and drawing: median {statistics.median(drawn):.3f} s")
    finally:
        console.close()


if __name__ == "__main__":
    main()
