"""Which Saros runs here: what is installed is looked up once, since that searches all folders of packages (0.4 ms)."""

from __future__ import annotations

from importlib.metadata import version

#: As `pip show saros` has it when this process began.
RELEASE = version("saros")
