"""Some 1,200 queries, put together at random from one seed, against the plain-Python model of `query_model`.

The data is partly in files (in order and late), partly in memory; one device is aligned. A wrong answer is printed
with its query. It takes some ten seconds, being the corpus of plain queries.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from engine.embedded_engine import Engine
from engine.query_model import (
    AGGREGATES,
    CASES,
    CONDITIONS,
    DEVICES,
    NUMBERS,
    SERIES,
    TEXTS,
    TIME_MAX,
    TYPES,
    Aggregate,
    Formula,
    Row,
    Value,
    filled,
    make_data,
    rows_of,
    sort_key,
    window_bounds,
)

SEED = 11
DATA = make_data(SEED)
ROWS = {device: rows_of(points) for device, points in DATA.items()}
PLAIN = {name: name for name in TYPES}
ITEMS = [*SERIES, *NUMBERS, *TEXTS, *CASES, *CONDITIONS]


def literal(value: Value) -> str:
    if value is None:
        return "null"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = Engine(tmp_path_factory.mktemp("model"))
    for device in DEVICES:
        columns = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
        if device.endswith("b.d1"):
            opened.ask(f"create aligned timeseries {device}({columns})")
        for name, type_ in TYPES.items() if not device.endswith("b.d1") else ():
            opened.ask(f"create timeseries {device}.{name} {type_}")
    chance = random.Random(SEED)
    written = [(device, t, row) for device, rows in ROWS.items() for t, row in rows]
    chance.shuffle(written)
    for number, (device, t, row) in enumerate(written):
        if number % 9 == 0:  # overwritten below
            opened.ask(f"insert into {device}(time, i, t) values ({t}, {7 if row['i'] is not None else 'null'}, null)")
        if number in (20, 45):
            opened.ask("flush")
        values = ", ".join(literal(row[name]) for name in TYPES)
        opened.ask(f"insert into {device}(time, {', '.join(TYPES)}) values ({t}, {values})")
    yield opened
    opened.close()


def check(engine: Engine, text: str, header: list[str], rows: list[list[Value]]) -> None:
    got_header, got = engine.ask(text)
    assert header == got_header, text
    assert [[*map(repr, row)] for row in rows] == [[repr(_plain(v)) for v in row] for row in got], text


def _plain(value: object) -> object:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def full(device: str) -> dict[str, str]:
    return {name: f"{device}.{name}" for name in TYPES}


def time_clause(chance: random.Random) -> tuple[str, int, int]:
    """A condition on time and what it leaves, [low, high)."""
    low, high = sorted(chance.sample(range(TIME_MAX + 1), 2))
    return chance.choice(
        [
            ("", 0, TIME_MAX),
            (f"time >= {low} and time < {high}", low, high),
            (f"time > {low - 1}", low, TIME_MAX),
            (f"{high} > time", 0, high),
            (f"time between {low} and {high}", low, high + 1),
            (f"time = {low}", low, low + 1),
        ]
    )


def where(chance: random.Random) -> tuple[str, list[Formula], int, int]:
    text, low, high = time_clause(chance)
    conditions = chance.sample(CONDITIONS, chance.choice((0, 0, 1, 1, 2)))
    parts = [text] * bool(text) + [f"({condition(**PLAIN)})" for condition in conditions]
    chance.shuffle(parts)
    return f" where {' and '.join(parts)}" if parts else "", conditions, low, high


def kept(rows: list[tuple[int, Row]], conditions: list[Formula], low: int, high: int) -> list[tuple[int, Row]]:
    return [(t, row) for t, row in rows if low <= t < high and all(c.value(row) is True for c in conditions)]


def seen(rows: list[tuple[int, Row]], names: set[str]) -> list[tuple[int, Row]]:
    """Rows in which a series that the query speaks of has a point."""
    return [(t, row) for t, row in rows if any(row[name] is not None for name in names)]


def named(items: list[Formula], chance: random.Random, device: str) -> tuple[str, list[str]]:
    """SELECT's items and the header: columns that are more than a series have an alias half of the time."""
    texts, header = [], []
    for number, item in enumerate(items):
        alias = item in TEXTS or item in CASES or item in CONDITIONS or chance.random() < 0.3
        texts.append(item(**PLAIN) + (f" as c{number}" if alias else ""))
        header.append(f"c{number}" if alias else item(**full(device)))
    return ", ".join(texts), header


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_one_device(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(70):
        device = chance.choice(DEVICES)
        items = chance.sample(ITEMS, chance.randint(1, 4))
        texts, header = named(items, chance, device)
        condition, conditions, low, high = where(chance)
        names = {name for formula in [*items, *conditions] for name in formula.measurements}
        rows = kept(seen(ROWS[device], names), conditions, low, high)
        expected: list[list[Value]] = [[t, *(item.value(row) for item in items)] for t, row in rows]
        tail = ""
        how = chance.randint(0, 4)
        if how == 0:
            expected.reverse()
            tail += " order by time desc"
        elif how == 1:
            key, descending = chance.randrange(len(items)), chance.random() < 0.5
            first = chance.choice((None, True, False))
            text = items[key](**PLAIN)
            tail += (
                f" order by {header[key] if header[key].startswith('c') else text} {'desc' if descending else 'asc'}"
            )
            tail += "" if first is None else " nulls first" if first else " nulls last"
            expected.sort(key=lambda r: sort_key(r[key + 1], descending=descending, nulls_first=bool(first)))
        elif how == 2:
            tail += " fill(previous)"
            expected = [[row[0], *rest] for row, rest in zip(expected, filled(r[1:] for r in expected), strict=True)]
        if chance.random() < 0.4:
            limit, offset = chance.randint(0, 9), chance.randint(0, 9)
            tail += f" limit {limit} offset {offset}"
            expected = expected[offset : offset + limit]
        check(engine, f"select {texts} from {device}{condition}{tail}", ["Time", *header], expected)


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_several_devices_by_time(engine: Engine, seed: int) -> None:
    chance = random.Random(100 + seed)
    for _ in range(50):
        devices = chance.sample(DEVICES, 2)
        items = chance.sample([*SERIES, *NUMBERS], chance.randint(1, 3))
        by_column = [(item, device) for item in items for device in devices if item in SERIES]
        by_column += [(item, device) for item in items for device in devices if item not in SERIES]
        shown = [item for item in items if item in SERIES] + [item for item in items if item not in SERIES]
        condition, low, high = time_clause(chance)
        texts = [item(**PLAIN) for item in shown if len(item.measurements) == 1]
        columns = [(item, device) for item, device in by_column if len(item.measurements) == 1]
        if not texts:
            continue
        if any(item.text.count("{") > 1 for item, _ in columns):
            continue  # twice the same series stands for all combinations
        tables = {device: dict(ROWS[device]) for device in devices}
        times = sorted({t for table in tables.values() for t in table if low <= t < high})
        empty: Row = dict.fromkeys(TYPES)
        expected = []
        for t in times:
            own = {device: tables[device].get(t, empty) for device in devices}
            if any(own[device][item.measurements[0]] is not None for item, device in columns):
                expected.append([t, *(item.value(own[device]) for item, device in columns)])
        text = f"select {', '.join(texts)} from {', '.join(devices)}{' where ' + condition if condition else ''}"
        check(engine, text, ["Time", *(item(**full(device)) for item, device in columns)], expected)


@pytest.mark.parametrize("seed", range(3))
def test_rows_by_device(engine: Engine, seed: int) -> None:
    chance = random.Random(200 + seed)
    for _ in range(50):
        items = chance.sample([*SERIES, *NUMBERS], chance.randint(1, 4))
        condition, conditions, low, high = where(chance)
        names = {name for formula in [*items, *conditions] for name in formula.measurements}
        source, devices = chance.choice(
            [("root.m.**", DEVICES), ("root.m.a.*", DEVICES[:2]), ("root.m.*.d1", DEVICES[::2])]
        )
        expected = [
            [t, device, *(item.value(row) for item in items)]
            for device in devices
            for t, row in kept(seen(ROWS[device], names), conditions, low, high)
        ]
        tail = ""
        how = chance.randint(0, 4)
        if how == 0:
            expected.sort(key=lambda r: (-r[0], r[1]))
            tail = " order by time desc, device asc"
        elif how == 1:
            expected.sort(key=lambda r: r[1], reverse=True)
            tail = " order by device desc"
        elif how == 2:
            expected.sort(key=lambda r: sort_key(r[2], descending=True, nulls_first=False))
            tail = f" order by {items[0](**PLAIN)} desc, device, time"
        if chance.random() < 0.3:
            tail += " limit 7 offset 2"
            expected = expected[2:9]
        text = f"select {', '.join(item(**PLAIN) for item in items)} from {source}{condition}{tail} align by device"
        check(engine, text, ["Time", "Device", *(item(**PLAIN) for item in items)], expected)


Asked = list[tuple[Aggregate, Formula]]


def aggregates(chance: random.Random) -> Asked:
    found = []
    for _ in range(chance.randint(1, 4)):
        one = chance.choice(AGGREGATES)
        found.append((one, chance.choice([f for f in SERIES if f.measurements[0] in one.types])))
    return found


def called(asked: Asked, names: dict[str, str]) -> list[str]:
    return [f"{one.name}({formula(**names)})" for one, formula in asked]


def values(asked: Asked, rows: list[tuple[int, Row]]) -> list[Value]:
    return [one.value([(t, v) for t, row in rows if (v := f.value(row)) is not None]) for one, f in asked]


@pytest.mark.parametrize("seed", range(4))
def test_aggregates_and_windows(engine: Engine, seed: int) -> None:
    chance = random.Random(300 + seed)
    for _ in range(80):
        device = chance.choice(DEVICES)
        asked = aggregates(chance)
        condition, conditions, low, high = where(chance)
        rows = kept(ROWS[device], conditions, low, high)
        text = f"select {', '.join(called(asked, PLAIN))} from {device}{condition}"
        header = called(asked, full(device))
        if chance.random() < 0.3:
            check(engine, text, header, [values(asked, rows)])
            continue
        start, count, step = chance.randint(0, 30), chance.randint(1, 8), chance.randint(1, 9)
        interval = step * chance.choice((1, 1, 2, 3)) if chance.random() < 0.7 else max(step - 2, 1)
        left_open = interval == step and chance.random() < 0.3
        end = start + count * step + (0 if left_open else chance.randint(0, 3))
        shift = 1 if left_open else 0
        expected = []
        for first, behind in window_bounds(start, end, interval, step):
            own = [(t, row) for t, row in rows if first + shift <= t < behind + shift]
            expected.append([behind if left_open else first, *values(asked, own)])
        bounds = f"({start}, {end}]" if left_open else f"[{start}, {end})"
        text += f" group by ({bounds}, {interval}ms{'' if interval == step else f', {step}ms'})"
        how = chance.randint(0, 4)
        if how == 0:
            expected.reverse()
            text += " order by time desc"
        elif how == 1:
            text += " fill(previous)"
            expected = [[r[0], *rest] for r, rest in zip(expected, filled(r[1:] for r in expected), strict=True)]
        elif how == 2:
            text += " having count(i) > 1"
            counts = [
                len([t for t, row in rows if a + shift <= t < b + shift and row["i"] is not None])
                for a, b in window_bounds(start, end, interval, step)
            ]
            expected = [row for row, n in zip(expected, counts, strict=True) if n > 1]
        if chance.random() < 0.3:
            text += " limit 3 offset 1"
            expected = expected[1:4]
        check(engine, text, ["Time", *header], expected)


@pytest.mark.parametrize("seed", range(2))
def test_aggregates_by_device_and_by_level(engine: Engine, seed: int) -> None:
    chance = random.Random(400 + seed)
    for _ in range(60):
        asked = aggregates(chance)
        condition, low, high = time_clause(chance)
        condition = f" where {condition}" if condition else ""
        rows = {device: [(t, row) for t, row in ROWS[device] if low <= t < high] for device in DEVICES}
        text = f"select {', '.join(called(asked, PLAIN))} from root.m.**{condition}"
        if chance.random() < 0.5:
            expected = [[device, *values(asked, rows[device])] for device in DEVICES]
            check(engine, f"{text} align by device", ["Device", *called(asked, PLAIN)], expected)
            continue
        asked = [(one, f) for one, f in asked if one.name in ("count", "sum", "avg", "min_value", "max_value")]
        if not asked:
            continue
        text = f"select {', '.join(called(asked, PLAIN))} from root.m.**{condition} group by level = 2"
        groups = {"root.*.a.*": DEVICES[:2], "root.*.b.*": DEVICES[2:]}
        header = [
            f"{one.name}({f(**{name: f'{group}.{name}' for name in TYPES})})" for one, f in asked for group in groups
        ]
        merged = {group: [pair for device in of for pair in rows[device]] for group, of in groups.items()}
        expected = [[value for pair in asked for group in groups for value in values([pair], merged[group])]]
        check(engine, text, header, expected)


def test_last(engine: Engine) -> None:
    chance = random.Random(500)
    for _ in range(40):
        names = chance.sample(sorted(TYPES), chance.randint(1, 3))
        high = chance.randint(1, TIME_MAX)
        rows = []
        for name in names:
            for device in DEVICES:
                points = [(t, v) for t, v in DATA[device][name].items() if t < high]
                if points:
                    t, value = max(points)
                    shown = literal(value).strip("'") if not isinstance(value, str) else value
                    rows.append([t, f"{device}.{name}", shown, TYPES[name]])
        descending = chance.random() < 0.5
        rows.sort(key=lambda r: str(r[1]), reverse=descending)
        order = "desc" if descending else "asc"
        text = f"select last {', '.join(names)} from root.m.** where time < {high} order by timeseries {order}"
        check(engine, text, ["Time", "Timeseries", "Value", "DataType"], rows)
