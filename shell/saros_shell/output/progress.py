"""Progress lines on standard error, if it is a terminal: percentage, rate, time left."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable

from saros_server.sources.plurals import counted

#: Seconds between two redraws.
REDRAW_S = 0.2
WIDTH = 30


class Progress:
    """A progress bar for `total` bytes. It is drawn only on a terminal, and only without `quiet`."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self.bytes_done = 0
        self._total = max(total, 1)
        self._started = time.monotonic()
        self._drawn_at = 0.0
        self._silent = quiet or not sys.stderr.isatty()
        #: The last function that made the text of the line from the elapsed seconds. `finish` draws this text again.
        self._what: Callable[[float], str] | None = None

    def move_to(self, position: int) -> None:
        """Set the number of bytes that are done. The number never decreases."""
        self.bytes_done = max(self.bytes_done, min(position, self._total))

    def show(self, rows: int, points: int) -> None:
        """Redraw the line with the number of rows and the rate of points, if enough time has passed."""
        self._draw(lambda elapsed: f"{rows} rows, {points / elapsed / 1e6:.2f} M points/s")

    def show_points(self, points: int) -> None:
        """Redraw the line with the number of points and their rate, if enough time has passed."""
        self._draw(lambda elapsed: f"{points} points, {points / elapsed / 1e6:.2f} M points/s")

    def show_files(self, files: int) -> None:
        """Redraw the line with the number of files and the rate of bytes, if enough time has passed."""
        self._draw(lambda elapsed: f"{files} files, {self.bytes_done / elapsed / 1e6:.1f} MB/s")

    def _draw(self, what: Callable[[float], str], *, at_last: bool = False) -> None:
        now, self._what = time.monotonic(), what
        if self._silent or (now - self._drawn_at < REDRAW_S and not at_last):
            return
        self._drawn_at = now
        elapsed = max(now - self._started, 1e-9)
        share = self.bytes_done / self._total
        left = elapsed / share - elapsed if share > 0 else 0.0
        bar = ("#" * int(share * WIDTH)).ljust(WIDTH, ".")
        _draw_line(f"[{bar}] {share:4.0%}  {what(elapsed)}, {left:.0f} s left ")

    def finish(self) -> None:
        """Draw the final state and end the line."""
        if self._drawn_at and self._what is not None:
            self._draw(self._what, at_last=True)
            sys.stderr.write("\n")


class Rate:
    """A line with a count and its current rate, for work without a known end.

    The line is drawn only on a terminal, and only without `quiet`.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._silent = quiet or not sys.stderr.isatty()
        #: Time of the last redraw, and the count that it showed.
        self._drawn_at = time.monotonic()
        self._drawn = 0
        self._is_shown = False

    def show(self, count: int, what: str, more: str) -> None:
        """Redraw if enough time has passed."""
        now = time.monotonic()
        elapsed = now - self._drawn_at
        if self._silent or elapsed < REDRAW_S:
            return
        rate = (count - self._drawn) / elapsed
        self._drawn_at, self._drawn, self._is_shown = now, count, True
        _draw_line(f"{counted(count, what)}{more}, {rate:.0f} {what}s/s ")

    def finish(self) -> None:
        """End the line, so that the next progress line is drawn below it."""
        if self._is_shown:
            sys.stderr.write("\n")
            self._is_shown = False


def _draw_line(line: str) -> None:
    """Replace the current line by `line`, shortened to the width of the terminal so that it does not wrap."""
    sys.stderr.write(f"\r{line[: shutil.get_terminal_size().columns - 1]}")
    sys.stderr.flush()


def amount(count: int) -> str:
    """Return a number of bytes in readable form: 1.2 MB."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1_000:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1_000
    return f"{value:.1f} TB"
