"""The contract between Saros and modules of user-defined functions and triggers.

    ScalarFunction      rows -> a value per row, from that row alone
    SeriesFunction      state, rows -> state, a value per row; blocks come in the order of the rows
    AggregateFunction   rows -> state;  states -> state;  states -> values
    Trigger             a batch that is written -> nothing, or Refused

An installed package lists its definitions as entry points of the groups `saros.functions` and `saros.triggers`, and SQL
gives them names in a database (CREATE FUNCTION, CREATE TRIGGER). Calls get whole columns, never single rows; arrays are
read-only, and may be views of the database's memory: copy whatever must be kept after the call.

Several queries may call a function at once, each on a thread of its own: it must keep nothing except the state that it
is given. A call is not interrupted, so a time-out or KILL QUERY takes effect after it. An exception fails the query,
with code 2080.

Immutable values: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from saros_storage.base.types import NUMERIC_TYPES, STRING_TYPES, BoolArray, DataType, Int64Array, NumericArray, Scalar

#: Types that arithmetic accepts, and types of text.
NUMBERS = NUMERIC_TYPES
TEXTS = STRING_TYPES
ANY = frozenset(DataType)

#: An array with a value per row, and a mask of the rows that have one (None: all). Text as an array of objects.
Answer = tuple[NumericArray, BoolArray | None]


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """A column of n rows.

    `values`: bool_, int32, int64, float32 or float64 by its type (DATE: int32 yyyymmdd, TIMESTAMP: int64 ticks); TEXT
    and STRING as objects `str`, BLOB as objects `bytes`. `valid`: bool[n], False where there is no value; `values` is
    arbitrary there.
    """

    type: DataType
    values: NumericArray
    valid: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """1 to 262,144 rows of one block, in the order of the query."""

    #: int64[n], ticks of the database's unit; zeros where rows have no time.
    times: Int64Array
    #: A column per argument.
    columns: Sequence[Values]
    #: The attributes of the call, `'key'='value'`.
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarFunction:
    """A function of one row: it returns a value per row, computed from that row alone."""

    #: Types that each argument may have.
    arguments: Sequence[frozenset[DataType]]
    #: Type of the result; None: the type of the first argument.
    result: DataType | None
    evaluate: Callable[[Rows], Answer]
    #: Keys of attributes that a call may have.
    attributes: Sequence[str] = ()
    #: Text appended to the error of a failed call.
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFunction:
    """A value per row, from this and earlier rows; rows without a value are left out of the result.

    `step` gets the state that it returned for the rows before (None at first) and returns the next one: numbers, texts,
    bytes, NumPy arrays, and tuples, lists and dicts of these, of at most `STATE_BYTES_MAX` in all.
    """

    arguments: Sequence[frozenset[DataType]]
    result: DataType | None
    step: Callable[[object, Rows], tuple[object, Answer]]
    attributes: Sequence[str] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateFunction:
    """One value of many rows: of all, or of each window.

    A state is a tuple of values of the types `state`, and represents all the rows that it was made from. Rows may be
    split anywhere; the states of the parts are merged in the order of time. The result of no rows at all is null.
    """

    arguments: Sequence[frozenset[DataType]]
    result: DataType
    #: Types of a state's values.
    state: Sequence[DataType]
    #: The state of some rows.
    accumulate: Callable[[Rows], Sequence[Scalar]]
    #: Merge several states into one; they come as columns, with one state per row.
    merge: Callable[[Sequence[Values]], Sequence[Scalar]]
    #: The values of n states.
    finish: Callable[[Sequence[Values]], Answer]
    attributes: Sequence[str] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Points of one device that are written together: n rows."""

    #: Name of the trigger in this database, and its attributes.
    trigger: str
    attributes: Mapping[str, str]
    #: True if they are not written yet.
    before: bool
    device: str
    times: Int64Array
    #: By measurement; only the measurements that the trigger's path matches.
    columns: Mapping[str, Values]


class Refused(Exception):
    """Raised by a BEFORE trigger to refuse a batch; the message is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A definition of a trigger; `fire` is called once per batch.

    BEFORE: on the writer's thread; an exception refuses the batch. It may be called again for the same batch.
    AFTER: on a thread of its own, after the batch is written; an exception is counted and logged.
    """

    fire: Callable[[Batch], None]
    #: Called by CREATE TRIGGER; raises ValueError for unsuitable attributes.
    check: Callable[[Mapping[str, str]], object] = field(default=lambda _: None)


FunctionDefinition = ScalarFunction | SeriesFunction | AggregateFunction
