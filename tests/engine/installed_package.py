"""Packages that are installed for a test: a module, and the entry points that an installer would write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "plant_extensions" / "plant_extensions.py"


def install(
    patch: pytest.MonkeyPatch, folder: Path, module: str, source: str, points: Mapping[str, Mapping[str, str]]
) -> None:
    """Install a module.

    `points` contains for each group the names of entry points, each with the name of its object in the module.

    The process caches entry points that it has found, so a name must not be used twice.
    """
    information = folder / f"{module}-1.0.dist-info"
    information.mkdir(parents=True)
    (folder / f"{module}.py").write_text(source)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = [
        line
        for group, named in points.items()
        for line in (f"[saros.{group}]", *(f"{name} = {module}:{thing}" for name, thing in named.items()))
    ]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n")
    patch.syspath_prepend(str(folder))


def install_example(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Install the module in `examples/`."""
    functions = {name: name for name in ("fahrenheit", "running_total", "geometric_mean")}
    triggers = {name: name for name in ("limits", "alarm")}
    install(patch, folder, "plant_extensions", EXAMPLE.read_text(), {"functions": functions, "triggers": triggers})
