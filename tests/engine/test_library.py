"""Functions of the library beside what their formulas say, in plain loops, over points by chance."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import numpy as np
import pytest

from saros_engine.expression import FunctionCall
from saros_engine.points import POINT_FUNCTIONS, Points, spectrum
from saros_storage.block import Column
from saros_storage.types import DataType, TimeUnit

CHANCE = np.random.default_rng(7)


def run(
    name: str, times: Sequence[int], *columns: Sequence[float | None], **attributes: str
) -> list[tuple[int, float]]:
    """The function's points; None is null."""
    call = FunctionCall(name, (), DataType.DOUBLE, tuple(attributes.items()))
    given = tuple(Column.of(DataType.DOUBLE, list(values)) for values in columns)
    made = POINT_FUNCTIONS[name].make(call, TimeUnit.MILLISECOND)(Points(np.array(times, np.int64), given))
    return list(zip(made.times.tolist(), made.columns[0].to_list(), strict=True))  # type: ignore[arg-type]


def values_of(name: str, *columns: Sequence[float | None], **attributes: str) -> list[float]:
    return [value for _, value in run(name, range(len(columns[0])), *columns, **attributes)]


def drawn(count: int) -> list[float]:
    return CHANCE.normal(3, 2, count).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("count", [1, 2, 7, 16])
def test_spectrum(count: int) -> None:
    values = drawn(count)
    sums = [sum(v * cmath.exp(-2j * math.pi * k * t / count) for t, v in enumerate(values)) for k in range(count)]
    assert np.allclose([abs(s) for s in sums], values_of("fft", values))
    real, imaginary = values_of("fft", values, result="real"), values_of("fft", values, result="imag")
    assert np.allclose([s.real for s in sums], real)
    assert np.allclose([s.imag for s in sums], imaginary)
    assert np.allclose(values, values_of("ifft", real, imaginary))
    # The lower half is enough, with the last number, which tells the length.
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
    # A straight signal has no waves but those of the last layer's few sums.
    still = values_of("dwt", [1.0] * 16, method=method, layer=layer)
    assert np.allclose(0, still[8:])


def test_envelope_finds_the_beat() -> None:
    """(2 + cos(2 pi 3 t)) cos(2 pi 20 t), 100 points a second: 2 at 0 hertz, and half of 1 at 3."""
    seconds = np.arange(0, 1, 0.01)
    values = (2 + np.cos(2 * math.pi * 3 * seconds)) * np.cos(2 * math.pi * 20 * seconds)
    found = dict(run("envelope", (np.arange(100) * 10).tolist(), values.tolist()))
    assert list(range(50)) == list(found)
    assert np.allclose([2.0, 0.0, 0.0, 0.5, 0.0], [found[k] for k in range(5)])
