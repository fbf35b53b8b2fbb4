"""Read and run those examples of a documentation page that need an HTTP server."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from server.http.http_node import HttpNode
from waiting import PATIENCE_S

PORT = "127.0.0.1:18080"


def page(name: str) -> str:
    """Return the text of a page."""
    return (Path(__file__).parents[3] / "docs" / name).read_text(encoding="utf-8")


def commands(text: str) -> list[tuple[str, str]]:
    """Return each command of the page that calls the server, together with the output that the page shows below it."""
    found: list[tuple[list[str], list[str]]] = []
    for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines():
        words = line.removeprefix("    ").removeprefix("  ")
        if not line.startswith("    "):
            continue
        if words.startswith("$ "):
            found.append(([words.removeprefix("$ ")], []))
        elif found and line.startswith(("        ", "          ")) and not found[-1][1]:
            found[-1][0].append(words)
        elif found:
            found[-1][1].append(words)
    return [("\n".join(words), "\n".join(output)) for words, output in found if PORT in words[0] or PORT in words[-1]]


def run(command: str, node: HttpNode, folder: Path) -> str:
    """Return the output of a command that runs curl."""
    line = command.replace(PORT, node.url.removeprefix("http://"))
    line = line.replace("curl ", f"curl -sS --max-time {PATIENCE_S} ", 1)
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, cwd=folder).stdout.rstrip(
        "\n"
    )


def pieces(text: str, language: str) -> list[str]:
    """Return those code blocks of the page that are in the given language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
