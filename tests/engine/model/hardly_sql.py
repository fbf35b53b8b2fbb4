"""Texts that are almost SQL (`grammar.hardly_sql`): an engine soon returns a result or an error code for each."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from engine.model.checking import Layout, Wrong, laid_out
from engine.model.drawing import QueryDrawing, draw_history
from engine.model.history import Database
from grammar.hardly_sql import draw_text

from saros_engine.base.errors import EngineError
from saros_grammar.syntax.errors import SqlError
from saros_storage.base.errors import StorageError

#: The limit on the processor time of all threads for a text, which is far more than any text needs.
_SECONDS_MAX = 10.0
#: The error codes that always mean a bug in Saros.
_INTERNAL = (2000, 2001)


def attack(seed: int, count: int) -> Counter[str]:
    """Run random texts on one database, and count the outcomes.

    Raises Wrong if a text reveals a bug or takes too long.
    """
    chance = Random(seed)
    history = draw_history(chance, 8)
    model = Database()
    for change in history:
        model.apply(change)
    drawing = QueryDrawing(chance, model)
    queries = [drawing.draw().text() for _ in range(20)]
    figures: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        engine = laid_out(Path(folder), history, Layout.drawn(chance))
        try:
            for _ in range(count):
                text = draw_text(chance, queries)
                started = time.process_time()
                try:
                    engine.ask(text)
                    figures["texts answered"] += 1
                except (SqlError, EngineError, StorageError) as error:
                    figures["texts refused"] += 1
                    if error.code in _INTERNAL:
                        raise Wrong(f"seed {seed}: {text!r} is our mistake: {error}") from error
                except Exception as error:
                    raise Wrong(f"seed {seed}: {text!r} fails with {error!r}") from error
                if time.process_time() - started > _SECONDS_MAX:
                    raise Wrong(f"seed {seed}: {text!r} took {time.process_time() - started:.0f} s")
        finally:
            engine.close()
    return figures
