"""Operations on text columns with Arrow's kernels: comparison, order, matching.

Matching takes time linear in the text for every pattern, because Arrow uses RE2. Comparison is by bytes, which for
UTF-8 is the order of code points. `saros_storage.base.text_conversion` converts other types to text.

Arrow is imported when a query first needs it. Pure: any thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from saros_storage.base.arrow import Arrow, arrow_compute, numbers_from_arrow, text_from_arrow, text_to_arrow
from saros_storage.base.block import Column, TextArray
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import BoolArray, ByteArray, Int64Array, NumericArray

#: The maximum number of bytes that follow the first byte of a UTF-8 character.
_FOLLOWING_BYTES_MAX = 3
#: Bytes below this one are ASCII characters.
_ASCII_END = 0x80


def map_text(column: Column, function: str, **options: object) -> TextArray:
    """Apply Arrow's string function `function` to the column."""
    return text_from_arrow(getattr(arrow_compute(), function)(text_to_arrow(column.text, column.valid), **options))


def cased_text(column: Column, kernel: str, change: Callable[[str], str]) -> TextArray:
    """Change the case of a column with Arrow's `kernel` if all texts are ASCII, and otherwise with `change`.

    Arrow maps each character to one character, which is wrong for some characters outside ASCII.
    """
    text = column.text
    if text.data[text.offsets[0] : text.offsets[-1]].max(initial=0) < _ASCII_END:
        return map_text(column, kernel)
    return TextArray.of(None if t is None else change(t) for t in text_to_arrow(text, column.valid).to_pylist())


def repeat_text(value: str | bytes, count: int) -> TextArray:
    """Return a column with `count` copies of a text."""
    raw = np.frombuffer(value.encode() if isinstance(value, str) else value, np.uint8)
    return TextArray(np.arange(count + 1, dtype=np.int32) * np.int32(len(raw)), np.tile(raw, count))


def compare_text(operator: str, left: TextArray | bytes, right: TextArray | bytes) -> BoolArray:
    """Compare texts row by row, by bytes; `operator` is Arrow's name of the comparison: equal, less, ..."""
    import pyarrow as pa

    def side(value: TextArray | bytes) -> Arrow:
        return pa.scalar(value, pa.binary()) if isinstance(value, bytes) else text_to_arrow(value, binary=True)

    return numbers_from_arrow(getattr(arrow_compute(), operator)(side(left), side(right)))


def text_distances(left: TextArray, right: TextArray) -> NumericArray:
    """Return the distance of the two texts of each row, as int32.

    The distance is the difference of the first characters that differ, or of the lengths if no characters differ.

    The difference is negative if the left text sorts first. The result is that of Java's `compareTo`, except that
    characters are code points.
    """
    compute = arrow_compute()
    texts = [text_to_arrow(left), text_to_arrow(right)]
    left, right = map(text_from_arrow, texts)
    lengths = [numbers_from_arrow(compute.utf8_length(text)).astype(np.int32) for text in texts]
    distances = lengths[0] - lengths[1]
    rows, places = _first_differences(left, right)
    at = left.offsets[:-1][rows] + places
    for _ in range(_FOLLOWING_BYTES_MAX):  # go back to the character's first byte, at the same offset in both texts
        back = (left.data[at] & 0xC0) == 0x80
        at, places = at - back, places - back
    distances[rows] = _code_points(left.data, at) - _code_points(right.data, right.offsets[:-1][rows] + places)
    return distances


def _first_differences(left: TextArray, right: TextArray) -> tuple[Int64Array, Int64Array]:
    """Return the rows in which neither text is a prefix of the other, and the offset of the first differing byte."""
    shared = np.minimum(np.diff(left.offsets), np.diff(right.offsets)).astype(np.int64)
    ends = np.cumsum(shared)
    rows = np.repeat(np.arange(len(shared)), shared)
    places = np.arange(len(rows)) - np.repeat(ends - shared, shared)
    differ = np.flatnonzero(
        left.data[left.offsets[:-1][rows] + places] != right.data[right.offsets[:-1][rows] + places]
    )
    found, first = np.unique(rows[differ], return_index=True)
    return found, places[differ[first]]


def _code_points(data: ByteArray, at: Int64Array) -> NumericArray:
    """Return the code points (int32) of the UTF-8 characters that begin at the offsets `at`."""
    lead = data[at].astype(np.int32)
    following = (lead >= 0xC0).astype(np.int32) + (lead >= 0xE0) + (lead >= 0xF0)
    points = np.where(following == 0, lead, lead & (0x3F >> following))
    for number in range(1, _FOLLOWING_BYTES_MAX + 1):
        more = following >= number
        points[more] = points[more] << 6 | data[at[more] + number] & 0x3F
    return points


def text_ranks(text: TextArray) -> Int64Array:
    """Return one number per text.

    The numbers sort in the same order as the texts, and equal texts have equal numbers.
    """
    if len(text) == 0:
        return np.empty(0, np.int64)
    ranks = arrow_compute().rank(text_to_arrow(text, binary=True), "ascending", tiebreaker="dense")
    return numbers_from_arrow(ranks).astype(np.int64)


def is_in(text: TextArray, items: Sequence[bytes]) -> BoolArray:
    """Return the mask of texts that are one of `items`."""
    wanted = text_to_arrow(TextArray.of(items), binary=True)
    return numbers_from_arrow(arrow_compute().is_in(text_to_arrow(text, binary=True), value_set=wanted))


def check_pattern(pattern: str, *, regexp: bool) -> None:
    """Raise UserMistake unless `match_text` accepts the pattern."""
    match_text(TextArray.of([""]), pattern, regexp=regexp)


_WILDCARDS = {"%": ".*", "_": "."}


def like_pattern(pattern: str, escape: str | None) -> tuple[str, bool]:
    """Convert a pattern of LIKE [ESCAPE] for `match_text`; also return whether it became a regular expression.

    Arrow's LIKE always uses the backslash as the escape. If a pattern only requires a prefix or a suffix, Arrow takes
    an escaped backslash for two backslashes. A pattern with a backslash or an escape therefore becomes a regular
    expression.

    Raises UserMistake 701 if the escape precedes a character other than `%`, `_` and the escape.
    """
    if "\\" not in pattern and (escape is None or escape not in pattern):
        return pattern, False
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            literal = next(characters, "")
            if literal not in ("%", "_", escape):
                raise UserMistake(
                    f"the escape {escape!r} in {pattern!r} must precede %, _ or another {escape!r}", code=701
                )
            parts.append(re.escape(literal))
        else:
            parts.append(_WILDCARDS.get(character) or re.escape(character))
    return rf"(?s)\A{''.join(parts)}\z", True


def match_text(text: TextArray, pattern: str, *, regexp: bool) -> BoolArray:
    """Return the mask of texts that match a LIKE pattern (see `like_pattern`), or contain a match of a REGEXP."""
    import pyarrow as pa

    kernel = arrow_compute().match_substring_regex if regexp else arrow_compute().match_like
    try:
        return numbers_from_arrow(kernel(text_to_arrow(text), pattern))
    except pa.ArrowInvalid as problem:
        raise UserMistake(
            f"{pattern!r} is not a valid regular expression (RE2 syntax: no look-around, no "
            f"back-references): {str(problem).removeprefix('Invalid regular expression: ')}"
        ) from problem
