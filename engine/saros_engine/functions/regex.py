"""STRREPLACE, REGEXMATCH, REGEXREPLACE, REGEXSPLIT: the functions of IoTDB's library that search in texts.

Arrow's kernels find and rewrite matches (with RE2, in time linear in the text), but do not return positions. Therefore,
every match is rewritten to its replacement and the original text, between separators that no text contains, and the
result is split at the separators:

    a-b-c    "-" by "+"      a⟨+|-⟩b⟨+|-⟩c      split at ⟨, |, ⟩:  before a,  new +,  old -,  after b, ...

REGEXMATCH returns null for a row without a match. REGEXSPLIT returns null for a row without the requested part. Pure:
any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from saros_engine.expressions.text import check_pattern
from saros_engine.functions.function import (
    Attributes,
    Evaluator,
    Function,
    FunctionKind,
    expect,
    flag_attribute,
    integer_attribute,
    required,
)
from saros_engine.plan.expression import FunctionCall
from saros_storage.base.arrow import Arrow, arrow_compute, text_from_arrow, text_to_arrow
from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import STRING_TYPES, BoolArray, DataType, Int64Array

#: The separators: Unicode noncharacters, which texts are not supposed to contain.
_OPEN, _MIDDLE, _CLOSE = "\ufdd0", "\ufdd1", "\ufdd2"
_INT32_MAX = (1 << 31) - 1
#: The maximum number of groups that RE2's rewriting supports.
_GROUPS_MAX = 9


def _check_signs(texts: Arrow, name: str) -> None:
    compute = arrow_compute()
    if compute.any(compute.match_substring_regex(texts, f"[{_OPEN}-{_CLOSE}]")).as_py():
        raise UserMistake(f"{name}: a text contains one of the non-characters U+FDD0 to U+FDD2", code=701)


def _flat(lists: Arrow) -> tuple[Arrow, Int64Array]:
    """Return the parts of all rows, one row after the other, and the position at which the parts of each row start."""
    return lists.flatten(), np.asarray(lists.offsets, np.int64) - lists.offsets[0].as_py()


def _rewrite(name: str, texts: Arrow, pattern: str, template: str, limit: int | None = None) -> Arrow:
    """Return the texts with matches rewritten by an RE2 template."""
    import pyarrow as pa

    _check_signs(texts, name)
    try:
        return arrow_compute().replace_substring_regex(texts, pattern, template, max_replacements=limit)
    except pa.ArrowInvalid as problem:
        raise UserMistake(
            f"{name}: {template!r} is not a valid replacement for {pattern!r}: {problem}", code=701
        ) from problem


# ---------------------------------------------------------------------------------------------- replacing


def _counts(name: str, attributes: Attributes) -> tuple[int, int, bool]:
    """Return the number of replacements (-1: all), the number of matches to skip, and whether to count from the end."""
    limit = integer_attribute(name, attributes, "limit", -1, low=-1, high=_INT32_MAX)
    offset = integer_attribute(name, attributes, "offset", 0, low=0, high=_INT32_MAX)
    return limit, offset, flag_attribute(name, attributes, "reverse", default=False)


def _java_template(text: str) -> str:
    """Convert a Java replacement to RE2's form: `$1` is a group, a backslash quotes the next character."""

    def rewritten(found: re.Match[str]) -> str:
        if found["group"]:
            return "\\" + found["group"]
        return (found["plain"] or found[0]).replace("\\", "\\\\")

    return re.sub(r"\\(?P<plain>.)|\$(?P<group>\d)|\\", rewritten, text, flags=re.DOTALL)


def _replacing(name: str, pattern: str, template: str, call: FunctionCall) -> Evaluator:
    limit, offset, reverse = _counts(name, dict(call.attributes))
    marked = f"{_OPEN}{template}{_MIDDLE}\\0{_CLOSE}"

    def run(columns: Sequence[Column], _: Block) -> Column:
        compute = arrow_compute()
        rewritten = _rewrite(name, text_to_arrow(columns[0].text), pattern, marked)
        parts, begins = _flat(compute.split_pattern_regex(rewritten, f"[{_OPEN}-{_CLOSE}]"))
        pieces = text_from_arrow(parts)
        kept = _result_mask(begins, limit, offset, reverse=reverse)
        lengths = np.where(kept, np.diff(pieces.offsets), 0)
        joined = pieces.take(np.flatnonzero(kept))
        ends = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=ends[1:])
        return Column(DataType.TEXT, TextArray(ends[begins].astype(np.int32), joined.data), columns[0].valid)

    return run


def _result_mask(begins: Int64Array, limit: int, offset: int, *, reverse: bool) -> BoolArray:
    """Return the mask of the parts to keep.

    The parts of a row are the text before the first match, and for each match its replacement, the original text, and
    the text after the match. Either the replacement or the original text of a match is kept.
    """
    counts = np.diff(begins)
    place = np.arange(begins[-1]) - np.repeat(begins[:-1], counts)
    match = (place - 1) // 3
    if reverse:
        match = np.repeat((counts - 1) // 3, counts) - 1 - match
    chosen = (match >= offset) & ((limit < 0) | (match < offset + limit))
    kind = place % 3  # 0: before or after, 1: new, 2: old
    return np.asarray((kind == 0) | (chosen == (kind == 1)), np.bool_)


def _check_strreplace(types: Sequence[DataType], attributes: Attributes) -> DataType:
    expect("strreplace", types, STRING_TYPES)
    if not required("strreplace", attributes, "target"):
        raise UserMistake("strreplace: 'target' must not be empty", code=701)
    required("strreplace", attributes, "replace")
    _counts("strreplace", attributes)
    return DataType.TEXT


def _make_strreplace(call: FunctionCall) -> Evaluator:
    attributes = dict(call.attributes)
    plain = attributes["replace"].replace("\\", "\\\\")
    return _replacing("strreplace", re.escape(attributes["target"]), plain, call)


def _check_regexreplace(types: Sequence[DataType], attributes: Attributes) -> DataType:
    expect("regexreplace", types, STRING_TYPES)
    check_pattern(required("regexreplace", attributes, "regex"), regexp=True)
    required("regexreplace", attributes, "replace")
    _counts("regexreplace", attributes)
    return DataType.TEXT


def _make_regexreplace(call: FunctionCall) -> Evaluator:
    attributes = dict(call.attributes)
    return _replacing("regexreplace", attributes["regex"], _java_template(attributes["replace"]), call)


# ---------------------------------------------------------------------------------------------- matching


def _check_regexmatch(types: Sequence[DataType], attributes: Attributes) -> DataType:
    expect("regexmatch", types, STRING_TYPES)
    check_pattern(required("regexmatch", attributes, "regex"), regexp=True)
    integer_attribute("regexmatch", attributes, "group", 0, low=0, high=_GROUPS_MAX)
    return DataType.TEXT


def _make_regexmatch(call: FunctionCall) -> Evaluator:
    attributes = dict(call.attributes)
    template = f"{_OPEN}\\{int(attributes.get('group', 0))}{_OPEN}"

    def run(columns: Sequence[Column], _: Block) -> Column:
        texts = text_to_arrow(columns[0].text)
        rewritten = _rewrite("regexmatch", texts, attributes["regex"], template, 1)
        parts, begins = _flat(arrow_compute().split_pattern(rewritten, _OPEN))
        found = np.diff(begins) > 1
        # A row without a match becomes null, so it does not matter which part is taken.
        texts_found = text_from_arrow(parts).take(begins[:-1] + found)
        return Column(DataType.TEXT, texts_found, columns[0].present & found)

    return run


# ---------------------------------------------------------------------------------------------- splitting


def _check_regexsplit(types: Sequence[DataType], attributes: Attributes) -> DataType:
    expect("regexsplit", types, STRING_TYPES)
    check_pattern(required("regexsplit", attributes, "regex"), regexp=True)
    index = integer_attribute("regexsplit", attributes, "index", -1, low=-1, high=_INT32_MAX)
    return DataType.INT32 if index < 0 else DataType.TEXT


def _make_regexsplit(call: FunctionCall) -> Evaluator:
    attributes = dict(call.attributes)
    index = int(attributes.get("index", -1))

    def run(columns: Sequence[Column], _: Block) -> Column:
        parts, begins = _flat(arrow_compute().split_pattern_regex(text_to_arrow(columns[0].text), attributes["regex"]))
        counts = _without_empty_ends(text_from_arrow(parts), begins)
        if index < 0:
            return Column(DataType.INT32, counts.astype(np.int32), columns[0].valid)
        found = counts > index
        texts = text_from_arrow(parts).take(begins[:-1] + np.where(found, index, 0))
        return Column(DataType.TEXT, texts, columns[0].present & found)

    return run


def _without_empty_ends(parts: TextArray, begins: Int64Array) -> Int64Array:
    """Return the number of parts in each row, without empty parts at its end (as in Java); 1 if there is no match."""
    counts = np.diff(begins)
    place = np.arange(begins[-1]) - np.repeat(begins[:-1], counts) + 1
    place[np.diff(parts.offsets) == 0] = 0
    filled = np.maximum.reduceat(place, begins[:-1]) if len(counts) else counts
    return np.asarray(np.where(counts == 1, 1, filled), np.int64)


REGEX_FUNCTIONS: tuple[Function, ...] = (
    Function("strreplace", FunctionKind.SCALAR, _check_strreplace, _make_strreplace),
    Function("regexmatch", FunctionKind.SCALAR, _check_regexmatch, _make_regexmatch),
    Function("regexreplace", FunctionKind.SCALAR, _check_regexreplace, _make_regexreplace),
    Function("regexsplit", FunctionKind.SCALAR, _check_regexsplit, _make_regexsplit),
)
