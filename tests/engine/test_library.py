"""Functions of IoTDB's library, compared on random points with plain loops that follow their formulas."""

from __future__ import annotations

import cmath
import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pytest
from engine.operator_fakes import unwanted

from saros_engine.plan.expression import FunctionCall
from saros_engine.transforms import POINT_FUNCTIONS, Points, spectrum
from saros_scheduler.cancellation import QueryCancelled
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType, TimeUnit

CHANCE = np.random.default_rng(7)


def run(
    name: str, times: Sequence[int], *columns: Sequence[float | None], **attributes: str
) -> list[tuple[int, float]]:
    """Return the points that the function makes; None is null."""
    call = FunctionCall(name, (), DataType.DOUBLE, tuple(attributes.items()))
    given = tuple(Column.of(DataType.DOUBLE, list(values)) for values in columns)
    made = POINT_FUNCTIONS[name].make(call, TimeUnit.MILLISECOND)(Points(np.array(times, np.int64), given))
    return list(zip(made.times.tolist(), made.columns[0].to_list(), strict=True))  # type: ignore[arg-type]


def values_of(name: str, *columns: Sequence[float | None], **attributes: str) -> list[float]:
    return [value for _, value in run(name, range(len(columns[0])), *columns, **attributes)]


def drawn(count: int) -> list[float]:
    return CHANCE.normal(3, 2, count).tolist()  # type: ignore[no-any-return]


#: Functions that take seconds, or even minutes, for the maximum number of points.
LONG = [
    ("dtw", {}),
    ("cluster", {"l": "5", "k": "3"}),
    ("cluster", {"l": "5", "k": "3", "method": "kshape"}),
    ("cluster", {"l": "5", "k": "3", "method": "medoidshape"}),
    ("validity", {"window": "20"}),
    ("outlier", {"w": "50", "s": "10"}),
    ("lof", {}),
    ("m4", {"windowSize": "10"}),
    ("segment", {"error": "100"}),
    ("deconv", {}),
    ("timestamprepair", {"interval": "2"}),
    ("valuerepair", {}),
]


@pytest.mark.parametrize(("name", "attributes"), LONG)
def test_what_takes_long_is_broken_off_when_its_query_has_ended(name: str, attributes: dict[str, str]) -> None:
    values = [drawn(200)] * (2 if name in ("dtw", "deconv") else 1)
    values_of(name, *values, **attributes)
    with unwanted(), pytest.raises(QueryCancelled):
        values_of(name, *values, **attributes)


@pytest.mark.parametrize("count", [1, 2, 7, 16])
def test_spectrum(count: int) -> None:
    values = drawn(count)
    sums = [sum(v * cmath.exp(-2j * math.pi * k * t / count) for t, v in enumerate(values)) for k in range(count)]
    assert np.allclose([abs(s) for s in sums], values_of("fft", values))
    real, imaginary = values_of("fft", values, result="real"), values_of("fft", values, result="imag")
    assert np.allclose([s.real for s in sums], real)
    assert np.allclose([s.imag for s in sums], imaginary)
    assert np.allclose(values, values_of("ifft", real, imaginary))
    # Two things are sufficient: the lower half of the spectrum, and its last coefficient, whose index gives the length.
    kept = sorted({*range(count // 2 + 1), count - 1})
    half = run("ifft", kept, [real[k] for k in kept], [imaginary[k] for k in kept])
    assert np.allclose(values, [value for _, value in half])


@pytest.mark.parametrize("exact", [True, False])
def test_polynomials(monkeypatch: pytest.MonkeyPatch, exact: bool) -> None:
    if not exact:
        monkeypatch.setattr(spectrum, "_PRODUCTS_MAX", 1)
    x, y = drawn(9), drawn(4)
    products = [sum(x[i] * y[k - i] for i in range(9) if 0 <= k - i < 4) for k in range(12)]
    padded = [*y, *[None] * 5]
    assert np.allclose(products, values_of("conv", x, padded))
    quotient, rest = values_of("deconv", x, padded), values_of("deconv", x, padded, result="remainder")
    back = [sum(quotient[i] * y[k - i] for i in range(6) if 0 <= k - i < 4) + rest[k] for k in range(9)]
    assert np.allclose(x, back)
    assert rest[3:] == [0.0] * 6


@pytest.mark.parametrize("method", ["Haar", "DB2", "DB4", "DB6", "DB8"])
@pytest.mark.parametrize("layer", ["1", "2", "3"])
def test_wavelets_lose_nothing(method: str, layer: str) -> None:
    values = drawn(16)
    waves = values_of("dwt", values, method=method, layer=layer)
    assert np.allclose(values, values_of("idwt", waves, method=method, layer=layer))
    assert math.isclose(math.hypot(*values), math.hypot(*waves), rel_tol=1e-9)
    # For a constant signal, all wavelet coefficients are 0 except the few sums in the last layer.
    still = values_of("dwt", [1.0] * 16, method=method, layer=layer)
    assert np.allclose(0, still[8:])


def test_cross_correlation() -> None:
    x, y = drawn(6), drawn(6)
    sums = [sum(x[i] * y[i + shift] for i in range(6) if 0 <= i + shift < 6) / 6 for shift in range(5, -6, -1)]
    assert np.allclose(sums, values_of("xcorr", x, y))


def test_partial_correlation_solves_yule_walker() -> None:
    values = np.array(drawn(40))
    less = values - values.mean()
    covariances = [less[: 40 - k] @ less[k:] / (40 - k) for k in range(9)]
    expected = [1.0]
    for order in range(1, 9):
        matrix = [[covariances[abs(i - j)] for j in range(order)] for i in range(order)]
        expected.append(np.linalg.solve(matrix, covariances[1 : order + 1])[-1])
    assert np.allclose(expected, values_of("pacf", values.tolist(), lag="8"))
    assert len(values_of("pacf", values.tolist())) == 17  # the lags 1 to 10 log10(40), and lag 0


def test_ljung_box_is_the_tail_of_chi_squared() -> None:
    """The expected values are integrals of the chi-squared density by Simpson's rule."""
    values = np.array(drawn(30))
    less = values - values.mean()
    statistic = 0.0
    for lag, found in enumerate(values_of("qlb", values.tolist(), lag="12"), 1):
        statistic += (less[:-lag] @ less[lag:] / (less @ less)) ** 2 / (30 - lag) * 30 * 32
        if lag < 3:
            continue  # because the density is steep at 0
        x = np.linspace(0, statistic, 20_001)
        density = x ** (lag / 2 - 1) * np.exp(-x / 2) / (2 ** (lag / 2) * math.gamma(lag / 2))
        weights = np.ones(20_001)
        weights[1:-1:2], weights[2:-1:2] = 4, 2
        assert math.isclose(1 - density @ weights * (x[1] - x[0]) / 3, found, abs_tol=1e-6)


@pytest.mark.parametrize("window", [1, 2, 3, 6, 7])
def test_symmetry(window: int) -> None:
    values = drawn(12)

    def distance(i: int, j: int) -> float:
        if j <= i:
            return 0.0
        inside = min(distance(i + 1, j), distance(i, j - 1), distance(i + 1, j - 1))
        return (values[i] - values[j]) ** 2 + inside

    expected = [distance(i, i + window - 1) for i in range(13 - window)]
    assert np.allclose(expected, values_of("ptnsym", values, window=str(window)))


@pytest.mark.parametrize("period", [2, 7, 24, 90])
@pytest.mark.parametrize("count", [400, 5_000])
def test_period_of_a_wave_with_noise(period: int, count: int) -> None:
    wave = 100 + 10 * np.sin(2 * math.pi * np.arange(count) / period + 1) + CHANCE.normal(0, 0.3, count)
    assert [period] == values_of("period", wave.tolist())


def test_curve_passes_through_its_points_smoothly() -> None:
    times = [0, 10, 25, 30, 60, 75, 80, 100]
    heights = drawn(8)
    curve = dict(run("spline", times, heights, points="101"))
    assert list(range(101)) == list(curve)
    assert np.allclose(heights, [curve[t] for t in times])
    finer = dict(run("spline", [t * 1_000 for t in times], heights, points="100001"))
    for at in (10_000, 25_000, 60_000, 80_000):  # the slopes on both sides are equal
        assert math.isclose(finer[at] - finer[at - 1], finer[at + 1] - finer[at], rel_tol=1e-2, abs_tol=1e-6)


def test_parts_fit_their_lines() -> None:
    values = [*np.arange(30) * 0.5, *(15 - np.arange(31) * 2.0)]
    found = run("segment", range(61), values, error="0.01", output="all")
    starts = [time for time, _ in run("segment", range(61), values, error="0.01")]
    assert np.allclose(values, [value for _, value in found])
    assert starts[0] == 0
    assert len(starts) == 2


@pytest.mark.parametrize("seed", range(12))
def test_times_are_repaired_at_the_least_cost(seed: int) -> None:
    """The cost is compared with the least cost of all ways to match points and times in order, one to one."""
    chance = np.random.default_rng(seed)
    times = np.unique(np.arange(0, 70, 10) + chance.integers(-4, 5, 7) * chance.integers(0, 2, 7)) * 10_000
    times = np.delete(times, chance.integers(1, len(times) - 1)).tolist()
    found = [pair for pair in run("timestamprepair", times, times, interval="100000") if not np.isnan(pair[1])]

    @lru_cache(None)
    def least(i: int, j: int) -> int:
        if i == len(even) or j == len(times):
            return 100_000 * (len(even) - i + len(times) - j)
        moved = abs(even[i] - times[j]) + least(i + 1, j + 1)
        return min(moved, 100_000 + least(i + 1, j), 100_000 + least(i, j + 1))

    offsets = Counter(time % 100_000 for time in times)
    offset = max(offsets, key=lambda one: offsets[one])
    start = times[0] - (times[0] - offset) % 100_000
    even = list(range(start, times[-1] + 100_000, 100_000))
    cost = sum(abs(time - int(value)) for time, value in found)
    cost += 100_000 * (len(even) - len(found) + len(times) - len(found))
    assert cost == least(0, 0)
    assert {time for time, _ in found} <= set(even)
    assert [value for _, value in found] == sorted(value for _, value in found)


@pytest.mark.parametrize("seed", range(6))
def test_speeds_are_brought_within_bounds(seed: int) -> None:
    chance = np.random.default_rng(seed)
    times = np.cumsum(chance.integers(1, 4, 60)).tolist()
    values = (np.cumsum(chance.normal(0, 0.3, 60)) + 9 * (chance.random(60) < 0.15)).tolist()
    window = 5 * float(np.median(np.diff(times)))
    expected: list[float] = []
    for k, (time, value) in enumerate(zip(times, values, strict=True)):
        ahead = [i for i in range(k + 1, 60) if times[i] <= time + window]
        allowed = [values[i] + speed * (time - times[i]) for i in ahead for speed in (-0.5, 0.7)]
        asked = sorted([value, *allowed])[len(ahead)]
        if expected:
            step = time - times[k - 1]
            asked = max(min(asked, expected[-1] + 0.7 * step), expected[-1] - 0.5 * step)
        expected.append(asked)
    found = run("valuerepair", times, values, minSpeed="-0.5", maxSpeed="0.7")
    assert np.allclose(expected, [value for _, value in found])


@pytest.mark.parametrize("seed", range(6))
def test_speeds_are_brought_to_change_little(seed: int) -> None:
    chance = np.random.default_rng(seed)
    times = np.cumsum(chance.integers(1, 4, 60))
    values = np.cumsum(chance.normal(0, 0.3, 60)) + 9 * (chance.random(60) < 0.1)
    found = values.tolist()
    while True:
        changes = np.diff(np.diff(found) / np.diff(times)) - 0.1
        at = int(np.abs(changes).argmax())
        if abs(changes[at]) < 3 * 0.4:
            break
        before, after = float(times[at + 1] - times[at]), float(times[at + 2] - times[at + 1])
        found[at + 1] += np.sign(changes[at]) * max(0.4, abs(changes[at]) / 3) * before * after / (before + after)
    got = run("valuerepair", times.tolist(), values.tolist(), method="LsGreedy", center="0.1", sigma="0.4")
    assert np.allclose(found, [value for _, value in got])


def test_outliers_have_few_others_near() -> None:
    values = np.round(np.array(drawn(60)), 1).tolist()  # rounded, so that many values are exactly `r` apart
    alone = set()
    for start in range(0, 51, 7):
        part = values[start : start + 10]
        alone |= {start + i for i, v in enumerate(part) if sum(abs(v - w) <= 0.5 for w in part) < 3}
    found = run("outlier", range(60), values, r="0.5", k="3", w="10", s="7")
    assert [(i, values[i]) for i in sorted(alone)] == found


def test_thinly_settled_places() -> None:
    x, y = drawn(12), drawn(12)
    gaps = [[math.hypot(a - c, b - d) for c, d in zip(x, y, strict=True)] for a, b in zip(x, y, strict=True)]
    reaches = [sum(max(gap, sorted(row)[2]) for gap in row) for row in gaps]
    assert np.allclose([sum(reaches) / reach / 2 for reach in reaches], values_of("lof", x, y, k="2"))


def test_coefficients_solve_yule_walker() -> None:
    values = np.array(drawn(50))
    products = [values[: 50 - k] @ values[k:] / (50 - k) for k in range(5)]
    matrix = [[products[abs(i - j)] for j in range(4)] for i in range(4)]
    assert np.allclose(np.linalg.solve(matrix, products[1:]), values_of("ar", values.tolist(), p="4"))


def test_envelope_finds_the_beat() -> None:
    """The signal is (2 + cos(2 pi 3 t)) cos(2 pi 20 t); its envelope's spectrum has 2 at 0 Hz, and 0.5 at 3 Hz."""
    seconds = np.arange(0, 1, 0.01)
    values = (2 + np.cos(2 * math.pi * 3 * seconds)) * np.cos(2 * math.pi * 20 * seconds)
    found = dict(run("envelope", (np.arange(100) * 10).tolist(), values.tolist()))
    assert list(range(50)) == list(found)
    assert np.allclose([2.0, 0.0, 0.0, 0.5, 0.0], [found[k] for k in range(5)])


@pytest.mark.parametrize(
    ("name", "count", "attributes"),
    [
        ("deconv", 500_001, {}),
        ("ptnsym", 600_000, {"window": "30"}),
        ("segment", 20_001, {}),
        ("timestamprepair", 20_001, {}),
        ("pacf", 20_000, {"lag": "10001"}),
        ("qlb", 10_003, {}),
        ("ar", 20_000, {"p": "10001"}),
        ("outlier", 200_000, {"s": "1"}),
        ("twosidedfilter", 600_000, {"len": "1000"}),
        ("lof", 30_000, {}),
    ],
)
def test_what_would_take_too_long_is_refused(name: str, count: int, attributes: dict[str, str]) -> None:
    columns = [[1.0] * count] * (2 if name == "deconv" else 1)
    with pytest.raises(UserMistake, match=name) as caught:
        run(name, range(count), *columns, **attributes)
    assert caught.value.code == 2005


def straight(times: Sequence[int], values: Sequence[float]) -> bool:
    """Return whether the points are close to a straight line."""
    if len(set(values)) == 1:
        return True
    return bool(np.corrcoef(times, values)[0, 1] ** 2 >= 0.9999)


@pytest.mark.parametrize("seed", range(8))
def test_parts_that_were_filled_by_a_line(seed: int) -> None:
    draw = np.random.default_rng(seed)
    times = np.cumsum(draw.integers(1, 4, 300)).tolist()
    values = draw.normal(0, 5, 300)
    for _ in range(6):
        first, length = int(draw.integers(0, 280)), int(draw.integers(4, 70))
        values[first : first + length] = draw.integers(-1, 2) * np.array(times[first : first + length]) + 7
    values = values.tolist()
    expected = [False] * 300
    begin = first = 0
    while first + 5 <= 300:
        end = first + 5
        if not straight(times[first:end], values[first:end]):
            first = end
            continue
        back = first
        while back > max(begin, first - 5) and straight(times[back - 1 : end], values[back - 1 : end]):
            back -= 1
        while end < 300 and straight(times[first : end + 1], values[first : end + 1]):
            end += 1
        expected[back:end] = [end - back > 10] * (end - back)
        begin = first = end
    assert True in expected
    assert expected == [bool(value) for _, value in run("missdetect", times, values)]


@pytest.mark.parametrize("wanted", [3, 4, 7, 29])
def test_the_largest_triangles(wanted: int) -> None:
    times, values = list(range(100, 400, 10)), drawn(30)
    points = list(zip(times, values, strict=True))
    parts = [list(part) for part in np.array_split(np.arange(1, 29), wanted - 2)]
    chosen = [points[0]]
    for number, part in enumerate(parts):
        behind = [points[i] for i in (parts[number + 1] if number + 1 < len(parts) else [29])]
        (x1, y1), x3, y3 = chosen[-1], sum(x for x, _ in behind) / len(behind), sum(y for _, y in behind) / len(behind)
        areas = [abs(x1 * (y2 - y3) + x2 * (y3 - y1) + x3 * (y1 - y2)) for x2, y2 in (points[i] for i in part)]
        chosen.append(points[part[areas.index(max(areas))]])
    assert [*chosen, points[-1]] == run("sample", times, values, method="triangle", k=str(wanted))


def test_likelihood_changes_speed_least() -> None:
    times = np.cumsum(CHANCE.integers(1, 5, 40)).tolist()
    whole = np.array(drawn(40))
    missing = [0, 3, 4, 5, 7, 9, 20, 21, 30, 39]
    given = whole.copy()
    given[missing] = math.nan
    found = np.array([value for _, value in run("valuefill", times, given.tolist(), method="likelihood")])
    assert np.isnan(found[[0, 39]]).all()  # no value precedes the first one, and none follows the last one
    inner = missing[1:-1]
    assert np.array_equal(np.delete(found, missing), np.delete(given, missing))

    def cost(values: np.ndarray) -> float:  # type: ignore[type-arg]
        return float((np.diff(np.diff(values[1:-1]) / np.diff(times[1:-1])) ** 2).sum())

    for row in inner:
        for by in (-0.01, 0.01):
            moved = found.copy()
            moved[row] += by
            assert cost(moved) > cost(found)


def test_screen_keeps_speeds_within_bounds() -> None:
    values = [float(t) for t in range(20)]
    given = [math.nan if t in (4, 5, 11) else v for t, v in enumerate(values)]
    assert values == values_of("valuefill", given, method="screen")
    # No value follows the last value, so only the bounds limit its speed.
    assert values_of("valuefill", [*values, math.nan], method="screen")[-1] == 20.0


def test_clusters_of_shapes_that_begin_anywhere() -> None:
    wave, ramp = np.sin(np.linspace(0, 4 * math.pi, 32)), np.linspace(-1, 1, 32)
    kinds = [0, 1, 0, 0, 1, 1, 0, 1]
    shifts = CHANCE.integers(-2, 3, len(kinds))
    windows = [np.roll(wave, s) * 3 + 5 if kind == 0 else ramp * 2 + s for kind, s in zip(kinds, shifts, strict=True)]
    values = np.concatenate(windows).tolist()
    for method in ("kshape", "medoidshape"):
        found = values_of("cluster", values, l="32", k="2", method=method, sample_rate="1")
        assert len(set(zip(kinds, found, strict=True))) == 2, method
    middles = values_of("cluster", values, l="32", k="2", method="kshape", output="centroid")
    assert len(middles) == 64
    assert np.allclose([0, 1], [np.mean(middles[:32]), np.std(middles[:32])])
    assert run("cluster", range(len(values)), values, l="32", k="2")[1][0] == 32
