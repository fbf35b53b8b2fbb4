"""Charts as SVG text: line charts over numbers, and bar charts over names. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 50, 60
_COLOURS = ("#1f6f8b", "#d1495b", "#66a182", "#edae49", "#6a4c93")
_TICKS = 5

Points = Sequence[tuple[float, float]]


def lines(title: str, x: str, y: str, series: Mapping[str, Points], marks: Mapping[str, float] | None = None) -> str:
    """Return a chart with a line per series; each of `marks` is drawn as a dashed vertical line with its name."""
    every = [point for points in series.values() for point in points]
    x_max, y_max = _nice(max(p[0] for p in every)), _nice(max(p[1] for p in every))
    parts = _frame(title, x, y, y_max, series)
    for tick in range(_TICKS + 1):
        value = x_max * tick / _TICKS
        parts.append(_text(_across(value, x_max), HEIGHT - _BOTTOM + 18, _number(value)))
    for place, points in enumerate(series.values()):
        where = " ".join(f"{_across(px, x_max):.1f},{_up(py, y_max):.1f}" for px, py in points)
        parts.append(f'<polyline fill="none" stroke="{_COLOURS[place]}" stroke-width="2" points="{where}"/>')
        if len(points) <= _TICKS + 1:
            parts += [_dot(_across(px, x_max), _up(py, y_max), _COLOURS[place]) for px, py in points]
    for name, moment in (marks or {}).items():
        at = _across(moment, x_max)
        parts.append(f'<path stroke="#888" stroke-dasharray="4" d="M{at:.1f},{_TOP}V{HEIGHT - _BOTTOM}"/>')
        parts.append(_text(at + 3, _TOP + 12, name, "start"))
    return _whole(parts)


def bars(title: str, x: str, y: str, names: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """Return a chart with one bar per name and series."""
    y_max = _nice(max(value for values in series.values() for value in values))
    parts = _frame(title, x, y, y_max, series)
    room = (WIDTH - _LEFT - _RIGHT) / len(names)
    width = room * 0.7 / len(series)
    for number, name in enumerate(names):
        left = _LEFT + room * (number + 0.15)
        parts.append(_text(_LEFT + room * (number + 0.5), HEIGHT - _BOTTOM + 18, name))
        for place, values in enumerate(series.values()):
            top, at = _up(values[number], y_max), left + place * width
            box = f'x="{at:.1f}" y="{top:.1f}" width="{width:.1f}" height="{HEIGHT - _BOTTOM - top:.1f}"'
            parts.append(f'<rect fill="{_COLOURS[place]}" {box}/>')
            parts.append(_text(at + width / 2, top - 4, _number(values[number]), size=10))
    return _whole(parts)


def _frame(title: str, x: str, y: str, y_max: float, names: Mapping[str, object]) -> list[str]:
    """Return title, axes and names of the series."""
    parts = [_text(WIDTH / 2, 18, title, size=14), _text(WIDTH / 2, HEIGHT - 20, x)]
    parts.append(f'<g transform="translate(16,{HEIGHT / 2}) rotate(-90)">{_text(0, 0, y)}</g>')
    for tick in range(_TICKS + 1):
        value = y_max * tick / _TICKS
        height = _up(value, y_max)
        parts.append(f'<path stroke="#ddd" d="M{_LEFT},{height:.1f}H{WIDTH - _RIGHT}"/>')
        parts.append(_text(_LEFT - 6, height + 4, _number(value), "end"))
    if len(names) > 1:
        for place, name in enumerate(names):
            at = _LEFT + 10 + place * 150
            parts.append(f'<rect x="{at}" y="28" width="10" height="10" fill="{_COLOURS[place]}"/>')
            parts.append(_text(at + 15, 37, name, "start"))
    return parts


def _whole(parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">'
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    return "\n".join([head, ground, *parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, anchor: str = "middle", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def _across(value: float, most: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * value / most


def _up(value: float, most: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * value / most


def _nice(value: float) -> float:
    """Return a round number that is not less than `value`."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
