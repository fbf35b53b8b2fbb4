"""The examples of docs/http.md: each command gives the output below it, each piece of Python runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from server.http.http_node import HttpNode, http_server
from waiting import PATIENCE_S

PAGE = (Path(__file__).parents[3] / "docs" / "http.md").read_text(encoding="utf-8")
PORT = "127.0.0.1:18080"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[HttpNode]:
    with http_server(tmp_path / "data") as made:
        yield made


def commands() -> list[tuple[str, str]]:
    """Return each command for this machine, and its output."""
    found: list[tuple[list[str], list[str]]] = []
    for line in re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL).splitlines():
        text = line.removeprefix("    ").removeprefix("  ")
        if not line.startswith("    "):
            continue
        if text.startswith("$ "):
            found.append(([text.removeprefix("$ ")], []))
        elif line.startswith(("        ", "          ")) and not found[-1][1]:
            found[-1][0].append(text)
        else:
            found[-1][1].append(text)
    return [("\n".join(words), "\n".join(output)) for words, output in found if PORT in words[0] or PORT in words[-1]]


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_commands_answer_as_shown(node: HttpNode, tmp_path: Path) -> None:
    found = commands()
    assert len(found) >= 8
    address = node.url.removeprefix("http://")
    for command, output in found:
        line = command.replace(PORT, address).replace("curl ", f"curl -sS --max-time {PATIENCE_S} ", 1)
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, cwd=tmp_path)
        assert output == done.stdout.rstrip("\n"), command


def test_python_runs(node: HttpNode) -> None:
    node.written("insert into root.plant.pump1(time, temperature) values (1, 20.5), (2, 21)")
    names: dict[str, object] = {}
    for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(text.replace(PORT, node.url.removeprefix("http://")), names)
    assert [20.5, 21.0] == list(names["frame"]["root.plant.pump1.temperature"])  # type: ignore[index]
    assert [20.5, 21.0] == names["table"].column(1).to_pylist()  # type: ignore[attr-defined]
