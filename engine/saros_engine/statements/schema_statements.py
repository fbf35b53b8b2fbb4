"""Dispatch the statements that change the schema to the modules that implement them."""

from __future__ import annotations

from collections.abc import Callable

from saros_engine.base.access import Access
from saros_engine.base.database import Database, wait_for_schema
from saros_engine.base.session_context import SessionContext
from saros_engine.catalog.continuous_queries import continuous_query, creation, removal
from saros_engine.catalog.templates import change_templates
from saros_engine.execution.queries import Queries
from saros_engine.planner import plan_select
from saros_engine.planner.into import targets_of
from saros_engine.planning.schema_patterns import patterns_of
from saros_engine.security.authorization import AuthorizationRequest, authorize, authorize_views
from saros_engine.statements import ddl
from saros_engine.statements.extension_statements import Installations, extension_changes
from saros_engine.statements.view_statements import create_views, drop_views, planned_views, rename_view
from saros_engine.writes.writer import Writer
from saros_grammar.syntax import ast
from saros_storage.base.write_request import WriteRequest


class SchemaStatements:
    """Executes the statements that change the schema of a database. Thread-safe."""

    def __init__(
        self,
        store: Database,
        writer: Writer,
        queries: Queries,
        asked: Callable[[Access], AuthorizationRequest],
        installations: Installations | None,
    ) -> None:
        """`asked` returns an authorization request for an access; `installations` is None without other nodes."""
        self._store = store
        self._writer = writer
        self._queries = queries
        self._authorization_request = asked
        self._installations = installations

    def run(self, statement: ast.Statement, session: SessionContext, text: str, request: WriteRequest) -> int:
        """Execute a statement; return the number of objects that it changed. Raises UserMistake, EngineError."""
        store = self._store
        # All statements except these two look up existing objects, so the schema must be current.
        if not isinstance(statement, ast.CreateDatabase | ast.CreateTimeseries):
            wait_for_schema(store, patterns_of(statement), request.deadline_ns)
        match statement:
            case ast.CreateDatabase():
                return ddl.create_database(store, statement, request)
            case ast.AlterDatabase():
                return ddl.alter_database(store, statement, request)
            case ast.DeleteDatabases():
                return ddl.delete_databases(store, statement, request)
            case ast.CreateTimeseries():
                return ddl.create_timeseries(store, self._writer, statement, request)
            case ast.DeleteTimeseries():
                return ddl.delete_timeseries(store, statement, request)
            case ast.AlterTimeseries():
                return ddl.alter_timeseries(store, statement, request)
            case ast.AlterStorage():
                return ddl.alter_storage(store, statement, request)
            case ast.SetTtl() | ast.UnsetTtl():
                return ddl.change_ttl(store, statement, request)
            case _ if isinstance(statement, ast.TemplateStatement):
                return change_templates(store, statement, request)
            case _ if isinstance(statement, ast.ViewStatement):
                return self._change_views(statement, session, request)
            case ast.CreateContinuousQuery():
                return self._create_continuous(statement, session, text, request)
            case ast.DropContinuousQuery(name):
                store.change_schema(removal(name, store.schema), request=request)
            case _ if isinstance(statement, ast.ExtensionStatement):
                changes = extension_changes(statement, store.schema.catalogue, self._installations)
                store.change_schema(changes, request=request)
            case _:
                raise AssertionError(statement)
        return 1

    def _change_views(self, statement: ast.ViewStatement, session: SessionContext, request: WriteRequest) -> int:
        match statement:
            case ast.CreateView():
                views = planned_views(statement, self._queries.context(session))
                authorize_views(views, self._authorization_request(session.access))
                return create_views(self._store, self._writer, views, request, exist=statement.exists)
            case ast.RenameView():
                return rename_view(self._store, statement, request)
            case ast.DropViews():
                return drop_views(self._store, statement, request)

    def _create_continuous(
        self, create: ast.CreateContinuousQuery, session: SessionContext, text: str, request: WriteRequest
    ) -> int:
        moment = self._queries.moment(session)
        query = continuous_query(create, text, session.access.user, moment)
        # Plan and authorize a run now. Errors are then reported to the creator, not at the first run.
        select = query.select(moment.now)
        authorize(select, self._authorization_request(session.access))
        targets_of(select, plan_select(select, self._queries.context(session)))
        self._store.change_schema(creation(query, self._store.schema), request=request)
        return 1
