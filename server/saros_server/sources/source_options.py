"""The options for reading a file to import, and the error for a file that cannot be imported. Pure: any thread."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

#: Non-breaking spaces, which `--thousands " "` also accepts between thousands.
WIDE_BLANKS = "\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}"


class SourceError(Exception):
    """A file or an option cannot be used. The message has the reason and the next step."""

    code = 2003


class SourceOptions(msgspec.Struct, frozen=True):
    """The options for reading files, described in `saros import --help`."""

    #: The columns that hold the times. The texts of several columns, such as a date and a time of day, are joined with
    #: a space.
    time_columns: tuple[str, ...] = ()
    time_format: str | None = None
    zone: str = "UTC"
    #: The database's unit of time, which is also the unit of times that are integers.
    unit: str = "ms"
    delimiter: str | None = None
    #: Texts that stand for a missing value, in addition to empty fields without quotes.
    nulls: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    types: Mapping[str, str] = msgspec.field(default_factory=dict)
    batch_rows: int = 50_000
    device_column: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    #: Number of lines before the header.
    skip_lines: int = 0

    def plain_numbers(self, text: pa.Array) -> pa.Array:
        """Return the texts with a decimal point in place of the decimal mark, and without separators of thousands.

        If the decimal mark is not a point, texts that contain a point are changed so that they are not numbers.
        """
        if self.thousands == " ":
            text = pc.replace_substring_regex(text, f"[ {WIDE_BLANKS}]", "")
        elif self.thousands:
            text = pc.replace_substring(text, self.thousands, "")
        if self.decimal == ".":
            return text
        no_number = pc.replace_substring(text, ".", "_")
        return pc.replace_substring(no_number, self.decimal, ".")
