"""Batches of columns for several devices, which are independent of each other, and the outcome of each.

    client's values --> ColumnBatch --> allowed to the session --> checked --> written: the points
                           +---------------+------------------------+-----------+--> the error, in the batch's place

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from saros_cluster.database.partial_failure import cause_of, is_refusal
from saros_engine.base.errors import EngineError
from saros_storage.base.block import Column
from saros_storage.base.errors import StorageError
from saros_storage.base.types import Int64Array
from saros_wire.client_values import TooManyBytes, UnreadableValues

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ColumnBatch:
    """Rows of one device; the columns are by canonical measurement or alias."""

    device: str
    times: Int64Array
    columns: Mapping[str, Column]
    #: None: as the device is.
    aligned: bool | None
    #: Columns that do not fit their series are left out, and the others are written.
    partial: bool = False
    #: Of the series that it creates.
    tags: Mapping[str, str] = field(default_factory=dict)


def outcomes_of(items: Sequence[_Item | Exception], step: Callable[[_Item], _Result]) -> list[_Result | Exception]:
    """Return the result of a step for each item, or the error that refuses it, now or before.

    After an error that is no refusal, such as a group without a leader, the step is not tried for the other items:
    each would wait as long. The error is theirs, too.
    """
    outcomes: list[_Result | Exception] = []
    failure: Exception | None = None
    for item in items:
        if isinstance(item, Exception):
            outcomes.append(item)
        elif failure is not None:
            outcomes.append(failure)
        else:
            try:
                outcomes.append(step(item))
            except (StorageError, EngineError, UnreadableValues, TooManyBytes) as error:
                outcomes.append(error)
                failure = failure_of_others(error)
    return outcomes


def failure_of_others(error: Exception) -> Exception | None:
    """Return the error of parts of a request that were not tried after one has failed; None: try them."""
    return None if not isinstance(error, StorageError) or is_refusal(error) else cause_of(error)
