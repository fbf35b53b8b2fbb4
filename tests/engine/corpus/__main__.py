"""Write the files anew: `PYTHONPATH=tests python -m engine.corpus`."""

from __future__ import annotations

from pathlib import Path

from engine.corpus.files import FILES

FOLDER = Path(__file__).parents[1] / "testdata" / "slt" / "corpus"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, make in FILES.items():
        (FOLDER / f"{name}.slt").write_text(make().text())


if __name__ == "__main__":
    main()
