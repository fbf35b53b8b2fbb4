"""The compiler of SQLAlchemy statements to the SQL of Saros.

    SELECT time AS `time`, temperature AS temperature FROM root.plant.pump1 WHERE time >= ? LIMIT ?

A statement reads one device. Its columns have no table name, and each column has a label. The dialect compares the
labels with the columns of the result. If a series does not exist, the result has no column for it. In ORDER BY, a label
hides a series of the same name. Therefore, the label of an expression is never the name of a series in the statement,
and ORDER BY repeats the expression instead of the label.

Constructs that the tree model cannot express raise CompileError before anything is sent. The message names an
alternative.
"""

from __future__ import annotations

from itertools import chain, count
from typing import Any, NoReturn

from sqlalchemy import exc
from sqlalchemy.sql import compiler, visitors
from sqlalchemy.sql.elements import BindParameter, ColumnClause, Label, Null, TextClause, _truncated_label
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import STRINGTYPE, Integer, String, TypeDecorator

from saros.alchemy.naming import device_path

TIME = "time"


class SarosPreparer(compiler.IdentifierPreparer):
    """Quotes names: uses back-quotes, and writes paths of devices and the keyword `time`."""

    reserved_words = {"root", TIME, "timestamp"}  # noqa: RUF012 - as in the base class

    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`", escape_quote="`")

    def _requires_quotes(self, value: str) -> bool:
        """Return whether a name needs quotes. Upper-case letters need no quotes, since names are case-sensitive."""
        return value.lower() in self.reserved_words or not value.isidentifier() or not value.isascii()

    def format_table(self, table: Any, use_schema: bool = True, name: str | None = None, **_: Any) -> str:
        """Return the path of the device. Raises CompileError if the name is not a path."""
        schema = self.schema_for_object(table) if use_schema else None
        try:
            return device_path(str(name or table.name), schema)
        except ValueError as error:
            raise exc.CompileError(str(error)) from None

    def format_column(self, column: Any, use_table: bool = False, name: str | None = None, *_: Any, **__: Any) -> str:  # noqa: ARG002
        """Return the quoted name of the series, or `time`."""
        text = str(name or column.name)
        return TIME if text.lower() == TIME else self.quote(text)


def _unsupported(what: str, instead: str) -> NoReturn:
    raise exc.CompileError(f"Saros has no {what}: {instead}")


class _Pattern(TypeDecorator[str]):
    """A parameter that becomes part of a LIKE pattern. The client builds the pattern: LIKE accepts no expressions."""

    impl = String
    cache_ok = True

    def __init__(self, form: str, escape: str | None, *, small: bool) -> None:
        super().__init__()
        self.form = form
        self.escape = escape
        self.small = small

    def process_bind_param(self, value: Any, dialect: Any) -> str | None:  # noqa: ARG002
        """Return the pattern."""
        if value is None:
            return None
        if self.small:
            # The escape character keeps its case, to match the ESCAPE clause.
            value = "".join(c if c == self.escape else c.lower() for c in value)
        return self.form.format(value)


def _matching(comparison: str, form: str, *, small: bool = False) -> Any:
    """Return a visitor that writes a pattern comparison such as `startswith`. If `small`, case does not matter."""

    def visit(self: SarosCompiler, binary: Any, operator: Any, **kw: Any) -> str:  # noqa: ARG001
        if not isinstance(binary.right, BindParameter):
            _unsupported("computed patterns of LIKE", "use like() with a text")
        escape = binary.modifiers.get("escape")
        pattern = binary.right._with_binary_element_type(_Pattern(form, escape, small=small))
        left = self.process(binary.left, **kw)
        ending = "" if escape is None else f" ESCAPE {self.render_literal_value(escape, STRINGTYPE)}"
        return f"{f'lower({left})' if small else left} {comparison} {self.process(pattern, **kw)}{ending}"

    return visit


def _regular(comparison: str) -> Any:
    """Return a visitor that writes a comparison with a regular expression."""

    def visit(self: SarosCompiler, binary: Any, operator: Any, **kw: Any) -> str:  # noqa: ARG001
        if not isinstance(binary.right, BindParameter) or binary.modifiers.get("flags"):
            _unsupported("regular expressions that are computed or have flags", "use a text, which may begin with (?i)")
        return f"{self.process(binary.left, **kw)} {comparison} {self.process(binary.right, **kw)}"

    return visit


def _is_of_time(column: Any) -> bool:
    """Return whether an expression has no columns other than `time`, no functions, and no literal SQL."""
    parts = list(visitors.iterate(column))
    columns = [part for part in parts if isinstance(part, ColumnClause)]
    known = all(not column.is_literal and column.name.lower() == TIME for column in columns)
    return known and not any(isinstance(part, FunctionElement | TextClause) for part in parts)


def _series_of(select: Any) -> frozenset[str]:
    """Return the names of all series in a SELECT."""
    return frozenset(str(part.name) for part in visitors.iterate(select) if isinstance(part, ColumnClause))


def _is_text(column: Any) -> bool:
    """Return whether a selected column is literal SQL, which may stand for several columns and gets no label."""
    return isinstance(column, TextClause) or (isinstance(column, ColumnClause) and column.is_literal)


class SarosCompiler(compiler.SQLCompiler):
    """The compiler of statements, each of which reads or writes one device."""

    preparer: SarosPreparer
    #: The label of each selected column (None for literal SQL). The list is None unless the statement is a SELECT.
    labels: list[str | None] | None = None
    #: True if the result has more columns, after the selected ones.
    has_more_columns = False
    _taken: set[str]
    #: The names of the series in the statement, or None until they are needed.
    _series: frozenset[str] | None

    # ------------------------------------------------------------------ SELECT

    def visit_select(self, select_stmt: Any, *args: Any, **kwargs: Any) -> str:
        """Compile a SELECT from one device. Raises CompileError for subqueries, joins, DISTINCT and GROUP BY."""
        if self.stack:
            _unsupported("subqueries", "select the inner rows first, or use text()")
        if len(select_stmt.get_final_froms()) > 1:
            _unsupported("joins", "select several devices by a path with *, with text()")
        if select_stmt._distinct or select_stmt._distinct_on:
            _unsupported("DISTINCT", "remove duplicate rows from the result")
        if select_stmt._group_by_clauses:
            _unsupported("GROUP BY a column", "use text() for windows of time: GROUP BY ([start, end), 1h)")
        self.labels, self._taken, self._series = [], set(), None
        base: Any = super()
        return str(base.visit_select(select_stmt, *args, **kwargs))

    def _compose_select_body(
        self, text: Any, select: Any, compile_state: Any, inner_columns: Any, *args: Any, **kwargs: Any
    ) -> str:
        """Add `*` if only `time` is selected. The query must read all series: a point of any series makes a row."""
        base: Any = super()
        if select.get_final_froms() and all(_is_of_time(column) for column in select._all_selected_columns):
            inner_columns = [*inner_columns, "*"]
            self.has_more_columns = True
        return str(base._compose_select_body(text, select, compile_state, inner_columns, *args, **kwargs))

    def _label_select_column(
        self, select: Any, column: Any, *args: Any, name: Any = None, fallback_label_name: Any = None, **kwargs: Any
    ) -> str:
        """Write a column with a unique label. The label may differ from the column's key in the result."""
        if name is None and not isinstance(column, Label | ColumnClause | TextClause):
            name = _truncated_label(fallback_label_name)  # without a label, -n would match column n of the result
        base: Any = super()
        text = str(
            base._label_select_column(
                select, column, *args, name=name, fallback_label_name=fallback_label_name, **kwargs
            )
        )
        assert self.labels is not None
        if _is_text(column):
            self.labels.append(None)
            return text
        key = self._result_columns[-1].keyname
        label = self._label(select, key, of_series=isinstance(column, ColumnClause) and column.name == key)
        self.labels.append(label)
        return f"{text.removesuffix(f' AS {self.preparer.quote(key)}')} AS {self.preparer.quote(label)}"

    def _label(self, select: Any, key: str, *, of_series: bool) -> str:
        """Return the key, with a number appended if the key is another column's label or another series' name."""
        if self._series is None:
            self._series = _series_of(select)
        taken = self._taken if of_series else self._taken | self._series
        numbered = (f"{key}_{number}" for number in count(1))
        label = next(label for label in chain([key], numbered) if label not in taken)
        self._taken.add(label)
        return label

    def visit_label(self, label: Any, *args: Any, **kwargs: Any) -> str:
        """Write the labelled expression, even in places where SQLAlchemy would write only its label."""
        kwargs["render_label_as_label"] = None
        base: Any = super()
        return str(base.visit_label(label, *args, **kwargs))

    def visit_table(self, table: Any, *_: Any, **__: Any) -> str:
        """Write the path of the device."""
        return self.preparer.format_table(table)

    def visit_column(self, column: Any, *args: Any, **kwargs: Any) -> str:
        """Write a column without the name of its table."""
        kwargs["include_table"] = False
        text = str(super().visit_column(column, *args, **kwargs))
        return TIME if not column.is_literal and column.name.lower() == TIME else text

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """Write LIMIT and OFFSET, if the statement has them."""
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **kw)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **kw)
        return text

    def for_update_clause(self, select: Any, **_: Any) -> str:  # noqa: ARG002
        """Raise CompileError."""
        _unsupported("FOR UPDATE", "there are no transactions")

    def visit_compound_select(self, *_: Any, **__: Any) -> str:
        """Raise CompileError."""
        _unsupported("UNION, INTERSECT and EXCEPT", "run the SELECTs one after the other")

    def visit_join(self, *_: Any, **__: Any) -> str:
        """Raise CompileError."""
        _unsupported("joins", "select several devices by a path with *, with text()")

    def visit_alias(self, *_: Any, **__: Any) -> str:
        """Raise CompileError."""
        _unsupported("aliases of devices", "use the table itself")

    def visit_cte(self, *_: Any, **__: Any) -> str:
        """Raise CompileError."""
        _unsupported("WITH", "select the inner rows first")

    # ------------------------------------------------------------------ expressions

    visit_startswith_op_binary = _matching("LIKE", "{}%")
    visit_not_startswith_op_binary = _matching("NOT LIKE", "{}%")
    visit_endswith_op_binary = _matching("LIKE", "%{}")
    visit_not_endswith_op_binary = _matching("NOT LIKE", "%{}")
    visit_contains_op_binary = _matching("LIKE", "%{}%")
    visit_not_contains_op_binary = _matching("NOT LIKE", "%{}%")
    visit_ilike_op_binary = _matching("LIKE", "{}", small=True)
    visit_not_ilike_op_binary = _matching("NOT LIKE", "{}", small=True)
    visit_istartswith_op_binary = _matching("LIKE", "{}%", small=True)
    visit_not_istartswith_op_binary = _matching("NOT LIKE", "{}%", small=True)
    visit_iendswith_op_binary = _matching("LIKE", "%{}", small=True)
    visit_not_iendswith_op_binary = _matching("NOT LIKE", "%{}", small=True)
    visit_icontains_op_binary = _matching("LIKE", "%{}%", small=True)
    visit_not_icontains_op_binary = _matching("NOT LIKE", "%{}%", small=True)
    visit_regexp_match_op_binary = _regular("REGEXP")
    visit_not_regexp_match_op_binary = _regular("NOT REGEXP")

    def visit_is__binary(self, binary: Any, operator: Any, **kw: Any) -> str:  # noqa: ARG002
        """Write IS NULL. Write IS TRUE and IS FALSE with `=`, which selects the same rows in WHERE."""
        comparison = "IS" if isinstance(binary.right, Null) else "="
        return f"{self.process(binary.left, **kw)} {comparison} {self.process(binary.right, **kw)}"

    def visit_truediv_binary(self, binary: Any, operator: Any, **kw: Any) -> str:  # noqa: ARG002
        """Write a division that works like Python's `/`.

        Saros returns an integer for a division of integers, so they are cast to DOUBLE.
        """
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        whole = all(issubclass(side.type._type_affinity or object, Integer) for side in (binary.left, binary.right))
        return f"CAST({left} AS DOUBLE) / {right}" if whole else f"{left} / {right}"

    def visit_count_func(self, fn: Any, **kw: Any) -> str:
        """Write count() of rows or of `time` as count_time(*), because count(*) counts each series separately."""
        arguments = list(fn.clauses)
        if not arguments or str(arguments[0]) == "*" or _is_of_time(arguments[0]):
            return "count_time(*)"
        return "count" + str(self.function_argspec(fn, **kw))

    def visit_max_func(self, fn: Any, **kw: Any) -> str:
        """Write max_value."""
        return "max_value" + str(self.function_argspec(fn, **kw))

    def visit_min_func(self, fn: Any, **kw: Any) -> str:
        """Write min_value."""
        return "min_value" + str(self.function_argspec(fn, **kw))

    def visit_now_func(self, *_: Any, **__: Any) -> str:
        """Write now()."""
        return "now()"

    def visit_concat_op_binary(self, *_: Any, **__: Any) -> str:
        """Raise CompileError: || means OR."""
        _unsupported("|| of texts", "use func.concat")

    def visit_is_distinct_from_binary(self, *_: Any, **__: Any) -> str:
        """Raise CompileError."""
        _unsupported("IS DISTINCT FROM", "use != for two values, is_(None) and is_not(None) for absent ones")

    visit_is_not_distinct_from_binary = visit_is_distinct_from_binary

    # ------------------------------------------------------------------ writes

    def returning_clause(self, *_: Any, **__: Any) -> str:
        """Raise CompileError."""
        _unsupported("RETURNING", "read the written row with select()")

    def visit_update(self, *_: Any, **__: Any) -> str:
        """Raise CompileError."""
        _unsupported("UPDATE", "insert the row again: the later value of a time wins")

    def delete_table_clause(self, delete_stmt: Any, from_table: Any, extra_froms: Any, **kw: Any) -> str:
        """Write the series of a DELETE: all series of the device. WHERE may refer to `time` only."""
        base: Any = super()
        return str(base.delete_table_clause(delete_stmt, from_table, extra_froms, **kw)) + ".*"


class SarosDDLCompiler(compiler.DDLCompiler):
    """The compiler of DDL. It accepts only literal SQL, since a table is a device, and writes create devices."""

    def process(self, obj: Any, **_: Any) -> str:
        """Compile DDL("..."). Raises CompileError for other constructs."""
        if type(obj).__visit_name__ == "ddl":
            return str(super().process(obj))
        what = type(obj).__visit_name__.replace("_", " ").upper()
        _unsupported(what, "writes create series, as does text('CREATE TIMESERIES ...'); DROP TIMESERIES removes them")


class SarosTypeCompiler(compiler.GenericTypeCompiler):
    """Writes the names of types, for example in CAST."""

    def visit_INTEGER(self, *_: Any, **__: Any) -> str:  # noqa: N802, D102
        return "INT32"

    visit_SMALLINT = visit_INTEGER  # noqa: N815

    def visit_BIGINT(self, *_: Any, **__: Any) -> str:  # noqa: N802, D102
        return "INT64"

    def visit_DOUBLE(self, *_: Any, **__: Any) -> str:  # noqa: N802, D102
        return "DOUBLE"

    visit_FLOAT = visit_REAL = visit_NUMERIC = visit_DECIMAL = visit_DOUBLE_PRECISION = visit_DOUBLE  # noqa: N815

    def visit_TEXT(self, *_: Any, **__: Any) -> str:  # noqa: N802, D102
        return "TEXT"

    visit_VARCHAR = visit_CHAR = visit_NVARCHAR = visit_CLOB = visit_TEXT  # noqa: N815

    def visit_BLOB(self, *_: Any, **__: Any) -> str:  # noqa: N802, D102
        return "BLOB"

    visit_BINARY = visit_VARBINARY = visit_BLOB  # noqa: N815

    def visit_TIMESTAMP(self, *_: Any, **__: Any) -> str:  # noqa: N802, D102
        return "TIMESTAMP"

    visit_DATETIME = visit_TIMESTAMP  # noqa: N815

    def visit_TIME(self, *_: Any, **__: Any) -> str:  # noqa: N802
        """Raise CompileError."""
        _unsupported("type for times of day", "store seconds as INT32, or a full TIMESTAMP")
