"""Draw the pictures of the documentation: `docs/drawings/*.txt` become `docs/images/*.svg`.

    python docs/drawings.py

A drawing is a list of lines. Columns and rows are places on a grid of 10 pixels; `/` begins a new line of text:

    title Words for readers who do not see the picture
    frame COLUMN ROW WIDTH HEIGHT TEXT          a dashed frame, with its text at the top
    note COLUMN ROW WIDTH HEIGHT TEXT           text without a box
    box NAME COLUMN ROW WIDTH HEIGHT TEXT       plain; `key` and `store` instead of `box` are emphasized, and data
    NAME -> NAME TEXT                           an arrow, with its text at the middle

The colours are readable on white and on dark pages: boxes have a light ground of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
_GRID, _LINE, _MARGIN = 10, 16, 10
_GREY = "#7a8699"
_COLOURS = {"box": ("#e8edf7", "#5068b8"), "key": ("#fdf0d5", "#c07f12"), "store": ("#e2f3e5", "#3c8f4d")}
_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"'
    ' font-family="system-ui, sans-serif" font-size="13" text-anchor="middle">'
)
_TIP = (
    '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    f'<path d="M0 0 8 4 0 8z" fill="{_GREY}"/></marker>'
)
_SHAPE = re.compile(r"(frame|note|box|key|store) (?:(\w+) )??(\d+) (\d+) (\d+) (\d+) ?(.*)")
_ARROW = re.compile(r"(\w+) -> (\w+) ?(.*)")


@dataclass(frozen=True, slots=True)
class _Shape:
    """A box or frame, in pixels."""

    kind: str
    x: int
    y: int
    width: int
    height: int
    text: str

    def centre(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2

    def border(self, to: _Shape) -> tuple[float, float]:
        """Return the point at which the line from the centre to the centre of `to` leaves the box."""
        (x, y), (other_x, other_y) = self.centre(), to.centre()
        across, down = other_x - x, other_y - y
        share = min(
            self.width / 2 / abs(across) if across else 9,
            self.height / 2 / abs(down) if down else 9,
        )
        return x + across * share, y + down * share


def drawn(description: str) -> str:
    """Return a drawing as SVG."""
    title, shapes, arrows = "", {}, []
    for line in filter(None, description.splitlines()):
        if shape := _SHAPE.fullmatch(line):
            kind, name, *places, text = shape.groups()
            x, y, width, height = (int(place) * _GRID for place in places)
            shapes[name or f"frame {len(shapes)}"] = _Shape(kind, x + _MARGIN, y + _MARGIN, width, height, text)
        elif arrow := _ARROW.fullmatch(line):
            arrows.append(arrow.groups())
        elif line.startswith("title "):
            title = line.removeprefix("title ")
        else:
            raise ValueError(f"not a line of a drawing: {line}")
    right = max(shape.x + shape.width for shape in shapes.values()) + _MARGIN
    bottom = max(shape.y + shape.height for shape in shapes.values()) + _MARGIN
    size = f'viewBox="0 0 {right} {bottom}" width="{right}"'
    parts = [f"{_HEAD.format(size=size)}<title>{escape(title)}</title>", _TIP]
    parts += [_arrow(shapes[start], shapes[end], text) for start, end, text in arrows]
    return "\n".join([*parts, *map(_shape, shapes.values()), "</svg>\n"])


def _shape(shape: _Shape) -> str:
    place = f'x="{shape.x}" y="{shape.y}" width="{shape.width}" height="{shape.height}"'
    middle, centre = shape.centre()
    if shape.kind == "note":
        return _text(shape.text, middle, centre, _GREY)
    if shape.kind == "frame":
        frame = f'<rect {place} rx="8" fill="none" stroke="{_GREY}" stroke-dasharray="4 3"/>'
        return frame + _text(shape.text, middle, shape.y + 12, _GREY)
    fill, stroke = _COLOURS[shape.kind]
    return f'<rect {place} rx="5" fill="{fill}" stroke="{stroke}"/>' + _text(shape.text, middle, centre, "#1b2440")


def _arrow(start: _Shape, end: _Shape, text: str) -> str:
    (x, y), (to_x, to_y) = start.border(end), end.border(start)
    line = (
        f'<path d="M{x:.0f} {y:.0f} {to_x:.0f} {to_y:.0f}" stroke="{_GREY}" stroke-width="1.5" marker-end="url(#tip)"/>'
    )
    flat = abs(to_y - y) < abs(to_x - x)
    rise = _LINE * (text.count("/") + 1) / 2 + 3 if flat else 0
    aside = 0 if flat else 8
    return line + _text(text, (x + to_x) / 2 + aside, (y + to_y) / 2 - rise, _GREY, "" if flat else "start")


def _text(text: str, x: float, y: float, colour: str, anchor: str = "") -> str:
    lines = [line.strip() for line in text.split("/")] if text else []
    first = y + 4.5 - (len(lines) - 1) * _LINE / 2
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    return "".join(
        f'<text x="{x:.0f}" y="{first + place * _LINE:.0f}" fill="{colour}"{anchored}>{escape(line)}</text>'
        for place, line in enumerate(lines)
    )


def main() -> None:
    """Draw all pictures."""
    for source in sorted((_FOLDER / "drawings").glob("*.txt")):
        picture = drawn(source.read_text(encoding="utf-8"))
        (_FOLDER / "images" / f"{source.stem}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
