"""Frequencies and wavelets: the functions of IoTDB's library for evenly spaced signals.

    FFT IFFT                            a spectrum at times 0, 1, ...; its signal, at a given interval
    CONV DECONV                         products and quotients of two series as polynomials, at times 0, 1, ...
    DWT IDWT                            wavelets: at the points' times; the number of points is a power of two
    ENVELOPE                            the spectrum of the envelope, at frequencies

Non-finite values are skipped. CONV and DECONV take each series separately, since their lengths may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from saros_engine.expressions.times import parse_time
from saros_engine.functions.function import (
    Attributes,
    choice_attribute,
    duration_attribute,
    integer_attribute,
    number_attribute,
)
from saros_engine.transforms.profile import doubles, finite_points, made_points, point_function
from saros_engine.transforms.series_transform import Generator, Points, SeriesTransform
from saros_engine.transforms.signal import mode
from saros_scheduler import require_wanted
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType, Float64Array, Int64Array, TimeUnit

_DOUBLE = DataType.DOUBLE
_MAX = (1 << 63) - 1
#: The limit on the length of IFFT's spectrum, which the last time determines: 128 MiB of complex numbers.
_SPECTRUM_MAX = 1 << 23
#: Up to this number of products are summed directly, which is exact for integers. More products are summed by the
#: spectrum.
_PRODUCTS_MAX = 1 << 24
#: The limits of DECONV on the length of the first series, and on the product of the lengths of both series.
_DIVIDEND_MAX, _DIVISION_MAX = 500_000, 1 << 28
_NANOSECOND = TimeUnit.NANOSECOND


def _finite_values(points: Points, number: int = 0) -> Float64Array:
    """Return the values of an argument that are finite and not null."""
    values = doubles(points, number)
    return values[np.isfinite(values) & points.columns[number].present]


def _counted(values: Float64Array) -> Points:
    """Return points with the values at times 0, 1, ..."""
    return made_points(np.arange(len(values), dtype=np.int64), _DOUBLE, values)


# ---------------------------------------------------------------------------------------------- spectra

_PARTS: dict[str, Callable[[np.ndarray], Float64Array]] = {
    "abs": np.abs,
    "real": np.real,
    "imag": np.imag,
    "angle": np.angle,
}


def _compression(attributes: Attributes) -> float | None:
    """Return the fraction of the energy to keep; None to keep the whole spectrum."""
    choice_attribute("fft", attributes, "method", ("uniform",))
    choice_attribute("fft", attributes, "result", tuple(_PARTS))
    if "compress" not in attributes:
        return None
    share = number_attribute("fft", attributes, "compress")
    if not 0 < share <= 1:
        raise UserMistake(f"fft: 'compress' must be above 0 and at most 1, not {share}", code=701)
    return share


def _make_fft(attributes: Attributes, _: TimeUnit) -> Generator:
    share = _compression(attributes)
    part = _PARTS[choice_attribute("fft", attributes, "result", tuple(_PARTS))]

    def run(points: Points) -> Points:
        values = _finite_values(points)
        if not len(values):
            return _counted(values)
        spectrum = np.fft.fft(values)
        kept = np.arange(len(values)) if share is None else _strongest(spectrum, share)
        return made_points(kept, _DOUBLE, part(spectrum[kept]))

    return run


def _strongest(spectrum: np.ndarray, share: float) -> Int64Array:
    """Return the lowest frequencies that have `share` of the energy, and the last frequency, which tells the size."""
    energy = np.abs(spectrum) ** 2
    half = len(spectrum) // 2
    reached = np.flatnonzero(energy[0] + 2 * np.cumsum(energy[1 : half + 1]) > share * energy.sum())
    last = int(reached[0]) + 1 if len(reached) else half
    return np.unique([*range(last + 1), len(spectrum) - 1])


def _check_ifft(attributes: Attributes) -> None:
    duration_attribute("ifft", {"interval": "1s", **attributes}, "interval", _NANOSECOND)
    if "start" in attributes:
        parse_time(attributes["start"], "UTC", TimeUnit.MILLISECOND)


def _make_ifft(attributes: Attributes, unit: TimeUnit) -> Generator:
    interval = duration_attribute("ifft", {"interval": "1s", **attributes}, "interval", unit)
    start = parse_time(attributes["start"], "UTC", unit) if "start" in attributes else 0

    def run(points: Points) -> Points:
        known = np.isfinite(doubles(points)) & np.isfinite(doubles(points, 1)) & (points.times >= 0)
        places = points.times[known]
        if not len(places):
            return made_points(places, _DOUBLE, places)
        count = int(places[-1]) + 1
        if count > _SPECTRUM_MAX:
            raise UserMistake(
                f"ifft: the last time is {places[-1]}; at most {_SPECTRUM_MAX - 1:,} is allowed", code=2005
            )
        if start + (count - 1) * interval > _MAX:
            raise UserMistake("ifft: the times go beyond INT64: take a shorter 'interval'", code=2007)
        spectrum = np.zeros(count, np.complex128)
        numbers = doubles(points)[known] + 1j * doubles(points, 1)[known]
        # The upper half of a real signal's spectrum mirrors the lower half; if both are given, the upper half takes
        # precedence.
        for half in (places <= count // 2, places > count // 2):
            spectrum[places[half]] = numbers[half]
            mirrored = half & (places > 0)
            spectrum[count - places[mirrored]] = numbers[mirrored].conj()
        return made_points(start + interval * np.arange(count), _DOUBLE, np.fft.ifft(spectrum).real)

    return run


def _check_envelope(attributes: Attributes) -> None:
    integer_attribute("envelope", attributes, "amplification", 1, low=1)
    if "frequency" in attributes:
        frequency = number_attribute("envelope", attributes, "frequency")
        if not 0 < frequency < np.inf:
            raise UserMistake(f"envelope: 'frequency' must be above 0, not {frequency}", code=701)


def _make_envelope(attributes: Attributes, unit: TimeUnit) -> Generator:
    amplification = integer_attribute("envelope", attributes, "amplification", 1, low=1)
    given = float(attributes["frequency"]) if "frequency" in attributes else None

    def run(points: Points) -> Points:
        known = finite_points(points)
        times, values = known.times, doubles(known)
        count = len(values)
        if count < 2:
            return made_points(times[:0], _DOUBLE, values[:0])
        spectrum = np.fft.fft(np.abs(_analytic(values)))[: count // 2]
        pace = unit.value / mode(np.diff(times)) if given is None else given
        frequencies = np.arange(count // 2) * (pace * amplification / count)
        # Frequencies are rounded down to integers to be times; of several points with the same time, the first is kept.
        whole, firsts = np.unique(frequencies[frequencies < _MAX].astype(np.int64), return_index=True)
        return made_points(whole, _DOUBLE, np.abs(spectrum[firsts]) / count)

    return run


def _analytic(values: Float64Array) -> np.ndarray:
    """Return the signal without its negative frequencies (Hilbert)."""
    count = len(values)
    weights = np.zeros(count)
    weights[0] = 1
    weights[1 : (count + 1) // 2] = 2
    if count % 2 == 0:
        weights[count // 2] = 1
    return np.fft.ifft(np.fft.fft(values) * weights)


# ---------------------------------------------------------------------------------------------- polynomials


def convolved(x: Float64Array, y: Float64Array) -> Float64Array:
    """Return the sums of the products x[i] * y[j] for each i + j; neither x nor y may be empty."""
    if len(x) * len(y) <= _PRODUCTS_MAX:
        return np.convolve(x, y)
    count = len(x) + len(y) - 1
    size = 1 << (count - 1).bit_length()
    return np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(y, size), size)[:count]


def _make_conv(_: Attributes, __: TimeUnit) -> Generator:
    def run(points: Points) -> Points:
        x, y = _finite_values(points), _finite_values(points, 1)
        return _counted(convolved(x, y) if len(x) and len(y) else x[:0])

    return run


#: Both spellings are accepted: IoTDB's manual has `quotient`, and older versions of its code have `quotinent`.
_RESULTS = ("quotient", "quotinent", "remainder")


def _make_deconv(attributes: Attributes, _: TimeUnit) -> Generator:
    remainder = choice_attribute("deconv", attributes, "result", _RESULTS) == "remainder"

    def run(points: Points) -> Points:
        dividend, divisor = _finite_values(points), _finite_values(points, 1)
        if not len(dividend) or not len(divisor):
            return _counted(dividend[:0])
        divisor = np.trim_zeros(divisor, "b")
        if not len(divisor):
            raise UserMistake("deconv: the second series has nothing but zeros to divide by", code=751)
        if len(dividend) > _DIVIDEND_MAX or len(dividend) * len(divisor) > _DIVISION_MAX:
            raise UserMistake(
                f"deconv: {len(dividend):,} by {len(divisor):,} points are too many; the first series may have at most"
                f" {_DIVIDEND_MAX:,} points, and the product of both numbers may be at most {_DIVISION_MAX:,}",
                code=2005,
            )
        quotient, rest = _divided(dividend, divisor)
        return _counted(rest if remainder else quotient)

    return run


def _divided(dividend: Float64Array, divisor: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Divide polynomials, whose highest coefficients come last; return quotient and remainder."""
    rest = dividend.copy()
    degree = len(divisor) - 1
    quotient = np.zeros(max(len(dividend) - degree, 1))
    for place in range(len(dividend) - degree - 1, -1, -1):
        require_wanted()
        quotient[place] = rest[place + degree] / divisor[-1]
        rest[place : place + degree] -= quotient[place] * divisor[:-1]
        rest[place + degree] = 0
    return quotient, rest


# ---------------------------------------------------------------------------------------------- wavelets

#: The low-pass filters of Haar and Daubechies wavelets; the number in a name is the number of coefficients.
_WAVELETS: dict[str, tuple[float, ...]] = {
    "haar": (0.7071067811865476, 0.7071067811865476),
    "db2": (0.7071067811865476, 0.7071067811865476),
    "db4": (0.4829629131445341, 0.8365163037378077, 0.2241438680420134, -0.1294095225512603),
    "db6": (
        0.3326705529500825,
        0.8068915093110924,
        0.4598775021184914,
        -0.1350110200102546,
        -0.0854412738820267,
        0.0352262918857095,
    ),
    "db8": (
        0.2303778133088964,
        0.7148465705529154,
        0.6308807679398587,
        -0.0279837694168599,
        -0.1870348117190931,
        0.0308413818355607,
        0.0328830116668852,
        -0.0105974017850690,
    ),
}
#: The running time is proportional to the number of coefficients times the number of points.
_COEFFICIENTS_MAX = 1_000


def _wavelet(name: str, attributes: Attributes) -> tuple[float, ...]:
    """Return the low-pass filter given by `method` or `coef`."""
    integer_attribute(name, attributes, "layer", 1, low=1)
    method = attributes.get("method", "").lower()
    if method in _WAVELETS:
        return _WAVELETS[method]
    try:
        found = tuple(float(word) for word in attributes.get("coef", "").split(",")) if not method else ()
    except ValueError:
        found = ()
    if len(found) % 2 or not 0 < len(found) <= _COEFFICIENTS_MAX or not np.isfinite(found).all():
        raise UserMistake(
            f"{name} needs 'method', one of Haar, DB2, DB4, DB6, DB8, or an even number of coefficients in 'coef', as"
            f" in {name}(s, 'coef'='0.5,0.5')",
            code=701,
        )
    return found


def _wave(name: str, *, inverse: bool) -> SeriesTransform:
    def make(attributes: Attributes, _: TimeUnit) -> Generator:
        low = _wavelet(name, attributes)
        layers = integer_attribute(name, attributes, "layer", 1, low=1)

        def run(points: Points) -> Points:
            known = finite_points(points)
            times, values = known.times, doubles(known)
            if not len(values):
                return made_points(times, _DOUBLE, values)
            if len(values) & (len(values) - 1) or len(values) < len(low):
                raise UserMistake(
                    f"{name}: a power of two of points, at least {len(low)}, is needed, not {len(values)}",
                    code=701,
                )
            sizes = [size for _, size in zip(range(layers), _halved(len(values), len(low)), strict=False)]
            values = values.copy()
            for size in reversed(sizes) if inverse else sizes:
                values[:size] = _joined(values[:size], low) if inverse else _parted(values[:size], low)
            return made_points(times, _DOUBLE, values)

        return run

    return point_function(name, _DOUBLE, make, lambda attributes: _wavelet(name, attributes))


def _halved(size: int, least: int) -> Iterator[int]:
    while size >= least:
        yield size
        size //= 2


def _filters(low: Sequence[float], size: int) -> Iterator[tuple[float, float, Int64Array]]:
    """Yield the coefficients of the low and the high pass with the positions that they weigh. Positions wrap around."""
    evens = np.arange(0, size, 2)
    for number, coefficient in enumerate(low):
        high = low[len(low) - 1 - number] * (1 if number % 2 == 0 else -1)
        yield coefficient, high, (evens + 1 - len(low) // 2 + number) % size


def _parted(values: Float64Array, low: Sequence[float]) -> Float64Array:
    """Return the low-pass half of the values, followed by the high-pass half."""
    found = np.zeros((2, len(values) // 2))
    for coefficient, high, places in _filters(low, len(values)):
        found[0] += coefficient * values[places]
        found[1] += high * values[places]
    return found.reshape(-1)


def _joined(values: Float64Array, low: Sequence[float]) -> Float64Array:
    """Return the values, given their low-pass and high-pass halves. This function is the inverse of `_parted`."""
    lower, upper = values.reshape(2, -1)
    found = np.zeros(len(values))
    for coefficient, high, places in _filters(low, len(values)):
        found[places] += coefficient * lower + high * upper
    return found


SPECTRUM = (
    point_function("fft", _DOUBLE, _make_fft, _compression),
    point_function("ifft", _DOUBLE, _make_ifft, _check_ifft, series=2),
    point_function("conv", _DOUBLE, _make_conv, series=2, apart=True),
    point_function(
        "deconv",
        _DOUBLE,
        _make_deconv,
        lambda attributes: choice_attribute("deconv", attributes, "result", _RESULTS),
        series=2,
        apart=True,
    ),
    _wave("dwt", inverse=False),
    _wave("idwt", inverse=True),
    point_function("envelope", _DOUBLE, _make_envelope, _check_envelope),
)
