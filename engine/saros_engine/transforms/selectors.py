"""TOP_K and BOTTOM_K: the k points with the largest or smallest values, in time order. Earlier points win ties."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saros_engine.expressions.text import text_ranks
from saros_engine.functions.function import Attributes, expect, integer_attribute
from saros_engine.plan.expression import FunctionCall
from saros_engine.transforms.series_transform import Generator, Points, SeriesTransform, attributes_of
from saros_storage.base.types import NUMERIC_TYPES, STRING_TYPES, DataType, NumericArray, TimeUnit

_K_MAX = 1_000
_ORDERED = NUMERIC_TYPES | STRING_TYPES | {DataType.DATE, DataType.TIMESTAMP}


def _selector(name: str, *, largest: bool) -> SeriesTransform:
    def check(types: Sequence[DataType], attributes: Attributes) -> DataType:
        expect(name, types, _ORDERED)
        integer_attribute(name, attributes, "k", low=1, high=_K_MAX)
        return types[0]

    def make(call: FunctionCall, _: TimeUnit) -> Generator:
        count = integer_attribute(name, attributes_of(call), "k", low=1, high=_K_MAX)

        def run(points: Points) -> Points:
            column = points.columns[0]
            keys = text_ranks(column.text) if column.type.is_text else column.numbers
            return points.take(np.sort(np.argsort(_descending(keys) if largest else keys, kind="stable")[:count]))

        return run

    return SeriesTransform(name, check, make)


def _descending(keys: NumericArray) -> NumericArray:
    """Return keys that sort in the opposite order, except that NaN still sorts last."""
    return -keys if keys.dtype.kind == "f" else ~keys


SELECTORS = (_selector("top_k", largest=True), _selector("bottom_k", largest=False))
