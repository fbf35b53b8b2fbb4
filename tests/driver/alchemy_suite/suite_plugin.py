"""The pytest plugin of SQLAlchemy's compliance suite, with the test dialect and without the excluded tests."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from sqlalchemy.dialects import registry
from sqlalchemy.testing.plugin import pytestplugin
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: F403 - the plugin's hooks
from suite_exclusions import EXCLUDED

registry.register("saros.suite", "suite_dialect", "SuiteDialect")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove the excluded tests after the suite has created the tests for the dialect."""
    pytestplugin.pytest_collection_modifyitems(session, config, items)
    items[:] = [item for item in items if not _is_excluded(item)]


def _is_excluded(item: pytest.Item) -> bool:
    assert item.parent is not None
    name = item.parent.name.partition("_saros")[0]
    return any(fnmatchcase(name, pattern) or fnmatchcase(f"{name}.{item.name}", pattern) for pattern in EXCLUDED)
