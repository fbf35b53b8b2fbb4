"""SQLAlchemy's compliance suite, run by `test_alchemy_suite.py` in a separate process."""

from __future__ import annotations

from sqlalchemy.testing.suite import *  # noqa: F403 - its tests
