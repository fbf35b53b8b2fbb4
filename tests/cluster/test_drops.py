"""The writes that a drop overtakes."""

from __future__ import annotations

import json

import pytest

from saros_cluster.data import drops
from saros_cluster.data.drops import Drops, reaches
from saros_storage.schema import DeleteDatabase, DeleteSeries

SERIES = DeleteSeries("root.a.d.x")


@pytest.mark.parametrize(
    ("drop", "path", "expected"),
    [
        (DeleteDatabase("root.a"), "root.a", True),
        (DeleteDatabase("root.a"), "root.a.d", True),
        (DeleteDatabase("root.a"), "root.ab.d", False),
        (DeleteDatabase("root.a.b"), "root.a", False),
        (SERIES, "root.a", True),
        (SERIES, "root.a.d", True),
        (SERIES, "root.a.e", False),
        (SERIES, "root.b", False),
        (DeleteSeries("root.*.d.x"), "root.b.d", True),
        (DeleteSeries("root.**"), "root.b.d", True),
        (DeleteSeries("root.**.x"), "root.b.d", True),
        (DeleteSeries("root.a.*"), "root.a.d.e", False),
    ],
)
def test_what_a_drop_reaches(drop: drops.Drop, path: str, expected: bool) -> None:
    assert expected == reaches(drop, path)


def test_only_a_write_that_has_seen_the_last_drop_of_its_devices_passes() -> None:
    known = Drops()
    assert not known.overtake(0, ["root.a.d"])
    known.record(5, SERIES)
    known.record(9, DeleteDatabase("root.b"))
    for seen, devices, expected in (
        (0, ["root.a.d"], True),
        (4, ["root.c.d", "root.a.d"], True),
        (5, ["root.a.d"], False),
        (5, ["root.b.d"], True),
        (9, ["root.b.d"], False),
        (0, ["root.c.d"], False),
        (0, [], False),
    ):
        assert expected == known.overtake(seen, devices), (seen, devices)
    assert 9 == known.newest


def test_a_write_that_is_older_than_what_is_remembered_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drops, "KEPT", 2)
    known = Drops()
    for number in (3, 4, 8):
        known.record(number, SERIES)
    for found in (known, Drops.from_json(json.loads(json.dumps(known.to_json())))):
        assert found.overtake(2, ["root.c.d"])
        assert not found.overtake(3, ["root.c.d"])
        assert found.overtake(3, ["root.a.d"])
        assert 8 == found.newest
    assert 7 == Drops((), 7).newest


def test_a_new_group_learns_of_the_drops_that_it_was_not_there_for() -> None:
    old, new = Drops([(5, SERIES), (8, DeleteDatabase("root.b"))], 2), Drops([(8, DeleteDatabase("root.b"))])
    new.merge(old)
    for found in (old, new):
        assert found.overtake(1, ["root.c.d"])
        assert found.overtake(4, ["root.a.d"])
        assert not found.overtake(5, ["root.a.d"])
        assert 8 == found.newest


def test_what_is_learned_of_drops_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drops, "KEPT", 2)
    new = Drops([(9, SERIES)])
    new.merge(Drops([(5, SERIES), (8, SERIES)]))
    assert new.overtake(4, ["root.c.d"])
    assert not new.overtake(5, ["root.c.d"])
