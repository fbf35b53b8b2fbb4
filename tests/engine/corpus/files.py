"""Functions that generate the files of the corpus, and hash their content.

Only `hashes.txt` is committed. If the generator changes by mistake, a hash no longer matches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from engine.corpus import functions, grouping, life, tree, values
from engine.corpus.records import Corpus

#: There is one line for each file, with its SHA-256 and its name in the format of `sha256sum`.
HASHES = Path(__file__).with_name("hashes.txt")

FILES: dict[str, Callable[[], Corpus]] = {
    "arithmetic": values.arithmetic,
    "comparison": values.comparison,
    "logic": values.logic,
    "patterns": values.patterns,
    "cases": values.cases,
    "casts": values.casts,
    "mathematics": functions.mathematics,
    "texts": functions.texts,
    "rows_before": functions.rows_before,
    "aggregates": grouping.aggregates,
    "windows_of_time": grouping.windows_of_time,
    "calendar": grouping.calendar,
    "windows_of_rows": grouping.windows_of_rows,
    "wildcards": tree.wildcards,
    "order_and_limits": tree.order_and_limits,
    "by_device": tree.by_device,
    "levels_and_tags": tree.levels_and_tags,
    "last": tree.last,
    "fill": tree.fill,
    "schema": life.schema,
    "deletions": life.deletions,
    "writing": life.writing,
}


def texts() -> dict[str, str]:
    """Return the generated text of each file by the file's name."""
    return {name: make().text() for name, make in FILES.items()}


def hashes() -> str:
    """Return the content that `hashes.txt` must have."""
    return "".join(f"{hashlib.sha256(text.encode()).hexdigest()}  {name}.slt\n" for name, text in texts().items())
