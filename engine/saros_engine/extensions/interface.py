"""The contract between Saros and modules of user-defined functions and triggers.

    ScalarFunction      rows -> a value per row, from that row alone
    SeriesFunction      state, rows -> state, a value per row; blocks come in the order of the rows
    AggregateFunction   rows -> state;  states -> state;  states -> values
    Trigger             a batch that is written -> nothing, or Refused

An installed package lists its definitions as entry points of the groups `saros.functions` and `saros.triggers`, and SQL
gives them names in a database (CREATE FUNCTION, CREATE TRIGGER). Calls get whole columns, never single rows. The arrays
are read-only and may be views of the database's memory, so copy whatever must be kept after the call.

Several queries may call a function at the same time, on different threads, so it must not keep any state other than the
state that is passed to it. A call is never interrupted; a timeout or KILL QUERY takes effect after the call. If a call
raises an exception, the query fails with code 2080.

Immutable values: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from saros_storage.base.types import NUMERIC_TYPES, STRING_TYPES, BoolArray, DataType, Int64Array, NumericArray, Scalar

#: The types that arithmetic accepts, and the types whose values are texts.
NUMBERS = NUMERIC_TYPES
TEXTS = STRING_TYPES
ANY = frozenset(DataType)

#: An array with one value per row, and a mask that is true for the rows that have a value (None: all rows). Texts are
#: arrays of objects.
Answer = tuple[NumericArray, BoolArray | None]


class Values(msgspec.Struct, frozen=True, eq=False):
    """A column of n rows.

    `values` is bool_, int32, int64, float32 or float64, depending on the type (DATE: int32 yyyymmdd, TIMESTAMP: int64
    ticks); TEXT and STRING are arrays of `str` objects, BLOB is an array of `bytes` objects. `valid` is bool[n], False
    where there is no value; `values` is arbitrary there.
    """

    type: DataType
    values: NumericArray
    valid: BoolArray


class Rows(msgspec.Struct, frozen=True, eq=False):
    """From 1 to 262,144 rows of one block, in the order of the query."""

    #: int64[n], ticks of the database's unit; zeros if the rows have no times.
    times: Int64Array
    #: A column per argument.
    columns: Sequence[Values]
    #: The attributes of the call, `'key'='value'`.
    attributes: Mapping[str, str]


class ScalarFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function that computes a value for each row from this row alone."""

    #: For each argument, the types that it may have.
    arguments: Sequence[frozenset[DataType]]
    #: Type of the result; None stands for the type of the first argument.
    result: DataType | None
    evaluate: Callable[[Rows], Answer]
    #: The keys of the attributes that a call may have.
    attributes: Sequence[str] = ()
    #: A text that is appended to the error message if a call fails.
    hint: str = ""


class SeriesFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function that computes the value of a row from this row and earlier rows.

    Rows without a value are left out of the result.

    `step` gets the state that it returned for the previous rows (None at first) and returns the next state. A state may
    consist of numbers, texts, bytes, NumPy arrays, and tuples, lists and dicts of these; its size is at most
    `STATE_BYTES_MAX`.
    """

    arguments: Sequence[frozenset[DataType]]
    result: DataType | None
    step: Callable[[object, Rows], tuple[object, Answer]]
    attributes: Sequence[str] = ()
    hint: str = ""


class AggregateFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function that computes one value from all rows, or one value for each window from the rows of that window.

    A state is a tuple of values of the types in `state`, and represents all rows that it was made from. The rows may be
    split into parts at any point. The states of the parts are merged in time order. If there are no rows at all, the
    result is null.
    """

    arguments: Sequence[frozenset[DataType]]
    result: DataType
    #: The types of a state's values.
    state: Sequence[DataType]
    #: Returns the state that represents the given rows.
    accumulate: Callable[[Rows], Sequence[Scalar]]
    #: Merges several states into one; they are passed as columns, with one state per row.
    merge: Callable[[Sequence[Values]], Sequence[Scalar]]
    #: Returns the results for n states.
    finish: Callable[[Sequence[Values]], Answer]
    attributes: Sequence[str] = ()
    hint: str = ""


class Batch(msgspec.Struct, frozen=True, eq=False):
    """The n rows of one device that are written together."""

    #: The name of the trigger in this database, and its attributes.
    trigger: str
    attributes: Mapping[str, str]
    #: True if the points of the batch have not been written yet.
    before: bool
    device: str
    times: Int64Array
    #: The columns of the measurements that the trigger's path matches, keyed by measurement.
    columns: Mapping[str, Values]


class Refused(Exception):
    """Raised by a BEFORE trigger to refuse a batch; the message is the reason."""


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """A definition of a trigger; `fire` is called once per batch.

    A BEFORE trigger runs on the writer's thread. If it raises an exception, the batch is refused. A BEFORE trigger may
    be called several times for the same batch. An AFTER trigger runs on a separate thread after the batch is written.
    Exceptions of AFTER triggers are counted and logged.
    """

    fire: Callable[[Batch], None]
    #: CREATE TRIGGER calls this function, which raises ValueError for unsuitable attributes.
    check: Callable[[Mapping[str, str]], object] = msgspec.field(default=lambda _: None)


FunctionDefinition = ScalarFunction | SeriesFunction | AggregateFunction
