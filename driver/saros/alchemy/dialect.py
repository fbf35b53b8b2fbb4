"""The dialect: addresses, connections, results.

    saros://user:password@host:6667/?consistency=weak&tls=ca.pem&time_zone=+08:00
    saros://?host=host1:6667&host=host2:6667                  several nodes
    saros+embedded:///folder   saros+embedded:////abs/folder?durability=os     in this process

Every statement is durable when it returns: commit and rollback do nothing, as in AUTOCOMMIT; savepoints are refused.
A result of Saros begins with `Time`, asked for or not; the columns of a SELECT that SQLAlchemy wrote are found by their
labels, and those of series that are not there are null. Results of text() are as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any
from urllib.parse import quote

from sqlalchemy import exc
from sqlalchemy.engine import URL, Connection, default

import saros
from saros.alchemy.compiler import SarosCompiler, SarosDDLCompiler, SarosPreparer, SarosTypeCompiler
from saros.alchemy.reflection import Reflection

#: Options of an address that are arguments of `saros.connect`, and how their text is read.
_ARGUMENTS = {"time_zone": str, "timestamps": str, "timeout": float, "failover_s": float}
_TARGET = ("consistency", "tls")
#: The session is over, or its node is gone.
_DISCONNECTED = frozenset({2014, 2016})


class SarosContext(default.DefaultExecutionContext):
    """Gives a SELECT the columns that it asked for."""

    def post_exec(self) -> None:
        """Put the result's columns in the order of the statement's."""
        compiled: Any = self.compiled
        columns = getattr(compiled, "_result_columns", None)
        description = self.cursor.description
        if not columns or description is None:
            return
        wanted = [entry.keyname for entry in columns]
        places = {entry[0]: place for place, entry in enumerate(description)}
        self.cursor = Chosen(self.cursor, wanted, [places.get(name) for name in wanted])


class Chosen:
    """A cursor's rows with chosen columns; None for a column that is not there."""

    def __init__(self, cursor: Any, names: Sequence[str], places: Sequence[int | None]) -> None:
        self._cursor = cursor
        self._places = places
        known = cursor.description
        self.description = [
            (name, "TEXT" if place is None else known[place][1], *(None,) * 4, True)
            for name, place in zip(names, places, strict=True)
        ]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def _row(self, row: Any) -> tuple[Any, ...]:
        return tuple(None if place is None else row[place] for place in self._places)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row."""
        row = self._cursor.fetchone()
        return None if row is None else self._row(row)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows."""
        return [self._row(row) for row in self._cursor.fetchmany(size)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        return [self._row(row) for row in self._cursor.fetchall()]


class SarosDialect(Reflection, default.DefaultDialect):  # type: ignore[misc]
    """See the module."""

    name = "saros"
    driver = "saros"
    default_paramstyle = "qmark"
    statement_compiler = SarosCompiler
    ddl_compiler = SarosDDLCompiler
    type_compiler_cls = SarosTypeCompiler
    preparer: Any = SarosPreparer
    execution_ctx_cls = SarosContext
    supports_statement_cache = True
    supports_native_boolean = True
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    supports_default_values = False
    supports_empty_insert = False
    supports_alter = False
    supports_sequences = False
    postfetch_lastrowid = False
    insert_returning = False
    #: Many rows go as one statement, which is one write.
    supports_multivalues_insert = True
    use_insertmanyvalues = True
    use_insertmanyvalues_wo_returning = True
    div_is_floordiv = True
    requires_name_normalize = False
    default_schema_name = None
    max_identifier_length = 1_000

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The driver."""
        return saros

    def create_connect_args(self, url: URL) -> Any:
        """The target and arguments of `saros.connect`. Raises ArgumentError for an option that is none."""
        if url.database:
            raise exc.ArgumentError("saros:// has no path behind its host: a table names its database itself")
        query = dict(url.query)
        hosts = query.pop("host", ())
        addresses = [hosts] if isinstance(hosts, str) else list(hosts)
        if url.host:
            host = f"[{url.host}]" if ":" in url.host else url.host
            addresses.insert(0, host if url.port is None else f"{host}:{url.port}")
        options = [f"{name}={quote(_one(query.pop(name), name), safe='')}" for name in _TARGET if name in query]
        arguments: dict[str, Any] = {**_arguments(query), "user": url.username, "password": url.password}
        _require_empty(query, (*_ARGUMENTS, *_TARGET, "host"))
        return [f"saros://{','.join(addresses)}" + ("/?" + "&".join(options) if options else "")], arguments

    # ------------------------------------------------------------------ there are no transactions

    def do_commit(self, _: Any) -> None:
        """Nothing."""

    def do_rollback(self, _: Any) -> None:
        """Nothing: what was written stays."""

    def do_savepoint(self, *_: Any) -> None:
        """Refused."""
        raise saros.NotSupportedError("savepoints: Saros has no transactions", 2002)

    def get_default_isolation_level(self, _: Any) -> Any:
        """AUTOCOMMIT."""
        return "AUTOCOMMIT"

    def get_isolation_level(self, _: Any) -> Any:
        """AUTOCOMMIT."""
        return "AUTOCOMMIT"

    def get_isolation_level_values(self, _: Any) -> Any:
        """AUTOCOMMIT only."""
        return ["AUTOCOMMIT"]

    def set_isolation_level(self, *_: Any) -> None:
        """Nothing: there is one."""

    # ------------------------------------------------------------------ connections

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Whether the session is alive."""
        dbapi_connection.execute("SHOW VERSION").fetchall()
        return True

    def is_disconnect(self, e: Any, *_: Any) -> bool:
        """Whether the error says that the session is over."""
        return getattr(e, "code", None) in _DISCONNECTED

    def _get_server_version_info(self, connection: Connection) -> Any:
        text = str(connection.exec_driver_sql("SHOW VERSION").scalar_one())
        return tuple(int(part) for part in text.split(".") if part.isdigit())


class EmbeddedDialect(SarosDialect):
    """A folder, in this process."""

    driver = "embedded"
    supports_statement_cache = True

    def create_connect_args(self, url: URL) -> Any:
        """The folder; what is no argument of `saros.connect` is a configuration key. Raises ArgumentError."""
        if url.host or url.username or not url.database:
            raise exc.ArgumentError("saros+embedded:///folder names a folder, and neither a host nor a user")
        query = dict(url.query)
        arguments: dict[str, Any] = _arguments(query)
        if query:
            arguments["options"] = {name: _one(value, name) for name, value in query.items()}
        return [url.database], arguments


def _arguments(query: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `saros.connect` among the options, which are taken out."""
    try:
        return {name: read(_one(query.pop(name), name)) for name, read in _ARGUMENTS.items() if name in query}
    except ValueError as error:
        raise exc.ArgumentError(f"an option of the address is no number: {error}") from None


def _one(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise exc.ArgumentError(f"the option {name} is given twice")
    return value


def _require_empty(query: dict[str, Any], known: Sequence[str]) -> None:
    if query:
        raise exc.ArgumentError(f"there is no option {next(iter(query))}: there are {', '.join(known)}")
