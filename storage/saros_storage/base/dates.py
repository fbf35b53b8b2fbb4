"""DATE values: a day as the number `yyyymmdd`, converted from and to days since 1970. Pure: any thread."""

from __future__ import annotations

from datetime import date

import numpy as np

from saros_storage.base.types import Int32Array, Int64Array, NumericArray


def date_number(day: date) -> int:
    """Return a day as a DATE number."""
    return day.year * 10_000 + day.month * 100 + day.day


def days_of(dates: NumericArray) -> Int64Array:
    """Convert DATE numbers to days since 1970-01-01."""
    whole = dates.astype(np.int64)
    months = (whole // 10_000 - 1970) * 12 + whole // 100 % 100 - 1
    first: Int64Array = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first + whole % 100 - 1


def dates_of(days: NumericArray) -> Int32Array:
    """Convert days since 1970-01-01 to DATE numbers."""
    moments = days.astype("datetime64[D]")
    years, months = moments.astype("datetime64[Y]"), moments.astype("datetime64[M]")
    year = years.astype(np.int64) + 1970
    month = (months - years).astype(np.int64) + 1
    day = (moments - months).astype(np.int64) + 1
    dates: Int32Array = (year * 10_000 + month * 100 + day).astype(np.int32)
    return dates
