"""Record the hashes of the corpus, and print the difference from the corpus of a commit.

    PYTHONPATH=tests python -m engine.corpus [COMMIT]

runs the generator of COMMIT (by default HEAD) and that of the working tree, writes `hashes.txt`, which `test_slt.py`
compares, and prints the difference of the files. Review the difference before you commit the hashes.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from engine.corpus.files import HASHES, hashes, texts

_REPOSITORY = Path(__file__).parents[3]
_GENERATOR = "tests/engine/corpus"
#: A program that prints the name and the text of each file, all separated by NUL.
_PRINT = (
    "from engine.corpus.files import FILES; print(*(p for n, m in FILES.items() for p in (n, m().text())), sep='\\0')"
)


def texts_of(commit: str) -> dict[str, str]:
    """Return the files that a commit's version of the generator makes."""
    with tempfile.TemporaryDirectory() as folder:
        archive = ["git", "-C", str(_REPOSITORY), "archive", commit, _GENERATOR]
        packed = subprocess.run(archive, check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", folder], check=True, input=packed)
        environment = os.environ | {"PYTHONPATH": f"{folder}/tests", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", _PRINT]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    parts = printed.removesuffix("\n").split("\0")
    return dict(zip(parts[::2], parts[1::2], strict=True))


def difference(before: dict[str, str], after: dict[str, str]) -> str:
    """Return a unified diff of two corpora."""
    lines: list[str] = []
    for name in sorted({*before, *after}):
        old, new = (found.get(name, "").splitlines(keepends=True) for found in (before, after))
        lines += difflib.unified_diff(old, new, f"before/{name}.slt", f"after/{name}.slt")
    return "".join(lines)


def main() -> None:
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    HASHES.write_text(hashes())
    sys.stdout.write(difference(texts_of(commit), texts()) or f"the corpus is as in {commit}\n")


if __name__ == "__main__":
    main()
