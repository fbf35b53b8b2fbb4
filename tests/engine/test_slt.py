"""The statements of the SQL dialect, feature by feature, in files whose format `slt.py` describes.

`testdata/slt/*.slt` are written by hand. `corpus/` generates the other files, with answers computed by plain Python.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.corpus.files import FILES, HASHES, hashes
from engine.embedded_engine import Engine
from engine.slt import parse, problem

FOLDER = Path(__file__).parent / "testdata" / "slt"


def check(name: str, content: str, folder: Path) -> None:
    """Fail if the engine's answer to a record differs from the file."""
    engine = Engine(folder)
    try:
        wrong = []
        for record in parse(content):
            if record.kind == "#":
                continue
            try:
                found = problem(engine, record)
            except Exception as error:  # noqa: BLE001
                found = f"{type(error).__name__}: {error}"
            if found is not None:
                wrong.append(f"{name}: {record.text}\n{found}")
        assert not wrong, "\n\n".join(wrong)
    finally:
        engine.close()


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.slt")))
def test_answers(name: str, tmp_path: Path) -> None:
    check(name, (FOLDER / name).read_text(), tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_answers_of_the_corpus(name: str, tmp_path: Path) -> None:
    check(f"corpus/{name}", FILES[name]().text(), tmp_path)


def test_the_generator_makes_the_same_corpus() -> None:
    assert HASHES.read_text() == hashes(), "look at the output of `PYTHONPATH=tests python -m engine.corpus`"


def test_the_corpus_is_wide() -> None:
    contents = [path.read_text() for path in FOLDER.glob("*.slt")] + [make().text() for make in FILES.values()]
    assert sum(record.kind == "query" for content in contents for record in parse(content)) > 1_500
