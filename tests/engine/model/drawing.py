"""Random databases and queries, from one seed: `draw_history`, `QueryDrawing`.

All queries must succeed: expressions get operands of the types that they require, whichever devices exist.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from engine.model.asked import Fill, Item, Key, Query
from engine.model.expressions import (
    Aggregate,
    Between,
    Binary,
    Case,
    Constant,
    Expression,
    Function,
    In,
    IsNull,
    Negative,
    Not,
    Series,
    Time,
    Value,
    kind_of,
    series_in,
    single,
)
from engine.model.history import NUMERIC, TYPES, Database, Delete, Write
from engine.model.windows import Condition, Counted, Session, TimeWindows, Variation, Windows

#: For each device's path, whether the device is aligned.
DEVICES = {"root.g.d0": False, "root.g.d1": False, "root.g.d2": True, "root.h.d3": True, "root.h.e.d4": False}
SOURCES = (*DEVICES, "root.**", "root.g.*", "root.*.*", "root.h.**", "root.none.*")
TEXTS = ("", "a", "b", "ä", "B", "Zebra", "a longer text")
#: Most times of points are below this time.
END = 300
_STRANGE = (float("nan"), float("inf"), float("-inf"), 1e100)
#: Both zeros, and values that are rounded to these zeros.
_ABOUT_ZERO = (0.0, -0.0, 0.25, -0.25)


def draw_value(chance: Random, type_: str) -> Value:
    if type_ in ("DOUBLE", "FLOAT") and chance.random() < 0.2:
        return chance.choice(_ABOUT_ZERO)
    match type_:
        case "TEXT":
            return chance.choice(TEXTS)
        case "BOOLEAN":
            return chance.random() < 0.5
        case "INT64":
            return chance.choice((chance.randrange(-9, 9), chance.randrange(-(10**6), 10**6)))
        case "INT32":
            return chance.randrange(-9, 9)
        case "DOUBLE":
            return chance.choice(_STRANGE) if chance.random() < 0.01 else chance.randrange(-40, 40) / 4
        case _:
            return single(chance.randrange(-90, 90) / 10)


def draw_history(chance: Random, steps: int) -> list[Write | Delete]:
    """Return deletions, and writes both in and out of order, some of which overwrite points."""
    found: list[Write | Delete] = []
    devices = chance.sample(list(DEVICES), chance.randint(1, len(DEVICES)))
    spacing = chance.choice((1, 1, 5))
    for step in range(steps):
        if step and chance.random() < 0.15:
            start = chance.randrange(END)
            name = chance.choice(("*", *TYPES))
            pattern = f"{chance.choice((*devices, 'root.**'))}.{name}"
            found.append(Delete(pattern, start, start + chance.choice((1, 30, END))))
            continue
        device = chance.choice(devices)
        first = chance.randrange(END)
        rows = chance.choice((1, 5, 30))
        times = sorted({first + chance.randrange(2 * rows) * spacing for _ in range(rows)})
        names = sorted(chance.sample(list(TYPES), chance.randint(1, len(TYPES))))
        gaps = chance.choice((0.0, 0.2, 0.7))
        columns = {
            name: [None if chance.random() < gaps else draw_value(chance, TYPES[name]) for _ in times] for name in names
        }
        found.append(Write(device, DEVICES[device], times, columns))
    return found


def _defined(division: Binary) -> Expression:
    """Return a division that never divides an integer by an integer zero, which would fail."""
    if division.operator not in ("/", "%") or kind_of(division) != "whole":
        return division
    if isinstance(division.right, Constant):
        return replace(division, right=Constant(division.right.value or 7))
    return Case(Binary("!=", division.right, Constant(0)), division, None)


#: Aggregates that divide, so that their results are rounded.
_ROUNDED = ("stddev_pop", "var_pop", "variance", "stddev_samp")
#: Aggregates whose result is one of the values.
_EXACT = ("min_value", "max_value", "extreme", "first_value", "last_value")


class QueryDrawing:
    """Draws one query over a database."""

    def __init__(self, chance: Random, database: Database) -> None:
        self._chance = chance
        self._database = database

    def draw(self) -> Query:
        while True:
            query = self._last() if self._chance.random() < 0.08 else self._select()
            if self._is_possible(query):
                return query

    def _is_possible(self, query: Query) -> bool:
        """Return whether the query can succeed on this database.

        No expression may match too many series, and the path of a series that controls windows must match exactly one.
        If rows are sorted by a column, some device must have all series of each item.
        """
        width = len(self._database.find_devices(query.sources)) if not query.by_device else 1
        expressions = [*(item.expression for item in query.items), *query.where]
        if not query.by_device and query.windows is not None and query.windows.controls:
            (control,) = query.windows.controls
            if any(len(self._database.find(f"{query.sources[0]}.{s.path}")) != 1 for s in series_in(control)):
                return False
        if any(key.column not in ("time", "device") for key in query.order) and not query.last:
            devices = [set(self._database.devices[d].series) for d in self._database.find_devices(query.sources)]
            needed = [{s.path for s in series_in(item.expression)} for item in query.items]
            if not all(any(names <= known for known in devices) for names in needed):
                return False
        return all(max(width, 1) ** len(series_in(e)) <= 30 for e in expressions)

    def _select(self) -> Query:
        chance = self._chance
        by_device = chance.random() < 0.4
        aggregated = chance.random() < 0.6
        sources = self._sources(by_device=by_device)
        levels: tuple[int, ...] = ()
        windows = None
        if aggregated:
            one = len(self._database.find_devices(sources)) <= 1 or by_device
            windows = self._windows(rows=one) if chance.random() < 0.6 else None
            if not by_device and chance.random() < 0.2 and (windows is None or isinstance(windows, TimeWindows)):
                levels = chance.choice(((1,), (0,), (1, 2), (2,)))
        items = self._items(aggregated=aggregated, levels=bool(levels), by_device=by_device)
        where = self._where()
        having = None
        if aggregated and chance.random() < 0.2:
            having = Binary(chance.choice(("<", ">=")), items[0].expression, Constant(chance.randrange(5)))
            first = items[0].expression
            name = first.name if isinstance(first, Aggregate) else ""
            if name in _EXACT and kind_of(first) == "real":
                having = Binary(chance.choice(("<", ">=", "=")), Negative(first), Constant(self._zero()))
            elif name != "count":
                having = None
        if levels:
            having = None
        end_time = windows is not None and not levels and chance.random() < 0.2
        fill = self._fill() if chance.random() < 0.25 else None
        order = self._order(items, timed=windows is not None or not aggregated, by_device=by_device)
        if fill is not None and len(order) > 1:
            order = ()
        return Query(
            tuple(items),
            sources,
            where,
            windows,
            end_time,
            levels,
            having,
            fill,
            order,
            chance.choice((0, 1, 5, 20)) if chance.random() < 0.2 else None,
            chance.choice((1, 3, 10)) if chance.random() < 0.1 else None,
            by_device,
        )

    def _sources(self, *, by_device: bool) -> tuple[str, ...]:
        chance = self._chance
        if chance.random() < 0.1:
            return tuple(chance.sample(list(DEVICES), 2))
        return (chance.choice(SOURCES),)

    def _last(self) -> Query:
        chance = self._chance
        names = ("*",) if chance.random() < 0.5 else tuple(chance.sample(list(TYPES), 2))
        items = tuple(Item(self._series(name)) for name in names)
        where = (self._time_part(),) if chance.random() < 0.5 else ()
        key = Key(chance.choice(("time", "timeseries")), chance.random() < 0.5)
        order = (key, Key("timeseries", False)) if chance.random() < 0.5 and key.column == "time" else (key,)
        order = order if key.column == "timeseries" or len(order) > 1 else ()
        return Query(items, self._sources(by_device=False), where, order=order, last=True)

    # ------------------------------------------------------------------ items

    def _items(self, *, aggregated: bool, levels: bool, by_device: bool) -> list[Item]:
        chance = self._chance
        found: list[Item] = []
        for _ in range(chance.choice((1, 1, 2, 3))):
            if aggregated:
                expression = self._aggregate(plain=levels)
                if not levels and chance.random() < 0.15 and expression.name in ("count", "sum", "avg"):
                    found.append(Item(Binary("+", expression, Constant(1))))
                    continue
            elif chance.random() < 0.3:
                expression = self._series("*")
            else:
                expression = self._any(chance.choice((0, 0, 1, 2)))
            found.append(Item(expression))
        texts = [item.text() for item in found]
        return [item for at, item in enumerate(found) if texts.index(item.text()) == at]

    def _aggregate(self, *, plain: bool) -> Aggregate:
        chance = self._chance
        kind = chance.random()
        if kind < 0.15:
            return Aggregate(chance.choice(("count", "min_time", "max_time")), (self._series("*"),))
        if plain:
            name = chance.choice(("count", "sum", "avg", "min_value", "max_value", "min_time", "max_time", "var_pop"))
            return Aggregate(name, (self._series(chance.choice(NUMERIC)),))
        if kind < 0.45:
            name = chance.choice(("count", "first_value", "last_value", "time_duration", "max_time", "mode"))
            return Aggregate(name, (self._series(chance.choice(list(TYPES))),))
        if kind < 0.55:
            by = self._series(chance.choice(("i", "n", "f")))
            wanted = chance.choice((Time(), self._series(chance.choice(list(TYPES)))))
            return Aggregate(chance.choice(("max_by", "min_by")), (wanted, by))
        name = chance.choice(("sum", "avg", "min_value", "max_value", "extreme", *_ROUNDED))
        argument = self._number(chance.choice((0, 0, 0, 1)))
        return Aggregate(name, (argument if series_in(argument) else self._series("x"),))

    def _series(self, name: str) -> Series:
        return Series(name, TYPES.get(name, ""))

    def _any(self, depth: int) -> Expression:
        chance = self._chance
        kind = chance.random()
        found = self._number(depth) if kind < 0.5 else self._truth(depth) if kind < 0.75 else self._text(depth)
        return found if series_in(found) else self._series("x")

    def _number(self, depth: int) -> Expression:
        chance = self._chance
        if depth == 0:
            return self._series(chance.choice(NUMERIC))
        match chance.randrange(6):
            case 0 | 1:
                operator = chance.choice(("+", "-", "*", "/", "%"))
                return _defined(Binary(operator, self._number(depth - 1), self._small(depth - 1)))
            case 2:
                return Negative(self._number(depth - 1))
            case 3:
                return Function(
                    chance.choice(("abs", "ceil", "floor", "round", "sign", "sqrt")), self._number(depth - 1)
                )
            case 4:
                return Function("length", self._series("t"))
            case _:
                otherwise = chance.choice((None, self._series("x")))
                return Case(self._truth(depth - 1), Binary("+", self._number(depth - 1), Constant(0)), otherwise)

    def _small(self, depth: int) -> Expression:
        return Constant(self._constant()) if self._chance.random() < 0.5 else self._number(depth)

    def _constant(self) -> int | float:
        chance = self._chance
        return chance.choice((chance.randrange(10), chance.randrange(40) / 4, chance.randrange(90) / 10))

    def _text(self, depth: int) -> Expression:
        return self._series("t") if depth == 0 else Function(self._chance.choice(("upper", "lower")), self._series("t"))

    def _truth(self, depth: int) -> Expression:
        chance = self._chance
        if depth <= 0:
            return self._comparison()
        match chance.randrange(4):
            case 0 | 1:
                return Binary(chance.choice(("and", "or")), self._truth(depth - 1), self._truth(depth - 1))
            case 2:
                return Not(self._truth(depth - 1))
            case _:
                return self._comparison()

    def _comparison(self) -> Expression:
        chance = self._chance
        operator = chance.choice(("=", "!=", "<", "<=", ">", ">="))
        match chance.randrange(12):
            case 0:
                return IsNull(self._series(chance.choice(list(TYPES))), chance.random() < 0.5)
            case 1:
                return Binary(operator, self._series("t"), Constant(chance.choice(TEXTS)))
            case 2:
                return Binary("=", self._series("b"), Constant(chance.random() < 0.5))
            case 3:
                items = tuple(chance.sample(range(-9, 9), 3))
                return In(self._series(chance.choice(("i", "n"))), items, chance.random() < 0.3)
            case 4:
                low = chance.randrange(-9, 5)
                bounds = Constant(low), Constant(low + chance.randrange(8))
                return Between(self._series(chance.choice(NUMERIC)), *bounds, chance.random() < 0.3)
            case 5:
                return Binary(operator, self._series(chance.choice(NUMERIC)), self._series(chance.choice(NUMERIC)))
            case 6:
                return Binary(operator, Constant(self._constant()), self._series(chance.choice(NUMERIC)))
            case 7 | 8 | 9:
                return self._computed_comparison(operator)
            case _:
                return Binary(operator, self._series(chance.choice(NUMERIC)), Constant(self._constant()))

    def _computed_comparison(self, operator: str) -> Expression:
        """Return a comparison of a computed value, which may be a signed zero."""
        chance = self._chance
        computed = self._computed()
        match chance.randrange(6):
            case 0:
                items = (self._zero(), *chance.sample((-1, 0, -0.0, 1.0, 2, 7.5, None), 2))
                return In(computed, items, chance.random() < 0.3)
            case 1:
                low, high = chance.choice(((0, 3), (-0.0, 0), (0.0, 1), (-2, -0.0), (-2, 0)))
                return Between(computed, Constant(low), Constant(high), chance.random() < 0.3)
            case 2:
                return Binary(operator, computed, self._computed())
            case 3:
                sides = computed, self._series(chance.choice(NUMERIC))
            case _:
                sides = computed, Constant(self._zero())
        return Binary(operator, *(sides if chance.random() < 0.5 else sides[::-1]))

    def _computed(self) -> Expression:
        chance = self._chance
        match chance.randrange(4):
            case 0:
                return Function(chance.choice(("ceil", "floor", "round")), self._series(chance.choice(("x", "f"))))
            case 1:
                return Negative(self._series(chance.choice(NUMERIC)))
            case 2:
                return Binary("*", self._series(chance.choice(NUMERIC)), Constant(chance.choice((0, -0.0, -1, 0.5))))
            case _:
                return self._number(1)

    def _zero(self) -> int | float:
        chance = self._chance
        return chance.choice((0, 0.0, -0.0)) if chance.random() < 0.8 else self._constant()

    # ------------------------------------------------------------------ what follows

    def _where(self) -> tuple[Expression, ...]:
        chance = self._chance
        found = (self._time_part(),) if chance.random() < 0.4 else ()
        return (*found, self._truth(chance.choice((0, 0, 1)))) if chance.random() < 0.4 else found

    def _time_part(self) -> Expression:
        chance = self._chance
        start = chance.randrange(END)
        lower = Binary(chance.choice((">", ">=")), Time(), Constant(start))
        upper = Binary(chance.choice(("<", "<=")), Time(), Constant(start + chance.choice((0, 1, 10, 50, END))))
        return chance.choice((lower, upper, Binary("and", lower, upper), Binary("=", Time(), Constant(start))))

    def _windows(self, *, rows: bool) -> Windows:
        chance = self._chance
        if not rows or chance.random() < 0.5:
            start = chance.randrange(-20, END)
            interval = chance.choice((1, 7, 20, 100))
            step = chance.choice((interval, interval, max(interval // 2, 1), interval * 2))
            end = start + chance.randint(1, 60) * min(step, 10)
            return TimeWindows(start, end, interval, step, chance.random() < 0.3)
        ignore = chance.random() < 0.6
        match chance.randrange(4):
            case 0:
                return Session(chance.choice((1, 3, 10)))
            case 1:
                delta = chance.choice((0, 0, 1.5, 4))
                control = self._series(chance.choice(("i", "n", "f")) if delta else chance.choice(("i", "n", "t", "b")))
                return Variation(control, ignore, delta)
            case 2:
                keep = (chance.choice(("", "=", "!=", ">=", "<", ">")), chance.randint(1, 3))
                return Condition(self._comparison(), ignore, keep)
            case _:
                return Counted(self._series(chance.choice(list(TYPES))), ignore, chance.randint(1, 5))

    def _fill(self) -> Fill:
        chance = self._chance
        bound = chance.choice((None, 1, 10))
        return chance.choice(
            (Fill("previous", bound=bound), Fill("linear"), Fill("value", chance.choice((7, 2.5, "z"))))
        )

    def _order(self, items: list[Item], *, timed: bool, by_device: bool) -> tuple[Key, ...]:
        chance = self._chance
        if chance.random() < 0.5:
            return ()
        keys: list[Key] = []
        if chance.random() < 0.5:
            item = chance.choice(items)
            plain = not any(series.path == "*" for other in items for series in series_in(other.expression))
            # Rounded results that should be equal may differ in the last digit, so rows sorted by them have no defined
            # order.
            exact = not any(name in item.text() for name in _ROUNDED)
            if plain and exact and (by_device or len(self._database.find_devices(SOURCES)) == 1):
                keys.append(Key(item.text(), chance.random() < 0.5, chance.choice(("", "", "first", "last"))))
        if by_device and chance.random() < 0.4:
            keys.append(Key("device", chance.random() < 0.5))
        if timed and chance.random() < 0.7:
            keys.append(Key("time", chance.random() < 0.6))
        if not by_device and keys and keys[0].column != "time":
            return tuple(keys)
        chance.shuffle(keys)
        return tuple(keys)
