"""The examples of the README and of the driver's page run as written, from top to bottom."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import saros

ROOT = Path(__file__).parents[2]


def examples(name: str) -> list[str]:
    """Return the Python examples of a page, except for examples that only show how to catch an error."""
    found = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
    return [text for text in found if not text.startswith("except")]


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """Yield the variables that the fragments below the first example use."""
    monkeypatch.chdir(tmp_path)
    times = np.arange(10)
    with saros.connect(tmp_path / "data") as connection, saros.connect(tmp_path / "data") as other:
        yield {
            "connection": connection,
            "other": other,
            "source": [("root.plant.pump3", times, {"x": times})],
            "moment": 1,
        }


def test_what_telegraf_writes_comes_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = examples("docs/moving.md")
    metric = {"name": "cpu", "tags": {"host": "vm-1"}, "timestamp": 1_704_067_200, "fields": {"idle": 98.5, "cores": 4}}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", [json.dumps(metric)])
    exec(text.replace("saros://127.0.0.1:6667", "data"), {})
    with saros.connect("data", timestamps="epoch") as connection:
        found = connection.execute("select idle, cores from root.telegraf.cpu.`vm-1`").fetchall()
    assert [(1_704_067_200_000, 98.5, 4)] == found


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/driver.md"])
def test_examples_run(page: str, words: dict[str, object]) -> None:
    for text in examples(page):
        exec(text, {**words, "saros": saros})
    with saros.connect("data") as connection:
        counted = connection.execute("select count(temperature) from root.plant.*").fetchall()
    assert counted[0][0] >= 1_440
