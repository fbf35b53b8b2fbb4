"""The examples of docs/http.md: each command prints the output below it, and each piece of Python runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from server.http.http_node import HttpNode, http_server
from server.http.pages import PORT, commands, page, pieces, run

PAGE = page("http.md")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[HttpNode]:
    with http_server(tmp_path / "data") as made:
        yield made


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_commands_answer_as_shown(node: HttpNode, tmp_path: Path) -> None:
    found = commands(PAGE)
    assert len(found) >= 8
    for command, output in found:
        assert output == run(command, node, tmp_path), command


def test_python_runs(node: HttpNode) -> None:
    node.written("insert into root.plant.pump1(time, temperature) values (1, 20.5), (2, 21)")
    names: dict[str, object] = {}
    for text in pieces(PAGE, "python"):
        exec(text.replace(PORT, node.url.removeprefix("http://")), names)
    assert [20.5, 21.0] == list(names["frame"]["root.plant.pump1.temperature"])  # type: ignore[index]
    assert [20.5, 21.0] == names["table"].column(1).to_pylist()  # type: ignore[attr-defined]
