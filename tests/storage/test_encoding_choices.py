"""The encodings that a flush chooses for chunks of floating-point numbers."""

from __future__ import annotations

import numpy as np
import pytest

from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.encoding import decode, encode_plain_rows
from saros_storage.tsfile.encoding_selection import EncodingChoices

#: Integers divided by ten, each of which TS_2DIFF stores in a few bits.
DECIMALS = np.arange(200) / 10


def chosen(choices: EncodingChoices, values: np.ndarray, declared: Encoding = Encoding.GORILLA) -> Encoding:
    return choices.choose("root.a.d", "x", declared, Compressor.LZ4, DataType.DOUBLE, values, None)


@pytest.mark.parametrize(("rows", "encoding"), [(1, Encoding.PLAIN), (8, Encoding.PLAIN), (200, Encoding.TS_2DIFF)])
def test_a_few_rows_are_plain_without_a_trial(rows: int, encoding: Encoding) -> None:
    assert encoding is chosen(EncodingChoices(), DECIMALS[:rows])


def test_a_few_rows_do_not_decide_for_later_chunks() -> None:
    choices = EncodingChoices()
    found = [chosen(choices, values) for values in (DECIMALS[:3], DECIMALS, DECIMALS[:3], DECIMALS)]
    assert [Encoding.PLAIN, Encoding.TS_2DIFF, Encoding.PLAIN, Encoding.TS_2DIFF] == found


@pytest.mark.parametrize("declared", [Encoding.TS_2DIFF, Encoding.PLAIN, Encoding.RLE])
def test_a_declared_encoding_is_kept(declared: Encoding) -> None:
    choices = EncodingChoices()
    assert declared is chosen(choices, DECIMALS[:3], declared)
    assert declared is choices.without_trial("root.a.d", "x", declared, DataType.DOUBLE, 3)


def test_a_chunk_needs_a_trial_once_in_a_while() -> None:
    choices = EncodingChoices()

    def without_trial(rows: int) -> Encoding | None:
        return choices.without_trial("root.a.d", "x", Encoding.GORILLA, DataType.DOUBLE, rows)

    assert [Encoding.PLAIN, None] == [without_trial(8), without_trial(9)]
    chosen(choices, DECIMALS)
    assert [Encoding.TS_2DIFF] * 15 + [None] == [without_trial(200) for _ in range(16)]


@pytest.mark.parametrize("type_", [np.float32, np.float64])
def test_rows_of_a_matrix_are_pages_of_plain(type_: type) -> None:
    values = np.array([[1.5, -0.0, np.inf], [2.5, 3.25, 1e-30]], type_)
    kind = DataType.FLOAT if type_ is np.float32 else DataType.DOUBLE
    pages = encode_plain_rows(values)
    assert [values[0].tobytes(), values[1].tobytes()] == [
        decode(Encoding.PLAIN, kind, page, 3).tobytes() for page in pages
    ]
