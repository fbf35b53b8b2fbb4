"""SQLAlchemy's compliance suite, collected by `test_alchemy_suite.py` in a process of its own."""

from __future__ import annotations

from sqlalchemy.testing.suite import *  # noqa: F403 - its tests
