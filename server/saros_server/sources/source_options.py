"""How an import reads a file, and the error that says why it cannot. Pure: any thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

#: Blanks between thousands that do not break a line; `--thousands " "` means them, too.
WIDE_BLANKS = "\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}"


class SourceError(Exception):
    """A file or an option cannot be used; the message says why and what to do."""

    code = 2003


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How files are read; see `saros import --help`."""

    #: Several are joined by a blank: a date, and a time of day.
    time_columns: tuple[str, ...] = ()
    time_format: str | None = None
    zone: str = "UTC"
    #: Of whole numbers that are TIMESTAMP, and the finest unit that is stored.
    unit: str = "ms"
    delimiter: str | None = None
    #: Texts that mean no value, beside an empty field without quotes.
    nulls: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    batch_rows: int = 50_000
    device_column: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    #: Lines before the header.
    skip_lines: int = 0

    def plain_numbers(self, text: pa.Array) -> pa.Array:
        """Numbers with a point as decimal mark; with another mark, a text with a point is no number."""
        if self.thousands == " ":
            text = pc.replace_substring_regex(text, f"[ {WIDE_BLANKS}]", "")
        elif self.thousands:
            text = pc.replace_substring(text, self.thousands, "")
        if self.decimal == ".":
            return text
        no_number = pc.replace_substring(text, ".", "_")
        return pc.replace_substring(no_number, self.decimal, ".")
