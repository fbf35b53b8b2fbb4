"""Draw the plots of `docs/sql/functions.md`: a curve before and after a function.

    python docs/plots.py

A plot belongs to the answer above its link. It shows the first column in grey and the second one in blue. Both have one
scale if their ranges overlap; otherwise, the second curve is below the first one. NaN and null are left out.

The colours are readable on white and on dark pages.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
_PAGE = _FOLDER / "sql" / "functions.md"
_WIDTH, _HEIGHT, _MARGIN = 360, 120, 10
_BEFORE, _AFTER = "#7a8699", "#5068b8"
_PLOT = re.compile(r"```text\n([^`]*)```\n\n!\[([^\]]+)\]\(\.\./images/functions/(\w+)\.svg\)")
_HEAD = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img">'

#: Seconds and values.
Points = list[tuple[float, float]]


def plots(page: str) -> dict[str, str]:
    """Return the plots of the page as SVG, by name."""
    return {name: drawn(title, *_curves(answer)) for answer, title, name in _PLOT.findall(page)}


def drawn(title: str, before: Points, after: Points) -> str:
    """Return a plot of two curves."""
    times = [time for time, _ in before + after]
    low, high = _range(before)
    low_after, high_after = _range(after)
    inner = _HEIGHT - 2 * _MARGIN
    if low_after <= high and low <= high_after:
        both = min(low, low_after), max(high, high_after)
        scales = [(both, _MARGIN, inner)] * 2
    else:
        half = (inner - _MARGIN) / 2
        scales = [((low, high), _MARGIN, half), ((low_after, high_after), 2 * _MARGIN + half, half)]
    lines = [
        _line(points, (min(times), max(times)), *scale, colour)
        for points, scale, colour in zip((before, after), scales, (_BEFORE, _AFTER), strict=True)
    ]
    return "\n".join([f"{_HEAD}<title>{title}</title>", *lines, "</svg>\n"])


def _curves(answer: str) -> tuple[Points, Points]:
    rows = [[cell.strip() for cell in line.split("|")] for line in answer.splitlines()[2:-1]]
    before, after = (
        [(datetime.fromisoformat(row[0]).timestamp(), float(row[place])) for row in rows if row[place] != "null"]
        for place in (1, 2)
    )
    return _finite(before), _finite(after)


def _finite(points: Points) -> Points:
    return [(time, value) for time, value in points if math.isfinite(value)]


def _range(points: Points) -> tuple[float, float]:
    values = [value for _, value in points]
    return min(values), max(values)


def _line(
    points: Points, times: tuple[float, float], values: tuple[float, float], top: float, height: float, colour: str
) -> str:
    """Return a curve with a dot at each point."""
    begin, width = times[0], (times[1] - times[0]) or 1
    low, rise = values[0], (values[1] - values[0]) or 1
    places = [
        (
            _MARGIN + (time - begin) / width * (_WIDTH - 2 * _MARGIN),
            top + height - (value - low) / rise * height,
        )
        for time, value in points
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in places)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}'


def main() -> None:
    """Draw all plots."""
    for name, plot in plots(_PAGE.read_text(encoding="utf-8")).items():
        (_FOLDER / "images" / "functions" / f"{name}.svg").write_text(plot, encoding="utf-8")


if __name__ == "__main__":
    main()
