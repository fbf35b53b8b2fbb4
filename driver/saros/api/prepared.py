"""Prepared statements: a text and the cursor that runs it with other values each time.

The node keeps no handle that could be lost. It recognizes the text and reuses its plan, whoever sends it and however
(`execute` with the same text works as well), as long as the schema does not change. Values travel with their own types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saros.api.cursor import Cursor


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement with `?`; made by `Cursor.prepare`."""

    cursor: Cursor
    statement: str

    def execute(self, parameters: Sequence[object] = ()) -> Cursor:
        """Run it with these values, one for each `?`; the cursor, to fetch from. Raises as `Cursor.execute`."""
        return self.cursor.execute(self.statement, parameters)

    def executemany(self, rows: Iterable[Sequence[object]]) -> Cursor:
        """Run it once per row of values."""
        return self.cursor.executemany(self.statement, rows)
