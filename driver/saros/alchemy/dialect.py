"""The SQLAlchemy dialect: addresses, connections, results.

    saros://user:password@host:6667/?consistency=weak&tls=ca.pem&time_zone=+08:00
    saros://?host=host1:6667&host=host2:6667                  several nodes
    saros+embedded:///folder   saros+embedded:////abs/folder?durability=os     in this process

Every statement is durable when it returns: commit and rollback do nothing, as in AUTOCOMMIT, and savepoints raise
NotSupportedError. Columns of a SELECT are matched by position. The column `Time`, with which a result begins, is
removed. If a selected series does not exist, the result has no column for it, and ProgrammingError is raised. Results
of text() are returned unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any
from urllib.parse import quote

from sqlalchemy import exc, pool
from sqlalchemy.engine import URL, Connection, default

import saros
from saros.alchemy.compiler import SarosCompiler, SarosDDLCompiler, SarosPreparer, SarosTypeCompiler
from saros.alchemy.reflection import Reflection
from saros.api.embedded import MEMORY

#: Maps each option of an address that is an argument of `saros.connect` to its conversion from text.
_ARGUMENTS = {"time_zone": str, "timestamps": str, "timeout": float, "failover_s": float}
_TARGET = ("consistency", "tls", "partial_results")
#: The codes of errors which mean that the session has ended, or that its node cannot be reached.
_DISCONNECTED = frozenset({2014, 2016})
_SEMANTIC_ERROR = 701
#: The maximum number of result columns that a message lists.
_NAMES_TOLD = 10


class SarosContext(default.DefaultExecutionContext):
    """The execution of one statement."""

    def post_exec(self) -> None:
        """Reduce the result to the selected columns. Raises ProgrammingError if it has other columns."""
        if self.isdelete:
            self._rowcount = -1  # the number of deleted rows is unknown
        description = self.cursor.description
        if description is None or not isinstance(self.compiled, SarosCompiler):
            return
        if self.compiled.labels is not None:
            self.cursor = Selected(self.cursor, _place(self.compiled, self.compiled.labels, description))
        elif self.compiled._textual_ordered_columns:
            _require_count(len(self.compiled._result_columns), [name for name, *_ in description])


def _place(compiled: SarosCompiler, labels: Sequence[str | None], description: Sequence[Any]) -> slice:
    """Return the positions of the selected columns in the result, which always begins with `Time`.

    Raises ProgrammingError if a selected column is missing in the result: Saros omits series that do not exist.
    """
    has_times = bool(description) and not description[0][-1]
    place = slice(int(has_times), has_times + len(labels) if compiled.has_more_columns else None)
    names = [name for name, *_ in description[place]]
    found = set(names)
    selected = zip(labels, compiled._result_columns, strict=True)
    missing = [str(column.keyname) for label, column in selected if label is not None and label not in found]
    if missing:
        message = f"no series for the selected columns {', '.join(missing)}: SHOW TIMESERIES lists those that exist"
        raise saros.ProgrammingError(message, _SEMANTIC_ERROR)
    if not compiled._ad_hoc_textual:
        _require_count(len(labels), names)
    return place


def _require_count(expected: int, names: Sequence[str]) -> None:
    """Check the number of columns of a result. Raises ProgrammingError."""
    if len(names) != expected:
        listed = ", ".join(names[:_NAMES_TOLD]) + (", ..." if len(names) > _NAMES_TOLD else "")
        message = f"columns in the statement: {expected}; in its result: {len(names)} ({listed or 'none'})"
        raise saros.ProgrammingError(message, _SEMANTIC_ERROR)


class Selected:
    """A cursor reduced to a range of its columns."""

    def __init__(self, cursor: Any, place: slice) -> None:
        self._cursor = cursor
        self._place = place
        self.description = cursor.description[place]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None after the last row."""
        row = self._cursor.fetchone()
        return None if row is None else row[self._place]

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return the next rows."""
        return [row[self._place] for row in self._cursor.fetchmany(size)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all remaining rows."""
        return [row[self._place] for row in self._cursor.fetchall()]


class SarosDialect(Reflection, default.DefaultDialect):  # type: ignore[misc]
    """The dialect for servers and clusters (`saros://`)."""

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
    #: All rows of an executemany are sent as one statement, so that they form a single write.
    supports_multivalues_insert = True
    use_insertmanyvalues = True
    use_insertmanyvalues_wo_returning = True
    div_is_floordiv = True
    requires_name_normalize = False
    default_schema_name = None
    max_identifier_length = 1_000

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """Return the driver module."""
        return saros

    def create_connect_args(self, url: URL) -> Any:
        """Return the target and the arguments of `saros.connect`. Raises ArgumentError for unknown options."""
        if url.database:
            raise exc.ArgumentError("saros:// addresses have no path after the host: tables name their database")
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
        """Do nothing: statements are durable when they return."""

    def do_rollback(self, _: Any) -> None:
        """Do nothing: writes are kept."""

    def do_savepoint(self, *_: Any) -> None:
        """Raise NotSupportedError."""
        raise saros.NotSupportedError("savepoints: Saros has no transactions", 2002)

    def get_default_isolation_level(self, _: Any) -> Any:
        """Return AUTOCOMMIT."""
        return "AUTOCOMMIT"

    def get_isolation_level(self, _: Any) -> Any:
        """Return AUTOCOMMIT."""
        return "AUTOCOMMIT"

    def get_isolation_level_values(self, _: Any) -> Any:
        """Return the only level, AUTOCOMMIT."""
        return ["AUTOCOMMIT"]

    def set_isolation_level(self, *_: Any) -> None:
        """Do nothing: there is only one level."""

    # ------------------------------------------------------------------ connections

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Return True if the session is alive. Raise an exception otherwise."""
        dbapi_connection.execute("SHOW VERSION").fetchall()
        return True

    def is_disconnect(self, e: Any, *_: Any) -> bool:
        """Return whether an error means that the session has ended."""
        return getattr(e, "code", None) in _DISCONNECTED

    def _get_server_version_info(self, connection: Connection) -> Any:
        text = str(connection.exec_driver_sql("SHOW VERSION").scalar_one())
        return tuple(int(part) for part in text.split(".") if part.isdigit())


class EmbeddedDialect(SarosDialect):
    """The dialect for embedded databases (`saros+embedded://`)."""

    driver = "embedded"
    supports_statement_cache = True

    def create_connect_args(self, url: URL) -> Any:
        """Return the folder and the arguments of `saros.connect`. Other options are configuration keys.

        Raises ArgumentError for an address without a folder, or with a host or user.
        """
        if url.host or url.username or not url.database:
            raise exc.ArgumentError("saros+embedded:///folder takes a folder, without a host or a user")
        query = dict(url.query)
        arguments: dict[str, Any] = _arguments(query)
        if query:
            arguments["options"] = {name: _one(value, name) for name, value in query.items()}
        return [url.database], arguments

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """Return the pool class.

        A temporary database has only one connection, since a second connection would open another database.
        """
        return pool.StaticPool if url.database == MEMORY else super().get_pool_class(url)


def _arguments(query: dict[str, Any]) -> dict[str, Any]:
    """Remove the arguments of `saros.connect` from the options, and return them. Raises ArgumentError."""
    try:
        return {name: read(_one(query.pop(name), name)) for name, read in _ARGUMENTS.items() if name in query}
    except ValueError as error:
        raise exc.ArgumentError(f"an option of the address must be a number: {error}") from None


def _one(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise exc.ArgumentError(f"the option {name} is given twice")
    return value


def _require_empty(query: dict[str, Any], known: Sequence[str]) -> None:
    if query:
        raise exc.ArgumentError(f"unknown option {next(iter(query))}: the options are {', '.join(known)}")
