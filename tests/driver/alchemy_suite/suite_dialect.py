"""The embedded dialect, extended for tests that use CREATE TABLE and insert rows without a time.

    CREATE TABLE t (id INTEGER, data VARCHAR)     CREATE ALIGNED TIMESERIES root.suite.t(id INT32, data TEXT)
    INSERT INTO t (id, data) VALUES (?, ?)        INSERT INTO root.suite.t (time, id, data) VALUES (now(), ?, ?)
    DROP TABLE t                                  DELETE TIMESERIES root.suite.t.*

Rows are in insertion order, because the database's time unit is the nanosecond, and each statement inserts one row.
"""

from __future__ import annotations

from typing import Any

from saros.alchemy import EmbeddedDialect
from saros.alchemy.compiler import SarosCompiler, SarosDDLCompiler, SarosPreparer

DATABASE = "root.suite"


class SuitePreparer(SarosPreparer):
    """A preparer for which tables without a schema are devices of one database."""

    def format_table(self, table: Any, use_schema: bool = True, name: str | None = None, **more: Any) -> str:
        """Return the path of the table's device."""
        plain = str(name or table.name)
        if table.schema is None and not plain.startswith("root."):
            return f"{DATABASE}.{self.quote(plain)}"
        return super().format_table(table, use_schema, name, **more)


class SuiteCompiler(SarosCompiler):
    """A compiler that adds the time to INSERT."""

    def visit_insert(self, insert_stmt: Any, *args: Any, **kwargs: Any) -> str:
        """Return the statement with the current time as the first column."""
        base: Any = super()
        text = str(base.visit_insert(insert_stmt, *args, **kwargs))
        return text.replace("(", "(time, ", 1).replace("VALUES (", "VALUES (now(), ")


class SuiteDDLCompiler(SarosDDLCompiler):
    """A compiler that creates tables as aligned devices. It ignores keys, indexes and constraints."""

    def process(self, obj: Any, **more: Any) -> str:
        """Compile CREATE TABLE and DROP TABLE for a device."""
        kind = type(obj).__visit_name__
        if kind not in ("create_table", "drop_table"):
            return super().process(obj, **more)
        device = self.preparer.format_table(obj.element)
        if kind == "drop_table":
            return f"DELETE TIMESERIES {device}.*"
        types: Any = self.dialect.type_compiler_instance
        columns = [f"{self.preparer.quote(c.name)} {types.process(c.type)}" for c in obj.element.columns]
        return f"CREATE ALIGNED TIMESERIES {device}({', '.join(columns)})"


class SuiteDialect(EmbeddedDialect):
    """The embedded dialect with the compilers above."""

    driver = "suite"
    supports_statement_cache = True
    preparer = SuitePreparer
    statement_compiler = SuiteCompiler
    ddl_compiler = SuiteDDLCompiler
    use_insertmanyvalues = False
    supports_multivalues_insert = False

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **more: Any) -> bool:
        """Return whether the device has a series."""
        return super().has_table(connection, table_name, schema or DATABASE, **more)

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **more: Any) -> Any:
        """Return the columns except the time."""
        return super().get_columns(connection, table_name, schema or DATABASE, **more)[1:]

    def get_table_names(self, connection: Any, schema: str | None = None, **more: Any) -> list[str]:
        """Return the names of the database's devices."""
        return super().get_table_names(connection, schema or DATABASE, **more)
