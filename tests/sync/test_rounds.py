"""Rounds from one edge to one centre: the centre shows exactly the data in files of the edge."""

from __future__ import annotations

import pytest
from storage.store_model import (
    alter_type,
    delete_database,
    delete_points,
    delete_series,
    flush,
    load,
    merge,
    write_rows,
)
from sync.sync_world import Centre, Edge, devices_of

from saros_storage.base.types import DataType
from saros_storage.scan.reading import TimeRange
from saros_sync.errors import SentElsewhere


def pair() -> tuple[Edge, Centre]:
    centre = Centre()
    return Edge(centre.line()), centre


def assert_same(edge: Edge, centre: Centre) -> None:
    assert devices_of(edge.store) == devices_of(centre.store)


def test_a_round_shows_all_that_is_sealed() -> None:
    edge, centre = pair()
    edge.tell(write_rows("root.a.d1", range(50), 1), write_rows("root.a.d2", range(90, 130), 2), flush())
    edge.tell(write_rows("root.b.c.d1", [7, 3, 250], 3, ("x", "t", "b", "f")))
    sent = edge.sync()
    assert (1, True, ()) == (sent.number, sent.is_new, sent.conflicts)
    assert_same(edge, centre)
    assert devices_of(centre.store).devices


def test_what_is_not_sealed_comes_with_a_later_round() -> None:
    edge, centre = pair()
    edge.tell(write_rows("root.a.d1", [1], 1), flush(), write_rows("root.a.d1", [2], 1))
    edge.sending.run_round()
    assert [1] == sorted(devices_of(centre.store).devices["root.a.d1"].series["x"])
    edge.sync()
    assert_same(edge, centre)


def test_a_round_with_nothing_new_sends_nothing() -> None:
    edge, _ = pair()
    edge.tell(write_rows("root.a.d1", range(50), 1))
    edge.sync()
    chunks = edge.line.chunks  # type: ignore[attr-defined]
    sent = edge.sync()
    assert (1, False, 0) == (sent.number, sent.is_new, sent.files)
    assert chunks == edge.line.chunks  # type: ignore[attr-defined]
    edge.restart_sender()
    assert not edge.sync().is_new
    assert chunks == edge.line.chunks  # type: ignore[attr-defined]


def test_compaction_at_the_edge_replaces_files_and_shows_the_same() -> None:
    edge, centre = pair()
    for mark in range(4):
        edge.tell(write_rows("root.a.d1", range(mark * 5, 60), mark), flush())
        edge.sync()
        assert_same(edge, centre)
    edge.tell(merge())
    edge.sync()
    assert_same(edge, centre)
    assert 1 == len(centre.receiver.shown.mirrors[edge.id].files)
    stays = [name for name in centre.disk.list(f"data/sync-receiver/{edge.id}/data") if name.endswith(".tsfile")]
    assert 1 == len(stays)


def test_deletions_reach_the_centre() -> None:
    edge, centre = pair()
    edge.tell(write_rows("root.a.d1", range(50), 1), write_rows("root.b.c.d1", range(50), 1), flush())
    edge.sync()
    edge.tell(delete_points(["root.a.d1.x"], 10, 20))
    edge.sync()
    assert_same(edge, centre)
    edge.tell(delete_series("root.a.d1.y"))
    edge.sync()
    assert_same(edge, centre)
    edge.tell(delete_database("root.b.c"), merge(), delete_points(["root.a.**"], 0, 5))
    edge.sync()
    assert_same(edge, centre)
    assert ["root.a.d1"] == list(devices_of(centre.store).devices)


def test_a_series_that_comes_back_with_another_type_does_so_at_the_centre() -> None:
    edge, centre = pair()
    edge.tell(write_rows("root.a.d1", range(50), 1), write_rows("root.a.d2", range(9), 1))
    edge.sync()
    edge.tell(delete_series("root.a.d1.*"), delete_series("root.a.d2.x"))
    edge.tell(write_rows("root.a.d1", range(5), 2, ("t",)), write_rows("root.a.d2", range(5), 2, ("x", "b")))
    edge.sync()
    assert_same(edge, centre)


def test_a_series_that_is_given_another_type_has_it_at_the_centre_with_all_its_points() -> None:
    edge, centre = pair()
    edge.tell(
        write_rows("root.a.d1", range(50), 1, ("i", "x")), write_rows("root.a.d2", range(9), 1, ("i", "t")), flush()
    )
    edge.sync()
    edge.tell(alter_type("root.a.d1", "i", DataType.DOUBLE), alter_type("root.a.d2", "i", DataType.TEXT))
    edge.sync()
    assert_same(edge, centre)
    edge.tell(
        write_rows("root.a.d1", range(40, 60), 2, ("i", "x")), write_rows("root.a.d2", range(5), 2, ("i",)), flush()
    )
    edge.sync()
    assert_same(edge, centre)
    edge.tell(merge())
    edge.sync()
    assert_same(edge, centre)
    assert DataType.TEXT is devices_of(centre.store).type("root.a.d2", "i")


def test_a_file_that_was_loaded_twice_is_sent_once() -> None:
    edge, centre = pair()
    rows = ("root.a.d1", range(20), 1)
    edge.tell(load(rows), write_rows("root.a.d1", range(5), 9), flush(), load(rows))
    edge.sync()
    assert_same(edge, centre)


def test_the_centre_has_devices_of_its_own_beside() -> None:
    edge, centre = pair()
    write_rows("root.a.d2", range(10), 7).run(centre.store)
    edge.tell(write_rows("root.a.d1", range(10), 1))
    edge.sync()
    centre.store.flush()
    assert {"root.a.d1", "root.a.d2"} == set(devices_of(centre.store).devices)
    centre.restart()
    assert {"root.a.d1", "root.a.d2"} == set(devices_of(centre.store).devices)
    write_rows("root.a.d2", range(10, 20), 7).run(centre.store)
    assert 20 == len(devices_of(centre.store).devices["root.a.d2"].series["x"])


def test_what_a_sender_sends_is_not_changed_at_the_centre() -> None:
    edge, centre = pair()
    edge.tell(write_rows("root.a.d1", range(10), 1))
    edge.sync()
    before = devices_of(centre.store)
    for change in (
        lambda: write_rows("root.a.d1", [3], 2).run(centre.store),
        lambda: write_rows("root.a.d1", [3], 2, ("f",)).run(centre.store),
        lambda: centre.store.delete(["root.**"], TimeRange(0, 5)),
        lambda: centre.store.delete_series("root.a.d1.x"),
        lambda: centre.store.delete_database("root.a"),
        lambda: load(("root.a.d1", [3], 2)).run(centre.store),
    ):
        with pytest.raises(SentElsewhere, match=f"root.a.d1 is synchronized from sender edge \\({edge.id}\\)"):
            change()
    assert before == devices_of(centre.store)


def test_a_view_that_is_open_keeps_what_it_saw() -> None:
    edge, centre = pair()
    edge.tell(write_rows("root.a.d1", range(10), 1), flush(), write_rows("root.a.d1", range(5), 2))
    edge.sync()
    before = devices_of(centre.store)
    view = centre.store.view()
    edge.tell(delete_points(["root.a.d1.*"], 0, 7), merge())
    edge.sync()
    assert_same(edge, centre)
    centre.store.view = lambda: view  # type: ignore[method-assign, assignment, misc]
    assert before == devices_of(centre.store)
