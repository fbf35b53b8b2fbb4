"""Prepared statements: a text, and the cursor that executes it with different parameters.

The node keeps no handle of the statement, so that no handle can get lost. The node recognizes the text, no matter which
client sends it, and reuses the plan of the statement until the schema changes. `Cursor.execute` with the same text has
the same effect. Parameters are sent with their types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from saros.api.cursor import Cursor


class Prepared(msgspec.Struct, frozen=True):
    """A statement with `?` for parameters. Made by `Cursor.prepare`."""

    cursor: Cursor
    statement: str

    def execute(self, parameters: Sequence[object] = ()) -> Cursor:
        """Execute the statement with one value for each `?`, and return the cursor. Raises as `Cursor.execute` does."""
        return self.cursor.execute(self.statement, parameters)

    def executemany(self, rows: Iterable[Sequence[object]]) -> Cursor:
        """Execute the statement once for each row of values, and return the cursor, as `Cursor.executemany` does."""
        return self.cursor.executemany(self.statement, rows)
