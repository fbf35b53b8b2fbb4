"""The builder of a statement from a parse tree. Each area of the dialect has a table of rules.

    singleStatement -> statement -> one method per rule of Sql.g4; expressions are left to `ExpressionBuilder`,
    SELECT to `select_builder`, CREATE / ALTER TIMESERIES to `series_builder`, LOAD to `load_builder`, device
    templates to `template_builder`, continuous queries to `continuous_builder`, logical views to `view_builder`,
    user-defined functions and triggers to `extension_builder`.

If a statement parses but is not supported, the result is `NotSupported(what)`. A mistake that the grammar allows (a
repeated clause, a row of the wrong width) raises a ParseError with the place of the mistake.

Each statement has its own builder, which uses neither threads nor the schema. Parse-tree contexts are generated code
without types, so they are `Any` here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from saros_grammar.builders import (
    continuous_builder,
    extension_builder,
    load_builder,
    select_builder,
    series_builder,
    template_builder,
    view_builder,
)
from saros_grammar.builders.expressions import ExpressionBuilder
from saros_grammar.builders.show_filters import subject_filter
from saros_grammar.generated.Sql import Sql
from saros_grammar.syntax import ast
from saros_grammar.syntax.ast import Expression, Literal, NotSupported, Parameter, PathExpression, Statement
from saros_grammar.syntax.errors import SEMANTIC_ERROR
from saros_grammar.syntax.literals import duration_literal, named_literal, unquote_name, unquote_string

#: The settings of a database. Each clause has an error message for a value that is not an integer.
_SETTINGS = {
    "ttl": "a TTL is a number of milliseconds",
    "schema_region_group_num": "the value is a number of groups",
    "data_region_group_num": "the value is a number of groups",
}
#: For each database setting that only IoTDB has, the replacement in Saros, as the end of an error message.
_INSTEAD = {
    "schema_replication_factor": ": all databases have the cluster's number of replicas",
    "data_replication_factor": ": all databases have the cluster's number of replicas",
    "time_partition_interval": ": time_partition_interval_ms in saros.toml applies to all databases",
}
_BOOLEANS = ("true", "false")
#: The caches that CLEAR CACHE accepts. The statement always clears all caches.
_CACHES = ("all", "query", "schema", "auth")
#: The modes of SET SYSTEM, with True for the read-only mode. Older scripts use WRITABLE.
_MODES = {"readonly": True, "running": False, "writable": False}
#: The build functions of some areas, keyed by the name of the rule or of its alternative.
_BUILDERS = {
    **template_builder.RULES,
    **continuous_builder.RULES,
    **view_builder.RULES,
    **extension_builder.RULES,
}


class StatementBuilder:
    """Converts one parse tree to a statement."""

    def __init__(self, expressions: ExpressionBuilder) -> None:
        self._expressions = expressions

    def statement(self, context: Any) -> Statement:
        """Build the statement of a `statement` context. Raises ParseError."""
        inner = context.children[0]
        rule = type(inner).__name__.removesuffix("Context")
        build = _BUILDERS.get(rule)
        return self._rules[rule](self, inner) if build is None else build(self._expressions, inner)

    # ------------------------------------------------------------------------------------------ queries

    def _select(self, context: Any) -> Statement:
        return select_builder.build(self._expressions, context)

    def _explain(self, context: Any) -> ast.Explain:
        inner = self.statement(context.statement())
        return ast.Explain(inner, context.ANALYZE() is not None, context.VERBOSE() is not None)

    # ------------------------------------------------------------------------------------------ writing

    def _insert(self, context: Any) -> ast.Insert:
        device = self._expressions.exact(context.exactPath())
        columns = context.columns
        names = [unquote_name(self._expressions.raw(column)).lower() for column in columns]
        clocks = [i for i, name in enumerate(names) if name in ("time", "timestamp")]
        if len(clocks) > 1:
            raise self._expressions.error(columns[clocks[1]], "the time is in the column list twice")
        clock = clocks[0] if clocks else None
        measurements = tuple(self._expressions.canonical(c) for i, c in enumerate(columns) if i != clock)
        if not measurements:
            place, message = context.exactPath(), "the column list names no measurement"
            raise self._expressions.error(place, message, code=SEMANTIC_ERROR)
        times: list[Expression | None] = []
        rows = []
        for row in context.rows:
            cells = self._cells(row, len(columns))
            times.append(None if clock is None else self._cell(cells[clock]))
            rows.append(tuple(self._cell(cell) for i, cell in enumerate(cells) if i != clock))
        return ast.Insert(device, measurements, tuple(times), tuple(rows), context.ALIGNED() is not None)

    def _cells(self, row: Any, width: int) -> list[Any]:
        cells: list[Any] = row.cells
        if len(cells) != width:
            message = f"this row has {len(cells)} values and the column list has {width} names"
            raise self._expressions.error(row, message, code=SEMANTIC_ERROR)
        return cells

    def _cell(self, cell: Any) -> Expression:
        """Build a value, or a computed time: an integer, a date or now(), plus or minus durations."""
        result: Expression = self._constant(cell)
        for shift in cell.shift():
            operator = ast.BinaryOperator.SUBTRACT if shift.sign.type == Sql.MINUS else ast.BinaryOperator.ADD
            token = shift.DURATION().symbol
            span = self._expressions.literal(token, duration_literal, token.text)
            result = ast.Binary(operator, result, span)
        return result

    def _constant(self, cell: Any) -> Literal | Parameter | ast.Call:
        """Build a literal, a parameter or the call now()."""
        if cell.number is not None:
            sign = "" if cell.sign is None else cell.sign.text
            return self._expressions.number(cell, sign)
        if cell.literal is not None:
            return self._expressions.token_literal(cell.literal)
        if cell.name() is not None:
            return self._named(cell)
        token = cell.start
        return (
            self._expressions.parameter(token)
            if token.type == Sql.PARAMETER
            else self._expressions.token_literal(token)
        )

    def _named(self, cell: Any) -> Literal | ast.Call:
        name = self._expressions.raw(cell.name())
        if cell.LEFT_PARENTHESIS() is not None:
            if name.lower() != "now" or cell.sign is not None:
                raise self._expressions.error(cell, "the only function in VALUES is now()", ("a value",))
            return ast.Call(name, ())
        literal = named_literal(name, "" if cell.sign is None else cell.sign.text)
        if literal is None:
            raise self._expressions.error(cell, f"{name} is not a value; a text needs quotes: '{name}'", ("a value",))
        return literal

    def _delete_data(self, context: Any) -> ast.DeleteData:
        where = context.expression()
        return ast.DeleteData(
            self._paths(context.path()), None if where is None else self._expressions.expression(where)
        )

    # ------------------------------------------------------------------------------------------ schema

    def _create_database(self, context: Any) -> Statement:
        ttl = self._ttl(context.pair()) if context.WITH() is not None else None
        if isinstance(ttl, NotSupported):
            return ttl
        return ast.CreateDatabase(self._expressions.exact(context.exactPath()), ttl)

    def _alter_database(self, context: Any) -> Statement:
        ttl = self._ttl(context.pair())
        if isinstance(ttl, NotSupported):
            return ttl
        return ast.AlterDatabase(self._expressions.exact(context.exactPath()), ttl)

    def _ttl(self, pairs: Iterable[Any]) -> int | NotSupported | None:
        """Return the TTL from the settings of a database.

        Numbers of groups are checked and then ignored, because the cluster determines them.
        """
        found: dict[str, Any] = {}
        for pair in pairs:
            key = unquote_name(self._expressions.raw(pair.key())).lower()
            if key in found:
                raise self._expressions.error(pair, f"{key.upper()} is given twice")
            found[key] = pair.value()
        other = next((key for key in found if key not in _SETTINGS), None)
        if other is not None and other in _INSTEAD:
            return NotSupported(f"the database setting {other.upper()}{_INSTEAD[other]}")
        if other is not None:
            known = tuple(key.upper() for key in _SETTINGS)
            raise self._expressions.error(found[other].parentCtx, f"unknown database setting {other}", known)
        numbers: dict[str, int] = {}
        for key, value in found.items():
            text = self._expressions.raw(value)
            if not text.isascii() or not text.isdigit():
                raise self._expressions.error(value, _SETTINGS[key], ("an integer",))
            numbers[key] = int(text)
        return numbers.get("ttl")

    def _drop_databases(self, context: Any) -> ast.DeleteDatabases:
        return ast.DeleteDatabases(self._paths(context.path()))

    def _drop_series(self, context: Any) -> ast.DeleteTimeseries:
        return ast.DeleteTimeseries(self._paths(context.path()))

    def _create_series(self, context: Any) -> ast.CreateTimeseries:
        return series_builder.create_series(self._expressions, self._expressions.exact(context.exactPath()), context)

    def _create_aligned(self, context: Any) -> ast.CreateTimeseries:
        return series_builder.create_aligned(self._expressions, self._expressions.exact(context.exactPath()), context)

    def _alter_series(self, context: Any) -> ast.AlterTimeseries:
        return series_builder.alter(
            self._expressions, self._expressions.exact(context.exactPath()), context.alteration()
        )

    def _alter_storage(self, context: Any) -> ast.AlterStorage:
        return series_builder.alter_storage(self._expressions, self._paths(context.path()), context)

    # ------------------------------------------------------------------------------------------ SHOW and COUNT

    def _show_databases(self, context: Any) -> ast.Show:
        return ast.Show(ast.ShowKind.DATABASES, self._path(context.path()), details=context.DETAILS() is not None)

    def _show_devices(self, context: Any) -> ast.Show:
        return self._show(context, ast.ShowKind.DEVICES, details=context.WITH() is not None)

    def _show_series(self, context: Any) -> ast.Show:
        return self._show(context, ast.ShowKind.TIMESERIES, latest=context.LATEST() is not None)

    def _show_views(self, context: Any) -> ast.Show:
        return self._show(context, ast.ShowKind.VIEWS)

    def _show_children(self, context: Any) -> ast.Show:
        paths = context.what.type == Sql.PATHS
        return self._show(context, ast.ShowKind.CHILD_PATHS if paths else ast.ShowKind.CHILD_NODES)

    def _show_queries(self, context: Any) -> ast.Show:
        return self._show(context, ast.ShowKind.QUERIES)

    def _show_slow_queries(self, context: Any) -> ast.Show:
        return self._show(context, ast.ShowKind.SLOW_QUERIES)

    def _show_plain(self, context: Any) -> ast.Show:
        return ast.Show(ast.ShowKind(context.what.text.lower()))

    def _show_cluster(self, context: Any) -> ast.Show:
        if context.CHANGE() is not None:
            return ast.Show(ast.ShowKind.CLUSTER_CHANGE)
        return ast.Show(ast.ShowKind.CLUSTER, details=context.DETAILS() is not None)

    def _show_urls(self, _: Any) -> ast.Show:
        return ast.Show(ast.ShowKind.URLS)

    def _show_regions(self, context: Any) -> ast.Show:
        kind = ast.ShowKind.REGIONS if context.what is None else ast.ShowKind.DATA_REGIONS
        nodes = tuple(int(token.text) for token in context.nodeIds)
        return ast.Show(kind, databases=self._paths(context.path()), nodes=nodes)

    def _show_ttl(self, context: Any) -> ast.Show:
        return ast.Show(ast.ShowKind.TTL, databases=self._paths(context.path()))

    def _show_disk_usage(self, context: Any) -> ast.Show:
        return self._show(context, ast.ShowKind.DISK_USAGE)

    def _show_stored(self, context: Any) -> ast.Show:
        return ast.Show(ast.ShowKind(context.what.text.lower()), databases=self._paths(context.path()))

    def _show_configuration(self, context: Any) -> ast.Show:
        nodes = () if context.node is None else (int(context.node.text),)
        return ast.Show(ast.ShowKind.CONFIGURATION, details=context.DESC() is not None, nodes=nodes)

    def _show_current_timestamp(self, _: Any) -> ast.Show:
        return ast.Show(ast.ShowKind.CURRENT_TIMESTAMP)

    def _show_time_zone(self, _: Any) -> ast.Show:
        return ast.Show(ast.ShowKind.TIME_ZONE)

    def _show(self, context: Any, kind: ast.ShowKind, *, latest: bool = False, details: bool = False) -> ast.Show:
        is_of_queries = kind in (ast.ShowKind.QUERIES, ast.ShowKind.SLOW_QUERIES)
        path = None if is_of_queries else self._path(context.path())
        found: dict[str, Any] = {}
        for clause in context.showClause():
            word = clause.start.text.lower()
            made = self._show_clause(clause, kind)
            if word in found and word != "where":
                raise self._expressions.error(clause, f"{word.upper()} is given twice")
            # There may be two WHERE clauses: a condition on the listed series or devices, and a condition on times.
            found[word] = ast.Binary(ast.BinaryOperator.AND, found[word], made) if word in found else made
        return ast.Show(
            kind,
            path,
            where=found.get("where"),
            limit=found.get("limit"),
            offset=found.get("offset"),
            latest=latest,
            details=details,
            order_by=found.get("order", ()),
        )

    def _show_clause(self, clause: Any, kind: ast.ShowKind) -> Any:
        if clause.condition is not None:
            condition = self._expressions.expression(clause.condition)
            return condition if kind in ast.CHOSEN_BY_COLUMNS else subject_filter(condition)
        if clause.amount is not None:
            return select_builder.row_count(self._expressions, clause.amount)
        return select_builder.sort_keys(self._expressions, clause)

    def _count_databases(self, context: Any) -> ast.Count:
        return ast.Count(ast.ShowKind.DATABASES, self._path(context.path()))

    def _count_devices(self, context: Any) -> ast.Count:
        return ast.Count(ast.ShowKind.DEVICES, self._path(context.path()), self._filter(context))

    def _count_series(self, context: Any) -> ast.Count:
        level = None if context.level is None else self._level(context.level)
        return ast.Count(ast.ShowKind.TIMESERIES, self._path(context.path()), self._filter(context), level)

    def _count_nodes(self, context: Any) -> ast.Count:
        return ast.Count(ast.ShowKind.NODES, self._path(context.path()), level=self._level(context.level))

    def _filter(self, context: Any) -> Expression | None:
        where = context.expression()
        return None if where is None else subject_filter(self._expressions.expression(where))

    def _level(self, token: Any) -> int:
        return select_builder.level(self._expressions, token)

    # ------------------------------------------------------------------------------------------ administration

    def _set_time_zone(self, context: Any) -> ast.SetTimeZone:
        text = self._expressions.raw(context.zone())
        return ast.SetTimeZone(unquote_string(text) if text[0] in "'\"" else "".join(text.split()))

    def _set_partial_results(self, context: Any) -> ast.SetPartialResults:
        word = self._expressions.raw(context.switch).lower()
        if word not in _BOOLEANS:
            raise self._expressions.error(context.switch, "SET ALLOW PARTIAL RESULTS takes TRUE or FALSE", _BOOLEANS)
        return ast.SetPartialResults(word == "true")

    def _flush(self, context: Any) -> ast.Flush:
        kind = context.name()
        if kind is not None and self._expressions.raw(kind).lower() not in _BOOLEANS:
            raise self._expressions.error(kind, "FLUSH takes databases: FLUSH root.sg1, root.sg2", ("root",))
        return ast.Flush(self._paths(context.path()))

    def _merge(self, context: Any) -> ast.Merge:
        return ast.Merge(self._paths(context.path()), context.FULL() is not None)

    def _clear(self, context: Any) -> ast.ClearCache:
        if context.what is not None and self._expressions.raw(context.what).lower() not in _CACHES:
            raise self._expressions.error(context.what, "CLEAR CACHE takes ALL, AUTH, QUERY or SCHEMA", ("CACHE",))
        return ast.ClearCache(context.LOCAL() is not None)

    def _set_system(self, context: Any) -> ast.SetSystem:
        mode = self._expressions.name(context.status).lower()
        if mode not in _MODES:
            raise self._expressions.error(context.status, "SET SYSTEM TO takes READONLY or RUNNING")
        return ast.SetSystem(_MODES[mode], context.LOCAL() is not None)

    def _set_configuration(self, context: Any) -> ast.SetConfiguration:
        settings = series_builder.pairs(self._expressions, context.pair())
        keys = [key for key, _ in settings]
        for pair, key in zip(context.pair(), keys, strict=True):
            if keys.count(key) > 1:
                raise self._expressions.error(pair, f"the option {key} is given twice")
        return ast.SetConfiguration(settings, None if context.node is None else int(context.node.text))

    def _load_configuration(self, context: Any) -> ast.LoadConfiguration:
        return ast.LoadConfiguration(context.LOCAL() is not None)

    def _set_dialect(self, context: Any) -> Statement:
        dialect = self._expressions.name(context.dialect).lower()
        if dialect == "tree":
            return ast.SetSqlDialect()
        if dialect == "table":
            return NotSupported("the table model")
        raise self._expressions.error(context.dialect, "the only SQL dialect is TREE", ("TREE",))

    def _set_ttl(self, context: Any) -> ast.SetTtl:
        path = select_builder.pattern(self._expressions, context.path())
        if context.infinite is None:
            return ast.SetTtl(path, int(context.milliseconds.text))
        if self._expressions.raw(context.infinite).upper() != "INF":
            raise self._expressions.error(context.infinite, "a TTL is a number of milliseconds, or INF", ("INF",))
        return ast.SetTtl(path, None)

    def _unset_ttl(self, context: Any) -> ast.UnsetTtl:
        return ast.UnsetTtl(select_builder.pattern(self._expressions, context.path()))

    def _load(self, context: Any) -> Statement:
        return load_builder.build(self._expressions, context)

    def _kill(self, context: Any) -> ast.KillQuery:
        token = context.id_
        if token is None:
            return ast.KillQuery(None)
        return ast.KillQuery(unquote_string(token.text) if token.type == Sql.STRING else token.text)

    # ------------------------------------------------------------------------------------------ users

    def _create_user(self, context: Any) -> ast.CreateUser:
        return ast.CreateUser(self._principal(context.principal()), self._password(context.password()))

    def _alter_user(self, context: Any) -> ast.AlterUser:
        return ast.AlterUser(self._principal(context.principal()), self._password(context.password()))

    def _create_role(self, context: Any) -> ast.CreateRole:
        return ast.CreateRole(self._principal(context.principal()))

    def _drop_principal(self, context: Any) -> ast.DropPrincipal:
        return ast.DropPrincipal(self._grantee(context))

    def _grant_role(self, context: Any) -> ast.GrantRole:
        return ast.GrantRole(self._principal(context.role), self._principal(context.user))

    def _revoke_role(self, context: Any) -> ast.RevokeRole:
        return ast.RevokeRole(self._principal(context.role), self._principal(context.user))

    def _grant(self, context: Any) -> ast.Grant:
        option = context.OPTION() is not None
        return ast.Grant(_privileges(context), self._paths(context.path()), self._grantee(context), option)

    def _revoke(self, context: Any) -> ast.Revoke:
        return ast.Revoke(_privileges(context), self._paths(context.path()), self._grantee(context))

    def _list_users(self, context: Any) -> ast.ListUsers:
        return ast.ListUsers(None if context.role is None else self._principal(context.role))

    def _list_roles(self, context: Any) -> ast.ListRoles:
        return ast.ListRoles(None if context.user is None else self._principal(context.user))

    def _list_privileges(self, context: Any) -> ast.ListPrivileges:
        return ast.ListPrivileges(self._grantee(context))

    def _create_token(self, context: Any) -> ast.CreateToken:
        return ast.CreateToken(self._principal(context.id_), self._own_or(context.user), self._expiry(context))

    def _expiry(self, context: Any) -> Expression | None:
        """Return the time after EXPIRES, or None if there is no EXPIRES."""
        if context.span is not None:
            span = self._expressions.literal(context.span, duration_literal, context.span.text)
            return ast.Binary(ast.BinaryOperator.ADD, ast.Call("now", ()), span)
        return None if context.at is None else self._expressions.token_literal(context.at)

    def _drop_token(self, context: Any) -> ast.DropToken:
        return ast.DropToken(self._principal(context.id_), self._own_or(context.user))

    def _show_tokens(self, context: Any) -> ast.ShowTokens:
        return ast.ShowTokens(self._own_or(context.user))

    def _own_or(self, context: Any) -> str | None:
        """Return the user that a statement names, or None if it names no user."""
        return None if context is None else self._principal(context)

    def _grantee(self, context: Any) -> ast.Principal:
        return ast.Principal(ast.PrincipalKind(context.kind.text.lower()), self._principal(context.principal()))

    def _principal(self, context: Any) -> str:
        return unquote_name(self._expressions.raw(context))

    def _password(self, context: Any) -> Literal | Parameter:
        token = context.start
        return (
            self._expressions.parameter(token)
            if token.type == Sql.PARAMETER
            else self._expressions.token_literal(token)
        )

    # ------------------------------------------------------------------------------------------ cluster membership

    def _admit_node(self, context: Any) -> ast.AdmitNode:
        peer, client, token, rack = (
            "" if text is None else unquote_string(text.text)
            for text in (context.peer, context.client, context.token, context.rack)
        )
        return ast.AdmitNode(peer, client, token, rack)

    def _change_nodes(self, context: Any) -> ast.ChangeNodes:
        return ast.ChangeNodes(_ids(context.joining), _ids(context.leaving))

    def _rebalance(self, context: Any) -> ast.Rebalance:
        if context.measure is None:
            return ast.Rebalance()
        text = self._expressions.name(context.measure)
        known = [measure.value for measure in ast.Measure]
        if text.lower() not in known:
            raise self._expressions.error(context.measure, f"{text} is not one of {', '.join(known)}")
        return ast.Rebalance(ast.Measure(text.lower()))

    def _migrate_region(self, context: Any) -> ast.MigrateRegion:
        return ast.MigrateRegion(*(int(token.text) for token in (context.region, context.leaving, context.joining)))

    # ------------------------------------------------------------------------------------------ sync

    def _transfer(self, context: Any) -> ast.TransferDevice:
        return ast.TransferDevice(self._expressions.exact(context.exactPath()), unquote_string(context.id_.text))

    def _drop_sender(self, context: Any) -> ast.DropSender:
        return ast.DropSender(unquote_string(context.id_.text))

    # ------------------------------------------------------------------------------------------ paths

    def _path(self, context: Any) -> PathExpression | None:
        return None if context is None else select_builder.pattern(self._expressions, context)

    def _paths(self, contexts: Iterable[Any]) -> tuple[PathExpression, ...]:
        return tuple(select_builder.pattern(self._expressions, context) for context in contexts)

    #: The methods, keyed by the name of the rule or of its alternative.
    _rules: ClassVar[dict[str, Callable[[Any, Any], Statement]]] = {
        "Select": _select,
        "Explain": _explain,
        "Insert": _insert,
        "DeleteData": _delete_data,
        "CreateDatabase": _create_database,
        "CreateSeries": _create_series,
        "CreateAligned": _create_aligned,
        "CreateUser": _create_user,
        "CreateRole": _create_role,
        "DropDatabases": _drop_databases,
        "DropSeries": _drop_series,
        "DropPrincipal": _drop_principal,
        "AlterSeries": _alter_series,
        "AlterStorage": _alter_storage,
        "AlterUser": _alter_user,
        "AlterDatabase": _alter_database,
        "GrantRole": _grant_role,
        "GrantPrivileges": _grant,
        "RevokeRole": _revoke_role,
        "RevokePrivileges": _revoke,
        "ListUsers": _list_users,
        "ListRoles": _list_roles,
        "ListPrivileges": _list_privileges,
        "CreateToken": _create_token,
        "DropToken": _drop_token,
        "ShowTokens": _show_tokens,
        "ShowDatabases": _show_databases,
        "ShowDevices": _show_devices,
        "ShowSeries": _show_series,
        "ShowViews": _show_views,
        "ShowChildren": _show_children,
        "ShowQueries": _show_queries,
        "ShowSlowQueries": _show_slow_queries,
        "ShowPlain": _show_plain,
        "ShowConfiguration": _show_configuration,
        "ShowCurrentTimestamp": _show_current_timestamp,
        "ShowTimeZone": _show_time_zone,
        "ShowCluster": _show_cluster,
        "ShowUrls": _show_urls,
        "ShowRegions": _show_regions,
        "ShowTtl": _show_ttl,
        "ShowDiskUsage": _show_disk_usage,
        "ShowStored": _show_stored,
        "CountDatabases": _count_databases,
        "CountDevices": _count_devices,
        "CountSeries": _count_series,
        "CountNodes": _count_nodes,
        "SetStorageGroup": _create_database,
        "SetTimeZone": _set_time_zone,
        "SetPartialResults": _set_partial_results,
        "SetConfiguration": _set_configuration,
        "SetDialect": _set_dialect,
        "SetSystem": _set_system,
        "SetTtl": _set_ttl,
        "UnsetTtl": _unset_ttl,
        "Flush": _flush,
        "Merge": _merge,
        "Clear": _clear,
        "Load": _load,
        "LoadConfiguration": _load_configuration,
        "Kill": _kill,
        "AdmitNode": _admit_node,
        "ChangeNodes": _change_nodes,
        "Rebalance": _rebalance,
        "MigrateRegion": _migrate_region,
        "AbortChange": lambda _, __: ast.AbortChange(),
        "GiveUpNodes": lambda _, context: ast.GiveUpNodes(tuple(int(token.text) for token in context.ids)),
        "ShowSync": _show_plain,
        "Transfer": _transfer,
        "DropSender": _drop_sender,
        "DismissNode": lambda _, context: ast.DismissNode(int(context.id_.text)),
    }


def _privileges(context: Any) -> tuple[str, ...]:
    return tuple(token.text.upper() for token in context.privileges().names)


def _ids(tokens: Iterable[Any]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(token.text) for token in tokens))
