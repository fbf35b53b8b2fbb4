"""SHOW and COUNT of many devices and series: the order and parts of the lists, and the end of the work at LIMIT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import saros
from saros_engine.show import show_schema

HALLS, PUMPS, SERIES = 3, 4, 5


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[saros.Connection]:
    """Yield a connection to a database with 60 series, a series on each level, and two views."""
    with saros.connect(tmp_path_factory.mktemp("many")) as opened:
        for hall in range(HALLS):
            opened.execute(f"insert into root.plant.hall{hall}(time, t) values (1, 1)")
            for pump in range(PUMPS):
                names = ", ".join(f"s{number}" for number in range(SERIES))
                values = ", ".join(["1"] * SERIES)
                opened.execute(f"insert into root.plant.hall{hall}.pump{pump}(time, {names}) values (1, {values})")
        opened.execute("create view root.plant.hall1.pump2.a as select s1 + s2 from root.plant.hall1.pump2")
        opened.execute("create view root.plant.hall1.office.t as root.plant.hall1.t")
        yield opened


def rows(connection: saros.Connection, statement: str) -> list[tuple[object, ...]]:
    return connection.execute(statement).fetchall()


PATTERNS = ("root.**", "root.plant.*.*.s1", "root.plant.hall1.**", "root.plant.hall1.pump2.*", "root.plant.hall*.t")


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("where", ["", " where timeseries contains 'pump2'", " where viewtype = 'BASE'"])
def test_a_limit_gives_a_part_of_the_whole_list(connection: saros.Connection, pattern: str, where: str) -> None:
    show = f"show timeseries {pattern}{where}"
    whole = rows(connection, show)
    for offset in (0, 1, 7, 100):
        for limit in (1, 3, 50):
            found = rows(connection, f"{show} limit {limit} offset {offset}")
            assert whole[offset : offset + limit] == found
    assert [(len(whole),)] == rows(connection, f"count timeseries {pattern}{where}")


def test_series_are_listed_in_the_order_of_their_paths(connection: saros.Connection) -> None:
    found = [str(row[0]).split(".") for row in rows(connection, "show timeseries")]
    assert sorted(found, key=lambda nodes: (nodes[:-1], nodes[-1])) == found
    assert HALLS * (1 + PUMPS * SERIES) + 2 == len(found)
    pump = [row[0] for row in rows(connection, "show timeseries root.plant.hall1.pump2.*")]
    assert [f"root.plant.hall1.pump2.{name}" for name in ("a", "s0", "s1", "s2", "s3", "s4")] == pump
    office = [row[0] for row in rows(connection, "show timeseries root.plant.hall1.** limit 2")]
    assert ["root.plant.hall1.t", "root.plant.hall1.office.t"] == office


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0, [("root", 65)]),
        (1, [("root.plant", 65)]),
        (2, [("root.plant.hall0", 21), ("root.plant.hall1", 23), ("root.plant.hall2", 21)]),
        (5, []),
    ],
)
def test_series_are_counted_by_level(connection: saros.Connection, level: int, expected: list[tuple[str, int]]) -> None:
    assert expected == rows(connection, f"count timeseries root.** group by level = {level}")


def test_a_series_at_the_level_counts_as_itself(connection: saros.Connection) -> None:
    found = dict(rows(connection, "count timeseries root.plant.hall1.** group by level = 3"))
    assert {"root.plant.hall1.t": 1, "root.plant.hall1.office": 1, "root.plant.hall1.pump2": 6} == {
        path: count for path, count in found.items() if count != SERIES
    }


@pytest.mark.parametrize(("level", "expected"), [(0, 1), (1, 1), (2, 3), (3, 3 * (PUMPS + 1) + 1), (4, 62)])
def test_nodes_are_counted(connection: saros.Connection, level: int, expected: int) -> None:
    assert [(expected,)] == rows(connection, f"count nodes root.** level = {level}")


def test_a_limit_ends_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = show_schema._series_row
    asked: list[str] = []
    monkeypatch.setattr(show_schema, "_series_row", lambda d, s, schema: asked.append(d.path) or made(d, s, schema))
    with saros.connect(tmp_path) as connection:
        for device in range(20):
            connection.execute(f"insert into root.a.d{device}(time, x, y) values (1, 1, 1)")
        assert 3 == len(rows(connection, "show timeseries limit 3"))
        assert ["root.a.d0", "root.a.d0", "root.a.d1"] == asked
