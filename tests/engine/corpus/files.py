"""The files that are generated, by name."""

from __future__ import annotations

from collections.abc import Callable

from engine.corpus import functions, grouping, life, tree, values
from engine.corpus.records import Corpus

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
