"""The statements of the dialect, feature by feature: `testdata/slt/*.slt`, read by `slt.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.embedded_engine import Engine
from engine.slt import problem, read

FOLDER = Path(__file__).parent / "testdata" / "slt"


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.slt")))
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
