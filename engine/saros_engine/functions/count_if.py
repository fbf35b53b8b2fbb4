"""COUNT_IF(condition, threshold): the number of sufficiently long runs of rows that satisfy a condition.

The threshold is compared with the length of a run, as in `keep >= threshold`. The state of a sequence of rows has the
lengths of the run at its beginning and of the run at its end, because other rows may extend these two runs, and the
number of counted runs in between. If nothing breaks the run at the beginning (`broken` is false), all rows form this
run, and there is no run at the end. A null breaks a run unless nulls are ignored.

Pure: any thread.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

import numpy as np

from saros_engine.base.errors import SemanticError
from saros_engine.functions.aggregate import Aggregate, Rows, States
from saros_engine.plan.plan import AggregateCall
from saros_grammar.syntax.ast import Call, Expression, KeepCondition, Literal
from saros_storage.base.block import Column
from saros_storage.base.types import BoolArray, DataType, Int64Array
from saros_storage.read.row_ranges import RowRanges, prefix_sums

_KEEP = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NAME = "count_if"
_HOW_TO = "count_if takes a condition and a length: count_if(s1 > 0, 3), count_if(s1 > 0, keep >= 3)"


def threshold_of(call: Call) -> tuple[tuple[str, str], ...]:
    """Return the threshold of a call as attributes, followed by the attributes of the call.

    Raises SemanticError if the arguments are not a condition and a threshold.
    """
    if len(call.arguments) != 2:
        raise SemanticError(_HOW_TO)
    threshold: Expression = call.arguments[1]
    sign = ">="
    if isinstance(threshold, KeepCondition):
        sign, threshold = threshold.operator.value, threshold.count
    if not isinstance(threshold, Literal) or not isinstance(threshold.value, int) or isinstance(threshold.value, bool):
        raise SemanticError(_HOW_TO)
    return ("keep", sign), ("threshold", str(threshold.value)), *call.attributes


class CountIf(Aggregate):
    """COUNT_IF, configured with the threshold of a call."""

    arguments = (frozenset({DataType.BOOLEAN}),)
    result = DataType.INT64
    #: The length of the run at the beginning, `broken`, the length of the run at the end, and the number of counted
    #: runs in between.
    state = (DataType.INT64, DataType.BOOLEAN, DataType.INT64, DataType.INT64)

    def __init__(self, name: str, attributes: Mapping[str, str] | None = None) -> None:
        super().__init__(name)
        given = {"keep": ">=", "threshold": "1"} if attributes is None else attributes
        self._keep = _KEEP[given["keep"]]
        self._threshold = int(given["threshold"])
        self._ignore_null = given.get("ignoreNull", "true").lower() != "false"

    def of(self, call: AggregateCall) -> Aggregate:
        """See `Aggregate.of`."""
        return CountIf(self.name, dict(call.attributes))

    def _check_attributes(self, attributes: Mapping[str, str]) -> None:
        flag = attributes.get("ignoreNull", "true").lower()
        if flag not in ("true", "false"):
            raise SemanticError(f"{_NAME}: 'ignoreNull' must be true or false, not {flag!r}")

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        """See `Aggregate.partial`.

        Each row is turned into a state that consists of a run of length one, or of a break.
        """
        column = rows.columns[0]
        holds = column.numbers & column.present
        breaks = ~holds if not self._ignore_null else ~column.numbers & column.present
        nothing = np.zeros(len(column), np.int64)
        return self._merge(holds.astype(np.int64), breaks, nothing, nothing, slices)

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        """See `Aggregate.merge`."""
        lead, broken, trail, inner = (np.where(s.present, s.numbers, 0) for s in states)
        return self._merge(lead, broken.astype(np.bool_), trail, inner, slices)

    def merge_series(self, states: Sequence[Column], slices: RowRanges) -> States:
        """See `Aggregate.merge_series`. A run in one series does not continue in another series."""
        nothing = np.zeros(len(slices), np.int64)
        counts = prefix_sums(self.final(states).numbers, slices)
        broken = np.ones(len(slices), np.bool_)
        return [*map(Column, self.state, (nothing, broken, nothing, counts))]

    def _merge(
        self, lead: Int64Array, broken: BoolArray, trail: Int64Array, inner: Int64Array, slices: RowRanges
    ) -> States:
        lengths = slices.stops - slices.starts
        owner = np.repeat(np.arange(len(slices)), lengths)
        rows = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + slices.starts[owner]
        breaks = broken[rows].astype(np.int64)
        # The runs of all slices, one slice after the other; a slice with n breaks has n + 1 runs, which may be empty.
        first_run = np.concatenate(([0], np.cumsum(np.bincount(owner, breaks, len(slices)).astype(np.int64) + 1)))
        within = np.cumsum(breaks) - breaks
        before = np.concatenate(([0], np.cumsum(breaks)))[np.cumsum(lengths) - lengths]
        run = first_run[owner] + within - before[owner]
        count = int(first_run[-1])
        sizes = np.bincount(run, lead[rows], count) + np.bincount(run + breaks, trail[rows], count + 1)[:count]
        sizes = sizes.astype(np.int64)
        starts, last = first_run[:-1], first_run[1:] - 1
        inside = np.ones(count, np.bool_)
        inside[starts] = inside[last] = False
        counted = np.concatenate(([0], np.cumsum(self._counts(sizes) & inside)))
        between = (
            counted[first_run[1:]] - counted[starts] + np.bincount(owner, inner[rows], len(slices)).astype(np.int64)
        )
        parted = last > starts
        return [
            Column(DataType.INT64, sizes[starts]),
            Column(DataType.BOOLEAN, parted),
            Column(DataType.INT64, np.where(parted, sizes[last], 0)),
            Column(DataType.INT64, between),
        ]

    def _counts(self, sizes: Int64Array) -> BoolArray:
        return np.asarray((sizes > 0) & self._keep(sizes, self._threshold))

    def final(self, states: Sequence[Column]) -> Column:
        """See `Aggregate.final`."""
        lead, broken, trail, inner = (np.where(s.present, s.numbers, 0) for s in states)
        ends = self._counts(lead).astype(np.int64) + (self._counts(trail) & broken.astype(np.bool_))
        return Column(DataType.INT64, inner + ends)
