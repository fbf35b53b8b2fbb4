"""SET DATA TYPE on a cluster: at any node, for series with slices in several groups, and while clients write."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from system.cluster_fixture import Nodes
from system.town import WEEK

from saros_storage.base.errors import StorageError, UserMistake

pytestmark = pytest.mark.slow


def test_a_series_of_several_groups_changes_its_type_at_any_node(tmp_path: Path) -> None:
    """Many groups have slices of the series, both in files and in memory, and get more slices later.

    These groups are not notified of the change.
    """
    cluster = Nodes(tmp_path / "cluster", 3, 2)
    times = [n * WEEK for n in range(12)]
    try:
        cluster.run(0, "create timeseries root.a.d.n(num) with datatype=INT32 tags(unit='C')")
        cluster.run(0, "create aligned timeseries root.a.line(n INT32, f FLOAT)")
        for place, time in enumerate(times):
            cluster.run(place % 3, f"insert into root.a.d(time, n) values ({time}, {place})")
            cluster.run(place % 3, f"insert into root.a.line(time, n, f) values ({time}, {place}, 0.5)")
            if place == 6:
                cluster.run(0, "flush")
        cluster.run(1, "alter timeseries root.a.d.n set data type INT64")
        cluster.run(2, "alter timeseries root.a.line.n set data type DOUBLE")
        for number in range(3):
            assert [("root.a.d.n", "INT64")] == [
                (r[0], r[3]) for r in cluster.run(number, "show timeseries root.a.d.n")
            ]
            assert [(time, place) for place, time in enumerate(times)] == cluster.run(number, "select n from root.a.d")
            assert [(12, 66.0, 11)] == cluster.run(number, "select count(n), sum(n), last_value(n) from root.a.d")
            assert [(times[-1], "root.a.d.n", "11", "INT64")] == cluster.run(number, "select last n from root.a.d")
            assert [(12, 66.0)] == cluster.run(number, "select count(n), sum(n) from root.a.line")
        for place, time in enumerate(times):
            cluster.run(place % 3, f"insert into root.a.d(time, n) values ({time + 1}, {2**40 + place})")
            cluster.run(place % 3, f"insert into root.a.line(time, n) values ({time + 1}, {place + 0.5})")
        wanted = sorted([(t, n) for n, t in enumerate(times)] + [(t + 1, 2**40 + n) for n, t in enumerate(times)])
        halves = sorted([(t, float(n)) for n, t in enumerate(times)] + [(t + 1, n + 0.5) for n, t in enumerate(times)])
        with pytest.raises(UserMistake, match=r"root\.a\.d\.n is INT64, which may become .* not INT32") as why:
            cluster.run(0, "alter timeseries root.a.d.n set data type INT32")
        assert 507 == why.value.code
        cluster.run(2, "alter timeseries root.a.** set storage_properties compressor=ZSTD")
        for number in range(3):
            assert {"ZSTD"} == {row[5] for row in cluster.run(number, "show timeseries root.a.**")}
        for _ in range(2):
            for number in range(3):
                assert wanted == cluster.run(number, "select n from root.a.d")
                assert halves == cluster.run(number, "select n from root.a.line")
            cluster.run(0, "flush")
            cluster.run(0, "full merge")
            cluster.restart_all()
    finally:
        cluster.close()


def test_writers_at_all_nodes_go_on_while_the_type_changes(tmp_path: Path) -> None:
    """No acknowledged row is lost. A reader sees a single type, or gets an error after which it may retry."""
    cluster = Nodes(tmp_path / "cluster", 3, 3)
    try:
        cluster.run(0, "create timeseries root.a.d.n with datatype=INT32")
        changed = threading.Event()
        written: list[list[tuple[int, int]]] = [[], [], []]
        wrong: list[object] = []

        def write(number: int) -> None:
            behind = 0
            while behind < 10:
                behind += changed.is_set()
                place = len(written[number])
                time = (place % 5) * WEEK + 3 * place + number
                cluster.run(number, f"insert into root.a.d(time, n) values ({time}, {place})")
                written[number].append((time, place))

        def read(number: int) -> None:
            while not changed.is_set():
                try:
                    rows = cluster.run(number, "select n from root.a.d")
                except StorageError as error:
                    if error.code != 2021:
                        wrong.append(error)
                else:
                    wrong.extend({type(value) for _, value in rows} - {int, float})
                    if len({type(value) for _, value in rows}) > 1:
                        wrong.append(rows)

        def guarded(act: object, number: int) -> None:
            try:
                act(number)  # type: ignore[operator]
            except Exception as error:  # noqa: BLE001
                wrong.append(error)

        threads = [threading.Thread(target=guarded, args=(act, n)) for act in (write, read) for n in range(3)]
        for thread in threads:
            thread.start()
        cluster.run(1, "alter timeseries root.a.d.n set data type INT64")
        cluster.run(2, "alter timeseries root.a.d.n set data type DOUBLE")
        changed.set()
        for thread in threads:
            thread.join()
        assert [] == wrong
        wanted = sorted((time, float(value)) for part in written for time, value in part)
        for number in range(3):
            assert wanted == cluster.run(number, "select n from root.a.d")
    finally:
        cluster.close()
