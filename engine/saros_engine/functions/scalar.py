"""Scalar functions: the result for a row depends only on the arguments in this row. The table is `SCALAR_FUNCTIONS`.

Names, arguments and attributes are the same as in IoTDB. Lengths of texts count characters (code points), and positions
in SUBSTRING begin at 1.

Pure: any thread.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from itertools import starmap

import numpy as np

from saros_engine.expressions.integer_arithmetic import absolute
from saros_engine.expressions.text import cased_text, map_text, match_text, repeat_text, text_distances
from saros_engine.functions.function import (
    Attributes,
    Evaluator,
    Function,
    FunctionKind,
    constant_argument,
    declared,
    expect,
    flag_attribute,
    number_attribute,
    required,
    stateless,
)
from saros_engine.plan.expression import FunctionCall
from saros_storage.base.arrow import Arrow, arrow_compute, numbers_from_arrow, text_from_arrow, text_to_arrow
from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import (
    NUMERIC_TYPES,
    NUMPY_DTYPE,
    STRING_TYPES,
    BoolArray,
    DataType,
    Float64Array,
    NumericArray,
    Scalar,
)

# ---------------------------------------------------------------------------------------------- mathematics

#: If an exponent is below the negative of this number, ten to its power is zero as a DOUBLE.
_PLACES_MAX = 400


def _of_number(name: str, function: Callable[[Float64Array], Float64Array]) -> Function:
    """Return a function of one number with a DOUBLE result."""

    def run(columns: Sequence[Column], _: Block) -> Column:
        values = function(columns[0].numbers.astype(np.float64, copy=False))
        return Column(DataType.DOUBLE, values, columns[0].valid)

    return declared(name, stateless(run), NUMERIC_TYPES, result=DataType.DOUBLE)


def _abs(columns: Sequence[Column], block: Block) -> Column:
    return absolute(columns[0], block)


def _check_round(types: Sequence[DataType], attributes: Attributes) -> DataType:
    expect("round", types, NUMERIC_TYPES, NUMERIC_TYPES, optional=1)
    number_attribute("round", {"places": "0", **attributes}, "places")
    return DataType.DOUBLE


def _power_of_ten(exponent: float) -> float:
    """Return 10 to the power of the truncated exponent. Beyond the range of DOUBLE, this is infinity or zero."""
    if not exponent < sys.float_info.max_10_exp + 1:
        return math.inf
    return 10.0 ** int(max(exponent, -_PLACES_MAX))


def _make_round(call: FunctionCall) -> Evaluator:
    places = dict(call.attributes).get("places", "0")
    if len(call.arguments) > 1:
        places = str(constant_argument(call, 1))
    scale = _power_of_ten(float(places))

    def run(columns: Sequence[Column], _: Block) -> Column:
        values = columns[0].numbers.astype(np.float64, copy=False)
        return Column(DataType.DOUBLE, np.rint(values * scale) / scale, columns[0].valid)

    return run


# ---------------------------------------------------------------------------------------------- constants, conditions


def _any_present(columns: Sequence[Column]) -> BoolArray | None:
    """Return the mask of rows in which at least one argument is not null, or None for the mask of all rows."""
    if any(column.valid is None for column in columns):
        return None
    valid = columns[0].present
    for column in columns[1:]:
        valid = valid | column.present
    return valid


def _repeated(name: str, value: float) -> Function:
    """Return the function `pi(s...)` or `e(s...)`, which is constant in rows with at least one non-null argument."""

    def check(types: Sequence[DataType], _: Attributes) -> DataType:
        if not types:
            raise UserMistake(f"{name} takes at least one series, whose times it keeps", code=701)
        return DataType.DOUBLE

    def run(columns: Sequence[Column], block: Block) -> Column:
        return Column(DataType.DOUBLE, np.full(block.rows, value), _any_present(columns))

    return Function(name, FunctionKind.SCALAR, check, stateless(run))


def _check_const(types: Sequence[DataType], attributes: Attributes) -> DataType:
    name = required("const", attributes, "type").upper()
    allowed = ("INT32", "INT64", "FLOAT", "DOUBLE", "BOOLEAN", "TEXT")
    if not types or name not in allowed:
        raise UserMistake(f"const takes at least one series and a 'type', one of {', '.join(allowed)}", code=701)
    _constant_value(DataType[name], required("const", attributes, "value"))
    return DataType[name]


def _constant_value(type_: DataType, text: str) -> Scalar:
    try:
        if type_ is DataType.TEXT:
            return text
        if type_ is DataType.BOOLEAN:
            return {"true": True, "false": False}[text.lower()]
        with np.errstate(over="ignore"):
            return NUMPY_DTYPE[type_].type(text).item()  # type: ignore[no-any-return]
    except (ValueError, KeyError, OverflowError) as problem:
        raise UserMistake(f"const: 'value' {text!r} is not a {type_.name}", code=701) from problem


def _make_const(call: FunctionCall) -> Evaluator:
    value = _constant_value(call.type, dict(call.attributes)["value"])

    def run(columns: Sequence[Column], block: Block) -> Column:
        valid = _any_present(columns)
        if isinstance(value, str):
            return Column(call.type, repeat_text(value, block.rows), valid)
        return Column(call.type, np.full(block.rows, value, NUMPY_DTYPE[call.type]), valid)

    return run


def _check_on_off(types: Sequence[DataType], attributes: Attributes) -> DataType:
    expect("on_off", types, NUMERIC_TYPES)
    number_attribute("on_off", attributes, "threshold")
    return DataType.BOOLEAN


def _check_in_range(types: Sequence[DataType], attributes: Attributes) -> DataType:
    expect("in_range", types, NUMERIC_TYPES)
    low, high = (number_attribute("in_range", attributes, key) for key in ("lower", "upper"))
    if high < low:
        raise UserMistake(f"in_range: 'upper' ({high}) is below 'lower' ({low})", code=701)
    return DataType.BOOLEAN


def _make_condition(call: FunctionCall) -> Evaluator:
    attributes = dict(call.attributes)
    low = float(attributes["threshold" if call.name == "on_off" else "lower"])
    high = float(attributes["upper"]) if call.name == "in_range" else math.inf

    def run(columns: Sequence[Column], _: Block) -> Column:
        # As float64: NumPy would round the thresholds to FLOAT.
        values = columns[0].numbers.astype(np.float64, copy=False)
        return Column(DataType.BOOLEAN, (values >= low) & (values <= high), columns[0].valid)

    return run


# ---------------------------------------------------------------------------------------------- text


def _mapped(name: str, change: Callable[[Column], TextArray]) -> Function:
    """Return a function from text to text."""

    def run(columns: Sequence[Column], _: Block) -> Column:
        return Column(DataType.TEXT, change(columns[0]), columns[0].valid)

    return declared(name, stateless(run), STRING_TYPES, result=DataType.TEXT)


def _arrow_numbers(column: Column, type_: DataType, kernel: Callable[[Arrow], Arrow]) -> Column:
    """Apply an Arrow kernel to a text column; the kernel returns numbers or booleans."""
    values: NumericArray = numbers_from_arrow(kernel(text_to_arrow(column.text)))
    return Column(type_, values.astype(NUMPY_DTYPE[type_], copy=False), column.valid)


def _length(columns: Sequence[Column], _: Block) -> Column:
    return _arrow_numbers(columns[0], DataType.INT32, arrow_compute().utf8_length)


def _search(name: str, key: str, kernel: str) -> Function:
    """Return a function that uses an Arrow kernel to test whether a text contains the value of the attribute `key`."""

    def make(call: FunctionCall) -> Evaluator:
        wanted = dict(call.attributes)[key]

        def run(columns: Sequence[Column], _: Block) -> Column:
            compute = getattr(arrow_compute(), kernel)
            return _arrow_numbers(columns[0], DataType.BOOLEAN, lambda texts: compute(texts, wanted))

        return run

    return declared(name, make, STRING_TYPES, result=DataType.BOOLEAN, attributes=(key,))


def _make_string_matches(call: FunctionCall) -> Evaluator:
    pattern = f"^(?:{dict(call.attributes)['regex']})$"

    def run(columns: Sequence[Column], _: Block) -> Column:
        found = match_text(columns[0].text, pattern, regexp=True)
        return Column(DataType.BOOLEAN, found, columns[0].valid)

    return run


def _make_locate(call: FunctionCall) -> Evaluator:
    attributes = dict(call.attributes)
    target = attributes["target"]
    backwards = flag_attribute("locate", attributes, "reverse", default=False)

    def run(columns: Sequence[Column], _: Block) -> Column:
        compute = arrow_compute()
        texts = text_to_arrow(columns[0].text)
        wanted = target
        if backwards:
            texts, wanted = compute.utf8_reverse(texts), target[::-1]
        # Arrow returns a byte offset; the position is the number of characters before that offset.
        at = compute.find_substring(texts, wanted)
        found = numbers_from_arrow(compute.greater_equal(at, 0))
        before = _characters_before(texts, numbers_from_arrow(at))
        if backwards:
            before = numbers_from_arrow(compute.utf8_length(texts)) - before - len(target)
        return Column(DataType.INT32, np.where(found, before, -1).astype(np.int32), columns[0].valid)

    return run


def _characters_before(texts: Arrow, at: NumericArray) -> NumericArray:
    """Return, for each text i, the number of characters that begin before its byte `at[i]`."""
    text = text_from_arrow(texts)
    begins = np.zeros(len(text.data) + 1, np.int64)
    np.cumsum((text.data & 0xC0) != 0x80, out=begins[1:])
    starts = text.offsets[:-1].astype(np.int64)
    return begins[starts + np.maximum(at, 0)] - begins[starts]


def _make_substring(call: FunctionCall) -> Evaluator:
    first = _characters(call, 1)
    stop = max(first - 1 + _characters(call, 2), 0) if len(call.arguments) > 2 else None
    start = max(first - 1, 0)

    def run(columns: Sequence[Column], _: Block) -> Column:
        texts = map_text(columns[0], "utf8_slice_codeunits", start=start, stop=stop)
        return Column(DataType.TEXT, texts, columns[0].valid)

    return run


def _characters(call: FunctionCall, place: int) -> int:
    """Return an argument that must be a number of characters. Raises UserMistake 701 if it is not."""
    found = constant_argument(call, place)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise UserMistake(f"substring: begin and length must be integers of at least 0, not {found!r}", code=701)
    return found


def _make_replace(call: FunctionCall) -> Evaluator:
    old, new = str(constant_argument(call, 1)), str(constant_argument(call, 2))

    def run(columns: Sequence[Column], _: Block) -> Column:
        texts = columns[0].text
        if old:
            texts = map_text(columns[0], "replace_substring", pattern=old, replacement=new)
        return Column(DataType.TEXT, texts, columns[0].valid)

    return run


def _strcmp(columns: Sequence[Column], _: Block) -> Column:
    distances = text_distances(columns[0].text, columns[1].text)
    return Column(DataType.INT32, distances, columns[0].present & columns[1].present)


def _check_concat(types: Sequence[DataType], _: Attributes) -> DataType:
    if not types or any(t not in STRING_TYPES for t in types):
        raise UserMistake("concat takes one or more TEXT or STRING series", code=701)
    return DataType.TEXT


def _make_concat(call: FunctionCall) -> Evaluator:
    attributes = dict(call.attributes)
    behind = flag_attribute("concat", attributes, "series_behind", default=False)
    fixed = "".join(value for key, value in attributes.items() if key.startswith("target"))

    def run(columns: Sequence[Column], _: Block) -> Column:
        compute = arrow_compute()
        series = [compute.fill_null(text_to_arrow(column.text, column.valid), "") for column in columns]
        parts = [fixed, *series] if behind else [*series, fixed]
        joined = compute.binary_join_element_wise(*parts, "")
        return Column(DataType.TEXT, text_from_arrow(joined), _any_present(columns))

    return run


_MATHEMATICS: tuple[Function, ...] = (
    *starmap(
        _of_number,
        (
            ("sin", np.sin),
            ("cos", np.cos),
            ("tan", np.tan),
            ("asin", np.arcsin),
            ("acos", np.arccos),
            ("atan", np.arctan),
            ("sinh", np.sinh),
            ("cosh", np.cosh),
            ("tanh", np.tanh),
            ("degrees", np.degrees),
            ("radians", np.radians),
            ("sign", np.sign),
            ("ceil", np.ceil),
            ("floor", np.floor),
            ("exp", np.exp),
            ("ln", np.log),
            ("log10", np.log10),
            ("sqrt", np.sqrt),
        ),
    ),
    declared("abs", stateless(_abs), NUMERIC_TYPES, overflows=True),
    Function("round", FunctionKind.SCALAR, _check_round, _make_round),
)
_CONSTANTS: tuple[Function, ...] = (
    _repeated("pi", math.pi),
    _repeated("e", math.e),
    Function("const", FunctionKind.SCALAR, _check_const, _make_const),
)
_CONDITIONS: tuple[Function, ...] = (
    Function("on_off", FunctionKind.SCALAR, _check_on_off, _make_condition),
    Function("in_range", FunctionKind.SCALAR, _check_in_range, _make_condition),
)
_TEXT: tuple[Function, ...] = (
    _mapped("upper", lambda column: cased_text(column, "utf8_upper", str.upper)),
    _mapped("lower", lambda column: cased_text(column, "utf8_lower", str.lower)),
    _mapped("trim", lambda column: map_text(column, "utf8_trim_whitespace")),
    declared("length", stateless(_length), STRING_TYPES, result=DataType.INT32),
    _search("startswith", "target", "starts_with"),
    _search("endswith", "target", "ends_with"),
    _search("string_contains", "s", "match_substring"),
    declared("string_matches", _make_string_matches, STRING_TYPES, result=DataType.BOOLEAN, attributes=("regex",)),
    declared("locate", _make_locate, STRING_TYPES, result=DataType.INT32, attributes=("target",)),
    declared(
        "substring",
        _make_substring,
        STRING_TYPES,
        NUMERIC_TYPES,
        NUMERIC_TYPES,
        result=DataType.TEXT,
        optional=1,
        aliases=("substr",),
    ),
    declared("replace", _make_replace, STRING_TYPES, STRING_TYPES, STRING_TYPES, result=DataType.TEXT),
    declared("strcmp", stateless(_strcmp), STRING_TYPES, STRING_TYPES, result=DataType.INT32),
    Function("concat", FunctionKind.SCALAR, _check_concat, _make_concat),
)
SCALAR_FUNCTIONS = (*_MATHEMATICS, *_CONSTANTS, *_CONDITIONS, *_TEXT)
