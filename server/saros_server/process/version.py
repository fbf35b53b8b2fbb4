"""The version of Saros. It is looked up only once, since this searches all folders of packages (0.4 ms)."""

from __future__ import annotations

from importlib.metadata import version

#: The version that was installed when this process started.
RELEASE = version("saros")
