"""Functions and triggers for Saros, an example of each kind. See `docs/sql/extensions.md` for how to install them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np

from saros.extensions import (
    NUMBERS,
    AggregateFunction,
    Answer,
    Batch,
    DataType,
    Refused,
    Rows,
    ScalarFunction,
    SeriesFunction,
    Trigger,
    Values,
)

logger = logging.getLogger(__name__)

# ------------------------------------------------------------------------------------------ functions


def _fahrenheit(rows: Rows) -> Answer:
    (celsius,) = rows.columns
    return celsius.values * 1.8 + 32.0, celsius.valid


fahrenheit = ScalarFunction(arguments=[NUMBERS], result=DataType.DOUBLE, evaluate=_fahrenheit)


def _running_total(state: object, rows: Rows) -> tuple[object, Answer]:
    """Continue a running sum: `state` is the sum of all earlier rows."""
    (column,) = rows.columns
    before = state if isinstance(state, float) else 0.0
    totals = before + np.cumsum(np.where(column.valid, column.values, 0.0))
    return float(totals[-1]), (totals, column.valid)


running_total = SeriesFunction(arguments=[NUMBERS], result=DataType.DOUBLE, step=_running_total)


def _logarithms(rows: Rows) -> tuple[int, float]:
    (column,) = rows.columns
    present = column.values[column.valid]
    if (present <= 0).any():
        raise ValueError("a geometric mean is of positive values")
    return len(present), float(np.log(present).sum())


def _added(states: Sequence[Values]) -> tuple[int, float]:
    counts, sums = states
    return int(counts.values.sum()), float(sums.values.sum())


def _mean(states: Sequence[Values]) -> Answer:
    counts, sums = states
    return np.exp(sums.values / np.maximum(counts.values, 1)), counts.values > 0


geometric_mean = AggregateFunction(
    arguments=[NUMBERS],
    result=DataType.DOUBLE,
    state=[DataType.INT64, DataType.DOUBLE],
    accumulate=_logarithms,
    merge=_added,
    finish=_mean,
    hint="leave values out with WHERE s > 0",
)

# ------------------------------------------------------------------------------------------ triggers


def _bounds(attributes: Mapping[str, str]) -> tuple[float, float]:
    """Read the limits from the attributes of a trigger. Raises ValueError if a limit is not a number."""
    return float(attributes.get("low", "-inf")), float(attributes.get("high", "inf"))


def _out_of_bounds(batch: Batch) -> str | None:
    """Describe the first value outside the range from `low` to `high`, or return None."""
    low, high = _bounds(batch.attributes)
    for name, column in batch.columns.items():
        if column.type not in NUMBERS:
            continue
        outside = np.flatnonzero(column.valid & ((column.values < low) | (column.values > high)))
        if len(outside):
            row = outside[0]
            return f"{name} is {column.values[row]} at {batch.times[row]}, and should be from {low} to {high}"
    return None


def _refuse(batch: Batch) -> None:
    problem = _out_of_bounds(batch)
    if problem is not None:
        raise Refused(problem)


limits = Trigger(fire=_refuse, check=_bounds)


def _warn(batch: Batch) -> None:
    problem = _out_of_bounds(batch)
    if problem is not None:
        logger.warning("%s: %s", batch.device, problem)


alarm = Trigger(fire=_warn, check=_bounds)
