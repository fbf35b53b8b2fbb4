"""The features that SQLAlchemy's suite tests for Saros."""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements


class Requirements(SuiteRequirements):
    """The suite's default features, without the features that Saros does not have."""

    schemas = foreign_keys = unique_constraints_reflect_as_index = temp_table_names = property(
        lambda _: exclusions.closed()
    )

    def get_isolation_levels(self, config: Any) -> dict[str, Any]:
        """Return AUTOCOMMIT as the only level."""
        return {"default": "AUTOCOMMIT", "supported": ["AUTOCOMMIT"]}
