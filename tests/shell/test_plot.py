"""Charts in the terminal."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from saros_shell.output.plot import SERIES_MAX, NotPlottableError, plot

DAY_MS = 86_400_000


def table(times: object, zone: str = "UTC", **columns: object) -> pa.Table:
    return pa.table({"Time": pa.array(np.asarray(times), pa.timestamp("ms", tz=zone)), **columns})


def chart(made: pa.Table, columns: int = 40, lines: int = 8) -> list[str]:
    return list(plot(made, columns, lines))


def drawn(line: str) -> str:
    return line.partition("│")[2]


def test_a_line_rises_from_the_least_to_the_greatest_value() -> None:
    lines = chart(table([0, 1_000, 2_000], s=[1.5, 2.0, 2.5]))
    assert "s" == lines[0]
    assert ["2.5", "", "", "1.5"] == [line.partition("│")[0].strip() for line in lines[1:5]]
    assert "⠀" not in drawn(lines[4])[:3]
    assert "⠀" not in drawn(lines[1])[-3:]
    assert "⠀" * 10 == drawn(lines[1])[:10]
    assert {40} >= {len(line) for line in lines[1:5]}


def test_a_gap_is_left_out_and_one_missing_window_shows() -> None:
    hours = [hour for hour in range(48) if hour != 20]
    lines = chart(table([hour * 3_600_000 for hour in hours], s=[1] * 24 + [1] * (len(hours) - 24)), columns=104)
    (row,) = [drawn(line) for line in lines[1:5] if set(drawn(line)) != {"⠀"}]
    assert 1 == len([part for part in row.strip("⠀").split("⠀⠀") if part]) - 1


def test_series_that_share_rows_are_connected_between_their_own_points() -> None:
    slow = [float(n) if n % 10 == 0 else None for n in range(101)]
    lines = chart(table(np.arange(101) * 1_000, fast=np.arange(101.0), slow=slow), lines=16)
    second = lines.index("slow")
    for part in (lines[1:second], lines[second + 1 : -2]):
        assert all(set(column) != {"⠀"} for column in zip(*map(drawn, part), strict=True))


def test_ticks_are_at_round_times_of_the_zone() -> None:
    quarter = np.arange(0, 61) * 60_000 + 1_704_096_000_000  # 2024-01-01T08:00Z
    axis = chart(table(quarter, "Europe/Berlin", s=np.arange(61.0)), columns=90)[-2:]
    assert ["2024-01-01", "09:00", "09:15", "09:30", "09:45", "10:00"] == axis[1].split()
    assert axis[0].strip()[1:].count("┬") == 5
    days = np.arange(0, 10) * DAY_MS
    assert ["1970-01-01", "1970-01-05"] == chart(table(days, s=np.arange(10.0)), columns=80)[-1].split()[:2]


@pytest.mark.parametrize("times", [[5], [5, 5]])
def test_a_single_moment_is_drawn(times: list[int]) -> None:
    lines = chart(table(times, s=[3] * len(times)))
    assert ["3"] == [text for line in lines[1:-2] if (text := line.partition("│")[0].strip())]
    assert 1 == sum(char != "⠀" for line in lines[1:-2] for char in drawn(line))
    assert "1970-01-01 00:00:00.005" == lines[-1].strip()


def test_columns_that_are_no_numbers_are_left_out() -> None:
    made = table(
        [0, 1_000], text=["a", "b"], on=[True, False], none=pa.array([None, None], pa.float64()), bad=[np.nan, 1]
    )
    assert ["on", "bad"] == [line for line in chart(made, lines=40) if line in ("text", "on", "none", "bad")]


def test_rows_of_devices_are_told_apart() -> None:
    made = table([0, 1_000, 0, 1_000], Device=["root.a", "root.a", "root.b", "root.b"], s=[1.0, 2.0, 3.0, 4.0])
    assert {"root.a.s", "root.b.s"} <= set(chart(made, lines=20))


def test_many_series_are_cut() -> None:
    made = table([0, 1_000], **{f"s{n}": [n, n + 1] for n in range(SERIES_MAX + 2)})
    assert f"({SERIES_MAX} of {SERIES_MAX + 2} series)" == chart(made)[-1]


def test_many_points_share_a_column_of_dots() -> None:
    values = np.tile([0.0, 1.0], 50_000)
    lines = chart(table(np.arange(100_000), s=values))
    assert all(set(drawn(line)) == {"⣿"} for line in lines[1:5])


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        (pa.table({"count(s)": [1]}), "there is no column of times"),
        (table([0], s=["a"]), "there are no numbers"),
        (table(np.array([], np.int64), s=pa.array([], pa.float64())), "there are no numbers"),
    ],
)
def test_a_result_without_times_or_numbers_is_refused(made: pa.Table, complaint: str) -> None:
    with pytest.raises(NotPlottableError, match=complaint):
        chart(made)
