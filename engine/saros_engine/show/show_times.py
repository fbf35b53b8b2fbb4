"""SHOW and COUNT ... WHERE time ...: of the schema what has points then.

    show devices where time > 10 and template is null  ->  devices without template, of which a series has a point then

A condition is cut at its ANDs into what the schema answers and what asks for times; an OR may not mix the two. Points
that are deleted or expired are none. Series that are views have no points of their own. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from saros_engine.analysis.scope import any_part
from saros_engine.base.errors import SemanticError
from saros_engine.expressions.time_filter import TimeContext, conjuncts, time_ranges
from saros_grammar.syntax.ast import Binary, BinaryOperator, Expression, TimeReference
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import DeviceSchema

#: (paths of series, times) -> the time of each one's latest point in there; series without one are missing.
LatestTimes = Callable[[Sequence[str], TimeRange], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Points:
    """What the points of series are asked, and now."""

    latest: LatestTimes
    moment: TimeContext

    def of_series(self, paths: Sequence[str], times: Sequence[TimeRange]) -> set[str]:
        """The paths that have a point in one of the ranges."""
        found: set[str] = set()
        for span in times:
            found.update(self.latest([path for path in paths if path not in found], span))
        return found

    def of_devices(self, devices: Iterable[DeviceSchema], times: Sequence[TimeRange]) -> set[str]:
        """The paths of the devices of which a series has a point in one of the ranges."""
        owners = {f"{device.path}.{name}": device.path for device in devices for name in device.series}
        return {owners[path] for path in self.of_series(list(owners), times)}


def split_times(where: Expression | None, moment: TimeContext) -> tuple[Expression | None, list[TimeRange] | None]:
    """What a condition asks of the schema, and the times it asks for (None: none). Raises SemanticError."""
    rest: Expression | None = None
    times: list[TimeRange] | None = None
    for part in conjuncts(where):
        if not any_part(part, lambda one: isinstance(one, TimeReference)):
            rest = part if rest is None else Binary(BinaryOperator.AND, rest, part)
            continue
        found = time_ranges(part, moment)
        if found is None:
            raise SemanticError(f"{part} does not only compare the time with constants, as SHOW and COUNT need it")
        times = found if times is None else [a.intersect(b) for a in times for b in found]
    return rest, None if times is None else [span for span in times if not span.empty]
