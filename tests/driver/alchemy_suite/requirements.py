"""Features that SQLAlchemy's suite may demand of Saros."""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements


class Requirements(SuiteRequirements):
    """The suite's own, without those that Saros says it lacks."""

    schemas = foreign_keys = unique_constraints_reflect_as_index = temp_table_names = property(
        lambda _: exclusions.closed()
    )

    def get_isolation_levels(self, config: Any) -> dict[str, Any]:
        """AUTOCOMMIT only."""
        return {"default": "AUTOCOMMIT", "supported": ["AUTOCOMMIT"]}
