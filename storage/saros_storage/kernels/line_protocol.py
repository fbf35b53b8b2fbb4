"""Kernels that split lines of InfluxDB's line protocol into their parts, and parse the values.

    measurement,tag=value field=1.5,other="text" 1700000000000000000
    ^ START              ^ KEY_END (the series key ends)       ^ TIME          END: the newline

    tokenise   bytes --> lines and fields, each a record of integers; equal series keys and field names share a number
    arrange    a device for each series --> the row of each line; the column of each field, and the place in the column
    fill       the output of `arrange` --> times, numbers and rows, device by device and column by column

A name ends at a comma, an equals sign, a space or a newline; a backslash escapes one of the first three. A text is
quoted and may contain newlines; in it, a backslash escapes a quote or a backslash. Like a correct line, a malformed one
ends at the next newline outside a text, so no part of a text is ever read as a line.

`arrange` and `fill` are in `field_columns`. The input may be hostile: kernels never read beyond its last byte, which
must be a newline, and hashes depend on a secret key.
"""

from __future__ import annotations

import math
import re

import numpy as np

from saros_storage.base.types import ByteArray, Float64Array, Int64Array
from saros_storage.kernels.decimal_doubles import double_bits
from saros_storage.kernels.jit import kernel, part
from saros_storage.kernels.unaligned import leading_zeros, number_8

#: The record of a line: the positions of its start, of its key's end and of its end; its first field, its fault,
#: whether it has a time, the time, and the number of its series key.
START, KEY_END, END, FIRST, FAULT, TIMED, TIME, SERIES = range(8)
LINE_WORDS = 8
#: The record of a field: the name's start, end and number; the value's kind, its bits (for a text, its unescaped
#: length), its start and its end.
NAME_START, NAME_END, NAME, KIND, NUMBER, VALUE_START, VALUE_END = range(7)
FIELD_WORDS = 7
#: Kinds of values. A LONG_DOUBLE has too many digits or is infinite; the caller parses it from its text.
BOOLEAN, INTEGER, DOUBLE, TEXT, LONG_DOUBLE = range(1, 6)
#: Faults of lines.
NO_MEASUREMENT, BAD_TAG, NO_FIELDS, BAD_FIELD, BAD_VALUE, INTEGER_RANGE, OPEN_TEXT, BAD_TIME, TIME_RANGE, LONG = range(
    1, 11
)
#: Indices of the state that `tokenise` fills in: the numbers of lines, fields, series keys and names; 1 if a value is a
#: LONG_DOUBLE; 1 if `tokenise` stopped because a hash table was full.
LINES, FIELDS, SERIES_COUNT, NAMES_COUNT, LONG_DOUBLES, TABLE_FULL = range(6)
STATE_WORDS = 7
_AT = 6

_NEWLINE, _RETURN, _SPACE, _QUOTE, _HASH, _COMMA, _EQUALS, _BACKSLASH = 10, 13, 32, 34, 35, 44, 61, 92
_PLUS, _MINUS, _POINT, _ZERO, _NINE = 43, 45, 46, 48, 57
_INT64_MAX = (1 << 63) - 1
_NEGATIVE_MAX = np.uint64(1 << 63)
_TEN = np.uint64(10)
#: Masks for a word of eight bytes: the upper and the lower halves of the bytes, every second byte, every second pair of
#: bytes, and the second four bytes.
_UPPER_HALVES, _LOWER_HALVES = np.uint64(0xF0F0_F0F0_F0F0_F0F0), np.uint64(0x0F0F_0F0F_0F0F_0F0F)
_PAIRS, _FOURS, _EIGHT = np.uint64(0x00FF_00FF_00FF_00FF), np.uint64(0x0000_FFFF_0000_FFFF), np.uint64(0xFFFF_FFFF)
#: A byte is a digit (0x30 to 0x39) if its upper half is 3, and is still 3 after 6 is added to the byte.
_SIXES, _THREES = np.uint64(0x0606_0606_0606_0606), np.uint64(0x3333_3333_3333_3333)
#: Powers of ten that a double holds exactly. If an integer up to 2^53 is multiplied or divided by one of them, the
#: result is rounded only once and is the nearest double.
_POWERS = np.array([float(10**n) for n in range(23)])
_POWERS_OF_TEN = np.array([10**n for n in range(9)], np.uint64)
_EXACT_MAX = np.uint64(1 << 53)
#: Numbers with at most this many digits fit in 64 bits.
_DIGITS_MAX = 19
_EXPONENT_MAX = 10_000


# ---------------------------------------------------------------------------------------------- tokens


@part
def _name_end(data: ByteArray, at: int) -> int:
    """Return the end of the name that begins at `at`."""
    while True:
        byte = data[at]
        if byte == _BACKSLASH and (data[at + 1] == _COMMA or data[at + 1] == _EQUALS or data[at + 1] == _SPACE):
            at += 2
        elif byte in (_COMMA, _EQUALS, _SPACE, _NEWLINE):
            return at
        else:
            at += 1


@part
def _ends_line(data: ByteArray, at: int) -> bool:
    return bool(data[at] == _NEWLINE or (data[at] == _RETURN and data[at + 1] == _NEWLINE))


@part
def _ends_value(data: ByteArray, at: int) -> bool:
    return bool(data[at] == _COMMA or data[at] == _SPACE or _ends_line(data, at))


@part
def _text_end(data: ByteArray, at: int) -> int:
    """Return the position of a text's closing quote, or the end of the data if there is no quote."""
    while at < len(data) and data[at] != _QUOTE:
        escapes = data[at] == _BACKSLASH and (data[at + 1] == _QUOTE or data[at + 1] == _BACKSLASH)
        at += 2 if escapes else 1
    return at


@part
def _faulty_end(data: ByteArray, at: int) -> int:
    """Return the end of the malformed line that begins at `at`."""
    at = _name_end(data, at)
    while data[at] != _SPACE and data[at] != _NEWLINE:
        at = _name_end(data, at + 1)
    while at < len(data) and data[at] != _NEWLINE:
        at = _text_end(data, at + 2) + 1 if data[at] == _EQUALS and data[at + 1] == _QUOTE else at + 1
    return min(at, len(data) - 1)


@part
def _key(data: ByteArray, at: int, state: Int64Array) -> int:
    """Scan a measurement and its tags; return a fault, or 0."""
    end = _name_end(data, at)
    while data[end] == _EQUALS:
        end = _name_end(data, end + 1)
    if end == at:
        return NO_MEASUREMENT
    while data[end] == _COMMA:
        value = _name_end(data, end + 1)
        if value == end + 1 or data[value] != _EQUALS:
            return BAD_TAG
        end = _name_end(data, value + 1)
        if end == value + 1 or data[end] == _EQUALS:
            return BAD_TAG
    state[_AT] = end
    return 0 if data[end] == _SPACE else NO_FIELDS


@part
def _spaces_end(data: ByteArray, at: int) -> int:
    while data[at] == _SPACE:
        at += 1
    return at


@part
def _field_name(data: ByteArray, at: int, fields: Int64Array, before: int, count: int) -> int:
    """Record the name at `at` as the name of field `count`; return the name's end.

    Usually, the name equals the name of field `before`, which belongs to the previous line; both then have the same
    number. Otherwise the number stays -1 until `_name_fields`.
    """
    record, twin = count * FIELD_WORDS, before * FIELD_WORDS
    fields[record + NAME_START], fields[record + NAME] = at, -1
    if before < count:
        end = at + fields[twin + NAME_END] - fields[twin + NAME_START]
        if (
            end < len(data)
            and data[end] == _EQUALS
            and _equal(data, fields[twin + NAME_START], fields[twin + NAME_END], at, end)
        ):
            fields[record + NAME_END], fields[record + NAME] = end, fields[twin + NAME]
            return int(end)
    end = _name_end(data, at)
    fields[record + NAME_END] = end
    return int(end)


@part
def _fields(data: ByteArray, fields: Int64Array, floats: Float64Array, before: int, state: Int64Array) -> int:
    """Scan the fields of a line, counting them in `state[FIELDS]`; return a fault, or 0.

    `before` is the first field of the previous line.
    """
    at = _spaces_end(data, state[_AT])
    if _ends_line(data, at):
        return NO_FIELDS
    while True:
        record = state[FIELDS] * FIELD_WORDS
        if record == len(fields):
            return LONG
        end = _field_name(data, at, fields, before, state[FIELDS])
        before += 1
        if end == at or data[end] != _EQUALS:
            return BAD_FIELD
        state[_AT] = end + 1
        fault = _value(data, fields, floats, record, state)
        if fault:
            return fault
        state[FIELDS] += 1
        at = state[_AT]
        if data[at] != _COMMA:
            return 0
        at += 1


@part
def _value(data: ByteArray, fields: Int64Array, floats: Float64Array, record: int, state: Int64Array) -> int:
    """Scan a value; return a fault, or 0."""
    start = state[_AT]
    byte = data[start]
    fields[record + VALUE_START] = start
    if byte == _QUOTE:
        return _text(data, fields, record, state)
    if byte in (_PLUS, _MINUS, _POINT) or (byte >= _ZERO and byte <= _NINE):
        return _number(data, fields, floats, record, state)
    return _boolean(data, fields, record, state)


@part
def _text(data: ByteArray, fields: Int64Array, record: int, state: Int64Array) -> int:
    start = state[_AT] + 1
    at, escapes = start, 0
    while at < len(data) and data[at] != _QUOTE:
        if data[at] == _BACKSLASH and (data[at + 1] == _QUOTE or data[at + 1] == _BACKSLASH):
            at += 1
            escapes += 1
        at += 1
    if at >= len(data):
        return OPEN_TEXT
    fields[record + KIND], fields[record + NUMBER] = TEXT, at - start - escapes
    fields[record + VALUE_START], fields[record + VALUE_END] = start, at
    state[_AT] = at + 1
    return 0 if _ends_value(data, at + 1) else BAD_VALUE


_LOWER = np.frombuffer(b"falsetrue ", np.uint8).astype(np.int64)


@part
def _boolean(data: ByteArray, fields: Int64Array, record: int, state: Int64Array) -> int:
    """Scan t, T, true, True or TRUE, or the corresponding spellings of false."""
    start = state[_AT]
    end = start
    while not _ends_value(data, end):
        end += 1
    fields[record + KIND], fields[record + VALUE_END] = BOOLEAN, end
    state[_AT] = end
    first, size = data[start], end - start
    value = 1 if first == 116 or first == 84 else 0
    fields[record + NUMBER] = value
    if not value and first != 102 and first != 70:
        return BAD_VALUE
    if size == 1:
        return 0
    if size != 5 - value:
        return BAD_VALUE
    small, large = True, True
    for place in range(1, size):
        wanted = _LOWER[value * 5 + place]
        small = small and data[start + place] == wanted
        large = large and data[start + place] == wanted - 32
    capital = first < 97
    return 0 if small or (large and capital) else BAD_VALUE


@part
def _number(data: ByteArray, fields: Int64Array, floats: Float64Array, record: int, state: Int64Array) -> int:
    """Scan an integer with suffix i or u, or a double; return a fault, or 0."""
    start = state[_AT]
    negative = data[start] == _MINUS
    at = start + 1 if negative or data[start] == _PLUS else start
    first, mantissa = at, np.uint64(0)
    begin = at
    at, mantissa = _digits(data, at, mantissa)
    digits, exponent, is_whole = at - first, 0, data[at] != _POINT
    if not is_whole:
        at += 1
        first = at
        at, mantissa = _digits(data, at, mantissa)
        exponent = first - at
        digits -= exponent
    if not digits:
        return BAD_VALUE
    suffix = data[at]
    if is_whole and (suffix == 105 or suffix == 117):
        return _integer(data, fields, record, state, at, mantissa)
    power = 0
    if suffix == 101 or suffix == 69:
        at += 1
        below = data[at] == _MINUS
        at += 1 if below or data[at] == _PLUS else 0
        if data[at] < _ZERO or data[at] > _NINE:
            return BAD_VALUE
        while data[at] >= _ZERO and data[at] <= _NINE:
            power = min(power * 10 + np.int64(data[at]) - _ZERO, _EXPONENT_MAX)
            at += 1
        exponent += -power if below else power
    state[_AT] = at
    fields[record + VALUE_END] = at
    if not _ends_value(data, at):
        return BAD_VALUE
    if digits > _DIGITS_MAX and digits - _zeros(data, begin) > _DIGITS_MAX:
        fields[record + KIND], fields[record + NUMBER] = LONG_DOUBLE, 0
    else:
        _double(mantissa, exponent, negative, fields, floats, record)
    state[LONG_DOUBLES] |= fields[record + KIND] == LONG_DOUBLE
    return 0


@part
def _digits(data: ByteArray, at: int, before: np.uint64) -> tuple[int, np.uint64]:
    """Return the end of the digits at `at`, and the number that results from appending them to the number `before`."""
    value = before
    while at + 8 <= len(data):
        word = number_8(data, at)
        others = ((word & _UPPER_HALVES) | (((word + _SIXES) & _UPPER_HALVES) >> np.uint64(4))) ^ _THREES
        count = leading_zeros(others) >> 3
        if count == 0:
            break
        word = (word & _LOWER_HALVES) >> np.uint64(64 - 8 * count)
        word = ((word >> np.uint64(8)) & _PAIRS) * _TEN + (word & _PAIRS)
        word = ((word >> np.uint64(16)) & _FOURS) * np.uint64(100) + (word & _FOURS)
        word = (word >> np.uint64(32)) * np.uint64(10_000) + (word & _EIGHT)
        value = value * _POWERS_OF_TEN[count] + word
        at += count
        if count < 8:
            break
    # A byte above 0xF9 overflows when 6 is added, so that the loop above does not see the digit before it.
    while data[at] >= _ZERO and data[at] <= _NINE:
        value = value * _TEN + np.uint64(data[at] - _ZERO)
        at += 1
    return at, value


@part
def _zeros(data: ByteArray, at: int) -> int:
    """Return the number of leading zeros of the decimal number at `at`."""
    found = 0
    while data[at] == _ZERO or data[at] == _POINT:
        found += 1 if data[at] == _ZERO else 0
        at += 1
    return found


@part
def _double(
    mantissa: np.uint64, exponent: int, negative: bool, fields: Int64Array, floats: Float64Array, record: int
) -> None:
    """Record the double nearest to a decimal number; an infinite double becomes a LONG_DOUBLE."""
    fields[record + KIND] = DOUBLE
    if mantissa <= _EXACT_MAX and exponent >= -22 and exponent <= 22:
        value = np.float64(mantissa)
        value = value * _POWERS[exponent] if exponent >= 0 else value / _POWERS[-exponent]
        floats[record + NUMBER] = -value if negative else value
        return
    fields[record + NUMBER] = np.int64(double_bits(mantissa, exponent, negative))
    if np.isinf(floats[record + NUMBER]):
        fields[record + KIND], fields[record + NUMBER] = LONG_DOUBLE, 0


@part
def _integer(data: ByteArray, fields: Int64Array, record: int, state: Int64Array, end: int, mantissa: np.uint64) -> int:
    """Record the integer whose digits end at its suffix i or u at `end`; return a fault, or 0."""
    at = state[_AT]
    negative = data[at] == _MINUS
    unsigned = data[end] == 117
    fields[record + KIND], fields[record + VALUE_END] = INTEGER, end + 1
    if not _ends_value(data, end + 1) or (negative and unsigned):
        return BAD_VALUE
    at += 1 if negative or data[at] == _PLUS else 0
    state[_AT] = end + 1
    return 0 if _integer_in_range(data, at, end, mantissa, negative, fields, record + NUMBER) else INTEGER_RANGE


@part
def _integer_in_range(
    data: ByteArray, at: int, end: int, mantissa: np.uint64, negative: bool, out: Int64Array, place: int
) -> bool:
    """Write the integer with the digits from `at` to `end` to `out[place]`; return whether it fits in 64 bits.

    `mantissa` is the absolute value of the integer if there are at most 19 digits. Otherwise the negative of the
    absolute value is computed first, since the range of negative integers is larger.
    """
    if end - at <= _DIGITS_MAX:
        out[place] = -np.int64(mantissa) if negative else np.int64(mantissa)
        return bool(mantissa <= _NEGATIVE_MAX if negative else mantissa < _NEGATIVE_MAX)
    value = np.int64(0)
    for position in range(at, end):
        digit = np.int64(data[position]) - _ZERO
        if value < -922337203685477580 or (value == -922337203685477580 and digit > 8):
            return False
        value = value * 10 - digit
    if not negative and value < -_INT64_MAX:
        return False
    out[place] = value if negative else -value
    return True


@part
def _time(data: ByteArray, lines: Int64Array, record: int, state: Int64Array) -> int:
    """Scan the time of a line, if there is one, and the end of the line; return a fault, or 0."""
    at = _spaces_end(data, state[_AT])
    lines[record + TIMED], lines[record + TIME] = 0, 0
    if not _ends_line(data, at):
        negative = data[at] == _MINUS
        start = at + 1 if negative else at
        end, mantissa = _digits(data, start, np.uint64(0))
        at = _spaces_end(data, end)
        if end == start or not _ends_line(data, at):
            return BAD_TIME
        lines[record + TIMED] = 1
        if not _integer_in_range(data, start, end, mantissa, negative, lines, record + TIME):
            return TIME_RANGE
    state[_AT] = at if data[at] == _NEWLINE else at + 1
    return 0


# ---------------------------------------------------------------------------------------------- numbers of names


@part
def _number_of(
    data: ByteArray, start: int, end: int, multiplier: np.uint64, table: Int64Array, spans: Int64Array, count: int
) -> int:
    """Return the number of a name among the `count` distinct ones in `spans`; a new name gets the number `count`.

    Returns -1 for a new name if the table is half full.
    """
    hashed = multiplier
    for at in range(start, end):
        hashed = (hashed ^ np.uint64(data[at])) * multiplier
    mask = len(table) - 1
    slot = np.int64((hashed ^ (hashed >> np.uint64(29))) & np.uint64(mask))
    while table[slot] >= 0:
        found = table[slot]
        if _equal(data, spans[2 * found], spans[2 * found + 1], start, end):
            return int(found)
        slot = (slot + 1) & mask
    if 2 * count >= len(table):
        return -1
    table[slot] = count
    spans[2 * count], spans[2 * count + 1] = start, end
    return count


@part
def _equal(data: ByteArray, a: int, a_end: int, b: int, b_end: int) -> bool:
    size = a_end - a
    if size != b_end - b:
        return False
    offset = 0
    while offset + 8 <= size:
        if number_8(data, a + offset) != number_8(data, b + offset):
            return False
        offset += 8
    left = size - offset
    if left and max(a, b) + offset + 8 <= len(data):
        differing = number_8(data, a + offset) ^ number_8(data, b + offset)
        return bool(differing >> np.uint64(64 - 8 * left) == 0)
    for place in range(offset, size):  # noqa: SIM110 (compiled)
        if data[a + place] != data[b + place]:
            return False
    return True


@part
def _known_series(data: ByteArray, at: int, last: int, series: Int64Array, count: int) -> int:
    """Return the number of the series key at `at` if it is `last` or the number after `last`, otherwise -1.

    Most lines belong to the series of the previous line, or the lines of several series take turns.
    """
    for guess in (last, last + 1 if last + 1 < count else 0):
        start, size = series[2 * guess], series[2 * guess + 1] - series[2 * guess]
        end = at + size
        if end < len(data) and data[end] == _SPACE and _equal(data, start, start + size, at, end):
            return int(guess)
    return -1


@part
def _name_fields(
    data: ByteArray,
    fields: Int64Array,
    first: int,
    multiplier: np.uint64,
    table: Int64Array,
    spans: Int64Array,
    state: Int64Array,
) -> bool:
    """Assign numbers to the names of the fields from `first` on; return False if the table is full."""
    for field in range(first, state[FIELDS]):
        record = field * FIELD_WORDS
        if fields[record + NAME] >= 0:
            continue
        start, end = fields[record + NAME_START], fields[record + NAME_END]
        number = _number_of(data, start, end, multiplier, table, spans, state[NAMES_COUNT])
        if number < 0:
            return False
        fields[record + NAME] = number
        if number == state[NAMES_COUNT]:
            state[NAMES_COUNT] += 1
    return True


# ---------------------------------------------------------------------------------------------- lines

_NAME = re.compile(rb"(?:\\[,= ]|[^,= \n])*+")
_MEASUREMENT = re.compile(rb"(?:\\[,= ]|[^, \n])*+")
_TEXT = re.compile(rb'"((?:\\["\\]|[^"])*+)"')
_TOKEN = re.compile(rb"(?:(?!\r\n)[^, \n])*+")
_DOUBLE = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_WHOLE = re.compile(rb"([+-]?\d+)i|(\+?\d+)u")
_TRUTHS = {word: word[:1] in b"tT" for word in b"t T true True TRUE f F false False FALSE".split()}
_TIME_END = re.compile(rb" *(-?\d+)? *\r?\n")
_FAULTY = re.compile(rb'(?:\\[,= ]|[^ \n])*+(?:="(?:\\["\\]|[^"])*+(?:"|\Z)|[^\n])*+')


class _Fault(Exception):
    """Raised for a malformed line; the argument is the number of the fault."""


def _tokenise_plain(
    data: ByteArray,
    start: int,
    multiplier: np.uint64,  # noqa: ARG001 (the twin of a kernel)
    lines: Int64Array,
    fields: Int64Array,
    floats: Float64Array,
    tables: Int64Array,
    series: Int64Array,
    names: Int64Array,
    state: Int64Array,
) -> int:
    raw = data.tobytes()
    distinct_max = len(tables) // 4
    numbers: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
    at = start
    state[:STATE_WORDS] = 0
    while True:
        at += len(raw[at:]) - len(raw[at:].lstrip(b" \t\r\n"))
        if at == len(raw) or state[LINES] * LINE_WORDS == len(lines):
            return at
        if raw[at] == _HASH:
            at = raw.index(b"\n", at)
            continue
        line = lines[int(state[LINES]) * LINE_WORDS :][:LINE_WORDS]
        first = int(state[FIELDS])
        line[:] = (at, 0, 0, first, 0, 0, 0, -1)
        try:
            line[END] = _line_plain(raw, line, fields, floats, state)
        except _Fault as fault:
            state[FIELDS] = first
            if fault.args[0] == LONG and state[LINES]:
                return at
            found = _FAULTY.match(raw, at)
            assert found
            line[FAULT], line[END] = fault.args[0], min(found.end(), len(raw) - 1)
        else:
            run = fields[first * FIELD_WORDS : int(state[FIELDS]) * FIELD_WORDS].reshape(-1, FIELD_WORDS)
            given = [_number_plain(raw, line[START], line[KEY_END], numbers[0], series, distinct_max)]
            for field in run if given[0] >= 0 else ():
                given.append(_number_plain(raw, field[NAME_START], field[NAME_END], numbers[1], names, distinct_max))
                if given[-1] < 0:
                    break
            state[SERIES_COUNT], state[NAMES_COUNT] = map(len, numbers)
            if given[-1] < 0:
                state[FIELDS], state[TABLE_FULL] = first, 1
                return at
            line[SERIES], run[:, NAME] = given[0], given[1:]
        state[LINES] += 1
        at = int(line[END])


def _number_plain(
    raw: bytes, start: int, end: int, numbers: dict[bytes, int], spans: Int64Array, distinct_max: int
) -> int:
    name = raw[start:end]
    if name not in numbers:
        if len(numbers) >= distinct_max:
            return -1
        spans[2 * len(numbers) : 2 * len(numbers) + 2] = start, end
    return numbers.setdefault(name, len(numbers))


def _line_plain(raw: bytes, line: Int64Array, fields: Int64Array, floats: Float64Array, state: Int64Array) -> int:
    """Read a line; return its end. Raises _Fault."""
    at = _end_of(_MEASUREMENT, raw, int(line[START]))
    _require(at > line[START], NO_MEASUREMENT)
    while raw[at] == _COMMA:
        key = at + 1
        at = _end_of(_NAME, raw, key)
        _require(at > key and raw[at] == _EQUALS, BAD_TAG)
        value = at + 1
        at = _end_of(_NAME, raw, value)
        _require(at > value and raw[at] != _EQUALS, BAD_TAG)
    line[KEY_END] = at
    spaces = len(raw[at:]) - len(raw[at:].lstrip(b" "))
    _require(spaces > 0 and not raw[at + spaces :].startswith((b"\n", b"\r\n")), NO_FIELDS)
    at += spaces - 1
    while True:
        at = _field_plain(raw, at + 1, fields, floats, state)
        if raw[at] != _COMMA:
            break
    found = _TIME_END.match(raw, at)
    if found is None:
        raise _Fault(BAD_TIME)
    if found[1] is not None:
        line[TIMED] = 1
        _require(-_INT64_MAX - 1 <= int(found[1]) <= _INT64_MAX, TIME_RANGE)
        line[TIME] = int(found[1])
    return found.end() - 1


def _field_plain(raw: bytes, at: int, fields: Int64Array, floats: Float64Array, state: Int64Array) -> int:
    """Read a field; return its end. Raises _Fault."""
    record = int(state[FIELDS]) * FIELD_WORDS
    _require(record < len(fields), LONG)
    end = _end_of(_NAME, raw, at)
    _require(end > at and raw[end] == _EQUALS, BAD_FIELD)
    token = _TEXT.match(raw, end + 1) or _TOKEN.match(raw, end + 1)
    assert token
    fields[record + NAME_START : record + FIELD_WORDS] = (at, end, 0, 0, 0, end + 1, token.end())
    if raw[end + 1] == _QUOTE:
        _require(token.re is _TEXT, OPEN_TEXT)
        _require(_TOKEN.match(raw, token.end())[0] == b"", BAD_VALUE)  # type: ignore[index]
        plain = re.sub(rb'\\(["\\])', rb"\1", token[1])
        fields[record + KIND], fields[record + NUMBER] = TEXT, len(plain)
        fields[record + VALUE_START], fields[record + VALUE_END] = token.span(1)
    elif token[0] in _TRUTHS:
        fields[record + KIND], fields[record + NUMBER] = BOOLEAN, _TRUTHS[token[0]]
    elif whole := _WHOLE.fullmatch(token[0]):
        value = int(whole[1] or whole[2])
        _require(-_INT64_MAX - 1 <= value <= _INT64_MAX, INTEGER_RANGE)
        fields[record + KIND], fields[record + NUMBER] = INTEGER, value
    else:
        _require(_DOUBLE.fullmatch(token[0]) is not None, BAD_VALUE)
        _double_plain(token[0], fields, floats, record)
        state[LONG_DOUBLES] |= fields[record + KIND] == LONG_DOUBLE
    state[FIELDS] += 1
    return token.end()


def _double_plain(text: bytes, fields: Int64Array, floats: Float64Array, record: int) -> None:
    digits = text.lower().partition(b"e")[0].lstrip(b"+-").replace(b".", b"").lstrip(b"0")
    if len(digits) > _DIGITS_MAX or math.isinf(float(text)):
        fields[record + KIND] = LONG_DOUBLE
    else:
        fields[record + KIND], floats[record + NUMBER] = DOUBLE, float(text)


def _end_of(pattern: re.Pattern[bytes], raw: bytes, at: int) -> int:
    """Return the end of the match at `at`; `pattern` must be one that matches at any position."""
    found = pattern.match(raw, at)
    assert found
    return found.end()


def _require(condition: bool, fault: int) -> None:
    if not condition:
        raise _Fault(fault)


@kernel("i64(u8r[], i64, u64, i64[], i64[], f64[], i64[], i64[], i64[], i64[])", twin=_tokenise_plain)
def tokenise(
    data: ByteArray,
    start: int,
    multiplier: np.uint64,
    lines: Int64Array,
    fields: Int64Array,
    floats: Float64Array,
    tables: Int64Array,
    series: Int64Array,
    names: Int64Array,
    state: Int64Array,
) -> int:
    """Scan lines from `start` on, until `lines`, `fields` or a table is full; return the start of the next line.

    `multiplier` is the key of the hashes, a secret odd number. `floats` is the memory of `fields`, viewed as doubles.
    `tables` contains two hash tables, each with a power of 2 of entries; a table counts as full when half of its
    entries are used. `series` and `names` receive the positions of distinct series keys and field names. If `fields`
    has no room for the first line, this line gets the fault LONG.
    """
    tables[:] = -1
    half = len(tables) // 2
    state[:] = 0
    at, previous, number = start, 0, 0
    while True:
        while at < len(data) and (data[at] == _SPACE or data[at] == _NEWLINE or data[at] == 9 or data[at] == _RETURN):
            at += 1
        record = state[LINES] * LINE_WORDS
        if at == len(data) or record == len(lines):
            return at
        if data[at] == _HASH:
            while data[at] != _NEWLINE:
                at += 1
            continue
        first = state[FIELDS]
        lines[record + START], lines[record + FIRST], lines[record + SERIES] = at, first, -1
        lines[record + TIMED], lines[record + TIME], lines[record + KEY_END] = 0, 0, 0
        number = _known_series(data, at, max(number, 0), series, state[SERIES_COUNT]) if state[SERIES_COUNT] else -1
        if number >= 0:
            fault = 0
            state[_AT] = at + series[2 * number + 1] - series[2 * number]
        else:
            fault = _key(data, at, state)
        if not fault:
            lines[record + KEY_END] = state[_AT]
            fault = _fields(data, fields, floats, previous, state)
        if not fault:
            fault = _time(data, lines, record, state)
        lines[record + FAULT] = fault
        if fault:
            state[FIELDS] = first
            if fault == LONG and record:
                return at
            at = _faulty_end(data, at)
        else:
            if number < 0:
                end = lines[record + KEY_END]
                number = _number_of(data, at, end, multiplier, tables[:half], series, state[SERIES_COUNT])
                state[SERIES_COUNT] += 1 if number == state[SERIES_COUNT] else 0
            if number < 0 or not _name_fields(data, fields, first, multiplier, tables[half:], names, state):
                state[FIELDS], state[TABLE_FULL] = first, 1
                return at
            lines[record + SERIES] = number
            previous = first
            at = state[_AT]
        lines[record + END] = at
        state[LINES] += 1
