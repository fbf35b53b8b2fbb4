"""Imports of real recordings. SQL queries must return the same values as those that pandas computes from the CSV."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import saros

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not DATA.exists(), reason="the recordings are not here")]
START, END = pd.Timestamp("2020-03-09T10:00:00", tz="UTC"), pd.Timestamp("2020-03-09T16:00:00", tz="UTC")


def run_import(folder: Path, kind: str, *options: str) -> str:
    files = sorted(str(path) for path in (DATA / kind).glob("*.csv"))
    saros_command = str(Path(sys.executable).with_name("saros"))
    command = [saros_command, "import", "-d", str(folder), *options, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def frame_of(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path, sep=";", parse_dates=["datetime"], index_col="datetime").tz_localize("UTC")
    return frame[~frame.index.duplicated(keep="last")].sort_index()


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[saros.Connection]:
    folder = tmp_path_factory.mktemp("real")
    assert "7 files" in run_import(folder, "skab", "--device", "root.skab.{file}")
    assert "6 files" in run_import(folder, "nab", "--device", "root.nab.{file}")
    with saros.connect(str(folder)) as connection:
        yield connection


@pytest.fixture(scope="module")
def skab() -> dict[str, pd.DataFrame]:
    return {path.stem: frame_of(path) for path in sorted((DATA / "skab").glob("*.csv"))}


def asked(connection: saros.Connection, text: str) -> pd.DataFrame:
    frame = connection.execute(text).fetch_pandas()
    return frame.set_index("Time") if "Time" in frame else frame


def node(name: str) -> str:
    return f"`{name}`" if not name.replace("_", "").isalnum() else name


def test_all_points_are_there(loaded: saros.Connection, skab: dict[str, pd.DataFrame]) -> None:
    frame = asked(loaded, "select count(*) from root.skab.**").iloc[0]
    for name, data in skab.items():
        for column in data:
            series = f"count(root.skab.{node(name)}.{node(str(column))})"
            assert data[column].count() == frame[series]


def test_windows_are_what_pandas_resamples(loaded: saros.Connection, skab: dict[str, pd.DataFrame]) -> None:
    frame = asked(
        loaded,
        "select count(*), avg(Temperature), max_value(Pressure), min_value(Pressure), first_value(Current) from"
        f" root.skab.** group by ([{START.isoformat()}, {END.isoformat()}), 5m)",
    )
    assert 72 == len(frame)
    for name, data in skab.items():
        inside = data[(data.index >= START) & (data.index < END)]
        windows = inside.resample("5min", origin=START)
        grid = pd.date_range(START, END, freq="5min", inclusive="left")
        path = f"root.skab.{node(name)}"
        checks = {
            f"count({path}.Temperature)": windows["Temperature"].count().reindex(grid, fill_value=0),
            f"avg({path}.Temperature)": windows["Temperature"].mean().reindex(grid),
            f"max_value({path}.Pressure)": windows["Pressure"].max().reindex(grid),
            f"min_value({path}.Pressure)": windows["Pressure"].min().reindex(grid),
            f"first_value({path}.Current)": windows["Current"].first().reindex(grid),
        }
        for column, expected in checks.items():
            np.testing.assert_allclose(frame[column].to_numpy(float), expected.to_numpy(float), rtol=1e-12)


def test_value_filters(loaded: saros.Connection, skab: dict[str, pd.DataFrame]) -> None:
    data = skab["valve1-0"]
    expected = data[(data["Temperature"] > 70) & (data["Current"] <= 1.5)]
    frame = asked(
        loaded, "select Temperature, Current from root.skab.`valve1-0` where Temperature > 70 and Current <= 1.5"
    )
    assert len(expected) == len(frame) > 0
    np.testing.assert_array_equal(expected[["Temperature", "Current"]].to_numpy(), frame.to_numpy())
    assert list(expected.index) == list(frame.index)


def test_last_values(loaded: saros.Connection, skab: dict[str, pd.DataFrame]) -> None:
    rows = loaded.execute("select last Temperature from root.skab.** order by timeseries").fetchall()
    expected = [
        (
            data.index[-1].to_pydatetime(),
            f"root.skab.{node(name)}.Temperature",
            str(data["Temperature"].iloc[-1]),
            "DOUBLE",
        )
        for name, data in sorted(skab.items(), key=lambda item: node(item[0]))
    ]
    assert sorted(expected, key=lambda row: row[1]) == rows


def test_fill_previous_and_linear(loaded: saros.Connection, skab: dict[str, pd.DataFrame]) -> None:
    data = skab["valve1-1"]
    start = data.index[0].floor("min")
    grid = pd.date_range(start, periods=600, freq="1s")
    values = data["Pressure"].reindex(data.index.floor("s")).groupby(level=0).mean().reindex(grid)
    assert values.isna().any()
    text = (
        f"select avg(Pressure) from root.skab.`valve1-1` group by ([{start.isoformat()},"
        f" {(start + pd.Timedelta(minutes=10)).isoformat()}), 1s)"
    )
    np.testing.assert_allclose(asked(loaded, text).iloc[:, 0].to_numpy(float), values.to_numpy())
    filled = asked(loaded, text + " fill(previous)").iloc[:, 0].to_numpy(float)
    np.testing.assert_allclose(filled, values.ffill().to_numpy())
    linear = asked(loaded, text + " fill(linear)").iloc[:, 0].to_numpy(float)
    expected = values.interpolate("index", limit_area="inside").to_numpy()
    np.testing.assert_allclose(linear, expected)


def test_align_by_device(loaded: saros.Connection, skab: dict[str, pd.DataFrame]) -> None:
    frame = asked(loaded, "select Temperature, Voltage from root.skab.* align by device")
    assert sum(map(len, skab.values())) == len(frame)
    for name, data in skab.items():
        own = frame[frame["Device"] == f"root.skab.{node(name)}"]
        np.testing.assert_array_equal(data[["Temperature", "Voltage"]].to_numpy(), own.iloc[:, 1:].to_numpy())


def test_one_file_per_device_of_another_format(loaded: saros.Connection) -> None:
    for path in sorted((DATA / "nab").glob("*.csv")):
        data = pd.read_csv(path, parse_dates=["timestamp"]).drop_duplicates("timestamp", keep="last")
        rows = loaded.execute(f"select count(value), avg(value) from root.nab.{node(path.stem)}").fetchall()
        assert len(data) == rows[0][0]
        assert data["value"].mean() == pytest.approx(rows[0][1])
