"""Reflection for SQLAlchemy's inspector, based on information_schema and SHOW. The user's privileges apply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import exc, types
from sqlalchemy.engine.interfaces import ReflectedColumn

from saros.alchemy.naming import device_path, last_node, table_name

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

_TYPES: dict[str, types.TypeEngine[Any]] = {
    "BOOLEAN": types.Boolean(),
    "INT32": types.Integer(),
    "INT64": types.BigInteger(),
    "FLOAT": types.Float(),
    "DOUBLE": types.Double(),
    "TEXT": types.Text(),
    "STRING": types.String(),
    "BLOB": types.LargeBinary(),
    "TIMESTAMP": types.TIMESTAMP(timezone=True),
    "DATE": types.Date(),
}


class Reflection:
    """The part of the dialect that reads the schema of the database."""

    def get_schema_names(self, connection: Connection, **_: Any) -> list[str]:
        """Return the names of the databases."""
        return [str(row[0]) for row in connection.exec_driver_sql("SHOW DATABASES")]

    def get_table_names(self, connection: Connection, schema: str | None = None, **_: Any) -> list[str]:
        """Return the names of the devices in a database, or without a database the paths of all devices."""
        text, values = "SELECT device FROM information_schema.devices", ()
        if schema is not None:
            text, values = f"{text} WHERE database = ?", (schema,)  # type: ignore[assignment]
        return [table_name(str(row[0]), schema) for row in connection.exec_driver_sql(text, values)]

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedColumn]:
        """Return `time`, then the series with their type, encoding, compression, tags and attributes.

        A series named time is omitted, because a table can have only one column with this name. Raises NoSuchTableError
        if the device has no series.
        """
        rows = self._series(connection, table_name, schema)
        if not rows:
            raise exc.NoSuchTableError(table_name)
        columns: list[ReflectedColumn] = [
            {"name": "time", "type": types.TIMESTAMP(timezone=True), "nullable": False, "default": None}
        ]
        named = ((last_node(row[0]), row) for row in rows)
        for name, row in named:
            if name.lower() == "time":
                continue
            found: Any = {
                "name": name,
                "type": _TYPES[row[3]],
                "nullable": True,
                "default": None,
                "info": {"encoding": row[4], "compression": row[5], "tags": row[6], "attributes": row[7]},
            }
            columns.append(found)
        return columns

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **_: Any) -> bool:
        """Return whether the device has a series."""
        return bool(self._series(connection, table_name, schema))

    def _series(self, connection: Connection, table: str, schema: str | None) -> list[Any]:
        try:
            path = device_path(table, schema)
        except ValueError:
            return []
        return list(connection.exec_driver_sql(f"SHOW TIMESERIES {path}.*"))

    def get_pk_constraint(self, _: Any, __: str, schema: str | None = None, **___: Any) -> Any:  # noqa: ARG002
        """Return `time` as the primary key."""
        return {"constrained_columns": ["time"], "name": None}

    def get_view_names(self, *_: Any, **__: Any) -> list[str]:
        """Return an empty list: views are series of a device."""
        return []

    def get_foreign_keys(self, *_: Any, **__: Any) -> list[Any]:
        """Return an empty list: the tree model has no foreign keys, indexes or constraints."""
        return []

    get_indexes = get_unique_constraints = get_check_constraints = get_foreign_keys

    def get_table_comment(self, *_: Any, **__: Any) -> Any:
        """Return no comment: devices have none."""
        return {"text": None}
