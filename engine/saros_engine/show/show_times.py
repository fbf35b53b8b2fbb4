"""WHERE time ... in SHOW and COUNT, which selects the part of the schema that has points in ranges of times.

    show devices where time > 10 and template is null  ->  devices without template, with a point later than 10

A condition is split at its ANDs into parts about the schema and parts about time; no OR may combine both kinds. Deleted
and expired points do not count. Views store no points. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from saros_engine.analysis.scope import any_part
from saros_engine.base.errors import SemanticError
from saros_engine.expressions.time_filter import TimeContext, conjuncts, time_ranges
from saros_grammar.syntax.ast import Binary, BinaryOperator, Expression, TimeReference
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import DeviceSchema

#: Returns the time of each series' latest point in a time range. Series without a point in the range are omitted.
LatestTimes = Callable[[Sequence[str], TimeRange], Mapping[str, int]]


class Points(msgspec.Struct, frozen=True):
    """Access to the latest points of series, and the current time."""

    latest: LatestTimes
    moment: TimeContext

    def of_series(self, paths: Sequence[str], times: Sequence[TimeRange]) -> set[str]:
        """Return the paths of the series that have a point in one of the ranges."""
        found: set[str] = set()
        for span in times:
            found.update(self.latest([path for path in paths if path not in found], span))
        return found

    def of_devices(self, devices: Iterable[DeviceSchema], times: Sequence[TimeRange]) -> set[str]:
        """Return the paths of the devices with a point in one of the ranges."""
        owners = {f"{device.path}.{name}": device.path for device in devices for name in device.series}
        return {owners[path] for path in self.of_series(list(owners), times)}


def split_times(where: Expression | None, moment: TimeContext) -> tuple[Expression | None, list[TimeRange] | None]:
    """Split a condition into a part about the schema and time ranges; either may be None. Raises SemanticError."""
    rest: Expression | None = None
    times: list[TimeRange] | None = None
    for part in conjuncts(where):
        if not any_part(part, lambda one: isinstance(one, TimeReference)):
            rest = part if rest is None else Binary(BinaryOperator.AND, rest, part)
            continue
        found = time_ranges(part, moment)
        if found is None:
            raise SemanticError(f"{part} is not a time condition: SHOW and COUNT only compare time with constants")
        times = found if times is None else [a.intersect(b) for a in times for b in found]
    return rest, None if times is None else [span for span in times if not span.empty]
