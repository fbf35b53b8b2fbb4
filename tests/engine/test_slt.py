"""The statements of the dialect, feature by feature: `testdata/slt/*.slt`, read by `slt.py`.

Those in `corpus/` are made by `corpus/`, where plain Python works out the answers.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.corpus.files import FILES
from engine.embedded_engine import Engine
from engine.slt import problem, read

FOLDER = Path(__file__).parent / "testdata" / "slt"


@pytest.mark.parametrize("name", sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.slt")))
def test_answers(name: str, tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    try:
        wrong = []
        for record in read(FOLDER / name):
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


def test_the_corpus_is_as_its_model_says() -> None:
    assert {name: (FOLDER / "corpus" / f"{name}.slt").read_text() for name in FILES} == {
        name: make().text() for name, make in FILES.items()
    }, "run `PYTHONPATH=tests python -m engine.corpus`"


def test_the_corpus_is_wide() -> None:
    asked = [record for path in FOLDER.rglob("*.slt") for record in read(path) if record.kind == "query"]
    assert len(asked) > 1_500
